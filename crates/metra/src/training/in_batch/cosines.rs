//! All cosines between the anchors and the items of a batch, and the backpropagation of a loss
//! through them, as matrix products.

use super::batch::Kind;
use crate::linalg::{RowBuf, Rows, cross, exponential, mix, vectorized};
use faer::{Accum, MatRef};
use rayon::prelude::*;

/// Anchors that one task handles. Fixed, so that results do not depend on the number of threads.
const BLOCK: usize = 64;
/// Vectors shorter than this (where relevant pairs are at mean distance 1 before the map) have no
/// direction.
const ZERO: f32 = 1e-6;

/// Running sums side by side: as many as the widest vector register holds.
const LANES: usize = 16;

/// A loss that is a sum over anchors of a function of their cosines with all items, for items whose
/// relevance is said by a kind or by a grade.
pub(crate) trait PairLoss<G: Graded = Kind>: Sync {
    /// What one anchor adds to the loss of the batch. Its cosines are replaced by the derivatives
    /// of the loss by them.
    fn anchor(&self, cosines: &mut [f32], kinds: &[G], counts: Counts) -> f64;
}

/// How relevant an item is to an anchor.
pub(crate) trait Graded: Copy + Sync {
    /// 0 is irrelevant; none means that the item has no part in the loss.
    fn grade(self) -> Option<f32>;
}

impl Graded for Kind {
    fn grade(self) -> Option<f32> {
        match self {
            Kind::Positive => Some(1.0),
            Kind::Negative => Some(0.0),
            Kind::Ignored => None,
        }
    }
}

/// By what a loss may divide to be a mean.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    /// Anchors of the batch.
    pub(crate) anchors: usize,
    /// Those that have a positive in the batch.
    pub(crate) with_positives: usize,
}

/// The loss with its derivatives by the anchors and by the items, all of which are unit vectors.
pub(crate) fn pull<G: Graded>(
    loss: &dyn PairLoss<G>,
    anchors: Rows<'_>,
    items: Rows<'_>,
    kinds: &[G],
) -> (f64, RowBuf, RowBuf) {
    let (value, by_anchor, slopes) = slopes(loss, anchors, items, kinds);
    let rank = items.dim();
    let slopes = MatRef::from_row_major_slice(&slopes, anchors.len(), items.len().max(1));
    let mut by_item = RowBuf::zeros(items.len(), rank);
    (by_item.values_mut().par_chunks_mut(BLOCK * rank))
        .enumerate()
        .for_each(|(block, out)| {
            let columns = slopes.subcols(block * BLOCK, out.len() / rank);
            mix(columns.transpose(), anchors, 1.0, Accum::Replace, out);
        });
    (value, by_anchor, by_item)
}

/// The loss with its derivatives by the anchors alone, for items that do not move.
pub(crate) fn pull_anchors<G: Graded>(
    loss: &dyn PairLoss<G>,
    anchors: Rows<'_>,
    items: Rows<'_>,
    kinds: &[G],
) -> (f64, RowBuf) {
    let (value, by_anchor, _) = slopes(loss, anchors, items, kinds);
    (value, by_anchor)
}

