//! Parquet files of shards: how they are written, and what is said of each.

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;
use serde::{Deserialize, Serialize};

/// What was written of a shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ShardFile {
    /// Rows in the file.
    pub(crate) rows: u64,
    /// Its bytes.
    pub(crate) bytes: u64,
}

/// What the file of a training shard is called.
pub(crate) fn shard_name(shard: u64) -> String {
    format!("shard-{shard:05}.parquet")
}

/// What the file of a shard's mapped rows is called.
pub(crate) fn part_name(shard: u64) -> String {
    format!("part-{shard:06}.parquet")
}

/// Whether a file is called as one of these two.
pub(crate) fn is_job_name(name: &str) -> bool {
    let number = name.strip_prefix("shard-").or(name.strip_prefix("part-"));
    let number = number.and_then(|rest| rest.strip_suffix(".parquet"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// A writer to memory, with so many rows in a row group.
pub(super) fn writer(
    schema: SchemaRef,
    group_rows: usize,
) -> Result<ArrowWriter<Vec<u8>>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_max_row_group_row_count(Some(group_rows))
        .build();
    ArrowWriter::try_new(Vec::new(), schema, Some(properties))
}
