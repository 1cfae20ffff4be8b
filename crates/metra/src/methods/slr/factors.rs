//! Low-rank factors of the similarity in whitened coordinates: the best ones for a fixed target,
//! and their conversion to maps.
//!
//! In whitened coordinates M̂ = P^(-1/2) M P^(-1/2) the penalised problem is ‖M̂ − N‖² with
//! N = P^(1/2) X̃ᵀYX̃ P^(1/2), so that its best solution of rank r is N's truncated singular value
//! decomposition (Yu & Schuurmans 2011): the alternation of Alg. 3 has nothing to find for a fixed
//! target.

use super::side::product;
use crate::linalg::Symmetric;
use crate::{Error, Result};
use faer::{Mat, MatRef};

/// M̂ = left · rightᵀ.
pub(super) struct Factors {
    pub(super) left: Mat<f64>,
    /// `None` for the identity: the left factor is then the whole M̂.
    pub(super) right: Option<Mat<f64>>,
}

impl Factors {
    /// All of M̂.
    pub(super) fn whole(matrix: Mat<f64>) -> Self {
        Factors {
            left: matrix,
            right: None,
        }
    }

    /// The best of at most this rank for N = root · rootᵀ.
    pub(super) fn of_square(root: MatRef<'_, f64>, rank: usize) -> Result<Self> {
        let (left, values, _) = decompose(root, rank)?;
        let left = scaled(left, &values);
        Ok(Factors {
            right: Some(left.clone()),
            left,
        })
    }

    /// The best of at most this rank for N itself.
    pub(super) fn of(matrix: MatRef<'_, f64>, rank: usize) -> Result<Self> {
        let (left, values, right) = decompose(matrix, rank)?;
        let roots: Vec<f64> = values.iter().map(|value| value.sqrt()).collect();
        Ok(Factors {
            left: scaled(left, &roots),
            right: Some(scaled(right, &roots)),
        })
    }

    /// The same M̂ with room for this rank: the right factor gets the leading axes beside its own
    /// directions, the left one zeros, which the next solve replaces. A target of few classes would
    /// otherwise hold the similarity down to as few directions.
    pub(super) fn widened(self, rank: usize) -> Self {
        let Some(right) = self.right else {
            return self;
        };
        let known = right.ncols();
        let width = rank.max(known);
        Factors {
            left: Mat::from_fn(self.left.nrows(), width, |i, j| {
                if j < known { self.left[(i, j)] } else { 0.0 }
            }),
            right: Some(Mat::from_fn(right.nrows(), width, |i, j| {
                if j < known {
                    right[(i, j)]
                } else {
                    f64::from(u8::from(i == j - known))
                }
            })),
        }
    }

    /// The same M̂ with an orthonormal right factor.
    pub(super) fn orthonormal_right(&mut self) {
        if let Some(right) = &mut self.right {
            let solved = right.qr();
            self.left = product(self.left.as_ref(), solved.thin_R().transpose());
            *right = solved.compute_thin_Q();
        }
    }

    /// Left as right and right as left. The whole M̂ stays as it is.
    pub(super) fn swap(&mut self) {
        if let Some(right) = &mut self.right {
            std::mem::swap(&mut self.left, right);
        }
    }

    /// Two factors of at most this rank with equal shares of the singular values: what a cosine
    /// between them depends on, since M̂ alone leaves the factors free.
    pub(super) fn balanced(&self, rank: usize) -> Result<(Mat<f64>, Mat<f64>)> {
        let (left, right) = match &self.right {
            None => {
                let Factors { left, right } = Self::of(self.left.as_ref(), rank)?;
                (left, right)
            }
            Some(right) => {
                let (a, b) = (self.left.qr(), right.qr());
                let core = product(a.thin_R(), b.thin_R().transpose());
                let small = Self::of(core.as_ref(), rank)?;
                let left = product(a.compute_thin_Q().as_ref(), small.left.as_ref());
                let right = small
                    .right
                    .map(|right| product(b.compute_thin_Q().as_ref(), right.as_ref()));
                (left, right)
            }
        };
        let right = right.unwrap_or_else(|| left.clone());
        Ok((left, right))
    }

    /// A factor H of at most this rank with H·Hᵀ the nearest positive semi-definite matrix to M̂
    /// of that rank: one map for both sides, compared by any score.
    pub(super) fn symmetric(&self, rank: usize) -> Result<Mat<f64>> {
        let (basis, core) = match &self.right {
            None => (None, symmetric_part(&self.left)),
            Some(right) => {
                let (rows, columns) = (self.left.nrows(), self.left.ncols());
                let both = Mat::from_fn(rows, 2 * columns, |i, j| {
                    if j < columns {
                        self.left[(i, j)]
                    } else {
                        right[(i, j - columns)]
                    }
                });
                let basis = both.qr().compute_thin_Q();
                let left = product(basis.transpose(), self.left.as_ref());
                let right = product(basis.transpose(), right.as_ref());
                let core = product(left.as_ref(), right.transpose());
                (Some(basis), symmetric_part(&core))
            }
        };
        let eigen = Symmetric::new(core)?.eigen()?;
        let kept = eigen.numerical_rank().min(rank);
        if kept == 0 {
            return Err(nothing());
        }
        let roots: Vec<f64> = eigen.values[..kept].iter().map(|v| v.sqrt()).collect();
        let small = scaled(eigen.vectors.as_ref().subcols(0, kept).to_owned(), &roots);
        Ok(match basis {
            None => small,
            Some(basis) => product(basis.as_ref(), small.as_ref()),
        })
    }
}

