//! Matrix products over blocks: rayon across blocks, faer on one thread inside a block.
//!
//! Products that were split inside would let the order of sums depend on the number of threads.

use super::rows::{RowBuf, Rows};
use super::simd::{LANES, vectorized};
use crate::{Error, Result};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

/// Rows in a block of work. Fixed, so that results do not depend on the number of threads.
pub(crate) const BLOCK_ROWS: usize = 384;

/// Columns of a product's output that one task computes when the sum runs over rows.
const TILE_COLUMNS: usize = 256;

/// Rows that a sum over rows takes at once: so many stay near the processor.
const SUM_ROWS: usize = 768;

/// `out = rows · mapᵀ`: every row mapped by the (m × d) matrix `map`.
pub(crate) fn map_rows(rows: Rows<'_>, map: Rows<'_>, out: &mut RowBuf) -> Result<()> {
    if rows.dim() != map.dim() {
        return Err(Error::shape("dimension of the rows", map.dim(), rows.dim()));
    }
    let width = map.len();
    out.reset(rows.len(), width);
    out.values_mut()
        .par_chunks_mut(BLOCK_ROWS * width)
        .zip(rows.values().par_chunks(BLOCK_ROWS * rows.dim()))
        .for_each(|(out, block)| {
            let len = block.len() / rows.dim();
            matmul(
                MatMut::from_row_major_slice_mut(out, len, width),
                Accum::Replace,
                MatRef::from_row_major_slice(block, len, rows.dim()),
                map.mat().transpose(),
                1.0,
                Par::Seq,
            );
        });
    Ok(())
}

/// `out = factor · left · rightᵀ` on the calling thread, row-major (left.len × right.len).
pub fn cross(left: Rows<'_>, right: Rows<'_>, factor: f32, out: &mut [f32]) {
    matmul(
        MatMut::from_row_major_slice_mut(out, left.len(), right.len()),
        Accum::Replace,
        left.mat(),
        right.mat().transpose(),
        factor,
        Par::Seq,
    );
}

/// `out = factor · weights · rows` (or added to `out`) on the calling thread, where `weights` is
/// (n × rows.len).
pub fn mix(weights: MatRef<'_, f32>, rows: Rows<'_>, factor: f32, accum: Accum, out: &mut [f32]) {
    matmul(
        MatMut::from_row_major_slice_mut(out, weights.nrows(), rows.dim()),
        accum,
        weights,
        rows.mat(),
        factor,
        Par::Seq,
    );
}

/// `out = leftᵀ · right` (left.dim × right.dim), a sum over rows. Tasks own tiles of the output,
/// never parts of the sum, so that the sum's order is the same on any number of threads.
pub(crate) fn transposed_product(left: Rows<'_>, right: Rows<'_>, out: &mut RowBuf) -> Result<()> {
    if left.len() != right.len() {
        return Err(Error::shape(
            "rows of the right factor",
            left.len(),
            right.len(),
        ));
    }
    let (rows, height, width) = (left.len(), left.dim(), right.dim());
    out.reset(height, width);
    let tiles = column_tiles(out.mat_mut());
    (tiles.into_par_iter().enumerate()).for_each(|(index, mut tile)| {
        let (mut first, columns) = (0, tile.ncols());
        let mut accum = Accum::Replace;
        loop {
            let end = left.len().min(first + SUM_ROWS);
            let (left, right) = (left.slice(first, end).mat(), right.slice(first, end).mat());
            let right = right.subcols(index * TILE_COLUMNS, columns);
            matmul(tile.as_mut(), accum, left.transpose(), right, 1.0, Par::Seq);
            (first, accum) = (end, Accum::Add);
            if first == rows {
                return;
            }
        }
    });
    Ok(())
}

/// Add `rowsᵀ · rows` to `sum`, in f64. Tasks own tiles of the output.
pub fn accumulate_outer(rows: MatRef<'_, f64>, sum: MatMut<'_, f64>) {
    accumulate_product(rows, rows, sum);
}

/// Add `leftᵀ · right` to `sum`, in f64. Tasks own tiles of the output.
pub(crate) fn accumulate_product(
    left: MatRef<'_, f64>,
    right: MatRef<'_, f64>,
    sum: MatMut<'_, f64>,
) {
    let tiles = column_tiles(sum);
    tiles.into_par_iter().enumerate().for_each(|(index, tile)| {
        let columns = tile.ncols();
        matmul(
            tile,
            Accum::Add,
            left.transpose(),
            right.subcols(index * TILE_COLUMNS, columns),
            1.0,
            Par::Seq,
        );
    });
}

/// `left · right` in f64 on the calling thread: faer's own operator may split the sum.
pub(crate) fn product(left: MatRef<'_, f64>, right: MatRef<'_, f64>) -> Mat<f64> {
    let mut out = Mat::zeros(left.nrows(), right.ncols());
    matmul(out.as_mut(), Accum::Replace, left, right, 1.0, Par::Seq);
    out
}

