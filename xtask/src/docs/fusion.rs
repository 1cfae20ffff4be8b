//! Rankings added up, from the records of `benches/fusion.py`, as a page.

use super::data::Data;
use super::signed;

use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;

const HEAD: &str = "\
# Rankings added up

nDCG@10 of lexical and dense rankings alone, and of their sums: by reciprocal ranks, by equal weights and by weights learned from
judgements ([how](../guide/hybrid.md)). BM25 is bm25s with its defaults and English stop words, MiniLM is all-MiniLM-L6-v2,
WordLlama has 256 dimensions. Learned weights, and the scale of equal ones, are chosen on four fifths of the judged queries
and evaluated on the others, five times; means are over three ways to deal the queries, intervals of 95 % are of the first. That
weights are learned from the first 20 items of each ranking, and not from all 1,000, was settled after figures of these
queries had been seen.

Made by `python benches/fusion.py $(command -v metra) docs/results/data/fusion.json`.
";

#[derive(Deserialize)]
struct Record {
    packages: BTreeMap<String, String>,
    results: Vec<Sum>,
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

/// Which packages figures were measured with.
pub(super) fn packages(versions: &BTreeMap<String, String>) -> String {
    let named: Vec<String> = (versions.iter())
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    format!("Packages: {}.", named.join(", "))
}

/// The page.
pub(super) fn page(data: &Data) -> Result<String> {
    let value = data
        .others
        .get("fusion")
        .context("fusion.json is missing")?;
    let record: Record = serde_json::from_value(value.clone()).context("fusion.json")?;
    let mut page = HEAD.to_owned();
    writeln!(page, "{}", packages(&record.packages))?;
    for sum in &record.results {
        let new = &sum.new_items;
        writeln!(
            page,
            "\n## {}\n\n{} judged queries, {} of them about items that no query to learn from names.\n\n\
             | | nDCG@10 | learned weights against it | the same, new items |\n| --- | --- | --- | --- |",
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
