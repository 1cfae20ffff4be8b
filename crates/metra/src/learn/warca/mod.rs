//! WARCA: a low-rank Mahalanobis metric by the WARP loss with an approximately orthonormal map.
//! Jose & Fleuret, "Scalable Metric Learning via Weighted Approximate Rank Component Analysis",
//! ECCV 2016; equation numbers are the paper's.
//!
//! Departs from it: the loss term of the gradient has factor 1 (the distance is not squared);
//! S excludes i = j and pairs at distance 0 have no gradient; the data are scaled to unit mean
//! distance of relevant pairs before γ and λ are applied, since AON pins the scale of W; one pool
//! of negatives serves a minibatch, so that a step is a handful of matrix products; Adam instead
//! of plain SGD; with fewer rows than dimensions training runs in exactly reduced coordinates.

mod loss;
mod weights;

pub use weights::RankWeights;

use super::discriminant::discriminant;
use super::parameters::{Checked, Choice, parameters, require, require_rank};
use super::reduce::{PrincipalAxes, coordinates, principal_axes};
use super::{Learner, Parameters, Problem, Progress, Run};
use crate::data::{Corpus, MemoryCorpus, RowId, Subset};
use crate::linalg::{RowBuf, cross, mix, vectorized};
use crate::metric::{LowRank, Map};
use crate::optimize::Adam;
use crate::random::Stream;
use crate::supervision::Relevance;
use crate::{Error, Result};
use faer::{Accum, MatRef};
use loss::{Minibatch, Outcome, Workspace};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::time::Instant;

/// How the rank of a relevant item is estimated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sampling {
    /// From the violators in a pool that the minibatch shares.
    Pool,
    /// From all items: exact, for small sets.
    Exact,
    /// From the number of tries until the first violator, as in the paper.
    Sequential,
}

impl Choice for Sampling {
    const ALL: &'static [(&'static str, Self)] = &[
        ("pool", Sampling::Pool),
        ("exact", Sampling::Exact),
        ("sequential", Sampling::Sequential),
    ];
}

/// Which violators push.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Violators {
    /// All of them, each with its share.
    All,
    /// One, drawn uniformly.
    One,
}

impl Choice for Violators {
    const ALL: &'static [(&'static str, Self)] =
        &[("all", Violators::All), ("one", Violators::One)];
}

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
        let mut map = start(settings, problem, &field, run.seed)?;
        let mut training = Training {
            settings,
            field: &field,
            inverse,
            workspace: Workspace::new(field.items().dim()),
            batch: Minibatch::default(),
        };
        let kept = training.run(&mut map, relevance, run)?;
        field.carry_back(&kept, inverse, settings.centre)
    }
}

fn check_relevance(relevance: &dyn Relevance) -> Result<()> {
    if relevance.pairs() == 0 {
        return Err(Error::Data(
            "no row has a relevant other row (every class has one row, or no judgement is above \
             0): expected at least one relevant pair"
                .into(),
        ));
    }
    // The first pair tells whether a query can have negatives at all: with one class none has.
    let mut random = Stream::new(0, "warca negatives", 0);
    let any = (0..64).any(|_| {
        let (query, _) = relevance.pair(random.below(relevance.pairs()));
        relevance.irrelevant_count(query) > 0
    });
    if any {
        return Ok(());
    }
    Err(Error::Data(
        "every item is relevant to every query (one class?): expected some irrelevant items".into(),
    ))
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

struct Training<'a> {
    settings: &'a Warca,
    field: &'a Field<'a>,
    inverse: f32,
    workspace: Workspace,
    batch: Minibatch,
}

