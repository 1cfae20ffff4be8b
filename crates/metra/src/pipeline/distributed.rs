//! Runs local SGD: rounds over the shards of a distributed corpus.
//!
//! A round is one pass over the corpus, whose cost to start is that of many steps. Shards hold whole
//! classes, so that relevant rows are near each other. What a shard does is a function of round, shard
//! and state alone; random draws are keyed by these, so that a shard that is run again gives the same
//! bytes.

use super::{Pipeline, registry};
use crate::data::{Corpus, CorpusRef, Keys, MemoryCorpus, PartialResult, RowId};
use crate::dataset::Dataset;
use crate::execute::{Sample, Statistic, expect_parts, fold};
use crate::linalg::{RowBuf, Rows};
use crate::model::{Map, Model};
use crate::random::Stream;
use crate::supervision::{Labels, Relevance, Supervision};
use crate::training::local_sgd::{CommonRows, LocalSgd, SharedState, StepRange};
use crate::training::training_space::TrainingSpace;
use crate::training::warp::check_relevance;
use crate::training::{AnyMethod, CodeSpec, PreparedCorpus, Run};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A fit by local SGD between two of its rounds: what a checkpoint keeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Rounds done.
    pub done: u64,
    /// What shards agree on.
    pub shared: SharedState,
    /// The state of the method.
    pub state: Vec<f32>,
    /// Mean loss of each round so far.
    pub losses: Vec<f64>,
}

/// How local SGD goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rounds {
    /// Number of rounds; the method's steps are spread over them.
    pub rounds: u64,
    /// Rows of the sample that all shards learn from.
    pub common: usize,
}

/// Is shown the state after every round, and may keep it.
pub(crate) type AfterRound<'a> = dyn FnMut(&Checkpoint) -> Result<()> + 'a;

impl Pipeline {
    /// Whether the method can learn where the rows are: by passes over them, or by local SGD.
    pub(crate) fn is_distributable(&self) -> bool {
        self.method.runs_by_passes() || self.method.local_sgd().is_some()
    }

    /// Fit where the rows are: by passes where the method has a closed form, by local SGD where it takes
    /// steps. `resumed` is where an earlier run stopped.
    pub fn fit_distributed(
        &self,
        data: &Dataset<'_>,
        seed: u64,
        rounds: Rounds,
        resumed: Option<Checkpoint>,
        after: &mut AfterRound<'_>,
    ) -> Result<Model> {
        if !self.is_distributable() {
            let able =
                registry::names(|method| method.runs_by_passes() || method.local_sgd().is_some());
            let expected = format!("one that works on distributed rows: {able}");
            return Err(Error::parameter("method", expected, self.method.name()));
        }
        if self.code != CodeSpec::None {
            let expected = "none for training on a cluster";
            return Err(Error::parameter("code", expected, self.code));
        }
        if let Some(earlier) = &self.start {
            let expected = "none for training on a cluster";
            return Err(Error::parameter("from", expected, earlier.file()));
        }
        self.check_spaces(data)?;
        let prepare = self.preprocessing(data)?;
        let mut run = Run::new(seed);
        let map = {
            let data = data.with_vectors(|_, corpus, groups| {
                let corpus = PreparedCorpus::new(corpus, groups, &prepare.of(false).steps);
                Ok(CorpusRef::Owned(Box::new(corpus)))
            })?;
            let limited = self.limited_rank(data.dim())?;
            let method = limited.as_deref().unwrap_or(&*self.method);
            let map = match method.local_sgd() {
                None => method.fit(&data, &mut run)?,
                Some(_) => {
                    let (map, state) = rounds.fit(method, &data, seed, resumed, after)?;
                    run.facts.insert("rounds".into(), state.done as f64);
                    run.facts.insert("scale".into(), state.shared.scale);
                    map
                }
            };
            (map, method.parameters())
        };
        let fitted = self.assemble(prepare, map, &mut run)?;
        self.model(data, fitted, seed, &data.units(), None)
    }
}

impl Rounds {
    fn fit(
        &self,
        method: &dyn AnyMethod,
        data: &Dataset<'_>,
        seed: u64,
        resumed: Option<Checkpoint>,
        after: &mut AfterRound<'_>,
    ) -> Result<(Map, Checkpoint)> {
        let sgd = local_sgd(method)?;
        if self.rounds == 0 {
            return Err(Error::parameter("rounds", "at least 1", 0));
        }
        let corpus = data.items();
        let classes = data.training_labels(method.name())?;
        let keys = Keys::Class(classes.of());
        let mut so_far = match resumed {
            Some(checkpoint) => checkpoint,
            None => {
                check_relevance(classes)?;
                let shared = SharedState {
                    common: CommonRows::draw(corpus, classes.of(), self.common, seed)?,
                    mean: crate::execute::spread(corpus)?.mean,
                    scale: fold::<PairScale>(corpus, keys, &seed)?,
                };
                Checkpoint {
                    done: 0,
                    state: sgd.begin(data, &shared, seed)?,
                    shared,
                    losses: Vec::new(),
                }
            }
        };
        let steps = sgd.planned_steps();
        let each = steps.div_ceil(self.rounds);
        while so_far.done < self.rounds && so_far.done * each < steps {
            let round = Round {
                method: method.name().to_owned(),
                settings: method.parameters(),
                shared: so_far.shared.clone(),
                range: StepRange {
                    first: so_far.done * each,
                    steps: each,
                    of: steps,
                    seed,
                },
                state: so_far.state.clone(),
            };
            let averaged = fold::<LocalSteps>(corpus, keys, &round)?;
            so_far.state = averaged.state;
            so_far.losses.push(averaged.loss);
            so_far.done += 1;
            after(&so_far)?;
        }
        let map = sgd.end(&so_far.shared, &so_far.state)?;
        Ok((map, so_far))
    }
}

