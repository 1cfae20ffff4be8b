//! Running the benches again: their figures as JSON in `docs/results/data/performance.json`, and as a page with charts
//! made from that file.

mod growth;

use std::path::Path;
use std::process::Command;

use crate::measuring::{commit, cpu, said};
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

/// Benches of the library, in the order of the page.
const BENCHES: [&str; 7] = [
    "evaluation",
    "search",
    "steps",
    "kernel",
    "classics",
    "threads",
    "growth",
];

/// Scripts beside other software, run by an interpreter that has it.
const PEERS: [&str; 2] = ["faiss_search", "chi_square"];

/// Rows up to which costs are followed for the page; a check leaves them out.
const SIZES: [&str; 4] = ["10000", "100000", "1000000", "10000000"];

/// The file with the figures, and the page made from it.
const DATA: &str = "docs/results/data/performance.json";
const PAGE: &str = "docs/results/performance.md";
/// Charts of growth, with the units that they show.
const CHARTS: [(&str, &[&str], &str); 2] = [
    ("performance_time.svg", &["ms", "ms a query"], "ms"),
    ("performance_memory.svg", &["MB"], "MB"),
];

/// How much worse than recorded a figure may be.
const WORSE: f64 = 1.3;

/// All figures of one run.
#[derive(Debug, Serialize, Deserialize)]
struct Performance {
    commit: String,
    cpu: String,
    rustc: String,
    figures: Vec<Figure>,
}

/// Median, least and greatest of some repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Figure {
    bench: String,
    name: String,
    unit: String,
    median: f64,
    low: f64,
    high: f64,
}

impl Figure {
    /// A line that a bench prints for this program: `measured`, name, unit, median, least and greatest.
    fn read(bench: &str, line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split('\t').collect();
        let ["measured", name, unit, median, low, high] = fields[..] else {
            return None;
        };
        // Differences of times can be anything on a busy machine.
        let median = median
            .parse()
            .ok()
            .filter(|m: &f64| m.is_finite() && *m > 0.0)?;
        Some(Figure {
            bench: bench.to_owned(),
            name: name.to_owned(),
            unit: unit.to_owned(),
            median,
            low: low.parse().ok()?,
            high: high.parse().ok()?,
        })
    }

    /// Whether it is the same figure, of another run.
    fn is_same(&self, other: &Figure) -> bool {
        self.bench == other.bench && self.name == other.name && self.unit == other.unit
    }

    /// Whether more of its unit is better.
    fn is_gain(&self) -> bool {
        self.unit.contains("cheaper") || self.unit.contains("speed")
    }

    /// How much worse it is than another: 1 where both are the same.
    fn against(&self, other: &Figure) -> f64 {
        if self.is_gain() {
            other.median / self.median
        } else {
            self.median / other.median
        }
    }
}

/// Run all benches, those beside other software where there is an interpreter that has it, and write figures, page and
/// charts; with `check` compare ratios with those that are recorded instead. Returns what is worse.
pub fn bench(root: &Path, check: bool, python: Option<&str>) -> Result<Vec<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut figures = Vec::new();
    for bench in BENCHES.iter().filter(|bench| !check || **bench != "growth") {
        let mut command = Command::new(&cargo);
        command
            .args(["bench", "--quiet", "--locked", "--package", "metra"])
            .args(["--bench", bench]);
        if *bench == "growth" {
            command.arg("--").args(SIZES);
        }
        figures.extend(run(root, bench, command)?);
    }
    if let Some(python) = python {
        for peer in PEERS {
            let mut command = Command::new(python);
            command.arg(format!("benches/peers/{peer}.py"));
            figures.extend(run(root, peer, command)?);
        }
    }
    if check {
        let recorded = read(root)?;
        return Ok(worse(&recorded.figures, &figures));
    }
    ensure!(
        python.is_some(),
        "the page has figures beside other software: give an interpreter that has it with --python PATH, or use --check"
    );
    let performance = Performance {
        commit: commit(root)?,
        cpu: cpu(),
        rustc: said(root, "rustc", &["--version"])?,
        figures,
    };
    let text = serde_json::to_string_pretty(&performance)? + "\n";
    std::fs::create_dir_all(root.join("docs/results/data"))?;
    std::fs::write(root.join(DATA), text).context(DATA)?;
    for (path, text) in pages(&performance) {
        std::fs::write(root.join(&path), text).context(path)?;
    }
    Ok(Vec::new())
}

/// The page and its charts as the recorded figures make them, with their places.
pub(crate) fn recorded_pages(root: &Path) -> Result<Vec<(String, String)>> {
    Ok(pages(&read(root)?))
}

fn pages(performance: &Performance) -> Vec<(String, String)> {
    let mut pages = vec![(PAGE.to_owned(), page(performance))];
    for (name, units, unit) in CHARTS {
        let lines = growth::lines(&performance.figures, units);
        if !lines.is_empty() {
            let path = format!("docs/results/{name}");
            pages.push((path, growth::chart(&lines, unit)));
        }
    }
    pages
}