impl Training<'_> {
    /// All steps; returns the map to keep.
    fn run(
        &mut self,
        map: &mut RowBuf,
        relevance: &dyn Relevance,
        run: &mut Run<'_>,
    ) -> Result<RowBuf> {
        let steps = self.settings.steps;
        let every = (steps / self.settings.checks.max(1)).max(1);
        let mut adam = Adam::new(map.values().len());
        let mut best: Option<(f64, RowBuf, u64)> = None;
        let mut since_best = 0;
        let centre = self.field.centre();
        let began = Instant::now();
        let mut done = 0;
        self.validate(map, 0, run, &mut best)?;
        for step in 0..run.last_step.unwrap_or(steps).min(steps) {
            run.check_stop()?;
            self.draw(relevance, run.seed, step, centre.as_deref())?;
            let outcome = self.workspace.evaluate(
                self.settings,
                relevance,
                &self.batch,
                map,
                run.seed,
                step,
            )?;
            self.regularise(map);
            let rate = self.settings.rate * (1.0 - step as f64 / steps as f64);
            adam.step(
                map.values_mut(),
                self.workspace.gradient.values(),
                rate as f32,
            );
            check_finite(map, &outcome, step)?;
            done = step + 1;
            let validation = if done % every == 0 || done == steps {
                self.validate(map, done, run, &mut best)?
            } else {
                None
            };
            if let Some(observer) = run.observer.as_deref_mut() {
                observer.progress(&Progress {
                    step: done,
                    steps,
                    loss: outcome.loss,
                    violators: outcome.violated,
                    rank: outcome.rank,
                    speed: done as f64 / began.elapsed().as_secs_f64().max(1e-9),
                    validation,
                });
            }
            if validation.is_some() {
                let newest = best.as_ref().is_some_and(|(_, _, at)| *at == done);
                since_best = if newest { 0 } else { since_best + 1 };
                if since_best >= self.settings.patience {
                    break;
                }
            }
        }
        run.facts.insert("steps".into(), done as f64);
        Ok(match best {
            Some((_, kept, at)) => {
                run.facts.insert("best_step".into(), at as f64);
                kept
            }
            None => map.clone(),
        })
    }

    fn validate(
        &self,
        map: &RowBuf,
        step: u64,
        run: &mut Run<'_>,
        best: &mut Option<(f64, RowBuf, u64)>,
    ) -> Result<Option<f64>> {
        let Some(validate) = run.validate.as_deref_mut() else {
            return Ok(None);
        };
        let value = validate(
            &self
                .field
                .carry_back(map, self.inverse, self.settings.centre)?,
        )?;
        if best.as_ref().is_none_or(|(so_far, _, _)| value > *so_far) {
            *best = Some((value, map.clone(), step));
        }
        Ok(Some(value))
    }

    /// Draw pairs and pool and fetch their vectors, centred and scaled.
    fn draw(
        &mut self,
        relevance: &dyn Relevance,
        seed: u64,
        step: u64,
        centre: Option<&[f32]>,
    ) -> Result<()> {
        let mut random = Stream::new(seed, "warca batch", step);
        self.batch.pairs.clear();
        for _ in 0..self.settings.batch {
            self.batch
                .pairs
                .push(relevance.pair(random.below(relevance.pairs())));
        }
        let items = relevance.items();
        match self.settings.sampling {
            Sampling::Exact => self.batch.pool.fill(relevance, 0..items),
            _ => {
                let draws = (0..self.settings.pool).map(|_| random.below(items));
                self.batch.pool.fill(relevance, draws);
            }
        }
        let pairs = &self.batch.pairs;
        let first: Vec<RowId> = pairs.iter().map(|p| p.0).collect();
        let others: Vec<RowId> = (pairs.iter().map(|p| p.1))
            .chain(self.batch.pool.items().iter().copied())
            .collect();
        let dim = self.field.items().dim();
        let rows = &mut self.workspace.rows;
        rows.reset(first.len() + others.len(), dim);
        let (queries, items) = rows.values_mut().split_at_mut(first.len() * dim);
        fetch(self.field.queries(), &first, centre, self.inverse, queries)?;
        fetch(self.field.items(), &others, centre, self.inverse, items)
    }

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

/// Rows that are fetched at once: few enough to stay near the processor until they are centred.
const FETCH_ROWS: usize = 32;

/// Fetch rows, subtract the centre and multiply.
fn fetch(
    corpus: &dyn Corpus,
    ids: &[RowId],
    centre: Option<&[f32]>,
    factor: f32,
    out: &mut [f32],
) -> Result<()> {
    let dim = corpus.dim();
    let view = corpus.view();
    out.par_chunks_mut(FETCH_ROWS * dim)
        .zip(ids.par_chunks(FETCH_ROWS))
        .try_for_each_init(
            || RowBuf::empty(dim),
            |buffer, (out, ids)| {
                // Rows that lie in memory are read where they lie; others take a copy.
                if view.is_none() {
                    corpus.gather(ids, buffer)?;
                }
                for (place, (id, out)) in ids.iter().zip(out.chunks_exact_mut(dim)).enumerate() {
                    let row = match view {
                        Some(view) => view.row(*id as usize),
                        None => buffer.row(place),
                    };
                    move_and_scale(row, centre, factor, out);
                }
                Ok(())
            },
        )
}

fn move_and_scale(row: &[f32], centre: Option<&[f32]>, factor: f32, out: &mut [f32]) {
    vectorized(
        #[inline(always)]
        || match centre {
            Some(centre) => {
                for ((out, value), centre) in out.iter_mut().zip(row).zip(centre) {
                    *out = (value - centre) * factor;
                }
            }
            None => {
                for (out, value) in out.iter_mut().zip(row) {
                    *out = value * factor;
                }
            }
        },
    );
}

fn check_finite(map: &RowBuf, outcome: &Outcome, step: u64) -> Result<()> {
    let what = if !outcome.loss.is_finite() {
        "the loss"
    } else if !map.values().iter().all(|v| v.is_finite()) {
        "the map"
    } else {
        return Ok(());
    };
    Err(Error::Diverged {
        step,
        what: what.into(),
    })
}
