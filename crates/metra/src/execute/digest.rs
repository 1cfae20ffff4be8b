//! A digest of all rows of a corpus, computed by the machines that hold them.

use super::{Sample, Statistic, expect_parts, fold};
use crate::data::{Corpus, Keys, PartialResult};
use crate::{Error, Result};

/// A digest over the values of all rows and the borders of their shards.
pub(crate) fn digest(corpus: &dyn Corpus) -> Result<String> {
    fold::<Digest>(corpus, Keys::None, &())
}

/// Digest of a shard.
pub(crate) struct Digest {
    shard: u64,
    hasher: blake3::Hasher,
}

impl Statistic for Digest {
    const NAME: &'static str = "digest";
    type Spec = ();
    type Out = String;

    fn start(_: &(), shard: u64) -> Result<Self> {
        let hasher = blake3::Hasher::new();
        Ok(Digest { shard, hasher })
    }

    fn update(&mut self, sample: &Sample<'_>) -> Result<()> {
        (self.hasher).update(bytemuck::cast_slice(sample.rows.values()));
        Ok(())
    }

    fn close(self) -> Result<Vec<PartialResult>> {
        let digest = self.hasher.finalize().as_bytes().to_vec();
        Ok(vec![PartialResult::Bytes(vec![(self.shard, 0, digest)])])
    }

    fn finish(_: &(), parts: Vec<PartialResult>) -> Result<String> {
        let [digests] = expect_parts(parts)?;
        let mut hasher = blake3::Hasher::new();
        for (shard, _, digest) in digests.into_bytes()? {
            hasher.update(&shard.to_le_bytes());
            hasher.update(&digest);
        }
        let digest = hasher.finalize();
        if digest == blake3::Hasher::new().finalize() {
            return Err(Error::shape("rows of the corpus", "at least 1", 0));
        }
        Ok(format!("shards:{}", digest.to_hex()))
    }
}
