//! What the engine costs beside the bare work, as ratios inside one run.
//!
//! `cargo run -p metra-cli --features cluster --example engine_ratios [moments|executors|growth]`
//!
//! Starts a scheduler and executors of the command `metra` of the same build on this machine, over
//! tables that it makes in a temporary folder (`TMPDIR`, up to 4 GB). The machine must be idle: it
//! is looked at before every measurement, and what was found is printed.

#![allow(clippy::print_stdout, reason = "it prints what it measures")]

use anyhow::{Context, Result, bail, ensure};
use metra::internal::accumulate_outer;
use metra::internal::moments;
use metra::linalg::RowBuf;
use metra_engine::{Cut, Engine, TableCorpus};
use metra_files::ParquetVectorWriter;
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn main() -> Result<()> {
    let what = std::env::args().nth(1).unwrap_or_default();
    // Shards run side by side, not the columns of one product.
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build_global()?;
    let all = what.is_empty();
    if all || what == "moments" {
        bare()?;
    }
    if all || what == "executors" {
        executors()?;
    }
    if all || what == "growth" {
        growth()?;
    }
    Ok(())
}

/// DataFusion's pass against a bare scan and a bare product.
fn bare() -> Result<()> {
    let (files, rows, dim) = (8, 40_000, 256);
    let table = table(files, rows, dim)?;
    let engine = Engine::here(1)?;
    let address = table.path().display().to_string();
    let block = faer::Mat::from_fn(1024, dim, |row, column| {
        ((row * 31 + column * 17) % 101) as f64 / 50.0 - 1.0
    });
    let mut ratios = Vec::new();
    for _ in 0..5 {
        idle()?;
        let opened = engine.open(&address, Cut::Files)?;
        let shards: Vec<usize> = (0..opened.shards()).collect();
        let scan = seconds(|| {
            let mut numbers = 0;
            engine.read(&opened, &["vector"], &shards, &mut |batch| {
                numbers += batch.num_rows();
                Ok(ControlFlow::Continue(()))
            })?;
            ensure!(numbers == files * rows, "{numbers} rows were read");
            Ok(())
        })?;
        let product = seconds(|| {
            let mut sum = faer::Mat::zeros(dim, dim);
            for _ in 0..(files * rows).div_ceil(1024) {
                accumulate_outer(block.as_ref(), sum.as_mut());
            }
            ensure!(sum[(0, 0)] > 0.0, "the product is empty");
            Ok(())
        })?;
        let corpus = TableCorpus::new(&engine, opened, None)?;
        let pass = seconds(|| Ok(moments(&corpus)?))?;
        println!("scan {scan:.2} s, product {product:.2} s, moments pass {pass:.2} s");
        ratios.push(pass / (scan + product));
    }
    println!(
        "moments pass of DataFusion / (bare scan + bare product), {} × {dim}: {:.2}\n",
        files * rows,
        median(&mut ratios)
    );
    Ok(())
}

/// One executor against DataFusion here, two against one.
fn executors() -> Result<()> {
    let (files, rows, dim) = (24, 32_000, 1024);
    let table = table(files, rows, dim)?;
    let address = table.path().display().to_string();
    let pass = |engine: &Engine| {
        let corpus = TableCorpus::new(engine, engine.open(&address, Cut::Files)?, None)?;
        seconds(|| Ok(moments(&corpus)?))
    };
    let (mut to_here, mut to_one) = (Vec::new(), Vec::new());
    for repeat in 0..5 {
        idle()?;
        let cluster = Cluster::start(1)?;
        let one = pass(&Engine::cluster(&cluster.url)?)?;
        drop(cluster);
        if repeat < 3 {
            let here = pass(&Engine::here(1)?)?;
            println!("DataFusion on one thread {here:.1} s, one executor {one:.1} s");
            to_here.push(one / here);
        }
        let cluster = Cluster::start(2)?;
        let two = pass(&Engine::cluster(&cluster.url)?)?;
        println!("one executor {one:.1} s, two executors {two:.1} s");
        to_one.push(one / two);
    }
    println!("one executor / DataFusion: {:.3}", median(&mut to_here));
    println!("one executor / two executors: {:.2}\n", median(&mut to_one));
    Ok(())
}

