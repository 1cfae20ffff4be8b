//! `metra shorten`: the first dimensions of a model's map as a model.

use crate::args::Common;
use crate::print;
use anyhow::Result;
use clap::Args;
use metra::model::{Embedding, Model};
use serde::Serialize;
use std::path::PathBuf;

/// Write a model that maps to the first dimensions alone.
///
/// For maps whose first dimensions serve by themselves: principal directions, vectors of an embedding model that was
/// trained so, and what was trained with --set nested=N. Evaluate it as any model.
#[derive(Args)]
pub(crate) struct Shorten {
    /// The model file
    model: PathBuf,
    /// How many dimensions
    #[arg(long, value_name = "N")]
    dimensions: usize,
    /// Model file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Serialize)]
struct Shortened<'a> {
    dimensions: usize,
    of: usize,
    item_bytes: usize,
    output: &'a PathBuf,
}

impl Shorten {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        let model = Model::load(&self.model)?;
        let short = model.shortened(self.dimensions)?;
        short.save(&self.output)?;
        let done = Shortened {
            dimensions: short.chain.output_dim(),
            of: model.chain.output_dim(),
            item_bytes: short.chain.item_bytes(),
            output: &self.output,
        };
        if common.json {
            return print::json(&done);
        }
        print::line(&format!(
            "{}: {} of {} dimensions, {} bytes per item",
            done.output.display(),
            done.dimensions,
            done.of,
            done.item_bytes
        ))
    }
}
