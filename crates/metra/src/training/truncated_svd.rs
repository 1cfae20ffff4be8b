//! Leading right singular vectors of a corpus, by subspace iteration from random vectors (Halko, Martinsson & Tropp,
//! SIAM Review 2011): neither a matrix of all dimensions nor one of all rows is made, and rows that are mostly 0 cost
//! what they hold. Nothing is centred, which would fill them (latent semantic analysis; scikit-learn's TruncatedSVD).

use super::principal_axes::transposed;
use crate::data::{Corpus, RowId, SparseRow};
use crate::linalg::{RowBuf, Rows, Symmetric, mix, rows_from, transposed_product};
use crate::random::Stream;
use crate::{Error, Result};
use faer::{Accum, Mat, MatRef};

/// Vectors beside those asked for, which make these converge.
const MORE: usize = 10;
/// Rows of the basis that are worked on at once.
const PART: usize = 4096;
/// Products with AᵀA.
const ITERATIONS: usize = 6;

/// The `count` leading right singular vectors as rows, those of the largest singular values first. Time is O(numbers
/// that are not 0 · count) an iteration; memory is some 12 bytes · (rows + dimensions) · count.
pub(crate) fn leading_directions(corpus: &dyn Corpus, count: usize) -> Result<RowBuf> {
    let (dim, rows) = (corpus.dim(), corpus.len() as usize);
    if corpus.pass_executor().is_some() {
        let expected = "without svd for training on a cluster (pca works there)";
        return Err(Error::parameter(
            "prepare",
            expected,
            format!("svd:{count}"),
        ));
    }
    if count > dim.min(rows) {
        let expected = format!("at most {} (rows and dimensions)", dim.min(rows));
        return Err(Error::parameter("svd", expected, count));
    }
    let width = (count + MORE).min(dim).min(rows);
    let mut random = Stream::new(0, "svd", 0);
    let start = (0..dim * width).map(|_| random.normal() as f32).collect();
    // A row a dimension, so that what a number of a sparse row is multiplied with lies together.
    let mut basis = orthonormal(&RowBuf::from_values(start, width)?)?;
    for _ in 0..ITERATIONS {
        // Orthonormal on either side: after both products at once, directions a thousandth as long as the longest
        // would be lost in the rounding of f32.
        let mapped = orthonormal(&mapped(corpus, &basis)?)?;
        basis = orthonormal(&pulled_back(corpus, &mapped)?)?;
    }
    // Rayleigh and Ritz: of this space, the directions of the singular vectors.
    let eigen = Symmetric::new(gram(&mapped(corpus, &basis)?))?.eigen()?;
    let found = eigen.numerical_rank().min(count);
    if found < count {
        let expected = format!("at most {found} (the others are too short beside them for f32)");
        return Err(Error::parameter("svd", expected, count));
    }
    let mut directions = transposed(&turned(&basis, eigen.vectors.as_ref().subcols(0, count)));
    for direction in 0..count {
        // Otherwise the sign would be an accident of rounding.
        let entries = directions.row_mut(direction);
        let largest = entries
            .iter()
            .fold(0.0_f32, |most, entry| match entry.abs() > most.abs() {
                true => *entry,
                false => most,
            });
        if largest < 0.0 {
            entries.iter_mut().for_each(|entry| *entry = -*entry);
        }
    }
    Ok(directions)
}

/// A V: every row times the basis.
fn mapped(corpus: &dyn Corpus, basis: &RowBuf) -> Result<RowBuf> {
    let (count, width) = (corpus.len() as usize, basis.dim());
    let mut out = RowBuf::zeros(count, width);
    if corpus.sparse_row(0).is_some() {
        for row in 0..count {
            let (columns, values) = sparse_row(corpus, row)?;
            for (column, value) in columns.iter().zip(values) {
                add_scaled(*value, basis.row(*column as usize), out.row_mut(row));
            }
        }
        return Ok(out);
    }
    corpus.scan(0..corpus.len(), &mut |first, rows| {
        let weights = MatRef::from_row_major_slice(rows.values(), rows.len(), rows.dim());
        let target = &mut out.values_mut()[first as usize * width..][..rows.len() * width];
        mix(weights, basis.rows(), 1.0, Accum::Replace, target);
        Ok(())
    })?;
    Ok(out)
}

/// Aᵀ Q: the sum of every row times its row of Q, one row a dimension.
fn pulled_back(corpus: &dyn Corpus, mapped: &RowBuf) -> Result<RowBuf> {
    let mut out = RowBuf::zeros(corpus.dim(), mapped.dim());
    if corpus.sparse_row(0).is_some() {
        for row in 0..mapped.len() {
            let (columns, values) = sparse_row(corpus, row)?;
            for (column, value) in columns.iter().zip(values) {
                add_scaled(*value, mapped.row(row), out.row_mut(*column as usize));
            }
        }
        return Ok(out);
    }
    let mut part = RowBuf::empty(1);
    corpus.scan(0..corpus.len(), &mut |first, rows| {
        let first = first as usize;
        let mapped = mapped.rows().slice(first, first + rows.len());
        transposed_product(rows, mapped, &mut part)?;
        add_scaled(1.0, part.values(), out.values_mut());
        Ok(())
    })?;
    Ok(out)
}

fn sparse_row(corpus: &dyn Corpus, row: usize) -> Result<SparseRow<'_>> {
    if row.is_multiple_of(1024) {
        corpus.check_stop()?;
    }
    let found = corpus.sparse_row(row as RowId);
    found.ok_or_else(|| Error::Data("expected sparse rows, but found a dense one".into()))
}

