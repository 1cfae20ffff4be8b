//! Kernels between rows, as blocked Gram matrices spread over the cores.
//!
//! The χ² kernels are bound by divisions and by reading: two entries share a division, tiles of the right stay in the
//! cache, and a symmetric matrix is worked out by its lower half.

use super::products::{cross, summed};
use super::{LANES, RowBuf, Rows, exponential, squared_norms, vectorized};
use crate::{Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Rows of a block that one task works out. Fixed, so that results do not depend on threads.
const BLOCK: usize = 64;

/// A kernel with its settled parameters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "kebab-case")]
pub enum Kernel {
    /// x·y.
    Linear,
    /// (x·y·scale + offset)^degree.
    Polynomial {
        /// Factor of the inner product.
        scale: f32,
        /// Added before the power.
        offset: f32,
        /// The power.
        degree: u32,
    },
    /// exp(−gamma·|x − y|²).
    Rbf {
        /// Width.
        gamma: f32,
    },
    /// Σ 2xy/(x + y), additive χ²: for entries of at least 0.
    ChiSquare,
    /// exp(−gamma·χ²) with χ² = Σ (x − y)²/(x + y): for entries of at least 0.
    ExponentialChiSquare {
        /// Width.
        gamma: f32,
    },
    /// Σ min(x, y), histogram intersection: for entries of at least 0.
    Intersection,
}

/// By the names that methods take, with what was settled.
impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kernel::Linear => f.write_str("linear"),
            Kernel::Polynomial {
                scale,
                offset,
                degree,
            } => write!(f, "polynomial (({scale}·x·y + {offset})^{degree})"),
            Kernel::Rbf { gamma } => write!(f, "rbf (gamma {gamma})"),
            Kernel::ChiSquare => f.write_str("chi2"),
            Kernel::ExponentialChiSquare { gamma } => write!(f, "exp-chi2 (gamma {gamma})"),
            Kernel::Intersection => f.write_str("intersection"),
        }
    }
}

impl Kernel {
    /// Whether entries below 0 have no kernel value.
    pub(crate) fn needs_non_negative(self) -> bool {
        matches!(
            self,
            Kernel::ChiSquare | Kernel::ExponentialChiSquare { .. } | Kernel::Intersection
        )
    }

    /// An error if the parameters make no kernel.
    pub(crate) fn check(self) -> Result<()> {
        let wrong = |name: &str, expected: &str, found: f32| {
            Err(Error::parameter(
                format!("the kernel's {name}"),
                expected,
                found,
            ))
        };
        match self {
            Kernel::Rbf { gamma } | Kernel::ExponentialChiSquare { gamma }
                if !(gamma.is_finite() && gamma > 0.0) =>
            {
                wrong("gamma", "above 0", gamma)
            }
            Kernel::Polynomial { scale, .. } if !(scale.is_finite() && scale > 0.0) => {
                wrong("scale", "above 0", scale)
            }
            Kernel::Polynomial { offset, .. } if !(offset.is_finite() && offset >= 0.0) => {
                wrong("offset", "at least 0", offset)
            }
            Kernel::Polynomial { degree: 0, .. } => wrong("degree", "at least 1", 0.0),
            _ => Ok(()),
        }
    }

    /// An error naming the first entry for which the kernel has no value; `first` is the number of
    /// the first row.
    pub(crate) fn check_rows(self, first: u64, rows: Rows<'_>) -> Result<()> {
        if !self.needs_non_negative() {
            return Ok(());
        }
        match rows.values().iter().position(|v| *v < 0.0 || v.is_nan()) {
            None => Ok(()),
            Some(at) => Err(Error::Cell {
                row: first + (at / rows.dim()) as u64,
                column: at % rows.dim(),
                problem: format!(
                    "expected at least 0 for a kernel of histograms, but found {}",
                    rows.values()[at]
                ),
            }),
        }
    }
}

/// Kernel values of every left row with every right row, row-major (left × right).
pub(crate) fn gram(kernel: Kernel, left: Rows<'_>, right: Rows<'_>, out: &mut [f32]) {
    assert_eq!(left.dim(), right.dim(), "rows of one dimension");
    assert_eq!(out.len(), left.len() * right.len(), "room for every pair");
    if right.is_empty() {
        return;
    }
    let norms = norms_for(kernel, right);
    out.par_chunks_mut(BLOCK * right.len())
        .enumerate()
        .for_each(|(block, out)| {
            let start = block * BLOCK;
            let rows = left.slice(start, start + out.len() / right.len());
            raw(kernel, rows, right, &norms, out);
            finish_kernel(kernel, out);
        });
}

