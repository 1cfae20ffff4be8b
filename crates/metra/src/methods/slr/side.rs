//! One side of the regression: the rows of queries or of items, centred and with a constant
//! appended where that is wanted, and the inverse of their Gram matrix.
//!
//! X̃ are these rows (n × d̃). One eigendecomposition of X̃ᵀX̃ serves every ridge. The ridge is put
//! on both sides, M = (X̃ᵀX̃ + ρI)⁻¹ X̃ᵀYX̃ (X̃ᵀX̃ + ρI)⁻¹: that is eq. 3 with √ρ·I appended to the
//! rows of either side at target 0, and it keeps the problem one of least squares, so that its
//! best solution of a given rank is a truncated singular value decomposition.

use crate::data::{Corpus, Keys, RowId, SCAN_ROWS};
use crate::execute::{Moments, keyed_sums, moments};
use crate::linalg::{Eigen, RowBuf, Rows, Symmetric, transposed_product};
use crate::model::LowRank;
use crate::training::parameters::Choice;
use crate::{Error, Result};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};

/// How the Gram matrix, which is singular on real data, is inverted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Inversion {
    /// The ridge is added to every eigenvalue.
    Ridge,
    /// Directions with eigenvalues below the ridge are left out.
    Truncated,
}

impl Choice for Inversion {
    const ALL: &'static [(&'static str, Self)] = &[
        ("ridge", Inversion::Ridge),
        ("truncated", Inversion::Truncated),
    ];
}

/// The rows of one side with the eigenvalues of their Gram matrix.
pub(super) struct Side<'a> {
    corpus: &'a dyn Corpus,
    /// What is subtracted from every row.
    mean: Vec<f64>,
    /// What is appended to every row; 0 for nothing.
    constant: f64,
    /// Mean squared value of a column summed over rows, tr/d: what ridges are relative to.
    scale: f64,
    eigen: Eigen,
}

impl<'a> Side<'a> {
    /// The rows of a corpus. The constant is their root mean square length, so that multiplying
    /// all vectors by a number changes nothing.
    pub(super) fn new(corpus: &'a dyn Corpus, centre: bool, bias: bool) -> Result<Self> {
        let seen = moments(corpus)?;
        let zeros = vec![0.0; corpus.dim()];
        let mean = if centre { seen.mean.clone() } else { zeros };
        let trace =
            seen.count as f64 * (seen.covariance.trace() + squared_distance(&seen.mean, &mean));
        if !trace.is_finite() {
            return Err(Error::Data(format!(
                "the sum of the vectors' squared values is {trace}: they are too large or not \
                 finite"
            )));
        }
        if trace <= 0.0 {
            return Err(Error::Data(
                "all vectors are equal: nothing can be learned".into(),
            ));
        }
        let constant = if bias {
            (trace / seen.count as f64).sqrt()
        } else {
            0.0
        };
        let gram = gram(&seen, &mean, constant)?;
        Ok(Side {
            corpus,
            mean,
            constant,
            scale: trace / corpus.dim() as f64,
            eigen: gram.eigen()?,
        })
    }

    /// Number of rows.
    pub(super) fn len(&self) -> u64 {
        self.corpus.len()
    }

    /// Numbers in a row, the appended one included.
    pub(super) fn width(&self) -> usize {
        self.corpus.dim() + usize::from(self.constant != 0.0)
    }

    /// Eigenvalues of X̃ᵀX̃ with their vectors.
    pub(super) fn eigen(&self) -> &Eigen {
        &self.eigen
    }

    /// What is taken from rows, and the number appended to them (0 for none).
    pub(super) fn preparation(&self) -> (&[f64], f64) {
        (&self.mean, self.constant)
    }

