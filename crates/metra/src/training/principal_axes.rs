//! Principal axes of a corpus, by whichever of the two Gram matrices is smaller.
//!
//! With fewer rows than dimensions the centred rows span at most n − 1 directions. Coordinates in
//! an orthonormal basis of these are exact: all distances stay, learning becomes d/n times cheaper,
//! and the learned map is carried back by one product.

use crate::data::{Corpus, MemoryCorpus};
use crate::execute::{MOST_DIMENSIONS, Moments, moments};
use crate::linalg::{Eigen, RowBuf, Symmetric, accumulate_outer, map_rows, transposed_product};
use crate::model::LowRank;
use crate::{Error, Result};
use faer::Mat;

/// Mean, principal directions and variances of a corpus.
pub(crate) struct PrincipalAxes {
    /// Mean of the rows.
    pub(crate) mean: Vec<f64>,
    /// Orthonormal directions, largest variance first.
    pub(crate) basis: Basis,
    /// Variance along each direction.
    pub(crate) variances: Vec<f64>,
    dim: usize,
}

/// Orthonormal directions as rows.
pub(crate) struct Basis(RowBuf);

impl Basis {
    /// The first `count` directions.
    pub(crate) fn leading_rows(&self, count: usize) -> RowBuf {
        let dim = self.0.dim();
        RowBuf::from_values(self.0.values()[..count * dim].to_vec(), dim)
            .expect("whole rows were taken")
    }

    pub(crate) fn rows(&self) -> &RowBuf {
        &self.0
    }
}

impl PrincipalAxes {
    /// Directions with variance above rounding noise.
    pub(crate) fn rank(&self) -> usize {
        self.variances.len()
    }

    /// A map of reduced coordinates as a map of the vectors themselves: map · basis.
    pub(crate) fn carry_back(&self, map: &RowBuf) -> Result<RowBuf> {
        let mut full = RowBuf::empty(self.dim);
        transposed_product(transposed(map).rows(), self.basis.rows().rows(), &mut full)?;
        Ok(full)
    }

    /// The whitening map of this rank with a ridge relative to the mean variance.
    pub(crate) fn whitening(&self, rank: usize, ridge: f64) -> Result<LowRank> {
        let mean_variance = self.variances.iter().sum::<f64>() / self.dim as f64;
        let mut weights = self.basis.leading_rows(rank);
        for (index, variance) in self.variances[..rank].iter().enumerate() {
            let factor = (1.0 / (variance + ridge * mean_variance).sqrt()) as f32;
            for value in weights.row_mut(index) {
                *value *= factor;
            }
        }
        LowRank::centred(weights, &self.mean)
    }
}

/// Rows as columns.
pub(crate) fn transposed(rows: &RowBuf) -> RowBuf {
    let mut out = RowBuf::zeros(rows.dim(), rows.len());
    for (row, values) in rows.rows().iter().enumerate() {
        for (column, value) in values.iter().enumerate() {
            out.row_mut(column)[row] = *value;
        }
    }
    out
}

/// Numbers whose principal axes are taken: as many as a matrix of the dimensions may have.
const MOST_NUMBERS: u64 = (MOST_DIMENSIONS * MOST_DIMENSIONS) as u64;

/// Principal axes of all rows.
pub(crate) fn principal_axes(corpus: &dyn Corpus) -> Result<PrincipalAxes> {
    let dim = corpus.dim();
    if corpus.len() >= dim as u64 {
        let Moments {
            mean, covariance, ..
        } = moments(corpus)?;
        let eigen = covariance.eigen_until(&|| corpus.check_stop())?;
        let rank = significant(&eigen);
        return Ok(PrincipalAxes {
            mean,
            basis: Basis(eigen.leading_rows(rank)),
            variances: eigen.values[..rank].to_vec(),
            dim,
        });
    }
    let count = corpus.len() as usize;
    if (count as u64).saturating_mul(dim as u64) > MOST_NUMBERS {
        return Err(Error::shape(
            "rows times dimensions, for their principal axes",
            format!("at most {MOST_NUMBERS} (prepare with svd:N first)"),
            format!("{count} × {dim}"),
        ));
    }
    let mut rows = Mat::<f64>::zeros(dim, count);
    corpus.scan(0..corpus.len(), &mut |first, block| {
        for (index, row) in block.iter().enumerate() {
            let target = rows.col_as_slice_mut(first as usize + index);
            for (target, value) in target.iter_mut().zip(row) {
                *target = f64::from(*value);
            }
        }
        Ok(())
    })?;
    let mean: Vec<f64> = (0..dim)
        .map(|d| (0..count).map(|n| rows[(d, n)]).sum::<f64>() / count as f64)
        .collect();
    for column in 0..count {
        for (value, mean) in rows.col_as_slice_mut(column).iter_mut().zip(&mean) {
            *value -= mean;
        }
    }
    let mut gram = Symmetric::zeros(count);
    accumulate_outer(rows.as_ref(), gram.entries_mut().as_mut());
    let eigen = gram.eigen_until(&|| corpus.check_stop())?;
    let rank = significant(&eigen).min(count.saturating_sub(1));
    // Direction k is Σ_n u_nk x_n / √λ_k.
    let mut directions = Mat::<f64>::zeros(dim, rank);
    faer::linalg::matmul::matmul(
        directions.as_mut(),
        faer::Accum::Replace,
        rows.as_ref(),
        eigen.vectors.as_ref().subcols(0, rank),
        1.0,
        faer::Par::Seq,
    );
    let mut basis = RowBuf::zeros(rank, dim);
    for k in 0..rank {
        let length = eigen.values[k].sqrt();
        for (d, value) in basis.row_mut(k).iter_mut().enumerate() {
            *value = (directions[(d, k)] / length) as f32;
        }
    }
    Ok(PrincipalAxes {
        mean,
        basis: Basis(basis),
        variances: eigen.values[..rank]
            .iter()
            .map(|v| v / count as f64)
            .collect(),
        dim,
    })
}

