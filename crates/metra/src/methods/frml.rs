//! FRML: a Mahalanobis metric of fixed rank by the WARP or the AUC loss, moved along the manifold of
//! positive semidefinite matrices of that rank. Lim & Lanckriet, "Efficient Learning of Mahalanobis
//! Metrics for Ranking", ICML 2014; equation and algorithm numbers are the paper's.
//!
//! Departs from it: Alg. 1 has S = A₂ᵀA₁ (as printed it is off by 1e-2 on a random case); items
//! violate where f(x⁺) − f(x⁻) < 1; data are scaled to unit mean distance of relevant pairs, so that
//! the margin means the same everywhere, and training starts from PCA, not from N(0, 1) entries. A
//! minibatch shares one pool of negatives, and the step needs neither U and V nor a pseudo-inverse
//! (see `manifold`), so that it costs O(rows·d·m + d·m²) and not O(d·rows²).

use crate::dataset::Dataset;
use crate::linalg::RowBuf;
use crate::model::Map;
use crate::random::Stream;
use crate::supervision::Relevance;
use crate::supervision::SupervisionKind;
use crate::training::descent::{Descent, Outcome, Schedule, check_finite, descend};
use crate::training::irrelevant::IrrelevantItems;
use crate::training::manifold::moved;
use crate::training::parameters::{Bound, Choice, parameters, require_rank};
use crate::training::training_space::{Start, TrainingSpace};
use crate::training::warp::{
    Minibatch, RankWeights, Sampling, Violators, Warp, Workspace, check_relevance,
};
use crate::training::{Method, Run};
use crate::{Error, Result};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};

/// Rank loss: warp (top-heavy) or auc (all ranks equal).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RankLoss {
    /// Harmonic: the top of the ranking counts most.
    Warp,
    /// Every rank counts alike, as in the area under the ROC curve.
    Auc,
}

impl Choice for RankLoss {
    const ALL: &'static [(&'static str, Self)] =
        &[("warp", RankLoss::Warp), ("auc", RankLoss::Auc)];
}

/// Regulariser: local (squared distances of relevant pairs) or frobenius.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricRegulariser {
    /// Ω_L: the squared distances of relevant pairs, which stays low-rank in each sample.
    Local,
    /// ‖W‖²_F of the metric W.
    Frobenius,
}

impl Choice for MetricRegulariser {
    const ALL: &'static [(&'static str, Self)] = &[
        ("local", MetricRegulariser::Local),
        ("frobenius", MetricRegulariser::Frobenius),
    ];
}

parameters! {
    /// Mahalanobis distance of fixed rank on its manifold, by a loss on the top of the ranking
    /// (warp) or on all of it (auc). Learns from labels, relevance judgements or similar pairs. A
    /// step costs O((batch + pool)·d·rank + d·rank²); memory does not grow with the number of rows.
    /// Use it for moderate dimensions with many rows a class, where the rank must not collapse.
    pub struct Frml {
        /// Dimension of a mapped vector: the rank of the metric, which never drops.
        rank: usize = 30 => Bound::AtLeast(1.0),
        /// What a rank costs.
        loss: RankLoss = RankLoss::Warp,
        /// Margin between squared distances, where relevant pairs are at mean distance 1 at the
        /// start; if it is too large, every item violates it and the loss ignores ranks.
        margin: f64 = 0.03 => Bound::Above(0.0),
        /// Strength of the regulariser.
        lambda: f64 = 0.001 => Bound::AtLeast(0.0),
        /// What keeps the metric in bounds.
        regulariser: MetricRegulariser = MetricRegulariser::Local,
        /// Rank truncation: estimated ranks below gamma cost nothing, and at most 1/gamma of the
        /// irrelevant items are sampled; 1 samples all.
        gamma: f64 = 10.0 => Bound::AtLeast(1.0),
        /// Initial learning rate on the manifold; it decays linearly to 0.
        rate: f64 = 0.3 => Bound::Above(0.0),
        /// Maximum step length, relative to the metric's norm; it decays with the learning rate.
        radius: f64 = 2.0 => Bound::Above(0.0),
        /// Relevant pairs per minibatch.
        batch: usize = 128 => Bound::AtLeast(1.0),
        /// Maximum number of items sampled as possible negatives; 1/gamma of all suffices.
        pool: usize = 1024 => Bound::AtLeast(1.0),
        /// Rank estimate: pool (violators in a shared pool), exact (all items) or sequential (tries
        /// until the first violator).
        sampling: Sampling = Sampling::Pool,
        /// Items that count as irrelevant: all that are not relevant, or those judged irrelevant alone (a
        /// grade of 0 or less, or a dissimilar pair), where judges did not see all that is relevant.
        irrelevant: IrrelevantItems = IrrelevantItems::All,
        /// Initialisation of the map: pca, lda (needs labels) or random.
        start: Start = Start::Pca,
    }
    shared {
        /// When it validates and stops.
        schedule: Schedule = Schedule::of(3000),
    }
}

