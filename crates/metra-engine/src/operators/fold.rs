//! The operator that runs a pass of the library over the shards of its input.
//!
//! It carries the pass by name, with settings by value or by address, and knows nothing of any
//! particular one. A partition may hold several shards one after the other; each is folded alone
//! and leaves as blocks as soon as it ends.

use super::blocks::{of_shard, schema};
use super::{properties, replaced};
use crate::carried::Carried;
use crate::columns::{Names, Vectors};
use crate::error::within;
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
use metra::data::{KeyedBy, SCAN_ROWS};
use metra::execute::decode;
use metra::passes::{Incoming, Ready, Started};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// A pass as it travels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Name of the pass.
    pub name: String,
    /// Its settings.
    pub spec: Carried,
    /// What rows are keyed by.
    pub keys: Keyed,
    /// Models whose preparation comes first.
    pub prepare: Vec<Carried>,
    /// Column of the vectors, and their length.
    pub vectors: (String, u64),
    /// Column of the classes, with their names.
    pub classes: Option<(String, Carried)>,
    /// Column of the groups, with their names.
    pub groups: Option<(String, Carried)>,
}

/// [`KeyedBy`] as it travels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Keyed {
    /// There are no keys.
    Nothing,
    /// By class.
    Class,
    /// By group.
    Group,
}

impl From<KeyedBy> for Keyed {
    fn from(by: KeyedBy) -> Self {
        match by {
            KeyedBy::Nothing => Keyed::Nothing,
            KeyedBy::Class => Keyed::Class,
            KeyedBy::Group => Keyed::Group,
        }
    }
}

impl From<Keyed> for KeyedBy {
    fn from(by: Keyed) -> Self {
        match by {
            Keyed::Nothing => KeyedBy::Nothing,
            Keyed::Class => KeyedBy::Class,
            Keyed::Group => KeyedBy::Group,
        }
    }
}

/// Folds a pass over the shards of its input.
#[derive(Debug)]
pub struct FoldExec {
    input: Arc<dyn ExecutionPlan>,
    work: Arc<Work>,
    properties: Arc<PlanProperties>,
}

impl FoldExec {
    /// Run `work` over a scan of a table.
    pub fn new(input: Arc<dyn ExecutionPlan>, work: Arc<Work>) -> Self {
        let partitions = input.output_partitioning().partition_count();
        FoldExec {
            properties: properties(schema(), partitions),
            input,
            work,
        }
    }

    /// What it runs.
    pub fn work(&self) -> &Work {
        &self.work
    }
}

impl DisplayAs for FoldExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FoldExec: {}", self.work.name)
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
            equipped: None,
            open: None,
            done: VecDeque::new(),
            is_over: false,
        };
        let blocks = futures::stream::try_unfold(folding, |mut folding| async move {
            let batch = folding.next().await?;
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
    equipped: Option<Equipped>,
    open: Option<Open>,
    done: VecDeque<RecordBatch>,
    is_over: bool,
}

/// The pass with its settings read, and buffers.
struct Equipped {
    ready: Arc<Ready>,
    classes: Option<Names>,
    groups: Option<Names>,
    vectors: Vectors,
    class_keys: Vec<u32>,
    group_keys: Vec<u32>,
}

/// The shard that is being read.
struct Open {
    shard: u64,
    /// First row of the piece, and rows of it that have been seen.
    piece: (u64, u64),
    started: Started,
}

impl Folding {
    async fn next(&mut self) -> EngineResult<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.done.pop_front() {
                return Ok(Some(batch));
            }
            if self.is_over {
                return Ok(None);
            }
            if self.equipped.is_none() {
                let equipped = Equipped::new(&self.work, &self.runtime).await;
                self.equipped = Some(equipped.map_err(within)?);
            }
            match self.input.try_next().await? {
                Some(batch) => self.see(&batch).map_err(within)?,
                None => {
                    self.is_over = true;
                    self.close().map_err(within)?;
                }
            }
        }
    }

    fn see(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let (shard, first) = (constant(batch, SHARD)?, constant(batch, FIRST)?);
        if self.open.as_ref().is_some_and(|open| open.shard != shard) {
            self.close()?;
        }
        let Some(equipped) = &mut self.equipped else {
            return Err(Error::engine("folding a shard", "there are no settings"));
        };
        let open = match &mut self.open {
            Some(open) => open,
            none => none.insert(Open {
                shard,
                piece: (first, 0),
                started: equipped.ready.start(shard)?,
            }),
        };
        if open.piece.0 != first {
            open.piece = (first, 0);
        }
        let row = first + open.piece.1;
        open.piece.1 += batch.num_rows() as u64;
        equipped.update(&self.work, &mut open.started, batch, row)
    }

    fn close(&mut self) -> Result<()> {
        if let Some(open) = self.open.take() {
            let blocks = of_shard(open.shard, open.started.close()?);
            self.done.extend(blocks.map_err(|e| Error::engine("writing a result", e))?);
        }
        Ok(())
    }
}

impl Equipped {
    async fn new(work: &Work, runtime: &RuntimeEnv) -> Result<Self> {
        let spec = work.spec.unpack(runtime).await?;
        let mut prepare = Vec::with_capacity(work.prepare.len());
        for model in &work.prepare {
            prepare.push(model.unpack(runtime).await?.to_vec());
        }
        let ready = Ready::new(&work.name, &spec, work.keys.into(), &prepare)?;
        let names = async |wanted: bool, of: &Option<(String, Carried)>| match of {
            Some((column, names)) if wanted => {
                let names: Vec<String> = decode(&*names.unpack(runtime).await?)?;
                Ok::<_, Error>(Some(Names::new(column, &names)))
            }
            _ => Ok(None),
        };
        Ok(Equipped {
            classes: names(ready.needs_classes(), &work.classes).await?,
            groups: names(ready.needs_groups(), &work.groups).await?,
            ready: Arc::new(ready),
            vectors: Vectors::default(),
            class_keys: Vec::new(),
            group_keys: Vec::new(),
        })
    }

    fn update(
        &mut self,
        work: &Work,
        started: &mut Started,
        batch: &RecordBatch,
        first: u64,
    ) -> Result<()> {
        let column = |name: &str| {
            let found = batch.column_by_name(name);
            found.ok_or_else(|| Error::table(name, "the column was not read"))
        };
        if let (Some(names), Some((name, _))) = (&self.classes, &work.classes) {
            names.keys(column(name)?, first, &mut self.class_keys)?;
        }
        if let (Some(names), Some((name, _))) = (&self.groups, &work.groups) {
            names.keys(column(name)?, first, &mut self.group_keys)?;
        }
        let (name, dim) = &work.vectors;
        let rows = (self.vectors).rows(column(name)?, *dim as usize, first)?;
        let classes = self.classes.as_ref().map(|_| self.class_keys.as_slice());
        let groups = self.groups.as_ref().map(|_| self.group_keys.as_slice());
        // As many rows at once as a scan of the library shows.
        for start in (0..rows.len()).step_by(SCAN_ROWS) {
            let end = rows.len().min(start + SCAN_ROWS);
            started.update(&Incoming {
                first: first + start as u64,
                rows: rows.slice(start, end),
                classes: classes.map(|keys| &keys[start..end]),
                groups: groups.map(|keys| &keys[start..end]),
            })?;
        }
        Ok(())
    }
}

/// Number of the first row of the piece that a batch belongs to.
pub(crate) fn first_row(batch: &RecordBatch) -> Result<u64> {
    constant(batch, FIRST)
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
