//! All cosines between the anchors and the items of a batch, and the way of a loss's derivatives
//! back through them, as matrix products.

use super::batch::Kind;
use crate::linalg::{RowBuf, Rows, cross, mix};
use faer::{Accum, MatRef};
use rayon::prelude::*;

/// Anchors that one task handles. Fixed, so that results do not depend on the number of threads.
const BLOCK: usize = 64;
/// Vectors shorter than this (where relevant pairs are at mean distance 1 before the map) have no
/// direction.
const ZERO: f32 = 1e-6;

/// A loss that is a sum over anchors of a function of their cosines with all items.
pub(super) trait PairLoss: Sync {
    /// What one anchor adds to the loss of the batch. Its cosines are replaced by the derivatives
    /// of the loss by them.
    fn anchor(&self, cosines: &mut [f32], kinds: &[Kind], counts: Counts) -> f64;
}

/// By what a loss may divide to be a mean.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    /// Anchors of the batch.
    pub(super) anchors: usize,
    /// Those that have a positive in the batch.
    pub(super) with_positives: usize,
}

/// The loss with its derivatives by the anchors and by the items, all of which are unit vectors.
pub(super) fn pull(
    loss: &dyn PairLoss,
    anchors: Rows<'_>,
    items: Rows<'_>,
    kinds: &[Kind],
) -> (f64, RowBuf, RowBuf) {
    let (rank, width) = (items.dim(), items.len().max(1));
    let counts = Counts {
        anchors: anchors.len(),
        with_positives: (kinds.chunks_exact(width))
            .filter(|kinds| kinds.contains(&Kind::Positive))
            .count(),
    };
    let mut slopes = vec![0.0_f32; anchors.len() * width];
    let mut by_anchor = RowBuf::zeros(anchors.len(), rank);
    let losses: Vec<f64> = slopes
        .par_chunks_mut(BLOCK * width)
        .zip(by_anchor.values_mut().par_chunks_mut(BLOCK * rank))
        .zip(kinds.par_chunks(BLOCK * width))
        .enumerate()
        .map(|(block, ((slopes, out), kinds))| {
            let start = block * BLOCK;
            let len = out.len() / rank;
            cross(anchors.slice(start, start + len), items, 1.0, slopes);
            let mut sum = 0.0;
            let rows = slopes.chunks_exact_mut(width);
            for (row, kinds) in rows.zip(kinds.chunks_exact(width)) {
                sum += loss.anchor(row, kinds, counts);
            }
            let slopes = MatRef::from_row_major_slice(&*slopes, len, width);
            mix(slopes, items, 1.0, Accum::Replace, out);
            sum
        })
        .collect();
    let slopes = MatRef::from_row_major_slice(&slopes, anchors.len(), width);
    let mut by_item = RowBuf::zeros(items.len(), rank);
    (by_item.values_mut().par_chunks_mut(BLOCK * rank))
        .enumerate()
        .for_each(|(block, out)| {
            let columns = slopes.subcols(block * BLOCK, out.len() / rank);
            mix(columns.transpose(), anchors, 1.0, Accum::Replace, out);
        });
    (losses.iter().sum(), by_anchor, by_item)
}

/// Vectors divided by their lengths. One without a direction becomes 0 and gets no derivative.
pub(super) struct Units {
    units: RowBuf,
    /// 1 / length, or 0.
    inverse: Vec<f32>,
}

impl Units {
    pub(super) fn new(rows: Rows<'_>) -> Self {
        let mut units = RowBuf::empty(rows.dim());
        units.extend(rows);
        let mut inverse = Vec::with_capacity(rows.len());
        for row in units.values_mut().chunks_exact_mut(rows.dim()) {
            let length = row.iter().map(|v| v * v).sum::<f32>().sqrt();
            // A length that is not a number stays: the loss shows it, and the fit ends there.
            let factor = if length <= ZERO { 0.0 } else { 1.0 / length };
            row.iter_mut().for_each(|v| *v *= factor);
            inverse.push(factor);
        }
        Units { units, inverse }
    }

    pub(super) fn rows(&self) -> Rows<'_> {
        self.units.rows()
    }

    /// From derivatives g by the unit vectors u to those by the vectors: (g − u (u·g)) / length.
    pub(super) fn carry_back(&self, mut derivatives: RowBuf) -> RowBuf {
        let rows = derivatives.values_mut().chunks_exact_mut(self.units.dim());
        for ((row, unit), inverse) in rows.zip(self.units.rows().iter()).zip(&self.inverse) {
            let along: f32 = row.iter().zip(unit).map(|(g, u)| g * u).sum();
            for (g, u) in row.iter_mut().zip(unit) {
                *g = (*g - along * u) * inverse;
            }
        }
        derivatives
    }
}

/// ln(1 + Σ e^v) over all terms (place, v), without overflow; each v is replaced by its share
/// e^v / (1 + Σ e^v), which is the derivative by it.
pub(super) fn soft_sum(terms: &mut [(u32, f32)]) -> f64 {
    let largest = terms.iter().map(|t| t.1).fold(0.0_f32, f32::max);
    let mut sum = f64::from(-largest).exp();
    for (_, v) in terms.iter_mut() {
        *v = (*v - largest).exp();
        sum += f64::from(*v);
    }
    let inverse = (1.0 / sum) as f32;
    terms.iter_mut().for_each(|(_, v)| *v *= inverse);
    f64::from(largest) + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soft_sum_by_hand_and_far_out() {
        // ln(1 + e^0 + e^(ln 2)) = ln 4, with shares 1/4 and 2/4.
        let mut terms = [(0, 0.0), (1, std::f32::consts::LN_2)];
        assert!((soft_sum(&mut terms) - 4.0_f64.ln()).abs() < 1e-7);
        assert!((terms[0].1 - 0.25).abs() < 1e-6 && (terms[1].1 - 0.5).abs() < 1e-6);
        let mut terms = [(0, 500.0), (1, -500.0)];
        assert!((soft_sum(&mut terms) - 500.0).abs() < 1e-6);
        assert_eq!((terms[0].1, terms[1].1), (1.0, 0.0));
        assert_eq!(soft_sum(&mut []), 0.0);
    }

    #[test]
    fn a_vector_without_direction_gets_no_derivative() {
        let rows = RowBuf::from_values(vec![3.0, 4.0, 0.0, 0.0], 2).unwrap();
        let units = Units::new(rows.rows());
        assert_eq!(units.rows().values(), [0.6, 0.8, 0.0, 0.0]);
        // g = (1, 0): g·u = 0.6, so (1 − 0.36, −0.48) / 5.
        let back = units.carry_back(RowBuf::from_values(vec![1.0, 0.0, 1.0, 1.0], 2).unwrap());
        let expected = [0.128, -0.096, 0.0, 0.0];
        for (found, expected) in back.values().iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }
}
