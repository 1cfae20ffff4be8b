//! The map that a method learns, from preprocessed vectors to the space in which they are compared.

use super::{Indefinite, LowRank, Side};
use crate::linalg::{Kernel, RowBuf, Rows, gram};
use crate::{Error, Result};

/// What comes after preprocessing.
#[derive(Debug, Clone, PartialEq)]
pub enum Map {
    /// Nothing: the vectors as they are.
    Identity,
    /// A low-rank map, the same for queries and items.
    LowRank(LowRank),
    /// Every column times a factor of its own.
    Diagonal(Vec<f32>),
    /// A map for queries and another one for items, of the same rank: with the inner product a
    /// bilinear similarity.
    Bilinear {
        /// The map of queries.
        query: LowRank,
        /// The map of items.
        item: LowRank,
    },
    /// A linear map of the kernel values with landmark vectors.
    Kernel(KernelMap),
    /// A squared distance whose matrix may have negative eigenvalues.
    Indefinite(Indefinite),
}

/// z = A k(x) − b, where k(x) are the kernel values of x with the landmarks.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelMap {
    kernel: Kernel,
    landmarks: RowBuf,
    map: LowRank,
}

impl KernelMap {
    /// The kernel, the landmarks (rows of the training set) and the map of kernel values.
    pub fn new(kernel: Kernel, landmarks: RowBuf, map: LowRank) -> Result<Self> {
        if landmarks.len() != map.input_dim() {
            return Err(Error::shape(
                "landmarks of the kernel map",
                map.input_dim(),
                landmarks.len(),
            ));
        }
        kernel.check()?;
        if let Some(at) = landmarks.values().iter().position(|v| !v.is_finite()) {
            return Err(Error::Cell {
                row: (at / landmarks.dim()) as u64,
                column: at % landmarks.dim(),
                problem: format!("the landmark has {}", landmarks.values()[at]),
            });
        }
        kernel.check_rows(0, landmarks.rows())?;
        Ok(KernelMap {
            kernel,
            landmarks,
            map,
        })
    }

    /// The kernel.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The landmarks: vectors of the training set, which a model file with this map holds.
    pub fn landmarks(&self) -> Rows<'_> {
        self.landmarks.rows()
    }

    /// The map of kernel values.
    pub fn map(&self) -> &LowRank {
        &self.map
    }

    /// Map rows; `first` is the number of the first row, for error messages.
    pub(crate) fn apply(&self, first: u64, rows: Rows<'_>, out: &mut RowBuf) -> Result<()> {
        self.kernel.check_rows(first, rows)?;
        let mut values = RowBuf::zeros(rows.len(), self.landmarks.len());
        gram(
            self.kernel,
            rows,
            self.landmarks.rows(),
            values.values_mut(),
        );
        self.map.apply(values.rows(), out)
    }
}

impl Map {
    /// Dimension of the vectors of a side; `None` for the identity, which takes any.
    pub(crate) fn input_dim(&self, side: Side) -> Option<usize> {
        match self {
            Map::Identity => None,
            Map::LowRank(map) => Some(map.input_dim()),
            Map::Diagonal(factors) => Some(factors.len()),
            Map::Bilinear { query, item } => Some(match side {
                Side::Query => query.input_dim(),
                Side::Item => item.input_dim(),
            }),
            Map::Kernel(map) => Some(map.landmarks.dim()),
            Map::Indefinite(map) => Some(map.map().input_dim()),
        }
    }

    /// Numbers in a mapped vector of `input` numbers.
    pub fn output_dim(&self, input: usize) -> usize {
        match self {
            Map::Identity | Map::Diagonal(_) => input,
            Map::LowRank(map) => map.output_dim(),
            Map::Bilinear { query, .. } => query.output_dim(),
            Map::Kernel(map) => map.map.output_dim(),
            Map::Indefinite(map) => map.output_dim(),
        }
    }

    /// Whether queries are mapped otherwise than items.
    pub(super) fn has_two_sides(&self) -> bool {
        matches!(self, Map::Bilinear { .. } | Map::Indefinite(_))
    }

    /// An error if the parts do not fit each other or prepared vectors of these dimensions.
    pub(super) fn check(&self, query_dim: usize, item_dim: usize) -> Result<()> {
        if let Map::Bilinear { query, item } = self
            && query.output_dim() != item.output_dim()
        {
            let expected = format!("{} (as of queries)", query.output_dim());
            let what = "output of the map of items";
            return Err(Error::shape(what, expected, item.output_dim()));
        }
        if let Map::Diagonal(factors) = self
            && !factors.iter().all(|f| f.is_finite())
        {
            return Err(Error::Data("the map has values that are not finite".into()));
        }
        if !matches!(self, Map::Bilinear { .. }) && query_dim != item_dim {
            let what = "dimension of prepared queries, which share a map with the items";
            return Err(Error::shape(what, item_dim, query_dim));
        }
        for (side, found) in [(Side::Query, query_dim), (Side::Item, item_dim)] {
            let expected = self.input_dim(side).unwrap_or(found);
            if found != expected {
                let what = match (side, query_dim == item_dim) {
                    (_, true) => "dimension of the vectors before the map",
                    (Side::Query, _) => "dimension of the queries before the map",
                    (Side::Item, _) => "dimension of the items before the map",
                };
                return Err(Error::shape(what, expected, found));
            }
        }
        Ok(())
    }

