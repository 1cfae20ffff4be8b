//! A full matrix M with a trace regulariser: min Σ cost · L(D_M(far) − D_M(near)) + λ·tr M over
//! M ⪰ 0, D_M(i, j) = (x_i − x_j)ᵀM(x_i − x_j). The trace is the sum of the eigenvalues, so a
//! proximal step lowers each of them by λ times the step and stops at 0: M has low rank by itself.
//!
//! The slides name the regulariser and early stopping; here the convex problem is solved by
//! accelerated proximal gradient. No outer product of a pair is ever formed: with X the rows and
//! A = X M, a distance is a product of two differences of rows, and the gradient is XᵀY with Y the
//! weighted differences added up row by row.

use super::hinge::Hinge;
use crate::linalg::Symmetric;
use crate::optimize::{Composite, ProximalGradient, ProximalMinimum};
use crate::supervision::Quadruplet;
use crate::{Error, Result};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use std::sync::atomic::{AtomicBool, Ordering};

/// The loss of quadruplets over the rows of X, and λ·tr M.
pub(super) struct FullLoss<'a> {
    /// dim × rows, so that a vector is one range of memory.
    rows: Mat<f64>,
    hinge: Hinge,
    lambda: f64,
    /// With the cost of each.
    quadruplets: Vec<(Quadruplet, f64)>,
    /// Set by another thread to end the search.
    stop: Option<&'a AtomicBool>,
}

impl<'a> FullLoss<'a> {
    pub(super) fn new(
        rows: Mat<f64>,
        hinge: Hinge,
        lambda: f64,
        quadruplets: Vec<(Quadruplet, f64)>,
    ) -> Self {
        FullLoss {
            rows,
            hinge,
            lambda,
            quadruplets,
            stop: None,
        }
    }

    /// The same, until `stop` is set.
    pub(super) fn until(self, stop: Option<&'a AtomicBool>) -> Self {
        FullLoss { stop, ..self }
    }

    /// M of least objective.
    pub(super) fn solve(&mut self, iterations: usize) -> Result<(Symmetric, ProximalMinimum)> {
        let dim = self.rows.nrows();
        let search = ProximalGradient {
            tolerance: 1e-7,
            iterations,
        };
        let found = search.minimise(self, &vec![0.0; dim * dim])?;
        let matrix = MatRef::from_column_major_slice(&found.point, dim, dim).to_owned();
        Ok((Symmetric::new(matrix)?, found))
    }
}

fn difference(rows: &Mat<f64>, pair: [u64; 2], out: &mut [f64]) {
    let (a, b) = (
        rows.col_as_slice(pair[0] as usize),
        rows.col_as_slice(pair[1] as usize),
    );
    for ((target, a), b) in out.iter_mut().zip(a).zip(b) {
        *target = a - b;
    }
}

impl Composite for FullLoss<'_> {
    fn dim(&self) -> usize {
        self.rows.nrows() * self.rows.nrows()
    }

    fn smooth(&mut self, point: &[f64], gradient: &mut [f64]) -> Result<f64> {
        if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(Error::Interrupted);
        }
        let (dim, count) = (self.rows.nrows(), self.rows.ncols());
        let matrix = MatRef::from_column_major_slice(point, dim, dim);
        let mapped = matrix * &self.rows;
        let mut sums = Mat::<f64>::zeros(dim, count);
        let (mut plain, mut other) = (vec![0.0; dim], vec![0.0; dim]);
        let mut distance = |pair: [u64; 2], plain: &mut Vec<f64>| -> f64 {
            difference(&self.rows, pair, plain);
            difference(&mapped, pair, &mut other);
            plain.iter().zip(&other).map(|(a, b)| a * b).sum()
        };
        let mut value = 0.0;
        for (q, cost) in &self.quadruplets {
            let margin = f64::from(u8::from(q.strict));
            let near = distance(q.near, &mut plain);
            let t = distance(q.far, &mut plain) - near;
            value += cost * self.hinge.value(margin, t);
            let slope = cost * self.hinge.slope(margin, t);
            if slope == 0.0 {
                continue;
            }
            for (pair, amount) in [(q.far, slope), (q.near, -slope)] {
                difference(&self.rows, pair, &mut plain);
                for (row, sign) in [(pair[0], amount), (pair[1], -amount)] {
                    let target = sums.col_as_slice_mut(row as usize);
                    for (target, value) in target.iter_mut().zip(&plain) {
                        *target += sign * value;
                    }
                }
            }
        }
        // Σ amount·(x_a − x_b)(x_a − x_b)ᵀ = X·sumsᵀ.
        let mut product = Mat::<f64>::zeros(dim, dim);
        matmul(
            product.as_mut(),
            Accum::Replace,
            self.rows.as_ref(),
            sums.transpose(),
            1.0,
            Par::Seq,
        );
        for column in 0..dim {
            for row in 0..dim {
                // Symmetric up to rounding; made so, or the iterates would drift.
                gradient[column * dim + row] =
                    0.5 * (product[(row, column)] + product[(column, row)]);
            }
        }
        Ok(value)
    }

    fn proximal(&mut self, point: &mut [f64], length: f64) -> Result<f64> {
        let dim = self.rows.nrows();
        let matrix = MatRef::from_column_major_slice(point, dim, dim).to_owned();
        let eigen = Symmetric::new(matrix)?.eigen()?;
        let lowered: Vec<f64> = (eigen.values.iter())
            .map(|v| (v - length * self.lambda).max(0.0))
            .collect();
        let rank = lowered.iter().take_while(|v| **v > 0.0).count();
        let left = Mat::from_fn(dim, rank, |row, k| eigen.vectors[(row, k)] * lowered[k]);
        let right = eigen.vectors.as_ref().subcols(0, rank);
        let rebuilt = left * right.transpose();
        for column in 0..dim {
            for row in 0..dim {
                let (a, b) = (row.max(column), row.min(column));
                point[column * dim + row] = rebuilt[(a, b)];
            }
        }
        Ok(self.lambda * lowered.iter().sum::<f64>())
    }
}