fn add_scaled(factor: f32, from: &[f32], to: &mut [f32]) {
    crate::linalg::vectorized(
        #[inline(always)]
        || {
            for (to, from) in to.iter_mut().zip(from) {
                *to += factor * from;
            }
        },
    );
}

fn wide(rows: Rows<'_>) -> Mat<f64> {
    Mat::from_fn(rows.len(), rows.dim(), |i, j| f64::from(rows.row(i)[j]))
}

/// Rows in parts of which copies in f64 are small.
fn parts(rows: &RowBuf) -> impl Iterator<Item = Mat<f64>> + '_ {
    let starts = (0..rows.len()).step_by(PART);
    starts.map(|start| wide(rows.rows().slice(start, rows.len().min(start + PART))))
}

/// Every row times a matrix.
fn turned(rows: &RowBuf, matrix: MatRef<'_, f64>) -> RowBuf {
    let mut out = RowBuf::empty(matrix.ncols());
    for part in parts(rows) {
        out.extend(rows_from((&part * matrix).as_ref()).rows());
    }
    out
}

/// Inner products of the columns.
fn gram(columns: &RowBuf) -> Mat<f64> {
    let mut gram = Mat::<f64>::zeros(columns.dim(), columns.dim());
    for part in parts(columns) {
        gram += part.transpose() * &part;
    }
    gram
}

/// An orthonormal basis of the columns, by the eigenvectors of their Gram matrix; columns that follow from others are
/// left out.
fn orthonormal(columns: &RowBuf) -> Result<RowBuf> {
    let eigen = Symmetric::new(gram(columns))?.eigen()?;
    let floor = 1e-12 * eigen.values.first().copied().unwrap_or(0.0);
    let rank = (eigen.values.iter())
        .take_while(|value| **value > floor)
        .count();
    if rank == 0 {
        return Err(Error::Data(
            "all vectors are 0: nothing can be learned".into(),
        ));
    }
    let scaled = Mat::from_fn(columns.dim(), rank, |i, j| {
        eigen.vectors[(i, j)] / eigen.values[j].sqrt()
    });
    Ok(turned(columns, scaled.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{MemoryCorpus, SparseCorpus, Subset};

    /// Rows of dimension 60 of which 6 are not 0, with singular values that fall, sparse and dense.
    fn rows(len: usize) -> (SparseCorpus, MemoryCorpus) {
        let mut random = Stream::new(3, "test", 0);
        let mut sparse = SparseCorpus::new(60);
        for row in 0..len {
            let columns = random.choose(60, 6);
            let entries = columns.iter().map(|column| {
                let size = 1.0 / (1 + (*column as usize + row % 5) % 60) as f64;
                (
                    *column as u32,
                    (size * (1.0 + 0.3 * random.normal())) as f32,
                )
            });
            let entries: Vec<(u32, f32)> = entries.collect();
            sparse.push(entries).unwrap();
        }
        let mut dense = RowBuf::empty(60);
        sparse
            .gather(&(0..len as u64).collect::<Vec<_>>(), &mut dense)
            .unwrap();
        (sparse, MemoryCorpus::new(dense).unwrap())
    }

    #[test]
    fn directions_are_those_of_a_decomposition() {
        let (sparse, dense) = rows(300);
        let svd = wide(dense.rows()).thin_svd().unwrap();
        let found = leading_directions(&sparse, 5).unwrap();
        for direction in 0..5 {
            let pairs =
                (0..60).map(|d| f64::from(found.row(direction)[d]) * svd.V()[(d, direction)]);
            let cosine: f64 = pairs.sum();
            assert!(cosine.abs() > 1.0 - 1e-4, "{direction}: {cosine}");
        }
        // Whatever way the rows are kept, the directions are the same but for rounding.
        let part = Subset::new(&sparse, (0..300).collect()).unwrap();
        for other in [&dense as &dyn Corpus, &part] {
            let other = leading_directions(other, 5).unwrap();
            let pairs = found.values().iter().zip(other.values());
            let off = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(off < 1e-3, "{off}");
        }
    }

    #[test]
    fn one_long_direction_does_not_hide_the_others() {
        let mut random = Stream::new(5, "test", 0);
        let values = (0..500 * 8).map(|place| match place % 8 {
            0 => 2000.0 + random.normal() as f32,
            _ => random.normal() as f32,
        });
        let rows = RowBuf::from_values(values.collect(), 8).unwrap();
        let corpus = MemoryCorpus::new(rows).unwrap();
        let found = leading_directions(&corpus, 5).unwrap();
        assert!(found.row(0)[0] > 0.999);
        for direction in 1..5 {
            let length: f32 = found.row(direction)[1..].iter().map(|v| v * v).sum();
            assert!((length - 1.0).abs() < 0.01, "{direction}: {length}");
        }
    }

    #[test]
    fn what_cannot_be_had_is_named() {
        let (sparse, _) = rows(20);
        let text = leading_directions(&sparse, 21).unwrap_err().to_string();
        assert!(text.contains("at most 20"), "{text}");
        let mut zeros = SparseCorpus::new(4);
        (0..6).for_each(|_| zeros.push([]).unwrap());
        let text = leading_directions(&zeros, 2).unwrap_err().to_string();
        assert!(text.contains("all vectors are 0"), "{text}");
        let mut one = SparseCorpus::new(4);
        (0..6).for_each(|row| one.push([(1, row as f32)]).unwrap());
        let text = leading_directions(&one, 2).unwrap_err().to_string();
        assert!(text.contains("at most 1"), "{text}");
    }
}
