//! Blockwise computation of the adaptive target, without the n × n matrix.
//!
//! With factors the current similarities are Ŷ = Z_L Z_Rᵀ. They are made block by block, clipped
//! to the target of Alg. 1 (step 5) and multiplied at once with what the solve needs of them:
//! O(n²·r) time as in the paper, but O(block²) memory, where the paper had to compress at 71,000
//! rows. A task owns a block of rows of the result and walks the columns in order, so that sums
//! have one order on any number of threads.

use super::target::{Target, Thresholds};
use crate::linalg::{RowBuf, Rows, cross, mix, vectorized};
use crate::{Error, Result};
use faer::{Accum, MatRef};
use rayon::prelude::*;

/// Rows and columns of a block: its similarities fill half of a usual second-level cache.
pub(super) const BLOCK: usize = 512;

/// out = Y · fold, where Y is left · rightᵀ clipped by the target. Returns the squared hinge loss
/// of eq. 4 at the unclipped similarities.
pub(super) fn clipped_product(
    left: Rows<'_>,
    right: Rows<'_>,
    fold: Rows<'_>,
    target: &Target,
    thresholds: Thresholds,
    out: &mut RowBuf,
) -> Result<f64> {
    for (what, expected, found) in [
        ("rows of the left factor", target.rows(), left.len()),
        ("rows of the right factor", target.columns(), right.len()),
        ("rows to be folded", target.columns(), fold.len()),
        ("rank of the right factor", left.dim(), right.dim()),
    ] {
        if expected != found {
            return Err(Error::shape(what, expected, found));
        }
    }
    let width = fold.dim();
    out.clear(width);
    out.reset(left.len(), width);
    let losses: Vec<f64> = (out.values_mut().par_chunks_mut(BLOCK * width))
        .enumerate()
        .map_init(Buffers::default, |buffers, (number, out)| {
            let first = number * BLOCK;
            let rows = left.slice(first, first + out.len() / width);
            buffers.rows_of_blocks(first, rows, right, fold, target, thresholds, out)
        })
        .collect();
    let loss: f64 = losses.iter().sum();
    // A similarity that is not a number is lost in the clipping, but not in the loss.
    if loss.is_finite() {
        return Ok(loss);
    }
    Err(Error::Data(
        "similarities are not finite: the vectors' values are too large, or the ridge too small"
            .into(),
    ))
}

#[derive(Default)]
struct Buffers {
    similarities: Vec<f32>,
    /// How many relevant columns of each row lie before the current block.
    passed: Vec<usize>,
    kept: Vec<f32>,
}

impl Buffers {
    #[allow(clippy::too_many_arguments, reason = "the pieces of one product")]
    fn rows_of_blocks(
        &mut self,
        first: usize,
        rows: Rows<'_>,
        right: Rows<'_>,
        fold: Rows<'_>,
        target: &Target,
        thresholds: Thresholds,
        out: &mut [f32],
    ) -> f64 {
        self.similarities.resize(BLOCK * BLOCK, 0.0);
        self.passed.clear();
        self.passed.resize(rows.len(), 0);
        let mut loss = 0.0;
        for start in (0..right.len()).step_by(BLOCK) {
            let end = right.len().min(start + BLOCK);
            let columns = end - start;
            let block = &mut self.similarities[..rows.len() * columns];
            cross(rows, right.slice(start, end), 1.0, block);
            for (place, row) in block.chunks_exact_mut(columns).enumerate() {
                let (relevant, grades) = target.relevant(first + place);
                let from = self.passed[place];
                let inside = relevant[from..]
                    .iter()
                    .take_while(|column| (**column as usize) < end)
                    .count();
                self.passed[place] = from + inside;
                let relevant = &relevant[from..from + inside];
                let grades = grades.map(|grades| &grades[from..from + inside]);
                loss += clip(row, start, relevant, grades, thresholds, &mut self.kept);
            }
            let weights = MatRef::from_row_major_slice(block, rows.len(), columns);
            mix(weights, fold.slice(start, end), 1.0, Accum::Add, out);
        }
        loss
    }
}

/// Clip one row of a block: relevant similarities up to their threshold, all others down to
/// theirs. Returns its loss.
fn clip(
    row: &mut [f32],
    start: usize,
    relevant: &[u32],
    grades: Option<&[f32]>,
    thresholds: Thresholds,
    kept: &mut Vec<f32>,
) -> f64 {
    kept.clear();
    let mut loss = 0.0;
    for (place, column) in relevant.iter().enumerate() {
        let similarity = &mut row[*column as usize - start];
        let least = thresholds.least(grades.map_or(1.0, |grades| grades[place]));
        let missing = (least - *similarity).max(0.0);
        loss += f64::from(missing) * f64::from(missing);
        kept.push(similarity.max(least));
        // At the threshold of the others it takes no part in the loss below.
        *similarity = thresholds.below;
    }
    loss += f64::from(vectorized(
        #[inline(always)]
        || lower(row, thresholds.below),
    ));
    for (column, value) in relevant.iter().zip(kept.iter()) {
        row[*column as usize - start] = *value;
    }
    loss
}

