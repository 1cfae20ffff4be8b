//! Relative attributes: one scorer w_m an attribute, learned from orderings of classes, and all of
//! them together as the map L with rows w_m (slides "Relative attribute learning"; the idea of
//! attributes is Parikh & Grauman's, ICCV 2011).
//!
//! Each scorer minimises λ|w|² plus the mean rounded hinge over its constraints, by Newton's method
//! in the primal (Chapelle & Keerthi 2010). Departs from the slides: the loss is a mean, not a sum,
//! and the vectors are scaled to unit mean squared distance from their mean, so that λ means the
//! same on any data; the slides do not say how they draw quadruplets, so schemes are offered; why
//! the default is what it is stands in docs/decisions/relative-attribute-constraints.md.

use super::coordinates::Coordinates;
use super::hinge::Hinge;
use super::ordered::OrderedLoss;
use super::sampling::{ByGap, Light, PairScheme, Quads, Scheme};
use crate::data::{Corpus, RowId, SCAN_ROWS};
use crate::dataset::Dataset;
use crate::linalg::vectorized;
use crate::model::Map;
use crate::optimize::{Newton, Objective};
use crate::supervision::{Orderings, Supervision, SupervisionKind};
use crate::training::kernel::{KernelAxes, KernelKind, KernelSpec};
use crate::training::parameters::{Bound, parameters, require};
use crate::training::training_space::TrainingSpace;
use crate::training::{Method, Run};
use crate::{Error, Result};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use rayon::prelude::*;

parameters! {
    /// One number an attribute ("how natural, how open"), learned from orderings of classes: a
    /// space of few, named numbers in which classes are told apart by a Gaussian each or by
    /// neighbours. Needs orderings with class labels. A Newton step costs O(n·d²) in the smaller
    /// of rows and dimensions, all pairs of two levels O(n log n), and memory is O(n + d²). Use it
    /// where people can order classes by properties; where there are only labels, LDA is simpler
    /// and often as good.
    pub struct Attributes {
        /// Weight of |w|² beside the mean loss, for vectors at unit mean squared distance from
        /// their mean.
        lambda: f64 = 3e-3 => Bound::Above(0.0),
        /// If above 0, minimise |w|² + C·Σ loss with this C instead of using lambda.
        cost: f64 = 0.0 => Bound::AtLeast(0.0),
        /// Half-width h of the smoothed part of the hinge.
        smoothing: f64 = 0.05 => Bound::Above(0.0),
        /// Ordered pairs of rows that become constraints: all, neighbours (adjacent levels) or
        /// none.
        pairs: PairScheme = PairScheme::None,
        /// Quadruplets that are sampled as constraints.
        quadruplets: Quads = Quads::Class,
        /// Number of quadruplets to sample per attribute.
        count: usize = 20_000,
        /// Equality constraints: none, level (all rows of one level) or classes (different classes
        /// of one level).
        light: Light = Light::None,
        /// Margin as a function of the level difference of two rows: unit (1), gap, root or
        /// inverse.
        margin: ByGap = ByGap::Unit,
        /// Weight of a constraint as a function of the level difference: unit (1), gap, root or
        /// inverse.
        weight: ByGap = ByGap::Unit,
        /// Kernel of the scoring functions.
        kernel: KernelKind = KernelKind::Linear,
        /// Kernel width, as a multiple of the mean squared (rbf) or χ² (exp-chi2) distance between
        /// training rows.
        width: f64 = 1.0 => Bound::Above(0.0),
        /// Maximum number of landmark rows of the kernel.
        landmarks: usize = 2000 => Bound::AtLeast(1.0),
    }
}

impl Method for Attributes {
    const NAME: &'static str = "attributes";
    const SUMMARY: &'static str = "One learned score per attribute, from orderings of classes.";
    const NEEDS: &'static [SupervisionKind] = &[SupervisionKind::Orderings];
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("lambda", &["0.003", "0.01"])];

    fn check(&self) -> Result<()> {
        let some = self.pairs != PairScheme::None || self.quadruplets != Quads::None;
        let expected = "all or neighbours where quadruplets is none";
        require(some, "pairs", expected, "none")?;
        let drawn = self.quadruplets == Quads::None || self.count >= 1;
        require(drawn, "count", "at least 1", self.count)?;
        Ok(())
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let settings = self;
        let Supervision::Orderings(orderings) = data.supervision() else {
            let needs = "orderings of classes by attributes";
            return Err(data.unusable("attributes", needs));
        };
        let axes;
        let coordinates = match settings.kernel {
            KernelKind::Linear => TrainingSpace::new(data)?,
            _ => {
                axes = KernelAxes::new(data.items(), settings.spec(), run.seed)?;
                TrainingSpace::in_kernel_space(data, &axes)?
            }
        };
        let coordinates = Coordinates::new(coordinates)?;
        run.facts.insert("scale".into(), coordinates.scale);
        let scorers = settings.task().scorers(&coordinates, orderings, run)?;
        coordinates.map(&scorers)
    }
}

