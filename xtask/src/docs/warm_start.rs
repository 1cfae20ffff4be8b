//! Training from an earlier model, from the records of `benches/warm_start.py`, as a page.

use super::data::Data;
use super::fusion::MadeWith;
use super::signed;

use anyhow::{Context, Result};
use serde::Deserialize;
use std::fmt::Write;

const HEAD: &str = "\
# Training again from an earlier model

CLINC150 (MiniLM vectors, 384 dimensions, 150 intents of 100 training rows): 15 intents, drawn at random, are new. An earlier model has
learned from the training rows of the other 135. What is it worth to start from it (`metra train --from`, [how](../guide/update.md)),
against training anew on the rows of all 150? mAP of the 3,000 validation rows, of which no model has learned and each of which asks for
all others; means over five draws of the new intents. *Better* and *worse* count draws whose interval of 95 % lies on one side of 0. The
rate falls to 0 over the steps of each line. Nothing but the number of steps was changed from the defaults, except in two lines: the
regulariser of the last one is `identity` with λ = 0.1, which was set beforehand, and *a third of the rate* is .003 for `warca` and .001 for
`supcon`, which was settled on the first three of the draws.

Made by `python benches/warm_start.py $(command -v metra) docs/results/data/warm_start.json`.
";

#[derive(Deserialize)]
struct Record {
    #[serde(flatten)]
    made_with: MadeWith,
    draws: usize,
    results: Vec<Method>,
}

#[derive(Deserialize)]
struct Method {
    name: String,
    steps: u64,
    anew: f64,
    lines: Vec<Line>,
}

/// A model against one that was trained anew with all steps.
#[derive(Deserialize)]
struct Line {
    name: String,
    map: f64,
    old: f64,
    new: f64,
    gain: f64,
    better: usize,
    worse: usize,
}

/// The page.
pub(super) fn page(data: &Data) -> Result<String> {
    let value = (data.others.get("warm_start")).context("warm_start.json is missing")?;
    let record: Record = serde_json::from_value(value.clone()).context("warm_start.json")?;
    let mut page = HEAD.to_owned();
    writeln!(page, "{}", record.made_with.text())?;
    for Method {
        name,
        steps,
        anew,
        lines,
    } in &record.results
    {
        writeln!(
            page,
            "\n## {name}\n\nTrained anew by {steps} steps: {anew:.4}.\n\n\
             | | mAP | old intents | new intents | against training anew | better, worse of {} |\n\
             | --- | --- | --- | --- | --- | --- |",
            record.draws
        )?;
        for line in lines {
            writeln!(
                page,
                "| {} | {:.4} | {:.4} | {:.4} | {} | {}, {} |",
                line.name,
                line.map,
                line.old,
                line.new,
                signed(line.gain),
                line.better,
                line.worse
            )?;
        }
    }
    Ok(page)
}
