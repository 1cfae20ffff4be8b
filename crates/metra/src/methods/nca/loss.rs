//! The NCA loss, minus the mean probability of picking a row of the same class, and its gradient
//! with respect to the mapped rows.
//!
//! Two passes over all pairs in blocks of rows. The first one takes each row's normaliser and chance P_i.
//! With them the pull between two rows is known from their distance alone,
//!
//!   s_jk = p_jk (same − P_j) + p_kj (same − P_k),
//!
//! so that the second one has all that moves row j beside it: the slope of the chances' sum by z_j is
//! −2 (z_j Σ_k s_jk − Σ_k s_jk z_k), one product a block. Nothing is scattered, so sums keep their order.

use crate::linalg::{LANES, RowBuf, Rows, cross, exponential, mix, squared_norms, vectorized};
use crate::training::full_batch::MappedLoss;
use crate::{Error, Result};
use faer::{Accum, MatRef};
use rayon::prelude::*;

/// Rows whose distances to all others are made at once.
const BLOCK: usize = 64;
/// Weights that are summed in single precision.
const PART: usize = 1024;

/// The loss over rows of these classes.
pub(super) struct NcaLoss<'a> {
    classes: &'a [u32],
}

impl<'a> NcaLoss<'a> {
    pub(super) fn new(classes: &'a [u32]) -> Self {
        NcaLoss { classes }
    }

    /// Squared distances of some rows to all, row after row; a row to itself is infinitely far.
    fn distances(mapped: Rows<'_>, squared: &[f32], first: usize, out: &mut Vec<f32>) -> usize {
        let end = (first + BLOCK).min(mapped.len());
        out.resize((end - first) * mapped.len(), 0.0);
        cross(mapped.slice(first, end), mapped, -2.0, out);
        for (place, row) in out.chunks_exact_mut(mapped.len()).enumerate() {
            let own = squared[first + place];
            vectorized(
                #[inline(always)]
                || {
                    for (value, other) in row.iter_mut().zip(squared) {
                        *value = (*value + own + other).max(0.0);
                    }
                },
            );
            row[first + place] = f32::INFINITY;
        }
        end
    }

    /// For every row the logarithm of its normaliser, and its chance.
    fn chances(&self, mapped: Rows<'_>, squared: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let blocks: Vec<Vec<(f32, f32)>> = (0..mapped.len())
            .into_par_iter()
            .step_by(BLOCK)
            .map_init(Vec::new, |buffer, first| {
                let end = Self::distances(mapped, squared, first, buffer);
                let rows = buffer.chunks_exact(mapped.len()).zip(first..end);
                rows.map(|(row, number)| self.chance(row, number)).collect()
            })
            .collect();
        blocks.into_iter().flatten().unzip()
    }

    fn chance(&self, distances: &[f32], number: usize) -> (f32, f32) {
        let (nearest, all, same) = vectorized(
            #[inline(always)]
            || {
                let mut nearest = [f32::INFINITY; LANES];
                let (chunks, rest) = distances.as_chunks::<LANES>();
                for chunk in chunks {
                    for lane in 0..LANES {
                        nearest[lane] = if chunk[lane] < nearest[lane] {
                            chunk[lane]
                        } else {
                            nearest[lane]
                        };
                    }
                }
                let nearest = (nearest.iter().chain(rest)).fold(f32::INFINITY, |a, b| a.min(*b));
                let class = self.classes[number];
                let (mut all, mut same) = (0.0_f64, 0.0_f64);
                // Sums of so few numbers lose little in single precision.
                for (distances, classes) in distances.chunks(PART).zip(self.classes.chunks(PART)) {
                    let (mut part, mut of_class) = ([0.0_f32; LANES], [0.0_f32; LANES]);
                    let (chunks, rest) = distances.as_chunks::<LANES>();
                    let (class_chunks, class_rest) = classes.as_chunks::<LANES>();
                    for (distances, classes) in chunks.iter().zip(class_chunks) {
                        for lane in 0..LANES {
                            let weight = exponential(nearest - distances[lane]);
                            part[lane] += weight;
                            of_class[lane] += if classes[lane] == class { weight } else { 0.0 };
                        }
                    }
                    for (distance, other) in rest.iter().zip(class_rest) {
                        let weight = exponential(nearest - distance);
                        part[0] += weight;
                        of_class[0] += if *other == class { weight } else { 0.0 };
                    }
                    all += f64::from(part.iter().sum::<f32>());
                    same += f64::from(of_class.iter().sum::<f32>());
                }
                (nearest, all, same)
            },
        );
        if nearest == f32::INFINITY {
            return (0.0, 0.0);
        }
        (all.ln() as f32 - nearest, (same / all) as f32)
    }
}

