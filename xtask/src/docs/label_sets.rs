//! Several labels per row, from the records of `benches/label_sets.py`, as a page.

use super::data::Data;
use super::fusion::MadeWith;

use anyhow::{Context, Result};
use serde::Deserialize;
use std::fmt::Write;

const HEAD: &str = "\
# Several labels per row

CLINC150 (MiniLM vectors, 384 dimensions): the intent and the domain of every sentence as its two labels
([how](../guide/supervision.md#several-labels-per-row)). Each method learns from the 15,000 training rows by intents alone (150 classes), by
domains alone (10 classes) and by both, with its default settings and the cosine; no row chooses anything. The 4,500 test rows ask for each
other: an answer of the same intent, and so of the same domain, counts 2 in nDCG, one of the same domain 1, and mAP and P@1 count both alike.

Made by `python benches/label_sets.py $(command -v metra) docs/results/data/label_sets.json`.
";

#[derive(Deserialize)]
struct Record {
    #[serde(flatten)]
    made_with: MadeWith,
    seeds: usize,
    plain: Line,
    results: Vec<Method>,
}

#[derive(Deserialize)]
struct Method {
    name: String,
    lines: Vec<Line>,
}

/// The measures of a way to learn.
#[derive(Deserialize)]
struct Line {
    name: String,
    #[serde(rename = "ndcg@10")]
    ndcg10: f64,
    #[serde(rename = "ndcg@100")]
    ndcg100: f64,
    map: f64,
    #[serde(rename = "p@1")]
    p1: f64,
}

impl Line {
    fn row(&self, method: &str, labels: &str) -> String {
        let Line {
            ndcg10,
            ndcg100,
            map,
            p1,
            ..
        } = self;
        format!("| {method} | {labels} | {ndcg10:.4} | {ndcg100:.4} | {map:.4} | {p1:.4} |\n")
    }
}

/// The page.
pub(super) fn page(data: &Data) -> Result<String> {
    let value = (data.others.get("label_sets")).context("label_sets.json is missing")?;
    let record: Record = serde_json::from_value(value.clone()).context("label_sets.json")?;
    let mut page = HEAD.to_owned();
    writeln!(page, "{}", record.made_with.text())?;
    write!(
        page,
        "\nMeans over {} seeds.\n\n\
         | method | learned from | nDCG@10 | nDCG@100 | mAP | P@1 |\n\
         | --- | --- | --- | --- | --- | --- |\n",
        record.seeds
    )?;
    page.push_str(&record.plain.row(&record.plain.name, ""));
    for Method { name, lines } in &record.results {
        for line in lines {
            page.push_str(&line.row(&format!("`{name}`"), &line.name));
        }
    }
    Ok(page)
}
