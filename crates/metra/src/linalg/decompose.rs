//! Decompositions, in f64 and on one thread: they are small beside the passes over data, and their
//! result must not depend on how many threads there are.

use super::rows::RowBuf;
use crate::{Error, Result};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par, Side};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Smaller matrices are decomposed before anybody could wait for it.
const QUICK: usize = 300;

/// A symmetric matrix in f64.
#[derive(Debug, Clone)]
pub struct Symmetric(Mat<f64>);

/// Eigenvalues from large to small with their vectors as columns.
#[derive(Debug, Clone)]
pub(crate) struct Eigen {
    /// Eigenvalues, largest first.
    pub values: Vec<f64>,
    /// Eigenvectors, one column each, in the order of the values. The sign is chosen so that the
    /// entry of largest size is positive: otherwise it would be an accident of rounding.
    pub vectors: Mat<f64>,
}

impl Symmetric {
    /// A (dim × dim) matrix of zeros.
    pub(crate) fn zeros(dim: usize) -> Self {
        Symmetric(Mat::zeros(dim, dim))
    }

    /// The matrix with these entries; only those on and below the diagonal are read.
    pub(crate) fn new(entries: Mat<f64>) -> Result<Self> {
        if entries.nrows() != entries.ncols() {
            return Err(Error::shape(
                "columns of a square matrix",
                entries.nrows(),
                entries.ncols(),
            ));
        }
        Ok(Symmetric(entries))
    }

    /// The entries on and below the diagonal, column after column: half of what is kept, for the
    /// way to another machine.
    pub(crate) fn into_packed(self) -> Vec<f64> {
        let dim = self.dim();
        let columns = (0..dim).map(|column| &self.0.col_as_slice(column)[column..]);
        columns.collect::<Vec<_>>().concat()
    }

    /// What [`Symmetric::into_packed`] gave, with both halves filled.
    pub(crate) fn from_packed(dim: usize, packed: &[f64]) -> Result<Self> {
        let expected = dim * (dim + 1) / 2;
        if packed.len() != expected {
            let what = "entries of a symmetric matrix";
            return Err(Error::shape(what, expected, packed.len()));
        }
        let mut entries = Mat::zeros(dim, dim);
        let mut rest = packed;
        for column in 0..dim {
            let (lower, after) = rest.split_at(dim - column);
            entries.col_as_slice_mut(column)[column..].copy_from_slice(lower);
            for (place, value) in lower.iter().enumerate() {
                entries[(column, column + place)] = *value;
            }
            rest = after;
        }
        Ok(Symmetric(entries))
    }

    /// The entries.
    pub fn entries(&self) -> MatRef<'_, f64> {
        self.0.as_ref()
    }

    /// The entries, to be changed.
    pub(crate) fn entries_mut(&mut self) -> &mut Mat<f64> {
        &mut self.0
    }

    /// Rows (and columns).
    pub fn dim(&self) -> usize {
        self.0.nrows()
    }

    /// Sum of the diagonal.
    pub(crate) fn trace(&self) -> f64 {
        (0..self.dim()).map(|i| self.0[(i, i)]).sum()
    }

    /// Eigenvalues and vectors, or the error of `check` as soon as it gives one. A decomposition cannot be
    /// interrupted: it runs on a thread of its own, which is left behind then and works on to its end.
    pub(crate) fn eigen_until(&self, check: &dyn Fn() -> Result<()>) -> Result<Eigen> {
        if self.dim() < QUICK {
            return self.eigen();
        }
        let (sender, receiver) = mpsc::channel();
        let matrix = self.clone();
        let solver = std::thread::Builder::new().spawn(move || sender.send(matrix.eigen()));
        // Where there is no thread to be had, it cannot be left behind.
        let Ok(solver) = solver else {
            return self.eigen();
        };
        loop {
            match receiver.recv_timeout(Duration::from_millis(50)) {
                Ok(eigen) => return eigen,
                Err(RecvTimeoutError::Timeout) => check()?,
                Err(RecvTimeoutError::Disconnected) => match solver.join() {
                    Ok(_) => unreachable!("it sends before it ends"),
                    Err(panic) => std::panic::resume_unwind(panic),
                },
            }
        }
    }

    /// Eigenvalues and vectors.
    pub(crate) fn eigen(&self) -> Result<Eigen> {
        let n = self.dim();
        for column in 0..n {
            for row in 0..n {
                if !self.0[(row, column)].is_finite() {
                    return Err(Error::Data(format!(
                        "entry ({row}, {column}) of a symmetric matrix is {}: the data's values \
                         are too large or not finite",
                        self.0[(row, column)]
                    )));
                }
            }
        }
        let solved = self
            .0
            .self_adjoint_eigen(Side::Lower)
            .map_err(|_| Error::Data("an eigendecomposition did not converge".into()))?;
        let (values, vectors) = (solved.S(), solved.U());
        let mut sorted = Mat::zeros(n, n);
        let mut sorted_values = Vec::with_capacity(n);
        for target in 0..n {
            let source = n - 1 - target; // faer gives them from small to large
            sorted_values.push(values[source]);
            let mut largest = 0.0_f64;
            for row in 0..n {
                let entry = vectors[(row, source)];
                if entry.abs() > largest.abs() {
                    largest = entry;
                }
            }
            let sign = if largest < 0.0 { -1.0 } else { 1.0 };
            for row in 0..n {
                sorted[(row, target)] = sign * vectors[(row, source)];
            }
        }
        Ok(Eigen {
            values: sorted_values,
            vectors: sorted,
        })
    }
}

