//! A job that does nothing but answer: one row per shard, from the process that ran it. It shows that
//! plans travel, tasks run and results come back (`metra cluster status --try`), and with a pause it
//! is a job of known length for tests.
//!
//! Its stage stands above a source in memory, one row and one key a partition, because Ballista cuts
//! only sources that it knows down to a task's share.

use super::{Cluster, JobProgress};
use crate::operators::{Stage, StageExec};
use crate::{Error, Result};
use datafusion::arrow::array::{ArrayRef, StringArray, UInt32Array, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{downcast_value, internal_err};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::Result as EngineResult;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HandshakeAnswer {
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
    ) -> Result<Vec<HandshakeAnswer>> {
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
    Ok(Arc::new(StageExec::new(
        source,
        Arc::new(Stage::Hello(pause)),
    )))
}

fn read(batch: &RecordBatch, answers: &mut Vec<HandshakeAnswer>) -> EngineResult<()> {
    if batch.num_columns() != 3 {
        return internal_err!("expected 3 columns, but found {}", batch.num_columns());
    }
    let shards = downcast_value!(batch.column(0), UInt64Array);
    let processes = downcast_value!(batch.column(1), UInt32Array);
    let builds = downcast_value!(batch.column(2), StringArray);
    answers.extend((0..batch.num_rows()).map(|row| HandshakeAnswer {
        shard: shards.value(row),
        process: processes.value(row),
        build: builds.value(row).to_owned(),
    }));
    Ok(())
}
