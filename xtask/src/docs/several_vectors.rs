//! Rows of several vectors, from the records of `benches/several_vectors.py`, as a page.

use super::data::Data;
use super::fusion::MadeWith;
use super::signed;

use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;

const HEAD: &str = "\
# Rows of several vectors

What are weights worth that `vector-weights` learns from judgements, one for each of several vectors of an item
([how](../guide/several-vectors.md))? *Alone* is the cosine of one of the vectors as it is; *equal weights* is the cosine of all, one behind
the other, each divided by its length. Learned weights are learned on four fifths of the queries and evaluated on the others, five times; their
gain is over equal weights, with an interval of 95 %. The weights themselves are of all queries.

- **scifact, title and text**: 1,109 claims ask for abstracts, whose titles and texts WordLlama has embedded apart (256 dimensions each); a
  claim's one vector asks both. *both* is one vector of title and text together, as it is usually done.
- **scifact, two models**: claims ask for abstracts by MiniLM's (384) and WordLlama's vectors (256) of title and text.
- **viper, two features**: a person in camera a asks for the same person in camera b, among 632, by square roots of stripe histograms (2,580)
  and by published features (76). No person that is tested has been seen in training.

Made by `python benches/several_vectors.py $(command -v metra) docs/results/data/several_vectors.json`.
";

/// Tasks in the order of the page.
const TASKS: [&str; 3] = [
    "scifact, title and text",
    "scifact, two models",
    "viper, two features",
];

#[derive(Deserialize)]
struct Record {
    #[serde(flatten)]
    made_with: MadeWith,
    tasks: BTreeMap<String, Task>,
}

#[derive(Deserialize)]
struct Task {
    queries: u64,
    items: u64,
    criterion: String,
    measures: Vec<String>,
    lines: BTreeMap<String, BTreeMap<String, f64>>,
    gain: Gain,
    weights: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
struct Gain {
    difference: f64,
    low: f64,
    high: f64,
}

/// The page.
pub(super) fn page(data: &Data) -> Result<String> {
    let value = (data.others.get("several_vectors")).context("several_vectors.json is missing")?;
    let record: Record = serde_json::from_value(value.clone()).context("several_vectors.json")?;
    let mut page = HEAD.to_owned();
    writeln!(page, "{}", record.made_with.text())?;
    for name in TASKS {
        let task = (record.tasks.get(name)).with_context(|| format!("{name} is missing"))?;
        page.push_str(&section(name, task)?);
    }
    Ok(page)
}

fn section(name: &str, task: &Task) -> Result<String> {
    let mut text = format!(
        "\n## {name}\n\n{} queries, {} items.\n\n",
        task.queries, task.items
    );
    writeln!(text, "| | {} |", task.measures.join(" | "))?;
    writeln!(text, "|{}", " --- |".repeat(task.measures.len() + 1))?;
    let is_alone = |line: &&String| line.ends_with(" alone");
    let alone = task.lines.keys().filter(is_alone);
    for line in alone.chain(task.lines.keys().filter(|line| !is_alone(line))) {
        let values = task.measures.iter().map(|measure| {
            let value =
                (task.lines[line].get(measure)).with_context(|| format!("{line}: {measure}"))?;
            Ok(format!("{value:.4}"))
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        writeln!(text, "| {line} | {} |", values.join(" | "))?;
    }
    let [difference, low, high] = [task.gain.difference, task.gain.low, task.gain.high].map(signed);
    let weights = task
        .weights
        .iter()
        .map(|(name, weight)| format!("{name} {weight:.3}"));
    writeln!(
        text,
        "\nGain of learned over equal weights in {}: {difference} [{low}, {high}]. Weights: {}.",
        task.criterion,
        weights.collect::<Vec<_>>().join(", ")
    )?;
    Ok(text)
}
