//! The operator that merges what shards said, block by block, in the order of shards.
//!
//! Partial results arrive in any order. Merged as they come, sums of floating-point numbers would
//! depend on timing; so a block waits until all shards before its own are merged. A shard that had
//! no rows says nothing: what waited for it is merged at the end.

use super::blocks::{Block, batch, read, schema};
use super::pause::hold;
use crate::error::within;
use datafusion::arrow::array::RecordBatch;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt};
use metra::internal::PartialResult;
use std::collections::BTreeMap;

/// Merge the blocks of a partition.
pub(super) fn run(input: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let merged = futures::stream::once(merge_all(input))
        .map(|merged| merged.map(|batches| futures::stream::iter(batches.into_iter().map(Ok))));
    let merged = merged.try_flatten();
    Box::pin(RecordBatchStreamAdapter::new(schema(), merged))
}

async fn merge_all(mut input: SendableRecordBatchStream) -> Result<Vec<RecordBatch>> {
    let mut merging: BTreeMap<(u64, u64), MergedBlock> = BTreeMap::new();
    hold("merge").await;
    while let Some(batch) = input.try_next().await? {
        for block in read(&batch)? {
            let place = merging.entry((block.part, block.number)).or_default();
            place.take(block.shard, block.content).map_err(within)?;
        }
    }
    let mut batches = Vec::with_capacity(merging.len());
    for ((part, number), merging) in merging {
        if let Some(content) = merging.finish().map_err(within)? {
            batches.push(batch(&Block {
                shard: 0,
                part,
                number,
                content,
            })?);
        }
    }
    Ok(batches)
}

/// One block: what is merged so far, the next shard's number, and what came too early.
#[derive(Default)]
struct MergedBlock {
    merged: Option<PartialResult>,
    next: u64,
    waiting: BTreeMap<u64, PartialResult>,
}

impl MergedBlock {
    fn take(&mut self, shard: u64, content: PartialResult) -> metra::Result<()> {
        if matches!(content, PartialResult::Bytes(_)) {
            // No other shard has this block.
            return self.add(content);
        }
        if shard < self.next || self.waiting.insert(shard, content).is_some() {
            return Err(metra::Error::Data(format!(
                "shard {shard} was folded twice: its rows came from two places"
            )));
        }
        while let Some(content) = self.waiting.remove(&self.next) {
            self.add(content)?;
            self.next += 1;
        }
        Ok(())
    }

    fn add(&mut self, content: PartialResult) -> metra::Result<()> {
        match &mut self.merged {
            None => self.merged = Some(content),
            Some(merged) => merged.merge(content)?,
        }
        Ok(())
    }

    fn finish(mut self) -> metra::Result<Option<PartialResult>> {
        for content in std::mem::take(&mut self.waiting).into_values() {
            self.add(content)?;
        }
        Ok(self.merged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_arrival_changes_no_bit() {
        // Large and small numbers: sums in another order differ.
        let values = [1e16, 3.0, -1e16, 5.0, 7.0];
        let merged = |order: &[u64]| {
            let mut merging = MergedBlock::default();
            for shard in order {
                let content = PartialResult::Sum(vec![values[*shard as usize]]);
                merging.take(*shard, content).unwrap();
            }
            let sum = merging.finish().unwrap().unwrap().into_sum().unwrap();
            sum[0].to_bits()
        };
        let in_order = merged(&[0, 1, 2, 3, 4]);
        assert_eq!(merged(&[4, 2, 0, 3, 1]), in_order);
        // Shard 1 had no rows; the others keep their order.
        let without = (((values[0] + values[2]) + values[3]) + values[4]).to_bits();
        assert_eq!(merged(&[4, 3, 0, 2]), without);
        assert_ne!(in_order, without);
        let mut merging = MergedBlock::default();
        merging.take(1, PartialResult::Sum(vec![1.0])).unwrap();
        assert!(merging.take(1, PartialResult::Sum(vec![1.0])).is_err());
        merging.take(0, PartialResult::Sum(vec![1.0])).unwrap();
        assert!(merging.take(0, PartialResult::Sum(vec![1.0])).is_err());
    }
}
