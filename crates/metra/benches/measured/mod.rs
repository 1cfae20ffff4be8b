//! What the benches say: a line for people, and one that `cargo xtask bench` reads.
#![allow(
    clippy::print_stdout,
    dead_code,
    unreachable_pub,
    reason = "a benchmark prints its figures, and not all use all of this"
)]

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use metra::internal::cross;
use metra::linalg::Rows;

/// Queries of a block and items of a tile, as search and evaluation have them.
const BLOCK: usize = 64;
const TILE: usize = 1024;

/// Say the median of some repeats, with the least and the greatest.
pub fn say(name: &str, unit: &str, mut values: Vec<f64>) {
    values.sort_unstable_by(f64::total_cmp);
    let (low, high) = (values[0], values[values.len() - 1]);
    let median = values[values.len() / 2];
    println!("{name}: {median:.3} {unit} ({low:.3} to {high:.3})");
    println!("measured\t{name}\t{unit}\t{median:.6}\t{low:.6}\t{high:.6}");
}

/// The products of all queries with all items alone, results dropped.
pub fn bare_products(queries: Rows<'_>, items: Rows<'_>) {
    let mut out = vec![0.0; BLOCK * TILE];
    for first in (0..queries.len()).step_by(BLOCK) {
        let block = queries.slice(first, queries.len().min(first + BLOCK));
        for start in (0..items.len()).step_by(TILE) {
            let tile = items.slice(start, items.len().min(start + TILE));
            let out = &mut out[..block.len() * tile.len()];
            cross(block, tile, -2.0, out);
            std::hint::black_box(out);
        }
    }
}

/// A line of the process's status, such as its peak of memory (VmHWM).
pub fn megabytes(name: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kilobytes.map_or(0.0, |kilobytes| kilobytes * 1.024e-3)
}

/// Run on so many threads.
pub fn in_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("a pool of threads").install(work)
}

/// A matrix as the library has it, row after row without gaps. Columns of faer's own matrices end in memory that nobody
/// wrote to; products read it, and take ten times as long where it holds subnormal numbers.
pub struct Matrix {
    values: Vec<f32>,
    rows: usize,
}

impl Matrix {
    pub fn new(rows: usize, columns: usize) -> Self {
        let fill = |place: usize| (place * 31 % 101) as f32 / 101.0 - 0.5;
        Matrix {
            values: (0..rows * columns).map(fill).collect(),
            rows,
        }
    }

    pub fn get(&self) -> MatRef<'_, f32> {
        MatRef::from_row_major_slice(&self.values, self.rows, self.values.len() / self.rows)
    }

    pub fn product(&mut self, accum: Accum, left: MatRef<'_, f32>, right: MatRef<'_, f32>) {
        let columns = self.values.len() / self.rows;
        let out = MatMut::from_row_major_slice_mut(&mut self.values, self.rows, columns);
        matmul(out, accum, left, right, 1.0, Par::Seq);
    }
}