/// The loss with its derivatives by the anchors and by all cosines, anchor after anchor.
fn slopes<G: Graded>(
    loss: &dyn PairLoss<G>,
    anchors: Rows<'_>,
    items: Rows<'_>,
    kinds: &[G],
) -> (f64, RowBuf, Vec<f32>) {
    let (rank, width) = (items.dim(), items.len().max(1));
    let counts = Counts {
        anchors: anchors.len(),
        with_positives: (kinds.chunks_exact(width))
            .filter(|kinds| kinds.iter().any(|kind| kind.grade() > Some(0.0)))
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
            settle(slopes);
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
    (losses.iter().sum(), by_anchor, slopes)
}

/// Rounding takes cosines a little beyond 1; they are put back. This pass is also what lets scalar
/// code run at speed after a product, whose kernels leave the vector registers' upper halves in use.
fn settle(cosines: &mut [f32]) {
    vectorized(
        #[inline(always)]
        || {
            for s in cosines {
                *s = if *s > 1.0 { 1.0 } else { *s };
                *s = if *s < -1.0 { -1.0 } else { *s };
            }
        },
    );
}

/// Vectors divided by their lengths. One without a direction becomes 0 and gets no derivative.
pub(crate) struct Units {
    units: RowBuf,
    /// 1 / length, or 0.
    inverse: Vec<f32>,
}

impl Units {
    pub(crate) fn new(rows: Rows<'_>) -> Self {
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

    pub(crate) fn rows(&self) -> Rows<'_> {
        self.units.rows()
    }

    pub(crate) fn into_rows(self) -> RowBuf {
        self.units
    }

    /// From derivatives g by the unit vectors u to those by the vectors: (g − u (u·g)) / length.
    pub(crate) fn carry_back(&self, mut derivatives: RowBuf) -> RowBuf {
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

/// Some of an anchor's items, each with a number.
#[derive(Default)]
pub(crate) struct Terms {
    places: Vec<u32>,
    values: Vec<f32>,
}

impl Terms {
    pub(crate) fn push(&mut self, place: usize, value: f32) {
        self.places.push(place as u32);
        self.values.push(value);
    }

    /// ln(1 + Σ e^v) without overflow; each v is replaced by its share e^v / (1 + Σ e^v), which is
    /// the derivative by it.
    pub(crate) fn soft_sum(&mut self) -> f64 {
        let largest = self.values.iter().copied().fold(0.0_f32, f32::max);
        let sum = f64::from(-largest).exp() + exponentials(&mut self.values, largest, 1.0);
        let inverse = (1.0 / sum) as f32;
        self.values.iter_mut().for_each(|v| *v *= inverse);
        f64::from(largest) + sum.ln()
    }

    /// Put the numbers, multiplied, in their places.
    pub(crate) fn place(&self, factor: f64, out: &mut [f32]) {
        for (place, value) in self.places.iter().zip(&self.values) {
            out[*place as usize] = value * factor as f32;
        }
    }
}

/// Replace each v by e^{(v − origin)·factor}; returns their sum.
pub(crate) fn exponentials(values: &mut [f32], origin: f32, factor: f32) -> f64 {
    vectorized(
        #[inline(always)]
        || {
            // Running sums side by side in a fixed order let the compiler use vector registers.
            let mut sums = [0.0_f32; LANES];
            let (chunks, rest) = values.as_chunks_mut::<LANES>();
            for chunk in chunks {
                for (sum, v) in sums.iter_mut().zip(chunk) {
                    *v = exponential((*v - origin) * factor);
                    *sum += *v;
                }
            }
            for v in rest {
                *v = exponential((*v - origin) * factor);
                sums[0] += *v;
            }
            sums.iter().map(|s| f64::from(*s)).sum()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soft_sum_by_hand_and_far_out() {
        let of = |values: &[f32]| {
            let mut terms = Terms::default();
            for (place, value) in values.iter().enumerate() {
                terms.push(place, *value);
            }
            (terms.soft_sum(), terms.values)
        };
        // ln(1 + e^0 + e^(ln 2)) = ln 4, with shares 1/4 and 2/4.
        let (value, shares) = of(&[0.0, std::f32::consts::LN_2]);
        assert!((value - 4.0_f64.ln()).abs() < 1e-6);
        assert!((shares[0] - 0.25).abs() < 1e-6 && (shares[1] - 0.5).abs() < 1e-6);
        let (value, shares) = of(&[500.0, -500.0]);
        assert!((value - 500.0).abs() < 1e-6);
        assert!(shares[0] == 1.0 && shares[1] < 1e-30);
        assert_eq!(of(&[]).0, 0.0);
        assert!(of(&[f32::NAN, 1.0]).0.is_nan());
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
