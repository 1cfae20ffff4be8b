//! The operator that says of every row which training shard it belongs to, and its place there.
//!
//! A row's shard is one of those that its class was dealt to, usually one alone. The place is a random number keyed by the row's own number,
//! so that a shard's order is a shuffle that depends on the seed alone.

use super::Position;
use crate::columns::{Names, column};
use crate::error::{from_engine, within};
use crate::payload::Payload;
use crate::table::{FIRST, SHARD};
use crate::{Error, Result};
use datafusion::arrow::array::{RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::TryStreamExt;
use metra::internal::Stream;
use metra::internal::decode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Column with the number of a row's training shard.
pub(crate) const TARGET: &str = "__metra_target";
/// Column with the place of a row in it.
pub(crate) const PLACE: &str = "__metra_place";

/// The shards of every class, as a plan encodes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AssignWork {
    /// Column of the classes.
    pub(crate) classes: String,
    /// Names of the classes, and the shards among which the rows of each are spread:
    /// `(Vec<String>, Vec<Vec<u64>>)`.
    pub(crate) shards: Payload,
    /// Seed of the shuffle.
    pub(crate) seed: u64,
}

/// The columns of a scan without those of its shards, with those of the training shards.
pub(super) fn schema(scanned: &Schema) -> SchemaRef {
    let fields = scanned.fields().iter();
    let fields = fields.filter(|field| ![SHARD, FIRST].contains(&field.name().as_str()));
    let mut fields: Vec<Arc<Field>> = fields.cloned().collect();
    fields.push(Arc::new(Field::new(TARGET, DataType::UInt64, false)));
    fields.push(Arc::new(Field::new(PLACE, DataType::UInt64, false)));
    Arc::new(Schema::new(fields))
}

/// Add shard and place to every row of a partition.
pub(super) fn run(
    work: AssignWork,
    schema: SchemaRef,
    input: SendableRecordBatchStream,
    runtime: Arc<RuntimeEnv>,
) -> SendableRecordBatchStream {
    let assigning = AssignStream {
        input,
        runtime,
        work,
        schema: schema.clone(),
        known: None,
        position: Position::default(),
        keys: Vec::new(),
    };
    let rows = futures::stream::try_unfold(assigning, |mut assigning| async move {
        let batch = assigning.next().await.map_err(within)?;
        Ok::<_, DataFusionError>(batch.map(|batch| (batch, assigning)))
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

struct AssignStream {
    input: SendableRecordBatchStream,
    runtime: Arc<RuntimeEnv>,
    work: AssignWork,
    schema: SchemaRef,
    known: Option<(Names, Vec<Vec<u64>>)>,
    position: Position,
    keys: Vec<u32>,
}

impl AssignStream {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        if self.known.is_none() {
            let bytes = self.work.shards.unpack(&self.runtime).await?;
            let (names, shards): (Vec<String>, Vec<Vec<u64>>) = decode(&bytes)?;
            self.known = Some((Names::new(&self.work.classes, &names), shards));
        }
        loop {
            let next = self.input.try_next().await;
            match next.map_err(|e| from_engine("reading rows", e))? {
                Some(batch) if batch.num_rows() == 0 => {}
                Some(batch) => return self.assign(&batch).map(Some),
                None => return Ok(None),
            }
        }
    }

    fn assign(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let Some((names, shards)) = &self.known else {
            return Err(Error::engine("assigning rows", "there are no settings"));
        };
        let row = self.position.row_of(batch)?;
        names.keys(column(batch, &self.work.classes)?, row, &mut self.keys)?;
        let draw = |row: u64| Stream::new(self.work.seed, "place in a shard", row);
        let rows = row..row + batch.num_rows() as u64;
        let targets = rows.clone().zip(&self.keys).map(|(row, key)| {
            let (shards, mut random) = (&shards[*key as usize], draw(row));
            random.below(u64::MAX);
            shards[random.below(shards.len() as u64) as usize]
        });
        let places = rows.map(|row| draw(row).below(u64::MAX));
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for field in self.schema.fields() {
            columns.push(match field.name().as_str() {
                TARGET => Arc::new(UInt64Array::from_iter_values(targets.clone())),
                PLACE => Arc::new(UInt64Array::from_iter_values(places.clone())),
                name => column(batch, name)?.clone(),
            });
        }
        let assigned = RecordBatch::try_new(self.schema.clone(), columns);
        assigned.map_err(|e| Error::engine("assigning rows", e))
    }
}