impl Attributes {
    fn spec(&self) -> KernelSpec {
        KernelSpec {
            kernel: self.kernel,
            width: self.width,
            landmarks: self.landmarks,
            ..KernelSpec::default()
        }
    }

    fn task(&self) -> Task {
        Task {
            scheme: Scheme {
                pairs: self.pairs,
                quads: self.quadruplets,
                light: self.light,
                margin: self.margin,
                weight: self.weight,
                count: self.count,
            },
            hinge: Hinge::rounded(self.smoothing),
            strength: if self.cost > 0.0 {
                Strength::Cost(self.cost)
            } else {
                Strength::Lambda(self.lambda)
            },
        }
    }
}

/// What the scorers of all attributes are to minimise.
pub(super) struct Task {
    pub(super) scheme: Scheme,
    pub(super) hinge: Hinge,
    pub(super) strength: Strength,
}

/// How strongly a scorer is kept small.
pub(super) enum Strength {
    /// λ|w|² beside the mean loss.
    Lambda(f64),
    /// |w|² beside this times the sum of the losses.
    Cost(f64),
}

impl Task {
    /// One scorer an attribute.
    pub(super) fn scorers(
        &self,
        coordinates: &Coordinates<'_>,
        orderings: &Orderings,
        run: &mut Run<'_>,
    ) -> Result<Vec<Vec<f64>>> {
        let dim = coordinates.rows().dim();
        let (mut scorers, mut farthest, mut steps) = (Vec::new(), 0.0_f64, 0);
        for attribute in 0..orderings.attributes() {
            run.check_stop()?;
            let (pairs, differences) = self.scheme.constraints(orderings, attribute, run.seed);
            let loss = OrderedLoss::new(self.hinge, pairs, differences);
            if loss.is_empty() {
                let name = orderings.orderings()[attribute].attribute();
                return Err(Error::Data(format!(
                    "attribute {name:?} orders no two of the classes that rows have: expected \
                     rows of at least two levels"
                )));
            }
            // |w|² + C·Σ loss has the minimum of |w|²/(C·N) + mean loss.
            let lambda = match self.strength {
                Strength::Lambda(lambda) => lambda,
                Strength::Cost(cost) => loss.share() / cost,
            };
            let mut objective = Scorer::new(coordinates, loss, lambda);
            let found = Newton::default().minimise(&mut objective, &vec![0.0; dim])?;
            farthest = farthest.max(found.residual);
            steps += found.iterations;
            scorers.push(found.point);
        }
        let named = orderings.orderings().iter();
        run.outputs = named.map(|o| o.attribute().to_owned()).collect();
        run.facts.insert("newton_steps".into(), steps as f64);
        run.facts.insert("gradient".into(), farthest);
        Ok(scorers)
    }
}

/// λ|w|² + loss(F w), where F are the training space's rows divided by its scale.
struct Scorer<'a> {
    rows: &'a dyn Corpus,
    inverse: f64,
    loss: OrderedLoss,
    lambda: f64,
    scores: Vec<f64>,
    slopes: Vec<f64>,
}

/// Columns of F whose curvature is worked out together.
const COLUMNS: usize = 32;

impl<'a> Scorer<'a> {
    fn new(coordinates: &'a Coordinates<'_>, loss: OrderedLoss, lambda: f64) -> Self {
        let rows = coordinates.rows();
        let count = rows.len() as usize;
        Scorer {
            rows,
            inverse: 1.0 / coordinates.scale,
            loss,
            lambda,
            scores: vec![0.0; count],
            slopes: vec![0.0; count],
        }
    }

    fn blocks(&self) -> impl IndexedParallelIterator<Item = std::ops::Range<RowId>> {
        let (len, size) = (self.rows.len(), SCAN_ROWS as u64);
        (0..len.div_ceil(size) as usize)
            .into_par_iter()
            .map(move |block| {
                let start = block as u64 * size;
                start..len.min(start + size)
            })
    }

    /// F v.
    fn forward(&self, direction: &[f64], out: &mut [f64]) -> Result<()> {
        let parts: Vec<Result<()>> = (self.blocks())
            .zip(out.par_chunks_mut(SCAN_ROWS))
            .map(|(range, out)| {
                self.rows.scan(range.clone(), &mut |first, rows| {
                    let start = (first - range.start) as usize;
                    for (row, out) in rows.iter().zip(&mut out[start..]) {
                        *out = self.inverse * product(row, direction);
                    }
                    Ok(())
                })
            })
            .collect();
        parts.into_iter().collect()
    }

