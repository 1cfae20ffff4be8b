//! Learning from a table: the library's pipeline on rows that an engine reads, with a checkpoint file.

use crate::Result;
use crate::corpus::TableCorpus;
use crate::engine::Engine;
use crate::table::ShardedTable;
use metra::internal::{Checkpoint, CheckpointFile, Rounds, encode};
use metra::{Dataset, Model, Pipeline};
use std::path::Path;

/// What to learn, and how.
pub struct Fit<'a> {
    /// Preprocessing, method and score.
    pub pipeline: &'a Pipeline,
    /// Seed of all draws.
    pub seed: u64,
    /// Rounds of a method that takes steps, and the sample that its shards share.
    pub rounds: Rounds,
    /// Column of the vectors.
    pub vectors: Option<&'a str>,
    /// Column of the classes.
    pub label: &'a str,
    /// Column of the groups.
    pub group: Option<&'a str>,
    /// File that keeps the state after every round: a run that was killed goes on from there.
    pub checkpoint: Option<&'a Path>,
}

impl Engine {
    /// Learn from all rows of a table. `after` is shown the state after every round.
    pub fn train(
        &self,
        table: ShardedTable,
        fit: &Fit<'_>,
        after: &mut dyn FnMut(&Checkpoint),
    ) -> Result<Model> {
        let mut corpus = TableCorpus::new(self, table, fit.vectors)?;
        let labels = corpus.labels(fit.label)?;
        let groups = match fit.group {
            Some(column) => Some(corpus.groups(column)?),
            None => None,
        };
        let data = Dataset::builder(&corpus).labels(labels).groups(groups);
        let data = data.build()?;
        let key = key(fit, &data)?;
        let file = fit.checkpoint.map(|path| CheckpointFile::new(path, key));
        let mut keep = |state: &Checkpoint| {
            if let Some(file) = &file {
                file.write(state)?;
            }
            after(state);
            Ok(())
        };
        let resumed: Option<Checkpoint> = match &file {
            Some(file) => file.read()?,
            None => None,
        };
        if let Some(state) = &resumed {
            tracing::info!("going on after round {} of the checkpoint", state.done);
        }
        let model = (fit.pipeline).fit_distributed(&data, fit.seed, fit.rounds, resumed, &mut keep);
        Ok(model?)
    }
}

/// What a checkpoint belongs to: all that the course of a training depends on.
fn key(fit: &Fit<'_>, data: &Dataset<'_>) -> Result<[u8; 32]> {
    let all = (
        fit.pipeline.describe(),
        (
            (fit.seed, fit.rounds.rounds, fit.rounds.common),
            data.fingerprint()?,
        ),
        data.supervision_fingerprint(),
        env!("CARGO_PKG_VERSION"),
    );
    Ok(*blake3::hash(&encode(&all)?).as_bytes())
}
