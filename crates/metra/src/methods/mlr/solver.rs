//! Solves the quadratic programme over the current constraints: min ½‖W‖² + C·ξ over W ⪰ 0 with ⟨W,
//! Ψ_k⟩ ≥ Δ_k − ξ.
//!
//! ADMM (Lim, McFee & Lanckriet 2013): one copy of W has the constraints, solved by their dual, which has
//! as many variables as constraints; the other one is projected onto the semidefinite matrices; they are
//! pulled together.

use crate::Result;
use crate::linalg::Symmetric;
use faer::Mat;

pub(super) struct Solver {
    cost: f64,
    diagonal: bool,
    changes: Vec<Mat<f64>>,
    losses: Vec<f64>,
    /// ⟨Ψ_k, Ψ_l⟩.
    products: Vec<Vec<f64>>,
    /// The projected copy and the scaled multipliers, kept between rounds.
    projected: Mat<f64>,
    multipliers: Mat<f64>,
    weights: Vec<f64>,
}

const STEPS: usize = 500;
const TOLERANCE: f64 = 1e-5;
/// Weight of the pull between the two copies, relative to that of ½‖W‖².
const PULL: f64 = 1.0;

impl Solver {
    pub(super) fn new(dim: usize, cost: f64, diagonal: bool) -> Self {
        Solver {
            cost,
            diagonal,
            changes: Vec::new(),
            losses: Vec::new(),
            products: Vec::new(),
            projected: Mat::zeros(dim, dim),
            multipliers: Mat::zeros(dim, dim),
            weights: Vec::new(),
        }
    }

    /// Add a constraint.
    pub(super) fn add(&mut self, change: Mat<f64>, loss: f64) {
        let dim = change.nrows();
        let change = if self.diagonal {
            Mat::from_fn(dim, dim, |i, j| if i == j { change[(i, i)] } else { 0.0 })
        } else {
            change
        };
        let row: Vec<f64> = self
            .changes
            .iter()
            .map(|other| inner(other, &change))
            .collect();
        for (products, value) in self.products.iter_mut().zip(&row) {
            products.push(*value);
        }
        let mut row = row;
        row.push(inner(&change, &change));
        self.products.push(row);
        self.changes.push(change);
        self.losses.push(loss);
        self.weights.push(0.0);
    }

    /// The metric and the slack.
    pub(super) fn solve(&mut self) -> Result<(Mat<f64>, f64)> {
        let dim = self.projected.nrows();
        for _ in 0..STEPS {
            // W = (PULL (Z − U) + Σ α Ψ)/(1 + PULL), α from the dual.
            let target = &self.projected - &self.multipliers;
            self.weights = self.dual(&target);
            let mut held = faer::Scale(PULL) * &target;
            for (change, weight) in self.changes.iter().zip(&self.weights) {
                held += faer::Scale(*weight) * change;
            }
            let held = faer::Scale(1.0 / (1.0 + PULL)) * held;
            let before = self.projected.clone();
            self.projected = self.project(&held + &self.multipliers)?;
            let apart = &held - &self.projected;
            self.multipliers += &apart;
            let size = self.projected.norm_l2().max(1e-12);
            let moved = (&self.projected - &before).norm_l2();
            if apart.norm_l2() <= TOLERANCE * size && moved <= TOLERANCE * size {
                break;
            }
        }
        let metric = Mat::from_fn(dim, dim, |i, j| {
            0.5 * (self.projected[(i, j)] + self.projected[(j, i)])
        });
        let slack = self.changes.iter().zip(&self.losses);
        let slack = slack.map(|(change, loss)| loss - inner(&metric, change));
        let slack = slack.fold(0.0, f64::max);
        Ok((metric, slack))
    }

    fn project(&self, matrix: Mat<f64>) -> Result<Mat<f64>> {
        let dim = matrix.nrows();
        if self.diagonal {
            return Ok(Mat::from_fn(dim, dim, |i, j| {
                if i == j { matrix[(i, i)].max(0.0) } else { 0.0 }
            }));
        }
        let symmetric = Mat::from_fn(dim, dim, |i, j| 0.5 * (matrix[(i, j)] + matrix[(j, i)]));
        let eigen = Symmetric::new(symmetric)?.eigen()?;
        let positive = (eigen.values.iter())
            .take_while(|value| **value > 0.0)
            .count();
        let scaled = Mat::from_fn(dim, positive, |row, column| {
            eigen.values[column] * eigen.vectors[(row, column)]
        });
        Ok(&scaled * eigen.vectors.subcols(0, positive).transpose())
    }

