//! Losses over the cosines inside a batch, for a low-rank map: what Multi-Similarity, SupCon and
//! Proxy-Anchor share.
//!
//! A step draws a batch, maps it (one product), takes all cosines between anchors and items (one
//! product), lets the loss turn each anchor's cosines into its derivatives by them, carries these
//! back through the cosine (two products) and the map, CᵀX (one product), and moves the map by Adam.
//! Only the function of an anchor's cosines differs between the losses; where proxies are the
//! anchors they move along.
//!
//! The losses depend on directions alone, so neither the data's scale nor the map's matters to
//! them; the approximately orthonormal regulariser keeps directions alive. Vectors are trained as
//! they will be used: centred where the map centres. Departs from the papers: there the map is a
//! deep network and here it is one matrix over vectors that stay as they are.

pub(crate) mod batch;
pub(crate) mod cosines;
#[cfg(test)]
mod oracle_tests;

use super::Run;
use super::codes::straight_through::StraightThrough;
use super::descent::{Descent, Outcome, Schedule, check_finite, descend};
use super::local_sgd::{LocalSgd, SharedState, StepRange, finished, restored, take};
use super::parameters::{Bound, parameters, require_rank};
use super::regulariser::Regulariser;
use super::training_space::{Start, TrainingSpace};
use super::warp::check_relevance;
use crate::Result;
use crate::data::{Corpus, Keys};
use crate::dataset::Dataset;
use crate::execute::keyed_sums;
use crate::linalg::{RowBuf, Rows, map_rows, transposed_product};
use crate::model::{Map, Space};
use crate::optimize::Adam;
use crate::random::Stream;
use crate::supervision::{Labels, Relevance};
pub(crate) use batch::{Batch, Plan};
use cosines::{PairLoss, Units, pull_anchors, pull_items};
use faer::Accum;
use serde::{Deserialize, Serialize};

/// Cosine first: it is what the losses are over.
pub(crate) const SPACES: [Space; 3] = [Space::Cosine, Space::SquaredL2, Space::InnerProduct];

parameters! {
    /// What methods with losses over a batch have in common: the batches and the map trained on them.
    pub struct InBatchTraining {
        /// Dimension of a mapped vector.
        rank: usize = 64 => Bound::AtLeast(1.0),
        /// Weight of the regulariser; use more for unseen identities.
        lambda: f64 = 1e-4 => Bound::AtLeast(0.0),
        /// What keeps the map in bounds.
        regulariser: Regulariser = Regulariser::Aon,
        /// Initial learning rate (Adam); it decays linearly to 0.
        rate: f64 = 0.003 => Bound::Above(0.0),
        /// Approximate number of rows per batch.
        batch: usize = 512 => Bound::AtLeast(2.0),
        /// Rows of each class in a batch, where there are labels; more where there are few classes.
        per_class: usize = 4 => Bound::AtLeast(2.0),
        /// Additional items sampled uniformly into each batch.
        drawn: usize = 128,
        /// Initialisation of the map: pca, lda (needs labels) or random.
        start: Start = Start::Pca,
        /// Subtract the training mean before mapping, in training as in use.
        centre: bool = true,
    }
    shared {
        /// When it validates and stops.
        schedule: Schedule = Schedule::of(1000),
    }
}

impl InBatchTraining {
    fn plan<'a>(
        &self,
        data: &'a Dataset<'_>,
        relevance: &'a dyn Relevance,
        proxies: bool,
    ) -> Plan<'a> {
        Plan {
            relevance,
            labels: data.supervision().as_labels(),
            proxies,
            rows: self.batch,
            per_class: self.per_class,
            drawn: self.drawn,
        }
    }
}

/// Take all steps. With a `proxy_rate`, relative to that of the map, the anchors are one proxy per class.
pub(crate) fn train(
    learner: &'static str,
    settings: &InBatchTraining,
    loss: &dyn PairLoss,
    proxy_rate: Option<f64>,
    data: &Dataset<'_>,
    run: &mut Run<'_>,
) -> Result<Map> {
    require_rank(settings.rank, data.dim())?;
    let classes = match proxy_rate {
        Some(_) => Some(data.training_labels(learner)?),
        None => None,
    };
    let relevance = data.relevance(learner)?;
    check_relevance(relevance)?;
    let space = TrainingSpace::new(data)?;
    // The losses do not depend on it, but thresholds for zero do.
    let scale = space.pair_scale(relevance, run.seed)?;
    let inverse = (1.0 / scale) as f32;
    let map = space.start(learner, settings.start, settings.rank, run.seed)?;
    let origin = space.origin(settings.centre);
    let proxies = match classes {
        Some(labels) => class_means(&space, labels, &map, origin.as_deref(), inverse)?,
        None => RowBuf::empty(settings.rank),
    };
    let plan = settings.plan(data, relevance, !proxies.is_empty());
    let carry_back = |map: &RowBuf| space.carry_back(map, inverse, settings.centre);
    let mut training = BatchDescent {
        proxy_rate: proxy_rate.unwrap_or(0.0),
        start: settings.regulariser.start(&map),
        code: run.code,
        ..BatchDescent::new(settings, loss, plan, &space, scale, &carry_back)
    };
    descend(
        settings.schedule,
        &mut training,
        State::new(map, proxies),
        run,
    )
}

