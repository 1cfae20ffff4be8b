//! Changes of the embedding model, from the records of `benches/migration.py`, as a page.

use super::data::Data;
use super::fusion::{Gain, MadeWith};

use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;

const HEAD: &str = "\
# Changing the embedding model

What `metra migrate` ([how](../guide/migrate.md)) says of pairs of embedding models, in both directions. *Sample* is its choice from a
quarter of the items, drawn once; *whole collection* is what all items say, with every one of them embedded by both models.
MiniLM is all-MiniLM-L6-v2 (384 dimensions), WordLlama has 256. Vectors are compared by cosine. Intervals of 95 % are of the gain over
staying. On CLINC150 the queries are 2,000 rows drawn from all 22,500, each searched for among the others, so that figures differ from those
of [clinc150](clinc150.md). Counted in a sample are the queries of which a right answer is in it. Documents without text are left out.

Made by `python benches/migration.py $(command -v metra) docs/results/data/migration.json`.
";

/// The ways in the order in which the command has them.
const WAYS: [&str; 6] = [
    "stay",
    "map queries",
    "map items",
    "embed a part",
    "embed all",
    "use both",
];

#[derive(Deserialize)]
struct Record {
    #[serde(flatten)]
    made_with: MadeWith,
    results: Vec<Change>,
}

#[derive(Deserialize)]
struct Change {
    name: String,
    whole: Study,
    sample: Study,
}

#[derive(Deserialize)]
struct Study {
    items: u64,
    queries: u64,
    measure: String,
    means: BTreeMap<String, f64>,
    gains: BTreeMap<String, Gain>,
    choice: String,
}

/// The page.
pub(super) fn page(data: &Data) -> Result<String> {
    let value = data
        .others
        .get("migration")
        .context("migration.json is missing")?;
    let record: Record = serde_json::from_value(value.clone()).context("migration.json")?;
    let mut page = HEAD.to_owned();
    writeln!(page, "{}\n", record.made_with.text())?;
    page.push_str("| | whole collection | sample |\n| --- | --- | --- |\n");
    for Change {
        name,
        whole,
        sample,
    } in &record.results
    {
        writeln!(page, "| {name} | {} | {} |", whole.choice, sample.choice)?;
    }
    for Change {
        name,
        whole,
        sample,
    } in &record.results
    {
        writeln!(
            page,
            "\n## {name}\n\n{} items and {} queries; in the sample {} and {}.\n\n\
             | | {} | gain over staying | sample | gain over staying |\n| --- | --- | --- | --- | --- |",
            whole.items, whole.queries, sample.items, sample.queries, whole.measure
        )?;
        for way in WAYS {
            let of = |study: &Study| {
                let mean = study
                    .means
                    .get(way)
                    .map_or(String::new(), |mean| format!("{mean:.4}"));
                let gain = study.gains.get(way).map_or(String::new(), Gain::text);
                format!("{mean} | {gain}")
            };
            writeln!(page, "| {way} | {} | {} |", of(whole), of(sample))?;
        }
    }
    Ok(page)
}
