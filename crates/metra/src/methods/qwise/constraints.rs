//! Constraints on a distance that is linear in its weights, D(i, j) = w·Ψ(i, j), and their loss.
//!
//! Every constraint is z·(w, b) ≥ τ: a quadruplet has z = Ψ(far) − Ψ(near); in the semi-supervised
//! form a dissimilar pair has z = (Ψ, −1), D ≥ b + 1, and a similar pair z = (−Ψ, 1), D ≤ b − 1,
//! where the threshold b is learned too. Rows z are made from the corpus as they are needed; they
//! are kept only where all of them are small.

use super::hinge::Hinge;
use crate::Result;
use crate::data::{Corpus, RowId};
use crate::linalg::{RowBuf, accumulate_outer};
use crate::optimize::Objective;
use crate::supervision::Quadruplet;
use faer::{Mat, MatRef};
use rayon::prelude::*;

/// What Ψ is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Features {
    /// (x_i − x_j) ∘ (x_i − x_j): a diagonal Mahalanobis distance.
    Squares,
    /// Euclidean distances within blocks of so many numbers.
    Blocks(usize),
}

impl Features {
    /// Numbers in Ψ of vectors of `dim` numbers.
    pub(super) fn count(self, dim: usize) -> usize {
        match self {
            Features::Squares => dim,
            Features::Blocks(size) => dim / size,
        }
    }

    /// Add `sign`·Ψ(a, b) to `out`.
    pub(super) fn add(self, sign: f64, a: &[f32], b: &[f32], out: &mut [f64]) {
        match self {
            Features::Squares => {
                for ((target, a), b) in out.iter_mut().zip(a).zip(b) {
                    let difference = f64::from(*a) - f64::from(*b);
                    *target += sign * difference * difference;
                }
            }
            Features::Blocks(size) => {
                let blocks = a.chunks_exact(size).zip(b.chunks_exact(size));
                for (target, (a, b)) in out.iter_mut().zip(blocks) {
                    let squares = a.iter().zip(b).map(|(a, b)| {
                        let difference = f64::from(*a) - f64::from(*b);
                        difference * difference
                    });
                    *target += sign * squares.sum::<f64>().sqrt();
                }
            }
        }
    }
}

/// One constraint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Constraint {
    Quadruplet(Quadruplet),
    /// A quadruplet drawn from what is known of classes beside given comparisons.
    OfClasses(Quadruplet),
    Similar([RowId; 2]),
    Dissimilar([RowId; 2]),
}

impl Constraint {
    fn margin(&self) -> f64 {
        match self {
            Constraint::Quadruplet(q) | Constraint::OfClasses(q) if !q.strict => 0.0,
            _ => 1.0,
        }
    }

    /// The pair that must be far and the pair that must be near; a pair alone stands twice.
    fn pairs(&self) -> [[RowId; 2]; 2] {
        match self {
            Constraint::Quadruplet(q) | Constraint::OfClasses(q) => [q.far, q.near],
            Constraint::Similar(pair) | Constraint::Dissimilar(pair) => [*pair, *pair],
        }
    }
}

/// How constraints and weights count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Costs {
    /// Of |w|² + b².
    pub(super) lambda: f64,
    /// Of a quadruplet's loss.
    pub(super) quadruplet: f64,
    /// Of the loss of a quadruplet that was drawn from classes.
    pub(super) of_classes: f64,
    /// Of a pair's loss.
    pub(super) pair: f64,
}

impl Costs {
    pub(super) fn of(&self, constraint: &Constraint) -> f64 {
        match constraint {
            Constraint::Quadruplet(_) => self.quadruplet,
            Constraint::OfClasses(_) => self.of_classes,
            Constraint::Similar(_) | Constraint::Dissimilar(_) => self.pair,
        }
    }
}

/// All that rows z are made from.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) corpus: &'a dyn Corpus,
    pub(super) features: Features,
    /// Ψ is multiplied by this.
    pub(super) factor: f64,
    /// Whether there is a threshold b beside the weights.
    pub(super) threshold: bool,
}

