//! The operator that does some work on every shard of its input and says what came of it.
//!
//! A partition may hold several shards one after the other; each is folded alone
//! and leaves as blocks as soon as it ends.

use super::blocks::{of_shard, schema};
use super::embed::{EmbedTool, EmbedWork, Embedding};
use super::pass::{PassTool, PassWork};
use super::{pause, properties, replaced};
use crate::error::{from_engine, within};
use crate::table::{FIRST, SHARD};
use crate::{Error, Result};
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::TryStreamExt;
use metra::passes::Started;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// What is done with the rows of every shard, as it travels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Work {
    /// A pass of the library.
    Pass(PassWork),
    /// The rows embedded, written to a file a shard.
    Embed(EmbedWork),
}

impl Work {
    fn name(&self) -> &str {
        match self {
            Work::Pass(pass) => &pass.name,
            Work::Embed(_) => "embedded rows",
        }
    }
}

/// Folds a pass over the shards of its input.
#[derive(Debug)]
pub(crate) struct FoldExec {
    input: Arc<dyn ExecutionPlan>,
    work: Arc<Work>,
    properties: Arc<PlanProperties>,
}

impl FoldExec {
    /// Run `work` over a scan of a table.
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, work: Arc<Work>) -> Self {
        let partitions = input.output_partitioning().partition_count();
        FoldExec {
            properties: properties(schema(), partitions),
            input,
            work,
        }
    }

    /// What it runs.
    pub(crate) fn work(&self) -> &Work {
        &self.work
    }
}

impl DisplayAs for FoldExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FoldExec: {}", self.work.name())
    }
}

impl ExecutionPlan for FoldExec {
    fn name(&self) -> &str {
        "FoldExec"
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
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> EngineResult<TreeNodeRecursion>,
    ) -> EngineResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        replaced(children, |input| FoldExec::new(input, self.work.clone()))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> EngineResult<SendableRecordBatchStream> {
        let folding = Folding {
            input: self.input.execute(partition, context.clone())?,
            work: self.work.clone(),
            runtime: context.runtime_env(),
            tool: None,
            open: None,
            done: VecDeque::new(),
            is_over: false,
        };
        let blocks = futures::stream::try_unfold(folding, |mut folding| async move {
            let batch = folding.next().await.map_err(within)?;
            Ok::<_, DataFusionError>(batch.map(|batch| (batch, folding)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema(), blocks)))
    }
}

/// One partition on its way.
struct Folding {
    input: SendableRecordBatchStream,
    work: Arc<Work>,
    runtime: Arc<RuntimeEnv>,
    tool: Option<Tool>,
    open: Option<Open>,
    done: VecDeque<RecordBatch>,
    is_over: bool,
}

/// The work with its settings read.
enum Tool {
    Pass(Box<PassTool>),
    Embed(Box<EmbedTool>),
}

/// The shard that is being read.
struct Open {
    shard: u64,
    /// First row of the piece, and rows of it that have been seen.
    piece: (u64, u64),
    folded: Folded,
}

/// What is known of it so far.
enum Folded {
    Pass(Started),
    Embed(Box<Embedding>),
}

impl Folding {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.done.pop_front() {
                return Ok(Some(batch));
            }
            if self.is_over {
                return Ok(None);
            }
            if self.tool.is_none() {
                self.tool = Some(match &*self.work {
                    Work::Pass(work) => {
                        Tool::Pass(Box::new(PassTool::new(work, &self.runtime).await?))
                    }
                    Work::Embed(work) => {
                        Tool::Embed(Box::new(EmbedTool::new(work, &self.runtime).await?))
                    }
                });
            }
            let next = self.input.try_next().await;
            match next.map_err(|e| from_engine("reading rows", e))? {
                Some(batch) => {
                    self.see(&batch).await?;
                    let open = self.open.as_ref().map(|open| &open.folded);
                    if matches!(open, Some(Folded::Pass(started)) if started.is_done()) {
                        // Nothing that follows is asked for, so that it is not read.
                        self.is_over = true;
                        self.close().await?;
                    }
                }
                None => {
                    self.is_over = true;
                    self.close().await?;
                }
            }
        }
    }

    async fn see(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let (shard, first) = shard_and_first(batch)?;
        if self.open.as_ref().is_some_and(|open| open.shard != shard) {
            self.close().await?;
        }
        let Some(tool) = &mut self.tool else {
            return Err(Error::engine("folding a shard", "there are no settings"));
        };
        let open = match &mut self.open {
            Some(open) => open,
            none => none.insert(Open {
                shard,
                piece: (first, 0),
                folded: match tool {
                    Tool::Pass(pass) => Folded::Pass(pass.start(shard)?),
                    Tool::Embed(embed) => Folded::Embed(Box::new(embed.start(shard)?)),
                },
            }),
        };
        if open.piece.0 != first {
            open.piece = (first, 0);
        }
        let row = first + open.piece.1;
        open.piece.1 += batch.num_rows() as u64;
        match (tool, &mut open.folded) {
            (Tool::Pass(pass), Folded::Pass(started)) => pass.update(started, batch, row),
            (Tool::Embed(embed), Folded::Embed(embedding)) => embed.update(embedding, batch, row),
            _ => Err(Error::engine("folding a shard", "the work has changed")),
        }
    }

    async fn close(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        pause("METRA_TEST_PAUSE_FOLD").await;
        let parts = match open.folded {
            Folded::Pass(started) => started.close()?,
            Folded::Embed(embedding) => embedding.close(&self.runtime).await?,
        };
        let blocks = of_shard(open.shard, parts);
        (self.done).extend(blocks.map_err(|e| Error::engine("writing a result", e))?);
        Ok(())
    }
}

/// Number of the first row of the piece that a batch belongs to.
pub(crate) fn first_row(batch: &RecordBatch) -> Result<u64> {
    constant(batch, FIRST)
}

/// Shard of a batch, and number of the first row of its piece.
pub(crate) fn shard_and_first(batch: &RecordBatch) -> Result<(u64, u64)> {
    Ok((constant(batch, SHARD)?, constant(batch, FIRST)?))
}

/// The value of a column that is the same in all rows of a batch.
fn constant(batch: &RecordBatch, name: &str) -> Result<u64> {
    let column = batch.column_by_name(name);
    let column = column.and_then(|column| column.as_primitive_opt::<UInt64Type>());
    let value = column.filter(|column| !column.is_empty() && column.null_count() == 0);
    value
        .map(|column| column.value(0))
        .ok_or_else(|| Error::table(name, "expected the number of a shard or row"))
}
