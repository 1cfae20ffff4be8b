//! Multi-Similarity: pairs of a batch weighted by how they compare with the other pairs of the same
//! anchor, the informative ones mined first. Wang, Han, Huang, Dong & Scott, "Multi-Similarity Loss
//! with General Pair Weighting for Deep Metric Learning", CVPR 2019; equation numbers are the paper's.
//!
//! With cosines S of an anchor i, positives P and negatives N (both mined, eq. 11 and 12: a negative
//! must be above the lowest positive less ε, a positive below the highest negative plus ε), the loss
//! is the mean over anchors of (eq. 15)
//! 1/α·ln(1 + Σ_P e^{−α(S − λ)}) + 1/β·ln(1 + Σ_N e^{β(S − λ)}).
//!
//! Departs from it: the paper's λ is `base` here. An anchor without mined pairs counts in the mean.

use super::batch::Kind;
use super::cosines::{Counts, PairLoss, Terms};
use super::{Course, SPACES, WithoutProxies, train};
use crate::Result;
use crate::learn::descent::Schedule;
use crate::learn::field::Start;
use crate::learn::parameters::{Checked, parameters, require};
use crate::learn::rounds::ByRounds;
use crate::learn::{Learner, Parameters, Problem, Run};
use crate::metric::{Map, Space};
use std::collections::BTreeMap;

parameters! {
    /// Low-rank map in which, by cosine, rows are nearer to relevant than to irrelevant others of a
    /// batch, the hardest pairs counting most. Learns from labels, relevance judgements or similar
    /// pairs. A step costs O(b·d·rank + b²·rank) for b = batch + drawn rows, and memory does not grow
    /// with the number of rows. Use it where the whole ranking matters (mAP) and classes have several
    /// rows; compare by cosine.
    pub struct MultiSimilarity {
        /// Numbers in a mapped vector.
        rank: usize = 64,
        /// Sharpness α for positives.
        alpha: f64 = 2.0,
        /// Sharpness β for negatives.
        beta: f64 = 10.0,
        /// Cosine at which pulling and pushing turn: λ of the paper.
        base: f64 = 0.5,
        /// Margin ε of the mining; 2 or more takes all pairs.
        epsilon: f64 = 0.3,
        /// Pull of the map towards orthonormal rows. More for new identities.
        lambda: f64 = 1e-4,
        /// Adam's rate at the start; it falls linearly to 0.
        rate: f64 = 0.01,
        /// Batches.
        steps: u64 = 1000,
        /// Rows in a batch, about.
        batch: usize = 512,
        /// Rows of each class in a batch, where there are labels; more where there are few classes.
        per_class: usize = 4,
        /// Items drawn uniformly beside these.
        drawn: usize = 128,
        /// Where training starts.
        start: Start = Start::Pca,
        /// Subtract the training mean before mapping, in training as in use.
        centre: bool = true,
        /// Validate this many times along the way and keep the best map.
        checks: u64 = 10,
        /// Stop after this many validations without a new best.
        patience: u64 = 4,
    }
}

impl MultiSimilarity {
    /// Check the parameters.
    pub fn check(self) -> Result<Checked<Self>> {
        require(self.alpha > 0.0, "alpha", "above 0", self.alpha)?;
        require(self.beta > 0.0, "beta", "above 0", self.beta)?;
        self.course().check()?;
        Ok(Checked(self))
    }
}

impl WithoutProxies for MultiSimilarity {
    fn course(&self) -> Course {
        Course {
            rank: self.rank,
            lambda: self.lambda,
            rate: self.rate,
            proxy_rate: 1.0,
            schedule: Schedule {
                steps: self.steps,
                checks: self.checks,
                patience: self.patience,
            },
            batch: self.batch,
            per_class: self.per_class,
            drawn: self.drawn,
            start: self.start,
            centre: self.centre,
        }
    }
}

impl Learner for Checked<MultiSimilarity> {
    fn name(&self) -> &'static str {
        "multi-similarity"
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        self.0.values()
    }

    fn spaces(&self) -> &'static [Space] {
        &SPACES
    }

    fn by_rounds(&self) -> Option<&dyn ByRounds> {
        Some(self)
    }

    fn fit(&self, problem: &Problem<'_>, run: &mut Run<'_>) -> Result<Map> {
        train(
            "multi-similarity",
            &self.0.course(),
            &self.0,
            false,
            problem,
            run,
        )
    }
}

impl PairLoss for MultiSimilarity {
    fn anchor(&self, cosines: &mut [f32], kinds: &[Kind], counts: Counts) -> f64 {
        let of = |kind: Kind| (cosines.iter().zip(kinds)).filter(move |(_, k)| **k == kind);
        // No two cosines differ by more than 2.
        let (all, epsilon) = (self.epsilon >= 2.0, self.epsilon as f32);
        let lowest = of(Kind::Positive)
            .map(|(s, _)| *s)
            .fold(f32::INFINITY, f32::min);
        let highest = of(Kind::Negative)
            .map(|(s, _)| *s)
            .fold(f32::NEG_INFINITY, f32::max);
        let (alpha, beta, base) = (self.alpha as f32, self.beta as f32, self.base as f32);
        let (mut pulled, mut pushed) = (Terms::default(), Terms::default());
        for (place, (s, kind)) in cosines.iter().zip(kinds).enumerate() {
            match kind {
                Kind::Positive if all || *s - epsilon < highest => {
                    pulled.push(place, -alpha * (s - base));
                }
                Kind::Negative if all || *s + epsilon > lowest => {
                    pushed.push(place, beta * (s - base));
                }
                _ => {}
            }
        }
        let share = 1.0 / counts.anchors.max(1) as f64;
        let loss = pulled.soft_sum() / self.alpha + pushed.soft_sum() / self.beta;
        cosines.fill(0.0);
        pulled.place(-share, cosines);
        pushed.place(share, cosines);
        loss * share
    }
}
