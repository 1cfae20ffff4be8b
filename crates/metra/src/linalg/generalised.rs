//! Directions in which one scatter matrix is largest relative to another: the generalised
//! eigenproblem that XQDA, LFDA and MFA end in.
//!
//! The lower matrix is decomposed and its small eigenvalues are lifted by a ridge, rather than
//! factorised by Cholesky: it is singular wherever there are fewer pairs than dimensions, and the
//! lifted values stay above 0 whatever the data.

use super::decompose::{Symmetric, rows_from};
use super::products::product;
use super::rows::RowBuf;
use crate::{Error, Result};
use faer::Mat;

/// Smallest lifted eigenvalue relative to the largest: rounding of f32 rows is not far below it.
const FLOOR: f64 = 1e-12;

/// Directions v with vᵀ·upper·v = ratio and vᵀ·(lower + ridge·I)·v = 1.
#[derive(Debug, Clone)]
pub(crate) struct Ratio {
    /// The ratios, largest first.
    pub values: Vec<f64>,
    /// The directions, one column each.
    pub vectors: Mat<f64>,
    /// What was added to the diagonal of the lower matrix.
    pub ridge: f64,
}

/// All directions, those of the largest ratio of `upper` to `lower` first. `ridge` is relative to
/// the mean eigenvalue tr/d of `lower`, or of `upper` where `lower` is 0. Ends where `check` fails.
pub(crate) fn largest_ratios(
    upper: &Symmetric,
    lower: &Symmetric,
    ridge: f64,
    check: &dyn Fn() -> Result<()>,
) -> Result<Ratio> {
    let dim = lower.dim();
    if upper.dim() != dim {
        return Err(Error::shape("rows of the upper matrix", dim, upper.dim()));
    }
    let eigen = lower.eigen_until(check)?;
    let mean = |trace: f64| trace.max(0.0) / dim.max(1) as f64;
    let scale = match mean(lower.trace()) {
        0.0 => mean(upper.trace()),
        scale => scale,
    };
    let ridge = ridge * scale;
    let largest = eigen.values.first().copied().unwrap_or(0.0).max(0.0) + ridge;
    let floor = FLOOR * if largest > 0.0 { largest } else { scale };
    if !(floor > 0.0 && floor.is_finite()) {
        return Err(Error::Data(
            "all vectors are equal: nothing can be learned".into(),
        ));
    }
    // Columns that make lower + ridge the identity.
    let mut whitening = eigen.vectors;
    for (column, value) in eigen.values.iter().enumerate() {
        let factor = 1.0 / (value.max(0.0) + ridge).max(floor).sqrt();
        for entry in whitening.col_as_slice_mut(column) {
            *entry *= factor;
        }
    }
    let half = product(upper.entries(), whitening.as_ref());
    let whitened = product(whitening.transpose(), half.as_ref());
    let solved = Symmetric::new(whitened)?.eigen_until(check)?;
    Ok(Ratio {
        values: solved.values,
        vectors: product(whitening.as_ref(), solved.vectors.as_ref()),
        ridge,
    })
}

impl Ratio {
    /// The first directions as f32 rows, each times its factor.
    pub(crate) fn scaled_rows(&self, factors: &[f64]) -> RowBuf {
        let mut scaled = self.vectors.as_ref().subcols(0, factors.len()).to_owned();
        for (column, factor) in factors.iter().enumerate() {
            for entry in scaled.col_as_slice_mut(column) {
                *entry *= factor;
            }
        }
        rows_from(scaled.transpose())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn random(dim: usize, rank: usize, counter: u64) -> Symmetric {
        let mut stream = Stream::new(1, "test", counter);
        let a = Mat::<f64>::from_fn(dim, rank, |_, _| stream.normal());
        Symmetric::new(&a * a.transpose()).unwrap()
    }

    fn quadratic(matrix: &Symmetric, left: usize, right: usize, vectors: &Mat<f64>) -> f64 {
        (vectors.transpose() * matrix.entries() * vectors)[(left, right)]
    }

    #[test]
    fn both_matrices_become_diagonal() {
        let (upper, mut lower) = (random(6, 9, 0), random(6, 9, 1));
        let found = largest_ratios(&upper, &lower, 0.1, &|| Ok(())).unwrap();
        assert!((found.ridge - 0.1 * lower.trace() / 6.0).abs() < 1e-12);
        for i in 0..6 {
            lower.entries_mut()[(i, i)] += found.ridge;
        }
        for i in 0..6 {
            for j in 0..6 {
                let (same, value) = if i == j {
                    (1.0, found.values[i])
                } else {
                    (0.0, 0.0)
                };
                assert!((quadratic(&lower, i, j, &found.vectors) - same).abs() < 1e-10);
                assert!((quadratic(&upper, i, j, &found.vectors) - value).abs() < 1e-9);
            }
        }
        assert!(found.values.windows(2).all(|w| w[0] >= w[1]));
    }

    #[test]
    fn singular_and_zero_matrices_stay_finite() {
        // Two pairs in six dimensions leave four directions without any lower spread.
        for (lower, ridge) in [
            (random(6, 2, 1), 0.0),
            (random(6, 2, 1), 0.01),
            (Symmetric::zeros(6), 0.0),
            (Symmetric::zeros(6), 0.01),
        ] {
            let found = largest_ratios(&random(6, 9, 0), &lower, ridge, &|| Ok(())).unwrap();
            assert!(found.values.iter().all(|v| v.is_finite()));
            let rows = found.scaled_rows(&[1.0, 2.0]);
            assert_eq!((rows.len(), rows.dim()), (2, 6));
            assert!(rows.values().iter().all(|v| v.is_finite()));
        }
        let zero = Symmetric::zeros(6);
        assert!(largest_ratios(&zero, &zero, 0.1, &|| Ok(())).is_err());
    }
}
