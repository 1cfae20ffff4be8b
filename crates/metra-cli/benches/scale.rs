//! Training on a corpus larger than the memory it may take: 4,000,000 × 128 rows in 100,000 classes
//! from a memory-mapped npy file and from Parquet, against 1,000,000 rows in memory.
//!
//! `cargo bench -p metra-cli --bench scale`. Needs about 7 GB of disk in the temporary folder.
//! Prints the peak of anonymous resident memory of each training and its steps a second relative
//! to the run in memory, as medians of interleaved repeats.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use anyhow::{Context, Result, ensure};
use metra::data::synthetic::Nuisance;
use metra::linalg::RowBuf;
use metra_files::{Column, NpyWriter, ParquetVectorWriter};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const ROWS: u64 = 4_000_000;
const IN_MEMORY: u64 = 1_000_000;
const RECIPE: Nuisance = Nuisance {
    classes: 100_000,
    signal: 32,
    noise: 96,
    seed: 1,
};
const REPEATS: usize = 3;

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    println!("writing {ROWS} × {} rows", RECIPE.dim());
    write_npy(&path("large.npy"), &path("large.txt"))?;
    write_parquet(&path("large.parquet"), ROWS)?;
    write_parquet(&path("small.parquet"), IN_MEMORY)?;
    let labels = path("large.txt").display().to_string();
    let (mut npy, mut parquet) = (Figures::default(), Figures::default());
    for _ in 0..REPEATS {
        let (base, _) = train(&path("small.parquet"), "label", "4G", folder.path())?;
        let (speed, memory) = train(&path("large.npy"), &labels, "64M", folder.path())?;
        npy.push(speed / base, memory);
        let (speed, memory) = train(&path("large.parquet"), "label", "64M", folder.path())?;
        parquet.push(speed / base, memory);
    }
    for (name, figures) in [("npy", &mut npy), ("Parquet", &mut parquet)] {
        figures.ratios.sort_by(f64::total_cmp);
        println!(
            "{name}: {:.2} × the steps a second of {IN_MEMORY} rows in memory, at most {} MB \
             of anonymous resident memory",
            figures.ratios[REPEATS / 2],
            figures.memory / 1024
        );
    }
    Ok(())
}

#[derive(Default)]
struct Figures {
    ratios: Vec<f64>,
    memory: u64,
}

impl Figures {
    fn push(&mut self, ratio: f64, memory: u64) {
        self.ratios.push(ratio);
        self.memory = self.memory.max(memory);
    }
}

fn blocks(rows: u64, mut visit: impl FnMut(&RowBuf, u64) -> Result<()>) -> Result<()> {
    let mut buffer = RowBuf::zeros(1000, RECIPE.dim());
    for first in (0..rows).step_by(1000) {
        for row in 0..1000 {
            RECIPE.write(first + row as u64, buffer.row_mut(row));
        }
        visit(&buffer, first)?;
    }
    Ok(())
}

fn write_npy(vectors: &Path, labels: &Path) -> Result<()> {
    let mut writer = NpyWriter::create(vectors, ROWS, RECIPE.dim())?;
    let mut text = BufWriter::new(std::fs::File::create(labels)?);
    blocks(ROWS, |rows, first| {
        writer.push(rows.rows())?;
        for row in first..first + 1000 {
            writeln!(text, "{}", RECIPE.class(row))?;
        }
        Ok(())
    })?;
    text.flush()?;
    Ok(writer.finish()?)
}

fn write_parquet(path: &Path, rows: u64) -> Result<()> {
    let labels = Column::Integers((0..rows).map(|row| RECIPE.class(row)).collect());
    let mut writer =
        ParquetVectorWriter::create(path, "vector", RECIPE.dim(), &[("label", &labels)])?;
    blocks(rows, |rows, _| Ok(writer.push(rows.rows())?))?;
    Ok(writer.finish()?)
}

/// Steps a second and the peak of anonymous resident memory in kB.
fn train(data: &Path, label: &str, memory: &str, cache: &Path) -> Result<(f64, u64)> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_metra"))
        .arg("train")
        .arg(data)
        .args([
            "--label",
            label,
            "--method",
            "warca",
            "--rank",
            "64",
            "--holdout",
            "none",
        ])
        .args([
            "--set",
            "steps=1500",
            "--seed",
            "1",
            "--json",
            "--memory",
            memory,
        ])
        .arg("--cache-dir")
        .arg(cache)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let peak = watch(&mut child)?;
    let output = child.wait_with_output()?;
    ensure!(
        output.status.success(),
        "training on {} failed",
        data.display()
    );
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let speed = report["splits"][0]["steps_per_second"].as_f64();
    Ok((speed.context("the report has no steps_per_second")?, peak))
}

fn watch(child: &mut Child) -> Result<u64> {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait()?.is_none() {
        if let Ok(text) = std::fs::read_to_string(&status) {
            let line = text.lines().find(|line| line.starts_with("RssAnon:"));
            let value = line.and_then(|l| l.split_whitespace().nth(1)?.parse::<u64>().ok());
            peak = peak.max(value.unwrap_or(0));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(peak)
}