impl Source<'_> {
    /// Numbers in z.
    pub(super) fn width(&self) -> usize {
        self.features.count(self.corpus.dim()) + usize::from(self.threshold)
    }

    /// Rows z of some constraints.
    pub(super) fn rows(&self, constraints: &[Constraint]) -> Result<Vec<f64>> {
        let width = self.width();
        let mut all = vec![0.0; constraints.len() * width];
        all.par_chunks_mut(GATHERED * width)
            .zip(constraints.par_chunks(GATHERED))
            .try_for_each(|(rows, constraints)| self.write(constraints, rows))?;
        Ok(all)
    }

    /// Write rows z of a few constraints, whose vectors are fetched at once.
    fn write(&self, constraints: &[Constraint], rows: &mut [f64]) -> Result<()> {
        let ids: Vec<RowId> = (constraints.iter())
            .flat_map(|c| c.pairs().into_iter().flatten())
            .collect();
        let mut gathered = RowBuf::empty(self.corpus.dim());
        self.corpus.gather(&ids, &mut gathered)?;
        let count = self.features.count(self.corpus.dim());
        let each = constraints.iter().zip(rows.chunks_exact_mut(self.width()));
        for (number, (constraint, z)) in each.enumerate() {
            let row = |place: usize| gathered.row(4 * number + place);
            let psi = &mut z[..count];
            let threshold = match constraint {
                Constraint::Quadruplet(_) | Constraint::OfClasses(_) => {
                    self.features.add(self.factor, row(0), row(1), psi);
                    self.features.add(-self.factor, row(2), row(3), psi);
                    0.0
                }
                Constraint::Similar(_) => {
                    self.features.add(-self.factor, row(0), row(1), psi);
                    1.0
                }
                Constraint::Dissimilar(_) => {
                    self.features.add(self.factor, row(0), row(1), psi);
                    -1.0
                }
            };
            if self.threshold {
                z[count] = threshold;
            }
        }
        Ok(())
    }
}

/// Constraints whose vectors are in memory at once: blocks are far fewer than the numbers in a vector,
/// so that all vectors together would be much more than all rows z.
const GATHERED: usize = 64;

/// λ(|w|² + b²) + Σ cost · L(z·(w, b)) over some constraints.
pub(super) struct ConstraintLoss<'a> {
    source: Source<'a>,
    hinge: Hinge,
    costs: Costs,
    constraints: Vec<Constraint>,
    /// All rows z, where they are few enough.
    kept: Option<Vec<f64>>,
    /// Cost times second derivative of each constraint at the point last evaluated.
    bends: Vec<f64>,
}

/// Constraints that one task works on. Fixed, so that sums keep their order.
const BLOCK: usize = 256;
/// Blocks whose sums are kept at a time.
const WAVE: usize = 64;
/// Rows z of up to this many numbers (64 MB) are kept.
const KEPT: usize = 8 << 20;

impl<'a> ConstraintLoss<'a> {
    pub(super) fn new(
        source: Source<'a>,
        hinge: Hinge,
        costs: Costs,
        constraints: Vec<Constraint>,
    ) -> Result<Self> {
        let small = constraints.len().saturating_mul(source.width()) <= KEPT;
        let kept = if small {
            Some(source.rows(&constraints)?)
        } else {
            None
        };
        Ok(ConstraintLoss {
            source,
            hinge,
            costs,
            constraints,
            kept,
            bends: Vec::new(),
        })
    }

    /// Work on blocks of constraints with their rows z side by side; take results in order.
    fn each_block<T: Send>(
        &self,
        work: impl Fn(usize, &[f64]) -> T + Sync,
        mut take: impl FnMut(T),
    ) -> Result<()> {
        let width = self.source.width();
        let blocks = self.constraints.len().div_ceil(BLOCK);
        for wave in (0..blocks).step_by(WAVE) {
            let parts: Vec<Result<T>> = (wave..blocks.min(wave + WAVE))
                .into_par_iter()
                .map(|block| {
                    let start = block * BLOCK;
                    let end = self.constraints.len().min(start + BLOCK);
                    match &self.kept {
                        Some(kept) => Ok(work(start, &kept[start * width..end * width])),
                        None => {
                            let rows = self.source.rows(&self.constraints[start..end])?;
                            Ok(work(start, &rows))
                        }
                    }
                })
                .collect();
            for part in parts {
                take(part?);
            }
        }
        Ok(())
    }

