//! WARCA: a low-rank Mahalanobis metric by the WARP loss with an approximately orthonormal map.
//! Jose & Fleuret, "Scalable Metric Learning via Weighted Approximate Rank Component Analysis",
//! ECCV 2016; equation numbers are the paper's.
//!
//! Departs from it: the loss term of the gradient has factor 1 (the distance is not squared);
//! S excludes i = j and pairs at distance 0 have no gradient; the data are scaled to unit mean
//! distance of relevant pairs before γ and λ are applied, since AON pins the scale of W; one pool
//! of negatives serves a minibatch, so that a step is a handful of matrix products; Adam instead
//! of plain SGD; with fewer rows than dimensions training runs in exactly reduced coordinates.

mod kernel;
mod preconditioned;

pub use super::field::Start;
pub use super::kernel::KernelKind;
pub use super::warp::{RankWeights, Sampling, Violators};
pub use kernel::{KernelWarca, Optimiser};

use super::descent::{Descent, Outcome, Schedule, check_finite, descend};
use super::field::Field;
use super::orthonormal::pull_to_orthonormal;
use super::parameters::{Checked, Choice, parameters, require, require_rank};
use super::rounds::{ByRounds, Ground, Stretch, finished, restored, take};
use super::warp::{Minibatch, Warp, Workspace, check_relevance};
use super::{Learner, Parameters, Problem, Run};
use crate::Result;
use crate::data::Corpus;
use crate::linalg::{RowBuf, Rows, Symmetric};
use crate::metric::Map;
use crate::optimize::Adam;
use crate::random::Stream;
use crate::supervision::Relevance;
use faer::Mat;
use std::collections::BTreeMap;

/// What keeps the map in bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Regulariser {
    /// ‖WWᵀ − I‖², approximately orthonormal rows.
    Aon,
    /// ‖W‖².
    Frobenius,
}

impl Choice for Regulariser {
    const ALL: &'static [(&'static str, Self)] = &[
        ("aon", Regulariser::Aon),
        ("frobenius", Regulariser::Frobenius),
    ];
}

parameters! {
    /// Low-rank Mahalanobis distance that puts relevant items at the top of the ranking. Learns
    /// from labels, relevance judgements or similar pairs. A step costs O((batch + pool)·d·rank) and
    /// memory does not grow with the number of rows, so it serves corpora larger than memory. Use it
    /// when the first answers matter most and a closed form such as LDA leaves room.
    pub struct Warca {
        /// Numbers in a mapped vector.
        rank: usize = 64,
        /// Margin by which irrelevant items must be farther, where relevant pairs are at mean
        /// distance 1.
        margin: f64 = 0.25,
        /// Strength of the regulariser. 1e-4 for known classes; more for new identities.
        lambda: f64 = 1e-4,
        /// Adam's rate at the start; it falls linearly to 0.
        rate: f64 = 0.01,
        /// Minibatches.
        steps: u64 = 1000,
        /// Relevant pairs in a minibatch.
        batch: usize = 512,
        /// Items drawn as possible negatives for a minibatch.
        pool: usize = 512,
        /// How a rank is estimated.
        sampling: Sampling = Sampling::Pool,
        /// Which violators push.
        violators: Violators = Violators::All,
        /// Weights of ranks.
        weights: RankWeights = RankWeights::Harmonic,
        /// What keeps the map in bounds.
        regulariser: Regulariser = Regulariser::Aon,
        /// Where training starts.
        start: Start = Start::Pca,
        /// Subtract the training mean before mapping; matters for cosine and dot only.
        centre: bool = true,
        /// Validate this many times along the way and keep the best map.
        checks: u64 = 10,
        /// Stop after this many validations without a new best.
        patience: u64 = 4,
    }
}

