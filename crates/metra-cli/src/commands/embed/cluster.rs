//! `metra embed --cluster`: a table through a model to a folder of Parquet files.

use super::Embed;
use crate::args::{Common, Place};
use crate::cluster_args::{describe, say};
use anyhow::{Result, ensure};
use metra::model::{Embedding, Model, Side};
use metra_engine::TableCorpus;
use serde::Serialize;
use std::time::Instant;

#[derive(Serialize)]
struct Done {
    rows: u64,
    files: usize,
    bytes: u64,
    dim: usize,
    score: String,
    seconds: f64,
    output: String,
}

impl Embed {
    /// Embed where the rows lie.
    pub(crate) fn on_cluster(&self, place: &Place, common: &Common) -> Result<()> {
        let began = Instant::now();
        ensure!(
            !self.normalise,
            "--normalise is not there with --cluster: give it to the store, or embed on one machine"
        );
        let model = Model::load(&self.model)?;
        let side = self.side(&model)?;
        ensure!(
            self.code(&model, side).is_none(),
            "codes are written on one machine; with --cluster say --decoded for the vectors that they stand for"
        );
        let engine = self.cluster.engine(place, common)?;
        let address = self.data.display().to_string();
        let table = (self.cluster).open(&engine, &address, self.cluster.cut(), &self.filters)?;
        say(common, "data", &describe(&table))?;
        let vectors = self.columns.vector.as_deref();
        let corpus = TableCorpus::new(&engine, table.clone(), vectors)?;
        let output = self.output.display().to_string();
        let (rows, bytes) = engine.embed(
            &table,
            &metra_engine::Embed {
                model: &model,
                vectors: corpus.columns().vectors.clone(),
                groups: self.columns.camera.as_deref(),
                kept: self.keep.clone(),
                as_queries: side == Side::Query,
                half: self.f16,
                folder: &output,
                replace: common.force,
            },
        )?;
        let done = Done {
            rows,
            files: table.shards(),
            bytes,
            dim: model.chain.output_dim(),
            score: model.chain.space().to_string(),
            seconds: began.elapsed().as_secs_f64(),
            output,
        };
        if common.json {
            return crate::print::json(&done);
        }
        let size = done.bytes as f64 / f64::from(1 << 20);
        let fact = format!(
            "{rows} × {} in {} files, {size:.0} MB",
            done.dim, done.files
        );
        say(common, "embedded", &fact)?;
        say(common, "score", &done.score)?;
        say(common, "time", &format!("{:.1} s", done.seconds))?;
        say(common, "output", &done.output)
    }
}
