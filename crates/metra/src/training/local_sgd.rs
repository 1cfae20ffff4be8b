//! Learning by rounds: from a common state every shard takes steps on its own rows, and the states
//! that result are averaged, parameters and Adam's memory alike (local SGD; Stich, ICLR 2019).
//!
//! It is what remains of stepwise learning where a step must not wait for other machines: a round is
//! one pass over the corpus, whose cost to start is that of many steps. Shards hold whole classes,
//! so that relevant rows are near each other. A shard of few classes alone would learn to tell these
//! apart and nothing else: on 150 classes in 8 shards, 50 rounds reached 75 % of the gain. So all
//! shards are given the same random sample of all rows to learn from beside their own; with it they
//! want nearly the same, and averages lose little. What a shard does is a function of round, shard and state alone; random draws
//! are keyed by these, so that a shard that is run again gives the same bytes.

use super::descent::Descent;
use crate::data::{Corpus, RowId};
use crate::dataset::Dataset;
use crate::execute::fetched;
use crate::linalg::RowBuf;
use crate::model::{LowRank, Map};
use crate::optimize::Adam;
use crate::random::Stream;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// A method that can learn by local SGD.
pub trait LocalSgd: Send + Sync {
    /// Steps that it plans in all.
    fn planned_steps(&self) -> u64;

    /// The state to start from: a map with its optimiser, as numbers.
    fn begin(&self, data: &Dataset<'_>, shared: &SharedState, seed: u64) -> Result<Vec<f32>>;

    /// Take steps on the rows of one shard. Gives the mean loss.
    fn advance(
        &self,
        shard: &Dataset<'_>,
        shared: &SharedState,
        range: StepRange,
        state: &mut Vec<f32>,
    ) -> Result<f64>;

    /// The map of a state.
    fn end(&self, shared: &SharedState, state: &[f32]) -> Result<Map>;
}

/// What all shards must agree on before the first round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SharedState {
    /// A sample of all rows.
    pub common: CommonRows,
    /// Mean of all rows.
    pub mean: Vec<f64>,
    /// Mean distance of relevant pairs.
    pub scale: f64,
}

/// Rows that all shards learn from.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CommonRows {
    /// Their numbers, increasing.
    pub(crate) rows: Vec<RowId>,
    /// Their classes.
    pub(crate) classes: Vec<u32>,
    /// Their vectors, one after the other.
    pub(crate) values: Vec<f32>,
}

impl CommonRows {
    pub(crate) fn draw(
        corpus: &dyn Corpus,
        classes: &[u32],
        count: usize,
        seed: u64,
    ) -> Result<Self> {
        let rows = Stream::new(seed, "common rows", 0).choose(corpus.len(), count);
        let values = fetched(corpus, &rows)?.into_values();
        let classes = rows.iter().map(|row| classes[*row as usize]).collect();
        Ok(CommonRows {
            rows,
            classes,
            values,
        })
    }
}

/// Which steps of the whole schedule a shard takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepRange {
    /// Number of the first step.
    pub first: u64,
    /// How many there are.
    pub steps: u64,
    /// Steps of the whole schedule.
    pub of: u64,
    /// Seed of the draws, a different one for every shard.
    pub seed: u64,
}

impl StepRange {
    /// Every step with its number and what remains of the schedule, from 1 to 0.
    pub(crate) fn steps(self) -> impl Iterator<Item = (u64, f64)> {
        let end = self.of.min(self.first + self.steps);
        (self.first..end).map(move |step| (step, 1.0 - step as f64 / self.of as f64))
    }
}

/// Take the steps of a range; gives their mean loss.
pub(crate) fn take<D: Descent>(
    descent: &mut D,
    state: &mut D::State,
    range: StepRange,
) -> Result<f64> {
    let (mut total, mut count) = (0.0, 0_u32);
    for (step, remaining) in range.steps() {
        total += descent.step(state, step, remaining, range.seed)?.loss;
        count += 1;
    }
    Ok(total / f64::from(count.max(1)))
}

/// Matrices of these rows and columns with the memory of Adam behind each, as they were written.
pub(crate) fn restored<const N: usize>(
    shapes: [(usize, usize); N],
    numbers: &[f32],
) -> Result<[(RowBuf, Adam); N]> {
    let expected: usize = shapes.iter().map(|(rows, dim)| 3 * rows * dim + 1).sum();
    let wrong = || Error::shape("numbers of a learner's state", expected, numbers.len());
    let mut rest = numbers;
    let mut take = |(rows, dim): (usize, usize)| {
        let (map, after) = rest.split_at_checked(rows * dim)?;
        let (adam, after) = after.split_at_checked(2 * rows * dim + 1)?;
        rest = after;
        let map = RowBuf::from_values(map.to_vec(), dim).ok()?;
        Some((map, Adam::read(rows * dim, adam)?))
    };
    if numbers.len() != expected {
        return Err(wrong());
    }
    let mut found = Vec::with_capacity(N);
    for shape in shapes {
        found.push(take(shape).ok_or_else(wrong)?);
    }
    found.try_into().map_err(|_| wrong())
}

/// The map of rows as they are, from one of rows in units of the scale; about the mean or not.
pub(crate) fn finished(map: &RowBuf, shared: &SharedState, centre: bool) -> Result<Map> {
    let mut map = map.clone();
    let inverse = (1.0 / shared.scale) as f32;
    for value in map.values_mut() {
        *value *= inverse;
    }
    Ok(Map::LowRank(match centre {
        true => LowRank::centred(map, &shared.mean)?,
        false => LowRank::new(map, None)?,
    }))
}
