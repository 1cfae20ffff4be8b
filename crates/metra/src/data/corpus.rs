//! A corpus: a collection of vectors of equal dimension, read in batches and never row by row, so
//! that it can be in memory, in a memory-mapped file or a subset of either.

use super::pass_executor::{PassExecutor, RowId};
use crate::linalg::{RowBuf, Rows};
use crate::{Error, Result};
use std::ops::Range;

/// Most rows handed to a visitor at once.
pub(crate) const SCAN_ROWS: usize = 1024;

/// Rows of so many numbers handed to a visitor at once: at most 16 MB. The dimension alone decides, so that sums over a
/// scan are the same for any storage.
pub fn scan_rows(dim: usize) -> usize {
    ((1 << 22) / dim.max(1)).clamp(1, SCAN_ROWS)
}

/// The columns of a row that are not 0, increasing, with their numbers.
pub type SparseRow<'a> = (&'a [u32], &'a [f32]);

/// Where vectors lie.
pub trait Corpus: Send + Sync {
    /// Number of rows.
    fn len(&self) -> u64;

    /// Numbers in a row.
    fn dim(&self) -> usize;

    /// Whether there is no row.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copy the named rows, in the order named, into `out` (which is resized).
    fn gather(&self, rows: &[RowId], out: &mut RowBuf) -> Result<()>;

    /// Visit the rows of `range` in order, [`scan_rows`] at a time.
    fn scan(
        &self,
        range: Range<RowId>,
        visit: &mut dyn FnMut(RowId, Rows<'_>) -> Result<()>,
    ) -> Result<()>;

    /// Number of a row in the corpus that this is a part or another view of, down to the one that
    /// a user has: what messages name.
    fn origin(&self, row: RowId) -> RowId {
        row
    }

    /// All rows as one slice where the storage allows it: the fast path, not a second interface.
    fn view(&self) -> Option<Rows<'_>> {
        None
    }

    /// A row by its numbers that are not 0, where it is kept like that: the fast path, not a second interface.
    fn sparse_row(&self, _row: RowId) -> Option<SparseRow<'_>> {
        None
    }

    /// [`Error::Interrupted`] where somebody asked to stop: for long work between two reads.
    fn check_stop(&self) -> Result<()> {
        Ok(())
    }

    /// Who folds over the rows where they are not at hand; `None` where they are.
    fn pass_executor(&self) -> Option<Box<dyn PassExecutor + '_>> {
        None
    }
}

/// Rows with what belongs to each: what embeddings and statistics are given.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The vectors.
    pub rows: Rows<'a>,
    /// The group (camera, session) of each row, as an index into the model's group names.
    pub groups: Option<&'a [u32]>,
}

impl<'a> Batch<'a> {
    /// Rows that belong to no group.
    pub fn new(rows: Rows<'a>) -> Self {
        Batch { rows, groups: None }
    }

    /// Rows with the group of each; the numbers must agree.
    pub fn with_groups(rows: Rows<'a>, groups: &'a [u32]) -> Result<Self> {
        if rows.len() != groups.len() {
            return Err(Error::shape("groups of a batch", rows.len(), groups.len()));
        }
        Ok(Batch {
            rows,
            groups: Some(groups),
        })
    }
}

/// A corpus in memory.
#[derive(Debug, Clone)]
pub struct MemoryCorpus(RowBuf);

impl MemoryCorpus {
    /// Take rows whose values are all finite.
    pub fn new(rows: RowBuf) -> Result<Self> {
        check_rows(0, rows.rows())?;
        Ok(MemoryCorpus(rows))
    }

    /// The rows.
    pub fn rows(&self) -> Rows<'_> {
        self.0.rows()
    }
}

impl Corpus for MemoryCorpus {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn gather(&self, rows: &[RowId], out: &mut RowBuf) -> Result<()> {
        gather_from(self.0.rows(), rows, out)
    }