/// Kernel values between all rows: symmetric to the last bit.
pub fn gram_within(kernel: Kernel, rows: Rows<'_>) -> RowBuf {
    let mut out = raw_kernel_within(kernel, rows, &|| Ok(())).expect("nobody stops it");
    finish_kernel(kernel, out.values_mut());
    out
}

/// What the kernel's outer function is applied to, between all rows: squared distances for `Rbf`,
/// χ² distances for `ExponentialChiSquare`, scaled inner products for `Polynomial` and the kernel
/// itself for the others. Widths can be settled on it before [`finish_kernel`]. Ends where `check` fails.
pub(crate) fn raw_kernel_within(
    kernel: Kernel,
    rows: Rows<'_>,
    check: &(dyn Fn() -> Result<()> + Sync),
) -> Result<RowBuf> {
    let count = rows.len();
    let mut out = RowBuf::zeros(count, count.max(1));
    let norms = norms_for(kernel, rows);
    // Lower blocks only; the others are mirrored, which also makes the matrix exactly symmetric.
    out.values_mut()
        .par_chunks_mut(BLOCK * count.max(1))
        .enumerate()
        .try_for_each(|(block, out)| {
            check()?;
            let (start, len) = (block * BLOCK, out.len() / count);
            let end = start + len;
            let mut part = vec![0.0; len * end];
            let right_norms = norms.get(..end).unwrap_or(&[]);
            let (left, right) = (rows.slice(start, end), rows.slice(0, end));
            raw(kernel, left, right, right_norms, &mut part);
            for (row, values) in part.chunks_exact(end).enumerate() {
                out[row * count..row * count + end].copy_from_slice(values);
            }
            Ok::<_, Error>(())
        })?;
    for row in 0..count {
        for column in row + 1..count {
            let value = out.row(column)[row];
            out.row_mut(row)[column] = value;
        }
        if matches!(kernel, Kernel::Rbf { .. }) {
            // Rounding of the expanded square must not put a row at a distance from itself.
            out.row_mut(row)[row] = 0.0;
        }
    }
    Ok(out)
}

/// Apply the kernel's outer function.
pub(crate) fn finish_kernel(kernel: Kernel, values: &mut [f32]) {
    match kernel {
        Kernel::Linear | Kernel::ChiSquare | Kernel::Intersection => {}
        Kernel::Polynomial { offset, degree, .. } => {
            for value in values {
                *value = (*value + offset).powi(degree as i32);
            }
        }
        Kernel::Rbf { gamma } | Kernel::ExponentialChiSquare { gamma } => {
            vectorized(
                #[inline(always)]
                || {
                    for value in values {
                        *value = exponential(-gamma * *value);
                    }
                },
            );
        }
    }
}

fn norms_for(kernel: Kernel, rows: Rows<'_>) -> Vec<f32> {
    let mut norms = Vec::new();
    if matches!(kernel, Kernel::Rbf { .. }) {
        squared_norms(rows, &mut norms);
    }
    norms
}

fn raw(kernel: Kernel, left: Rows<'_>, right: Rows<'_>, right_norms: &[f32], out: &mut [f32]) {
    match kernel {
        Kernel::Linear => cross(left, right, 1.0, out),
        Kernel::Polynomial { scale, .. } => cross(left, right, scale, out),
        Kernel::Rbf { .. } => {
            cross(left, right, -2.0, out);
            let norms = norms_for(kernel, left);
            for (row, norm) in out.chunks_exact_mut(right.len()).zip(&norms) {
                for (value, other) in row.iter_mut().zip(right_norms) {
                    *value = (*value + norm + other).max(0.0);
                }
            }
        }
        Kernel::ChiSquare => chi_square::<0>(left, right, out),
        Kernel::ExponentialChiSquare { .. } => chi_square::<1>(left, right, out),
        Kernel::Intersection => intersection(left, right, out),
    }
}

/// One entry of a χ² sum as numerator and denominator: 0 is 2xy/(x + y), 1 is (x − y)²/(x + y). A pair of zeros counts
/// 0.
#[inline(always)]
fn fraction<const KIND: u8>(x: f32, y: f32) -> (f32, f32) {
    let (sum, difference) = (x + y, x - y);
    let numerator = match KIND {
        0 => 2.0 * x * y,
        _ => difference * difference,
    };
    (numerator, if sum > 0.0 { sum } else { 1.0 })
}

/// Rows of the right that are compared with all of the left before others are read: so many stay in the cache.
const TILE: usize = 32;

/// Common denominators between these, and numerators over them, are far inside the normal numbers.
const LOWEST: f32 = 1e-20;
const HIGHEST: f32 = 1e18;