    /// This map, then a rotation of mapped vectors. Both sides are rotated, so that what they are compared by
    /// stays; the offset of a rotation is for spaces in which it changes nothing or is wanted.
    pub(crate) fn then(&self, rotation: &LowRank) -> Result<Map> {
        Ok(match self {
            Map::Identity => Map::LowRank(rotation.clone()),
            Map::LowRank(map) => Map::LowRank(map.then(rotation)?),
            Map::Diagonal(factors) => {
                let mut weights = RowBuf::zeros(factors.len(), factors.len());
                for (place, factor) in factors.iter().enumerate() {
                    weights.row_mut(place)[place] = *factor;
                }
                Map::LowRank(LowRank::new(weights, None)?.then(rotation)?)
            }
            Map::Bilinear { query, item } => Map::Bilinear {
                query: query.then(rotation)?,
                item: item.then(rotation)?,
            },
            Map::Kernel(map) => Map::Kernel(KernelMap {
                kernel: map.kernel,
                landmarks: map.landmarks.clone(),
                map: map.map.then(rotation)?,
            }),
            Map::Indefinite(_) => {
                let expected = "none for indefinite metrics";
                return Err(Error::parameter("code", expected, "a rotation"));
            }
        })
    }

    /// Map rows of one side; `first` is the number of the first row, for error messages.
    pub(crate) fn apply(
        &self,
        first: u64,
        side: Side,
        rows: Rows<'_>,
        out: &mut RowBuf,
    ) -> Result<()> {
        match (self, side) {
            (Map::Identity, _) => {
                out.clear(rows.dim());
                out.extend(rows);
                Ok(())
            }
            (Map::Diagonal(factors), _) => {
                out.clear(rows.dim());
                out.extend(rows);
                for row in out.values_mut().chunks_exact_mut(factors.len()) {
                    for (value, factor) in row.iter_mut().zip(factors) {
                        *value *= factor;
                    }
                }
                Ok(())
            }
            (Map::LowRank(map), _)
            | (Map::Bilinear { query: map, .. }, Side::Query)
            | (Map::Bilinear { item: map, .. }, Side::Item) => map.apply(rows, out),
            (Map::Kernel(map), _) => map.apply(first, rows, out),
            (Map::Indefinite(map), _) => map.apply(side, rows, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn low_rank(values: &[f32], dim: usize, offset: Option<Vec<f32>>) -> LowRank {
        LowRank::new(RowBuf::from_values(values.to_vec(), dim).unwrap(), offset).unwrap()
    }

    #[test]
    fn each_side_has_its_map() {
        let map = Map::Bilinear {
            query: low_rank(&[1.0, 0.0], 2, None),
            item: low_rank(&[0.0, 3.0], 2, Some(vec![1.0])),
        };
        let values = [5.0, 7.0];
        let rows = Rows::new(&values, 2).unwrap();
        let mut out = RowBuf::empty(1);
        map.apply(0, Side::Query, rows, &mut out).unwrap();
        assert_eq!(out.values(), &[5.0]);
        map.apply(0, Side::Item, rows, &mut out).unwrap();
        assert_eq!(out.values(), &[20.0]);
        let uneven = Map::Bilinear {
            query: low_rank(&[1.0, 0.0], 2, None),
            item: low_rank(&[1.0, 0.0, 0.0, 1.0], 2, None),
        };
        assert!(
            uneven
                .check(2, 2)
                .unwrap_err()
                .to_string()
                .contains("output")
        );
    }

    #[test]
    fn kernel_map_by_hand() {
        // Histogram intersection with landmarks (1, 0) and (.5, .5): k((.25, .75)) = (.25, .75).
        let landmarks = RowBuf::from_values(vec![1.0, 0.0, 0.5, 0.5], 2).unwrap();
        let map = KernelMap::new(
            Kernel::Intersection,
            landmarks,
            low_rank(&[2.0, 4.0], 2, Some(vec![0.5])),
        );
        let values = [0.25, 0.75];
        let mut out = RowBuf::empty(1);
        Map::Kernel(map.unwrap())
            .apply(0, Side::Item, Rows::new(&values, 2).unwrap(), &mut out)
            .unwrap();
        assert_eq!(out.values(), &[2.0 * 0.25 + 4.0 * 0.75 - 0.5]);
    }
}
