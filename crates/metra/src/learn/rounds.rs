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
use super::field::Field;
use super::warp::check_relevance;
use super::{Learner, Problem, registry};
use crate::data::{Corpus, Keys, MemoryCorpus, Part, RowId};
use crate::execute::{Sample, Statistic, exactly, fetched, fold};
use crate::linalg::{RowBuf, Rows};
use crate::metric::{LowRank, Map};
use crate::optimize::Adam;
use crate::random::Stream;
use crate::supervision::{Labels, Relevance, Supervision};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A learner that can work by rounds.
pub trait ByRounds: Send + Sync {
    /// Steps that it plans in all.
    fn planned_steps(&self) -> u64;

    /// The state to start from: a map with its optimiser, as numbers.
    fn begin(&self, problem: &Problem<'_>, ground: &Ground, seed: u64) -> Result<Vec<f32>>;

    /// Take steps on the rows of one shard. Gives the mean loss.
    fn advance(
        &self,
        shard: &Problem<'_>,
        ground: &Ground,
        stretch: Stretch,
        state: &mut Vec<f32>,
    ) -> Result<f64>;

    /// The map of a state.
    fn end(&self, ground: &Ground, state: &[f32]) -> Result<Map>;
}

/// What all shards must agree on before the first round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ground {
    /// A sample of all rows.
    pub common: Common,
    /// Mean of all rows.
    pub mean: Vec<f64>,
    /// Mean distance of relevant pairs.
    pub scale: f64,
}

/// Rows that all shards learn from.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Common {
    /// Their numbers, increasing.
    rows: Vec<RowId>,
    /// Their classes.
    classes: Vec<u32>,
    /// Their vectors, one after the other.
    values: Vec<f32>,
}

impl Common {
    fn draw(corpus: &dyn Corpus, classes: &[u32], count: usize, seed: u64) -> Result<Self> {
        let rows = Stream::new(seed, "common rows", 0).choose(corpus.len(), count);
        let values = fetched(corpus, &rows)?.into_values();
        let classes = rows.iter().map(|row| classes[*row as usize]).collect();
        Ok(Common {
            rows,
            classes,
            values,
        })
    }
}

/// Which steps of the whole schedule a shard takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stretch {
    /// Number of the first step.
    pub first: u64,
    /// How many there are.
    pub steps: u64,
    /// Steps of the whole schedule.
    pub of: u64,
    /// Seed of the draws, a different one for every shard.
    pub seed: u64,
}

impl Stretch {
    /// Every step with its number and what remains of the schedule, from 1 to 0.
    pub(super) fn steps(self) -> impl Iterator<Item = (u64, f64)> {
        let end = self.of.min(self.first + self.steps);
        (self.first..end).map(move |step| (step, 1.0 - step as f64 / self.of as f64))
    }
}

/// A fit by rounds between two of its rounds: what a checkpoint keeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// Rounds done.
    pub done: u64,
    /// What shards agree on.
    pub ground: Ground,
    /// The state of the learner.
    pub state: Vec<f32>,
    /// Mean loss of each round so far.
    pub losses: Vec<f64>,
}

/// How a fit by rounds goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounds {
    /// Name of the learner.
    pub method: String,
    /// Its settings.
    pub settings: BTreeMap<String, String>,
    /// Number of rounds; the learner's steps are spread over them.
    pub rounds: u64,
    /// Rows of the sample that all shards learn from.
    pub common: usize,
    /// Seed of all draws.
    pub seed: u64,
}

impl Rounds {
    /// Learn from the classes of a corpus in shards. `resumed` is where an earlier run stopped;
    /// `after` is shown the course after every round, and keeps it if it likes.
    pub fn fit(
        &self,
        corpus: &dyn Corpus,
        labels: &Supervision,
        resumed: Option<Course>,
        after: &mut dyn FnMut(&Course) -> Result<()>,
    ) -> Result<(Map, Course)> {
        let learner = registry::find(&self.method)?.build(&self.settings)?;
        let rounds = by_rounds(learner.as_ref())?;
        if self.rounds == 0 {
            return Err(Error::parameter("rounds", "at least 1", 0));
        }
        let problem = Problem::new(corpus, labels)?;
        let classes = problem.labels(&self.method)?;
        let keys = Keys::Class(classes.of());
        let mut course = match resumed {
            Some(course) => course,
            None => {
                check_relevance(classes)?;
                let ground = Ground {
                    common: Common::draw(corpus, classes.of(), self.common, self.seed)?,
                    mean: crate::execute::spread(corpus)?.mean,
                    scale: fold::<PairScale>(corpus, keys, &self.seed)?,
                };
                Course {
                    done: 0,
                    state: rounds.begin(&problem, &ground, self.seed)?,
                    ground,
                    losses: Vec::new(),
                }
            }
        };
        let steps = rounds.planned_steps();
        let each = steps.div_ceil(self.rounds);
        while course.done < self.rounds && course.done * each < steps {
            let round = Round {
                method: self.method.clone(),
                settings: self.settings.clone(),
                ground: course.ground.clone(),
                stretch: Stretch {
                    first: course.done * each,
                    steps: each,
                    of: steps,
                    seed: self.seed,
                },
                state: course.state.clone(),
            };
            let averaged = fold::<LocalSteps>(corpus, keys, &round)?;
            course.state = averaged.state;
            course.losses.push(averaged.loss);
            course.done += 1;
            after(&course)?;
        }
        let map = rounds.end(&course.ground, &course.state)?;
        Ok((map, course))
    }
}

