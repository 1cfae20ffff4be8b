//! Operators of our own in an engine's plan, and how they travel.
//!
//! A plan is a scan of a table, [`FoldExec`] over it, an exchange by block, and [`MergeExec`]. The
//! engine schedules, moves and repeats; what is computed is the library's.

pub(crate) mod blocks;
mod codec;
mod fold;
mod merge;

pub use codec::codec;
pub(crate) use fold::first_row;
pub use fold::{FoldExec, Keyed, Work};
pub use merge::MergeExec;

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
