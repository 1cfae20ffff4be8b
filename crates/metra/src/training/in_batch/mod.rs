//! Losses over the cosines inside a batch, for a low-rank map: what Multi-Similarity, SupCon and
//! Proxy-Anchor share.
//!
//! A step draws a batch, maps it (one product), takes all cosines between anchors and items (one
//! product), lets the loss turn each anchor's cosines into its derivatives by them, carries these
//! back through the cosine (two products) and the map, CᵀX (one product), and moves the map by Adam.
//! Only the function of an anchor's cosines differs between the losses; where proxies are the
//! anchors they move along.
//!
//! With `nested`, the loss is the mean over growing prefixes of the mapped vectors, each as if it were the whole, so that
//! the first dimensions serve by themselves (Kusupati, Bhatt, Rege, Wallingford, Sinha, Ramanujan, Howard-Snyder, Chen,
//! Kakade, Jain & Farhadi, "Matryoshka Representation Learning", NeurIPS 2022).
//!
//! The losses depend on directions alone, so neither the data's scale nor the map's matters to
//! them; the approximately orthonormal regulariser keeps directions alive. Vectors are trained as
//! they will be used: centred where the map centres. Departs from the papers: there the map is a
//! deep network and here it is one matrix over vectors that stay as they are.

pub(crate) mod batch;
pub(crate) mod cosines;
#[cfg(test)]
mod oracle_tests;
mod steps;

use super::Run;
use super::descent::{Schedule, descend};
use super::local_sgd::{LocalSgd, SharedState, StepRange, finished, take};
use super::parameters::{Bound, parameters, require_rank};
use super::regulariser::Regulariser;
use super::training_space::{Start, TrainingSpace};
use super::warp::check_relevance;
use crate::data::Keys;
use crate::dataset::Dataset;
use crate::execute::keyed_sums;
use crate::linalg::{RowBuf, map_rows};
use crate::model::{Map, Space};
use crate::supervision::{Labels, Relevance};
use crate::{Error, Result};
pub(crate) use batch::{Batch, Plan};
use cosines::{PairLoss, Units};
use steps::{BatchDescent, State};

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
        /// Train the first dimensions to serve by themselves: the loss is averaged over the first rank, rank/2, … down to
        /// this many dimensions; 0 for all dimensions alone.
        nested: usize = 0,
    }
    shared {
        /// When it validates and stops.
        schedule: Schedule = Schedule::of(1000),
    }
}

impl InBatchTraining {
    fn check(&self, data: &Dataset<'_>) -> Result<()> {
        require_rank(self.rank, data.dim())?;
        match self.nested > self.rank / 2 {
            true => {
                let expected = format!("0 to {} (half the rank)", self.rank / 2);
                Err(Error::parameter("nested", expected, self.nested))
            }
            false => Ok(()),
        }
    }

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
    settings.check(data)?;
    let classes = match proxy_rate {
        Some(_) => Some(data.training_labels(learner)?),
        None => None,
    };
    let relevance = data.relevance(learner)?;
    check_relevance(relevance)?;
    let space = TrainingSpace::for_run(data, run)?;
    // The losses do not depend on it, but thresholds for zero do.
    let scale = space.pair_scale(relevance, run.seed)?;
    let inverse = (1.0 / scale) as f32;
    let map = space.start_of(run, learner, (settings.start, settings.rank, scale))?;
    let origin = space.origin(settings.centre);
    let proxies = match classes {
        Some(labels) => class_means(&space, labels, &map, origin.as_deref(), inverse)?,
        None => RowBuf::empty(settings.rank),
    };
    let plan = settings.plan(data, relevance, !proxies.is_empty());
    let carry_back = |map: &RowBuf| space.carry_back(map, inverse, settings.centre);
    let mut training = BatchDescent::new(settings, loss, plan, &space, scale, &carry_back);
    training.proxy_rate = proxy_rate.unwrap_or(0.0);
    training.start = settings.regulariser.start(&map);
    training.code = run.code;
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
        settings.check(data)?;
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

#[cfg(test)]
mod tests {
    use super::steps::Derivatives;
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::data::synthetic::Nuisance;
    use crate::linalg::transposed_product;
    use crate::methods::{MultiSimilarity, ProxyAnchor, SupCon};
    use crate::random::Stream;
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
