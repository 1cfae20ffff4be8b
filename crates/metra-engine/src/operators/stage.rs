//! The one operator of this crate in an engine's plan: a stage of work over the partitions of its input.
//!
//! What an engine wants to know of an operator is the same for all stages; what a stage does with the
//! batches of a partition is in the file of its name. A stage is plain data, so that writing it is all
//! that the codec has to do.

use super::{assign, blocks, fold, gather, hello, merge};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The work on the batches of a partition, as a plan encodes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Stage {
    /// Some work on every shard.
    Fold(fold::Work),
    /// Blocks of results merged; partitions must keep blocks that belong together.
    Merge,
    /// Training shard and place of every row.
    Assign(assign::AssignWork),
    /// Rows of training shards written to a folder; partitions must keep those of a shard together.
    Gather(String),
    /// An answer after a pause, for every row.
    Hello(Duration),
}

impl Stage {
    fn schema(&self, input: &SchemaRef) -> SchemaRef {
        match self {
            Stage::Fold(_) | Stage::Merge | Stage::Gather(_) => blocks::schema(),
            Stage::Assign(_) => assign::schema(input),
            Stage::Hello(_) => hello::answer_schema(),
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stage::Fold(work) => write!(f, "fold {}", work.name()),
            Stage::Merge => f.write_str("merge blocks in the order of shards"),
            Stage::Assign(work) => write!(f, "assign by {}", work.classes),
            Stage::Gather(folder) => write!(f, "gather to {folder}"),
            Stage::Hello(pause) => write!(f, "hello after {pause:?}"),
        }
    }
}

/// A stage over an input.
#[derive(Debug)]
pub(crate) struct StageExec {
    input: Arc<dyn ExecutionPlan>,
    stage: Arc<Stage>,
    properties: Arc<PlanProperties>,
}

impl StageExec {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, stage: Arc<Stage>) -> Self {
        let partitions = input.output_partitioning().partition_count();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(stage.schema(&input.schema())),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        StageExec {
            input,
            stage,
            properties: Arc::new(properties),
        }
    }

    pub(crate) fn stage(&self) -> &Stage {
        &self.stage
    }
}

impl DisplayAs for StageExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StageExec: {}", self.stage)
    }
}

impl ExecutionPlan for StageExec {
    fn name(&self) -> &str {
        "StageExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        // Shards must not be torn apart.
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 1]>::try_from(children) {
            Ok([input]) => Ok(Arc::new(StageExec::new(input, self.stage.clone()))),
            Err(children) => internal_err!("expected one input, but found {}", children.len()),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let runtime = context.runtime_env();
        let input = self.input.execute(partition, context)?;
        Ok(match &*self.stage {
            Stage::Fold(work) => fold::run(work.clone(), input, runtime),
            Stage::Merge => merge::run(input),
            Stage::Assign(work) => assign::run(work.clone(), self.schema(), input, runtime),
            Stage::Gather(folder) => gather::run(folder.clone(), input, runtime),
            Stage::Hello(pause) => hello::run(*pause, input),
        })
    }
}