/// A χ² sum for every pair of rows.
fn chi_square<const KIND: u8>(left: Rows<'_>, right: Rows<'_>, out: &mut [f32]) {
    for_each_pair(
        left,
        right,
        out,
        #[inline(always)]
        |x, y| paired_fractions::<KIND>(x, y).unwrap_or_else(|| fractions::<KIND>(x, y)),
    );
}

/// The sum of all fractions, two by one division: a/b + c/d = (ad + cb)/(bd). None where a common denominator is too
/// small or too large for that.
#[inline(always)]
fn paired_fractions<const KIND: u8>(x: &[f32], y: &[f32]) -> Option<f32> {
    let (x_chunks, x_rest) = x.as_chunks::<{ 2 * LANES }>();
    let (y_chunks, y_rest) = y.as_chunks::<{ 2 * LANES }>();
    let (mut sums, mut extreme) = ([0.0_f32; LANES], [0_u32; LANES]);
    for (x, y) in x_chunks.iter().zip(y_chunks) {
        for lane in 0..LANES {
            let (a, b) = fraction::<KIND>(x[lane], y[lane]);
            let (c, d) = fraction::<KIND>(x[LANES + lane], y[LANES + lane]);
            let denominator = b * d;
            sums[lane] += (a * d + c * b) / denominator;
            extreme[lane] |= u32::from(denominator < LOWEST) | u32::from(denominator > HIGHEST);
        }
    }
    let is_moderate = extreme.iter().all(|extreme| *extreme == 0);
    is_moderate.then(|| sums.iter().sum::<f32>() + fractions::<KIND>(x_rest, y_rest))
}

/// The sum of all fractions.
#[inline(always)]
fn fractions<const KIND: u8>(x: &[f32], y: &[f32]) -> f32 {
    summed(
        x,
        y,
        #[inline(always)]
        |x, y| {
            let (numerator, denominator) = fraction::<KIND>(x, y);
            numerator / denominator
        },
    )
}

/// Σ min(x, y) for every pair of rows.
fn intersection(left: Rows<'_>, right: Rows<'_>, out: &mut [f32]) {
    for_each_pair(
        left,
        right,
        out,
        #[inline(always)]
        |x, y| summed(x, y, f32::min),
    );
}