    /// The corpus.
    pub(super) fn corpus(&self) -> &'a dyn Corpus {
        self.corpus
    }

    /// The ridge in the units of the Gram matrix.
    pub(super) fn ridge(&self, relative: f64) -> f64 {
        relative * self.scale
    }

    /// The Gram matrix of some of the rows, prepared as all are.
    pub(super) fn gram_of(&self, rows: &dyn Corpus) -> Result<Symmetric> {
        gram(&moments(rows)?, &self.mean, self.constant)
    }

    /// Sums of the rows by key, one column a key (d̃ × keys).
    pub(super) fn sums(&self, keys: Keys<'_>, count: usize) -> Result<Mat<f64>> {
        let found = keyed_sums(self.corpus, keys, count)?;
        let dim = self.corpus.dim();
        Ok(Mat::from_fn(self.width(), count, |row, key| {
            let rows = found.counts[key] as f64;
            if row < dim {
                found.sums[(key, row)] - rows * self.mean[row]
            } else {
                rows * self.constant
            }
        }))
    }

    /// Rows as the regression sees them, in f64 (rows × d̃).
    pub(super) fn prepared(&self, rows: Rows<'_>) -> Mat<f64> {
        Mat::from_fn(rows.len(), self.width(), |row, column| {
            match rows.row(row).get(column) {
                Some(value) => f64::from(*value) - self.mean[column],
                None => self.constant,
            }
        })
    }

    /// x ↦ factorᵀ x̃ as a map of the vectors themselves, for a factor of d̃ × rank.
    pub(super) fn map(&self, factor: MatRef<'_, f64>) -> Result<LowRank> {
        let dim = self.corpus.dim();
        let mut weights = RowBuf::zeros(factor.ncols(), dim);
        let mut offset = vec![0.0_f32; factor.ncols()];
        for (rank, offset) in offset.iter_mut().enumerate() {
            let mut sum = 0.0;
            for (column, weight) in weights.row_mut(rank).iter_mut().enumerate() {
                *weight = factor[(column, rank)] as f32;
                sum += f64::from(*weight) * self.mean[column];
            }
            if self.constant != 0.0 {
                sum -= self.constant * factor[(dim, rank)];
            }
            *offset = sum as f32;
        }
        let moved = offset.iter().any(|value| *value != 0.0);
        LowRank::new(weights, moved.then_some(offset))
    }

    /// All rows (or those named) mapped by a factor.
    pub(super) fn embed(&self, factor: MatRef<'_, f64>, rows: Option<&[RowId]>) -> Result<RowBuf> {
        let map = self.map(factor)?;
        let mut all = RowBuf::empty(map.output_dim());
        let mut mapped = RowBuf::empty(map.output_dim());
        let mut take = |rows: Rows<'_>| -> Result<()> {
            map.apply(rows, &mut mapped)?;
            all.extend(mapped.rows());
            Ok(())
        };
        match rows {
            None => self
                .corpus
                .scan(0..self.corpus.len(), &mut |_, rows| take(rows))?,
            Some(named) => {
                let mut gathered = RowBuf::empty(self.corpus.dim());
                for block in named.chunks(SCAN_ROWS) {
                    self.corpus.gather(block, &mut gathered)?;
                    take(gathered.rows())?;
                }
            }
        }
        Ok(all)
    }

    /// X̃ᵀ · values for one row of values a row of the given corpus, prepared as all rows are.
    pub(super) fn transposed_times(&self, rows: &dyn Corpus, values: Rows<'_>) -> Result<Mat<f64>> {
        let dim = rows.dim();
        let mut total = Mat::<f64>::zeros(self.width(), values.dim());
        let mean: Vec<f32> = self.mean.iter().map(|m| *m as f32).collect();
        let mut centred = RowBuf::empty(dim);
        let mut part = RowBuf::empty(values.dim());
        rows.scan(0..rows.len(), &mut |first, block| {
            centred.clear(dim);
            centred.extend(block);
            for row in centred.values_mut().chunks_exact_mut(dim) {
                for (value, mean) in row.iter_mut().zip(&mean) {
                    *value -= mean;
                }
            }
            let first = first as usize;
            let values = values.slice(first, first + block.len());
            transposed_product(centred.rows(), values, &mut part)?;
            // Blocks are summed in f32, their sums in f64.
            for (row, part) in part.rows().iter().enumerate() {
                for (column, value) in part.iter().enumerate() {
                    total[(row, column)] += f64::from(*value);
                }
            }
            if self.constant != 0.0 {
                for values in values.iter() {
                    for (column, value) in values.iter().enumerate() {
                        total[(dim, column)] += self.constant * f64::from(*value);
                    }
                }
            }
            Ok(())
        })?;
        Ok(total)
    }

    /// X̃ᵀ · values over all rows.
    pub(super) fn transposed(&self, values: Rows<'_>) -> Result<Mat<f64>> {
        self.transposed_times(self.corpus, values)
    }
}

