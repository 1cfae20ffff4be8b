//! Qwise: metrics from comparisons of pairs, "these two are nearer than those two". Law, Thome &
//! Cord, "Quadruplet-wise Image Similarity Learning", ICCV 2013, as described in Cord's slides of
//! 3 December 2013. [`Attributes`] is its use for relative attributes.
//!
//! Departs from the slides: light constraints use the rounded hinge with margin 0 (the slides print
//! margin 1 only); the block metric has no finite linear map, so that it is compared in
//! [`Space::Blocks`] and searched exactly; distances are scaled to unit mean length of a constraint
//! so that λ means the same on any data; w ≥ 0 is kept by projected Newton, where the slides name
//! plain Newton.

mod attributes;
mod constraints;
mod coordinates;
mod diagonal;
mod full;
mod hinge;
mod ordered;
mod rank_svm;
mod sampling;

pub use crate::training::kernel::KernelKind;
pub use attributes::Attributes;
pub use rank_svm::RankSvm;
pub use sampling::{ByGap, Light, PairScheme, Quads};

use crate::data::{Corpus, JoinedCorpus, RowId, Subset};
use crate::dataset::Dataset;
use crate::execute::spread;
use crate::linalg::RowBuf;
use crate::model::{LowRank, Map, Space};
use crate::random::Stream;
use crate::supervision::{Quadruplet, Supervision, SupervisionKind, derive};
use crate::training::parameters::{Bound, Choice, parameters, require};
use crate::training::principal_axes::{coordinates, principal_axes};
use crate::training::{Method, Run};
use crate::{Error, Result};
use constraints::{Constraint, Costs, Features};
use diagonal::Task;
use faer::Mat;
use full::{FullLoss, factor};
use hinge::Hinge;

/// What is learned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum QwiseForm {
    /// A weight for every column: D = Σ w_c (x_c − y_c)².
    Diagonal,
    /// A weight for every block of columns: D = Σ w_b |x_b − y_b|.
    Blocks,
    /// A whole matrix of low rank: D = (x − y)ᵀM(x − y).
    Full,
}

impl Choice for QwiseForm {
    const ALL: &'static [(&'static str, Self)] = &[
        ("diagonal", QwiseForm::Diagonal),
        ("blocks", QwiseForm::Blocks),
        ("full", QwiseForm::Full),
    ];
}

parameters! {
    /// Weights of columns, of blocks of columns, or a whole matrix, from statements that one pair
    /// is nearer than another: given quadruplets and triplets, or drawn from labels, judgements,
    /// orderings, a taxonomy or similar pairs; pairs said to be similar and dissimilar join in with a learned
    /// threshold. Diagonal and blocks: O(constraints·d + d³) a Newton step, memory O(d²) plus at
    /// most 64 MB, few parameters and so little overfitting. Full: O(constraints·d + n·d² + d³) a
    /// step with the rows that are named in memory. Use it where comparisons are what you have, or
    /// a class tree, or regions (blocks) whose importance is to be found; where there are labels,
    /// LDA or WARCA rank better.
    pub struct Qwise {
        /// What is learned.
        form: QwiseForm = QwiseForm::Diagonal,
        /// Columns per block, for form=blocks: a divisor of the dimension, at most 4096.
        block: usize = 1,
        /// Maximum dimension of a mapped vector, for form=full.
        directions: usize = 64 => Bound::AtLeast(1.0),
        /// Weight of |w|² (of the trace for form=full) beside the mean loss.
        lambda: f64 = 1e-4 => Bound::Above(0.0),
        /// If above 0, minimise ½|w|² + C·Σ loss with this C instead of using lambda.
        cost: f64 = 0.0 => Bound::AtLeast(0.0),
        /// Weight of a similar or dissimilar pair relative to a quadruplet.
        pair_cost: f64 = 1.0 => Bound::Above(0.0),
        /// Weight of what is known of the classes (labels, orderings, a taxonomy) beside the supervision,
        /// relative to all of the supervision: `count` quadruplets are drawn from it. 0 leaves it to splitting and
        /// evaluation.
        class_weight: f64 = 0.0 => Bound::AtLeast(0.0),
        /// Half-width h of the smoothed part of the hinge.
        smoothing: f64 = 0.05 => Bound::Above(0.0),
        /// Number of quadruplets to sample if none are given.
        count: usize = 20_000 => Bound::AtLeast(1.0),
        /// Initial size of the active set; violated constraints are added until none remains.
        active: usize = 20_000 => Bound::AtLeast(1.0),
        /// Maximum number of optimisation steps, for form=full.
        iterations: usize = 300 => Bound::AtLeast(1.0),
    }
}