/// Rows √λ_k·v_kᵀ of the `rank` largest eigenvalues, largest first: M = LᵀL as far as they go.
pub(super) fn factor(matrix: &Symmetric, rank: usize) -> Result<Mat<f64>> {
    let factor = matrix.eigen()?.factor(rank);
    if factor.nrows() == 0 {
        return Err(Error::Data(
            "the learned matrix is 0: lambda outweighs what the constraints say".into(),
        ));
    }
    Ok(factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn loss(h: f64) -> FullLoss<'static> {
        let mut random = Stream::new(3, "full test", 0);
        let rows = Mat::from_fn(4, 15, |_, _| random.normal());
        let quadruplets = (0..40)
            .map(|n| {
                let mut row = || random.below(15);
                let quadruplet = Quadruplet {
                    near: [row(), row()],
                    far: [row(), row()],
                    strict: n % 4 > 0,
                };
                (quadruplet, f64::from(1 + n % 2) / 60.0)
            })
            .collect();
        FullLoss::new(rows, Hinge::rounded(h), 0.03, quadruplets)
    }

    #[test]
    fn gradient_equals_finite_differences() {
        let mut loss = loss(2.0);
        let mut random = Stream::new(4, "full test", 0);
        let root = Mat::from_fn(4, 4, |_, _| 0.3 * random.normal());
        let matrix = &root * root.transpose();
        let point: Vec<f64> = (0..16).map(|k| matrix[(k % 4, k / 4)]).collect();
        let (mut gradient, mut other) = (vec![0.0; 16], vec![0.0; 16]);
        loss.smooth(&point, &mut gradient).unwrap();
        let e = 1e-6;
        for k in 0..16 {
            // Both of a symmetric pair of entries are moved, as a symmetric matrix moves.
            let mirror = (k % 4) * 4 + k / 4;
            let mut at = |sign: f64| {
                let mut moved = point.clone();
                moved[k] += sign * e;
                if mirror != k {
                    moved[mirror] += sign * e;
                }
                loss.smooth(&moved, &mut other).unwrap()
            };
            let found = (at(1.0) - at(-1.0)) / (2.0 * e);
            let expected = gradient[k] + if mirror == k { 0.0 } else { gradient[mirror] };
            assert!((found - expected).abs() < 1e-7, "{k}: {found} {expected}");
        }
    }

    #[test]
    fn reaches_the_optimum_of_a_slow_reference() {
        let mut fast = loss(0.2);
        let (matrix, found) = fast.solve(5000).unwrap();
        // Plain projected gradient on f + λ·tr M with a small step: project onto M ⪰ 0.
        let mut slow = loss(0.2);
        let mut point = vec![0.0; 16];
        let mut gradient = vec![0.0; 16];
        let mut value = 0.0;
        for _ in 0..30_000 {
            value = slow.smooth(&point, &mut gradient).unwrap();
            for k in 0..16 {
                let trace = if k % 5 == 0 { slow.lambda } else { 0.0 };
                point[k] -= 0.01 * (gradient[k] + trace);
            }
            // A step of length 0 of the proximal map is the projection alone.
            let _ = slow.proximal(&mut point, 0.0).unwrap();
        }
        let trace: f64 = (0..4).map(|k| point[5 * k]).sum();
        value += slow.lambda * trace;
        assert!(
            (found.value - value).abs() < 1e-6,
            "{} {value}",
            found.value
        );
        for (k, expected) in point.iter().enumerate() {
            let got = matrix.entries()[(k % 4, k / 4)];
            assert!((got - expected).abs() < 1e-5, "{k}: {got} {expected}");
        }
        let map = factor(&matrix, 4).unwrap();
        let rebuilt = map.transpose() * &map;
        assert!((&rebuilt - matrix.entries()).norm_max() < 1e-10);
    }

    #[test]
    fn it_ends_where_somebody_asks() {
        let stop = AtomicBool::new(false);
        assert!(loss(0.05).until(Some(&stop)).solve(3).is_ok());
        stop.store(true, Ordering::Relaxed);
        let solved = loss(0.05).until(Some(&stop)).solve(3);
        assert!(matches!(solved, Err(Error::Interrupted)));
    }
}