/// X̃ᵀX̃ of rows with these moments, this mean taken off and this constant appended.
fn gram(seen: &Moments, mean: &[f64], constant: f64) -> Result<Symmetric> {
    let (count, dim) = (seen.count as f64, mean.len());
    let offset: Vec<f64> = seen.mean.iter().zip(mean).map(|(s, m)| s - m).collect();
    let covariance = seen.covariance.entries();
    let width = dim + usize::from(constant != 0.0);
    Symmetric::new(Mat::from_fn(width, width, |row, column| {
        match (offset.get(row), offset.get(column)) {
            (Some(a), Some(b)) => count * (covariance[(row, column)] + a * b),
            (Some(a), None) | (None, Some(a)) => count * constant * a,
            (None, None) => count * constant * constant,
        }
    }))
}

fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// The regularised inverse P = U diag(p) Uᵀ of a Gram matrix, by its root.
///
/// Whitened coordinates of a factor L are P^(-1/2)L: in them the regression's penalised norm is
/// the plain one.
pub(super) struct Inverse<'a> {
    vectors: MatRef<'a, f64>,
    /// √p, 0 for directions that are left out.
    roots: Vec<f64>,
}

impl<'a> Inverse<'a> {
    /// The inverse with this ridge, in the units of the eigenvalues. Without a ridge it is the
    /// pseudo-inverse of eq. 3.
    pub(super) fn new(eigen: &'a Eigen, ridge: f64, inversion: Inversion) -> Self {
        // Eigenvalues below this are rounding: rows of f32 have no smaller ones.
        let noise = eigen.values.first().copied().unwrap_or(0.0).max(0.0) * 1e-12;
        let roots = eigen.values.iter().map(|value| {
            let (kept, value) = match inversion {
                Inversion::Ridge => {
                    let value = value.max(0.0) + ridge;
                    (value > noise, value)
                }
                Inversion::Truncated => (*value > noise.max(ridge), *value),
            };
            if kept { 1.0 / value.sqrt() } else { 0.0 }
        });
        Inverse {
            vectors: eigen.vectors.as_ref(),
            roots: roots.collect(),
        }
    }

    /// √p of every direction.
    pub(super) fn roots(&self) -> &[f64] {
        &self.roots
    }

    /// diag(√p) Uᵀ · sums: what X̃ᵀK of least squares becomes in whitened coordinates.
    pub(super) fn whiten(&self, sums: MatRef<'_, f64>) -> Mat<f64> {
        self.scaled(product(self.vectors.transpose(), sums), |root| root)
    }

    /// diag(1/√p) Uᵀ · factor: a factor in whitened coordinates.
    pub(super) fn coordinates(&self, factor: MatRef<'_, f64>) -> Mat<f64> {
        let rotated = product(self.vectors.transpose(), factor);
        self.scaled(rotated, |root| if root > 0.0 { 1.0 / root } else { 0.0 })
    }

    /// U diag(√p) · whitened: the factor with these whitened coordinates.
    pub(super) fn factor(&self, whitened: MatRef<'_, f64>) -> Mat<f64> {
        let scaled = self.scaled(whitened.to_owned(), |root| root);
        product(self.vectors, scaled.as_ref())
    }

    fn scaled(&self, mut matrix: Mat<f64>, scale: impl Fn(f64) -> f64) -> Mat<f64> {
        for column in 0..matrix.ncols() {
            for (value, root) in matrix.col_as_slice_mut(column).iter_mut().zip(&self.roots) {
                *value *= scale(*root);
            }
        }
        matrix
    }
}

