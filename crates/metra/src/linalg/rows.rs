//! Row-major f32 matrices, borrowed and owned: the type in which vectors are passed.

use crate::{Error, Result};
use faer::{MatMut, MatRef};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A borrowed matrix of f32 in row-major order without gaps.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    values: &'a [f32],
    dim: usize,
}

impl<'a> Rows<'a> {
    /// Rows of `dim` numbers each. The length of `values` must be a multiple of `dim`.
    pub fn new(values: &'a [f32], dim: usize) -> Result<Self> {
        if dim == 0 {
            return Err(Error::shape("dimension of a vector", "at least 1", 0));
        }
        if !values.len().is_multiple_of(dim) {
            return Err(Error::shape(
                "number of values",
                format!("a multiple of the dimension {dim}"),
                values.len(),
            ));
        }
        Ok(Rows { values, dim })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.dim
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Numbers in a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// All values, row after row.
    pub fn values(&self) -> &'a [f32] {
        self.values
    }

    /// One row.
    pub fn row(&self, index: usize) -> &'a [f32] {
        &self.values[index * self.dim..(index + 1) * self.dim]
    }

    /// Rows `start..end`.
    pub fn slice(&self, start: usize, end: usize) -> Rows<'a> {
        Rows {
            values: &self.values[start * self.dim..end * self.dim],
            dim: self.dim,
        }
    }

    /// A copy of some dimensions of all rows.
    pub(crate) fn columns(&self, range: Range<usize>, out: &mut RowBuf) {
        out.reset(self.len(), range.len());
        let targets = out.values_mut().chunks_exact_mut(range.len().max(1));
        for (target, row) in targets.zip(self.iter()) {
            target.copy_from_slice(&row[range.clone()]);
        }
    }

    /// The rows one by one.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [f32]> {
        self.values.chunks_exact(self.dim)
    }

    /// The mean of every column, 0 where there is no row.
    pub(crate) fn mean(&self) -> Vec<f64> {
        let mut mean = vec![0.0; self.dim];
        for row in self.iter() {
            for (mean, value) in mean.iter_mut().zip(row) {
                *mean += f64::from(*value);
            }
        }
        let count = self.len().max(1) as f64;
        mean.iter_mut().for_each(|mean| *mean /= count);
        mean
    }

    /// The same numbers as a faer matrix (rows × dim).
    pub(crate) fn mat(&self) -> MatRef<'a, f32> {
        MatRef::from_row_major_slice(self.values, self.len(), self.dim)
    }
}

/// An owned matrix of f32 in row-major order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Parts")]
pub struct RowBuf {
    values: Vec<f32>,
    dim: usize,
}

/// Numbers and dimension as they are read, before they are known to fit.
#[derive(Deserialize)]
struct Parts {
    values: Vec<f32>,
    dim: usize,
}

impl TryFrom<Parts> for RowBuf {
    type Error = Error;

    fn try_from(parts: Parts) -> Result<Self> {
        RowBuf::from_values(parts.values, parts.dim)
    }
}

impl RowBuf {
    /// No rows yet, of `dim` numbers each. `dim` 0 is taken as 1: a vector has at least a number.
    pub fn empty(dim: usize) -> Self {
        RowBuf {
            values: Vec::new(),
            dim: dim.max(1),
        }
    }

    /// `len` rows of zeros.
    pub fn zeros(len: usize, dim: usize) -> Self {
        let dim = dim.max(1);
        RowBuf {
            values: vec![0.0; len * dim],
            dim,
        }
    }

    /// A square of zeros with ones on its diagonal.
    pub(crate) fn identity(dim: usize) -> Self {
        let mut identity = RowBuf::zeros(dim, dim);
        for index in 0..dim {
            identity.row_mut(index)[index] = 1.0;
        }
        identity
    }

    /// Take `values` as rows of `dim` numbers.
    pub fn from_values(values: Vec<f32>, dim: usize) -> Result<Self> {
        Rows::new(&values, dim)?;
        Ok(RowBuf { values, dim })
    }

    /// The rows, borrowed.
    pub fn rows(&self) -> Rows<'_> {
        Rows {
            values: &self.values,
            dim: self.dim,
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.dim
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Numbers in a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// One row.
    pub fn row(&self, index: usize) -> &[f32] {
        &self.values[index * self.dim..(index + 1) * self.dim]
    }

    /// One row, to be changed.
    pub fn row_mut(&mut self, index: usize) -> &mut [f32] {
        &mut self.values[index * self.dim..(index + 1) * self.dim]
    }

    /// All values, row after row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// All values, to be changed.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// The values themselves.
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }

    /// Make this `len` rows of `dim` numbers. Old numbers may remain and are meant to be
    /// overwritten; memory is reused.
    pub fn reset(&mut self, len: usize, dim: usize) {
        self.dim = dim.max(1);
        self.values.resize(len * self.dim, 0.0);
    }

    /// Drop all rows and take rows of `dim` numbers from now on.
    pub fn clear(&mut self, dim: usize) {
        self.dim = dim.max(1);
        self.values.clear();
    }

    /// Append rows of the same dimension.
    pub fn extend(&mut self, rows: Rows<'_>) {
        debug_assert_eq!(rows.dim(), self.dim);
        self.values.extend_from_slice(rows.values());
    }

    /// The same numbers as a faer matrix that can be written to.
    pub(crate) fn mat_mut(&mut self) -> MatMut<'_, f32> {
        let len = self.len();
        MatMut::from_row_major_slice_mut(&mut self.values, len, self.dim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_must_fill_the_matrix() {
        assert!(Rows::new(&[1.0, 2.0, 3.0], 2).is_err());
        assert!(Rows::new(&[], 0).is_err());
        let rows = Rows::new(&[1.0, 2.0, 3.0, 4.0], 2).unwrap();
        assert_eq!(rows.row(1), &[3.0, 4.0]);
        assert_eq!(rows.mat()[(1, 0)], 3.0);
    }
}
