//! What of ours travels in an engine's plan, and how.
//!
//! A plan is a scan of a table, a stage that folds over it, an exchange by block, and one that merges.
//! The engine schedules, moves and repeats; what is computed is the library's.

mod assign;
pub(crate) mod blocks;
mod codec;
mod embed;
mod fold;
mod gather;
mod merge;
mod pass;
mod position;
mod stage;

pub(crate) use assign::{AssignWork, TARGET};
pub(crate) use codec::codec;
pub(crate) use embed::{EmbedWork, Written};
pub(crate) use fold::Work;
pub(crate) use pass::PassWork;
pub(crate) use position::{Position, shard_and_first};
pub(crate) use stage::{Stage, StageExec};

use crate::Error;
use datafusion::arrow::array::{ArrayRef, RecordBatch};

/// A column of a batch by its name.
fn column<'a>(batch: &'a RecordBatch, name: &str) -> crate::Result<&'a ArrayRef> {
    let found = batch.column_by_name(name);
    found.ok_or_else(|| Error::table(name, "the column was not read"))
}

/// Wait for as many milliseconds as a variable of the environment says. Tests of faults make stages
/// last with it, so that a process can be killed in a known one.
async fn pause(variable: &str) {
    let pause = std::env::var(variable).ok();
    if let Some(pause) = pause.and_then(|pause| pause.parse().ok()) {
        tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
    }
}