impl Frml {
    fn warp(&self) -> Warp {
        Warp {
            margin: self.margin as f32,
            squared: true,
            sampling: self.sampling,
            violators: Violators::All,
            weights: match self.loss {
                RankLoss::Warp => RankWeights::Harmonic,
                RankLoss::Auc => RankWeights::Uniform,
            },
            truncation: self.gamma,
        }
    }
}

impl Method for Frml {
    const NAME: &'static str = "frml";
    const SUMMARY: &'static str =
        "Mahalanobis distance of fixed rank by the WARP or AUC loss, by Riemannian optimisation.";
    const NEEDS: &'static [SupervisionKind] = SupervisionKind::RELEVANCE;
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("rate", &["0.1", "0.3", "1"])];
    // Sec. 5.1 and 5.2: 300,000 triplets in minibatches of 5; the rate is chosen on a held-out set, and rank and
    // gamma are those of its second experiment.
    const PAPER: &'static [(&'static str, &'static str)] = &[
        ("rank", "30"),
        ("margin", "1"),
        ("lambda", "0.1"),
        ("gamma", "1"),
        ("batch", "5"),
        ("steps", "60000"),
        ("sampling", "sequential"),
        ("start", "random"),
    ];

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let settings = self;
        require_rank(settings.rank, data.dim())?;
        let drawn = self.irrelevant.of("frml", data.supervision())?;
        let relevance = drawn.get();
        check_relevance(relevance)?;
        let space = TrainingSpace::new(data)?;
        let scale = space.pair_scale(relevance, run.seed)?;
        run.facts.insert("scale".into(), scale);
        let inverse = (1.0 / scale) as f32;
        let rank = settings.rank.min(space.dim());
        let factor = space.start("frml", settings.start, rank, run.seed)?;
        let pool = (relevance.items() as f64 / settings.gamma).ceil().max(1.0) as usize;
        let mut training = Training {
            settings,
            relevance,
            space: &space,
            centre: space.centre(),
            inverse,
            pool: pool.min(settings.pool),
            warp: settings.warp(),
            workspace: Workspace::default(),
            batch: Minibatch::default(),
            rows: RowBuf::empty(space.dim()),
        };
        let schedule = settings.schedule;
        descend(schedule, &mut training, factor, run)
    }
}

struct Training<'a> {
    settings: &'a Frml,
    relevance: &'a dyn Relevance,
    space: &'a TrainingSpace<'a>,
    centre: Option<Vec<f32>>,
    inverse: f32,
    pool: usize,
    warp: Warp,
    workspace: Workspace,
    batch: Minibatch,
    rows: RowBuf,
}

impl Descent for Training<'_> {
    /// Lᵀ: the factor of W = L Lᵀ, which is the map itself.
    type State = RowBuf;

    fn step(
        &mut self,
        factor: &mut RowBuf,
        step: u64,
        remaining: f64,
        seed: u64,
    ) -> Result<Outcome> {
        let settings = self.settings;
        let mut random = Stream::new(seed, "frml batch", step);
        let pool = (settings.sampling != Sampling::Exact).then_some(self.pool);
        self.batch
            .draw(self.relevance, settings.batch, pool, &mut random);
        let (queries, items) = (self.space.queries(), self.space.items());
        let centre = self.centre.as_deref();
        self.batch
            .fetch(queries, items, centre, self.inverse, &mut self.rows)?;
        let outcome = self.workspace.gradient(
            &self.warp,
            self.relevance,
            &self.batch,
            factor,
            self.rows.rows(),
            (seed, step),
        )?;
        self.pull_together(factor);
        let (rate, radius) = (settings.rate * remaining, settings.radius * remaining);
        let next = moved(factor, &self.workspace.gradient, rate, radius)?;
        *factor = next.ok_or_else(|| Error::Diverged {
            step,
            problem: "the factor of the metric is not finite".into(),
        })?;
        check_finite(factor.values(), outcome.loss, step)?;
        Ok(outcome.into())
    }

    fn map(&self, factor: &RowBuf) -> Result<Map> {
        self.space.carry_back(factor, self.inverse, true)
    }
}