/// Take the steps of a stretch; gives their mean loss.
pub(super) fn take<D: Descent>(
    descent: &mut D,
    state: &mut D::State,
    stretch: Stretch,
) -> Result<f64> {
    let (mut total, mut count) = (0.0, 0_u32);
    for (step, remaining) in stretch.steps() {
        total += descent.step(state, step, remaining, stretch.seed)?.loss;
        count += 1;
    }
    Ok(total / f64::from(count.max(1)))
}

/// Matrices of these rows and columns with the memory of Adam behind each, as they were written.
pub(super) fn restored<const N: usize>(
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
pub(super) fn finished(map: &RowBuf, ground: &Ground, centre: bool) -> Result<Map> {
    let mut map = map.clone();
    let inverse = (1.0 / ground.scale) as f32;
    for value in map.values_mut() {
        *value *= inverse;
    }
    Ok(Map::LowRank(match centre {
        true => LowRank::centred(map, &ground.mean)?,
        false => LowRank::new(map, None)?,
    }))
}

fn by_rounds(learner: &dyn Learner) -> Result<&dyn ByRounds> {
    learner.by_rounds().ok_or_else(|| {
        let able = registry::ENTRIES.iter().filter(|entry| {
            let built = entry.build(&BTreeMap::new());
            built.is_ok_and(|learner| learner.by_rounds().is_some())
        });
        let able: Vec<&str> = able.map(|entry| entry.name).collect();
        let expected = format!("one that works by rounds ({})", able.join(", "));
        Error::parameter("method", expected, learner.name())
    })
}

/// The rows of a shard with their classes, kept until the shard ends.
struct Kept {
    rows: RowBuf,
    classes: Vec<i64>,
    /// Ranges of the rows' numbers.
    ranges: Vec<(RowId, RowId)>,
}

impl Kept {
    fn new() -> Self {
        Kept {
            rows: RowBuf::empty(1),
            classes: Vec::new(),
            ranges: Vec::new(),
        }
    }

    fn keep(&mut self, sample: &Sample<'_>) {
        if self.classes.is_empty() {
            self.rows.clear(sample.rows.dim());
        }
        self.rows.extend(sample.rows);
        let end = sample.first + sample.rows.len() as RowId;
        match self.ranges.last_mut() {
            Some(range) if range.1 == sample.first => range.1 = end,
            _ => self.ranges.push((sample.first, end)),
        }
        let keys = sample.keys.unwrap_or(&[]);
        self.classes.extend(keys.iter().map(|key| i64::from(*key)));
    }

    /// Add the rows of the sample that are not here already.
    fn join(&mut self, common: &Common) -> Result<()> {
        let dim = self.rows.dim();
        let rows = common.rows.iter().zip(&common.classes);
        for ((row, class), values) in rows.zip(common.values.chunks_exact(dim)) {
            let mut ranges = self.ranges.iter();
            if !ranges.any(|(start, end)| (start..end).contains(&row)) {
                self.rows.extend(Rows::new(values, dim)?);
                self.classes.push(i64::from(*class));
            }
        }
        Ok(())
    }

    /// The shard as a problem of its own; nothing where it has no relevant pair.
    fn learnable(self) -> Result<Option<(MemoryCorpus, Supervision)>> {
        if self.classes.len() < 2 {
            return Ok(None);
        }
        let labels = Labels::from_numbers(&self.classes)?;
        if labels.pairs() == 0 {
            return Ok(None);
        }
        let corpus = MemoryCorpus::new(self.rows)?;
        Ok(Some((corpus, Supervision::labels(labels))))
    }
}

/// Mean distance of relevant pairs, estimated in every shard and averaged over rows.
pub struct PairScale {
    seed: u64,
    shard: u64,
    kept: Kept,
}

impl Statistic for PairScale {
    const NAME: &'static str = "scale of relevant pairs";
    /// Seed of the draws.
    type Spec = u64;
    type Out = f64;

    fn start(seed: &u64, shard: u64) -> Result<Self> {
        Ok(PairScale {
            seed: *seed,
            shard,
            kept: Kept::new(),
        })
    }

    fn update(&mut self, sample: &Sample<'_>) -> Result<()> {
        self.kept.keep(sample);
        Ok(())
    }

    fn close(self) -> Result<Vec<Part>> {
        let Some((corpus, labels)) = self.kept.learnable()? else {
            return Ok(vec![Part::Sum(vec![0.0, 0.0])]);
        };
        let problem = Problem::new(&corpus, &labels)?;
        let seed = seed_of(self.seed, self.shard);
        let relevance = problem.relevance("pair scale")?;
        let scale = Field::plain(&problem, Vec::new()).pair_scale(relevance, seed)?;
        let rows = corpus.len() as f64;
        Ok(vec![Part::Sum(vec![rows * scale, rows])])
    }

    fn finish(_: &u64, parts: Vec<Part>) -> Result<f64> {
        let [sums] = exactly(parts)?;
        match sums.into_sum()?[..] {
            [scale, rows] if rows > 0.0 => Ok(scale / rows),
            _ => Err(no_shard_can_learn()),
        }
    }
}

fn no_shard_can_learn() -> Error {
    Error::Data(
        "no shard has two rows of one class beside rows of another: expected shards with whole \
         classes together"
            .into(),
    )
}

/// Seed of a shard's own draws.
fn seed_of(seed: u64, shard: u64) -> u64 {
    let mut stream = Stream::new(seed, "shard", shard);
    stream.below(u64::MAX)
}

/// What a shard must know to take its steps of a round. What never changes comes first: settings
/// travel in pieces, and pieces that are there already are not sent again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Round {
    ground: Ground,
    method: String,
    settings: BTreeMap<String, String>,
    stretch: Stretch,
    state: Vec<f32>,
}