fn local_sgd(method: &dyn AnyMethod) -> Result<&dyn LocalSgd> {
    method.local_sgd().ok_or_else(|| {
        let able = registry::names(|method| method.local_sgd().is_some());
        let expected = format!("one that learns by local SGD ({able})");
        Error::parameter("method", expected, method.name())
    })
}

/// The rows of a shard with their classes, kept until the shard ends.
struct ShardRows {
    rows: RowBuf,
    classes: Vec<i64>,
    /// Ranges of the rows' numbers.
    ranges: Vec<(RowId, RowId)>,
}

impl ShardRows {
    fn new() -> Self {
        ShardRows {
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
    fn join(&mut self, common: &CommonRows) -> Result<()> {
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

    /// The shard as a data set of its own; nothing where it has no relevant pair.
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
pub(crate) struct PairScale {
    seed: u64,
    shard: u64,
    rows_seen: ShardRows,
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
            rows_seen: ShardRows::new(),
        })
    }

    fn update(&mut self, sample: &Sample<'_>) -> Result<()> {
        self.rows_seen.keep(sample);
        Ok(())
    }

    fn close(self) -> Result<Vec<PartialResult>> {
        let Some((corpus, labels)) = self.rows_seen.learnable()? else {
            return Ok(vec![PartialResult::Sum(vec![0.0, 0.0])]);
        };
        let data = Dataset::new(&corpus, &labels)?;
        let seed = seed_of(self.seed, self.shard);
        let relevance = data.relevance("pair scale")?;
        let scale = TrainingSpace::plain(&data, Vec::new()).pair_scale(relevance, seed)?;
        let rows = corpus.len() as f64;
        Ok(vec![PartialResult::Sum(vec![rows * scale, rows])])
    }

    fn finish(_: &u64, parts: Vec<PartialResult>) -> Result<f64> {
        let [sums] = expect_parts(parts)?;
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
pub(crate) struct Round {
    shared: SharedState,
    method: String,
    settings: BTreeMap<String, String>,
    range: StepRange,
    state: Vec<f32>,
}

/// The state after a round, averaged over shards by their rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Averaged {
    state: Vec<f32>,
    loss: f64,
}

/// Steps of a learner on the rows of every shard.
pub(crate) struct LocalSteps {
    round: Round,
    shard: u64,
    rows_seen: ShardRows,
}

impl Statistic for LocalSteps {
    const NAME: &'static str = "steps of a round";
    type Spec = Round;
    type Out = Averaged;

    fn start(round: &Round, shard: u64) -> Result<Self> {
        Ok(LocalSteps {
            round: round.clone(),
            shard,
            rows_seen: ShardRows::new(),
        })
    }

    fn update(&mut self, sample: &Sample<'_>) -> Result<()> {
        self.rows_seen.keep(sample);
        Ok(())
    }

    fn close(self) -> Result<Vec<PartialResult>> {
        let Round {
            method,
            settings,
            shared,
            mut range,
            mut state,
        } = self.round;
        let rows = self.rows_seen.classes.len() as f64;
        let mut rows_seen = self.rows_seen;
        rows_seen.join(&shared.common)?;
        let learnable = rows_seen.learnable()?.filter(|(_, labels)| {
            let relevance = labels.relevance();
            relevance.is_some_and(|relevance| check_relevance(relevance).is_ok())
        });
        let Some((corpus, labels)) = learnable else {
            let nothing = vec![0.0; state.len()];
            return Ok(vec![
                PartialResult::Sum(vec![0.0, 0.0]),
                PartialResult::Sum(nothing),
            ]);
        };
        let method = registry::find(&method)?.build(&settings)?;
        let data = Dataset::new(&corpus, &labels)?;
        range.seed = seed_of(range.seed, self.shard);
        let loss = local_sgd(method.as_ref())?.advance(&data, &shared, range, &mut state)?;
        let weighted = state.iter().map(|value| rows * f64::from(*value));
        Ok(vec![
            PartialResult::Sum(vec![rows, rows * loss]),
            PartialResult::Sum(weighted.collect()),
        ])
    }

    fn finish(_: &Round, parts: Vec<PartialResult>) -> Result<Averaged> {
        let [weights, sum] = expect_parts(parts)?;
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
