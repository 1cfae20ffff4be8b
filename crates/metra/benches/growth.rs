//! How costs grow with the number of rows, on one thread: a WARCA step, evaluation and exact search a query, and memory.
//!
//! `cargo bench -p metra --bench growth [-- 10000 100000 1000000 10000000]`. Rows of dimension 64 in classes of four. Every
//! number of rows runs in a process of its own, so that its peak of memory is its own; rows, and their labels, are reported
//! separately.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use metra::Dataset;
use metra::data::MemoryCorpus;
use metra::evaluate::{AgainstGallery, EvaluationOptions, Measure, evaluate};
use metra::internal::Stream;
use metra::linalg::RowBuf;
use metra::methods::Warca;
use metra::methods::warca::Start;
use metra::model::Space;
use metra::search::top_k;
use metra::supervision::{Labels, Supervision};
use metra::training::{Method, Run, Schedule};
use std::time::Instant;

mod measured;

use measured::{in_threads, megabytes, say};

const DIM: usize = 64;
const QUERIES: usize = 256;
const REPEATS: usize = 3;
const ONE: &str = "--one";

fn main() -> metra::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut sizes: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
    if words.iter().any(|word| word == ONE) {
        return in_threads(1, || measure(sizes[0]));
    }
    if sizes.is_empty() {
        sizes = vec![10_000, 100_000, 1_000_000];
    }
    for size in sizes {
        let program = std::env::current_exe().expect("this program");
        let mut child = std::process::Command::new(program);
        let status = child.args([ONE, &size.to_string()]).status();
        assert!(status.expect("a process").success(), "{size} rows");
    }
    Ok(())
}

fn measure(size: usize) -> metra::Result<()> {
    let items = MemoryCorpus::new(normal(size, 1))?;
    let queries = MemoryCorpus::new(normal(QUERIES, 2))?;
    let classes: Vec<i64> = (0..size as i64).map(|row| row / 4).collect();
    let others = Labels::from_numbers(&classes)?;
    let supervision = Supervision::labels(others.clone());
    let data = Dataset::new(&items, &supervision)?;
    let own = Labels::from_numbers(&(0..QUERIES as i64).collect::<Vec<_>>())?;
    let truth = AgainstGallery::new(&own, &others);
    // Forgets the peak so far.
    _ = std::fs::write("/proc/self/clear_refs", "5");
    let held = megabytes("VmRSS");
    let fit = |steps| -> metra::Result<f64> {
        let warca = Warca {
            start: Start::Random,
            schedule: Schedule::of(steps),
            ..Warca::default()
        };
        let start = Instant::now();
        warca.fit(&data, &mut Run::new(1))?;
        Ok(start.elapsed().as_secs_f64())
    };
    let search = || -> metra::Result<f64> {
        let start = Instant::now();
        top_k(Space::SquaredL2, &queries, &items, 10, false)?;
        Ok(start.elapsed().as_secs_f64())
    };
    let options = EvaluationOptions {
        measures: vec![Measure::AveragePrecision, Measure::CmcAt(1), Measure::Auc],
        ..EvaluationOptions::default()
    };
    let judge = || -> metra::Result<f64> {
        let start = Instant::now();
        evaluate(Space::SquaredL2, &queries, &items, &truth, &options)?;
        Ok(start.elapsed().as_secs_f64())
    };
    let (mut steps, mut searches, mut judged) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        steps.push(1e3 * (fit(60)? - fit(10)?) / 50.0);
        searches.push(1e3 * search()? / QUERIES as f64);
        judged.push(1e3 * judge()? / QUERIES as f64);
    }
    say(&format!("WARCA step, {size} rows"), "ms", steps);
    say(
        &format!("exact top-10, {size} items"),
        "ms a query",
        searches,
    );
    say(
        &format!("exact mAP, CMC and AUC, {size} items"),
        "ms a query",
        judged,
    );
    let rows = (size * DIM * 4) as f64 / 1e6;
    say(&format!("rows, {size} rows"), "MB", vec![rows]);
    say(
        &format!("all work beside rows and labels, {size} rows"),
        "MB",
        vec![megabytes("VmHWM") - held],
    );
    Ok(())
}

fn normal(len: usize, seed: u64) -> RowBuf {
    let mut stream = Stream::new(seed, "bench rows", 0);
    let mut rows = RowBuf::zeros(len, DIM);
    for value in rows.values_mut() {
        *value = stream.normal() as f32;
    }
    rows
}
