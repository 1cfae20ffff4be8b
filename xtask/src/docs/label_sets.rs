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

Made by `python benches/label_sets.py $(command -v metra) docs/results/data/label_sets.json YEAST`, where YEAST is the folder that
`python experiments/data/build.py yeast` has written.
";

const GENES: &str = "
## Genes of yeast

A published set (Elisseeff & Weston 2001): 2,417 genes of 103 measurements, each with several of 14 functions, 4.2 on average, in 198
combinations. Each method learns from the functions of the genes in four of five folds, or from each combination as a class of its own; the
genes of the fifth fold ask for each other, and an answer with N functions in common counts N. Default settings, cosine, means over the folds.
";

#[derive(Deserialize)]
struct Record {
    #[serde(flatten)]
    made_with: MadeWith,
    seeds: usize,
    plain: Line,
    results: Vec<Method>,
    yeast: Genes,
}

#[derive(Deserialize)]
struct Genes {
    #[serde(flatten)]
    made_with: MadeWith,
    lines: Vec<GeneLine>,
}

/// A method on the genes; without a name the vectors as they are.
#[derive(Deserialize)]
struct GeneLine {
    method: String,
    #[serde(flatten)]
    line: Line,
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
    page.push_str(GENES);
    write!(
        page,
        "{}\n\n| method | learned from | nDCG@10 | nDCG@100 | mAP | P@1 |\n\
         | --- | --- | --- | --- | --- | --- |\n",
        record.yeast.made_with.text()
    )?;
    for GeneLine { method, line } in &record.yeast.lines {
        let row = match method.as_str() {
            "" => line.row(&line.name, ""),
            method => line.row(&format!("`{method}`"), &line.name),
        };
        page.push_str(&row);
    }
    Ok(page)
}
