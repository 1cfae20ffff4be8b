//! Training for a code: the loss sees items as their codes stand for them, and its derivative is handed through
//! to the mapped items as if there were no code (the straight-through estimator: Bengio, Léonard & Courville,
//! "Estimating or Propagating Gradients Through Stochastic Neurons for Conditional Computation", 2013). Queries
//! stay as they are, as they will in use.
//!
//! Over the first part of the steps, codes take the place of items by and by.

use crate::linalg::vectorized;

/// Share of the steps after which items are codes alone.
const MIXED: f64 = 0.25;

/// A code that a map is trained for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StraightThrough {
    /// Signs.
    Bits {
        /// Whether queries become bits too.
        queries: bool,
    },
    /// Whole numbers from −127 to 127 times a scale per vector.
    Int8,
}

impl StraightThrough {
    /// Whether queries are coded too.
    pub(crate) fn codes_queries(self) -> bool {
        self == StraightThrough::Bits { queries: true }
    }

    /// Replace rows of `dim` dimensions and about length 1 by what their codes stand for, mixed with the rows
    /// themselves as long as much of the schedule `remains`, from 1 to 0.
    pub(crate) fn round_directions(self, rows: &mut [f32], dim: usize, remains: f64) {
        self.round(rows, dim, (1.0 / (dim as f64).sqrt()) as f32, remains);
    }

    /// The same for rows of any length: a sign stands for the mean size of all values.
    pub(crate) fn round_vectors(self, rows: &mut [f32], dim: usize, remains: f64) {
        let sum: f64 = rows.iter().map(|value| f64::from(value.abs())).sum();
        let scale = (sum / rows.len().max(1) as f64) as f32;
        self.round(rows, dim, scale, remains);
    }

    fn round(self, rows: &mut [f32], dim: usize, scale: f32, remains: f64) {
        let share = ((1.0 - remains) / MIXED).clamp(0.0, 1.0) as f32;
        vectorized(
            #[inline(always)]
            || match self {
                StraightThrough::Bits { .. } => {
                    for value in rows.iter_mut() {
                        let sign = if *value > 0.0 { scale } else { -scale };
                        *value += share * (sign - *value);
                    }
                }
                StraightThrough::Int8 => {
                    for row in rows.chunks_exact_mut(dim) {
                        let largest = row.iter().fold(0.0_f32, |a, b| a.max(b.abs()));
                        let step = largest.max(f32::MIN_POSITIVE) / 127.0;
                        for value in row {
                            let whole = (*value / step).round() * step;
                            *value += share * (whole - *value);
                        }
                    }
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_take_over_by_and_by() {
        let bits = StraightThrough::Bits { queries: false };
        let rounded = |remains: f64| {
            let mut rows = [0.6, -0.8, 0.0, 1.0];
            bits.round_directions(&mut rows, 2, remains);
            rows
        };
        assert_eq!(rounded(1.0), [0.6, -0.8, 0.0, 1.0]);
        let half = 0.5_f32.sqrt();
        assert_eq!(rounded(0.5), [half, -half, -half, half]);
        let mixed = rounded(1.0 - MIXED / 2.0);
        assert!((mixed[0] - (0.6 + half) / 2.0).abs() < 1e-6);
        // Signs of vectors stand for the mean size 0.6.
        let mut rows = [0.6, -0.8, 0.0, 1.0];
        bits.round_vectors(&mut rows, 2, 0.0);
        for (found, expected) in rows.iter().zip([0.6, -0.6, -0.6, 0.6]) {
            assert!((found - expected).abs() < 1e-6);
        }
        let mut rows = [1.0, 0.5, 0.0, 0.0];
        StraightThrough::Int8.round_vectors(&mut rows, 2, 0.0);
        assert_eq!(rows, [1.0, 64.0 / 127.0, 0.0, 0.0]);
    }
}