/// A number for every pair of rows; `compare` must be `#[inline(always)]`.
#[inline(always)]
fn for_each_pair(
    left: Rows<'_>,
    right: Rows<'_>,
    out: &mut [f32],
    compare: impl Fn(&[f32], &[f32]) -> f32,
) {
    let width = right.len();
    vectorized(
        #[inline(always)]
        || {
            for first in (0..width).step_by(TILE) {
                let end = width.min(first + TILE);
                for (x, out) in left.iter().zip(out.chunks_exact_mut(width)) {
                    for (place, out) in (first..end).zip(&mut out[first..end]) {
                        *out = compare(x, right.row(place));
                    }
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn rows(len: usize, dim: usize, seed: u64) -> RowBuf {
        let mut stream = Stream::new(seed, "test", 0);
        let values = (0..len * dim)
            // Zeros are common in histograms, and two of them divide 0 by 0.
            .map(|_| (stream.unit() - 0.3).max(0.0) as f32)
            .collect();
        RowBuf::from_values(values, dim).unwrap()
    }

    #[test]
    fn kernels_are_shown_by_the_names_that_methods_take() {
        let of = |kernel: Kernel| kernel.to_string();
        assert_eq!(of(Kernel::ChiSquare), "chi2");
        assert_eq!(of(Kernel::Rbf { gamma: 0.5 }), "rbf (gamma 0.5)");
        let polynomial = Kernel::Polynomial {
            scale: 0.5,
            offset: 1.0,
            degree: 3,
        };
        assert_eq!(of(polynomial), "polynomial ((0.5·x·y + 1)^3)");
    }

    /// The definitions, in f64, one entry after the other.
    fn reference(kernel: Kernel, x: &[f32], y: &[f32]) -> f64 {
        let pairs = || x.iter().zip(y).map(|(x, y)| (f64::from(*x), f64::from(*y)));
        let dot: f64 = pairs().map(|(x, y)| x * y).sum();
        let ratio = |top: f64, bottom: f64| if bottom == 0.0 { 0.0 } else { top / bottom };
        match kernel {
            Kernel::Linear => dot,
            Kernel::Polynomial {
                scale,
                offset,
                degree,
            } => (dot * f64::from(scale) + f64::from(offset)).powi(degree as i32),
            Kernel::Rbf { gamma } => {
                let squares: f64 = pairs().map(|(x, y)| (x - y).powi(2)).sum();
                (-f64::from(gamma) * squares).exp()
            }
            Kernel::ChiSquare => pairs().map(|(x, y)| ratio(2.0 * x * y, x + y)).sum(),
            Kernel::ExponentialChiSquare { gamma } => {
                let chi: f64 = pairs().map(|(x, y)| ratio((x - y).powi(2), x + y)).sum();
                (-f64::from(gamma) * chi).exp()
            }
            Kernel::Intersection => pairs().map(|(x, y)| x.min(y)).sum(),
        }
    }

    const KERNELS: [Kernel; 6] = [
        Kernel::Linear,
        Kernel::Polynomial {
            scale: 0.2,
            offset: 0.5,
            degree: 3,
        },
        Kernel::Rbf { gamma: 0.3 },
        Kernel::ChiSquare,
        Kernel::ExponentialChiSquare { gamma: 0.4 },
        Kernel::Intersection,
    ];

    #[test]
    fn blocks_equal_the_definitions() {
        // More rows than a block, and a dimension that is no multiple of a register.
        let (left, right) = (rows(70, 37, 1), rows(9, 37, 2));
        for kernel in KERNELS {
            let mut found = vec![0.0; 70 * 9];
            gram(kernel, left.rows(), right.rows(), &mut found);
            let within = gram_within(kernel, left.rows());
            for i in 0..70 {
                for j in 0..9 {
                    let wanted = reference(kernel, left.row(i), right.row(j));
                    let found = f64::from(found[i * 9 + j]);
                    assert!(
                        (found - wanted).abs() < 2e-5 * wanted.abs().max(1.0),
                        "{kernel:?}"
                    );
                }
                for j in 0..70 {
                    let wanted = reference(kernel, left.row(i), left.row(j));
                    let found = within.row(i)[j];
                    assert_eq!(found.to_bits(), within.row(j)[i].to_bits());
                    let difference = (f64::from(found) - wanted).abs();
                    assert!(difference < 2e-5 * wanted.abs().max(1.0), "{kernel:?}");
                }
            }
        }
    }

    #[test]
    fn chi_square_of_very_small_and_very_large_entries() {
        for scale in [1e-30_f32, 1e-12, 1.0, 1e12, 1e18] {
            let values = rows(2, 70, 3).values().iter().map(|v| v * scale).collect();
            let pair = RowBuf::from_values(values, 70).unwrap();
            let (x, y) = (pair.row(0), pair.row(1));
            let mut found = [0.0];
            let rows = |row| Rows::new(row, 70).unwrap();
            gram(Kernel::ChiSquare, rows(x), rows(y), &mut found);
            let wanted = reference(Kernel::ChiSquare, x, y);
            let error = (f64::from(found[0]) / wanted - 1.0).abs();
            // Products of two entries of 1e-30 are no normal numbers.
            let is_lost = scale < 1e-18 && found[0] == 0.0;
            assert!(error < 1e-5 || is_lost, "{scale}: {} {wanted}", found[0]);
        }
        // Two entries that are far smaller than the others, or one that is far larger.
        let small = [(3, 1e-25, 2e-25), (35, 3e-25, 0.0)];
        let large = [(5, 5e18, 5e18), (21, 4.0, 5.0)];
        for entries in [small, large] {
            let (mut x, mut y) = (vec![0.5_f32; 64], vec![0.25_f32; 64]);
            for (place, left, right) in entries {
                (x[place], y[place]) = (left, right);
            }
            let mut found = [0.0];
            let rows = |row| Rows::new(row, 64).unwrap();
            gram(Kernel::ChiSquare, rows(&x), rows(&y), &mut found);
            let wanted = reference(Kernel::ChiSquare, &x, &y);
            assert!((f64::from(found[0]) / wanted - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn additive_chi_square_by_hand() {
        // 2·1·3/4 + 0 + 2·2·2/4 = 1.5 + 2; χ² = 4/4 + 5²/5 + 0 = 6.
        let (x, y) = ([1.0, 5.0, 2.0, 0.0], [3.0, 0.0, 2.0, 0.0]);
        let (x, y) = (Rows::new(&x, 4).unwrap(), Rows::new(&y, 4).unwrap());
        let mut out = [0.0];
        gram(Kernel::ChiSquare, x, y, &mut out);
        assert_eq!(out, [3.5]);
        gram(Kernel::ExponentialChiSquare { gamma: 0.5 }, x, y, &mut out);
        assert!((out[0] - (-3.0_f32).exp()).abs() < 1e-7);
    }
}