impl MappedLoss for NcaLoss<'_> {
    fn evaluate(&self, mapped: Rows<'_>) -> Result<(f64, RowBuf)> {
        let (count, rank) = (mapped.len(), mapped.dim());
        let mut squared = Vec::new();
        squared_norms(mapped, &mut squared);
        if !squared.iter().all(|s| s.is_finite()) {
            return Err(Error::Diverged {
                step: 0,
                problem: "the mapped rows are not finite".into(),
            });
        }
        let (logs, chances) = self.chances(mapped, &squared);
        let factor = 1.0 / count as f32;
        let mut slopes = RowBuf::zeros(count, rank);
        slopes
            .values_mut()
            .par_chunks_mut(BLOCK * rank)
            .enumerate()
            .for_each_init(Vec::new, |buffer, (block, out)| {
                let first = block * BLOCK;
                let end = Self::distances(mapped, &squared, first, buffer);
                let mut sums = Vec::with_capacity(BLOCK);
                for (row, number) in buffer.chunks_exact_mut(count).zip(first..end) {
                    sums.push(self.pulls(row, number, (&logs, &chances)));
                }
                let pulls = MatRef::from_row_major_slice(buffer, end - first, count);
                // The loss is minus the mean: its slope is 2/n (z_j Σ s − Σ s z).
                mix(pulls, mapped, -2.0 * factor, Accum::Replace, out);
                let own = mapped.slice(first, end);
                for ((out, own), sum) in out.chunks_exact_mut(rank).zip(own.iter()).zip(sums) {
                    for (out, own) in out.iter_mut().zip(own) {
                        *out += 2.0 * factor * sum * own;
                    }
                }
            });
        let total: f64 = chances.iter().map(|chance| f64::from(*chance)).sum();
        Ok((-total / count as f64, slopes))
    }
}

impl NcaLoss<'_> {
    /// Replace a row's distances by its pulls; gives their sum.
    fn pulls(&self, row: &mut [f32], number: usize, (logs, chances): (&[f32], &[f32])) -> f32 {
        let (class, log, chance) = (self.classes[number], logs[number], chances[number]);
        vectorized(
            #[inline(always)]
            || {
                let others = self.classes.iter().zip(logs).zip(chances);
                for (value, ((other, other_log), other_chance)) in row.iter_mut().zip(others) {
                    let same = if *other == class { 1.0 } else { 0.0 };
                    let to = exponential(-*value - log) * (same - chance);
                    let from = exponential(-*value - other_log) * (same - other_chance);
                    *value = to + from;
                }
                // In double precision: pulls of both signs cancel.
                let mut sums = [0.0_f64; LANES];
                let (chunks, rest) = row.as_chunks::<LANES>();
                for chunk in chunks {
                    for lane in 0..LANES {
                        sums[lane] += f64::from(chunk[lane]);
                    }
                }
                let rest = rest.iter().map(|value| f64::from(*value));
                (sums.iter().sum::<f64>() + rest.sum::<f64>()) as f32
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::synthetic::Nuisance;

    /// By the definition, in f64.
    fn dense(rows: &[Vec<f64>], classes: &[u32]) -> f64 {
        let count = rows.len();
        let mut total = 0.0;
        for i in 0..count {
            let weight = |j: usize| {
                let squares = rows[i].iter().zip(&rows[j]).map(|(a, b)| (a - b).powi(2));
                (-squares.sum::<f64>()).exp()
            };
            let others = (0..count).filter(|j| *j != i);
            let all: f64 = others.clone().map(weight).sum();
            let same: f64 = others
                .filter(|j| classes[*j] == classes[i])
                .map(weight)
                .sum();
            total += same / all;
        }
        -total / count as f64
    }

    #[test]
    fn value_and_slope_are_those_of_the_definition() {
        // More rows than a block, classes of different sizes.
        let set = Nuisance {
            classes: 4,
            signal: 2,
            noise: 1,
            seed: 3,
        }
        .rows(150);
        let classes: Vec<u32> = (0..150_u32).map(|row| (row * row) % 5).collect();
        let rows: Vec<Vec<f64>> = (set.corpus.rows().iter())
            .map(|row| row.iter().map(|v| f64::from(*v)).collect())
            .collect();
        let (value, slopes) = NcaLoss::new(&classes).evaluate(set.corpus.rows()).unwrap();
        assert!((value - dense(&rows, &classes)).abs() < 1e-5, "{value}");
        for (row, column) in [(0, 0), (70, 2), (149, 1), (33, 0)] {
            let at = |by: f64| {
                let mut moved = rows.clone();
                moved[row][column] += by;
                dense(&moved, &classes)
            };
            let expected = (at(1e-5) - at(-1e-5)) / 2e-5;
            let found = f64::from(slopes.row(row)[column]);
            assert!((found - expected).abs() < 1e-5, "{found} {expected}");
        }
    }

    #[test]
    fn far_rows_pick_their_nearest_and_a_lone_row_none() {
        let rows = [0.0_f32, 1e4, 1.0002e4];
        let (value, slopes) =
            (NcaLoss::new(&[0, 0, 0]).evaluate(Rows::new(&rows, 1).unwrap())).unwrap();
        assert_eq!(value, -1.0);
        assert!(slopes.values().iter().all(|s| s.abs() < 1e-6));
        let lone = NcaLoss::new(&[0])
            .evaluate(Rows::new(&[3.0], 1).unwrap())
            .unwrap();
        assert_eq!(lone.0, 0.0);
    }
}