/// A loss over a batch whose learner has no state beside the map: it works by rounds too. Proxies
/// would not: a shard moves those of its own classes alone, and an average undoes it.
pub(crate) trait WithoutProxies: PairLoss + Send + Sync {
    fn training(&self) -> &InBatchTraining;
}

impl<L: WithoutProxies> LocalSgd for L {
    fn planned_steps(&self) -> u64 {
        self.training().schedule.steps
    }

    fn begin(&self, data: &Dataset<'_>, shared: &SharedState, seed: u64) -> Result<Vec<f32>> {
        let settings = self.training();
        require_rank(settings.rank, data.dim())?;
        settings.regulariser.check_distributed()?;
        settings.schedule.check_distributed()?;
        let space = TrainingSpace::plain(data, shared.mean.clone());
        let map = space.start("in-batch", settings.start, settings.rank, seed)?;
        Ok(State::new(map, RowBuf::empty(settings.rank)).into_numbers())
    }

    fn advance(
        &self,
        shard: &Dataset<'_>,
        shared: &SharedState,
        range: StepRange,
        state: &mut Vec<f32>,
    ) -> Result<f64> {
        let settings = self.training();
        let space = TrainingSpace::plain(shard, shared.mean.clone());
        let plan = settings.plan(shard, shard.relevance("in-batch")?, false);
        let to_map = |map: &RowBuf| finished(map, shared, settings.centre);
        let mut training = BatchDescent::new(settings, self, plan, &space, shared.scale, &to_map);
        let mut moving = State::from_numbers(settings.rank, shard.dim(), state)?;
        let loss = take(&mut training, &mut moving, range)?;
        *state = moving.into_numbers();
        Ok(loss)
    }

    fn end(&self, shared: &SharedState, state: &[f32]) -> Result<Map> {
        let settings = self.training();
        let state = State::from_numbers(settings.rank, shared.mean.len(), state)?;
        finished(&state.map, shared, settings.centre)
    }
}

/// Direction of the mean of the mapped rows of each class, where proxies start. Length 1, since a
/// step turns a short vector farther.
fn class_means(
    space: &TrainingSpace<'_>,
    labels: &Labels,
    map: &RowBuf,
    origin: Option<&[f32]>,
    inverse: f32,
) -> Result<RowBuf> {
    let sums = keyed_sums(space.items(), Keys::Class(labels.of()), labels.classes())?;
    let mut means = RowBuf::zeros(labels.classes(), space.dim());
    for class in 0..labels.classes() {
        let count = sums.counts[class].max(1) as f64;
        for (column, value) in means.row_mut(class).iter_mut().enumerate() {
            let away = origin.map_or(0.0, |o| f64::from(o[column]));
            *value = ((sums.sums[(class, column)] / count - away) * f64::from(inverse)) as f32;
        }
    }
    let mut mapped = RowBuf::empty(map.len());
    map_rows(means.rows(), map.rows(), &mut mapped)?;
    Ok(Units::new(mapped.rows()).into_rows())
}

/// The map and the proxies, with Adam's memory of both.
#[derive(Clone, Serialize, Deserialize)]
struct State {
    map: RowBuf,
    map_adam: Adam,
    proxies: RowBuf,
    proxy_adam: Adam,
}

impl State {
    fn new(map: RowBuf, proxies: RowBuf) -> Self {
        State {
            map_adam: Adam::new(map.values().len()),
            proxy_adam: Adam::new(proxies.values().len()),
            map,
            proxies,
        }
    }

    /// The map with Adam's memory of it; there must be no proxies.
    fn into_numbers(self) -> Vec<f32> {
        let mut numbers = self.map.values().to_vec();
        self.map_adam.write(&mut numbers);
        numbers
    }

