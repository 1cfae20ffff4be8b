//! All cosines between the anchors and the items of a batch, and the backpropagation of a loss
//! through them, as matrix products.

use super::batch::IGNORED;
use crate::linalg::{LANES, RowBuf, Rows, cross, dot, exponential, mix, squared_norms, vectorized};
use faer::{Accum, MatRef};
use rayon::prelude::*;

/// Anchors that one task handles. Fixed, so that results do not depend on the number of threads.
const BLOCK: usize = 64;
/// Vectors shorter than this (where relevant pairs are at mean distance 1 before the map) have no
/// direction.
const ZERO: f32 = 1e-6;

/// A loss that is a sum over anchors of a function of their cosines with all items.
pub(crate) trait PairLoss: Sync {
    /// What one anchor adds to the loss of the batch. Its cosines are replaced by the derivatives of the loss by them.
    /// Grades are those of the items: 0 for irrelevant ones, more for relevant ones and [`IGNORED`] for those that have
    /// no part in it.
    fn anchor(&self, cosines: &mut [f32], grades: &[f32], counts: Counts) -> f64;
}

/// By what a loss may divide to be a mean.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    /// Anchors of the batch.
    pub(crate) anchors: usize,
    /// Those that have a positive in the batch.
    pub(crate) with_positives: usize,
}

/// The loss with its derivatives by the anchors, which are unit vectors as the items are, and by all cosines (`slopes`,
/// anchor after anchor).
pub(crate) fn pull_anchors(
    loss: &dyn PairLoss,
    (anchors, items): (Rows<'_>, Rows<'_>),
    grades: &[f32],
    slopes: &mut Vec<f32>,
    by_anchor: &mut [f32],
) -> f64 {
    let (rank, width) = (items.dim(), items.len().max(1));
    let counts = Counts {
        anchors: anchors.len(),
        with_positives: (grades.chunks_exact(width))
            .filter(|grades| grades.iter().any(|grade| *grade > 0.0))
            .count(),
    };
    slopes.resize(anchors.len() * width, 0.0);
    let losses: Vec<f64> = slopes
        .par_chunks_mut(BLOCK * width)
        .zip(by_anchor.par_chunks_mut(BLOCK * rank))
        .zip(grades.par_chunks(BLOCK * width))
        .enumerate()
        .map(|(block, ((slopes, out), grades))| {
            let start = block * BLOCK;
            let len = out.len() / rank;
            cross(anchors.slice(start, start + len), items, 1.0, slopes);
            settle(slopes);
            let mut sum = 0.0;
            let rows = slopes.chunks_exact_mut(width);
            for (row, grades) in rows.zip(grades.chunks_exact(width)) {
                sum += loss.anchor(row, grades, counts);
            }
            let slopes = MatRef::from_row_major_slice(&*slopes, len, width);
            mix(slopes, items, 1.0, Accum::Replace, out);
            sum
        })
        .collect();
    losses.iter().sum()
}

/// The derivatives by the items, from those by all cosines.
pub(crate) fn pull_items(slopes: &[f32], anchors: Rows<'_>, accum: Accum, by_item: &mut [f32]) {
    let rank = anchors.dim();
    if by_item.is_empty() {
        return;
    }
    let slopes = MatRef::from_row_major_slice(slopes, anchors.len(), by_item.len() / rank);
    let blocks = by_item.par_chunks_mut(BLOCK * rank).enumerate();
    blocks.for_each(|(block, out)| {
        let columns = slopes.subcols(block * BLOCK, out.len() / rank);
        mix(columns.transpose(), anchors, 1.0, accum, out);
    });
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
        let mut units = Units {
            units: RowBuf::empty(rows.dim()),
            inverse: Vec::new(),
        };
        units.set(rows);
        units
    }

    /// Those of other vectors, in the same memory.
    pub(crate) fn set(&mut self, rows: Rows<'_>) {
        self.units.clear(rows.dim());
        self.units.extend(rows);
        squared_norms(rows, &mut self.inverse);
        let units = self.units.values_mut().chunks_exact_mut(rows.dim());
        for (row, inverse) in units.zip(&mut self.inverse) {
            let length = inverse.sqrt();
            // A length that is not a number stays: the loss shows it, and the fit ends there.
            *inverse = if length <= ZERO { 0.0 } else { 1.0 / length };
            row.iter_mut().for_each(|v| *v *= *inverse);
        }
    }

    pub(crate) fn rows(&self) -> Rows<'_> {
        self.units.rows()
    }

    pub(crate) fn into_rows(self) -> RowBuf {
        self.units
    }

    /// From derivatives g by the unit vectors u to those by the vectors: (g − u (u·g)) / length.
    pub(crate) fn carry_back(&self, derivatives: &mut RowBuf) {
        let rows = derivatives.values_mut().chunks_exact_mut(self.units.dim());
        for ((row, unit), inverse) in rows.zip(self.units.rows().iter()).zip(&self.inverse) {
            vectorized(
                #[inline(always)]
                || {
                    let along = dot(row, unit);
                    for (g, u) in row.iter_mut().zip(unit) {
                        *g = (*g - along * u) * inverse;
                    }
                },
            );
        }
    }
}

