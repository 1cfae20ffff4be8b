//! FRML: a Mahalanobis metric of fixed rank by the WARP or the AUC loss, moved along the manifold of
//! positive semidefinite matrices of that rank. Lim & Lanckriet, "Efficient Learning of Mahalanobis
//! Metrics for Ranking", ICML 2014; equation and algorithm numbers are the paper's.
//!
//! Departs from it: Alg. 1 has S = A₂ᵀA₁ (as printed it is off by 1e-2 on a random case); items
//! violate where f(x⁺) − f(x⁻) < 1; data are scaled to unit mean distance of relevant pairs, so that
//! the margin means the same everywhere, and training starts from PCA, not from N(0, 1) entries. A
//! minibatch shares one pool of negatives, and the step needs neither U and V nor a pseudo-inverse
//! (see `manifold`), so that it costs O(rows·d·m + d·m²) and not O(d·rows²). The graph Laplacian, which the paper
//! leaves for later, is Σ (x − y)(x − y)ᵀ over the graph's edges: drawn like pairs, a sample's gradient is low-rank
//! too.

use crate::data::RowId;
use crate::dataset::Dataset;
use crate::linalg::{RowBuf, Rows, map_rows};
use crate::model::{Map, Space};
use crate::random::Stream;
use crate::search::{Neighbours, top_k};
use crate::supervision::Relevance;
use crate::supervision::SupervisionKind;
use crate::training::codes::straight_through::StraightThrough;
use crate::training::descent::{Descent, Outcome, Schedule, check_finite, descend};
use crate::training::irrelevant::IrrelevantItems;
use crate::training::manifold::moved;
use crate::training::parameters::{Bound, Choice, parameters, require_rank};
use crate::training::training_space::{Start, TrainingSpace, fetch};
use crate::training::warp::{
    Minibatch, RankWeights, Sampling, Violators, Warp, Workspace, check_relevance,
};
use crate::training::{Method, Run, TwoModels};
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

/// Regulariser: local (squared distances of relevant pairs), laplacian (of items to their nearest, relevant or
/// not) or frobenius.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricRegulariser {
    /// Ω_L: the squared distances of relevant pairs, which stays low-rank in each sample.
    Local,
    /// tr(W X L Xᵀ) with the Laplacian L of the graph of nearest items (Hoi, Liu & Chang, CVPR 2008): what was
    /// near stays near, whatever is known of it.
    Laplacian,
    /// ‖W‖²_F of the metric W.
    Frobenius,
}

impl Choice for MetricRegulariser {
    const ALL: &'static [(&'static str, Self)] = &[
        ("local", MetricRegulariser::Local),
        ("laplacian", MetricRegulariser::Laplacian),
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
        /// Nearest items that each item is joined with, for regulariser=laplacian.
        neighbours: usize = 5 => Bound::AtLeast(1.0),
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
    const STARTS_FROM_MODEL: bool = true;
    const TRAINS_FOR_CODES: bool = true;
    const TWO_MODELS: TwoModels = TwoModels::Stack;
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
        let drawn = self.irrelevant.of("frml", data)?;
        let relevance = drawn.get();
        check_relevance(relevance)?;
        let space = TrainingSpace::for_run(data, run)?;
        let scale = space.pair_scale(relevance, run.seed)?;
        run.facts.insert("scale".into(), scale);
        let inverse = (1.0 / scale) as f32;
        let rank = settings.rank.min(space.dim());
        let factor = space.start_of(run, "frml", (settings.start, rank, scale))?;
        let pool = (relevance.items() as f64 / settings.gamma).ceil().max(1.0) as usize;
        let nearest = match settings.regulariser {
            MetricRegulariser::Laplacian => {
                let (items, k) = (space.items(), settings.neighbours);
                Some(top_k(Space::SquaredL2, items, items, k, true)?)
            }
            _ => None,
        };
        let mut training = Training {
            settings,
            nearest,
            relevance,
            space: &space,
            centre: space.centre(),
            inverse,
            pool: pool.min(settings.pool),
            warp: settings.warp(),
            workspace: Workspace::default(),
            code: run.code,
            batch: Minibatch::default(),
            rows: RowBuf::empty(space.dim()),
        };
        let schedule = settings.schedule;
        descend(schedule, &mut training, factor, run)
    }
}