/// Blocks up to this size have a space.
const LARGEST_BLOCK: usize = 4096;

/// A space for every size of blocks, so that a learner can name its own.
static BLOCK_SPACES: [Space; LARGEST_BLOCK + 1] = {
    let mut all = [Space::Blocks { size: 0 }; LARGEST_BLOCK + 1];
    let mut size = 0;
    while size <= LARGEST_BLOCK {
        all[size] = Space::Blocks { size: size as u32 };
        size += 1;
    }
    all
};

impl Method for Qwise {
    const NAME: &'static str = "qwise";
    const SUMMARY: &'static str =
        "Weights of columns or blocks, or a full matrix, from comparisons of pairs (quadruplets).";
    const NEEDS: &'static [SupervisionKind] = &[
        SupervisionKind::Labels,
        SupervisionKind::LabelSets,
        SupervisionKind::Judgements,
        SupervisionKind::SimilarPairs,
        SupervisionKind::Triplets,
        SupervisionKind::Quadruplets,
        SupervisionKind::Orderings,
        SupervisionKind::Taxonomy,
    ];
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("lambda", &["1e-5", "1e-4", "1e-3"])];

    fn check(&self) -> Result<()> {
        let fits = (1..=LARGEST_BLOCK).contains(&self.block);
        require(fits, "block", "between 1 and 4096", self.block)?;
        Ok(())
    }

    fn spaces(&self) -> &'static [Space] {
        match self.form {
            QwiseForm::Blocks => std::slice::from_ref(&BLOCK_SPACES[self.block]),
            QwiseForm::Diagonal | QwiseForm::Full => &Space::ALL,
        }
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let settings = self;
        let dim = data.dim();
        let joined = JoinedCorpus::new(data.items(), data.queries())?;
        let corpus: &dyn Corpus = if data.supervision().within() {
            data.items()
        } else {
            &joined
        };
        let constraints = settings.constraints(data, run.seed)?;
        run.facts
            .insert("constraints".into(), constraints.len() as f64);
        match settings.form {
            QwiseForm::Full => settings.full(corpus, &constraints, run),
            QwiseForm::Diagonal => {
                let weights = settings.weights(corpus, &constraints, Features::Squares, run)?;
                let factors = weights.iter().map(|w| w.sqrt() as f32).collect();
                Ok(Map::Diagonal(factors))
            }
            QwiseForm::Blocks => {
                let size = settings.block;
                if !dim.is_multiple_of(size) {
                    let expected = format!("a divisor of {dim} (the dimension of the vectors)");
                    return Err(Error::parameter("block", expected, size));
                }
                let features = Features::Blocks(size);
                let weights = settings.weights(corpus, &constraints, features, run)?;
                // A factor of w on every column of a block is a factor of w on its distance.
                let factors = (weights.iter())
                    .flat_map(|w| std::iter::repeat_n(*w as f32, size))
                    .collect();
                Ok(Map::Diagonal(factors))
            }
        }
    }
}