impl Eigen {
    /// How many eigenvalues stand above rounding noise.
    pub(crate) fn numerical_rank(&self) -> usize {
        let largest = self.values.first().copied().unwrap_or(0.0).max(0.0);
        let floor = largest * self.values.len() as f64 * f64::EPSILON;
        self.values
            .iter()
            .take_while(|v| **v > floor && **v > 0.0)
            .count()
    }

    /// Rows √λ_k·v_kᵀ of the `rank` largest eigenvalues that stand above noise, largest first: L with LᵀL
    /// the matrix as far as they go. No row where none does.
    pub(crate) fn factor(&self, rank: usize) -> Mat<f64> {
        let rank = self.numerical_rank().min(rank);
        Mat::from_fn(rank, self.vectors.nrows(), |k, column| {
            self.values[k].sqrt() * self.vectors[(column, k)]
        })
    }

    /// The first `count` vectors as f32 rows.
    pub(crate) fn leading_rows(&self, count: usize) -> RowBuf {
        rows_from(self.vectors.as_ref().subcols(0, count).transpose())
    }
}

/// Directions that separate classes: the maximisers of between over within scatter, most
/// separating first, scaled so that the ridged within-class scatter becomes the identity (Fisher).
///
/// `between_factor` is (c × d) with between scatter = factorᵀ·factor. `ridge` is relative to the
/// mean eigenvalue tr/d of `within`, and the same eigendecomposition serves any ridge.
pub(crate) fn discriminant_directions(
    within: &Eigen,
    between_factor: MatRef<'_, f64>,
    ridge: f64,
    rank: usize,
) -> Result<RowBuf> {
    let dim = within.values.len();
    let mean = within.values.iter().map(|v| v.max(0.0)).sum::<f64>() / dim as f64;
    // With no scatter inside classes at all (every class a single repeated point) any positive
    // number gives the same directions.
    let add = if mean > 0.0 { ridge * mean } else { 1.0 };
    let floor = within.values.first().copied().unwrap_or(0.0).max(add) * 1e-12;
    let scale: Vec<f64> = within
        .values
        .iter()
        .map(|v| 1.0 / (v.max(0.0) + add).max(floor).sqrt())
        .collect();

    // Rows of `whitened` are the class offsets in coordinates where within scatter is the identity.
    let classes = between_factor.nrows();
    let mut whitened = Mat::zeros(classes, dim);
    matmul(
        whitened.as_mut(),
        Accum::Replace,
        between_factor,
        within.vectors.as_ref(),
        1.0,
        Par::Seq,
    );
    for column in 0..dim {
        for row in 0..classes {
            whitened[(row, column)] *= scale[column];
        }
    }
    let rank = rank.min(dim);
    let mut directions = Mat::zeros(rank, dim);
    // The smaller of the two Gram matrices has the same non-zero spectrum.
    if classes <= dim {
        let mut gram = Mat::zeros(classes, classes);
        let w = whitened.as_ref();
        matmul(
            gram.as_mut(),
            Accum::Replace,
            w,
            w.transpose(),
            1.0,
            Par::Seq,
        );
        let eigen = Symmetric::new(gram)?.eigen()?;
        let usable = eigen.numerical_rank().min(rank);
        for index in 0..usable {
            let length = eigen.values[index].sqrt();
            for column in 0..dim {
                directions[(index, column)] = (0..classes)
                    .map(|c| eigen.vectors[(c, index)] * whitened[(c, column)])
                    .sum::<f64>()
                    / length;
            }
        }
        complete_orthonormal(&mut directions, usable);
    } else {
        let mut scatter = Mat::zeros(dim, dim);
        let w = whitened.as_ref();
        matmul(
            scatter.as_mut(),
            Accum::Replace,
            w.transpose(),
            w,
            1.0,
            Par::Seq,
        );
        let eigen = Symmetric::new(scatter)?.eigen()?;
        for index in 0..rank {
            for column in 0..dim {
                directions[(index, column)] = eigen.vectors[(column, index)];
            }
        }
    }
    for column in 0..dim {
        for row in 0..rank {
            directions[(row, column)] *= scale[column];
        }
    }
    let mut map = Mat::zeros(rank, dim);
    matmul(
        map.as_mut(),
        Accum::Replace,
        directions.as_ref(),
        within.vectors.transpose(),
        1.0,
        Par::Seq,
    );
    Ok(rows_from(map.as_ref()))
}

