//! Fits of queries and items that are vectors of two models, by methods that learn one map.
//!
//! A query x and an item y become (x, 0) and (0, y), each side centred and scaled to unit mean squared length. One map
//! L = (L_x L_y) of such vectors is a map for each side, L_x x and L_y y, into a space that they share; so every loss over
//! pairs of mapped vectors serves as it is.

use crate::data::{Corpus, CorpusRef, StackedCorpus};
use crate::dataset::Dataset;
use crate::execute::spread;
use crate::linalg::RowBuf;
use crate::model::{LowRank, Map};
use crate::{Error, Result};

/// How vectors of both sides are stacked.
pub(super) struct Stacking {
    queries: StackedSide,
    items: StackedSide,
}

/// x ↦ (x − mean) · factor, at the coordinates from `first` on.
struct StackedSide {
    mean: Vec<f64>,
    factor: f64,
    first: usize,
}

impl Stacking {
    pub(super) fn new(data: &Dataset<'_>) -> Result<Self> {
        Ok(Stacking {
            queries: StackedSide::new("queries", data.queries(), 0)?,
            items: StackedSide::new("items", data.items(), data.queries().dim())?,
        })
    }

    /// The same data with stacked vectors.
    pub(super) fn stacked<'b>(&self, data: &'b Dataset<'_>) -> Result<Dataset<'b>> {
        let first = self.items.first;
        let dim = first + self.items.mean.len();
        let stacked = data.with_vectors(|of_queries, corpus, _| {
            let side = match of_queries {
                true => &self.queries,
                false => &self.items,
            };
            let places = (side.first, dim);
            let stacked = StackedCorpus::new(corpus, places, &side.mean, side.factor);
            Ok(CorpusRef::Owned(Box::new(stacked)))
        })?;
        Ok(stacked.with_stacked(first))
    }

    /// The map of the vectors of each side.
    pub(super) fn split(&self, map: &Map) -> Result<Map> {
        let (query, item) = match map {
            Map::LowRank(map) => (map, map),
            Map::Bilinear { query, item } => (query, item),
            _ => {
                let expected = "one that learns a linear map, for vectors of two models";
                return Err(Error::parameter("method", expected, "another map"));
            }
        };
        // Dimensions that one side never fills add the same to all scores of a query.
        let kept: Vec<usize> = (0..query.output_dim())
            .filter(|row| self.queries.fills(query, *row) && self.items.fills(item, *row))
            .collect();
        let kept = match map {
            Map::Bilinear { .. } if !kept.is_empty() => kept,
            _ => (0..query.output_dim()).collect(),
        };
        Ok(Map::Bilinear {
            query: self.queries.map(query, &kept)?,
            item: self.items.map(item, &kept)?,
        })
    }
}

impl StackedSide {
    fn new(what: &str, corpus: &dyn Corpus, first: usize) -> Result<Self> {
        let found = spread(corpus)?;
        let length = found.deviation.iter().map(|d| d * d).sum::<f64>().sqrt();
        if !(length.is_finite() && length > 0.0) {
            return Err(Error::Data(format!(
                "all {what} are equal, or their values are too large: nothing can be learned"
            )));
        }
        Ok(StackedSide {
            mean: found.mean,
            factor: 1.0 / length,
            first,
        })
    }

    /// The weights of a row of a map of stacked vectors that belong to this side.
    fn weights<'m>(&self, map: &'m LowRank, row: usize) -> &'m [f32] {
        &map.weights().row(row)[self.first..self.first + self.mean.len()]
    }

    fn fills(&self, map: &LowRank, row: usize) -> bool {
        self.weights(map, row).iter().any(|weight| *weight != 0.0)
    }

    /// Some rows of a map of stacked vectors, as a map of this side's own.
    fn map(&self, map: &LowRank, rows: &[usize]) -> Result<LowRank> {
        let mut weights = RowBuf::zeros(rows.len(), self.mean.len());
        let mut offset = Vec::with_capacity(rows.len());
        for (place, row) in rows.iter().enumerate() {
            let own = map.offset().map_or(0.0, |offset| f64::from(offset[*row]));
            let mut moved = own;
            let targets = weights.row_mut(place).iter_mut();
            for ((target, weight), mean) in targets.zip(self.weights(map, *row)).zip(&self.mean) {
                let scaled = f64::from(*weight) * self.factor;
                *target = scaled as f32;
                moved += scaled * mean;
            }
            offset.push(moved as f32);
        }
        LowRank::new(weights, Some(offset))
    }
}
