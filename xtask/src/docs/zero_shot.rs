//! Accuracy with classes that training has no rows of, from the records of `benches/zero_shot.py`, as a page.

use super::data::Data;

use anyhow::{Context, Result};
use serde::Deserialize;
use std::fmt::Write;

const HEAD: &str = "\
# Classes without training rows

OSR (8 kinds of scenes) and PubFig (8 persons), 30 rows a class to learn from but none of the unseen classes, which are
drawn anew for each of ten splits and placed by the orderings alone
([how](../guide/attributes.md#classes-without-training-rows)). A test row may be given any of the eight classes.
Relative attributes are the orderings of Parikh & Grauman (ICCV 2011), binary ones the same table's other half, in which
a class has an attribute or not. Accuracy in per cent: of all test rows, of those of seen classes, of those of unseen
classes; λ was chosen on validation rows of seen classes. Knowing nothing, one in eight is right: most figures of unseen
classes are below that, because seen classes, whose rows the scores were fitted to, win most of their rows.

Made by `python benches/zero_shot.py $(command -v metra) docs/results/data/zero_shot.json`, which runs for each line

```
metra train $METRA_DATA/osr_gist.parquet --label label --orderings examples/orderings/osr_gist.txt --method rank-svm --splits $METRA_DATA/osr_gist.splits.json --prepare sqrt+l2 --score euclid --tune lambda=0.003,0.01,0.03 --classifier zero-shot:0.5 --unseen-classes 2
```
";

#[derive(Deserialize)]
struct Row {
    set: String,
    unseen_classes: usize,
    attributes: String,
    method: String,
    /// Mean and standard deviation over splits.
    all: [f64; 2],
    seen: [f64; 2],
    unseen: [f64; 2],
}

/// The page.
pub(super) fn page(data: &Data) -> Result<String> {
    let value = data
        .others
        .get("zero_shot")
        .context("zero_shot.json is missing")?;
    let rows: Vec<Row> = serde_json::from_value(value.clone()).context("zero_shot.json")?;
    let mut page = HEAD.to_owned();
    let mut set = "";
    for row in &rows {
        if row.set != set {
            set = &row.set;
            writeln!(
                page,
                "\n## {set}\n\n| unseen classes | attributes | method | all | seen | unseen |\n\
                 | --- | --- | --- | --- | --- | --- |"
            )?;
        }
        let cells = [row.all, row.seen, row.unseen]
            .map(|[mean, deviation]| format!("{:.1} ± {:.1}", 100.0 * mean, 100.0 * deviation));
        let Row {
            unseen_classes,
            attributes,
            method,
            ..
        } = row;
        let cells = cells.join(" | ");
        writeln!(
            page,
            "| {unseen_classes} | {attributes} | {method} | {cells} |"
        )?;
    }
    Ok(page)
}