    fn from_numbers(rank: usize, dim: usize, numbers: &[f32]) -> Result<Self> {
        let [(map, map_adam)] = restored([(rank, dim)], numbers)?;
        Ok(State {
            map_adam,
            ..State::new(map, RowBuf::empty(rank))
        })
    }
}

struct BatchDescent<'a> {
    settings: &'a InBatchTraining,
    proxy_rate: f64,
    loss: &'a dyn PairLoss,
    plan: Plan<'a>,
    /// Classes of at least two rows.
    classes: Vec<u32>,
    queries: &'a dyn Corpus,
    items: &'a dyn Corpus,
    origin: Option<Vec<f32>>,
    inverse: f32,
    batch: Batch,
    rows: RowBuf,
    embedded: RowBuf,
    units: Units,
    derivatives: Derivatives,
    gradient: RowBuf,
    /// Where the map started, for a regulariser that keeps it near.
    start: Option<RowBuf>,
    /// What the items of a batch are coded by, and their directions as codes.
    code: Option<StraightThrough>,
    coded: RowBuf,
    /// The map in the coordinates of the data.
    to_map: &'a dyn Fn(&RowBuf) -> Result<Map>,
}

impl<'a> BatchDescent<'a> {
    fn new(
        settings: &'a InBatchTraining,
        loss: &'a dyn PairLoss,
        plan: Plan<'a>,
        space: &'a TrainingSpace<'_>,
        scale: f64,
        to_map: &'a dyn Fn(&RowBuf) -> Result<Map>,
    ) -> Self {
        BatchDescent {
            settings,
            proxy_rate: 0.0,
            loss,
            classes: plan.usable_classes(),
            plan,
            queries: space.queries(),
            items: space.items(),
            origin: space.origin(settings.centre),
            inverse: (1.0 / scale) as f32,
            batch: Batch::default(),
            rows: RowBuf::empty(space.dim()),
            embedded: RowBuf::empty(settings.rank),
            units: Units::new(RowBuf::empty(settings.rank).rows()),
            derivatives: Derivatives::new(settings.rank),
            gradient: RowBuf::empty(space.dim()),
            start: None,
            code: None,
            coded: RowBuf::empty(settings.rank),
            to_map,
        }
    }
}

impl Descent for BatchDescent<'_> {
    type State = State;

    fn step(&mut self, state: &mut State, step: u64, remaining: f64, seed: u64) -> Result<Outcome> {
        let mut random = Stream::new(seed, "in-batch rows", step);
        self.batch.draw(&self.plan, &self.classes, &mut random);
        let origin = self.origin.as_deref();
        let (queries, items) = (self.queries, self.items);
        (self.batch).fetch(queries, items, origin, self.inverse, &mut self.rows)?;
        map_rows(self.rows.rows(), state.map.rows(), &mut self.embedded)?;
        self.units.set(self.embedded.rows());
        let proxies = Units::new(state.proxies.rows());
        let derivatives = &mut self.derivatives;
        let rows = self.units.rows();
        let items = match self.code {
            None => rows,
            Some(code) => {
                self.coded.clear(rows.dim());
                self.coded.extend(rows);
                code.round_directions(self.coded.values_mut(), rows.dim(), remaining);
                self.coded.rows()
            }
        };
        let codes_queries = self.code.is_some_and(StraightThrough::codes_queries);
        let anchors = if codes_queries { items } else { rows };
        let loss = derivatives.set(self.loss, &self.batch, (anchors, items), proxies.rows());
        self.units.carry_back(&mut derivatives.by_row);
        let by_row = derivatives.by_row.rows();
        transposed_product(by_row, self.rows.rows(), &mut self.gradient)?;
        let lambda = self.settings.lambda as f32;
        let (start, gradient) = (self.start.as_ref(), &mut self.gradient);
        (self.settings.regulariser).pull(&state.map, start, lambda, gradient);
        let rate = self.settings.rate * remaining;
        let values = self.gradient.values();
        (state.map_adam).step(state.map.values_mut(), values, rate as f32);
        if !state.proxies.is_empty() {
            let by_proxy = &mut self.derivatives.by_proxy;
            proxies.carry_back(by_proxy);
            let rate = (rate * self.proxy_rate) as f32;
            (state.proxy_adam).step(state.proxies.values_mut(), by_proxy.values(), rate);
        }
        let changed = state.map.values().iter().chain(state.proxies.values());
        check_finite(changed, loss, step)?;
        Ok(Outcome {
            loss,
            ..Outcome::default()
        })
    }

    fn map(&self, state: &State) -> Result<Map> {
        (self.to_map)(&state.map)
    }
}