/// Eigenvalues that rows of f32 can really have: their rounding alone makes variances of about
/// 1e-14 of the largest, and directions made of it would be noise.
fn significant(eigen: &Eigen) -> usize {
    let floor = eigen.values.first().copied().unwrap_or(0.0) * 1e-12;
    eigen.values[..eigen.numerical_rank()]
        .iter()
        .take_while(|v| **v > floor)
        .count()
}

/// All rows in coordinates of the principal axes: (x − mean)·basisᵀ.
pub(crate) fn coordinates(corpus: &dyn Corpus, axes: &PrincipalAxes) -> Result<MemoryCorpus> {
    if axes.rank() == 0 {
        return Err(Error::Data(
            "all vectors are equal: nothing can be learned".into(),
        ));
    }
    let mean: Vec<f32> = axes.mean.iter().map(|m| *m as f32).collect();
    let mut all = RowBuf::empty(axes.rank());
    let mut centred = RowBuf::empty(corpus.dim());
    let mut mapped = RowBuf::empty(axes.rank());
    corpus.scan(0..corpus.len(), &mut |_, rows| {
        centred.clear(corpus.dim());
        centred.extend(rows);
        for row in centred.values_mut().chunks_exact_mut(mean.len()) {
            for (value, mean) in row.iter_mut().zip(&mean) {
                *value -= mean;
            }
        }
        map_rows(centred.rows(), axes.basis.rows().rows(), &mut mapped)?;
        all.extend(mapped.rows());
        Ok(())
    })?;
    MemoryCorpus::new(all)
}

/// Rank that the data can fill: directions without any spread would be noise of rounding.
pub(crate) fn usable(rank: usize, available: usize) -> Result<usize> {
    if available == 0 {
        return Err(Error::Data(
            "all vectors are equal: expected at least one direction in which they differ".into(),
        ));
    }
    Ok(rank.min(available))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn random(len: usize, dim: usize) -> MemoryCorpus {
        let mut stream = Stream::new(1, "test", 0);
        let values = (0..len * dim)
            .map(|i| ((1.0 + (i % dim) as f64) * stream.normal() + 5.0) as f32)
            .collect();
        MemoryCorpus::new(RowBuf::from_values(values, dim).unwrap()).unwrap()
    }

    #[test]
    fn reduced_coordinates_keep_all_distances() {
        let corpus = random(12, 50);
        let axes = principal_axes(&corpus).unwrap();
        assert_eq!(axes.rank(), 11);
        let reduced = coordinates(&corpus, &axes).unwrap();
        let distance = |rows: crate::linalg::Rows<'_>, i: usize, j: usize| {
            let pairs = rows.row(i).iter().zip(rows.row(j));
            pairs
                .map(|(a, b)| f64::from(a - b).powi(2))
                .sum::<f64>()
                .sqrt()
        };
        for (i, j) in [(0, 1), (3, 11), (5, 7)] {
            let (full, small) = (
                distance(corpus.rows(), i, j),
                distance(reduced.rows(), i, j),
            );
            assert!((full - small).abs() < 1e-4 * full, "{full} {small}");
        }
    }

    #[test]
    fn both_gram_matrices_give_the_same_axes() {
        // 40 rows in 40 dimensions take the covariance; the same rows with zero columns appended
        // (n < d) take the Gram matrix of rows.
        let wide = random(40, 40);
        let mut padded = RowBuf::zeros(40, 45);
        for i in 0..40 {
            padded.row_mut(i)[..40].copy_from_slice(wide.rows().row(i));
        }
        let one = principal_axes(&wide).unwrap();
        let other = principal_axes(&MemoryCorpus::new(padded).unwrap()).unwrap();
        for k in 0..5 {
            assert!((one.variances[k] / other.variances[k] - 1.0).abs() < 1e-6);
            let dot: f32 = (one.basis.rows().row(k).iter())
                .zip(&other.basis.rows().row(k)[..40])
                .map(|(a, b)| a * b)
                .sum();
            assert!((dot.abs() - 1.0).abs() < 1e-4);
        }
    }
}
