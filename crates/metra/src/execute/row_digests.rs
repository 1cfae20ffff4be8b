//! The smallest digests of all rows of a corpus, computed by the machines that hold them.

use super::{Sample, Statistic, decode_list, encode_list, expect_parts, fold};
use crate::Result;
use crate::data::{Corpus, Keys, MOST_DIGESTS, PartialResult, RowDigests, row_digest};

/// Digests that travel in one message.
const MESSAGE: usize = 1 << 16;

/// Digests of the rows of a corpus under a key.
pub(crate) fn row_digests(corpus: &dyn Corpus, key: [u8; 32]) -> Result<RowDigests> {
    let digests = fold::<SmallestDigests>(corpus, Keys::None, &key)?;
    RowDigests::new(corpus.len(), digests)
}

/// The smallest digests.
pub(crate) struct SmallestDigests {
    shard: u64,
    key: [u8; 32],
    digests: Vec<u64>,
}

fn keep_smallest(digests: &mut Vec<u64>) {
    digests.sort_unstable();
    digests.dedup();
    digests.truncate(MOST_DIGESTS);
}

impl Statistic for SmallestDigests {
    const NAME: &'static str = "smallest digests";
    type Spec = [u8; 32];
    type Out = Vec<u64>;

    fn start(key: &[u8; 32], shard: u64) -> Result<Self> {
        Ok(SmallestDigests {
            shard,
            key: *key,
            digests: Vec::new(),
        })
    }

    fn update(&mut self, sample: &Sample<'_>) -> Result<()> {
        for row in sample.rows.iter() {
            self.digests.push(row_digest(&self.key, row));
        }
        if self.digests.len() >= 4 * MOST_DIGESTS {
            keep_smallest(&mut self.digests);
        }
        Ok(())
    }

    fn close(mut self) -> Result<Vec<PartialResult>> {
        keep_smallest(&mut self.digests);
        Ok(vec![encode_list(self.shard, &self.digests, MESSAGE)?])
    }

    fn finish(_: &[u8; 32], parts: Vec<PartialResult>) -> Result<Vec<u64>> {
        let [digests] = expect_parts(parts)?;
        let mut digests = decode_list(digests)?;
        keep_smallest(&mut digests);
        Ok(digests)
    }
}
