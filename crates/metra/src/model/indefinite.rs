//! A squared distance whose matrix may have negative eigenvalues: (q − x)ᵀ M (q − x) with
//! M = PᵀP − NᵀN, as raw KISSME gives it; and, where a metric has them, squares of sums beside those of
//! differences, (q + x)ᵀ U (q + x), with which a threshold depends on where the two lie (SVMML).
//!
//! No Euclidean space holds it, but an inner product does. With z = A x − b, where A has a row for every
//! direction, a direction of differences adds s (z_q − z)² = s z_q² − 2 s z_q z + s z² and one of sums
//! s (z_q + z)² = s z_q² + 2 s z_q z + s z², s = ±1. With S the signs s, and C those signs but turned round
//! for sums, the dissimilarity is
//!
//! z_qᵀ S z_q − 2 (C z_q) · z + zᵀ S z,
//!
//! so that −⟨(2 C z_q, −1, −z_qᵀ S z_q), (z, zᵀ S z, 1)⟩ is the dissimilarity itself, which thresholds
//! need. For an order alone the query's own term can go: see the plans.

use super::{LowRank, Side};
use crate::linalg::{RowBuf, Rows};
use crate::{Error, Result};

/// How directions count: those of differences first, then those of sums, and of each those for the
/// dissimilarity before those against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signs {
    differences: [usize; 2],
    sums: [usize; 2],
}

impl Signs {
    /// So many directions of differences for and against the dissimilarity, and so many of sums.
    pub fn new(differences: [usize; 2], sums: [usize; 2]) -> Self {
        Signs { differences, sums }
    }

    /// A plain squared distance.
    pub(crate) fn definite(directions: usize) -> Self {
        Signs::new([directions, 0], [0, 0])
    }

    /// Number of directions.
    pub fn len(&self) -> usize {
        self.differences.iter().chain(&self.sums).sum()
    }

    /// Whether there is no direction.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Directions of differences for and against the dissimilarity.
    pub fn differences(&self) -> [usize; 2] {
        self.differences
    }

    /// Directions of sums for and against it.
    pub fn sums(&self) -> [usize; 2] {
        self.sums
    }

    /// Whether it is a plain squared distance.
    pub(crate) fn is_definite(&self) -> bool {
        self.differences[1] == 0 && self.sums == [0, 0]
    }

    /// Whether a direction is one of sums, which have no free origin.
    pub(crate) fn is_sum(&self, direction: usize) -> bool {
        direction >= self.differences.iter().sum::<usize>()
    }

    /// S: 1 or −1, the sign of a direction's squares.
    pub fn own(&self, direction: usize) -> f64 {
        let (start, positive) = if self.is_sum(direction) {
            (self.differences.iter().sum(), self.sums[0])
        } else {
            (0, self.differences[0])
        };
        if direction - start < positive {
            1.0
        } else {
            -1.0
        }
    }

    /// C: the sign by which a query's number counts.
    pub fn crossed(&self, direction: usize) -> f64 {
        match self.is_sum(direction) {
            true => -self.own(direction),
            false => self.own(direction),
        }
    }
}

/// The map of an indefinite squared distance into vectors compared by the inner product.
#[derive(Debug, Clone, PartialEq)]
pub struct Indefinite {
    map: LowRank,
    signs: Signs,
}

impl Indefinite {
    /// The map z = A x − b, the first `positive` rows of which count for the distance and the others
    /// against it.
    pub fn new(map: LowRank, positive: usize) -> Result<Self> {
        let Some(negative) = map.output_dim().checked_sub(positive) else {
            return Err(Error::shape(
                "rows that count for the distance",
                format!("at most {} (all rows of the map)", map.output_dim()),
                positive,
            ));
        };
        Self::with_signs(map, Signs::new([positive, negative], [0, 0]))
    }

    /// The map z = A x − b with the signs of all its rows.
    pub fn with_signs(map: LowRank, signs: Signs) -> Result<Self> {
        if signs.len() != map.output_dim() {
            return Err(Error::shape("signs of rows", map.output_dim(), signs.len()));
        }
        Ok(Indefinite { map, signs })
    }

    /// z = A x − b, the same for queries and items.
    pub fn map(&self) -> &LowRank {
        &self.map
    }

    /// How its rows count.
    pub fn signs(&self) -> Signs {
        self.signs
    }

    /// Numbers in a mapped vector: those of z and one for each side.
    pub fn output_dim(&self) -> usize {
        self.map.output_dim() + 2
    }

    /// Map rows of one side.
    pub(crate) fn apply(&self, side: Side, rows: Rows<'_>, out: &mut RowBuf) -> Result<()> {
        let mut mapped = RowBuf::empty(1);
        self.map.apply(rows, &mut mapped)?;
        let rank = mapped.dim();
        out.reset(mapped.len(), rank + 2);
        for (number, z) in mapped.rows().iter().enumerate() {
            let own = signed_square(z, self.signs) as f32;
            let (front, last) = out.row_mut(number).split_at_mut(rank);
            front.copy_from_slice(z);
            match side {
                Side::Item => last.copy_from_slice(&[own, 1.0]),
                Side::Query => {
                    turn(front, self.signs);
                    front.iter_mut().for_each(|value| *value *= 2.0);
                    last.copy_from_slice(&[-1.0, -own]);
                }
            }
        }
        Ok(())
    }
}

/// C z, in place.
pub(super) fn turn(z: &mut [f32], signs: Signs) {
    for (direction, value) in z.iter_mut().enumerate() {
        if signs.crossed(direction) < 0.0 {
            *value = -*value;
        }
    }
}

/// zᵀ S z.
pub(super) fn signed_square(z: &[f32], signs: Signs) -> f64 {
    let squares = z.iter().enumerate();
    squares
        .map(|(direction, value)| signs.own(direction) * f64::from(*value).powi(2))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Batch;
    use crate::model::{Chain, Map, Space};

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
    fn squares_of_sums_by_hand() {
        // z = (x₁, x₂, x₁, x₂): (q₁ − x₁)² − (q₂ − x₂)² + (q₁ + x₁)² − (q₂ + x₂)².
        let weights = vec![1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0];
        let map = LowRank::new(RowBuf::from_values(weights, 2).unwrap(), None).unwrap();
        let signs = Signs::new([1, 1], [1, 1]);
        let map = Map::Indefinite(Indefinite::with_signs(map, signs).unwrap());
        let chain = Chain::new(2, Vec::new(), map, Space::InnerProduct).unwrap();
        let (q, x) = ([4.0, 2.0], [1.0, 1.0, -4.0, 3.0]);
        let queries = Batch::new(Rows::new(&q, 2).unwrap());
        let items = Batch::new(Rows::new(&x, 2).unwrap());
        let mut out = Vec::new();
        chain.dissimilarity(&queries, &items, &mut out).unwrap();
        // 9 − 1 + 25 − 9 and 64 − 1 + 0 − 25.
        assert_eq!(out, vec![24.0, 38.0]);
        chain.dissimilarity(&items, &queries, &mut out).unwrap();
        assert_eq!(out, vec![24.0, 38.0]);
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
