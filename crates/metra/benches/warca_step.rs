//! A WARCA step with a pool against the bare products of the same shapes, on one thread.
//!
//! `cargo bench -p metra --bench warca_step`. Prints the median ratio of interleaved repeats: times
//! of a shared machine mean little, ratios inside one run do. A step is measured as the difference
//! between fits of many and of few steps, so that it contains all that a step needs: drawing,
//! fetching and centring rows, the loss, the regulariser and Adam.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};
use metra::Dataset;
use metra::data::synthetic::Nuisance;
use metra::methods::warca::{Start, Warca};
use metra::supervision::{Labels, Supervision};
use metra::training::{Method, Run, Schedule};
use std::time::Instant;

mod measured;

use measured::say;

const DIM: usize = 784;
const RANK: usize = 64;
const BATCH: usize = 512;
const REPEATS: usize = 15;

fn main() -> metra::Result<()> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("a pool of one thread can be made");
    pool.install(measure)
}

fn measure() -> metra::Result<()> {
    let recipe = Nuisance {
        classes: 100,
        signal: 84,
        noise: DIM - 84,
        seed: 1,
    };
    let set = recipe.rows(20_000);
    let supervision = Supervision::labels(Labels::from_numbers(&set.classes)?);
    let data = Dataset::new(&set.corpus, &supervision)?;
    let fit = |steps: u64| -> metra::Result<f64> {
        let settings = Warca {
            rank: RANK,
            batch: BATCH,
            pool: BATCH,
            schedule: Schedule::of(steps),
            start: Start::Random,
            ..Warca::default()
        };
        let learner = settings.checked()?;
        let start = Instant::now();
        learner.fit(&data, &mut Run::new(1))?;
        Ok(start.elapsed().as_secs_f64())
    };
    let bare = Bare::new();
    let (few, many) = (5, 45);
    let mut ratios = Vec::new();
    for _ in 0..REPEATS {
        let products = bare.seconds(many - few);
        let step = fit(many)? - fit(few)?;
        ratios.push(step / products);
    }
    say(
        "WARCA step, d = 784, rank 64, batch = pool = 512",
        "× the bare products",
        ratios,
    );
    Ok(())
}

/// The products that a step cannot do without.
struct Bare {
    rows: Mat<f32>,
    map: Mat<f32>,
    embedded: Mat<f32>,
    weights: Mat<f32>,
}

impl Bare {
    fn new() -> Self {
        let fill = |i: usize, j: usize| ((i * 31 + j * 17) % 101) as f32 / 101.0 - 0.5;
        // Stored as their transposes, because faer's own matrices are column-major and the
        // library's rows are row-major.
        Bare {
            rows: Mat::from_fn(DIM, 3 * BATCH, fill),
            map: Mat::from_fn(DIM, RANK, fill),
            embedded: Mat::from_fn(RANK, 3 * BATCH, fill),
            weights: Mat::from_fn(BATCH, BATCH, fill),
        }
    }

    fn seconds(&self, repeats: u64) -> f64 {
        let rows = self.rows.transpose();
        let map = self.map.transpose();
        let embedded = self.embedded.transpose();
        let (queries, negatives) = (
            embedded.subrows(0, BATCH),
            embedded.subrows(2 * BATCH, BATCH),
        );
        let weights = self.weights.transpose();
        let mut z = Mat::<f32>::zeros(RANK, 3 * BATCH);
        let mut distances = Mat::<f32>::zeros(BATCH, BATCH);
        let mut push = Mat::<f32>::zeros(RANK, BATCH);
        let mut gradient = Mat::<f32>::zeros(DIM, RANK);
        let mut gram = Mat::<f32>::zeros(RANK, RANK);
        let start = Instant::now();
        for _ in 0..repeats {
            let (replace, add) = (Accum::Replace, Accum::Add);
            matmul(
                z.transpose_mut(),
                replace,
                rows,
                map.transpose(),
                1.0,
                Par::Seq,
            );
            matmul(
                distances.transpose_mut(),
                replace,
                queries,
                negatives.transpose(),
                -2.0,
                Par::Seq,
            );
            matmul(
                push.transpose_mut(),
                replace,
                weights,
                negatives,
                1.0,
                Par::Seq,
            );
            matmul(
                push.transpose_mut(),
                replace,
                weights.transpose(),
                queries,
                1.0,
                Par::Seq,
            );
            matmul(
                gradient.transpose_mut(),
                replace,
                embedded.transpose(),
                rows,
                1.0,
                Par::Seq,
            );
            matmul(
                gram.transpose_mut(),
                replace,
                map,
                map.transpose(),
                1.0,
                Par::Seq,
            );
            matmul(
                gradient.transpose_mut(),
                add,
                gram.transpose(),
                map,
                1.0,
                Par::Seq,
            );
        }
        start.elapsed().as_secs_f64()
    }
}
