//! A job that does nothing but answer: one row a shard, from the process that ran it. It shows that
//! plans travel, tasks run and results come back (`metra cluster status --try`), and with a pause it
//! is a job of known length for tests.
//!
//! [`Hello`] stands above a source in memory, one row and one key a partition, because Ballista cuts
//! only sources that it knows down to a task's share.
//!
//! The codec of our operators asks `encode` (`true`: it was ours) and `decode` (`None`: it was
//! not) first.

use super::{Cluster, Identity, JobProgress};
use crate::{Error, Result};
use datafusion::arrow::array::{ArrayRef, StringArray, UInt32Array, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{downcast_value, internal_err};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::Result as EngineResult;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use futures::StreamExt;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The first bytes of the written operator.
const MARK: &[u8] = b"metra.hello.1:";

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Answer {
    /// The shard.
    pub shard: u64,
    /// The process that ran it.
    pub process: u32,
    /// Its build.
    pub build: String,
}

impl Cluster {
    /// Run the job that only answers: so many tasks, each of which lasts `pause`. Answers are in
    /// the order of shards.
    pub fn hello(
        &self,
        shards: usize,
        pause: Duration,
        watch: &dyn Fn(JobProgress),
        stop: Option<&AtomicBool>,
    ) -> Result<Vec<Answer>> {
        let plan = plan(shards, pause).map_err(|e| Error::engine("planning hello", e))?;
        let batches = self.run(plan, "hello", watch, stop)?;
        let mut answers = Vec::new();
        for batch in &batches {
            read(batch, &mut answers).map_err(|e| Error::engine("reading answers", e))?;
        }
        Ok(answers)
    }
}

/// The plan of that job.
pub fn plan(shards: usize, pause: Duration) -> EngineResult<Arc<dyn ExecutionPlan>> {
    let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new(
        "shard",
        DataType::UInt64,
        false,
    )]));
    let partitions: EngineResult<Vec<Vec<RecordBatch>>> = (0..shards as u64)
        .map(|shard| {
            let key: ArrayRef = Arc::new(UInt64Array::from(vec![shard]));
            Ok(vec![RecordBatch::try_new(schema.clone(), vec![key])?])
        })
        .collect();
    let source = MemorySourceConfig::try_new_exec(&partitions?, schema, None)?;
    Ok(Arc::new(Hello::new(source, pause)))
}

/// The operator: every row of its input is answered after a pause.
#[derive(Debug)]
pub struct Hello {
    input: Arc<dyn ExecutionPlan>,
    pause: Duration,
    properties: Arc<PlanProperties>,
}

impl Hello {
    /// Above a source of shards.
    pub fn new(input: Arc<dyn ExecutionPlan>, pause: Duration) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(answer_schema()),
            input.properties().output_partitioning().clone(),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Hello {
            input,
            pause,
            properties: Arc::new(properties),
        }
    }
}

impl DisplayAs for Hello {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hello: pause={:?}", self.pause)
    }
}

impl ExecutionPlan for Hello {
    fn name(&self) -> &str {
        "Hello"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
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
        match <[_; 1]>::try_from(children) {
            Ok([input]) => Ok(Arc::new(Hello::new(input, self.pause))),
            Err(found) => internal_err!("Hello has one input, but was given {}", found.len()),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> EngineResult<SendableRecordBatchStream> {
        let pause = self.pause;
        let shards = self.input.execute(partition, context)?;
        let answers = shards.then(move |batch| async move {
            let batch = batch?;
            tokio::time::sleep(pause * batch.num_rows() as u32).await;
            answer(&batch)
        });
        let schema = self.schema();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, answers)))
    }
}

fn answer_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("shard", DataType::UInt64, false),
        Field::new("process", DataType::UInt32, false),
        Field::new("build", DataType::Utf8, false),
    ]))
}

fn answer(shards: &RecordBatch) -> EngineResult<RecordBatch> {
    let rows = shards.num_rows();
    let columns: Vec<ArrayRef> = vec![
        Arc::clone(shards.column(0)),
        Arc::new(UInt32Array::from(vec![std::process::id(); rows])),
        Arc::new(StringArray::from(vec![Identity::here().short(); rows])),
    ];
    Ok(RecordBatch::try_new(answer_schema(), columns)?)
}

fn read(batch: &RecordBatch, answers: &mut Vec<Answer>) -> EngineResult<()> {
    if batch.num_columns() != 3 {
        return internal_err!("expected 3 columns, but found {}", batch.num_columns());
    }
    let shards = downcast_value!(batch.column(0), UInt64Array);
    let processes = downcast_value!(batch.column(1), UInt32Array);
    let builds = downcast_value!(batch.column(2), StringArray);
    answers.extend((0..batch.num_rows()).map(|row| Answer {
        shard: shards.value(row),
        process: processes.value(row),
        build: builds.value(row).to_owned(),
    }));
    Ok(())
}

/// Write the operator, if it is this one.
pub(crate) fn encode(node: &dyn ExecutionPlan, bytes: &mut Vec<u8>) -> bool {
    let Some(hello) = node.downcast_ref::<Hello>() else {
        return false;
    };
    bytes.extend_from_slice(MARK);
    bytes.extend_from_slice(&(hello.pause.as_millis() as u64).to_le_bytes());
    true
}

/// Read the operator, if it is this one.
pub(crate) fn decode(
    bytes: &[u8],
    inputs: &[Arc<dyn ExecutionPlan>],
) -> Option<EngineResult<Arc<dyn ExecutionPlan>>> {
    let pause = bytes.strip_prefix(MARK)?;
    let (Ok(pause), [input]) = (<[u8; 8]>::try_from(pause), inputs) else {
        return Some(internal_err!(
            "a damaged Hello with {} inputs",
            inputs.len()
        ));
    };
    let pause = Duration::from_millis(u64::from_le_bytes(pause));
    Some(Ok(Arc::new(Hello::new(Arc::clone(input), pause))))
}