    /// Fᵀ c, in blocks whose sums are added in order.
    fn backward(&self, amounts: &[f64], out: &mut [f64]) -> Result<()> {
        let parts: Vec<Result<Vec<f64>>> = self
            .blocks()
            .map(|range| {
                let mut sum = vec![0.0; out.len()];
                self.rows.scan(range, &mut |first, rows| {
                    for (row, amount) in rows.iter().zip(&amounts[first as usize..]) {
                        if *amount != 0.0 {
                            add_scaled(*amount, row, &mut sum);
                        }
                    }
                    Ok(())
                })?;
                Ok(sum)
            })
            .collect();
        out.fill(0.0);
        for part in parts {
            for (target, value) in out.iter_mut().zip(part?) {
                *target += self.inverse * value;
            }
        }
        Ok(())
    }
}

impl Objective for Scorer<'_> {
    fn dim(&self) -> usize {
        self.rows.dim()
    }

    fn evaluate(&mut self, point: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let mut scores = std::mem::take(&mut self.scores);
        self.forward(point, &mut scores)?;
        let value = self.loss.evaluate(&scores, &mut self.slopes);
        self.scores = scores;
        self.backward(&self.slopes, gradient)?;
        let mut squares = 0.0;
        for (g, w) in gradient.iter_mut().zip(point) {
            *g += 2.0 * self.lambda * w;
            squares += w * w;
        }
        Ok(value + self.lambda * squares)
    }

    fn hessian_product(&self, direction: &[f64], out: &mut [f64]) -> Result<()> {
        let mut moved = vec![0.0; self.scores.len()];
        self.forward(direction, &mut moved)?;
        let mut bent = vec![0.0; self.scores.len()];
        self.loss.bend(&moved, &mut bent);
        self.backward(&bent, out)?;
        for (target, d) in out.iter_mut().zip(direction) {
            *target += 2.0 * self.lambda * d;
        }
        Ok(())
    }

    fn add_hessian(&self, out: &mut Mat<f64>) -> Result<()> {
        let (dim, count) = (self.dim(), self.scores.len());
        for start in (0..dim).step_by(COLUMNS) {
            let width = COLUMNS.min(dim - start);
            let mut columns = vec![0.0; width * count];
            self.rows.scan(0..self.rows.len(), &mut |first, rows| {
                for (index, row) in rows.iter().enumerate() {
                    for (k, value) in row[start..start + width].iter().enumerate() {
                        columns[k * count + first as usize + index] =
                            self.inverse * f64::from(*value);
                    }
                }
                Ok(())
            })?;
            let mut bent = vec![0.0; width * count];
            (bent.par_chunks_mut(count))
                .zip(columns.par_chunks(count))
                .for_each(|(bent, column)| self.loss.bend(column, bent));
            let bent = MatRef::from_column_major_slice(&bent, count, width);
            let mut wide = Vec::new();
            self.rows.scan(0..self.rows.len(), &mut |first, rows| {
                wide.clear();
                wide.extend(rows.values().iter().map(|v| self.inverse * f64::from(*v)));
                matmul(
                    out.as_mut().subcols_mut(start, width),
                    Accum::Add,
                    MatRef::from_row_major_slice(&wide, rows.len(), dim).transpose(),
                    bent.subrows(first as usize, rows.len()),
                    1.0,
                    Par::Seq,
                );
                Ok(())
            })?;
        }
        for index in 0..dim {
            out[(index, index)] += 2.0 * self.lambda;
        }
        Ok(())
    }
}

/// x·w in f64, in a fixed order.
pub(super) fn product(row: &[f32], weights: &[f64]) -> f64 {
    vectorized(
        #[inline(always)]
        || {
            let (lanes, rest) = row.as_chunks::<8>();
            let (weight_lanes, weight_rest) = weights.as_chunks::<8>();
            let mut sums = [0.0_f64; 8];
            for (x, w) in lanes.iter().zip(weight_lanes) {
                for lane in 0..8 {
                    sums[lane] += f64::from(x[lane]) * w[lane];
                }
            }
            let rest: f64 = (rest.iter().zip(weight_rest))
                .map(|(x, w)| f64::from(*x) * w)
                .sum();
            sums.iter().sum::<f64>() + rest
        },
    )
}

fn add_scaled(amount: f64, row: &[f32], sum: &mut [f64]) {
    vectorized(
        #[inline(always)]
        || {
            for (target, value) in sum.iter_mut().zip(row) {
                *target += amount * f64::from(*value);
            }
        },
    );
}

#[cfg(test)]
#[path = "attributes_tests.rs"]
mod tests;
