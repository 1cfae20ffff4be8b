//! WARCA: a low-rank Mahalanobis metric by the WARP loss with an approximately orthonormal map.
//! Jose & Fleuret, "Scalable Metric Learning via Weighted Approximate Rank Component Analysis",
//! ECCV 2016; equation numbers are the paper's.
//!
//! Departs from it: the loss term of the gradient has factor 1 (the distance is not squared);
//! S excludes i = j and pairs at distance 0 have no gradient; the data are scaled to unit mean
//! distance of relevant pairs before γ and λ are applied, since AON pins the scale of W; one pool
//! of negatives serves a minibatch, so that a step is a handful of matrix products; Adam instead
//! of plain SGD; with fewer rows than dimensions training runs in exactly reduced coordinates.

pub use super::warp::{RankWeights, Sampling, Violators};

use super::descent::{Descent, Schedule, descend};
use super::discriminant::discriminant;
use super::parameters::{Checked, Choice, parameters, require, require_rank};
use super::reduce::{PrincipalAxes, coordinates, principal_axes};
use super::warp::{Minibatch, Outcome, Warp, Workspace, check_finite, check_relevance};
use super::{Learner, Parameters, Problem, Run};
use crate::data::{Corpus, MemoryCorpus, RowId, Subset};
use crate::linalg::{RowBuf, cross, mix};
use crate::metric::{LowRank, Map};
use crate::optimize::Adam;
use crate::random::Stream;
use crate::supervision::Relevance;
use crate::{Error, Result};
use faer::{Accum, MatRef};
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

/// Where training starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Start {
    /// The directions of largest variance.
    Pca,
    /// The discriminant directions; needs labels.
    Lda,
    /// Random directions.
    Random,
}

impl Choice for Start {
    const ALL: &'static [(&'static str, Self)] = &[
        ("pca", Start::Pca),
        ("lda", Start::Lda),
        ("random", Start::Random),
    ];
}

parameters! {
    /// Low-rank Mahalanobis distance that puts relevant items at the top of the ranking. Learns
    /// from labels or relevance judgements. A step costs O((batch + pool)·d·rank) and memory does
    /// not grow with the number of rows, so it serves corpora larger than memory. Use it when the
    /// first answers matter most and a closed form such as LDA leaves room.
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

/// Rows that the start is worked out from: a sample, so that its cost does not grow with the corpus.
const START_ROWS: usize = 1 << 16;
/// Pairs from which the scale of the data is estimated.
const SCALE_PAIRS: usize = 4096;

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

    fn fit(&self, problem: &Problem<'_>, run: &mut Run<'_>) -> Result<Map> {
        let settings = &self.0;
        require_rank(settings.rank, problem.dim())?;
        let relevance = problem.relevance("warca")?;
        check_relevance(relevance)?;
        let field = Field::new(problem)?;
        let scale = pair_scale(&field, relevance, run.seed)?;
        run.facts.insert("scale".into(), scale);
        let inverse = (1.0 / scale) as f32;
        let map = start(settings, problem, &field, run.seed)?;
        let carry_back = |map: &RowBuf| field.carry_back(map, inverse, settings.centre);
        let mut training = Training {
            settings,
            relevance,
            queries: field.queries(),
            items: field.items(),
            centre: field.centre(),
            inverse,
            warp: settings.warp(),
            workspace: Workspace::default(),
            batch: Minibatch::default(),
            rows: RowBuf::empty(field.items().dim()),
            to_map: &carry_back,
        };
        let state = State::new(map);
        descend(settings.schedule(), &mut training, state, run)
    }
}

/// The vectors as training sees them: as they are, or in exactly reduced coordinates.
struct Field<'a> {
    problem: &'a Problem<'a>,
    mean: Vec<f64>,
    reduced: Option<(PrincipalAxes, MemoryCorpus)>,
}

impl<'a> Field<'a> {
    fn new(problem: &'a Problem<'a>) -> Result<Self> {
        let items = problem.items();
        let one_corpus = problem.supervision().within();
        if one_corpus && items.len() < items.dim() as u64 {
            let axes = principal_axes(items)?;
            let rows = coordinates(items, &axes)?;
            return Ok(Field {
                problem,
                mean: axes.mean.clone(),
                reduced: Some((axes, rows)),
            });
        }
        let sample = sample(items, "warca mean")?;
        Ok(Field {
            problem,
            mean: crate::execute::spread(&sample)?.mean,
            reduced: None,
        })
    }

    fn items(&self) -> &dyn Corpus {
        match &self.reduced {
            Some((_, rows)) => rows,
            None => self.problem.items(),
        }
    }

    fn queries(&self) -> &dyn Corpus {
        match &self.reduced {
            Some((_, rows)) => rows,
            None => self.problem.queries(),
        }
    }

    /// What is taken from gathered rows: products of points far from the origin lose their digits.
    fn centre(&self) -> Option<Vec<f32>> {
        match &self.reduced {
            Some(_) => None,
            None => Some(self.mean.iter().map(|m| *m as f32).collect()),
        }
    }