impl Qwise {
    /// What the supervision says, as constraints: what is given, or drawn triplets. What is known of classes beside
    /// it joins in where it has a weight.
    fn constraints(&self, data: &Dataset<'_>, seed: u64) -> Result<Vec<Constraint>> {
        let supervision = data.supervision();
        let mut all: Vec<Constraint> = match supervision {
            Supervision::Judgements(judgements) => {
                let mut random = Stream::new(seed, "triplets of judgements", 0);
                // Within one corpus a query is a row of it; otherwise queries stand after items.
                let first = if supervision.within() {
                    0
                } else {
                    data.items().len()
                };
                (0..self.count)
                    .map_while(|_| derive::triplet(judgements, &mut random))
                    .map(|[query, near, far]| derive::as_quadruplet(&[first + query, near, far]))
                    .map(Constraint::Quadruplet)
                    .collect()
            }
            // Dissimilar pairs were said: pairs speak for themselves, by a threshold, and no
            // unlisted pair is taken for dissimilar.
            Supervision::Comparisons(given) if !given.dissimilar().is_empty() => {
                let quadruplets = derive::stated_quadruplets(given).into_iter();
                let similar = given.similar().iter().copied();
                let dissimilar = given.dissimilar().iter().copied();
                (quadruplets.map(Constraint::Quadruplet))
                    .chain(similar.map(Constraint::Similar))
                    .chain(dissimilar.map(Constraint::Dissimilar))
                    .collect()
            }
            _ => (derive::quadruplets(supervision, self.count, seed)?.into_iter())
                .map(Constraint::Quadruplet)
                .collect(),
        };
        if all.is_empty() {
            return Err(data.unusable(
                "qwise",
                "quadruplets, triplets or pairs, or labels, judgements, orderings or a taxonomy from \
                 which some can be drawn",
            ));
        }
        if self.class_weight > 0.0 {
            if data.class_supervision().is_empty() {
                let expected =
                    "0 where no labels, orderings or taxonomy stand beside the supervision";
                return Err(Error::parameter(
                    "class_weight",
                    expected,
                    self.class_weight,
                ));
            }
            for classes in data.class_supervision() {
                let drawn = derive::quadruplets(classes, self.count, seed)?;
                if drawn.is_empty() {
                    let given = classes.describe();
                    let expected = format!("0 where no quadruplets can be drawn from {given}");
                    return Err(Error::parameter(
                        "class_weight",
                        expected,
                        self.class_weight,
                    ));
                }
                all.extend(drawn.into_iter().map(Constraint::OfClasses));
            }
        }
        Ok(all)
    }

    fn hinge(&self) -> Hinge {
        Hinge::rounded(self.smoothing)
    }

    /// λ and the cost of each loss: mean loss with lambda, or ½|w|² with C. What was drawn from classes beside
    /// the supervision counts as `class_weight` times all the rest.
    fn costs(&self, constraints: &[Constraint]) -> Costs {
        let (mut quadruplets, mut pairs, mut of_classes) = (0.0, 0.0, 0.0);
        for constraint in constraints {
            match constraint {
                Constraint::Quadruplet(_) => quadruplets += 1.0,
                Constraint::OfClasses(_) => of_classes += 1.0,
                Constraint::Similar(_) | Constraint::Dissimilar(_) => pairs += 1.0,
            }
        }
        let drawn = self.class_weight * (quadruplets + self.pair_cost * pairs);
        let total = quadruplets + pairs + drawn;
        let (lambda, quadruplet) = if self.cost > 0.0 {
            (0.5, self.cost)
        } else {
            (self.lambda, 1.0 / total)
        };
        Costs {
            lambda,
            quadruplet,
            of_classes: quadruplet * drawn / f64::max(of_classes, 1.0),
            pair: quadruplet * self.pair_cost,
        }
    }

    fn weights(
        &self,
        corpus: &dyn Corpus,
        constraints: &[Constraint],
        features: Features,
        run: &mut Run<'_>,
    ) -> Result<Vec<f64>> {
        let task = Task {
            corpus,
            features,
            hinge: self.hinge(),
            costs: self.costs(constraints),
            active: self.active,
            seed: run.seed,
        };
        let found = task.solve(constraints)?;
        let mut fact = |name: &str, value: f64| run.facts.insert(name.into(), value);
        fact("scale", found.scale);
        fact("kkt_residual", found.residual);
        fact("active_constraints", found.active as f64);
        fact("newton_steps", found.steps as f64);
        let zero = found.weights.iter().filter(|w| **w == 0.0).count();
        fact("weights_of_zero", zero as f64);
        if let Some(threshold) = found.threshold {
            fact("threshold", threshold);
        }
        Ok(found.weights)
    }

