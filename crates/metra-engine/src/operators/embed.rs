//! Rows embedded by a model and written to Parquet, one file per shard.
//!
//! A file has the name of its shard and appears as a whole, so that a task that is run again after a
//! loss writes the same bytes to the same place, and nothing is there twice.

use super::shard_file::{ShardFile, part_name, writer};
use crate::columns::{Names, Vectors, column};
use crate::payload::Payload;
use crate::stores::Place;
use crate::{Error, Result};
use datafusion::arrow::array::{ArrayRef, FixedSizeListArray, RecordBatch};
use datafusion::arrow::array::{Float16Array, Float32Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::parquet::arrow::ArrowWriter;
use half::f16;
use metra::data::Batch;
use metra::internal::PartialResult;
use metra::internal::encode;
use metra::linalg::RowBuf;
use metra::model::{Embedding as _, Model};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Bytes of vectors in a row group.
const ROW_GROUP_BYTES: usize = 32 << 20;

/// What to embed, as a plan encodes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct EmbedWork {
    /// The model's bytes.
    pub(crate) model: Payload,
    /// Column of the vectors, and their length.
    pub(crate) vectors: (String, u64),
    /// Column of the groups, where the model wants one.
    pub(crate) groups: Option<String>,
    /// TableColumns that are written as they are.
    pub(crate) kept: Vec<String>,
    /// Whether rows are queries.
    pub(crate) as_queries: bool,
    /// Whether numbers are written as f16.
    pub(crate) half: bool,
    /// SchedulerAddress of the folder.
    pub(crate) folder: String,
}

/// The work with its model read, and buffers.
pub(crate) struct EmbedTool {
    work: EmbedWork,
    model: Model,
    groups: Option<Names>,
    folder: Place,
    vectors: Vectors,
    keys: Vec<u32>,
    embedded: RowBuf,
}

/// A shard whose file is being written.
pub(crate) struct Embedding {
    shard: u64,
    place: Place,
    writer: Option<ArrowWriter<Vec<u8>>>,
    rows: u64,
}

impl EmbedTool {
    pub(crate) async fn new(work: &EmbedWork, runtime: &RuntimeEnv) -> Result<Self> {
        let model = Model::from_bytes(&work.model.unpack(runtime).await?)?;
        let groups = match (&work.groups, model.chain.group_names()) {
            (Some(column), Some(names)) => Some(Names::new(column, names)),
            _ => None,
        };
        Ok(EmbedTool {
            folder: Place::parse(&work.folder)?,
            work: work.clone(),
            model,
            groups,
            vectors: Vectors::default(),
            keys: Vec::new(),
            embedded: RowBuf::empty(1),
        })
    }

    pub(crate) fn start(&self, shard: u64) -> Result<Embedding> {
        Ok(Embedding {
            shard,
            place: self.folder.join(&part_name(shard)),
            writer: None,
            rows: 0,
        })
    }

    pub(crate) fn update(
        &mut self,
        embedding: &mut Embedding,
        batch: &RecordBatch,
        first: u64,
    ) -> Result<()> {
        let (name, dim) = &self.work.vectors;
        let rows = (self.vectors).rows(column(batch, name)?, *dim as usize, first)?;
        let groups = match (&self.groups, &self.work.groups) {
            (Some(names), Some(column_name)) => {
                names.keys(column(batch, column_name)?, first, &mut self.keys)?;
                Batch::with_groups(rows, &self.keys)?
            }
            _ => Batch::new(rows),
        };
        let chain = &self.model.chain;
        match self.work.as_queries {
            true => chain.embed_queries(first, &groups, &mut self.embedded)?,
            false => chain.embed_items(first, &groups, &mut self.embedded)?,
        }
        let mut columns = vec![self.lists()?];
        for kept in &self.work.kept {
            columns.push((kept.clone(), column(batch, kept)?.clone()));
        }
        let fields = columns.iter().map(|(name, array)| {
            let nullable = array.is_nullable() || self.work.kept.contains(name);
            Field::new(name, array.data_type().clone(), nullable)
        });
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        let failed = |e: &dyn std::fmt::Display| Error::engine("writing embedded rows", e);
        let out = RecordBatch::try_new(schema.clone(), arrays).map_err(|e| failed(&e))?;
        embedding.rows += out.num_rows() as u64;
        let writer = match &mut embedding.writer {
            Some(writer) => writer,
            none => {
                let rows = ROW_GROUP_BYTES / (4 * self.embedded.dim().max(1));
                none.insert(writer(schema, rows.max(1024)).map_err(|e| failed(&e))?)
            }
        };
        writer.write(&out).map_err(|e| failed(&e))
    }

    /// The embedded rows as a column of the vectors' name.
    fn lists(&self) -> Result<(String, ArrayRef)> {
        let values = self.embedded.values();
        let (data_type, values): (_, ArrayRef) = match self.work.half {
            false => (
                DataType::Float32,
                Arc::new(Float32Array::from(values.to_vec())),
            ),
            true => (
                DataType::Float16,
                Arc::new(Float16Array::from_iter_values(
                    values.iter().map(|v| f16::from_f32(*v)),
                )),
            ),
        };
        let item = Arc::new(Field::new("item", data_type, false));
        let dim = i32::try_from(self.embedded.dim()).unwrap_or(i32::MAX);
        let lists = FixedSizeListArray::try_new(item, dim, values, None);
        let lists = lists.map_err(|e| Error::engine("writing embedded rows", e))?;
        Ok((self.work.vectors.0.clone(), Arc::new(lists)))
    }
}

impl Embedding {
    pub(crate) async fn close(self, runtime: &RuntimeEnv) -> Result<Vec<PartialResult>> {
        let Some(writer) = self.writer else {
            return Ok(vec![PartialResult::Bytes(Vec::new())]);
        };
        let bytes = writer.into_inner();
        let bytes = bytes.map_err(|e| Error::engine("writing embedded rows", e))?;
        let written = ShardFile {
            rows: self.rows,
            bytes: bytes.len() as u64,
        };
        self.place.write(runtime, bytes).await?;
        Ok(vec![PartialResult::Bytes(vec![(
            self.shard,
            0,
            encode(&written)?,
        )])])
    }
}
