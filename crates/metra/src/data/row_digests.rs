//! Digests of rows by their values, by which a row is recognised and from which it cannot be restored.

use crate::{Error, Result};

/// Digests that are kept of a list: at most 128 KB in a file.
pub(crate) const MOST_DIGESTS: usize = 16_384;

/// Digests of some rows in increasing order; of many rows the smallest, which is a uniform sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowDigests {
    rows: u64,
    digests: Vec<u64>,
}

impl RowDigests {
    /// Of so many rows: digests that are in order, none twice, and not more than are kept.
    pub(crate) fn new(rows: u64, digests: Vec<u64>) -> Result<Self> {
        let sorted = digests.windows(2).all(|pair| pair[0] < pair[1]);
        if !sorted || digests.len() > MOST_DIGESTS || digests.len() as u64 > rows {
            return Err(Error::Model(format!(
                "its {} digests of {rows} training rows are not in order, or too many",
                digests.len()
            )));
        }
        Ok(RowDigests { rows, digests })
    }

    /// Those of two lists under the same key. The smallest of both together are those of all rows, as each list holds
    /// all that are smaller than its largest. How many rows are in both is told by those that can be recognised.
    pub(crate) fn and(&self, more: &RowDigests) -> RowDigests {
        let recognisable = more
            .digests
            .iter()
            .filter_map(|digest| self.contains(*digest));
        let (mut known, mut all) = (0, 0);
        for is_known in recognisable {
            known += u64::from(is_known);
            all += 1;
        }
        let new = 1.0 - known as f64 / all.max(1) as f64;
        let mut digests = [&self.digests[..], &more.digests].concat();
        digests.sort_unstable();
        digests.dedup();
        digests.truncate(MOST_DIGESTS);
        RowDigests {
            rows: self.rows + (more.rows as f64 * new).round() as u64,
            digests,
        }
    }

    /// How many rows there were.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    pub(crate) fn digests(&self) -> &[u64] {
        &self.digests
    }

    /// Whether a row is among them; `None` where its digest is larger than those that were kept.
    pub(crate) fn contains(&self, digest: u64) -> Option<bool> {
        let all_kept = self.digests.len() < MOST_DIGESTS;
        let largest = self.digests.last().copied().unwrap_or(0);
        (all_kept || digest <= largest).then(|| self.digests.binary_search(&digest).is_ok())
    }
}

/// The digest of a row under a key.
pub(crate) fn row_digest(key: &[u8; 32], row: &[f32]) -> u64 {
    let mut hasher = blake3::Hasher::new_keyed(key);
    let mut bytes = [0; 256];
    for values in row.chunks(bytes.len() / 4) {
        for (value, bytes) in values.iter().zip(bytes.as_chunks_mut::<4>().0) {
            // −0 and 0 are the same value.
            *bytes = (value + 0.0).to_le_bytes();
        }
        hasher.update(&bytes[..4 * values.len()]);
    }
    let hash = hasher.finalize();
    let (first, _) = hash.as_bytes().as_chunks::<8>();
    u64::from_le_bytes(first[0])
}
