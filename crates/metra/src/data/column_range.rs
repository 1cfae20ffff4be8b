//! Some neighbouring dimensions of a corpus as a corpus.

use super::RowId;
use super::corpus::Corpus;
use crate::linalg::{RowBuf, Rows};
use crate::{Error, Result};
use std::ops::Range;

/// The dimensions of a range, of all rows.
pub(crate) struct ColumnRange<'a> {
    corpus: &'a dyn Corpus,
    range: Range<usize>,
}

impl<'a> ColumnRange<'a> {
    pub(crate) fn new(corpus: &'a dyn Corpus, range: Range<usize>) -> Result<Self> {
        if range.is_empty() || range.end > corpus.dim() {
            let expected = format!("some of {}", corpus.dim());
            return Err(Error::shape("dimensions", expected, format!("{range:?}")));
        }
        Ok(ColumnRange { corpus, range })
    }
}

impl Corpus for ColumnRange<'_> {
    fn check_stop(&self) -> Result<()> {
        self.corpus.check_stop()
    }

    fn len(&self) -> u64 {
        self.corpus.len()
    }

    fn dim(&self) -> usize {
        self.range.len()
    }

    fn gather(&self, rows: &[RowId], out: &mut RowBuf) -> Result<()> {
        let mut whole = RowBuf::empty(self.corpus.dim());
        self.corpus.gather(rows, &mut whole)?;
        whole.rows().columns(self.range.clone(), out);
        Ok(())
    }

    fn scan(
        &self,
        range: Range<RowId>,
        visit: &mut dyn FnMut(RowId, Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut part = RowBuf::empty(self.range.len());
        self.corpus.scan(range, &mut |first, rows| {
            rows.columns(self.range.clone(), &mut part);
            visit(first, part.rows())
        })
    }

    fn origin(&self, row: RowId) -> RowId {
        self.corpus.origin(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;

    #[test]
    fn a_range_is_read_like_a_corpus() {
        let rows = RowBuf::from_values(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3).unwrap();
        let rows = MemoryCorpus::new(rows).unwrap();
        let last = ColumnRange::new(&rows, 1..3).unwrap();
        let mut out = RowBuf::empty(1);
        last.gather(&[1, 0], &mut out).unwrap();
        assert_eq!(out.values(), &[5.0, 6.0, 2.0, 3.0]);
        let mut seen = Vec::new();
        let mut keep = |first: RowId, rows: Rows<'_>| {
            seen.push((first, rows.values().to_vec()));
            Ok(())
        };
        last.scan(1..2, &mut keep).unwrap();
        assert_eq!(seen, vec![(1, vec![5.0, 6.0])]);
    }
}
