//! Fetches selected rows of a corpus, in one pass if it is distributed.

use super::{Sample, Statistic, decode_list, encode_list, expect_parts, fold};
use crate::data::{Corpus, Keys, PartialResult, RowId};
use crate::linalg::RowBuf;
use crate::{Error, Result};

/// Rows that a message of words holds at most, in bytes.
const MESSAGE: usize = 1 << 20;

/// The rows with these numbers, in the order of the numbers given; one pass where the corpus lies
/// elsewhere.
pub fn fetched(corpus: &dyn Corpus, rows: &[RowId]) -> Result<RowBuf> {
    let mut out = RowBuf::empty(corpus.dim());
    if corpus.pass_executor().is_none() {
        corpus.gather(rows, &mut out)?;
        return Ok(out);
    }
    let mut sorted = rows.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let found = fold::<ChosenRows>(corpus, Keys::None, &(corpus.dim() as u64, sorted.clone()))?;
    let found = RowBuf::from_values(found, corpus.dim())?;
    if found.len() != sorted.len() {
        let what = "rows that were asked for";
        return Err(Error::shape(what, sorted.len(), found.len()));
    }
    out.reset(rows.len(), corpus.dim());
    for (place, row) in rows.iter().enumerate() {
        let at = sorted.binary_search(row).unwrap_or(0);
        out.row_mut(place).copy_from_slice(found.row(at));
    }
    Ok(out)
}

/// Picks rows by their numbers.
pub(crate) struct ChosenRows {
    dim: usize,
    /// Increasing; those below `next` are behind.
    wanted: Vec<RowId>,
    next: usize,
    shard: u64,
    values: Vec<f32>,
}

impl Statistic for ChosenRows {
    const NAME: &'static str = "chosen rows";
    /// Numbers in a row, and the numbers of the rows, increasing.
    type Spec = (u64, Vec<RowId>);
    type Out = Vec<f32>;

    fn rows((_, wanted): &Self::Spec) -> Option<&[RowId]> {
        Some(wanted)
    }

    fn start((dim, wanted): &Self::Spec, shard: u64) -> Result<Self> {
        Ok(ChosenRows {
            dim: *dim as usize,
            wanted: wanted.clone(),
            next: 0,
            shard,
            values: Vec::new(),
        })
    }

    fn update(&mut self, sample: &Sample<'_>) -> Result<()> {
        let (first, rows) = (sample.first, sample.rows);
        let end = first + rows.len() as u64;
        self.next += self.wanted[self.next..].partition_point(|row| *row < first);
        while let Some(row) = self.wanted.get(self.next).filter(|row| **row < end) {
            (self.values).extend_from_slice(rows.row((row - first) as usize));
            self.next += 1;
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.next == self.wanted.len()
    }

    fn close(self) -> Result<Vec<PartialResult>> {
        let rows = (MESSAGE / (4 * self.dim.max(1))).max(1);
        let each = rows * self.dim.max(1);
        Ok(vec![encode_list(self.shard, &self.values, each)?])
    }

    fn finish(_: &Self::Spec, parts: Vec<PartialResult>) -> Result<Vec<f32>> {
        let [values] = expect_parts(parts)?;
        decode_list(values)
    }
}