/// Derivatives by the directions of all rows of a batch and of all proxies, where these are the anchors.
struct Derivatives {
    /// By all cosines.
    slopes: Vec<f32>,
    by_row: RowBuf,
    by_proxy: RowBuf,
}

impl Derivatives {
    fn new(rank: usize) -> Self {
        Derivatives {
            slopes: Vec::new(),
            by_row: RowBuf::empty(rank),
            by_proxy: RowBuf::empty(rank),
        }
    }

    /// Those of another batch; gives its loss. The rows of the batch stand twice: as anchors, and as the items
    /// that these are compared with.
    fn set(
        &mut self,
        loss: &dyn PairLoss,
        batch: &Batch,
        (anchors, items): (Rows<'_>, Rows<'_>),
        proxies: Rows<'_>,
    ) -> f64 {
        let (rank, first) = (items.dim(), batch.queries.len());
        let (slopes, grades) = (&mut self.slopes, &batch.grades);
        self.by_row.reset(items.len(), rank);
        self.by_proxy.reset(proxies.len(), rank);
        let by_row = self.by_row.values_mut();
        if !proxies.is_empty() {
            let by_proxy = self.by_proxy.values_mut();
            let value = pull_anchors(loss, (proxies, items), grades, slopes, by_proxy);
            pull_items(slopes, proxies, Accum::Replace, by_row);
            return value;
        }
        if first == 0 {
            // Every row is anchor and item.
            let value = pull_anchors(loss, (anchors, items), grades, slopes, by_row);
            pull_items(slopes, anchors, Accum::Add, by_row);
            return value;
        }
        let (queries, items) = (anchors.slice(0, first), items.slice(first, items.len()));
        let (by_query, by_item) = by_row.split_at_mut(first * rank);
        let value = pull_anchors(loss, (queries, items), grades, slopes, by_query);
        pull_items(slopes, queries, Accum::Replace, by_item);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::data::synthetic::Nuisance;
    use crate::methods::{MultiSimilarity, ProxyAnchor, SupCon};
    use crate::supervision::Supervision;

    const SET: Nuisance = Nuisance {
        classes: 6,
        signal: 2,
        noise: 4,
        seed: 5,
    };

    /// Derivative by the map of the loss of one batch, against differences of the loss.
    fn assert_gradient(loss: &dyn PairLoss, proxies: bool) {
        let set = SET.rows(40);
        let labels = Labels::from_numbers(&set.classes).unwrap();
        let plan = Plan {
            relevance: &labels,
            labels: Some(&labels),
            proxies,
            rows: 20,
            per_class: 4,
            drawn: 5,
        };
        let mut batch = Batch::default();
        let mut random = Stream::new(1, "test", 0);
        batch.draw(&plan, &plan.usable_classes(), &mut random);
        let mut rows = RowBuf::empty(6);
        (batch.fetch(&set.corpus, &set.corpus, None, 1.0, &mut rows)).unwrap();
        let mut normal = |len, dim| {
            let values = (0..len * dim).map(|_| random.normal() as f32).collect();
            RowBuf::from_values(values, dim).unwrap()
        };
        let map = normal(3, 6);
        let proxies = if proxies {
            normal(labels.classes(), 3)
        } else {
            RowBuf::empty(3)
        };
        let value = |map: &RowBuf, proxies: &RowBuf| {
            let mut embedded = RowBuf::empty(3);
            map_rows(rows.rows(), map.rows(), &mut embedded).unwrap();
            let (embedded, proxies) = (Units::new(embedded.rows()), Units::new(proxies.rows()));
            let mut found = Derivatives::new(3);
            let value = found.set(
                loss,
                &batch,
                (embedded.rows(), embedded.rows()),
                proxies.rows(),
            );
            embedded.carry_back(&mut found.by_row);
            proxies.carry_back(&mut found.by_proxy);
            let mut gradient = RowBuf::empty(6);
            transposed_product(found.by_row.rows(), rows.rows(), &mut gradient).unwrap();
            (value, gradient, found.by_proxy)
        };
        let (_, by_map, by_proxy) = value(&map, &proxies);
        let close = |slope: f64, found: f32, place: usize| {
            let tolerance = 0.01 * slope.abs().max(0.05);
            assert!(
                (slope - f64::from(found)).abs() < tolerance,
                "{place}: {slope} {found}"
            );
        };
        for place in 0..18 {
            let moved = |by: f32| {
                let mut map = map.clone();
                map.values_mut()[place] += by;
                value(&map, &proxies).0
            };
            close(
                (moved(1e-3) - moved(-1e-3)) / 2e-3,
                by_map.values()[place],
                place,
            );
        }
        for place in 0..proxies.values().len() {
            let moved = |by: f32| {
                let mut proxies = proxies.clone();
                proxies.values_mut()[place] += by;
                value(&map, &proxies).0
            };
            close(
                (moved(1e-3) - moved(-1e-3)) / 2e-3,
                by_proxy.values()[place],
                place,
            );
        }
    }

    /// Memory of a larger batch changes nothing for a smaller one.
    #[test]
    fn memory_of_an_earlier_batch_changes_nothing() {
        let set = SET.rows(60);
        let labels = Labels::from_numbers(&set.classes).unwrap();
        let loss = MultiSimilarity::default();
        let none = Units::new(RowBuf::empty(6).rows());
        let mut kept = (Units::new(RowBuf::empty(6).rows()), Derivatives::new(6));
        for rows in [50, 20, 40] {
            let plan = Plan {
                relevance: &labels,
                labels: Some(&labels),
                proxies: false,
                rows,
                per_class: 4,
                drawn: 0,
            };
            let mut batch = Batch::default();
            let mut random = Stream::new(1, "test", rows as u64);
            batch.draw(&plan, &plan.usable_classes(), &mut random);
            let mut rows = RowBuf::empty(6);
            (batch.fetch(&set.corpus, &set.corpus, None, 1.0, &mut rows)).unwrap();
            let value_of = |units: &mut Units, derivatives: &mut Derivatives| {
                units.set(rows.rows());
                let value =
                    derivatives.set(&loss, &batch, (units.rows(), units.rows()), none.rows());
                units.carry_back(&mut derivatives.by_row);
                (value, derivatives.by_row.clone())
            };
            let mut fresh = (Units::new(RowBuf::empty(6).rows()), Derivatives::new(6));
            let expected = value_of(&mut fresh.0, &mut fresh.1);
            assert_eq!(value_of(&mut kept.0, &mut kept.1), expected);
        }
    }

    #[test]
    fn gradients_through_the_map_equal_finite_differences() {
        // All pairs: the set of mined pairs jumps where a difference is taken.
        let all_pairs = MultiSimilarity {
            epsilon: 4.0,
            beta: 10.0,
            ..MultiSimilarity::default()
        };
        assert_gradient(&all_pairs, false);
        let warm = SupCon {
            temperature: 0.3,
            ..SupCon::default()
        };
        assert_gradient(&warm, false);
        let soft = ProxyAnchor {
            alpha: 8.0,
            ..ProxyAnchor::default()
        };
        assert_gradient(&soft, true);
    }

    /// Fewer rows than dimensions, off the origin: training in reduced coordinates must see the
    /// cosines that the finished map gives, centred or not.
    #[test]
    fn reduced_coordinates_give_the_cosines_of_the_map() {
        let mut random = Stream::new(2, "test", 0);
        let values = (0..12 * 30).map(|_| (2.0 + random.normal()) as f32);
        let rows = RowBuf::from_values(values.collect(), 30).unwrap();
        let corpus = MemoryCorpus::new(rows).unwrap();
        let classes: Vec<i64> = (0..12).map(|row| row % 4).collect();
        let labels = Labels::from_numbers(&classes).unwrap();
        let supervision = Supervision::labels(labels);
        let data = Dataset::new(&corpus, &supervision).unwrap();
        let space = TrainingSpace::new(&data).unwrap();
        assert!(space.dim() < 12);
        let map = space.start("test", Start::Random, 3, 1).unwrap();
        for centre in [true, false] {
            let origin = space.origin(centre);
            let mut batch = Batch::default();
            batch.items.fill(data.relevance("test").unwrap(), 0..12);
            let mut reduced = RowBuf::empty(1);
            (batch.fetch(
                space.items(),
                space.items(),
                origin.as_deref(),
                1.0,
                &mut reduced,
            ))
            .unwrap();
            let mut trained = RowBuf::empty(1);
            map_rows(reduced.rows(), map.rows(), &mut trained).unwrap();
            let Map::LowRank(finished) = space.carry_back(&map, 1.0, centre).unwrap() else {
                panic!("expected a low-rank map");
            };
            let mut used = RowBuf::empty(1);
            finished.apply(corpus.rows(), &mut used).unwrap();
            for (a, b) in trained.values().iter().zip(used.values()) {
                assert!((a - b).abs() < 1e-3, "{centre}: {a} {b}");
            }
        }
    }
}
