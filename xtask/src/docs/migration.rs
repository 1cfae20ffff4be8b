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
MiniLM is all-MiniLM-L6-v2 (384 dimensions), WordLlama has 256. Of images two kinds of features stand for two models: of VIPeR (a person in
one camera asks for the same person in the other) the stripe histograms and the published features, whose sample is a quarter of the persons;
of MNIST (4,000 digits, which ask for each other) the pixels and GIST. Vectors are compared by cosine. Intervals of 95 % are of the gain over
staying. On CLINC150 the queries are 2,000 rows drawn from all 22,500, each searched for among the others, so that figures differ from those
of [clinc150](clinc150.md). Counted in a sample are the queries of which a right answer is in it. Documents without text are left out.

Made by `python benches/migration.py $(command -v metra) docs/results/data/migration.json`, and once more with the word `images` behind it.
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
    images: Images,
}

/// The same of images.
#[derive(Deserialize)]
struct Images {
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
    writeln!(page, "Of texts: {}", record.made_with.text())?;
    writeln!(page, "Of images: {}\n", record.images.made_with.text())?;
    let changes = || record.results.iter().chain(&record.images.results);
    page.push_str("| | whole collection | sample |\n| --- | --- | --- |\n");
    for Change {
        name,
        whole,
        sample,
    } in changes()
    {
        writeln!(page, "| {name} | {} | {} |", whole.choice, sample.choice)?;
    }
    for Change {
        name,
        whole,
        sample,
    } in changes()
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