/// Time a row and memory over tables of growing size.
fn growth() -> Result<()> {
    let dim = 64;
    let cluster = Cluster::start(1)?;
    let engine = Engine::cluster(&cluster.url)?;
    let pass = |table: &tempfile::TempDir| {
        let address = table.path().display().to_string();
        let corpus = TableCorpus::new(&engine, engine.open(&address, Cut::Rows(1 << 18))?, None)?;
        seconds(|| Ok(moments(&corpus)?))
    };
    let tiny = table(1, 300, dim)?;
    let mut empty: Vec<f64> = (0..5).map(|_| pass(&tiny)).collect::<Result<_>>()?;
    let empty = median(&mut empty);
    println!("an empty job: {empty:.2} s");
    let mut per_row = Vec::new();
    for (files, rows) in [(1, 100_000), (4, 250_000), (40, 250_000)] {
        let table = table(files, rows, dim)?;
        idle()?;
        let repeats = if files > 10 { 3 } else { 5 };
        let mut times: Vec<f64> = (0..repeats).map(|_| pass(&table)).collect::<Result<_>>()?;
        let time = median(&mut times);
        let each = (time - empty) / (files * rows) as f64;
        let memory = cluster.peak_memory()?;
        println!(
            "{} rows: {time:.2} s, {:.1} ns a row, peak memory of the executor {memory} MB",
            files * rows,
            1e9 * each
        );
        per_row.push(each);
    }
    println!(
        "time a row, 10,000,000 against 1,000,000: {:.3}\n",
        per_row[2] / per_row[1]
    );
    Ok(())
}

/// A table of random vectors.
fn table(files: usize, rows: usize, dim: usize) -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut block = RowBuf::zeros(1000, dim);
    for file in 0..files {
        let path = folder.path().join(format!("part-{file:03}.parquet"));
        let mut writer = ParquetVectorWriter::create(&path, "vector", dim, &[])?;
        for start in (0..rows).step_by(1000) {
            block.reset((rows - start).min(1000), dim);
            for value in block.values_mut() {
                // xorshift: any numbers will do, and these are quick.
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                *value = (state >> 40) as f32 / (1 << 24) as f32 - 0.5;
            }
            writer.push(block.rows())?;
        }
        writer.finish()?;
    }
    Ok(folder)
}

fn seconds<T>(work: impl FnOnce() -> Result<T>) -> Result<f64> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed().as_secs_f64())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Wait until the processors have nothing to do; say so where they always have.
fn idle() -> Result<()> {
    let mut busy = 1.0;
    for _ in 0..30 {
        let before = processor_times()?;
        std::thread::sleep(Duration::from_secs(1));
        let after = processor_times()?;
        busy = 1.0 - (after.1 - before.1) / (after.0 - before.0).max(1.0);
        if busy < 0.05 {
            return Ok(());
        }
    }
    println!("the machine was not idle: {:.0} % busy", 100.0 * busy);
    Ok(())
}

/// All time of the processors, and their idle time.
fn processor_times() -> Result<(f64, f64)> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().context("/proc/stat is empty")?;
    let numbers = line.split_whitespace().skip(1);
    let times: Vec<f64> = numbers.filter_map(|number| number.parse().ok()).collect();
    ensure!(times.len() > 4, "/proc/stat has another form");
    Ok((times.iter().sum(), times[3] + times[4]))
}

/// A scheduler with executors of one slot each; they end with it.
struct Cluster {
    url: String,
    programs: Vec<Child>,
}

impl Cluster {
    fn start(executors: usize) -> Result<Self> {
        let mut cluster = Cluster {
            url: String::new(),
            programs: Vec::new(),
        };
        let told = cluster.program("cluster scheduler --bind 127.0.0.1:0 --json", "listening")?;
        cluster.url = format!("df://{told}");
        for _ in 0..executors {
            let line = format!("cluster executor --scheduler {told} --slots 1 --threads 1 --json");
            cluster.program(&line, "work_dir")?;
        }
        Ok(cluster)
    }

    fn program(&mut self, line: &str, field: &str) -> Result<String> {
        let command = command()?;
        let mut child = Command::new(command)
            .args(line.split_whitespace())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = child.stdout.take().context("there is no output")?;
        self.programs.push(child);
        let mut first = String::new();
        BufReader::new(out).read_line(&mut first)?;
        let told: serde_json::Value = serde_json::from_str(&first)?;
        let found = told[field].as_str().context("it says something else")?;
        Ok(found.to_owned())
    }

    /// Most memory that the last program ever had resident, in MB.
    fn peak_memory(&self) -> Result<u64> {
        let program = self.programs.last().context("there is no executor")?;
        let status = std::fs::read_to_string(format!("/proc/{}/status", program.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let line = line.context("/proc has another form")?;
        let number = line.split_whitespace().nth(1).context("no number")?;
        Ok(number.parse::<u64>()? / 1024)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for program in &mut self.programs {
            // It may have ended by itself.
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

/// The command of the same build.
fn command() -> Result<PathBuf> {
    let example = std::env::current_exe()?;
    let folder = example.parent().and_then(Path::parent);
    let command = folder.context("no folder")?.join("metra");
    if !command.exists() {
        bail!(
            "{} is not there: build it with `cargo build -p metra-cli --features cluster`",
            command.display()
        );
    }
    Ok(command)
}
