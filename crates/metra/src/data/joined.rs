//! Two corpora as one, without copying: queries and items that are searched together.

use super::RowId;
use super::corpus::Corpus;
use crate::linalg::{RowBuf, Rows};
use crate::{Error, Result};
use std::ops::Range;

/// The rows of one corpus and then those of another.
pub struct JoinedCorpus<'a> {
    first: &'a dyn Corpus,
    second: &'a dyn Corpus,
}

impl<'a> JoinedCorpus<'a> {
    /// Two corpora of the same dimension.
    pub fn new(first: &'a dyn Corpus, second: &'a dyn Corpus) -> Result<Self> {
        if first.dim() != second.dim() {
            let what = "dimension of the rows that come first";
            return Err(Error::shape(what, second.dim(), first.dim()));
        }
        Ok(JoinedCorpus { first, second })
    }
}

impl Corpus for JoinedCorpus<'_> {
    fn check_stop(&self) -> Result<()> {
        self.first.check_stop()?;
        self.second.check_stop()
    }

    fn len(&self) -> u64 {
        self.first.len() + self.second.len()
    }

    fn dim(&self) -> usize {
        self.second.dim()
    }

    fn gather(&self, rows: &[RowId], out: &mut RowBuf) -> Result<()> {
        let border = self.first.len();
        let (before, after): (Vec<RowId>, Vec<RowId>) = rows.iter().partition(|r| **r < border);
        let after: Vec<RowId> = after.iter().map(|row| row - border).collect();
        let (mut left, mut right) = (RowBuf::empty(1), RowBuf::empty(1));
        self.first.gather(&before, &mut left)?;
        self.second.gather(&after, &mut right)?;
        out.reset(rows.len(), self.dim());
        let (mut next_left, mut next_right) = (0, 0);
        for (place, row) in rows.iter().enumerate() {
            let (from, next) = if *row < border {
                (&left, &mut next_left)
            } else {
                (&right, &mut next_right)
            };
            out.row_mut(place).copy_from_slice(from.row(*next));
            *next += 1;
        }
        Ok(())
    }

    fn scan(
        &self,
        range: Range<RowId>,
        visit: &mut dyn FnMut(RowId, Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        let border = self.first.len();
        if range.start < border {
            self.first.scan(range.start..range.end.min(border), visit)?;
        }
        if range.end > border {
            let inside = range.start.max(border) - border..range.end - border;
            self.second
                .scan(inside, &mut |first, rows| visit(first + border, rows))?;
        }
        Ok(())
    }

    fn origin(&self, row: RowId) -> RowId {
        match row.checked_sub(self.first.len()) {
            Some(row) => self.second.origin(row),
            None => self.first.origin(row),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;

    fn corpus(values: &[f32]) -> MemoryCorpus {
        MemoryCorpus::new(RowBuf::from_values(values.to_vec(), 1).unwrap()).unwrap()
    }

    #[test]
    fn rows_are_found_on_both_sides_of_the_border() {
        let (first, second) = (corpus(&[1.0, 2.0]), corpus(&[3.0, 4.0, 5.0]));
        let joined = JoinedCorpus::new(&first, &second).unwrap();
        assert_eq!((joined.len(), joined.dim()), (5, 1));
        let mut rows = RowBuf::empty(1);
        joined.gather(&[4, 0, 2, 1, 2], &mut rows).unwrap();
        assert_eq!(rows.values(), &[5.0, 1.0, 3.0, 2.0, 3.0]);
        assert!(joined.gather(&[5], &mut rows).is_err());
        for (range, expected) in [
            (0..5, vec![1.0, 2.0, 3.0, 4.0, 5.0]),
            (1..3, vec![2.0, 3.0]),
            (0..1, vec![1.0]),
            (3..5, vec![4.0, 5.0]),
        ] {
            let mut seen = Vec::new();
            let mut visit = |first: RowId, rows: Rows<'_>| {
                assert_eq!(first, range.start + seen.len() as RowId);
                seen.extend_from_slice(rows.values());
                Ok(())
            };
            joined.scan(range.clone(), &mut visit).unwrap();
            assert_eq!(seen, expected);
        }
        assert_eq!((joined.origin(1), joined.origin(3)), (1, 1));
        let wide = RowBuf::from_values(vec![1.0, 2.0], 2).unwrap();
        let wide = MemoryCorpus::new(wide).unwrap();
        assert!(JoinedCorpus::new(&first, &wide).is_err());
    }
}