/// Leading singular vectors and values, those above rounding.
fn decompose(matrix: MatRef<'_, f64>, rank: usize) -> Result<(Mat<f64>, Vec<f64>, Mat<f64>)> {
    let finite =
        (0..matrix.ncols()).all(|j| (0..matrix.nrows()).all(|i| matrix[(i, j)].is_finite()));
    let failed = || Error::Data("a singular value decomposition did not converge".into());
    if !finite {
        return Err(Error::Data(
            "sums over the rows are not finite: the vectors' values are too large".into(),
        ));
    }
    let solved = matrix.thin_svd().map_err(|_| failed())?;
    let values = solved.S().column_vector();
    let largest = values.iter().fold(0.0_f64, |most, value| most.max(*value));
    // Sums of rows that cancel, as those of all classes do after centring, leave 1e-10 of them.
    let kept = (values.iter().take(rank))
        .take_while(|value| **value > 1e-8 * largest)
        .count();
    if kept == 0 {
        return Err(nothing());
    }
    let signs: Vec<f64> = (0..kept).map(|k| sign_of(solved.U(), k)).collect();
    let left = scaled(solved.U().subcols(0, kept).to_owned(), &signs);
    let right = scaled(solved.V().subcols(0, kept).to_owned(), &signs);
    Ok((left, values.iter().take(kept).copied().collect(), right))
}

/// The sign that makes the largest entry of a column positive: otherwise it would be an accident
/// of rounding.
fn sign_of(matrix: MatRef<'_, f64>, column: usize) -> f64 {
    let mut largest = 0.0_f64;
    for row in 0..matrix.nrows() {
        let entry = matrix[(row, column)];
        if entry.abs() > largest.abs() {
            largest = entry;
        }
    }
    if largest < 0.0 { -1.0 } else { 1.0 }
}

fn scaled(mut matrix: Mat<f64>, factors: &[f64]) -> Mat<f64> {
    for (column, factor) in factors.iter().enumerate() {
        for value in matrix.col_as_slice_mut(column) {
            *value *= factor;
        }
    }
    matrix
}

fn symmetric_part(matrix: &Mat<f64>) -> Mat<f64> {
    Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| {
        0.5 * (matrix[(i, j)] + matrix[(j, i)])
    })
}

fn nothing() -> Error {
    Error::Data("no direction tells relevant from irrelevant pairs: nothing can be learned".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn random(rows: usize, columns: usize, seed: u64) -> Mat<f64> {
        let mut stream = Stream::new(seed, "test", 0);
        Mat::from_fn(rows, columns, |_, _| stream.normal())
    }

    fn assert_equal(a: &Mat<f64>, b: &Mat<f64>) {
        assert!((a - b).norm_max() < 1e-10, "{}", (a - b).norm_max());
    }

    #[test]
    fn factors_keep_the_product() {
        let (left, right) = (random(9, 3, 1), random(7, 3, 2));
        let whole = product(left.as_ref(), right.transpose());
        let factors = Factors {
            left,
            right: Some(right),
        };
        let mut factors = factors.widened(5);
        factors.orthonormal_right();
        let q = factors.right.clone().unwrap();
        assert_equal(&product(q.transpose(), q.as_ref()), &Mat::identity(5, 5));
        assert_equal(&product(factors.left.as_ref(), q.transpose()), &whole);
        let (a, b) = factors.balanced(3).unwrap();
        assert_equal(&product(a.as_ref(), b.transpose()), &whole);
        // Equal shares: both have the singular values as their Gram matrix.
        let (gram_a, gram_b) = (
            product(a.transpose(), a.as_ref()),
            product(b.transpose(), b.as_ref()),
        );
        assert_equal(&gram_a, &gram_b);
        let dense = Factors {
            left: whole.clone(),
            right: None,
        };
        let (c, d) = dense.balanced(3).unwrap();
        assert_equal(&product(c.as_ref(), d.transpose()), &whole);
    }

    #[test]
    fn symmetric_factor_is_the_positive_part() {
        // L Rᵀ with L = (a, b), R = (a, −b) for orthonormal a, b of lengths 2 and 1: the positive
        // part is 4 aaᵀ.
        let q = random(6, 2, 3).qr().compute_thin_Q();
        let left = scaled(q.clone(), &[2.0, 1.0]);
        let right = scaled(q.clone(), &[2.0, -1.0]);
        let a = q.as_ref().subcols(0, 1);
        let mut expected = product(a, a.transpose());
        expected *= faer::Scale(4.0);
        let whole = product(left.as_ref(), right.transpose());
        for factors in [
            Factors {
                left,
                right: Some(right),
            },
            Factors {
                left: whole,
                right: None,
            },
        ] {
            let found = factors.symmetric(1).unwrap();
            assert_equal(&product(found.as_ref(), found.transpose()), &expected);
        }
    }

    #[test]
    fn no_better_factors_of_the_rank_exist() {
        // The distance of the truncated decomposition is the root of the squared singular values
        // left out (Eckart & Young).
        let matrix = random(8, 6, 4);
        let all = matrix.thin_svd().unwrap();
        let rest: f64 = all.S().column_vector().iter().skip(2).map(|v| v * v).sum();
        let factors = Factors::of(matrix.as_ref(), 2).unwrap();
        let found = product(factors.left.as_ref(), factors.right.unwrap().transpose());
        assert!(((&found - &matrix).norm_l2() - rest.sqrt()).abs() < 1e-10);
        let square = Factors::of_square(matrix.as_ref(), 6).unwrap();
        let found = product(square.left.as_ref(), square.right.unwrap().transpose());
        assert_equal(&found, &product(matrix.as_ref(), matrix.transpose()));
    }
}
