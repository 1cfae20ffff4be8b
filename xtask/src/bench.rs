//! Running the benches again: their figures as JSON in `docs/results/data/performance.json`, and as a page made from
//! that file.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

/// Benches of the library, in the order of the page.
const BENCHES: [&str; 5] = ["evaluation", "search", "steps", "kernel", "classics"];

/// The file with the figures, and the page made from it.
const DATA: &str = "docs/results/data/performance.json";
const PAGE: &str = "docs/results/performance.md";

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

/// Run all benches and write figures and page; with `check` compare them with those that are recorded instead. Returns
/// what is worse.
pub fn bench(root: &Path, check: bool) -> Result<Vec<String>> {
    let mut figures = Vec::new();
    for bench in BENCHES {
        figures.extend(run(root, bench)?);
    }
    if check {
        let recorded = read(root)?;
        return Ok(worse(&recorded.figures, &figures));
    }
    let performance = Performance {
        commit: said(root, "git", &["describe", "--always", "--dirty"])?,
        cpu: cpu(),
        rustc: said(root, "rustc", &["--version"])?,
        figures,
    };
    let text = serde_json::to_string_pretty(&performance)? + "\n";
    std::fs::create_dir_all(root.join("docs/results/data"))?;
    std::fs::write(root.join(DATA), text).context(DATA)?;
    std::fs::write(root.join(PAGE), page(&performance)).context(PAGE)?;
    Ok(Vec::new())
}

fn read(root: &Path) -> Result<Performance> {
    let text = std::fs::read_to_string(root.join(DATA)).context(DATA)?;
    serde_json::from_str(&text).context(DATA)
}

fn run(root: &Path, bench: &str) -> Result<Vec<Figure>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(root)
        .args(["bench", "--quiet", "--locked", "--package", "metra"])
        .args(["--bench", bench])
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("{bench}: cargo could not be run"))?;
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

/// What a program says, without the end of the line.
fn said(root: &Path, program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .current_dir(root)
        .args(arguments)
        .output()
        .with_context(|| format!("{program} could not be run"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The processor's name and number of threads.
fn cpu() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "model name").then(|| value.trim().to_owned())
    });
    let threads = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{}, {threads} threads",
        model.unwrap_or_else(|| "unknown".into())
    )
}

/// Figures that are more than [`WORSE`] times worse than recorded, or that are no longer measured.
fn worse(recorded: &[Figure], found: &[Figure]) -> Vec<String> {
    let mut all = Vec::new();
    // Times mean nothing on another machine.
    for known in recorded
        .iter()
        .filter(|known| !known.unit.starts_with("ns"))
    {
        let again = found
            .iter()
            .find(|figure| (&figure.bench, &figure.name) == (&known.bench, &known.name));
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
        "# Performance\n\nWritten by `cargo xtask bench` from [its figures](data/performance.json); `cargo xtask bench \
         --check` runs the benches\nagain and fails where a ratio is {WORSE} times worse than recorded. Ratios inside one \
         run, interleaved, medians with the\nleast and the greatest of the repeats; one thread unless said otherwise. \
         Commit {commit}, {cpu},\n{rustc}.\n\n| | measured | spread | |\n| --- | --- | --- | --- |\n"
    );
    for figure in &performance.figures {
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
        "\nBeside other software: `python benches/peers/faiss_search.py` (FAISS), `python benches/peers/chi_square.py` \
         (scikit-learn), and\n[the learners' table](peers.md).\n",
    );
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
    fn the_page_is_made_from_the_figures() {
        let root = crate::repository_root().unwrap();
        let written = std::fs::read_to_string(root.join(PAGE)).unwrap();
        assert_eq!(
            page(&read(&root).unwrap()),
            written,
            "write it with cargo xtask bench"
        );
    }

    #[test]
    fn what_is_worse_is_told() {
        let ratio = |median| vec![figure("× the bare products", median)];
        assert!(worse(&ratio(2.0), &ratio(2.5)).is_empty());
        assert_eq!(worse(&ratio(2.0), &ratio(2.7)).len(), 1);
        let gain = |median| vec![figure("× the speed of one", median)];
        assert!(worse(&gain(1.9), &gain(3.0)).is_empty());
        assert_eq!(worse(&gain(1.9), &gain(1.2)).len(), 1);
        assert!(worse(&gain(1.9), &[])[0].contains("no longer"));
        assert!(worse(&[figure("ns a pair", 2.0)], &[]).is_empty());
        assert_eq!(Figure::read("bench", "seconds 3"), None);
        assert_eq!(Figure::read("bench", "measured\tname\t×\t-1\t-2\t3"), None);
    }
}