    fn full(
        &self,
        corpus: &dyn Corpus,
        constraints: &[Constraint],
        run: &mut Run<'_>,
    ) -> Result<Map> {
        let costs = self.costs(constraints);
        let mut quadruplets: Vec<(Quadruplet, f64)> = (constraints.iter())
            .filter_map(|constraint| match constraint {
                Constraint::Quadruplet(q) | Constraint::OfClasses(q) => {
                    Some((*q, costs.of(constraint)))
                }
                Constraint::Similar(_) | Constraint::Dissimilar(_) => None,
            })
            .collect();
        if quadruplets.len() < constraints.len() {
            return Err(Error::parameter(
                "form",
                "diagonal or blocks where dissimilar pairs are given",
                "full",
            ));
        }
        // Only rows that are named are read and kept.
        let mut named: Vec<RowId> = (quadruplets.iter())
            .flat_map(|(q, _)| [q.near, q.far].concat())
            .collect();
        named.sort_unstable();
        named.dedup();
        for (q, _) in &mut quadruplets {
            for row in q.near.iter_mut().chain(&mut q.far) {
                *row = named.binary_search(row).unwrap_or(0) as RowId;
            }
        }
        let part = Subset::new(corpus, named)?;
        let axes = if part.len() < part.dim() as u64 {
            Some(principal_axes(&part)?)
        } else {
            None
        };
        let (rows, mean) = match &axes {
            Some(axes) => (columns(&coordinates(&part, axes)?)?, axes.mean.clone()),
            None => (columns(&part)?, spread(&part)?.mean),
        };
        let scale = mean_distance(&rows, &quadruplets)?;
        run.facts.insert("scale".into(), scale);
        let rows = Mat::from_fn(rows.nrows(), rows.ncols(), |r, c| rows[(r, c)] / scale);
        let mut loss = FullLoss::new(rows, self.hinge(), costs.lambda, quadruplets).until(run.stop);
        let (matrix, found) = loss.solve(self.iterations)?;
        run.facts.insert("steps".into(), found.iterations as f64);
        run.facts.insert("residual".into(), found.residual);
        let map = factor(&matrix, self.directions)?;
        run.facts.insert("rank".into(), map.nrows() as f64);
        let mut weights = RowBuf::zeros(map.nrows(), map.ncols());
        for row in 0..map.nrows() {
            for (column, value) in weights.row_mut(row).iter_mut().enumerate() {
                *value = (map[(row, column)] / scale) as f32;
            }
        }
        if let Some(axes) = &axes {
            weights = axes.carry_back(&weights)?;
        }
        Ok(Map::LowRank(LowRank::centred(weights, &mean)?))
    }
}

/// The rows as columns of f64.
fn columns(corpus: &dyn Corpus) -> Result<Mat<f64>> {
    let mut all = Mat::zeros(corpus.dim(), corpus.len() as usize);
    corpus.scan(0..corpus.len(), &mut |first, rows| {
        for (index, row) in rows.iter().enumerate() {
            let target = all.col_as_slice_mut(first as usize + index);
            for (target, value) in target.iter_mut().zip(row) {
                *target = f64::from(*value);
            }
        }
        Ok(())
    })?;
    Ok(all)
}

/// Root of the mean squared distance of all pairs that are compared.
fn mean_distance(rows: &Mat<f64>, quadruplets: &[(Quadruplet, f64)]) -> Result<f64> {
    let mut total = 0.0;
    for [a, b] in quadruplets.iter().flat_map(|(q, _)| [q.near, q.far]) {
        let (a, b) = (rows.col_as_slice(a as usize), rows.col_as_slice(b as usize));
        total += a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
    }
    let mean = (total / (2 * quadruplets.len().max(1)) as f64).sqrt();
    if mean.is_finite() && mean > 0.0 {
        return Ok(mean);
    }
    Err(Error::Data(
        "all vectors are equal: nothing can be learned".into(),
    ))
}

#[cfg(test)]
#[path = "qwise_tests.rs"]
mod tests;
