//! `metra decide`: same or not the same, for pairs of rows.

use crate::args::Common;
use crate::inputs::Columns;
use crate::inputs::{load, model_groups, row_name};
use crate::print;
use anyhow::{Context, Result};
use clap::Args;
use metra::evaluate::dissimilarities;
use metra::model::Model;
use metra_files::{Filter, NarrowingRule, RowNames, read_named_pairs};
use serde::Serialize;
use std::path::PathBuf;

/// Decide whether pairs of rows match, with a calibrated model.
#[derive(Args)]
pub(crate) struct Decide {
    /// The model file, as `metra calibrate` wrote it
    model: PathBuf,
    /// The vectors (.parquet, .npy, .csv, .jsonl, …)
    data: PathBuf,
    /// Pairs of rows, one per line: a and b, by id or number; a third field, 1 for same or 0, is
    /// compared with the decision
    #[arg(long, value_name = "FILE")]
    pairs: PathBuf,
    #[command(flatten)]
    columns: Columns,
    /// Keep only rows with this value (column=value or column!=value; repeatable)
    #[arg(long = "where", value_name = "FILTER")]
    filters: Vec<Filter>,
}

#[derive(Serialize)]
struct Decided {
    threshold: f64,
    pairs: Vec<Pair>,
    /// Of the pairs said to be the same, those that were found to be, and all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    true_matches: Option<[usize; 2]>,
    /// The same of the pairs said to be different.
    #[serde(skip_serializing_if = "Option::is_none")]
    false_matches: Option<[usize; 2]>,
}

#[derive(Serialize)]
struct Pair {
    a: String,
    b: String,
    dissimilarity: f64,
    same: bool,
}

impl Decide {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        let model = Model::load(&self.model)?;
        let decision = model.decision.as_ref().with_context(|| {
            format!(
                "{} has no threshold: make one with metra calibrate",
                self.model.display()
            )
        })?;
        let rule = NarrowingRule::of(model.narrowing.as_ref());
        let loaded = load(&self.data, &self.columns, &[], &self.filters, rule, common)?;
        let names = RowNames::new(&loaded.table, self.columns.id.as_deref())?;
        let named = read_named_pairs(&self.pairs, &names)?;
        if named.unknown > 0 {
            tracing::warn!(
                "{}: {} lines left out that speak of rows that were not read",
                self.pairs.display(),
                named.unknown
            );
        }
        let groups = model_groups(&model, &loaded)?;
        let corpus = loaded.table.corpus.as_ref();
        let found = dissimilarities(&model.chain, corpus, groups.as_ref(), &named.pairs)?;
        let pairs: Vec<Pair> = (named.pairs.iter().zip(&found))
            .map(|([a, b], dissimilarity)| Pair {
                a: row_name(&loaded, &self.columns, *a),
                b: row_name(&loaded, &self.columns, *b),
                dissimilarity: *dissimilarity,
                same: decision.is_same(*dissimilarity),
            })
            .collect();
        let said_to_be = |similar: bool| {
            let of = named.similar.iter().zip(&pairs);
            let labelled: Vec<&Pair> = of
                .filter(|(labelled, _)| **labelled == Some(similar))
                .map(|(_, pair)| pair)
                .collect();
            let matches = labelled.iter().filter(|pair| pair.same).count();
            (!labelled.is_empty()).then_some([matches, labelled.len()])
        };
        let decided = Decided {
            threshold: decision.threshold,
            true_matches: said_to_be(true),
            false_matches: said_to_be(false),
            pairs,
        };
        if common.json {
            return print::json(&decided);
        }
        for pair in &decided.pairs {
            let word = if pair.same { "same" } else { "different" };
            let line = format!("{}\t{}\t{:.7}\t{word}", pair.a, pair.b, pair.dissimilarity);
            print::line(&line)?;
        }
        let counts = [
            ("true matches", decided.true_matches),
            ("false matches", decided.false_matches),
        ];
        for (name, counts) in counts {
            if let Some([matches, all]) = counts {
                tracing::info!("{name}: {matches} of {all}");
            }
        }
        Ok(())
    }
}
