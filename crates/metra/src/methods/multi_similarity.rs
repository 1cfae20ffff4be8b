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

use crate::Result;
use crate::dataset::Dataset;
use crate::model::{Map, Space};
use crate::supervision::SupervisionKind;
use crate::training::in_batch::cosines::{Counts, PairLoss, SoftSum, soft_sums};
use crate::training::in_batch::{InBatchTraining, SPACES, WithoutProxies, train};
use crate::training::local_sgd::LocalSgd;
use crate::training::parameters::{Bound, parameters};
use crate::training::{Method, Run, TwoModels};

parameters! {
    /// Low-rank map in which, by cosine, rows are nearer to relevant than to irrelevant others of a
    /// batch, the hardest pairs counting most. Learns from labels, relevance judgements or similar
    /// pairs. A step costs O(b·d·rank + b²·rank) for b = batch + drawn rows, and memory does not grow
    /// with the number of rows. Use it where the whole ranking matters (mAP) and classes have several
    /// rows; compare by cosine.
    pub struct MultiSimilarity {
        /// Sharpness α for positives.
        alpha: f64 = 2.0 => Bound::Above(0.0),
        /// Sharpness β for negatives.
        beta: f64 = 10.0 => Bound::Above(0.0),
        /// Similarity threshold of the loss (λ in the paper).
        base: f64 = 0.5,
        /// Margin ε of the mining; 2 or more takes all pairs.
        epsilon: f64 = 0.3,
    }
    shared {
        /// Batches and the map that is trained on them.
        training: InBatchTraining = InBatchTraining {
            rate: 0.01,
            ..InBatchTraining::default()
        },
    }
}

impl WithoutProxies for MultiSimilarity {
    fn training(&self) -> &InBatchTraining {
        &self.training
    }
}

impl Method for MultiSimilarity {
    const NAME: &'static str = "multi-similarity";
    const SUMMARY: &'static str =
        "Low-rank map for cosine, by the Multi-Similarity loss with mined pairs.";
    const NEEDS: &'static [SupervisionKind] = SupervisionKind::RELEVANCE;
    const STARTS_FROM_MODEL: bool = true;
    const TRAINS_FOR_CODES: bool = true;
    const TWO_MODELS: TwoModels = TwoModels::Stack;
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("epsilon", &["0.3", "2"]), ("rate", &["0.003", "0.01"])];

    fn spaces(&self) -> &'static [Space] {
        &SPACES
    }

    fn local_sgd(&self) -> Option<&dyn LocalSgd> {
        Some(self)
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        train(Self::NAME, &self.training, self, None, data, run)
    }
}

impl PairLoss for MultiSimilarity {
    fn anchor(&self, cosines: &mut [f32], grades: &[f32], counts: Counts) -> f64 {
        // No two cosines differ by more than 2.
        let epsilon = match self.epsilon >= 2.0 {
            true => f32::INFINITY,
            false => self.epsilon as f32,
        };
        let share = 1.0 / counts.anchors.max(1) as f64;
        let sum = |sharpness: f64| SoftSum {
            sharpness: sharpness as f32,
            base: self.base as f32,
            weight: share / sharpness.abs(),
        };
        soft_sums(cosines, grades, epsilon, (sum(-self.alpha), sum(self.beta)))
    }
}
