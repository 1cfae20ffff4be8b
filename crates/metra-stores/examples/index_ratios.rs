//! What an approximate index finds, and what it costs beside exact search and beside bare usearch, as
//! ratios inside one run.
//!
//! `cargo run -p metra-stores --features index --example index_ratios [ROWS] [FOLDER]`
//!
//! Makes ROWS (1,000,000) clustered vectors of dimension 64, indexes them in FOLDER (a temporary one;
//! an index that is there already is used again) and measures in another process, which has opened
//! the index and nothing else. Ways take turns; a figure is the median of all rounds.

#![allow(clippy::print_stdout, reason = "it prints what it measures")]

use metra::data::synthetic::Nuisance;
use metra::data::{Corpus, MemoryCorpus};
use metra::linalg::RowBuf;
use metra::model::{Chain, Model, Origin, Space};
use metra::search::Neighbours;
use metra_stores::index::{Ask, GraphSettings, IndexWriter, LocalIndex, Stage, Verify};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// 10,000 classes of dimension 64, as of an embedded corpus: near neighbours are of one class, and
/// classes lie in all directions.
const SET: Nuisance = Nuisance {
    classes: 10_000,
    signal: 64,
    noise: 0,
    seed: 1,
};

const K: usize = 10;
const QUERIES: usize = 1000;
/// Queries between two turns, few enough that both ways find the machine in the same state.
const PART: usize = 50;
const ROUNDS: usize = 7;
const EFFORTS: [usize; 5] = [32, 64, 128, 256, 512];

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, rows, folder] = &arguments[..]
        && word == "measure"
    {
        // One thread for all ways, and the same one: what is compared is the work, not how it is
        // spread, nor how quickly another thread wakes up.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
        let (rows, folder) = (rows.parse()?, Path::new(folder));
        return pool.install(|| measure(rows, folder));
    }
    let rows: u64 = match arguments.first() {
        Some(rows) => rows.parse()?,
        None => 1_000_000,
    };
    let temporary = tempfile::tempdir()?;
    let folder = match arguments.get(1) {
        Some(folder) => PathBuf::from(folder),
        None => temporary.path().join("index"),
    };
    if !LocalIndex::is_at(&folder) {
        build(rows, &folder)?;
    }
    let mut child = Command::new(std::env::current_exe()?);
    child.arg("measure").arg(rows.to_string()).arg(&folder);
    match child.status()?.success() {
        true => Ok(()),
        false => Err("the measurement failed".into()),
    }
}

fn build(rows: u64, folder: &Path) -> Outcome {
    let model = Model::new(
        None,
        Chain::identity(SET.dim(), Space::SquaredL2),
        Origin::default(),
    )?;
    let mut writer = IndexWriter::create(folder, &model, "none")?;
    let mut block = RowBuf::empty(SET.dim());
    for start in (0..rows).step_by(4096) {
        let end = rows.min(start + 4096);
        block.reset((end - start) as usize, SET.dim());
        for row in start..end {
            SET.write(row, block.row_mut((row - start) as usize));
        }
        writer.push(block.rows())?;
    }
    let settings = GraphSettings {
        parallel: true,
        ..GraphSettings::default()
    };
    let start = Instant::now();
    let mut next = 0;
    let manifest = writer.finish(Some(&settings), &mut |stage, done, total| {
        if stage == Stage::Link && done >= next {
            println!(
                "linked {done} of {total} after {:.0} s",
                start.elapsed().as_secs_f64()
            );
            next += total.div_ceil(10);
        }
        Ok(())
    })?;
    let bytes = |name: &str| manifest.files.get(name).map_or(0, |file| file.bytes >> 20);
    println!(
        "built with {} threads in {:.0} s; vectors {} MB, graph {} MB",
        rayon::current_num_threads(),
        start.elapsed().as_secs_f64(),
        bytes("vectors.f32"),
        bytes("graph.usearch")
    );
    Ok(())
}

