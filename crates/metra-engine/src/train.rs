//! Learning from a table: the library's pipeline on rows that an engine reads, with a checkpoint file.

use crate::corpus::TableCorpus;
use crate::engine::Engine;
use crate::table::ShardedTable;
use crate::{Error, Result};
use metra::internal::{AtomicFile, Checkpoint, Rounds, decode, encode};
use metra::{Dataset, Model, Pipeline};
use serde::{Deserialize, Serialize};
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
        let file = CheckpointFile {
            path: fit.checkpoint,
            key: key(fit, &data)?,
        };
        let mut keep = |state: &Checkpoint| {
            file.write(state)?;
            after(state);
            Ok(())
        };
        let resumed = file.read()?;
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
        data.supervision().fingerprint(),
        env!("CARGO_PKG_VERSION"),
    );
    Ok(*blake3::hash(&encode(&all)?).as_bytes())
}

/// Keeps the state of a training in a file.
struct CheckpointFile<'a> {
    path: Option<&'a Path>,
    key: [u8; 32],
}

#[derive(Serialize, Deserialize)]
struct KeyedCheckpoint {
    key: [u8; 32],
    state: Checkpoint,
}

impl CheckpointFile<'_> {
    fn read(&self) -> Result<Option<Checkpoint>> {
        let Some(file) = self.path else {
            return Ok(None);
        };
        let wrong = |problem: &str| Error::table(file.display().to_string(), problem);
        let bytes = match std::fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(&error.to_string())),
        };
        let whole = bytes.split_last_chunk::<32>();
        let whole = whole.filter(|(kept, digest)| blake3::hash(kept).as_bytes() == *digest);
        let (kept, _) = whole.ok_or_else(|| wrong("is no checkpoint, or a damaged one"))?;
        let kept: KeyedCheckpoint = decode(kept)?;
        if kept.key != self.key {
            return Err(wrong(
                "is the checkpoint of another training (data, settings, seed or version differ): \
                 remove it, or name another file",
            ));
        }
        tracing::info!(
            "going on after round {} of {}",
            kept.state.done,
            file.display()
        );
        Ok(Some(kept.state))
    }

    /// The file is replaced as a whole.
    fn write(&self, state: &Checkpoint) -> metra::Result<()> {
        let Some(file) = self.path else {
            return Ok(());
        };
        let mut bytes = encode(&KeyedCheckpoint {
            key: self.key,
            state: state.clone(),
        })?;
        let digest = blake3::hash(&bytes);
        bytes.extend_from_slice(digest.as_bytes());
        AtomicFile::write_all(file, &bytes)
    }
}