impl Warca {
    /// Check the parameters.
    pub fn check(self) -> Result<Checked<Self>> {
        require(self.rank >= 1, "rank", "at least 1", self.rank)?;
        require(self.margin > 0.0, "margin", "above 0", self.margin)?;
        require(self.lambda >= 0.0, "lambda", "at least 0", self.lambda)?;
        require(self.rate > 0.0, "rate", "above 0", self.rate)?;
        require(self.batch >= 1, "batch", "at least 1", self.batch)?;
        require(self.pool >= 1, "pool", "at least 1", self.pool)?;
        require(self.patience >= 1, "patience", "at least 1", self.patience)?;
        Ok(Checked(self))
    }

    fn warp(&self) -> Warp {
        Warp {
            margin: self.margin as f32,
            squared: false,
            sampling: self.sampling,
            violators: self.violators,
            weights: self.weights.clone(),
            truncation: 1.0,
        }
    }

    fn schedule(&self) -> Schedule {
        Schedule {
            steps: self.steps,
            checks: self.checks,
            patience: self.patience,
        }
    }
}

impl Learner for Checked<Warca> {
    fn name(&self) -> &'static str {
        "warca"
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        self.0.values()
    }

    fn by_rounds(&self) -> Option<&dyn ByRounds> {
        Some(self)
    }

    fn fit(&self, problem: &Problem<'_>, run: &mut Run<'_>) -> Result<Map> {
        let settings = &self.0;
        require_rank(settings.rank, problem.dim())?;
        let relevance = problem.relevance("warca")?;
        check_relevance(relevance)?;
        let field = Field::new(problem)?;
        train(settings, "warca", relevance, &field, run)
    }
}

impl ByRounds for Checked<Warca> {
    fn planned_steps(&self) -> u64 {
        self.0.steps
    }

    fn begin(&self, problem: &Problem<'_>, ground: &Ground, seed: u64) -> Result<Vec<f32>> {
        require_rank(self.0.rank, problem.dim())?;
        let field = Field::plain(problem, ground.mean.clone());
        let map = field.start("warca", self.0.start, self.0.rank, seed)?;
        Ok(State::new(map).into_numbers())
    }

    fn advance(
        &self,
        shard: &Problem<'_>,
        ground: &Ground,
        stretch: Stretch,
        state: &mut Vec<f32>,
    ) -> Result<f64> {
        let field = Field::plain(shard, ground.mean.clone());
        let to_map = |map: &RowBuf| finished(map, ground, self.0.centre);
        let relevance = shard.relevance("warca")?;
        let mut training = Training::new(&self.0, relevance, &field, ground.scale, &to_map);
        let mut moving = State::from_numbers(self.0.rank, shard.dim(), state)?;
        let loss = take(&mut training, &mut moving, stretch)?;
        *state = moving.into_numbers();
        Ok(loss)
    }

    fn end(&self, ground: &Ground, state: &[f32]) -> Result<Map> {
        let state = State::from_numbers(self.0.rank, ground.mean.len(), state)?;
        finished(&state.map, ground, self.0.centre)
    }
}

/// Adam over minibatches, in the coordinates of the field.
fn train(
    settings: &Warca,
    learner: &str,
    relevance: &dyn Relevance,
    field: &Field<'_>,
    run: &mut Run<'_>,
) -> Result<Map> {
    let scale = field.pair_scale(relevance, run.seed)?;
    run.facts.insert("scale".into(), scale);
    let inverse = (1.0 / scale) as f32;
    let map = field.start(learner, settings.start, settings.rank, run.seed)?;
    let carry_back = |map: &RowBuf| field.carry_back(map, inverse, settings.centre);
    let mut training = Training::new(settings, relevance, field, scale, &carry_back);
    let state = State::new(map);
    let map = descend(settings.schedule(), &mut training, state, run)?;
    if let Map::LowRank(map) = &map {
        run.facts
            .insert("condition".into(), condition(map.weights())?);
    }
    Ok(map)
}

