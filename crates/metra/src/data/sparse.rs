//! Rows of which most numbers are 0, such as weights of words: kept as compressed sparse rows, and handed out dense, a
//! few at a time.

use super::corpus::{Corpus, SparseRow, check_range, no_such_row, scan_gathered};
use super::pass_executor::RowId;
use crate::linalg::{RowBuf, Rows};
use crate::{Error, Result};
use std::ops::Range;

/// A corpus of compressed sparse rows (CSR).
#[derive(Debug, Clone, PartialEq)]
pub struct SparseCorpus {
    dim: usize,
    /// The numbers of row r are those from `starts[r]` to `starts[r + 1]`.
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

impl SparseCorpus {
    /// No row yet, of so many dimensions.
    pub fn new(dim: usize) -> Self {
        SparseCorpus {
            dim,
            starts: vec![0],
            columns: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Add a row: columns in any order, each once, with finite numbers.
    pub fn push(&mut self, entries: impl IntoIterator<Item = (u32, f32)>) -> Result<()> {
        let row = self.len();
        let wrong = |problem: String| Error::Row { row, problem };
        let mut entries: Vec<(u32, f32)> = entries.into_iter().collect();
        entries.sort_unstable_by_key(|(column, _)| *column);
        for (place, (column, value)) in entries.iter().enumerate() {
            if *column as usize >= self.dim {
                let dim = self.dim;
                return Err(wrong(format!(
                    "has column {column}, expected columns below {dim}"
                )));
            }
            if place > 0 && entries[place - 1].0 == *column {
                return Err(wrong(format!("has column {column} twice")));
            }
            if !value.is_finite() {
                let column = *column as usize;
                let problem = format!("expected a finite number, but found {value}");
                return Err(Error::Cell {
                    row,
                    column,
                    problem,
                });
            }
        }
        for (column, value) in entries.into_iter().filter(|(_, value)| *value != 0.0) {
            self.columns.push(column);
            self.values.push(value);
        }
        self.starts.push(self.columns.len());
        Ok(())
    }

    /// Numbers that are not 0.
    pub fn entries(&self) -> usize {
        self.values.len()
    }

    fn row(&self, row: RowId) -> Result<SparseRow<'_>> {
        let index = usize::try_from(row).ok().filter(|_| row < self.len());
        let index = index.ok_or_else(|| no_such_row(row, self.len()))?;
        let range = self.starts[index]..self.starts[index + 1];
        Ok((&self.columns[range.clone()], &self.values[range]))
    }
}

impl Corpus for SparseCorpus {
    fn len(&self) -> u64 {
        self.starts.len() as u64 - 1
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn gather(&self, rows: &[RowId], out: &mut RowBuf) -> Result<()> {
        out.clear(self.dim);
        out.reset(rows.len(), self.dim);
        for (target, row) in rows.iter().enumerate() {
            let (columns, values) = self.row(*row)?;
            let target = out.row_mut(target);
            for (column, value) in columns.iter().zip(values) {
                target[*column as usize] = *value;
            }
        }
        Ok(())
    }

    fn scan(
        &self,
        range: Range<RowId>,
        visit: &mut dyn FnMut(RowId, Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        check_range(&range, self.len())?;
        let gather =
            |rows: Range<RowId>, out: &mut RowBuf| self.gather(&rows.collect::<Vec<RowId>>(), out);
        scan_gathered(self.dim, range, gather, visit)
    }

    fn sparse_row(&self, row: RowId) -> Option<SparseRow<'_>> {
        self.row(row).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Subset;

    #[test]
    fn rows_are_those_that_were_pushed() {
        let mut corpus = SparseCorpus::new(5);
        corpus.push([(3, 2.0), (0, 1.0)]).unwrap();
        corpus.push([]).unwrap();
        corpus.push([(4, -1.0), (2, 0.0)]).unwrap();
        assert_eq!((corpus.len(), corpus.entries()), (3, 3));
        let mut out = RowBuf::empty(1);
        corpus.gather(&[2, 0, 1], &mut out).unwrap();
        let expected = [
            [0.0, 0.0, 0.0, 0.0, -1.0],
            [1.0, 0.0, 0.0, 2.0, 0.0],
            [0.0; 5],
        ];
        assert_eq!(out.values(), expected.concat());
        let mut seen = Vec::new();
        corpus
            .scan(1..3, &mut |first, rows| {
                seen.push((first, rows.values().to_vec()));
                Ok(())
            })
            .unwrap();
        assert_eq!(seen, [(1, [expected[2], expected[0]].concat())]);
        let part = Subset::new(&corpus, vec![2, 0]).unwrap();
        assert_eq!(part.sparse_row(1), Some((&[0, 3][..], &[1.0, 2.0][..])));
        assert_eq!(part.sparse_row(2), None);
        let problems = [
            (corpus.push([(5, 1.0)]), "columns below 5"),
            (corpus.push([(1, 1.0), (1, 2.0)]), "column 1 twice"),
            (corpus.push([(1, f32::NAN)]), "finite"),
            (corpus.gather(&[3], &mut out), "no such row"),
        ];
        for (found, words) in problems {
            let text = found.unwrap_err().to_string();
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn many_dimensions_are_read_a_few_rows_at_a_time() {
        let mut corpus = SparseCorpus::new(200_000);
        for row in 0..50 {
            corpus.push([(row, 1.0)]).unwrap();
        }
        let mut largest = 0;
        corpus
            .scan(0..50, &mut |_, rows| {
                largest = largest.max(rows.values().len());
                Ok(())
            })
            .unwrap();
        assert!(largest <= 1 << 22, "{largest}");
    }
}
