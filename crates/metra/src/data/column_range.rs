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
