//! Time of the top-10 search of 1,000 queries among 1,000,000 codes of 128 bits by Hamming distance, one thread.
//!
//! `cargo bench -p metra --bench hamming`. With `METRA_QUERIES` and `METRA_ITEMS` naming files of codes of 16 bytes, these
//! are searched, and with `METRA_DISTANCES` the distances found are written there as raw little-endian f32, so that
//! `benches/peers/faiss_hamming.py` can compare them. Without, exact f32 search of vectors of 128 dimensions is
//! timed beside it.
#![allow(missing_docs, clippy::print_stdout)]

use metra::data::MemoryCorpus;
use metra::internal::Stream;
use metra::linalg::RowBuf;
use metra::model::Space;
use metra::search::{HammingItems, Neighbours, top_k};
use std::time::Instant;

mod measured;

use measured::{in_threads, say};

const BYTES: usize = 16;
const DIM: usize = 8 * BYTES;
const QUERIES: usize = 1_000;
const ITEMS: usize = 1_000_000;
/// Exact search of floats takes this share of the queries.
const FLOAT_QUERIES: usize = 100;
const NEIGHBOURS: usize = 10;
const REPEATS: usize = 5;

fn main() {
    let queries = codes("METRA_QUERIES", QUERIES, 1);
    let items = codes("METRA_ITEMS", ITEMS, 2);
    let is_given = std::env::var_os("METRA_ITEMS").is_some();
    in_threads(1, || {
        let index = HammingItems::new(BYTES, &items).expect("whole codes");
        let floats = (!is_given).then(|| (vectors(FLOAT_QUERIES, 3), vectors(ITEMS, 4)));
        let (mut times, mut ratios) = (Vec::new(), Vec::new());
        for _ in 0..REPEATS {
            let start = Instant::now();
            let found = index.top_k(&queries, NEIGHBOURS).expect("neighbours");
            let time = start.elapsed().as_secs_f64();
            times.push(time);
            write(&found);
            if let Some((queries, items)) = &floats {
                let start = Instant::now();
                let found = top_k(Space::InnerProduct, queries, items, NEIGHBOURS, false);
                std::hint::black_box(found.expect("neighbours"));
                let share = QUERIES as f64 / FLOAT_QUERIES as f64;
                ratios.push(start.elapsed().as_secs_f64() * share / time);
            }
        }
        times.sort_unstable_by(f64::total_cmp);
        println!("seconds {:.6}", times[times.len() / 2]);
        let name = "top-10 by Hamming distance, 1,000 queries × 1,000,000 codes of 128 bits";
        if !ratios.is_empty() {
            say(name, "× faster than exact search of f32 × 128", ratios);
        }
    });
}

fn write(found: &Neighbours) {
    if let Ok(path) = std::env::var("METRA_DISTANCES") {
        let bytes: Vec<u8> = (found.scores.iter())
            .flat_map(|score| score.to_le_bytes())
            .collect();
        std::fs::write(path, bytes).expect("a file for the distances");
    }
}

fn codes(variable: &str, rows: usize, seed: u64) -> Vec<u8> {
    match std::env::var(variable) {
        Ok(path) => std::fs::read(path).expect("a file of codes"),
        Err(_) => {
            let mut stream = Stream::new(seed, "bench codes", 0);
            (0..rows * BYTES).map(|_| stream.below(256) as u8).collect()
        }
    }
}

fn vectors(rows: usize, seed: u64) -> MemoryCorpus {
    let mut stream = Stream::new(seed, "bench rows", 0);
    let values = (0..rows * DIM)
        .map(|_| stream.unit() as f32 - 0.5)
        .collect();
    let rows = RowBuf::from_values(values, DIM).expect("whole rows");
    MemoryCorpus::new(rows).expect("finite rows")
}
