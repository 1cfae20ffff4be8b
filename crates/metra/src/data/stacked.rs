//! Vectors of one side among coordinates for two: queries (x, 0) and items (0, y).

use super::RowId;
use super::corpus::Corpus;
use crate::Result;
use crate::linalg::{RowBuf, Rows};
use std::ops::Range;

/// The rows of a corpus, centred and scaled, from one coordinate on; all other coordinates are 0.
pub(crate) struct StackedCorpus<'a> {
    inner: &'a dyn Corpus,
    first: usize,
    dim: usize,
    mean: Vec<f32>,
    factor: f32,
}

impl<'a> StackedCorpus<'a> {
    /// (x − mean) · factor at the coordinates from `first` on, of `dim` in all.
    pub(crate) fn new(
        inner: &'a dyn Corpus,
        (first, dim): (usize, usize),
        mean: &[f64],
        factor: f64,
    ) -> Self {
        StackedCorpus {
            inner,
            first,
            dim,
            mean: mean.iter().map(|value| *value as f32).collect(),
            factor: factor as f32,
        }
    }

    fn place(&self, rows: Rows<'_>, out: &mut RowBuf) {
        out.reset(rows.len(), self.dim);
        for (number, row) in rows.iter().enumerate() {
            let places = &mut out.row_mut(number)[self.first..self.first + row.len()];
            for ((place, value), mean) in places.iter_mut().zip(row).zip(&self.mean) {
                *place = (value - mean) * self.factor;
            }
        }
    }
}

impl Corpus for StackedCorpus<'_> {
    fn check_stop(&self) -> Result<()> {
        self.inner.check_stop()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn gather(&self, rows: &[RowId], out: &mut RowBuf) -> Result<()> {
        let mut found = RowBuf::empty(self.inner.dim());
        self.inner.gather(rows, &mut found)?;
        self.place(found.rows(), out);
        Ok(())
    }

    fn scan(
        &self,
        range: Range<RowId>,
        visit: &mut dyn FnMut(RowId, Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut buffer = RowBuf::empty(self.dim);
        self.inner.scan(range, &mut |first, rows| {
            self.place(rows, &mut buffer);
            visit(first, buffer.rows())
        })
    }

    fn origin(&self, row: RowId) -> RowId {
        self.inner.origin(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;

    #[test]
    fn rows_stand_behind_zeros() {
        let inner = RowBuf::from_values(vec![1.0, 2.0, 3.0, 4.0], 2).unwrap();
        let inner = MemoryCorpus::new(inner).unwrap();
        let stacked = StackedCorpus::new(&inner, (1, 4), &[1.0, 1.0], 2.0);
        let mut out = RowBuf::empty(1);
        stacked.gather(&[1, 0], &mut out).unwrap();
        assert_eq!(out.values(), &[0.0, 4.0, 6.0, 0.0, 0.0, 0.0, 2.0, 0.0]);
        let mut seen = Vec::new();
        let mut keep = |first: RowId, rows: Rows<'_>| {
            seen.push((first, rows.values().to_vec()));
            Ok(())
        };
        stacked.scan(1..2, &mut keep).unwrap();
        assert_eq!(seen, vec![(1, vec![0.0, 4.0, 6.0, 0.0])]);
    }
}