/// ln(1 + Σ e^{sharpness·(S − base)}) over some of an anchor's cosines S, as a term of a loss.
#[derive(Clone, Copy)]
pub(crate) struct SoftSum {
    pub(crate) sharpness: f32,
    pub(crate) base: f32,
    /// By what it is multiplied in the loss.
    pub(crate) weight: f64,
}

impl SoftSum {
    /// The largest exponent, where this is the extreme cosine and it counts; at least the 0 of the sum's 1.
    fn largest(self, extreme: f32, is_beyond: bool) -> f32 {
        let exponent = self.sharpness * (extreme - self.base);
        if is_beyond { 0.0 } else { exponent.max(0.0) }
    }

    /// What it adds to the loss, and the factor from e^{exponent − largest} to the derivative by a cosine.
    fn finish(self, sum: f64, largest: f32) -> (f64, f32) {
        let sum = f64::from(-largest).exp() + sum;
        let loss = self.weight * (f64::from(largest) + sum.ln());
        (loss, (self.weight * f64::from(self.sharpness) / sum) as f32)
    }
}

/// The loss of an anchor as soft sums, over relevant items (of negative sharpness) and over irrelevant ones. A relevant
/// item counts where its cosine is less than `epsilon` above the highest irrelevant one, an irrelevant item where its
/// cosine is less than `epsilon` below the lowest relevant one. Cosines are replaced by derivatives.
pub(crate) fn soft_sums(
    cosines: &mut [f32],
    grades: &[f32],
    epsilon: f32,
    (own, others): (SoftSum, SoftSum),
) -> f64 {
    let (lowest, highest) = extremes(cosines, grades);
    // What is not a number counts, so that the loss shows it; so does all where a limit is none.
    let (below, above) = (highest + epsilon, lowest - epsilon);
    let own_largest = own.largest(lowest, lowest >= below);
    let others_largest = others.largest(highest, highest <= above);
    vectorized(
        #[inline(always)]
        || {
            for (s, grade) in cosines.iter_mut().zip(grades) {
                let is_own = *grade > 0.0;
                let own_exponent = own.sharpness * (*s - own.base) - own_largest;
                let other_exponent = others.sharpness * (*s - others.base) - others_largest;
                let value = exponential(if is_own { own_exponent } else { other_exponent });
                let own_beyond = is_own & (*s >= below);
                let other_beyond = !is_own & (*s <= above);
                let is_out = own_beyond | other_beyond | (*grade < 0.0);
                *s = if is_out { 0.0 } else { value };
            }
        },
    );
    let (mut own_sums, mut others_sums) = ([0.0_f32; LANES], [0.0_f32; LANES]);
    in_lanes(
        cosines,
        grades,
        #[inline(always)]
        |values, grades| {
            let (mut own, mut others) = ([0.0_f32; LANES], [0.0_f32; LANES]);
            for lane in 0..LANES {
                own[lane] = if grades[lane] > 0.0 {
                    values[lane]
                } else {
                    0.0
                };
                others[lane] = if grades[lane] > 0.0 {
                    0.0
                } else {
                    values[lane]
                };
            }
            for lane in 0..LANES {
                own_sums[lane] += own[lane];
            }
            for lane in 0..LANES {
                others_sums[lane] += others[lane];
            }
        },
    );
    let (own_loss, own_factor) = own.finish(total(&own_sums), own_largest);
    let (others_loss, others_factor) = others.finish(total(&others_sums), others_largest);
    vectorized(
        #[inline(always)]
        || {
            for (s, grade) in cosines.iter_mut().zip(grades) {
                let (own, other) = if *grade > 0.0 { (*s, 0.0) } else { (0.0, *s) };
                *s = own_factor * own + others_factor * other;
            }
        },
    );
    own_loss + others_loss
}

/// The lowest cosine of a relevant item and the highest of an irrelevant one.
fn extremes(cosines: &[f32], grades: &[f32]) -> (f32, f32) {
    let (mut low, mut high) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES]);
    in_lanes(
        cosines,
        grades,
        #[inline(always)]
        |cosines, grades| {
            let (mut own, mut others) = ([0.0_f32; LANES], [0.0_f32; LANES]);
            for lane in 0..LANES {
                let (s, grade) = (cosines[lane], grades[lane]);
                own[lane] = if grade > 0.0 { s } else { f32::INFINITY };
                others[lane] = if grade == 0.0 { s } else { f32::NEG_INFINITY };
            }
            for lane in 0..LANES {
                low[lane] = low[lane].min(own[lane]);
            }
            for lane in 0..LANES {
                high[lane] = high[lane].max(others[lane]);
            }
        },
    );
    let lowest = low.into_iter().fold(f32::INFINITY, f32::min);
    (lowest, high.into_iter().fold(f32::NEG_INFINITY, f32::max))
}

