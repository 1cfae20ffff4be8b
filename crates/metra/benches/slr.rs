//! Exact adaptive SLR at the size of ImageNet50, on one thread, against the bare products that it
//! cannot do without.
//!
//! `cargo bench -p metra --bench slr`; METRA_BENCH_SCALE=0.1 takes a tenth of the rows. Makes
//! 71,181 × 1,000 rows in 50 classes and fits rank 100 in 5 iterations of Alg. 3 without
//! compression: ten half steps, each of which makes n² similarities and folds them. The same
//! products on the same blocks, without clipping, reading, embedding and solving, are timed on a
//! share of the row blocks before and after the fit and extrapolated; both in CPU seconds of the
//! process, since the machine may be shared. Prints the ratio, CPU minutes and the peak of
//! resident memory, the data included.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use faer::{Accum, MatRef};
use metra::Dataset;
use metra::data::Corpus;
use metra::data::synthetic::Nuisance;
use metra::internal::{cross, mix};
use metra::linalg::RowBuf;
use metra::methods::slr::{Ridges, Slr};
use metra::supervision::{Labels, Supervision};
use metra::training::{Method, Run};
use std::time::Instant;

const ROWS: f64 = 71_181.0;
const RANK: usize = 100;
const ITERATIONS: u64 = 5;
/// As in `methods/slr/blockwise.rs`.
const BLOCK: usize = 512;
/// Row blocks whose bare products are timed, before and after the fit each.
const SAMPLED: usize = 35;

fn main() -> metra::Result<()> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("a pool of one thread can be made");
    pool.install(measure)
}

fn measure() -> metra::Result<()> {
    let scale: f64 = std::env::var("METRA_BENCH_SCALE")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1.0);
    let rows = (ROWS * scale).max(1_000.0) as usize;
    let recipe = Nuisance {
        classes: 50,
        signal: 100,
        noise: 900,
        seed: 1,
    };
    let set = recipe.rows(rows);
    let supervision = Supervision::labels(Labels::from_numbers(&set.classes)?);
    let data = Dataset::new(&set.corpus, &supervision)?;
    println!(
        "{rows} × {} rows, rank {RANK}, {ITERATIONS} iterations, one thread",
        set.corpus.dim()
    );
    let bare = Bare::new(rows);
    let before = bare.seconds_of_a_half_step();
    let settings = Slr {
        rank: RANK,
        ridge: Ridges::one(0.1),
        iterations: ITERATIONS,
        ..Slr::default()
    };
    let learner = settings.checked()?;
    let (cpu, clock) = (cpu_seconds(), Instant::now());
    let map = learner.fit(&data, &mut Run::new(1))?;
    let (cpu, clock) = (cpu_seconds() - cpu, clock.elapsed().as_secs_f64());
    let after = bare.seconds_of_a_half_step();
    let products = 2.0 * ITERATIONS as f64 * 0.5 * (before + after);
    println!(
        "fit to rank {}: {:.1} CPU minutes ({:.1} by the clock), {:.2} × the bare products \
         ({:.1} CPU minutes; {:.1} s a half step before the fit, {:.1} s after)",
        map.output_dim(set.corpus.dim()),
        cpu / 60.0,
        clock / 60.0,
        cpu / products,
        products / 60.0,
        before,
        after
    );
    println!(
        "peak resident memory {} MB, of which the vectors are {} MB",
        peak_memory() / 1024,
        rows * set.corpus.dim() * 4 / 1_000_000
    );
    Ok(())
}

/// The products of a half step: similarities block by block, and their product with the factor.
struct Bare {
    left: RowBuf,
    right: RowBuf,
}

impl Bare {
    fn new(rows: usize) -> Self {
        let fill = |seed: usize| {
            let mut made = RowBuf::zeros(rows, RANK);
            for (place, value) in made.values_mut().iter_mut().enumerate() {
                *value = ((place * 31 + seed) % 101) as f32 / 101.0 - 0.5;
            }
            made
        };
        Bare {
            left: fill(1),
            right: fill(2),
        }
    }

    /// CPU seconds, extrapolated from some of the row blocks.
    fn seconds_of_a_half_step(&self) -> f64 {
        let (left, right) = (self.left.rows(), self.right.rows());
        let blocks = left.len().div_ceil(BLOCK);
        let sampled = SAMPLED.min(blocks);
        let mut similarities = vec![0.0_f32; BLOCK * BLOCK];
        let mut out = vec![0.0_f32; BLOCK * RANK];
        let start = cpu_seconds();
        let mut rows_done = 0;
        for number in 0..sampled {
            let first = number * blocks / sampled * BLOCK;
            let rows = left.slice(first, left.len().min(first + BLOCK));
            rows_done += rows.len();
            for start in (0..right.len()).step_by(BLOCK) {
                let columns = right.slice(start, right.len().min(start + BLOCK));
                let block = &mut similarities[..rows.len() * columns.len()];
                cross(rows, columns, 1.0, block);
                let weights = MatRef::from_row_major_slice(block, rows.len(), columns.len());
                let out = &mut out[..rows.len() * RANK];
                mix(weights, columns, 1e-6, Accum::Add, out);
            }
        }
        (cpu_seconds() - start) * left.len() as f64 / rows_done as f64
    }
}

/// CPU seconds of this process so far: fields 14 and 15 of /proc/self/stat, in hundredths.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or("");
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|f| f.parse::<f64>().ok());
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / 100.0
}

/// Peak of resident memory in kB.
fn peak_memory() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or(0)
}