/// The columns of a matrix in pieces of [`TILE_COLUMNS`], each to be written by one task.
fn column_tiles<T>(matrix: MatMut<'_, T>) -> Vec<MatMut<'_, T>> {
    let mut tiles = Vec::new();
    let mut rest = matrix;
    while rest.ncols() > TILE_COLUMNS {
        let (tile, tail) = rest.split_at_col_mut(TILE_COLUMNS);
        tiles.push(tile);
        rest = tail;
    }
    tiles.push(rest);
    tiles
}

/// Σ_b |x_b − y_b| over blocks of `size` numbers.
#[inline(always)]
pub(crate) fn block_distance(left: &[f32], right: &[f32], size: usize) -> f32 {
    let blocks = left.chunks_exact(size).zip(right.chunks_exact(size));
    blocks
        .map(|(a, b)| {
            // Running sums side by side in a fixed order let the compiler use vector registers.
            let (a_lanes, a_rest) = a.as_chunks::<8>();
            let (b_lanes, b_rest) = b.as_chunks::<8>();
            let mut sums = [0.0_f32; 8];
            for (a, b) in a_lanes.iter().zip(b_lanes) {
                for lane in 0..8 {
                    sums[lane] += (a[lane] - b[lane]) * (a[lane] - b[lane]);
                }
            }
            let rest: f32 = (a_rest.iter().zip(b_rest))
                .map(|(a, b)| (a - b) * (a - b))
                .sum();
            (sums.iter().sum::<f32>() + rest).sqrt()
        })
        .sum()
}

/// Squared Euclidean norm of every row.
pub(crate) fn squared_norms(rows: Rows<'_>, out: &mut Vec<f32>) {
    out.clear();
    out.extend(rows.iter().map(|row| vectorized(|| dot(row, row))));
}

/// Σ a·b, in code that is vectorised where its caller is.
#[inline(always)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    summed(
        a,
        b,
        #[inline(always)]
        |a, b| a * b,
    )
}

/// The sum of a term of all entries, in running sums side by side.
#[inline(always)]
pub(super) fn summed(x: &[f32], y: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    let (x_chunks, x_rest) = x.as_chunks::<LANES>();
    let (y_chunks, y_rest) = y.as_chunks::<LANES>();
    let mut sums = [0.0_f32; LANES];
    for (x, y) in x_chunks.iter().zip(y_chunks) {
        for lane in 0..LANES {
            sums[lane] += term(x[lane], y[lane]);
        }
    }
    let rest = x_rest.iter().zip(y_rest).map(|(x, y)| term(*x, *y));
    sums.iter().sum::<f32>() + rest.sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn random(len: usize, dim: usize, seed: u64) -> RowBuf {
        let mut stream = Stream::new(seed, "test", 0);
        let values = (0..len * dim).map(|_| stream.normal() as f32).collect();
        RowBuf::from_values(values, dim).unwrap()
    }

    #[test]
    fn products_equal_the_definition() {
        // More rows than are summed at once, twice.
        let rows = random(1_700, 150, 1);
        let map = random(13, 150, 2);
        let mut out = RowBuf::empty(1);
        map_rows(rows.rows(), map.rows(), &mut out).unwrap();
        for (i, j) in [(0, 0), (1_699, 12), (300, 7)] {
            let expected: f64 = rows
                .row(i)
                .iter()
                .zip(map.row(j))
                .map(|(a, b)| f64::from(*a) * f64::from(*b))
                .sum();
            assert!((f64::from(out.row(i)[j]) - expected).abs() < 1e-4);
        }
        let mut sum = RowBuf::empty(1);
        transposed_product(out.rows(), rows.rows(), &mut sum).unwrap();
        assert_eq!((sum.len(), sum.dim()), (13, 150));
        let expected: f64 = (0..1_700)
            .map(|r| f64::from(out.row(r)[3]) * f64::from(rows.row(r)[140]))
            .sum();
        assert!((f64::from(sum.row(3)[140]) - expected).abs() < 1e-2);
    }

    #[test]
    fn results_do_not_depend_on_threads() {
        let rows = random(1000, 300, 3);
        let map = random(40, 300, 4);
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| {
                let (mut z, mut g) = (RowBuf::empty(1), RowBuf::empty(1));
                map_rows(rows.rows(), map.rows(), &mut z).unwrap();
                transposed_product(z.rows(), rows.rows(), &mut g).unwrap();
                (z, g)
            })
        };
        assert_eq!(run(1), run(2));
    }

    #[test]
    fn wrong_dimension_is_an_error() {
        let error = map_rows(
            random(2, 3, 1).rows(),
            random(2, 4, 1).rows(),
            &mut RowBuf::empty(1),
        );
        assert_eq!(
            error.unwrap_err().to_string(),
            "dimension of the rows: expected 4, but found 3"
        );
    }
}
