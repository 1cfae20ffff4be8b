//! A kernel WARCA step against the dense form of eq. 25, and χ² Gram matrices, on one thread.
//!
//! `cargo bench -p metra --bench kernel`. Prints ratios of interleaved repeats. The dense form works
//! A K and A K Aᵀ out anew at every step, which is what eq. 25 asks for as it is printed: O(N²m). The
//! step of the library is measured as the difference between fits of many and of few steps, so that
//! it contains all that a step needs. The time of the Gram matrix is compared with scikit-learn by
//! `benches/peers/chi_square.py`.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use faer::Accum;
use metra::Dataset;
use metra::data::MemoryCorpus;
use metra::internal::Stream;
use metra::internal::gram_within;
use metra::linalg::{Kernel, RowBuf};
use metra::methods::warca::{KernelOptimiser, KernelWarca, Start};
use metra::supervision::{Labels, Supervision};
use metra::training::{KernelKind, KernelSpec, Method, Run, Schedule};
use std::time::Instant;

mod measured;

use measured::{Matrix, in_threads, say};

const ROWS: usize = 1600;
const RANK: usize = 100;
const REPEATS: usize = 5;

fn main() -> metra::Result<()> {
    in_threads(1, || {
        gram_time();
        if std::env::args().any(|argument| argument == "gram") {
            return Ok(());
        }
        // One pair a step, as the paper has it, and a minibatch.
        steps(1, 16)?;
        steps(16, 16)
    })
}

/// Seconds of the χ² Gram matrix of 2,000 rows with 2,580 numbers each.
fn gram_time() {
    let rows = histograms(2000, 2580);
    let mut times: Vec<f64> = (0..3)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(gram_within(Kernel::ChiSquare, rows.rows()));
            start.elapsed().as_secs_f64()
        })
        .collect();
    println!(
        "χ² Gram matrix of 2,000 × 2,580: {:.3} s on one thread",
        median(&mut times)
    );
}

fn steps(batch: usize, pool: usize) -> metra::Result<()> {
    let corpus = MemoryCorpus::new(histograms(ROWS, 200))?;
    let classes: Vec<i64> = (0..ROWS as i64).map(|row| row / 2).collect();
    let supervision = Supervision::labels(Labels::from_numbers(&classes)?);
    let data = Dataset::new(&corpus, &supervision)?;
    let fit = |steps: u64| -> metra::Result<f64> {
        let settings = KernelWarca {
            rank: RANK,
            kernel: KernelSpec {
                kernel: KernelKind::ExponentialChiSquare,
                ..KernelSpec::default()
            },
            optimiser: KernelOptimiser::Preconditioned,
            rate: 0.1,
            start: Start::Pca,
            schedule: Schedule::of(steps),
            batch,
            pool,
            ..KernelWarca::default()
        };
        let learner = settings.checked()?;
        let start = Instant::now();
        learner.fit(&data, &mut Run::new(1))?;
        Ok(start.elapsed().as_secs_f64())
    };
    let dense = Dense::new();
    let (few, many) = (0, 1024);
    let mut ratios = Vec::new();
    for _ in 0..REPEATS {
        let dense = dense.seconds(8) / 8.0;
        let step = (fit(many)? - fit(few)?) / (many - few) as f64;
        ratios.push(dense / step);
    }
    say(
        &format!("kernel WARCA step, N = {ROWS}, rank {RANK}, batch of {batch}, pool of {pool}"),
        "× cheaper than dense",
        ratios,
    );
    Ok(())
}

/// The products of a dense step: A K, A K Aᵀ and (S − I) A. Drawing, loss and update come on top, so
/// that the comparison favours it.
struct Dense {
    coefficients: Matrix,
    gram: Matrix,
}

impl Dense {
    fn new() -> Self {
        Dense {
            coefficients: Matrix::new(RANK, ROWS),
            gram: Matrix::new(ROWS, ROWS),
        }
    }

    fn seconds(&self, repeats: u32) -> f64 {
        let a = self.coefficients.get();
        let mut z = Matrix::new(RANK, ROWS);
        let mut s = Matrix::new(RANK, RANK);
        let mut next = Matrix::new(RANK, ROWS);
        let start = Instant::now();
        for _ in 0..repeats {
            z.product(Accum::Replace, a, self.gram.get());
            s.product(Accum::Replace, z.get(), a.transpose());
            next.product(Accum::Replace, s.get(), a);
            std::hint::black_box(&next);
        }
        start.elapsed().as_secs_f64()
    }
}

fn histograms(len: usize, dim: usize) -> RowBuf {
    let mut stream = Stream::new(1, "bench", 0);
    let mut rows = RowBuf::zeros(len, dim);
    for value in rows.values_mut() {
        *value = (stream.unit() / dim as f64) as f32;
    }
    rows
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
