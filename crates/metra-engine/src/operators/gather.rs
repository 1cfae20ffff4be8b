//! The operator that gathers the rows of training shards and writes each to a file.
//!
//! Rows arrive in any order and are put into that of their places, so that a file has the same bytes
//! whatever order they arrived in. A shard must fit into memory: it is what a task of a round works on.

use super::assign::{PLACE, TARGET};
use super::blocks::{of_shard, schema};
use super::shard_file::{ShardFile, shard_name, writer};
use crate::columns::column;
use crate::error::{from_engine, within};
use crate::stores::Place;
use crate::{Error, Result};
use datafusion::arrow::array::{AsArray, RecordBatch, UInt64Array};
use datafusion::arrow::compute::{concat_batches, sort_to_indices, take_record_batch};
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt};
use metra::internal::PartialResult;
use metra::internal::encode;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows in a row group.
const ROW_GROUP: usize = 1 << 16;

/// Gather the rows of a partition and write those of every training shard to a file of a folder.
pub(super) fn run(
    folder: String,
    input: SendableRecordBatchStream,
    runtime: Arc<RuntimeEnv>,
) -> SendableRecordBatchStream {
    let written = futures::stream::once(async move {
        let written = gather(input, &folder, &runtime).await.map_err(within);
        written.map(|batches| futures::stream::iter(batches).map(Ok))
    });
    let written = written.try_flatten();
    Box::pin(RecordBatchStreamAdapter::new(schema(), written))
}

async fn gather(
    mut input: SendableRecordBatchStream,
    folder: &str,
    runtime: &RuntimeEnv,
) -> Result<Vec<RecordBatch>> {
    let folder = Place::parse(folder)?;
    let mut shards: BTreeMap<u64, Vec<RecordBatch>> = BTreeMap::new();
    while let Some(batch) = (input.try_next().await).map_err(|e| from_engine("reading rows", e))? {
        part(&batch, &mut shards)?;
    }
    let mut gathered = Vec::new();
    for (shard, batches) in shards {
        let rows = in_order(&batches)?;
        let bytes = parquet(&rows)?;
        let written = ShardFile {
            rows: rows.num_rows() as u64,
            bytes: bytes.len() as u64,
        };
        let place = folder.join(&shard_name(shard));
        place.write(runtime, bytes).await?;
        let parts = vec![PartialResult::Bytes(vec![(shard, 0, encode(&written)?)])];
        let blocks = of_shard(shard, parts);
        gathered.extend(blocks.map_err(|e| Error::engine("writing a result", e))?);
    }
    Ok(gathered)
}

/// PartialResult the rows of a batch by their shard.
fn part(batch: &RecordBatch, shards: &mut BTreeMap<u64, Vec<RecordBatch>>) -> Result<()> {
    let targets = column(batch, TARGET)?.as_primitive_opt::<UInt64Type>();
    let targets = targets.ok_or_else(|| Error::table(TARGET, "expected numbers of shards"))?;
    let mut rows: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (row, target) in targets.values().iter().enumerate() {
        rows.entry(*target).or_default().push(row as u64);
    }
    for (target, rows) in rows {
        let chosen = take_record_batch(batch, &UInt64Array::from(rows));
        let chosen = chosen.map_err(|e| Error::engine("parting rows", e))?;
        shards.entry(target).or_default().push(chosen);
    }
    Ok(())
}

/// The rows of a shard in the order of their places, without the columns that say so.
fn in_order(batches: &[RecordBatch]) -> Result<RecordBatch> {
    let failed = |e: datafusion::arrow::error::ArrowError| Error::engine("ordering rows", e);
    let first = batches.first();
    let schema = first.ok_or_else(|| Error::engine("ordering rows", "there is none"))?;
    let all = concat_batches(&schema.schema(), batches).map_err(failed)?;
    let order = sort_to_indices(column(&all, PLACE)?, None, None).map_err(failed)?;
    let ordered = take_record_batch(&all, &order).map_err(failed)?;
    let fields = ordered.schema();
    let kept = (0..fields.fields().len())
        .filter(|place| ![TARGET, PLACE].contains(&fields.field(*place).name().as_str()));
    ordered.project(&kept.collect::<Vec<_>>()).map_err(failed)
}

fn parquet(rows: &RecordBatch) -> Result<Vec<u8>> {
    let failed = |e: datafusion::parquet::errors::ParquetError| Error::engine("writing rows", e);
    let mut writer = writer(rows.schema(), ROW_GROUP).map_err(failed)?;
    writer.write(rows).map_err(failed)?;
    writer.into_inner().map_err(failed)
}
