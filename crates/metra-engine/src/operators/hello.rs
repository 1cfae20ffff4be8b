//! The stage of the job that only answers: every row of its input, after a pause. The job itself is in
//! `cluster/hello.rs`.

use crate::cluster::Identity;
use datafusion::arrow::array::{ArrayRef, StringArray, UInt32Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use std::sync::Arc;
use std::time::Duration;

/// Answer every row of a partition after a pause.
pub(super) fn run(pause: Duration, shards: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let answers = shards.then(move |batch| async move {
        let batch = batch?;
        tokio::time::sleep(pause * batch.num_rows() as u32).await;
        answer(&batch)
    });
    Box::pin(RecordBatchStreamAdapter::new(answer_schema(), answers))
}

pub(super) fn answer_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("shard", DataType::UInt64, false),
        Field::new("process", DataType::UInt32, false),
        Field::new("build", DataType::Utf8, false),
    ]))
}

fn answer(shards: &RecordBatch) -> Result<RecordBatch> {
    let rows = shards.num_rows();
    let columns: Vec<ArrayRef> = vec![
        Arc::clone(shards.column(0)),
        Arc::new(UInt32Array::from(vec![std::process::id(); rows])),
        Arc::new(StringArray::from(vec![Identity::here().short(); rows])),
    ];
    Ok(RecordBatch::try_new(answer_schema(), columns)?)
}