    /// Places of the constraints that push at a point.
    pub(super) fn pushing(&self, point: &[f64]) -> Result<Vec<usize>> {
        let mut all = Vec::new();
        let width = self.source.width();
        self.each_block(
            |start, rows| {
                let places = rows.chunks_exact(width).enumerate().filter(|(place, z)| {
                    let margin = self.constraints[start + place].margin();
                    self.hinge.pushes(margin, dot(z, point))
                });
                places.map(|(place, _)| start + place).collect::<Vec<_>>()
            },
            |places| all.extend(places),
        )?;
        Ok(all)
    }
}

impl Objective for ConstraintLoss<'_> {
    fn dim(&self) -> usize {
        self.source.width()
    }

    fn evaluate(&mut self, point: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let width = self.dim();
        let mut value = 0.0;
        let mut bends = Vec::with_capacity(self.constraints.len());
        gradient.fill(0.0);
        self.each_block(
            |start, rows| {
                let (mut value, mut sum) = (0.0, vec![0.0; width]);
                let mut bends = Vec::with_capacity(BLOCK);
                for (place, z) in rows.chunks_exact(width).enumerate() {
                    let constraint = &self.constraints[start + place];
                    let (margin, cost) = (constraint.margin(), self.costs.of(constraint));
                    let t = dot(z, point);
                    value += cost * self.hinge.value(margin, t);
                    add_scaled(cost * self.hinge.slope(margin, t), z, &mut sum);
                    bends.push(cost * self.hinge.curvature(margin, t));
                }
                (value, sum, bends)
            },
            |(part, sum, more)| {
                value += part;
                bends.extend(more);
                add_scaled(1.0, &sum, gradient);
            },
        )?;
        self.bends = bends;
        add_scaled(2.0 * self.costs.lambda, point, gradient);
        Ok(value + self.costs.lambda * dot(point, point))
    }

    fn hessian_product(&self, direction: &[f64], out: &mut [f64]) -> Result<()> {
        let width = self.dim();
        out.fill(0.0);
        self.each_block(
            |start, rows| {
                let mut sum = vec![0.0; width];
                for (place, z) in rows.chunks_exact(width).enumerate() {
                    let bend = self.bends[start + place];
                    if bend > 0.0 {
                        add_scaled(bend * dot(z, direction), z, &mut sum);
                    }
                }
                sum
            },
            |sum| add_scaled(1.0, &sum, out),
        )?;
        add_scaled(2.0 * self.costs.lambda, direction, out);
        Ok(())
    }

    fn add_hessian(&self, out: &mut Mat<f64>) -> Result<()> {
        let width = self.dim();
        self.each_block(
            |start, rows| {
                let mut bent = Vec::new();
                for (place, z) in rows.chunks_exact(width).enumerate() {
                    let bend = self.bends[start + place];
                    if bend > 0.0 {
                        let root = bend.sqrt();
                        bent.extend(z.iter().map(|v| root * v));
                    }
                }
                bent
            },
            |bent| {
                let rows = MatRef::from_row_major_slice(&bent, bent.len() / width, width);
                accumulate_outer(rows, out.as_mut());
            },
        )?;
        for index in 0..width {
            out[(index, index)] += 2.0 * self.costs.lambda;
        }
        Ok(())
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add_scaled(amount: f64, values: &[f64], sum: &mut [f64]) {
    if amount != 0.0 {
        for (target, value) in sum.iter_mut().zip(values) {
            *target += amount * value;
        }
    }
}

#[cfg(test)]
#[path = "constraints_tests.rs"]
mod tests;