fn read(root: &Path) -> Result<Performance> {
    let text = std::fs::read_to_string(root.join(DATA)).context(DATA)?;
    serde_json::from_str(&text).context(DATA)
}

fn run(root: &Path, bench: &str, mut command: Command) -> Result<Vec<Figure>> {
    let output = command
        .current_dir(root)
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("{bench}: {command:?} could not be run"))?;
    ensure!(
        output.status.success(),
        "{bench}: ended with {}",
        output.status
    );
    let text = String::from_utf8_lossy(&output.stdout);
    let figures: Vec<Figure> = text
        .lines()
        .filter_map(|line| Figure::read(bench, line))
        .collect();
    if figures.is_empty() {
        bail!("{bench}: expected figures, found none in {text:?}");
    }
    Ok(figures)
}

/// Figures that are more than [`WORSE`] times worse than recorded, or that are no longer measured.
fn worse(recorded: &[Figure], found: &[Figure]) -> Vec<String> {
    let mut all = Vec::new();
    // Times mean nothing on another machine, and what was not run was not measured.
    let is_run = |known: &&Figure| found.iter().any(|figure| figure.bench == known.bench);
    for known in (recorded.iter())
        .filter(|known| known.unit.contains('×'))
        .filter(is_run)
    {
        let again = found.iter().find(|figure| figure.is_same(known));
        match again {
            None => all.push(format!(
                "{}: {} is no longer measured",
                known.bench, known.name
            )),
            Some(again) if again.against(known) > WORSE => all.push(format!(
                "{}: {}: {:.2} {}, recorded {:.2}",
                known.bench, known.name, again.median, known.unit, known.median
            )),
            Some(_) => {}
        }
    }
    all
}

/// The page.
fn page(performance: &Performance) -> String {
    let Performance {
        commit, cpu, rustc, ..
    } = performance;
    let mut text = format!(
        "# Performance\n\nWritten by `cargo xtask bench --python PATH` from [its figures](data/performance.json); `cargo xtask bench \
         --check` runs the benches\nagain and fails where a ratio is {WORSE} times worse than recorded. Ratios inside one \
         run, interleaved, medians with the\nleast and the greatest of the repeats; one thread unless said otherwise. \
         Commit {commit}, {cpu},\n{rustc}.\n\n| | measured | spread | |\n| --- | --- | --- | --- |\n"
    );
    for figure in performance.figures.iter().filter(|f| !growth::is_growth(f)) {
        let Figure {
            name,
            unit,
            median,
            low,
            high,
            ..
        } = figure;
        text.push_str(&format!(
            "| {name} | {median:.2} | {low:.2} to {high:.2} | {unit} |\n"
        ));
    }
    text.push_str(
        "\nPATH is an interpreter that has numpy, faiss-cpu and scikit-learn, for the scripts in `benches/peers`. Learners \
         beside their peers, by quality and CPU time: [peers](peers.md).\n",
    );
    if performance.figures.iter().any(growth::is_growth) {
        text.push_str(
            "\n## Growth with the number of rows\n\nRows of dimension 64 in classes of four, one thread, a process for each \
             number of rows: the time of a WARCA step, and\nof exact evaluation and exact search a query; the memory \
             of the rows, and what all this work takes beside them.\n\n",
        );
        for (name, _, unit) in CHARTS {
            text.push_str(&format!("![{unit} against rows]({name})\n\n"));
        }
        let text_end = text.trim_end().len();
        text.truncate(text_end);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(unit: &str, median: f64) -> Figure {
        let line = format!("measured\tname\t{unit}\t{median}\t0.5\t9");
        Figure::read("bench", &line).unwrap()
    }

    #[test]
    fn what_is_worse_is_told() {
        let ratio = |median| vec![figure("× the bare products", median)];
        assert!(worse(&ratio(2.0), &ratio(2.5)).is_empty());
        assert_eq!(worse(&ratio(2.0), &ratio(2.7)).len(), 1);
        let gain = |median| vec![figure("× the speed of one", median)];
        assert!(worse(&gain(1.9), &gain(3.0)).is_empty());
        assert_eq!(worse(&gain(1.9), &gain(1.2)).len(), 1);
        // A figure that its bench no longer prints is reported; figures of benches that were not run are not.
        let other = [Figure {
            name: "other".into(),
            ..figure("× the speed of one", 1.0)
        }];
        assert!(worse(&gain(1.9), &other)[0].contains("no longer"));
        assert!(worse(&gain(1.9), &[]).is_empty());
        // Times mean nothing on another machine, and two units under one name are two figures.
        assert!(worse(&[figure("ns a pair", 2.0)], &[figure("ns a pair", 9.0)]).is_empty());
        let two = |a, b| vec![figure("× FAISS", a), figure("× FAISS as detected", b)];
        assert!(worse(&two(0.9, 0.3), &two(0.9, 0.3)).is_empty());
        assert_eq!(worse(&two(0.9, 0.3), &two(0.9, 0.5)).len(), 1);
        assert_eq!(Figure::read("bench", "seconds 3"), None);
        assert_eq!(Figure::read("bench", "measured\tname\t×\t-1\t-2\t3"), None);
    }
}
