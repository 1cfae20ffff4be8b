//! `metra attributes eval`: how many pairs of rows the attributes order as the classes are ordered.

use super::{Scored, named};
use crate::args::Common;
use crate::attribute_order::{OrderedRow, ordered_rows, table};
use crate::inputs::{ComparisonArgs, Files, SupervisionInput, load, model_groups, split_names};
use crate::print;
use anyhow::{Result, bail};
use clap::Args;
use metra_files::{NarrowingRule, read_splits};
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
            NarrowingRule::of(model.narrowing.as_ref()),
            common,
        )?;
        let input = SupervisionInput {
            qrels: None,
            two_spaces: false,
            comparisons: &ComparisonArgs::default(),
            orderings: Some(&self.orderings),
            taxonomy: None,
        };
        let groups = (model_groups(&model, &loaded)?, None);
        let files = Files::one(loaded);
        let data = input.dataset(&files, columns, groups, common)?;
        let mut units = data.units();
        if let Some(path) = &self.splits {
            let set = read_splits(path)?;
            let Some(split) = set.splits.get(self.split) else {
                bail!(
                    "--split must be below {}, but is {}",
                    set.splits.len(),
                    self.split
                );
            };
            let names = split_names(set.by, &data, &files.items, columns)?;
            units = split.positions(&names)?.1;
        }
        let found = (data.ordered(&model.chain, &model.outputs, &units))
            .map_err(|error| files.locate(error.into()))?;
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
