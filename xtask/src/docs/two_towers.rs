//! Queries and items of two models, from the records of `benches/two_towers.py`, as a page.

use super::data::Data;
use super::fusion::MadeWith;
use super::signed;

use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;

const HEAD: &str = "\
# Queries and items of two models

Queries are vectors of another model, and another dimension, than items: what does a learned map for each side reach
([how](../guide/two-models.md))? All methods see the same queries, dealt into folds; settings are chosen on a fifth of the queries that are
not tested. Gains are over `procrustes`, a rotation or regression of the queries (chosen on validation) learned from the same judgements, with simultaneous intervals of 95 %.

- **clinc150**: the 4,500 test sentences as WordLlama's vectors ask for the 15,000 training sentences of their intent, as MiniLM's.
- **scifact**: 1,109 claims as WordLlama's vectors ask for 5,183 abstracts as MiniLM's, of which each cites one or two.
- **viper**: a person in camera a, as stripe histograms, asks for the same person in camera b, as published features, among all 632. No person
  that is tested has been seen in training. All vectors but those of the line `procrustes`
  are brought to 70 principal components of their side first.

Made by `python benches/two_towers.py $(command -v metra) docs/results/data/two_towers.json`.
";

/// Sets in the order of the page.
const SETS: [&str; 3] = ["clinc150", "scifact", "viper"];

#[derive(Deserialize)]
struct Record {
    sets: BTreeMap<String, Set>,
}

#[derive(Deserialize)]
struct Set {
    #[serde(flatten)]
    made_with: MadeWith,
    folds: usize,
    /// Settings that a method may try in a fold.
    trials: usize,
    /// Rows and dimension.
    queries: [u64; 2],
    items: [u64; 2],
    criterion: String,
    measures: Vec<String>,
    lines: Vec<Line>,
    /// Both sides by one model, as they are.
    alone: BTreeMap<String, BTreeMap<String, f64>>,
}

#[derive(Deserialize)]
struct Line {
    name: String,
    measures: BTreeMap<String, f64>,
    gains: BTreeMap<String, Gain>,
    parts: BTreeMap<String, Part>,
}

#[derive(Deserialize)]
struct Gain {
    difference: f64,
    low: f64,
    high: f64,
}

/// Queries with relevant items that training had seen, or without.
#[derive(Deserialize)]
struct Part {
    queries: u64,
    mean: f64,
}

/// The page.
pub(super) fn page(data: &Data) -> Result<String> {
    let value = (data.others.get("two_towers")).context("two_towers.json is missing")?;
    let record: Record = serde_json::from_value(value.clone()).context("two_towers.json")?;
    let mut page = HEAD.to_owned();
    for name in SETS {
        let set = record
            .sets
            .get(name)
            .with_context(|| format!("{name} is missing"))?;
        page.push_str(&section(name, set)?);
    }
    Ok(page)
}

fn section(name: &str, set: &Set) -> Result<String> {
    let [(queries, from), (items, to)] = [set.queries, set.items].map(|[rows, dim]| (rows, dim));
    let mut text = format!("\n## {name}\n\n{queries} queries × {from}, {items} items × {to}. ");
    write!(
        text,
        "{} folds, at most {} settings per method and fold. ",
        set.folds, set.trials
    )?;
    writeln!(text, "{}\n", set.made_with.text())?;
    let criterion = &set.criterion;
    let named = set.measures.join(" | ");
    writeln!(
        text,
        "| method | {named} | gain in {criterion} | {criterion} of seen items | of unseen items |"
    )?;
    writeln!(text, "|{}", " --- |".repeat(set.measures.len() + 4))?;
    let values = |measures: &BTreeMap<String, f64>| -> Result<String> {
        let each = set.measures.iter().map(|measure| {
            let value = (measures.get(measure)).with_context(|| format!("{name}: {measure}"))?;
            Ok(format!("{value:.4}"))
        });
        Ok(each.collect::<Result<Vec<_>>>()?.join(" | "))
    };
    for line in &set.lines {
        let gain = line.gains.get(criterion).map_or(String::new(), |gain| {
            let [difference, low, high] = [gain.difference, gain.low, gain.high].map(signed);
            format!("{difference} [{low}, {high}]")
        });
        let part = |name: &str| {
            let found = line.parts.get(name).filter(|part| part.queries > 0);
            found.map_or(String::new(), |part| {
                format!("{:.4} ({})", part.mean, part.queries)
            })
        };
        writeln!(
            text,
            "| `{}` | {} | {gain} | {} | {} |",
            line.name,
            values(&line.measures)?,
            part("seen items"),
            part("unseen items")
        )?;
    }
    for (model, measures) in &set.alone {
        writeln!(
            text,
            "| cosine, {model} for queries and items | {} | | | |",
            values(measures)?
        )?;
    }
    Ok(text)
}