/// Ratio of the extreme singular values of a map (the paper's Fig. 2a), at most 1e12: beyond that
/// the smaller one is rounding.
fn condition(map: Rows<'_>) -> Result<f64> {
    let entry = |row: usize, column: usize| {
        let pairs = map.row(row).iter().zip(map.row(column));
        pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let gram = Symmetric::new(Mat::from_fn(map.len(), map.len(), entry))?.eigen()?;
    let largest = gram.values.first().copied().unwrap_or(1.0);
    let smallest = gram.values.last().copied().unwrap_or(1.0);
    if largest <= 0.0 {
        return Ok(1e12);
    }
    Ok((largest / smallest.max(1e-24 * largest)).sqrt())
}

/// The map with Adam's memory of it.
#[derive(Clone)]
struct State {
    map: RowBuf,
    adam: Adam,
}

impl State {
    fn new(map: RowBuf) -> Self {
        let adam = Adam::new(map.values().len());
        State { map, adam }
    }

    fn into_numbers(self) -> Vec<f32> {
        let mut numbers = self.map.values().to_vec();
        self.adam.write(&mut numbers);
        numbers
    }

    fn from_numbers(rank: usize, dim: usize, numbers: &[f32]) -> Result<Self> {
        let [(map, adam)] = restored([(rank, dim)], numbers)?;
        Ok(State { map, adam })
    }
}

/// Minibatches over vectors in whatever coordinates they are given.
struct Training<'a> {
    settings: &'a Warca,
    relevance: &'a dyn Relevance,
    queries: &'a dyn Corpus,
    items: &'a dyn Corpus,
    centre: Option<Vec<f32>>,
    inverse: f32,
    warp: Warp,
    workspace: Workspace,
    batch: Minibatch,
    rows: RowBuf,
    /// The map in the coordinates of the problem.
    to_map: &'a dyn Fn(&RowBuf) -> Result<Map>,
}

impl<'a> Training<'a> {
    fn new(
        settings: &'a Warca,
        relevance: &'a dyn Relevance,
        field: &'a Field<'_>,
        scale: f64,
        to_map: &'a dyn Fn(&RowBuf) -> Result<Map>,
    ) -> Self {
        Training {
            settings,
            relevance,
            queries: field.queries(),
            items: field.items(),
            centre: field.centre(),
            inverse: (1.0 / scale) as f32,
            warp: settings.warp(),
            workspace: Workspace::default(),
            batch: Minibatch::default(),
            rows: RowBuf::empty(field.dim()),
            to_map,
        }
    }
}

impl Descent for Training<'_> {
    type State = State;

    fn step(&mut self, state: &mut State, step: u64, remaining: f64, seed: u64) -> Result<Outcome> {
        let settings = self.settings;
        let mut random = Stream::new(seed, "warca batch", step);
        let pool = (settings.sampling != Sampling::Exact).then_some(settings.pool);
        self.batch
            .draw(self.relevance, settings.batch, pool, &mut random);
        let centre = self.centre.as_deref();
        self.batch.fetch(
            self.queries,
            self.items,
            centre,
            self.inverse,
            &mut self.rows,
        )?;
        let outcome = self.workspace.gradient(
            &self.warp,
            self.relevance,
            &self.batch,
            &state.map,
            self.rows.rows(),
            (seed, step),
        )?;
        self.regularise(&state.map);
        let rate = (settings.rate * remaining) as f32;
        let gradient = self.workspace.gradient.values();
        state.adam.step(state.map.values_mut(), gradient, rate);
        check_finite(state.map.values(), outcome.loss, step)?;
        Ok(outcome.into())
    }

    fn map(&self, state: &State) -> Result<Map> {
        (self.to_map)(&state.map)
    }
}

impl Training<'_> {
    /// Add the regulariser's gradient: 2λ(WWᵀ − I)W (eq. 19) or λW.
    fn regularise(&mut self, map: &RowBuf) {
        let lambda = self.settings.lambda as f32;
        if lambda == 0.0 {
            return;
        }
        match self.settings.regulariser {
            Regulariser::Frobenius => {
                let gradient = self.workspace.gradient.values_mut();
                for (gradient, value) in gradient.iter_mut().zip(map.values()) {
                    *gradient += lambda * value;
                }
            }
            Regulariser::Aon => {
                pull_to_orthonormal(map, lambda, &mut self.workspace.gradient);
            }
        }
    }
}
