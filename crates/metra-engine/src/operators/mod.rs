//! Operators of our own in an engine's plan, and how they travel.
//!
//! A plan is a scan of a table, [`FoldExec`] over it, an exchange by block, and [`MergeExec`]. The
//! engine schedules, moves and repeats; what is computed is the library's.

mod assign;
pub(crate) mod blocks;
mod codec;
mod embed;
mod fold;
mod gather;
mod merge;
mod pass;

pub(crate) use assign::{AssignExec, AssignWork, TARGET};
pub(crate) use codec::codec;
pub(crate) use embed::{EmbedWork, Written};
pub(crate) use fold::{FoldExec, Work, first_row, shard_and_first};
pub(crate) use gather::GatherExec;
pub(crate) use merge::MergeExec;
pub(crate) use pass::PassWork;

use crate::Error;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::{ExecutionPlan, Partitioning, PlanProperties};
use std::sync::Arc;

fn properties(schema: SchemaRef, partitions: usize) -> Arc<PlanProperties> {
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(schema),
        Partitioning::UnknownPartitioning(partitions),
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
}

/// An operator of one input with another one.
fn replaced<P: ExecutionPlan + 'static>(
    children: Vec<Arc<dyn ExecutionPlan>>,
    make: impl FnOnce(Arc<dyn ExecutionPlan>) -> P,
) -> Result<Arc<dyn ExecutionPlan>> {
    match <[_; 1]>::try_from(children) {
        Ok([input]) => Ok(Arc::new(make(input))),
        Err(children) => internal_err!("expected one input, but found {}", children.len()),
    }
}

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
