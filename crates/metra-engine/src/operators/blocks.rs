//! Results as they are sent between machines: a row for every block of a part.
//!
//! A message of the engine has a limit, so a large result is sent in many rows. Blocks of the same
//! part and number belong together whatever shard they come from, and are merged on their own.

use crate::Result;
use crate::error::within;
use datafusion::arrow::array::{AsArray, BinaryArray, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use datafusion::error::{DataFusionError, Result as EngineResult};
use metra::internal::PartialResult;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// Bytes of a block: far below the limit of a message, also where an engine joins several.
const BLOCK: usize = 1 << 20;

/// TableColumns of a block: shard, part, number of the block, bytes.
pub(crate) fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        Arc::new(Schema::new(vec![
            Field::new("shard", DataType::UInt64, false),
            Field::new("part", DataType::UInt64, false),
            Field::new("block", DataType::UInt64, false),
            Field::new("bytes", DataType::Binary, false),
        ]))
    });
    SCHEMA.clone()
}

/// A block with where it belongs.
pub(crate) struct Block {
    pub(crate) shard: u64,
    pub(crate) part: u64,
    pub(crate) number: u64,
    pub(crate) content: PartialResult,
}

/// The blocks of what a shard has to say, one row per batch, so that no batch is large.
pub(crate) fn of_shard(shard: u64, parts: Vec<PartialResult>) -> EngineResult<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    for (part, whole) in (0..).zip(parts) {
        // What shards say for themselves is not merged: blocks of different shards differ.
        let own = matches!(whole, PartialResult::Bytes(_));
        for (number, content) in (0..).zip(whole.blocks(BLOCK)) {
            let number = if own { shard << 24 | number } else { number };
            batches.push(batch(&Block {
                shard,
                part,
                number,
                content,
            })?);
        }
    }
    Ok(batches)
}

/// A block as a batch of one row.
pub(crate) fn batch(block: &Block) -> EngineResult<RecordBatch> {
    let bytes = block.content.to_bytes().map_err(within)?;
    let number = |value: u64| Arc::new(UInt64Array::from(vec![value]));
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            number(block.shard),
            number(block.part),
            number(block.number),
            Arc::new(BinaryArray::from(vec![bytes.as_slice()])),
        ],
    )?)
}

/// The blocks of a batch.
pub(crate) fn read(batch: &RecordBatch) -> EngineResult<Vec<Block>> {
    let wrong = || DataFusionError::Internal("a batch of blocks has other columns".into());
    let [shards, parts, numbers] = [0, 1, 2].map(|place| {
        let column = batch.columns().get(place);
        column.and_then(|column| column.as_primitive_opt::<UInt64Type>())
    });
    let bytes = (batch.columns().get(3)).and_then(|column| column.as_binary_opt::<i32>());
    let (shards, parts) = (shards.ok_or_else(wrong)?, parts.ok_or_else(wrong)?);
    let (numbers, bytes) = (numbers.ok_or_else(wrong)?, bytes.ok_or_else(wrong)?);
    (0..batch.num_rows())
        .map(|row| {
            Ok(Block {
                shard: shards.value(row),
                part: parts.value(row),
                number: numbers.value(row),
                content: PartialResult::from_bytes(bytes.value(row)).map_err(within)?,
            })
        })
        .collect()
}

/// The parts of a finished pass, from its merged blocks in any order.
pub(crate) fn whole(batches: &[RecordBatch]) -> Result<Vec<PartialResult>> {
    let mut parts: BTreeMap<u64, BTreeMap<u64, PartialResult>> = BTreeMap::new();
    for batch in batches {
        let blocks = read(batch).map_err(|e| crate::error::from_engine("reading a result", e))?;
        for block in blocks {
            let part = parts.entry(block.part).or_default();
            part.insert(block.number, block.content);
        }
    }
    let joined = parts
        .into_values()
        .map(|blocks| PartialResult::join(blocks.into_values()));
    Ok(joined.collect::<metra::Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shard_says_is_put_together_again() {
        let parts = vec![
            PartialResult::Count(vec![7]),
            PartialResult::Sum((0..300_000).map(f64::from).collect()),
            PartialResult::Bytes(vec![(3, 0, vec![1, 2])]),
        ];
        let mut batches = of_shard(3, parts.clone()).unwrap();
        // 300,000 numbers of 8 bytes: three blocks of at most a mebibyte.
        assert_eq!(batches.len(), 5);
        batches.reverse();
        assert_eq!(whole(&batches).unwrap(), parts);
    }
}