impl Training<'_> {
    /// Add the regulariser's gradient by W, times L: λ Σ v vᵀ L over the batch's relevant pairs, or
    /// 2λ W L.
    fn pull_together(&mut self, factor: &RowBuf) {
        let lambda = self.settings.lambda;
        if lambda == 0.0 {
            return;
        }
        let (rank, dim) = (factor.len(), factor.dim());
        let pairs = self.batch.pairs.len();
        let gradient = &mut self.workspace.gradient;
        let target = gradient.mat_mut();
        match self.settings.regulariser {
            MetricRegulariser::Local => {
                let share = (lambda / pairs as f64) as f32;
                let embedded = self.workspace.embedded.rows();
                let (mut z, mut v) = (RowBuf::zeros(pairs, rank), RowBuf::zeros(pairs, dim));
                for pair in 0..pairs {
                    let (q, x) = (embedded.row(pair), embedded.row(pairs + pair));
                    for (out, (a, b)) in z.row_mut(pair).iter_mut().zip(q.iter().zip(x)) {
                        *out = a - b;
                    }
                    let (q, x) = (self.rows.row(pair), self.rows.row(pairs + pair));
                    for (out, (a, b)) in v.row_mut(pair).iter_mut().zip(q.iter().zip(x)) {
                        *out = a - b;
                    }
                }
                let (z, v) = (z.rows().mat(), v.rows().mat());
                matmul(target, Accum::Add, z.transpose(), v, share, Par::Seq);
            }
            MetricRegulariser::Frobenius => {
                let l = factor.rows().mat();
                let mut inner = Mat::<f32>::zeros(rank, rank);
                matmul(
                    inner.as_mut(),
                    Accum::Replace,
                    l,
                    l.transpose(),
                    1.0,
                    Par::Seq,
                );
                let strength = 2.0 * lambda as f32;
                matmul(target, Accum::Add, inner.as_ref(), l, strength, Par::Seq);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::synthetic::Nuisance;
    use crate::supervision::{Labels, Supervision};

    #[test]
    fn both_losses_learn() {
        let set = Nuisance {
            classes: 10,
            signal: 3,
            noise: 9,
            seed: 2,
        }
        .rows(300);
        let supervision = Supervision::labels(Labels::from_numbers(&set.classes).unwrap());
        let data = Dataset::new(&set.corpus, &supervision).unwrap();
        for loss in [RankLoss::Warp, RankLoss::Auc] {
            for regulariser in [MetricRegulariser::Local, MetricRegulariser::Frobenius] {
                let learner = Frml {
                    rank: 3,
                    loss,
                    regulariser,
                    lambda: 0.01,
                    rate: 1.0,
                    schedule: Schedule::of(400),
                    batch: 64,
                    ..Frml::default()
                };
                let map = learner.checked().unwrap().fit(&data, &mut Run::new(1));
                let Map::LowRank(map) = map.unwrap() else {
                    panic!("FRML gives a low-rank map");
                };
                let sum = |range: std::ops::Range<usize>| -> f32 {
                    let weights = map.weights();
                    (weights.iter())
                        .map(|row| row[range.clone()].iter().map(|v| v * v).sum::<f32>())
                        .sum()
                };
                let (signal, noise) = (sum(0..3) / 3.0, sum(3..12) / 9.0);
                assert!(
                    signal > 5.0 * noise,
                    "{loss:?} {regulariser:?} {signal} {noise}"
                );
            }
        }
    }
}