/// Lower all values to at most `most`; returns the sum of squares of what was taken away.
#[inline(always)]
fn lower(row: &mut [f32], most: f32) -> f32 {
    // Sixteen running sums let the compiler use vector registers; the order is fixed.
    let mut sums = [0.0_f32; 16];
    let mut chunks = row.chunks_exact_mut(16);
    for chunk in &mut chunks {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            let lowered = if *value < most { *value } else { most };
            let taken = *value - lowered;
            *sum += taken * taken;
            *value = lowered;
        }
    }
    let mut rest = 0.0;
    for value in chunks.into_remainder() {
        let lowered = if *value < most { *value } else { most };
        let taken = *value - lowered;
        rest += taken * taken;
        *value = lowered;
    }
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;
    use crate::supervision::{Judgement, Judgements, Labels, Supervision};

    fn random(len: usize, dim: usize, seed: u64) -> RowBuf {
        let mut stream = Stream::new(seed, "test", 0);
        let values = (0..len * dim).map(|_| stream.normal() as f32).collect();
        RowBuf::from_values(values, dim).unwrap()
    }

    /// Y · fold and the loss from the n × n matrix, in f64.
    fn dense(
        left: &RowBuf,
        right: &RowBuf,
        fold: &RowBuf,
        least: impl Fn(usize, usize) -> Option<f64>,
        below: f64,
    ) -> (Vec<f64>, f64) {
        let (mut out, mut loss) = (vec![0.0; left.len() * fold.dim()], 0.0);
        for i in 0..left.len() {
            for j in 0..right.len() {
                let pairs = left.row(i).iter().zip(right.row(j));
                let similarity: f64 = pairs.map(|(a, b)| f64::from(a * b)).sum();
                let clipped = match least(i, j) {
                    Some(least) => similarity.max(least),
                    None => similarity.min(below),
                };
                loss += (clipped - similarity).powi(2);
                for (k, value) in fold.row(j).iter().enumerate() {
                    out[i * fold.dim() + k] += clipped * f64::from(*value);
                }
            }
        }
        (out, loss)
    }

    fn assert_close(found: &RowBuf, expected: &[f64]) {
        let scale = expected.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        for (found, expected) in found.values().iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-5 * scale);
        }
    }

    #[test]
    fn blocks_equal_the_dense_matrix_with_labels_and_with_judgements() {
        // 700 rows and 1,100 columns: blocks that are full and blocks that are not.
        let (left, right, fold) = (random(700, 7, 1), random(1100, 7, 2), random(1100, 5, 3));
        let thresholds = Thresholds {
            above: 1.0,
            below: 0.25,
        };
        let mut lines = Vec::new();
        let mut stream = Stream::new(4, "test", 0);
        for query in 0..700 {
            for item in stream.choose(1100, (query % 9) as usize) {
                lines.push(Judgement {
                    query,
                    item,
                    grade: 1.0 + (item % 3) as f32,
                });
            }
        }
        let mean = lines.iter().map(|l| f64::from(l.grade)).sum::<f64>() / lines.len() as f64;
        let judged = Judgements::new(700, 1100, &lines).unwrap();
        let target = Target::new(&Supervision::judgements(judged.clone()), true).unwrap();
        let least = |i: usize, j: usize| {
            let found = judged
                .of(i as u64)
                .iter()
                .find(|(item, _)| *item == j as u64);
            found.map(|(_, grade)| 0.25 + 0.75 * f64::from(*grade) / mean)
        };
        let (expected, expected_loss) = dense(&left, &right, &fold, least, 0.25);
        let mut out = RowBuf::empty(1);
        let (l, r, f) = (left.rows(), right.rows(), fold.rows());
        let loss = clipped_product(l, r, f, &target, thresholds, &mut out).unwrap();
        assert_close(&out, &expected);
        assert!((loss / expected_loss - 1.0).abs() < 1e-5);

        let classes: Vec<i64> = (0..1100).map(|row| row * row % 13).collect();
        let labels = Supervision::labels(Labels::from_numbers(&classes).unwrap());
        let target = Target::new(&labels, true).unwrap();
        let same = |i: usize, j: usize| (classes[i] == classes[j]).then_some(1.0);
        let (expected, expected_loss) = dense(&right, &right, &fold, same, 0.25);
        let loss = clipped_product(r, r, f, &target, thresholds, &mut out).unwrap();
        assert_close(&out, &expected);
        assert!((loss / expected_loss - 1.0).abs() < 1e-5);
    }

    #[test]
    fn threads_change_nothing_and_not_a_number_is_an_error() {
        let (mut rows, fold) = (random(1300, 6, 5), random(1300, 6, 6));
        let classes: Vec<i64> = (0..1300).map(|row| row % 7).collect();
        let labels = Supervision::labels(Labels::from_numbers(&classes).unwrap());
        let target = Target::new(&labels, true).unwrap();
        let thresholds = Thresholds {
            above: 1.0,
            below: 0.0,
        };
        let run = |threads, rows: &RowBuf| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().unwrap().install(|| {
                let mut out = RowBuf::empty(1);
                let r = rows.rows();
                clipped_product(r, r, fold.rows(), &target, thresholds, &mut out)
                    .map(|loss| (out, loss))
            })
        };
        assert_eq!(run(1, &rows).unwrap(), run(2, &rows).unwrap());
        rows.row_mut(700)[2] = f32::NAN;
        assert!(run(1, &rows).is_err());
    }
}