struct Training<'a> {
    settings: &'a Frml,
    /// The graph of the Laplacian.
    nearest: Option<Neighbours>,
    relevance: &'a dyn Relevance,
    space: &'a TrainingSpace<'a>,
    centre: Option<Vec<f32>>,
    inverse: f32,
    pool: usize,
    warp: Warp,
    workspace: Workspace,
    code: Option<StraightThrough>,
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
        self.workspace.code = self.code.map(|code| (code, remaining));
        let outcome = self.workspace.gradient(
            &self.warp,
            self.relevance,
            &self.batch,
            factor,
            self.rows.rows(),
            (seed, step),
        )?;
        self.pull_together(factor, &mut random)?;
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
    /// Add the regulariser's gradient by W, times L: λ times the mean of v vᵀ L over differences v of relevant pairs
    /// or of neighbours, or 2λ W L.
    fn pull_together(&mut self, factor: &RowBuf, random: &mut Stream) -> Result<()> {
        let lambda = self.settings.lambda;
        if lambda == 0.0 {
            return Ok(());
        }
        let (rank, pairs) = (factor.len(), self.batch.pairs.len());
        let share = (lambda / pairs as f64) as f32;
        match &self.nearest {
            None if self.settings.regulariser == MetricRegulariser::Frobenius => {
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
                let target = self.workspace.gradient.mat_mut();
                matmul(target, Accum::Add, inner.as_ref(), l, strength, Par::Seq);
            }
            None => {
                let z = differences(self.workspace.embedded.rows(), pairs);
                let v = differences(self.rows.rows(), pairs);
                self.add(&z, &v, share);
            }
            Some(nearest) => {
                let ids = drawn_edges(nearest, pairs, random);
                let mut edges = RowBuf::zeros(ids.len(), factor.dim());
                let (corpus, centre) = (self.space.items(), self.centre.as_deref());
                fetch(corpus, &ids, centre, self.inverse, edges.values_mut())?;
                let v = differences(edges.rows(), pairs);
                let mut z = RowBuf::empty(rank);
                map_rows(v.rows(), factor.rows(), &mut z)?;
                self.add(&z, &v, share);
            }
        }
        Ok(())
    }

    /// Add share · zᵀ v to the gradient.
    fn add(&mut self, z: &RowBuf, v: &RowBuf, share: f32) {
        let (z, v) = (z.rows().mat(), v.rows().mat());
        let target = self.workspace.gradient.mat_mut();
        matmul(target, Accum::Add, z.transpose(), v, share, Par::Seq);
    }
}

/// Ends of so many edges of a graph: first all of the one side, then those of the other.
fn drawn_edges(nearest: &Neighbours, count: usize, random: &mut Stream) -> Vec<RowId> {
    let drawn = (0..count).map(|_| {
        let item = random.below(nearest.queries() as u64);
        let place = random.below(nearest.k as u64) as usize;
        (item, nearest.ids_of(item as usize)[place])
    });
    let (items, others): (Vec<RowId>, Vec<RowId>) = drawn.unzip();
    [items, others].concat()
}

/// The first rows without those that stand so many places behind them.
fn differences(rows: Rows<'_>, count: usize) -> RowBuf {
    let mut out = RowBuf::zeros(count, rows.dim());
    for place in 0..count {
        let (q, x) = (rows.row(place), rows.row(count + place));
        for (out, (a, b)) in out.row_mut(place).iter_mut().zip(q.iter().zip(x)) {
            *out = a - b;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::synthetic::Nuisance;
    use crate::supervision::{Labels, Supervision};

    #[test]
    fn drawn_edges_are_the_graph_laplacian_in_the_mean() {
        let set = Nuisance {
            classes: 4,
            signal: 2,
            noise: 1,
            seed: 3,
        }
        .rows(30);
        let rows = set.corpus.rows();
        let nearest = top_k(Space::SquaredL2, &set.corpus, &set.corpus, 3, true).unwrap();
        // Xᵀ(D − A)X over the edges i → j, each counted once, with D of both ends.
        let mut laplacian = Mat::<f64>::zeros(30, 30);
        for item in 0..30 {
            for other in nearest.ids_of(item) {
                let other = *other as usize;
                laplacian[(item, item)] += 1.0;
                laplacian[(other, other)] += 1.0;
                laplacian[(item, other)] -= 1.0;
                laplacian[(other, item)] -= 1.0;
            }
        }
        let x = Mat::from_fn(30, 3, |i, j| f64::from(rows.row(i)[j]));
        let expected = x.transpose() * laplacian * &x * faer::Scale(1.0 / 90.0);
        let count = 100_000;
        let mut ends = RowBuf::empty(3);
        let ids = drawn_edges(&nearest, count, &mut Stream::new(1, "test", 0));
        ids.iter()
            .for_each(|id| ends.extend(rows.slice(*id as usize, *id as usize + 1)));
        let v = differences(ends.rows(), count);
        let v = Mat::from_fn(count, 3, |i, j| f64::from(v.row(i)[j]));
        let found = v.transpose() * &v * faer::Scale(1.0 / count as f64);
        let difference = (&found - &expected).norm_max() / expected.norm_max();
        assert!(difference < 0.02, "{difference}");
    }

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
            for (_, regulariser) in MetricRegulariser::ALL {
                let regulariser = *regulariser;
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