    fn scan(
        &self,
        range: Range<RowId>,
        visit: &mut dyn FnMut(RowId, Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        scan_view(self.0.rows(), range, visit)
    }

    fn view(&self) -> Option<Rows<'_>> {
        Some(self.0.rows())
    }
}

/// Rows that lie in somebody else's memory, such as an array of another language.
#[derive(Debug, Clone, Copy)]
pub struct BorrowedCorpus<'a>(Rows<'a>);

impl<'a> BorrowedCorpus<'a> {
    /// Take rows whose values are all finite.
    pub fn new(rows: Rows<'a>) -> Result<Self> {
        check_rows(0, rows)?;
        Ok(BorrowedCorpus(rows))
    }
}

impl Corpus for BorrowedCorpus<'_> {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn gather(&self, rows: &[RowId], out: &mut RowBuf) -> Result<()> {
        gather_from(self.0, rows, out)
    }

    fn scan(
        &self,
        range: Range<RowId>,
        visit: &mut dyn FnMut(RowId, Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        scan_view(self.0, range, visit)
    }

    fn view(&self) -> Option<Rows<'_>> {
        Some(self.0)
    }
}

/// Some rows of another corpus, in a given order.
pub struct Subset<'a> {
    inner: &'a dyn Corpus,
    rows: Vec<RowId>,
}

impl<'a> Subset<'a> {
    /// The rows of `inner` with these numbers.
    pub fn new(inner: &'a dyn Corpus, rows: Vec<RowId>) -> Result<Self> {
        if let Some(row) = rows.iter().find(|row| **row >= inner.len()) {
            return Err(no_such_row(*row, inner.len()));
        }
        Ok(Subset { inner, rows })
    }
}

impl Corpus for Subset<'_> {
    fn check_stop(&self) -> Result<()> {
        self.inner.check_stop()
    }

    fn len(&self) -> u64 {
        self.rows.len() as u64
    }

    fn dim(&self) -> usize {
        self.inner.dim()
    }

    fn gather(&self, rows: &[RowId], out: &mut RowBuf) -> Result<()> {
        let mut mapped = Vec::with_capacity(rows.len());
        for row in rows {
            let index = usize::try_from(*row).ok().and_then(|r| self.rows.get(r));
            mapped.push(*index.ok_or_else(|| no_such_row(*row, self.len()))?);
        }
        self.inner.gather(&mapped, out)
    }

    fn scan(
        &self,
        range: Range<RowId>,
        visit: &mut dyn FnMut(RowId, Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        check_range(&range, self.len())?;
        let gather = |rows: Range<RowId>, out: &mut RowBuf| {
            let rows = &self.rows[rows.start as usize..rows.end as usize];
            self.inner.gather(rows, out)
        };
        scan_gathered(self.dim(), range, gather, visit)
    }

    fn origin(&self, row: RowId) -> RowId {
        let known = usize::try_from(row).ok().and_then(|r| self.rows.get(r));
        known.map_or(row, |known| self.inner.origin(*known))
    }

    fn sparse_row(&self, row: RowId) -> Option<SparseRow<'_>> {
        let row = self.rows.get(usize::try_from(row).ok()?)?;
        self.inner.sparse_row(*row)
    }
}

/// Copy rows of a slice.
pub(super) fn gather_from(view: Rows<'_>, rows: &[RowId], out: &mut RowBuf) -> Result<()> {
    out.reset(rows.len(), view.dim());
    for (target, row) in rows.iter().enumerate() {
        if *row >= view.len() as u64 {
            return Err(no_such_row(*row, view.len() as u64));
        }
        out.row_mut(target).copy_from_slice(view.row(*row as usize));
    }
    Ok(())
}

