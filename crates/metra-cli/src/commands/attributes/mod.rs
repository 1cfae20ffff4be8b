//! `metra attributes`: what a model of attributes says of rows. `metra train --method attributes`
//! makes one from orderings of classes; here rows are ranked by an attribute, found by "like this,
//! but more of that", and the scores are held against orderings.

mod eval;
mod like;
mod rank;
#[cfg(feature = "images")]
mod strip;

use crate::args::Common;
use crate::inputs::Columns;
use crate::inputs::{Loaded, embed, load};
use crate::print;
use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};
use metra::model::{Embedding, Model, Side};
use metra::search::AttributeSpace;
use metra_files::{Filter, NarrowingRule};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Rank rows by a learned attribute, and find rows that are like another but have more of it.
#[derive(Args)]
pub(crate) struct Attributes {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List the attributes of a model
    List(List),
    /// Rank rows by one attribute
    Rank(rank::Rank),
    /// Find rows similar to a given row, with more or less of some attributes
    Like(like::Like),
    /// Measure how many pairs of rows each attribute orders as the orderings of classes say
    Eval(eval::Eval),
}

impl Attributes {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        match &self.verb {
            Verb::List(verb) => verb.run(common),
            Verb::Rank(verb) => verb.run(common),
            Verb::Like(verb) => verb.run(common),
            Verb::Eval(verb) => verb.run(common),
        }
    }
}

/// List the attributes of a model.
#[derive(Args)]
struct List {
    /// The model file, as `metra train --method attributes` wrote it
    model: PathBuf,
}

#[derive(Serialize)]
struct Listed<'a> {
    method: &'a str,
    input_dim: usize,
    attributes: &'a [String],
}

impl List {
    fn run(&self, common: &Common) -> Result<()> {
        let model = named(&self.model)?;
        let listed = Listed {
            method: &model.origin.method,
            input_dim: Embedding::input_dim(&model.chain),
            attributes: &model.outputs,
        };
        if common.json {
            return print::json(&listed);
        }
        print::fact("method", listed.method)?;
        let numbers = format!("vectors of dimension {}", listed.input_dim);
        print::fact("vectors", &numbers)?;
        for (place, name) in listed.attributes.iter().enumerate() {
            let title = if place == 0 { "attributes" } else { "" };
            print::fact(title, name)?;
        }
        Ok(())
    }
}

/// A model of attributes and rows to score.
#[derive(Args)]
struct Scored {
    /// The model file, as `metra train --method attributes` wrote it
    model: PathBuf,
    /// The vectors (.parquet, .npy, .csv, .jsonl, …)
    data: PathBuf,
    #[command(flatten)]
    columns: Columns,
    /// Keep only rows with this value (column=value or column!=value; repeatable)
    #[arg(long = "where", value_name = "FILTER")]
    filters: Vec<Filter>,
}

impl Scored {
    /// Read model and rows, with `extra` columns, and work in their attribute space.
    fn with<R>(
        &self,
        extra: &[&str],
        common: &Common,
        work: impl FnOnce(&Loaded, &AttributeSpace<'_>) -> Result<R>,
    ) -> Result<R> {
        let model = named(&self.model)?;
        let rule = NarrowingRule::of(model.narrowing.as_ref());
        let loaded = load(
            &self.data,
            &self.columns,
            extra,
            &self.filters,
            rule,
            common,
        )?;
        let scores = embed(&model, Side::Item, &loaded, common)?;
        let space = AttributeSpace::new(scores.corpus(), &model.outputs)
            .with_context(|| self.data.display().to_string())?;
        work(&loaded, &space)
    }
}

/// A model whose numbers have names.
fn named(path: &Path) -> Result<Model> {
    let model = Model::load(path).with_context(|| path.display().to_string())?;
    ensure!(
        !model.outputs.is_empty(),
        "{}: expected a model of attributes, but its {} numbers have no names (method {}): train \
         one with --orderings and --method attributes or rank-svm; one from before names were kept \
         must be trained again",
        path.display(),
        model.chain.output_dim(),
        model.origin.method
    );
    Ok(model)
}
