//! Local scatter within and between classes (Sugiyama, JMLR 2007, eq. 9 to 13).
//!
//! A pair of one class counts by its affinity A = exp(−|x − y|²/(σ_x σ_y)), where σ is the distance
//! to the k-th neighbour of the same class, so that far parts of a class need not come together. With
//! G = Σ_c X_cᵀ(D − A)X_c the spreads are
//!
//! * within = Σ_c G_c/n_c,
//! * between = Σ_c G_c·(1/n − 1/n_c) + 1/(2n)·Σ over pairs of different classes of their differences,
//!
//! and the last sum follows from the covariance and the classes' spreads, without any pair. Distances
//! of a class are made block by block and thrown away: twice, once for σ and once for A.

use crate::Result;
use crate::data::{Corpus, Keys, RowId};
use crate::execute::{keyed_sums, moments, within_scatter};
use crate::linalg::{RowBuf, Symmetric, accumulate_product, exponential_f64, product, vectorized};
use crate::supervision::Labels;
use crate::training::Run;
use faer::{Mat, MatRef};
use rayon::prelude::*;
use std::ops::Range;

/// Small classes are taken together up to this many rows, so that products are not too thin.
const GROUP_ROWS: usize = 512;
/// Rows whose distances to their class are made at once.
const BLOCK: usize = 256;

pub(super) struct LocalSpread {
    pub(super) between: Symmetric,
    pub(super) within: Symmetric,
}

/// The local spreads of labelled rows, where scales come from this many neighbours.
pub(super) fn local_spread(
    corpus: &dyn Corpus,
    labels: &Labels,
    neighbours: usize,
    run: &Run<'_>,
) -> Result<LocalSpread> {
    let sums = keyed_sums(corpus, Keys::Class(labels.of()), labels.classes())?;
    let sizes: Vec<f64> = sums.counts.iter().map(|count| *count as f64).collect();
    let plain = within_scatter(corpus, Keys::Class(labels.of()), &sums, &sizes)?;
    let total = moments(corpus)?.covariance;
    let dim = corpus.dim();
    let (mut local, mut within) = (Mat::<f64>::zeros(dim, dim), Mat::<f64>::zeros(dim, dim));
    for classes in groups(labels) {
        run.check_stop()?;
        let members: Vec<RowId> = (classes.clone())
            .flat_map(|class| labels.members(class).iter().map(|row| RowId::from(*row)))
            .collect();
        let mut rows = RowBuf::empty(dim);
        corpus.gather(&members, &mut rows)?;
        // About the class's mean: products of points far from the origin lose their digits.
        let centred = Mat::from_fn(rows.len(), dim, |row, column| {
            let class = labels.of()[members[row] as usize] as usize;
            f64::from(rows.row(row)[column]) - sums.sums[(class, column)] / sizes[class]
        });
        let mut differences = Mat::<f64>::zeros(rows.len(), dim);
        let mut shares = Mat::<f64>::zeros(rows.len(), dim);
        let mut start = 0;
        for class in classes {
            let size = labels.members(class).len();
            let of_class = laplacian(centred.as_ref().subrows(start, size), neighbours);
            for column in 0..dim {
                for row in 0..size {
                    differences[(start + row, column)] = of_class[(row, column)];
                    shares[(start + row, column)] = of_class[(row, column)] / size as f64;
                }
            }
            start += size;
        }
        accumulate_product(centred.as_ref(), differences.as_ref(), local.as_mut());
        accumulate_product(centred.as_ref(), shares.as_ref(), within.as_mut());
    }
    let rows = corpus.len() as f64;
    let (plain, total) = (plain.entries(), total.entries());
    let between = Mat::from_fn(dim, dim, |i, j| {
        local[(i, j)] / rows - within[(i, j)] + rows * total[(i, j)] - plain[(i, j)] / rows
    });
    Ok(LocalSpread {
        between: Symmetric::new(between)?,
        within: Symmetric::new(within)?,
    })
}

/// Ranges of classes that have about [`GROUP_ROWS`] rows together.
fn groups(labels: &Labels) -> Vec<Range<u32>> {
    let mut all = Vec::new();
    let (mut start, mut rows) = (0, 0);
    for class in 0..labels.classes() as u32 {
        rows += labels.members(class).len();
        if rows >= GROUP_ROWS || class + 1 == labels.classes() as u32 {
            all.push(start..class + 1);
            (start, rows) = (class + 1, 0);
        }
    }
    all
}