    /// The trained map in the coordinates of the problem.
    fn carry_back(&self, map: &RowBuf, inverse: f32, centre: bool) -> Result<Map> {
        let mut weights = match &self.reduced {
            None => map.clone(),
            Some((axes, _)) => axes.carry_back(map)?,
        };
        for value in weights.values_mut() {
            *value *= inverse;
        }
        let map = if centre {
            LowRank::centred(weights, &self.mean)?
        } else {
            LowRank::new(weights, None)?
        };
        Ok(Map::LowRank(map))
    }
}

fn sample<'a>(corpus: &'a dyn Corpus, purpose: &str) -> Result<Subset<'a>> {
    let rows = Stream::new(0, purpose, 0).choose(corpus.len(), START_ROWS);
    Subset::new(corpus, rows)
}

/// Mean distance of relevant pairs.
fn pair_scale(field: &Field<'_>, relevance: &dyn Relevance, seed: u64) -> Result<f64> {
    let mut random = Stream::new(seed, "warca scale", 0);
    let pairs: Vec<(RowId, RowId)> = (0..SCALE_PAIRS)
        .map(|_| relevance.pair(random.below(relevance.pairs())))
        .collect();
    let (mut left, mut right) = (RowBuf::empty(1), RowBuf::empty(1));
    let mut total = 0.0;
    for chunk in pairs.chunks(512) {
        let (queries, items): (Vec<RowId>, Vec<RowId>) = chunk.iter().copied().unzip();
        field.queries().gather(&queries, &mut left)?;
        field.items().gather(&items, &mut right)?;
        for (a, b) in left.rows().iter().zip(right.rows().iter()) {
            let squares = a
                .iter()
                .zip(b)
                .map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2));
            total += squares.sum::<f64>().sqrt();
        }
    }
    let mean = total / pairs.len() as f64;
    if mean.is_finite() && mean > 0.0 {
        return Ok(mean);
    }
    // All relevant pairs coincide: only irrelevant items can tell a scale.
    let spread = crate::execute::spread(&sample(field.items(), "warca spread")?)?;
    let deviation = spread.deviation.iter().map(|d| d * d).sum::<f64>().sqrt();
    if deviation.is_finite() && deviation > 0.0 {
        return Ok(deviation);
    }
    Err(Error::Data(
        "all vectors are equal: nothing can be learned".into(),
    ))
}

fn start(settings: &Warca, problem: &Problem<'_>, field: &Field<'_>, seed: u64) -> Result<RowBuf> {
    let dim = field.items().dim();
    let mut map = RowBuf::zeros(settings.rank, dim);
    let mut random = Stream::new(seed, "warca start", 0);
    match settings.start {
        Start::Random => {
            for value in map.values_mut() {
                *value = (random.normal() / (dim as f64).sqrt()) as f32;
            }
            return Ok(map);
        }
        Start::Pca if field.reduced.is_some() => {
            // Reduced coordinates are principal coordinates already.
            for index in 0..settings.rank.min(dim) {
                map.row_mut(index)[index] = 1.0;
            }
        }
        Start::Pca => {
            let axes = principal_axes(&sample(field.items(), "warca start")?)?;
            let rows = axes.basis.leading_rows(settings.rank.min(axes.rank()));
            map.values_mut()[..rows.values().len()].copy_from_slice(rows.values());
        }
        Start::Lda => {
            let labels = problem.labels("warca with start=lda")?;
            let chosen = Stream::new(0, "warca start", 0).choose(field.items().len(), START_ROWS);
            let labels = labels.select(&chosen)?;
            let rows = Subset::new(field.items(), chosen)?;
            let (rows, _) = discriminant(&rows, &labels, 0.1, settings.rank)?;
            // AON wants rows of length 1 on the whole; the directions' relative lengths stay.
            let mean = rows
                .values()
                .iter()
                .map(|v| f64::from(*v).powi(2))
                .sum::<f64>()
                / rows.len() as f64;
            let factor = (1.0 / mean.sqrt()) as f32;
            for (target, value) in map.values_mut().iter_mut().zip(rows.values()) {
                *target = value * factor;
            }
        }
    }
    // Rows that the data could not fill start small and random, so that they can still grow.
    for index in 0..settings.rank {
        if map.row(index).iter().all(|v| *v == 0.0) {
            for value in map.row_mut(index) {
                *value = (1e-3 * random.normal() / (dim as f64).sqrt()) as f32;
            }
        }
    }
    Ok(map)
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
        check_finite(state.map.values(), &outcome, step)?;
        Ok(outcome)
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
                let rank = map.len();
                let mut product = vec![0.0; rank * rank];
                cross(map.rows(), map.rows(), 1.0, &mut product);
                for index in 0..rank {
                    product[index * rank + index] -= 1.0;
                }
                let product = MatRef::from_row_major_slice(&product, rank, rank);
                let gradient = self.workspace.gradient.values_mut();
                mix(product, map.rows(), 2.0 * lambda, Accum::Add, gradient);
            }
        }
    }
}
