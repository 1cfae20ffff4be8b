//! A squared distance whose matrix may have negative eigenvalues: (q − x)ᵀ M (q − x) with
//! M = PᵀP − NᵀN, as raw KISSME and SVMML give it.
//!
//! No Euclidean space holds it, but an inner product does. With z = A x − b, where A has the rows of P
//! and then those of N, and S the signs of its rows,
//!
//! (q − x)ᵀ M (q − x) = z_qᵀ S z_q − 2 (S z_q) · z + zᵀ S z,
//!
//! so that −⟨(2 S z_q, −1, −z_qᵀ S z_q), (z, zᵀ S z, 1)⟩ is the dissimilarity itself, which thresholds
//! need. For an order alone the query's own term can go: see the plans.

use super::{LowRank, Side};
use crate::linalg::{RowBuf, Rows};
use crate::{Error, Result};

/// The map of an indefinite squared distance into vectors compared by the inner product.
#[derive(Debug, Clone, PartialEq)]
pub struct Indefinite {
    map: LowRank,
    positive: usize,
}

impl Indefinite {
    /// The map z = A x − b, the first `positive` rows of which count for the distance and the others
    /// against it.
    pub fn new(map: LowRank, positive: usize) -> Result<Self> {
        if positive > map.output_dim() {
            return Err(Error::shape(
                "rows that count for the distance",
                format!("at most {} (all rows of the map)", map.output_dim()),
                positive,
            ));
        }
        Ok(Indefinite { map, positive })
    }

    /// z = A x − b, the same for queries and items.
    pub fn map(&self) -> &LowRank {
        &self.map
    }

    /// How many of its rows count for the distance; the others count against it.
    pub fn positive(&self) -> usize {
        self.positive
    }

    /// Numbers in a mapped vector: those of z and one for each side.
    pub fn output_dim(&self) -> usize {
        self.map.output_dim() + 2
    }

    /// Map rows of one side.
    pub fn apply(&self, side: Side, rows: Rows<'_>, out: &mut RowBuf) -> Result<()> {
        let mut mapped = RowBuf::empty(1);
        self.map.apply(rows, &mut mapped)?;
        let rank = mapped.dim();
        out.reset(mapped.len(), rank + 2);
        for (number, z) in mapped.rows().iter().enumerate() {
            let own = signed_square(z, self.positive) as f32;
            let (front, last) = out.row_mut(number).split_at_mut(rank);
            front.copy_from_slice(z);
            match side {
                Side::Item => last.copy_from_slice(&[own, 1.0]),
                Side::Query => {
                    turn(front, self.positive);
                    front.iter_mut().for_each(|value| *value *= 2.0);
                    last.copy_from_slice(&[-1.0, -own]);
                }
            }
        }
        Ok(())
    }
}

/// S z, in place.
pub(super) fn turn(z: &mut [f32], positive: usize) {
    for value in z.iter_mut().skip(positive) {
        *value = -*value;
    }
}

/// zᵀ S z.
pub(super) fn signed_square(z: &[f32], positive: usize) -> f64 {
    let square = |values: &[f32]| values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>();
    let (counting_for, against) = z.split_at(positive.min(z.len()));
    square(counting_for) - square(against)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Batch;
    use crate::metric::{Chain, Map, Metric, Space};

    /// M = diag(4, −9), about (1, 1).
    fn chain(space: Space) -> Result<Chain> {
        let weights = RowBuf::from_values(vec![2.0, 0.0, 0.0, 3.0], 2).unwrap();
        let map = LowRank::new(weights, Some(vec![2.0, 3.0])).unwrap();
        let map = Map::Indefinite(Indefinite::new(map, 1).unwrap());
        Chain::new(2, Vec::new(), map, space)
    }

    #[test]
    fn the_distance_by_hand() {
        // q − x = (3, 1), (0, 2), (0, 0): 4·9 − 9·1 = 27, −9·4 = −36, 0.
        let (q, x) = ([4.0, 2.0], [1.0, 1.0, 4.0, 0.0, 4.0, 2.0]);
        let queries = Batch::new(Rows::new(&q, 2).unwrap());
        let items = Batch::new(Rows::new(&x, 2).unwrap());
        let chain = chain(Space::InnerProduct).unwrap();
        let mut out = Vec::new();
        chain.dissimilarity(&queries, &items, &mut out).unwrap();
        assert_eq!(out, vec![27.0, -36.0, 0.0]);
        // It is symmetric, although the two sides have different maps.
        chain.dissimilarity(&items, &queries, &mut out).unwrap();
        assert_eq!(out, vec![27.0, -36.0, 0.0]);
    }

    #[test]
    fn only_the_inner_product_compares_it() {
        for space in [Space::SquaredL2, Space::Cosine] {
            let error = chain(space).unwrap_err().to_string();
            assert!(error.contains("indefinite"), "{error}");
        }
        let map = LowRank::new(RowBuf::from_values(vec![1.0], 1).unwrap(), None).unwrap();
        assert!(Indefinite::new(map, 2).is_err());
    }
}
