//! Fusion of rankings, from the records of `benches/fusion.py`, as a page.

use super::data::Data;
use super::signed;

use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;

const HEAD: &str = "\
# Fusion of rankings

nDCG@10 of lexical and dense rankings alone, and of their sums: by reciprocal ranks, by equal weights and by weights learned from
judgements ([how](../guide/hybrid.md)). BM25 is bm25s with its defaults and English stop words, MiniLM is all-MiniLM-L6-v2,
WordLlama has 256 dimensions. Learned weights, and the scale of equal ones, are chosen on four fifths of the judged queries
and evaluated on the others, five times; means are over three random divisions of the queries into folds, intervals of 95 % are of the first. That
weights are learned from the first 20 items of each ranking, and not from all 1,000, was settled after figures of these
queries had been seen.

Made by `python benches/fusion.py $(command -v metra) docs/results/data/fusion.json`.
";

#[derive(Deserialize)]
struct Record {
    #[serde(flatten)]
    made_with: MadeWith,
    results: Vec<Sum>,
}

/// What figures were measured with.
#[derive(Deserialize)]
pub(super) struct MadeWith {
    metra: Build,
    packages: BTreeMap<String, String>,
}

/// A command of ours.
#[derive(Deserialize)]
struct Build {
    version: String,
    /// Digest of the library's sources.
    sources: String,
}

impl MadeWith {
    pub(super) fn text(&self) -> String {
        let named: Vec<String> = (self.packages.iter())
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        let Build { version, sources } = &self.metra;
        format!(
            "Metra {version} (digest of the library's sources {sources}), {}.",
            named.join(", ")
        )
    }
}

#[derive(Deserialize)]
struct Sum {
    name: String,
    queries: u64,
    #[serde(rename = "ndcg@10")]
    means: BTreeMap<String, f64>,
    scale: String,
    weights: BTreeMap<String, f64>,
    gains: BTreeMap<String, Gain>,
    new_items: NewItems,
    advice: Vec<String>,
}

#[derive(Deserialize)]
struct NewItems {
    queries: u64,
    gains: BTreeMap<String, Gain>,
}

/// A difference with its interval.
#[derive(Deserialize)]
pub(super) struct Gain {
    difference: f64,
    low: f64,
    high: f64,
}

impl Gain {
    pub(super) fn text(&self) -> String {
        let [difference, low, high] = [self.difference, self.low, self.high].map(signed);
        format!("{difference} \\[{low}, {high}\\]")
    }
}

/// The page.
pub(super) fn page(data: &Data) -> Result<String> {
    let value = data
        .others
        .get("fusion")
        .context("fusion.json is missing")?;
    let record: Record = serde_json::from_value(value.clone()).context("fusion.json")?;
    let mut page = HEAD.to_owned();
    writeln!(page, "{}", record.made_with.text())?;
    for sum in &record.results {
        let new = &sum.new_items;
        writeln!(
            page,
            "\n## {}\n\n{} judged queries; the relevant items of {} of them are not judged for any query that the weights were learned from.\n\n\
             | | nDCG@10 | gain of learned weights over it | the same, new items |\n| --- | --- | --- | --- |",
            sum.name, sum.queries, new.queries
        )?;
        let mut lines: Vec<(&String, &f64)> = sum.means.iter().collect();
        lines.sort_by(|a, b| a.1.total_cmp(b.1));
        for (name, mean) in lines {
            let of =
                |gains: &BTreeMap<String, Gain>| gains.get(name).map_or(String::new(), Gain::text);
            writeln!(
                page,
                "| {name} | {mean:.4} | {} | {} |",
                of(&sum.gains),
                of(&new.gains)
            )?;
        }
        let weights: Vec<String> = sum
            .weights
            .iter()
            .map(|(name, weight)| format!("{name} {weight:.3}"))
            .collect();
        let mut advice = sum.advice.clone();
        advice.dedup();
        writeln!(
            page,
            "\nWeights on the scale {}: {}. Advice: {}.",
            sum.scale,
            weights.join(", "),
            advice.join("; with another seed: ")
        )?;
    }
    Ok(page)
}
