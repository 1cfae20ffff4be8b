//! Time of the exact top-10 search of 10,000 queries among 10,000 items at d = 64, one thread.
//!
//! `cargo bench -p metra --bench search`. With `METRA_QUERIES` and `METRA_ITEMS` naming files of
//! raw little-endian f32, of `METRA_DIM` numbers a row, these are searched, and with `METRA_IDS` the ids found are written there
//! as raw little-endian u64, so that `benches/peers/faiss_search.py` can compare them.
#![allow(missing_docs, clippy::print_stdout)]

use metra::data::{Corpus, MemoryCorpus};
use metra::internal::Stream;
use metra::linalg::RowBuf;
use metra::model::Space;
use metra::search::top_k;
use std::time::Instant;

mod measured;

use measured::{bare_products, in_threads, say};

const ROWS: usize = 10_000;
const DIM: usize = 64;
const NEIGHBOURS: usize = 10;
const REPEATS: usize = 5;

fn main() {
    let queries = vectors("METRA_QUERIES", 1);
    let items = vectors("METRA_ITEMS", 2);
    in_threads(1, || {
        let (mut times, mut ratios) = (Vec::new(), Vec::new());
        let mut ids = Vec::new();
        for _ in 0..REPEATS {
            let start = Instant::now();
            bare_products(queries.rows(), items.rows());
            let bare = start.elapsed().as_secs_f64();
            let start = Instant::now();
            let found = top_k(Space::SquaredL2, &queries, &items, NEIGHBOURS, false);
            times.push(start.elapsed().as_secs_f64());
            ratios.push(times[times.len() - 1] / bare);
            ids = found.expect("neighbours").ids;
        }
        if let Ok(path) = std::env::var("METRA_IDS") {
            let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
            std::fs::write(path, bytes).expect("a file for the ids");
        }
        times.sort_unstable_by(f64::total_cmp);
        println!("seconds {:.6}", times[times.len() / 2]);
        let (queries, items, dim) = (queries.len() / 1000, items.len() / 1000, items.dim());
        say(
            &format!("exact top-10, {queries},000 queries × {items},000 items × {dim}"),
            "× the bare products",
            ratios,
        );
    });
}

fn vectors(variable: &str, seed: u64) -> MemoryCorpus {
    let values: Vec<f32> = match std::env::var(variable) {
        Ok(path) => std::fs::read(path)
            .expect("a file of f32")
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            .collect(),
        Err(_) => {
            let mut stream = Stream::new(seed, "bench rows", 0);
            (0..ROWS * DIM).map(|_| stream.normal() as f32).collect()
        }
    };
    let dim = std::env::var("METRA_DIM").map_or(DIM, |dim| dim.parse().expect("a number"));
    let rows = RowBuf::from_values(values, dim).expect("whole rows");
    MemoryCorpus::new(rows).expect("finite rows")
}