/// The state after a round, averaged over shards by their rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Averaged {
    state: Vec<f32>,
    loss: f64,
}

/// Steps of a learner on the rows of every shard.
pub struct LocalSteps {
    round: Round,
    shard: u64,
    kept: Kept,
}

impl Statistic for LocalSteps {
    const NAME: &'static str = "steps of a round";
    type Spec = Round;
    type Out = Averaged;

    fn start(round: &Round, shard: u64) -> Result<Self> {
        Ok(LocalSteps {
            round: round.clone(),
            shard,
            kept: Kept::new(),
        })
    }

    fn update(&mut self, sample: &Sample<'_>) -> Result<()> {
        self.kept.keep(sample);
        Ok(())
    }

    fn close(self) -> Result<Vec<Part>> {
        let Round {
            method,
            settings,
            ground,
            mut stretch,
            mut state,
        } = self.round;
        let rows = self.kept.classes.len() as f64;
        let mut kept = self.kept;
        kept.join(&ground.common)?;
        let learnable = kept.learnable()?.filter(|(_, labels)| {
            let relevance = labels.relevance();
            relevance.is_some_and(|relevance| check_relevance(relevance).is_ok())
        });
        let Some((corpus, labels)) = learnable else {
            let nothing = vec![0.0; state.len()];
            return Ok(vec![Part::Sum(vec![0.0, 0.0]), Part::Sum(nothing)]);
        };
        let learner = registry::find(&method)?.build(&settings)?;
        let problem = Problem::new(&corpus, &labels)?;
        stretch.seed = seed_of(stretch.seed, self.shard);
        let loss = by_rounds(learner.as_ref())?.advance(&problem, &ground, stretch, &mut state)?;
        let weighted = state.iter().map(|value| rows * f64::from(*value));
        Ok(vec![
            Part::Sum(vec![rows, rows * loss]),
            Part::Sum(weighted.collect()),
        ])
    }

    fn finish(_: &Round, parts: Vec<Part>) -> Result<Averaged> {
        let [weights, sum] = exactly(parts)?;
        let (rows, loss) = match weights.into_sum()?[..] {
            [rows, loss] if rows > 0.0 => (rows, loss),
            _ => return Err(no_shard_can_learn()),
        };
        let state = sum.into_sum()?.iter().map(|v| (v / rows) as f32).collect();
        Ok(Averaged {
            state,
            loss: loss / rows,
        })
    }
}
