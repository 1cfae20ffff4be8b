//! Kernels between rows, as blocked Gram matrices spread over the cores.
//!
//! The χ² kernels divide once per pair of entries, so they are worked out four rows of the left by
//! tiles of the right that stay in the cache, in vector registers, and a symmetric matrix by its
//! lower half.

use super::products::cross;
use super::{RowBuf, Rows, squared_norms, vectorized};
use crate::{Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Rows of a block that one task works out. Fixed, so that results do not depend on threads.
const BLOCK: usize = 64;
/// Running sums side by side: as many as the widest vector register holds.
const LANES: usize = 16;

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

impl Kernel {
    /// Whether entries below 0 have no kernel value.
    pub fn needs_non_negative(self) -> bool {
        matches!(
            self,
            Kernel::ChiSquare | Kernel::ExponentialChiSquare { .. } | Kernel::Intersection
        )
    }

    /// An error if the parameters make no kernel.
    pub fn check(self) -> Result<()> {
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
    pub fn check_rows(self, first: u64, rows: Rows<'_>) -> Result<()> {
        if !self.needs_non_negative() {
            return Ok(());
        }
        // A comparison with NaN is false: it is found, too.
        match rows.values().iter().position(|v| !(*v >= 0.0)) {
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
pub fn gram(kernel: Kernel, left: Rows<'_>, right: Rows<'_>, out: &mut [f32]) {
    assert_eq!(left.dim(), right.dim(), "rows of one dimension");
    assert_eq!(out.len(), left.len() * right.len(), "room for every pair");
    if right.is_empty() {
        return;
    }
    let mut norms = Vec::new();
    if matches!(kernel, Kernel::Rbf { .. }) {
        squared_norms(right, &mut norms);
    }
    out.par_chunks_mut(BLOCK * right.len())
        .enumerate()
        .for_each(|(block, out)| {
            let start = block * BLOCK;
            let rows = left.slice(start, start + out.len() / right.len());
            fill(kernel, rows, right, &norms, out);
        });
}

/// Kernel values between all rows: symmetric to the last bit.
pub fn gram_within(kernel: Kernel, rows: Rows<'_>) -> RowBuf {
    let count = rows.len();
    let mut out = RowBuf::zeros(count, count.max(1));
    let mut norms = Vec::new();
    if matches!(kernel, Kernel::Rbf { .. }) {
        squared_norms(rows, &mut norms);
    }
    // Lower blocks only; the others are mirrored, which also makes the matrix exactly symmetric.
    out.values_mut()
        .par_chunks_mut(BLOCK * count.max(1))
        .enumerate()
        .for_each(|(block, out)| {
            let (start, len) = (block * BLOCK, out.len() / count);
            let end = start + len;
            let mut part = vec![0.0; len * end];
            let right_norms = norms.get(..end).unwrap_or(&[]);
            let (left, right) = (rows.slice(start, end), rows.slice(0, end));
            fill(kernel, left, right, right_norms, &mut part);
            for (row, values) in part.chunks_exact(end).enumerate() {
                out[row * count..row * count + end].copy_from_slice(values);
            }
        });
    for row in 0..count {
        for column in row + 1..count {
            let value = out.row(column)[row];
            out.row_mut(row)[column] = value;
        }
    }
    out
}

fn fill(kernel: Kernel, left: Rows<'_>, right: Rows<'_>, right_norms: &[f32], out: &mut [f32]) {
    let width = right.len();
    match kernel {
        Kernel::Linear => cross(left, right, 1.0, out),
        Kernel::Polynomial {
            scale,
            offset,
            degree,
        } => {
            cross(left, right, scale, out);
            for value in out {
                *value = (*value + offset).powi(degree as i32);
            }
        }
        Kernel::Rbf { gamma } => {
            cross(left, right, -2.0, out);
            let mut norms = Vec::new();
            squared_norms(left, &mut norms);
            for (row, norm) in out.chunks_exact_mut(width).zip(&norms) {
                for (value, other) in row.iter_mut().zip(right_norms) {
                    *value = (-gamma * (*value + norm + other).max(0.0)).exp();
                }
            }
        }
        Kernel::ChiSquare => histograms::<0>(left, right, out),
        Kernel::Intersection => histograms::<2>(left, right, out),
        Kernel::ExponentialChiSquare { gamma } => {
            histograms::<1>(left, right, out);
            for value in out {
                *value = (-gamma * *value).exp();
            }
        }
    }
}

/// χ² distances Σ (x − y)²/(x + y) between all left and right rows, for rows of at least 0.
pub fn chi_square(left: Rows<'_>, right: Rows<'_>, out: &mut [f32]) {
    out.par_chunks_mut(BLOCK * right.len().max(1))
        .enumerate()
        .for_each(|(block, out)| {
            let start = block * BLOCK;
            let rows = left.slice(start, start + out.len() / right.len());
            histograms::<1>(rows, right, out);
        });
}

/// One entry of the sum: 0 is 2xy/(x + y), 1 is (x − y)²/(x + y), 2 is min(x, y). A pair of zeros
/// counts 0.
#[inline(always)]
fn term<const KIND: u8>(x: f32, y: f32) -> f32 {
    match KIND {
        0 => {
            let sum = x + y;
            2.0 * x * y / if sum > 0.0 { sum } else { 1.0 }
        }
        1 => {
            let (sum, difference) = (x + y, x - y);
            difference * difference / if sum > 0.0 { sum } else { 1.0 }
        }
        _ => x.min(y),
    }
}

fn histograms<const KIND: u8>(left: Rows<'_>, right: Rows<'_>, out: &mut [f32]) {
    let width = right.len();
    vectorized(
        #[inline(always)]
        || {
            for (x, out) in left.iter().zip(out.chunks_exact_mut(width)) {
                let (x_chunks, x_rest) = x.as_chunks::<LANES>();
                for (y, out) in right.iter().zip(out) {
                    let (y_chunks, y_rest) = y.as_chunks::<LANES>();
                    let mut sums = [0.0_f32; LANES];
                    for (x, y) in x_chunks.iter().zip(y_chunks) {
                        for lane in 0..LANES {
                            sums[lane] += term::<KIND>(x[lane], y[lane]);
                        }
                    }
                    let mut total: f32 = sums.iter().sum();
                    for (x, y) in x_rest.iter().zip(y_rest) {
                        total += term::<KIND>(*x, *y);
                    }
                    *out = total;
                }
            }
        },
    );
}