/// Visit an anchor's cosines with their grades in chunks of [`LANES`], in code that is compiled for the widest
/// instructions. `visit` must be `#[inline(always)]` and do one thing in a loop, otherwise it is not vectorised. The last
/// chunk is padded with ignored items of cosine 0.
#[inline(always)]
pub(crate) fn in_lanes(
    cosines: &[f32],
    grades: &[f32],
    mut visit: impl FnMut(&[f32; LANES], &[f32; LANES]),
) {
    vectorized(
        #[inline(always)]
        || {
            let (chunks, rest) = cosines.as_chunks::<LANES>();
            let (grade_chunks, grade_rest) = grades.as_chunks::<LANES>();
            for (cosines, grades) in chunks.iter().zip(grade_chunks) {
                visit(cosines, grades);
            }
            let (mut cosines, mut grades) = ([0.0; LANES], [IGNORED; LANES]);
            cosines[..rest.len()].copy_from_slice(rest);
            grades[..rest.len()].copy_from_slice(grade_rest);
            visit(&cosines, &grades);
        },
    );
}

/// The sum of running sums.
#[inline(always)]
pub(crate) fn total(sums: &[f32; LANES]) -> f64 {
    sums.iter().map(|sum| f64::from(*sum)).sum()
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
            total(&sums)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_sums_by_hand_and_far_out() {
        let of = |values: &[f32], grades: &[f32], epsilon: f32| {
            let (mut values, weight) = (values.to_vec(), 1.0);
            let sum = |sharpness| SoftSum {
                sharpness,
                base: 0.0,
                weight,
            };
            let loss = soft_sums(&mut values, grades, epsilon, (sum(-1.0), sum(1.0)));
            (loss, values)
        };
        let close = |found: (f64, Vec<f32>), loss: f64, slopes: &[f32]| {
            assert!((found.0 - loss).abs() < 1e-6, "{found:?}");
            for (found, expected) in found.1.iter().zip(slopes) {
                assert!((found - expected).abs() < 1e-6, "{found} {expected}");
            }
        };
        // ln(1 + e^0 + e^(ln 2)) = ln 4, with shares 1/4 and 2/4; what is ignored has none.
        let ln_2 = std::f32::consts::LN_2;
        let all = f32::INFINITY;
        let irrelevant = of(&[0.0, ln_2, 9.0], &[0.0, 0.0, -1.0], all);
        close(irrelevant, 4.0_f64.ln(), &[0.25, 0.5, 0.0]);
        let relevant = of(&[0.0, -ln_2], &[1.0, 1.0], all);
        close(relevant, 4.0_f64.ln(), &[-0.25, -0.5]);
        close(of(&[500.0, -500.0], &[0.0, 0.0], all), 500.0, &[1.0, 0.0]);
        close(of(&[], &[], all), 0.0, &[]);
        assert!(of(&[f32::NAN, 1.0], &[0.0, 1.0], all).0.is_nan());
        assert!(of(&[f32::NAN, 1.0], &[1.0, 0.0], 0.1).0.is_nan());
        // Mined: the relevant item at 0.9 is far above all irrelevant ones, the irrelevant one at -0.5 far below.
        let values = [0.9, 0.1, 0.2, -0.5];
        let (loss, slopes) = of(&values, &[1.0, 1.0, 0.0, 0.0], 0.3);
        let expected = (1.0 + (-0.1_f64).exp()).ln() + (1.0 + 0.2_f64.exp()).ln();
        assert!((loss - expected).abs() < 1e-6);
        let is_zero: Vec<bool> = slopes.iter().map(|slope| *slope == 0.0).collect();
        assert_eq!(is_zero, [true, false, false, true]);
        // Nothing to mine from.
        close(of(&[0.9, 0.8], &[1.0, 1.0], 0.3), 0.0, &[0.0, 0.0]);
        // More items than lanes, the same in any order.
        let many: Vec<f32> = (0..37).map(|i| (i as f32 * 0.7).sin()).collect();
        let grades: Vec<f32> = (0..37).map(|i| ((i % 3) as f32) - 1.0).collect();
        let (loss, slopes) = of(&many, &grades, 0.4);
        let back: Vec<f32> = many.iter().rev().copied().collect();
        let grades_back: Vec<f32> = grades.iter().rev().copied().collect();
        let (loss_back, slopes_back) = of(&back, &grades_back, 0.4);
        assert!((loss - loss_back).abs() < 1e-6);
        for (a, b) in slopes.iter().zip(slopes_back.iter().rev()) {
            assert!((a - b).abs() < 1e-6);
        }
    }

    #[test]
    fn a_vector_without_direction_gets_no_derivative() {
        let rows = RowBuf::from_values(vec![3.0, 4.0, 0.0, 0.0], 2).unwrap();
        let units = Units::new(rows.rows());
        assert_eq!(units.rows().values(), [0.6, 0.8, 0.0, 0.0]);
        // g = (1, 0): g·u = 0.6, so (1 − 0.36, −0.48) / 5.
        let mut back = RowBuf::from_values(vec![1.0, 0.0, 1.0, 1.0], 2).unwrap();
        units.carry_back(&mut back);
        let expected = [0.128, -0.096, 0.0, 0.0];
        for (found, expected) in back.values().iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }
}
