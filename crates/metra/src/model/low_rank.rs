//! A low-rank linear map z = W x − b, one for queries and items alike: with Euclidean comparison
//! it is a Mahalanobis distance with M = WᵀW.

use crate::linalg::{RowBuf, Rows, map_rows, product, rows_from};
use crate::{Error, Result};
use faer::Mat;

/// The map z = W x − b.
#[derive(Debug, Clone, PartialEq)]
pub struct LowRank {
    weights: RowBuf,
    offset: Option<Vec<f32>>,
}

impl LowRank {
    /// The map with these weights (rank × dim) and, where embedded vectors are to be centred, the
    /// offset b. All must be finite.
    pub fn new(weights: RowBuf, offset: Option<Vec<f32>>) -> Result<Self> {
        if weights.is_empty() {
            return Err(Error::shape("rows of the map", "at least 1", 0));
        }
        if let Some(offset) = &offset
            && offset.len() != weights.len()
        {
            return Err(Error::shape(
                "offset of the map",
                weights.len(),
                offset.len(),
            ));
        }
        let finite = weights.values().iter().all(|v| v.is_finite())
            && offset.iter().flatten().all(|v| v.is_finite());
        if !finite {
            return Err(Error::Data("the map has values that are not finite".into()));
        }
        Ok(LowRank { weights, offset })
    }

    /// The map W (x − mean), with the offset worked out in f64.
    pub(crate) fn centred(weights: RowBuf, mean: &[f64]) -> Result<Self> {
        let offset = weights
            .rows()
            .iter()
            .map(|row| {
                row.iter()
                    .zip(mean)
                    .map(|(w, m)| f64::from(*w) * m)
                    .sum::<f64>() as f32
            })
            .collect();
        Self::new(weights, Some(offset))
    }

    /// W, rank × dim.
    pub fn weights(&self) -> Rows<'_> {
        self.weights.rows()
    }

    /// b.
    pub fn offset(&self) -> Option<&[f32]> {
        self.offset.as_deref()
    }

    /// Numbers in an input vector.
    pub fn input_dim(&self) -> usize {
        self.weights.dim()
    }

    /// Numbers in a mapped vector.
    pub fn output_dim(&self) -> usize {
        self.weights.len()
    }

    /// This map, then another one.
    pub(crate) fn then(&self, next: &LowRank) -> Result<Self> {
        let wide = |rows: Rows<'_>| {
            Mat::from_fn(rows.len(), rows.dim(), |row, column| {
                f64::from(rows.row(row)[column])
            })
        };
        let weights = product(wide(next.weights()).as_ref(), wide(self.weights()).as_ref());
        let weights = rows_from(weights.as_ref());
        let offset = |row: usize| {
            let own = self.offset.iter().flatten().zip(next.weights.row(row));
            let own: f64 = own.map(|(b, w)| f64::from(*b) * f64::from(*w)).sum();
            let after = next
                .offset
                .as_ref()
                .map_or(0.0, |offset| f64::from(offset[row]));
            (own + after) as f32
        };
        let has_offset = self.offset.is_some() || next.offset.is_some();
        let offset = has_offset.then(|| (0..next.output_dim()).map(offset).collect());
        Self::new(weights, offset)
    }

    /// Map rows.
    pub(crate) fn apply(&self, rows: Rows<'_>, out: &mut RowBuf) -> Result<()> {
        map_rows(rows, self.weights.rows(), out)?;
        if let Some(offset) = &self.offset {
            for row in out.values_mut().chunks_exact_mut(offset.len()) {
                for (value, offset) in row.iter_mut().zip(offset) {
                    *value -= offset;
                }
            }
        }
        Ok(())
    }
}
