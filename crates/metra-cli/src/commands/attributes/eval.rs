//! `metra attributes eval`: how many pairs of rows the attributes order as the classes are ordered.
//! `metra train` says the same of its test parts; `table` is what both print.

use super::{Scored, named};
use crate::args::{Common, Compared};
use crate::load::{in_file, load, model_groups, narrowing_of, split_names};
use crate::print;
use crate::told::{Sources, told};
use anyhow::{Result, bail};
use clap::Args;
use metra::evaluate::Ordered;
use metra::study::{Collection, Material, MeanAndDeviation};
use metra_files::read_splits;
use serde::Serialize;
use std::path::PathBuf;

/// Measure how many pairs of rows each attribute orders as the orderings of classes say.
#[derive(Args)]
pub(super) struct Eval {
    #[command(flatten)]
    scored: Scored,
    /// Orderings of classes by attributes, one a line: attribute: A<B~C<D
    #[arg(long, value_name = "FILE", requires = "label")]
    orderings: PathBuf,
    /// Judge on the test part of a split of this file (by default all rows are judged, those that
    /// were learned from too)
    #[arg(long, value_name = "FILE")]
    splits: Option<PathBuf>,
    /// Which split of the file, counted from 0
    #[arg(long, value_name = "N", requires = "splits", default_value_t = 0)]
    split: usize,
}

/// Pairs that one attribute orders right.
#[derive(Serialize, Clone)]
pub(crate) struct OrderedRow {
    pub(crate) attribute: String,
    /// Nothing where the attribute orders no two of the rows.
    #[serde(flatten)]
    pub(crate) ordered: Option<Ordered>,
}

/// Rows of what the library found.
pub(crate) fn ordered_rows(found: Vec<(String, Option<Ordered>)>) -> Vec<OrderedRow> {
    (found.into_iter())
        .map(|(attribute, ordered)| OrderedRow { attribute, ordered })
        .collect()
}

/// The table of some parts, in each of which the same attributes were judged: shares with their
/// interval of one part, means with their deviation of several.
pub(crate) fn table(parts: &[&[OrderedRow]]) -> Result<()> {
    let Some(first) = parts.first().filter(|rows| !rows.is_empty()) else {
        return Ok(());
    };
    let width = first.iter().map(|row| row.attribute.chars().count()).max();
    let width = width.unwrap_or(0).max(9) + 2;
    let spread = match parts.len() {
        1 => "95 % interval".to_owned(),
        several => format!("mean and deviation over {several} splits"),
    };
    print::line(&format!("{:<width$}{:>7}   {spread}", "attribute", "right"))?;
    for (place, row) in first.iter().enumerate() {
        let shares: Vec<f64> = (parts.iter())
            .filter_map(|rows| rows.get(place)?.ordered)
            .map(|ordered| ordered.share)
            .collect();
        let text = match (&row.ordered, shares.len()) {
            (Some(one), 1) => format!(
                "{:>7.4}   [{:.4}, {:.4}]  {} pairs of rows",
                one.share,
                one.low,
                one.high,
                print::count(one.pairs)
            ),
            (_, 0) => "      –   orders no two of the rows".to_owned(),
            _ => {
                let over = MeanAndDeviation::over(&shares);
                format!("{:>7.4}   ± {:.4}", over.mean, over.deviation)
            }
        };
        print::line(&format!("{:<width$}{text}", row.attribute))?;
    }
    Ok(())
}

#[derive(Serialize)]
struct Judged {
    rows: usize,
    attributes: Vec<OrderedRow>,
}

impl Eval {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        let model = named(&self.scored.model)?;
        let columns = &self.scored.columns;
        let loaded = load(
            &self.scored.data,
            columns,
            &[],
            &self.scored.filters,
            narrowing_of(model.narrowing.as_ref()),
            common,
        )?;
        let sources = Sources {
            qrels: None,
            compared: &Compared::default(),
            orderings: Some(&self.orderings),
            taxonomy: None,
        };
        let said = told(&loaded, columns, &sources)?;
        let groups = model_groups(&model, &loaded)?;
        let material = Material {
            items: Collection {
                corpus: loaded.table.corpus.as_ref(),
                groups: groups.as_ref(),
            },
            queries: None,
            supervision: said.supervision,
            judged_by: None,
            storage: common.storage(),
        };
        let mut units = said.units;
        if let Some(path) = &self.splits {
            let set = read_splits(path)?;
            let Some(split) = set.splits.get(self.split) else {
                bail!(
                    "--split must be below {}, but is {}",
                    set.splits.len(),
                    self.split
                );
            };
            let names = split_names(set.by, &material, &loaded, columns)?;
            units = split.positions(&names)?.1;
        }
        let found = (material.ordered(&model.chain, &model.outputs, &units))
            .map_err(|error| in_file(error, &loaded))?;
        let judged = Judged {
            rows: units.len(),
            attributes: ordered_rows(found),
        };
        if common.json {
            return print::json(&judged);
        }
        print::fact("rows", &print::count(judged.rows as u64))?;
        table(&[&judged.attributes])
    }
}