/// left · right on one thread.
pub(super) fn product(left: MatRef<'_, f64>, right: MatRef<'_, f64>) -> Mat<f64> {
    let mut out = Mat::zeros(left.nrows(), right.ncols());
    matmul(out.as_mut(), Accum::Replace, left, right, 1.0, Par::Seq);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::random::Stream;

    pub(super) fn corpus(len: usize, dim: usize, mean: f64) -> MemoryCorpus {
        let mut stream = Stream::new(2, "test", 0);
        let values = (0..len * dim)
            .map(|_| (mean + stream.normal()) as f32)
            .collect();
        MemoryCorpus::new(RowBuf::from_values(values, dim).unwrap()).unwrap()
    }

    #[test]
    fn gram_sums_and_maps_follow_the_prepared_rows() {
        let rows = corpus(1500, 4, 3.0);
        for (centre, bias) in [(true, true), (true, false), (false, true), (false, false)] {
            let side = Side::new(&rows, centre, bias).unwrap();
            let prepared = side.prepared(rows.rows());
            let gram = product(prepared.transpose(), prepared.as_ref());
            let expected = Symmetric::new(gram.clone()).unwrap().eigen().unwrap();
            for (a, b) in side.eigen.values.iter().zip(&expected.values) {
                assert!((a - b).abs() < 1e-6 * expected.values[0], "{a} {b}");
            }
            // tr/d is of the vectors alone, without the constant.
            let trace: f64 = (0..4).map(|i| gram[(i, i)]).sum();
            assert!((side.scale / (trace / 4.0) - 1.0).abs() < 1e-9);
            let factor = Mat::from_fn(side.width(), 2, |i, j| (i + 3 * j) as f64 - 2.0);
            let embedded = side.embed(factor.as_ref(), None).unwrap();
            let expected = product(prepared.as_ref(), factor.as_ref());
            let named = side.embed(factor.as_ref(), Some(&[7, 1200])).unwrap();
            for (place, row) in [(0, 7), (1, 1200)] {
                for j in 0..2 {
                    let wanted = expected[(row, j)];
                    assert!((f64::from(embedded.row(row)[j]) - wanted).abs() < 1e-4);
                    assert_eq!(named.row(place)[j], embedded.row(row)[j]);
                }
            }
            let sums = side.transposed(embedded.rows()).unwrap();
            let expected = product(prepared.transpose(), expected.as_ref());
            for i in 0..side.width() {
                for j in 0..2 {
                    let difference = sums[(i, j)] - expected[(i, j)];
                    assert!(difference.abs() < 1e-4 * expected.norm_max());
                }
            }
            let keys: Vec<u32> = (0..1500).map(|row| row % 3).collect();
            let by_key = side.sums(Keys::Class(&keys), 3).unwrap();
            for i in 0..side.width() {
                let wanted: f64 = (0..500).map(|n| prepared[(3 * n + 1, i)]).sum();
                assert!((by_key[(i, 1)] - wanted).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn inverses_by_hand() {
        // Eigenvalues 3 and 1 of ((2, 1), (1, 2)); the ridge of 1 makes them 4 and 2, the
        // truncation at 2 leaves 3 alone, in the direction (1, 1)/√2.
        let gram = Mat::from_fn(2, 2, |i, j| if i == j { 2.0 } else { 1.0 });
        let eigen = Symmetric::new(gram).unwrap().eigen().unwrap();
        let identity = Mat::<f64>::identity(2, 2);
        let inverse = |ridge, inversion| {
            let inverse = Inverse::new(&eigen, ridge, inversion);
            inverse.factor(inverse.whiten(identity.as_ref()).as_ref())
        };
        let ridged = inverse(1.0, Inversion::Ridge);
        assert!((ridged[(0, 0)] - 0.5 * (0.25 + 0.5)).abs() < 1e-12);
        assert!((ridged[(0, 1)] - 0.5 * (0.25 - 0.5)).abs() < 1e-12);
        let truncated = inverse(2.0, Inversion::Truncated);
        assert!((truncated[(0, 0)] - 1.0 / 6.0).abs() < 1e-12);
        assert!((truncated[(0, 1)] - 1.0 / 6.0).abs() < 1e-12);
        let there = Inverse::new(&eigen, 1.0, Inversion::Ridge);
        let back = there.factor(there.coordinates(identity.as_ref()).as_ref());
        assert!((back[(0, 0)] - 1.0).abs() < 1e-12 && back[(0, 1)].abs() < 1e-12);
    }
}