    /// min over α ≥ 0 with Σα ≤ C of ½/(1 + PULL)·αᵀGα − Σ α (Δ − PULL/(1 + PULL)·⟨target, Ψ⟩), by
    /// accelerated projected gradients.
    fn dual(&self, target: &Mat<f64>) -> Vec<f64> {
        let part = 1.0 / (1.0 + PULL);
        let wanted: Vec<f64> = (self.changes.iter().zip(&self.losses))
            .map(|(change, loss)| loss - PULL * part * inner(target, change))
            .collect();
        let count = wanted.len();
        let slope = |at: &[f64]| -> Vec<f64> {
            (0..count)
                .map(|k| {
                    let row = self.products[k].iter().zip(at);
                    part * row.map(|(g, a)| g * a).sum::<f64>() - wanted[k]
                })
                .collect()
        };
        // The largest row sum bounds the largest eigenvalue.
        let steepest = (self.products.iter())
            .map(|row| row.iter().map(|g| g.abs()).sum::<f64>())
            .fold(0.0, f64::max);
        let length = 1.0 / (part * steepest).max(1e-300);
        let mut point = self.weights.clone();
        let mut ahead = point.clone();
        let mut momentum = 1.0_f64;
        for _ in 0..2000 {
            let mut next: Vec<f64> = (ahead.iter().zip(slope(&ahead)))
                .map(|(a, s)| a - length * s)
                .collect();
            onto_simplex(&mut next, self.cost);
            let following = 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt());
            let moved: Vec<f64> = next.iter().zip(&point).map(|(n, p)| n - p).collect();
            let uphill: f64 = (next.iter().zip(&ahead).zip(&moved))
                .map(|((n, a), m)| (n - a) * m)
                .sum();
            let push = if uphill < 0.0 {
                momentum = 1.0;
                0.0
            } else {
                let push = (momentum - 1.0) / following;
                momentum = following;
                push
            };
            ahead = next.iter().zip(&moved).map(|(n, m)| n + push * m).collect();
            point = next;
            let change: f64 = moved.iter().map(|m| m.abs()).fold(0.0, f64::max);
            if change <= 1e-9 * self.cost {
                break;
            }
        }
        point
    }
}

/// The nearest point with α ≥ 0 and Σα ≤ most.
fn onto_simplex(point: &mut [f64], most: f64) {
    let positive: f64 = point.iter().map(|value| value.max(0.0)).sum();
    let mut lowered = 0.0;
    if positive > most {
        let mut sorted = point.to_vec();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let mut sum = 0.0;
        for (place, value) in sorted.iter().enumerate() {
            sum += value;
            let candidate = (sum - most) / (place + 1) as f64;
            if value - candidate > 0.0 {
                lowered = candidate;
            }
        }
    }
    for value in point {
        *value = (*value - lowered).max(0.0);
    }
}

pub(super) fn inner(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    let columns = a.col_iter().zip(b.col_iter());
    columns
        .map(|(a, b)| a.iter().zip(b.iter()).map(|(a, b)| a * b).sum::<f64>())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn symmetric(dim: usize, random: &mut Stream) -> Mat<f64> {
        let some = Mat::from_fn(dim, dim, |_, _| random.normal());
        &some + some.transpose()
    }

    fn value(metric: &Mat<f64>, changes: &[Mat<f64>], losses: &[f64], cost: f64) -> f64 {
        let slack = changes
            .iter()
            .zip(losses)
            .map(|(c, l)| l - inner(metric, c));
        0.5 * inner(metric, metric) + cost * slack.fold(0.0, f64::max)
    }

    /// The problem is convex: no semidefinite matrix nearby, nor a random far one, does better.
    #[test]
    fn no_other_metric_does_better() {
        let mut random = Stream::new(4, "test", 0);
        for diagonal in [false, true] {
            let mut solver = Solver::new(4, 0.8, diagonal);
            let (mut changes, mut losses) = (Vec::new(), Vec::new());
            for _ in 0..5 {
                let change = symmetric(4, &mut random);
                let loss = 0.2 + random.normal().abs();
                solver.add(change.clone(), loss);
                changes.push(change);
                losses.push(loss);
            }
            let (metric, slack) = solver.solve().unwrap();
            let least = value(&metric, &changes, &losses, 0.8);
            assert!((least - 0.5 * inner(&metric, &metric) - 0.8 * slack).abs() < 1e-9);
            for trial in 0..400 {
                let size = [1e-3, 1e-2, 0.1, 1.0][trial % 4];
                let moved = &metric + faer::Scale(size) * symmetric(4, &mut random);
                let moved = solver.project(moved).unwrap();
                let other = value(&moved, &changes, &losses, 0.8);
                assert!(other > least - 1e-4, "{other} {least}");
            }
        }
    }

    #[test]
    fn the_simplex_by_hand() {
        let mut inside = [0.2, -1.0, 0.3];
        onto_simplex(&mut inside, 1.0);
        assert_eq!(inside, [0.2, 0.0, 0.3]);
        // 2 − t + 1 − t = 1 with t = 1: (1, 0, 0).
        let mut outside = [2.0, 1.0, -3.0];
        onto_simplex(&mut outside, 1.0);
        assert_eq!(outside, [1.0, 0.0, 0.0]);
    }
}