fn measure(rows: u64, folder: &Path) -> Outcome {
    let mut queries = RowBuf::zeros(QUERIES, SET.dim());
    for query in 0..QUERIES {
        SET.write(rows + query as u64, queries.row_mut(query));
    }
    let parts = (0..QUERIES / PART).map(|part| {
        let rows = queries.rows().slice(part * PART, (part + 1) * PART);
        MemoryCorpus::new(RowBuf::from_values(rows.values().to_vec(), SET.dim())?)
    });
    let parts = parts.collect::<metra::Result<Vec<_>>>()?;
    let queries = MemoryCorpus::new(queries)?;
    let before = memory("RssAnon");
    let start = Instant::now();
    let index = LocalIndex::open(folder, Verify::Digests, &mut |_, _, _| Ok(()))?;
    let checked = start.elapsed();
    let start = Instant::now();
    drop(LocalIndex::open(
        folder,
        Verify::Lengths,
        &mut |_, _, _| Ok(()),
    )?);
    println!(
        "opened in {:.2} s with digests, {:.2} s with lengths alone",
        checked.as_secs_f64(),
        start.elapsed().as_secs_f64()
    );
    let ask = |queries: &MemoryCorpus, ask| index.search(queries, K, ask);
    ask(&queries, index.usual(10))?;
    println!(
        "memory after an approximate search: {} MB of its own ({} before the index), {} MB of mapped \
         pages, VmHWM {} MB",
        memory("RssAnon"),
        before,
        memory("RssFile"),
        memory("VmHWM")
    );
    let bare = bare(folder)?;
    let exact = ask(&queries, Ask::Exact)?;
    println!(
        "\n{rows} × {}, k = {K}, {QUERIES} queries, one thread",
        SET.dim()
    );
    println!(
        "effort   recall@{K}   bare recall   µs a query   to bare usearch   exact is slower by"
    );
    for effort in EFFORTS {
        bare.change_expansion_search(effort);
        let found = ask(&queries, Ask::Approximate { effort })?;
        let bare_found = ask_bare(&bare, &queries)?;
        let (mut ours, mut ratios, mut slower) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            for (number, part) in parts.iter().enumerate() {
                let mut times = [0.0; 2];
                // Who goes first finds the caches as the other way left them.
                for way in [(round + number) % 2, (round + number + 1) % 2] {
                    let start = Instant::now();
                    match way {
                        0 => drop(ask(part, Ask::Approximate { effort })?),
                        _ => drop(ask_bare(&bare, part)?),
                    }
                    times[way] = start.elapsed().as_secs_f64();
                }
                ours.push(times[0] / PART as f64);
                ratios.push(times[0] / times[1]);
            }
            let start = Instant::now();
            ask(&queries, Ask::Exact)?;
            let time = start.elapsed().as_secs_f64() / QUERIES as f64;
            slower.push(time / median(ours[ours.len() - parts.len()..].to_vec()));
        }
        println!(
            "{effort:>6}{:>12.4}{:>14.4}{:>13.1}{:>18.3}{:>21.1}",
            recall(&found.ids, &exact),
            recall(&bare_found, &exact),
            1e6 * median(ours),
            median(ratios),
            median(slower)
        );
    }
    let lone = MemoryCorpus::new(RowBuf::from_values(
        queries.rows().row(0).to_vec(),
        SET.dim(),
    )?)?;
    let mut ratios = Vec::new();
    for _ in 0..5 {
        let mut times = [0.0; 2];
        for (time, how) in times.iter_mut().zip([Ask::Exact, index.usual(10)]) {
            let start = Instant::now();
            ask(&lone, how)?;
            *time = start.elapsed().as_secs_f64();
        }
        ratios.push(times[0] / times[1]);
    }
    println!(
        "a lone query: exact search is slower by {:.0} (it prepares all items first)",
        median(ratios)
    );
    Ok(())
}

/// The same graph without anything around it.
fn bare(folder: &Path) -> Outcome<usearch::Index> {
    let index = usearch::Index::new(&usearch::IndexOptions {
        dimensions: SET.dim(),
        metric: usearch::MetricKind::L2sq,
        quantization: usearch::ScalarKind::F32,
        ..Default::default()
    })?;
    let path = folder.join("graph.usearch");
    index.view(path.to_str().ok_or("the path is not UTF-8")?)?;
    Ok(index)
}

fn ask_bare(index: &usearch::Index, queries: &MemoryCorpus) -> Outcome<Vec<u64>> {
    let mut ids = Vec::with_capacity(queries.len() as usize * K);
    for query in queries.rows().iter() {
        let found = index.search(query, K)?;
        ids.extend(found.keys);
    }
    Ok(ids)
}

/// Share of the exact neighbours that were found.
fn recall(found: &[u64], exact: &Neighbours) -> f64 {
    let pairs = found.chunks_exact(K).zip(exact.ids.chunks_exact(K));
    let hits: usize = pairs
        .map(|(found, exact)| found.iter().filter(|id| exact.contains(id)).count())
        .sum();
    hits as f64 / exact.ids.len() as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A line of the system's account of this process, in MB; 0 where there is none.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    kilobytes
        .and_then(|text| text.parse::<u64>().ok())
        .unwrap_or(0)
        / 1024
}