/// Visit rows of `range` that are gathered, [`scan_rows`] at a time.
pub(super) fn scan_gathered(
    dim: usize,
    range: Range<RowId>,
    gather: impl Fn(Range<RowId>, &mut RowBuf) -> Result<()>,
    visit: &mut dyn FnMut(RowId, Rows<'_>) -> Result<()>,
) -> Result<()> {
    let mut buffer = RowBuf::empty(dim);
    let mut start = range.start;
    while start < range.end {
        let end = range.end.min(start + scan_rows(dim) as u64);
        gather(start..end, &mut buffer)?;
        visit(start, buffer.rows())?;
        start = end;
    }
    Ok(())
}

/// Visit rows of a slice.
pub(super) fn scan_view(
    view: Rows<'_>,
    range: Range<RowId>,
    visit: &mut dyn FnMut(RowId, Rows<'_>) -> Result<()>,
) -> Result<()> {
    check_range(&range, view.len() as u64)?;
    let mut start = range.start as usize;
    let end = range.end as usize;
    while start < end {
        let stop = end.min(start + scan_rows(view.dim()));
        visit(start as RowId, view.slice(start, stop))?;
        start = stop;
    }
    Ok(())
}

pub(super) fn check_range(range: &Range<RowId>, len: u64) -> Result<()> {
    if range.end > len {
        return Err(no_such_row(range.end - 1, len));
    }
    Ok(())
}

pub(super) fn no_such_row(row: RowId, len: u64) -> Error {
    Error::Row {
        row,
        problem: format!("there is no such row: the corpus has {len} rows"),
    }
}

/// Refuse NaN and infinite values, naming the first cell.
pub fn check_finite(corpus: &dyn Corpus) -> Result<()> {
    corpus.scan(0..corpus.len(), &mut check_rows)
}

/// An error that names the first number of a mapped row which left f32: nobody can compare such a vector.
pub fn check_mapped(row: u64, values: &[f32]) -> Result<()> {
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(column) => Err(Error::Cell {
            row,
            column,
            problem: format!("is {} after the map", values[column]),
        }),
    }
}

/// Refuse NaN and infinite values of rows that begin with number `first`.
pub(crate) fn check_rows(first: RowId, rows: Rows<'_>) -> Result<()> {
    for (index, row) in rows.iter().enumerate() {
        if row.iter().any(|v| !v.is_finite()) {
            let column = row.iter().position(|v| !v.is_finite()).unwrap_or(0);
            return Err(Error::Cell {
                row: first + index as u64,
                column,
                problem: format!("expected a finite number, but found {}", row[column]),
            });
        }
    }
    Ok(())
}

/// A digest over the decoded values: the same for the same vectors whatever file they came from.
pub fn fingerprint(corpus: &dyn Corpus) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&corpus.len().to_le_bytes());
    hasher.update(&(corpus.dim() as u64).to_le_bytes());
    corpus.scan(0..corpus.len(), &mut |_, rows| {
        hasher.update(bytemuck::cast_slice(rows.values()));
        Ok(())
    })?;
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus() -> MemoryCorpus {
        let values = (0..3000).map(|v| v as f32).collect();
        MemoryCorpus::new(RowBuf::from_values(values, 2).unwrap()).unwrap()
    }

    #[test]
    fn subset_reads_like_a_corpus() {
        let all = corpus();
        let part = Subset::new(&all, (0..1500).rev().collect()).unwrap();
        let mut out = RowBuf::empty(2);
        part.gather(&[0, 1], &mut out).unwrap();
        assert_eq!(out.values(), &[2998.0, 2999.0, 2996.0, 2997.0]);
        let mut seen = Vec::new();
        part.scan(3..1499, &mut |first, rows| {
            seen.push((first, rows.len()));
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, vec![(3, 1024), (1027, 472)]);
        let part_of_part = Subset::new(&part, vec![7]).unwrap();
        assert_eq!(part_of_part.origin(0), 1492);
        assert!(part.gather(&[1500], &mut out).is_err());
        assert!(Subset::new(&all, vec![1500]).is_err());
    }

    #[test]
    fn non_finite_values_are_named() {
        let rows = RowBuf::from_values(vec![0.0, 1.0, f32::INFINITY, 2.0], 2).unwrap();
        let error = MemoryCorpus::new(rows).unwrap_err().to_string();
        assert_eq!(
            error,
            "row 1, column 0: expected a finite number, but found inf"
        );
    }
}
