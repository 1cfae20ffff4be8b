//! Closed forms and losses over all pairs, on one thread.
//!
//! `cargo bench -p metra --bench classics [-- lfda | mlapg]`. LFDA on 3,500 rows of dimension 100 in 10 classes, beside a product of
//! 2048³ numbers in f32 of the same run; MLAPG on the same rows, as nanoseconds a pair and step: the difference between
//! fits of many and of few steps, divided by the steps and the pairs. Medians of interleaved repeats.
#![allow(missing_docs, clippy::print_stdout)]

use faer::Accum;
use metra::Dataset;
use metra::data::synthetic::Nuisance;
use metra::methods::{Lfda, Mlapg};
use metra::supervision::{Labels, Supervision};
use metra::training::{Method, Run};
use std::time::Instant;

mod measured;

use measured::{Matrix, in_threads, say};

const ROWS: usize = 3_500;
const REPEATS: usize = 5;

fn main() -> metra::Result<()> {
    in_threads(1, measure)
}

fn measure() -> metra::Result<()> {
    let recipe = Nuisance {
        classes: 10,
        signal: 30,
        noise: 70,
        seed: 1,
    };
    let set = recipe.rows(ROWS);
    let supervision = Supervision::labels(Labels::from_numbers(&set.classes)?);
    let data = Dataset::new(&set.corpus, &supervision)?;
    let lfda = || -> metra::Result<f64> {
        let settings = Lfda {
            rank: 9,
            ..Lfda::default()
        };
        let start = Instant::now();
        settings.checked()?.fit(&data, &mut Run::new(1))?;
        Ok(start.elapsed().as_secs_f64())
    };
    let mlapg = |iterations: usize| -> metra::Result<(f64, f64)> {
        let settings = Mlapg {
            iterations,
            tolerance: 1e-12,
            ..Mlapg::default()
        };
        let mut run = Run::new(1);
        let start = Instant::now();
        settings.checked()?.fit(&data, &mut run)?;
        Ok((start.elapsed().as_secs_f64(), run.facts["steps"]))
    };
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let others = ["lfda", "mlapg"].map(|name| asked.iter().any(|word| word == name));
    let is_asked = |place: usize| others[place] || !others.contains(&true);
    let (mut closed, mut pairs) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        if is_asked(0) {
            let product = product();
            closed.push(lfda()? / product);
        }
        if is_asked(1) {
            let ((few, first), (many, last)) = (mlapg(2)?, mlapg(8)?);
            pairs.push(1e9 * (many - few) / (last - first) / (ROWS * ROWS) as f64);
        }
    }
    if is_asked(0) {
        say(
            "LFDA, 3,500 × 100, 10 classes",
            "× a 2048³ product in f32",
            closed,
        );
    }
    if is_asked(1) {
        say("MLAPG, 3,500 × 100", "ns a pair and step", pairs);
    }
    Ok(())
}

fn product() -> f64 {
    let rows = Matrix::new(2048, 2048);
    let mut out = Matrix::new(2048, 2048);
    let start = Instant::now();
    out.product(Accum::Replace, rows.get(), rows.get());
    std::hint::black_box(&out);
    start.elapsed().as_secs_f64()
}
