//! `metra train --cluster`: learn from all rows of a table, by passes or by rounds.

use super::Train;
use crate::args::{Common, Place};
use crate::cluster_args::{describe, say};
use anyhow::{Result, bail, ensure};
use metra::Pipeline;
use metra::internal::Rounds;
use metra_engine::{Cut, Fit};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;

#[derive(Serialize)]
struct ClusterTraining {
    rows: u64,
    shards: usize,
    method: String,
    rounds: Option<f64>,
    losses: Vec<f64>,
    seconds: f64,
    model: PathBuf,
}

impl Train {
    /// Learn where the rows lie.
    pub(crate) fn on_cluster(&self, place: &Place, common: &Common) -> Result<()> {
        let began = Instant::now();
        let Some(data) = &self.subject.data else {
            bail!("--cluster learns from a table with --label: name a Parquet file or folder");
        };
        let Some(label) = &self.subject.columns.label else {
            bail!("--cluster learns from classes: name their column with --label");
        };
        self.subject.columns.refuse_label_sets()?;
        let Some(output) = &self.output else {
            bail!("name the model file with -o");
        };
        ensure!(
            self.method.grid.is_empty() && self.report.is_none() && !self.refit,
            "--tune, --refit and --report hold parts of the data out, which is done on one machine: \
             choose settings there on a sample, and give them here with --set"
        );
        ensure!(
            self.from.is_none(),
            "--from starts on one machine: leave it out with --cluster"
        );
        let engine = self.cluster.engine(place, common)?;
        let cut = match self.cluster.shard_rows {
            Some(rows) => Cut::Rows(rows),
            // Training shards are files of whole classes.
            None => Cut::Files,
        };
        let address = data.display().to_string();
        let table = self
            .cluster
            .open(&engine, &address, cut, &self.subject.filters)?;
        let (rows, shards) = (table.len(), table.shards());
        let vectors = self.subject.columns.vector.as_deref();
        say(common, "data", &describe(&table))?;
        let mut settings = self.method.settings();
        let entry = self.method.entry(false)?;
        let dim = self.method.prepare.most_dim(engine.dim(&table, vectors)?);
        entry.settle(&mut settings, &[], dim)?;
        let mut pipeline = Pipeline::named(entry.name, &settings, &self.method.prepare)?;
        if let Some(space) = self.method.score.first() {
            pipeline = pipeline.score(*space);
        }
        let fit = Fit {
            pipeline: &pipeline,
            seed: self.splitting.seed,
            rounds: Rounds {
                rounds: self.rounds,
                common: self.common,
            },
            vectors,
            label,
            group: self.subject.columns.camera.as_deref(),
            checkpoint: self.checkpoint.as_deref(),
        };
        let mut losses = Vec::new();
        let rounds = self.rounds;
        let model = engine.train(table, &fit, &mut |state| {
            losses.clone_from(&state.losses);
            let loss = state.losses.last().copied().unwrap_or(f64::NAN);
            tracing::info!("round {} of {rounds}: loss {loss:.4}", state.done);
        })?;
        model.save(output)?;
        let done = ClusterTraining {
            rows,
            shards,
            method: entry.name.to_owned(),
            rounds: model.origin.facts.get("rounds").copied(),
            losses,
            seconds: began.elapsed().as_secs_f64(),
            model: output.clone(),
        };
        if common.json {
            return crate::print::json(&done);
        }
        if let Some(rounds) = done.rounds {
            say(common, "rounds", &rounds.to_string())?;
        }
        say(common, "time", &format!("{:.1} s", done.seconds))?;
        say(
            common,
            "judged",
            "not yet: nothing was held out; `metra eval --cluster` judges on other rows",
        )?;
        say(common, "model", &output.display().to_string())
    }
}
