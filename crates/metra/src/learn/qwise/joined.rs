//! Items and queries of two corpora as one, so that a constraint can name rows of both.

use super::super::Problem;
use crate::Result;
use crate::data::{Corpus, RowId};
use crate::linalg::{RowBuf, Rows};
use std::ops::Range;

/// The items, then the queries.
pub(super) struct Joined<'a> {
    items: &'a dyn Corpus,
    queries: &'a dyn Corpus,
}

impl<'a> Joined<'a> {
    pub(super) fn new(problem: &Problem<'a>) -> Self {
        Joined {
            items: problem.items(),
            queries: problem.queries(),
        }
    }
}

impl Corpus for Joined<'_> {
    fn len(&self) -> u64 {
        self.items.len() + self.queries.len()
    }

    fn dim(&self) -> usize {
        self.items.dim()
    }

    fn gather(&self, rows: &[RowId], out: &mut RowBuf) -> Result<()> {
        let first = self.items.len();
        let (mut left, mut right) = (RowBuf::empty(self.dim()), RowBuf::empty(self.dim()));
        let items: Vec<RowId> = rows.iter().copied().filter(|r| *r < first).collect();
        let others = rows.iter().filter(|r| **r >= first);
        let queries: Vec<RowId> = others.map(|r| r - first).collect();
        self.items.gather(&items, &mut left)?;
        self.queries.gather(&queries, &mut right)?;
        out.reset(rows.len(), self.dim());
        let (mut item, mut query) = (0, 0);
        for (target, row) in rows.iter().enumerate() {
            let source = if *row < first {
                item += 1;
                left.row(item - 1)
            } else {
                query += 1;
                right.row(query - 1)
            };
            out.row_mut(target).copy_from_slice(source);
        }
        Ok(())
    }

    fn scan(
        &self,
        range: Range<RowId>,
        visit: &mut dyn FnMut(RowId, Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        let first = self.items.len();
        if range.start < first {
            self.items.scan(range.start..range.end.min(first), visit)?;
        }
        if range.end > first {
            let queries = range.start.max(first) - first..range.end - first;
            (self.queries).scan(queries, &mut |row, rows| visit(row + first, rows))?;
        }
        Ok(())
    }
}