/// (D − A)·X for the rows X of one class.
fn laplacian(rows: MatRef<'_, f64>, neighbours: usize) -> Mat<f64> {
    let (count, dim) = (rows.nrows(), rows.ncols());
    if count < 2 {
        return Mat::zeros(count, dim);
    }
    let squared: Vec<f64> = (0..count)
        .map(|row| (0..dim).map(|column| rows[(row, column)].powi(2)).sum())
        .collect();
    // Squared distances to a block of rows, a column each.
    let distances = |start: usize| {
        let block = rows.subrows(start, BLOCK.min(count - start));
        let mut found = product(rows, block.transpose());
        for column in 0..found.ncols() {
            let own = start + column;
            for (other, value) in found.col_as_slice_mut(column).iter_mut().enumerate() {
                *value = (squared[own] + squared[other] - 2.0 * *value).max(0.0);
            }
            found[(own, column)] = 0.0;
        }
        found
    };
    let starts: Vec<usize> = (0..count).step_by(BLOCK).collect();
    // The row itself is at distance 0 and comes first.
    let place = neighbours.min(count - 1);
    let scales: Vec<Vec<f64>> = (starts.par_iter())
        .map(|start| {
            let mut block = distances(*start);
            (0..block.ncols())
                .map(|column| {
                    let row = block.col_as_slice_mut(column);
                    *row.select_nth_unstable_by(place, f64::total_cmp).1
                })
                .map(f64::sqrt)
                .collect()
        })
        .collect();
    let scales = scales.concat();
    let blocks: Vec<Mat<f64>> = (starts.par_iter())
        .map(|start| {
            let mut affinity = distances(*start);
            let mut degrees = Vec::with_capacity(affinity.ncols());
            for column in 0..affinity.ncols() {
                let own = scales[start + column];
                let row = affinity.col_as_slice_mut(column);
                vectorized(
                    #[inline(always)]
                    || {
                        for (value, other) in row.iter_mut().zip(&scales) {
                            let scale = own * other;
                            let affinity = exponential_f64(-*value / scale);
                            // Pairs at distance 0 add nothing whatever their affinity.
                            *value = if scale > 0.0 { affinity } else { 0.0 };
                        }
                    },
                );
                degrees.push(row.iter().sum::<f64>());
            }
            let mut mixed = product(affinity.transpose(), rows);
            for column in 0..dim {
                for (row, degree) in degrees.iter().enumerate() {
                    let value = rows[(start + row, column)];
                    mixed[(row, column)] = degree * value - mixed[(row, column)];
                }
            }
            mixed
        })
        .collect();
    Mat::from_fn(count, dim, |row, column| {
        blocks[row / BLOCK][(row % BLOCK, column)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::random::Stream;

    /// Rows of three classes, one of them larger than a block, one with two equal rows.
    fn sample() -> (MemoryCorpus, Labels) {
        let mut stream = Stream::new(3, "test", 0);
        let (mut values, mut classes) = (Vec::new(), Vec::new());
        for row in 0..340 {
            let class: i64 = if row < 300 { 0 } else { 1 + row % 2 };
            classes.push(class);
            let shift = if row % 3 == 0 { 5.0 } else { 0.0 };
            values.extend((0..3).map(|c| (c as f64 * stream.normal() + shift) as f32));
        }
        values.extend_from_within(339 * 3..);
        classes.push(classes[339]);
        let rows = RowBuf::from_values(values, 3).unwrap();
        let labels = Labels::from_numbers(&classes).unwrap();
        (MemoryCorpus::new(rows).unwrap(), labels)
    }

    #[test]
    fn spreads_equal_the_sums_over_all_pairs() {
        let (corpus, labels) = sample();
        let count = labels.len();
        let rows = corpus.rows();
        let distance = |i: usize, j: usize| -> f64 {
            let pairs = rows.row(i).iter().zip(rows.row(j));
            pairs
                .map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2))
                .sum()
        };
        let scale: Vec<f64> = (0..count)
            .map(|row| {
                let own = labels.members(labels.of()[row]);
                let mut all: Vec<f64> = own.iter().map(|o| distance(row, *o as usize)).collect();
                all.sort_by(f64::total_cmp);
                all[7].sqrt()
            })
            .collect();
        let (mut within, mut between) = (Mat::<f64>::zeros(3, 3), Mat::<f64>::zeros(3, 3));
        for i in 0..count {
            for j in 0..count {
                let class = labels.of()[i];
                let (of_within, of_between) = if class == labels.of()[j] {
                    let affinity = (-distance(i, j) / (scale[i] * scale[j])).exp();
                    let size = labels.members(class).len() as f64;
                    (
                        affinity / size,
                        affinity * (1.0 / count as f64 - 1.0 / size),
                    )
                } else {
                    (0.0, 1.0 / count as f64)
                };
                for a in 0..3 {
                    for b in 0..3 {
                        let x = f64::from(rows.row(i)[a]) - f64::from(rows.row(j)[a]);
                        let y = f64::from(rows.row(i)[b]) - f64::from(rows.row(j)[b]);
                        within[(a, b)] += 0.5 * of_within * x * y;
                        between[(a, b)] += 0.5 * of_between * x * y;
                    }
                }
            }
        }
        let found = local_spread(&corpus, &labels, 7, &Run::new(1)).unwrap();
        for (found, wanted) in [(&found.within, &within), (&found.between, &between)] {
            for a in 0..3 {
                for b in 0..3 {
                    let difference = found.entries()[(a, b)] - wanted[(a, b)];
                    assert!(difference.abs() < 1e-9 * wanted.norm_l2(), "{difference}");
                }
            }
        }
    }

    #[test]
    fn classes_are_grouped_without_gaps() {
        let (_, labels) = sample();
        assert_eq!(groups(&labels), vec![0..3]);
        let classes: Vec<i64> = (0..3000).map(|row| row / 300).collect();
        let labels = Labels::from_numbers(&classes).unwrap();
        assert_eq!(groups(&labels), vec![0..2, 2..4, 4..6, 6..8, 8..10]);
    }
}