/// Fill the rows from `known` on with unit vectors orthogonal to those before them. They follow
/// the coordinate axes in order: with the axes sorted by within scatter, these are the directions
/// in which the data varies most beyond what the classes determine.
fn complete_orthonormal(rows: &mut Mat<f64>, known: usize) {
    let (count, dim) = (rows.nrows(), rows.ncols());
    let mut next_axis = 0;
    for index in known..count {
        while next_axis < dim {
            let axis = next_axis;
            next_axis += 1;
            let mut candidate = vec![0.0; dim];
            candidate[axis] = 1.0;
            // Twice is enough for orthogonality to rounding (Kahan).
            for _ in 0..2 {
                for other in 0..index {
                    let dot: f64 = (0..dim).map(|k| candidate[k] * rows[(other, k)]).sum();
                    for (k, value) in candidate.iter_mut().enumerate() {
                        *value -= dot * rows[(other, k)];
                    }
                }
            }
            let norm = candidate.iter().map(|v| v * v).sum::<f64>().sqrt();
            if norm > 1e-6 {
                for (k, value) in candidate.iter().enumerate() {
                    rows[(index, k)] = value / norm;
                }
                break;
            }
        }
    }
}

/// The matrix as f32 rows.
pub(crate) fn rows_from(matrix: MatRef<'_, f64>) -> RowBuf {
    let mut rows = RowBuf::zeros(matrix.nrows(), matrix.ncols());
    for i in 0..matrix.nrows() {
        for (j, value) in rows.row_mut(i).iter_mut().enumerate() {
            *value = matrix[(i, j)] as f32;
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn eigenvectors_rebuild_the_matrix() {
        let mut stream = Stream::new(4, "test", 0);
        let a = Mat::<f64>::from_fn(9, 9, |_, _| stream.normal());
        let symmetric = Symmetric::new(&a * a.transpose()).unwrap();
        let eigen = symmetric.eigen().unwrap();
        assert!(eigen.values.windows(2).all(|w| w[0] >= w[1]));
        for i in 0..9 {
            for j in 0..9 {
                let rebuilt: f64 = (0..9)
                    .map(|k| eigen.vectors[(i, k)] * eigen.values[k] * eigen.vectors[(j, k)])
                    .sum();
                assert!((rebuilt - symmetric.entries()[(i, j)]).abs() < 1e-12 * eigen.values[0]);
            }
        }
    }

    #[test]
    fn non_finite_entries_are_an_error() {
        let mut matrix = Symmetric::zeros(2);
        matrix.entries_mut()[(1, 0)] = f64::NAN;
        assert!(matrix.eigen().is_err());
    }

    #[test]
    fn fisher_direction_of_two_classes() {
        // Within scatter diag(4, 1), class means differ by (1, 1): the direction is
        // S_w^-1 (1, 1) = (1/4, 1), up to length.
        let mut within = Symmetric::zeros(2);
        within.entries_mut()[(0, 0)] = 4.0;
        within.entries_mut()[(1, 1)] = 1.0;
        let between = Mat::from_fn(1, 2, |_, _| 1.0);
        let map =
            discriminant_directions(&within.eigen().unwrap(), between.as_ref(), 0.0, 2).unwrap();
        let first = map.row(0);
        assert!((first[0] / first[1] - 0.25).abs() < 1e-6);
        // The second row completes the map: its directions are orthogonal in the within metric.
        let second = map.row(1);
        let product = 4.0 * first[0] * second[0] + first[1] * second[1];
        assert!(product.abs() < 1e-5);
    }
}
