//! A step: the batch is mapped, its cosines are pulled by the loss, and the map (with the proxies) moves.

use super::InBatchTraining;
use super::batch::{Batch, Plan};
use super::cosines::{PairLoss, Units, pull_anchors, pull_items};
use crate::Result;
use crate::data::Corpus;
use crate::linalg::{RowBuf, Rows, map_rows, transposed_product};
use crate::model::Map;
use crate::optimize::Adam;
use crate::random::Stream;
use crate::training::codes::straight_through::StraightThrough;
use crate::training::descent::{Descent, Outcome, check_finite};
use crate::training::local_sgd::restored;
use crate::training::training_space::TrainingSpace;
use faer::Accum;
use serde::{Deserialize, Serialize};

/// The map and the proxies, with Adam's memory of both.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) map: RowBuf,
    map_adam: Adam,
    proxies: RowBuf,
    proxy_adam: Adam,
}

impl State {
    pub(super) fn new(map: RowBuf, proxies: RowBuf) -> Self {
        State {
            map_adam: Adam::new(map.values().len()),
            proxy_adam: Adam::new(proxies.values().len()),
            map,
            proxies,
        }
    }

    /// The map with Adam's memory of it; there must be no proxies.
    pub(super) fn into_numbers(self) -> Vec<f32> {
        let mut numbers = self.map.values().to_vec();
        self.map_adam.write(&mut numbers);
        numbers
    }

    pub(super) fn from_numbers(rank: usize, dim: usize, numbers: &[f32]) -> Result<Self> {
        let [(map, map_adam)] = restored([(rank, dim)], numbers)?;
        Ok(State {
            map_adam,
            ..State::new(map, RowBuf::empty(rank))
        })
    }
}

pub(super) struct BatchDescent<'a> {
    settings: &'a InBatchTraining,
    pub(super) proxy_rate: f64,
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
    pub(super) start: Option<RowBuf>,
    /// What the items of a batch are coded by, and their directions as codes.
    pub(super) code: Option<StraightThrough>,
    coded: RowBuf,
    /// Lengths of the prefixes that serve by themselves, with the whole, and derivatives summed over them.
    prefixes: Vec<usize>,
    prefix: RowBuf,
    by_row: RowBuf,
    by_proxy: RowBuf,
    /// The map in the coordinates of the data.
    to_map: &'a dyn Fn(&RowBuf) -> Result<Map>,
}

impl<'a> BatchDescent<'a> {
    pub(super) fn new(
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
            prefixes: prefixes(settings.rank, settings.nested),
            prefix: RowBuf::empty(1),
            by_row: RowBuf::empty(settings.rank),
            by_proxy: RowBuf::empty(settings.rank),
            to_map,
        }
    }
}

/// Lengths of the prefixes that are trained to serve by themselves, the whole first.
fn prefixes(rank: usize, least: usize) -> Vec<usize> {
    let halves = std::iter::successors(Some(rank), |dim| Some(dim / 2));
    let nested = halves
        .skip(1)
        .take_while(|dim| least > 0 && *dim >= least.max(1));
    std::iter::once(rank).chain(nested).collect()
}

/// The first `dim` numbers of every row.
fn cut(rows: Rows<'_>, dim: usize, out: &mut RowBuf) {
    out.reset(rows.len(), dim);
    for (number, row) in rows.iter().enumerate() {
        out.row_mut(number).copy_from_slice(&row[..dim]);
    }
}

/// Add a share of derivatives by the first numbers of every row.
fn add_share(of_prefix: &RowBuf, share: f32, all: &mut RowBuf) {
    for (number, row) in of_prefix.rows().iter().enumerate() {
        for (sum, value) in all.row_mut(number).iter_mut().zip(row) {
            *sum += share * value;
        }
    }
}

impl BatchDescent<'_> {
    /// The loss of the mapped batch, with its derivatives by mapped rows and by proxies: the mean over all prefixes.
    fn pull(&mut self, proxies: &RowBuf, remaining: f64) -> f64 {
        let rank = self.embedded.dim();
        if let [_] = self.prefixes[..] {
            let loss = self.pull_prefix(rank, proxies, remaining);
            std::mem::swap(&mut self.by_row, &mut self.derivatives.by_row);
            std::mem::swap(&mut self.by_proxy, &mut self.derivatives.by_proxy);
            return loss;
        }
        let (rows, count) = (self.embedded.len(), self.prefixes.len());
        let (mut by_row, mut by_proxy) = (
            std::mem::replace(&mut self.by_row, RowBuf::empty(1)),
            std::mem::replace(&mut self.by_proxy, RowBuf::empty(1)),
        );
        by_row.reset(rows, rank);
        by_row.values_mut().fill(0.0);
        by_proxy.reset(proxies.len(), rank);
        by_proxy.values_mut().fill(0.0);
        let (share, mut loss) = (1.0 / count as f64, 0.0);
        for number in 0..count {
            loss += share * self.pull_prefix(self.prefixes[number], proxies, remaining);
            add_share(&self.derivatives.by_row, share as f32, &mut by_row);
            add_share(&self.derivatives.by_proxy, share as f32, &mut by_proxy);
        }
        (self.by_row, self.by_proxy) = (by_row, by_proxy);
        loss
    }

    /// The same of the first `dim` dimensions.
    fn pull_prefix(&mut self, dim: usize, proxies: &RowBuf, remaining: f64) -> f64 {
        let proxies = if dim < self.embedded.dim() {
            cut(self.embedded.rows(), dim, &mut self.prefix);
            self.units.set(self.prefix.rows());
            cut(proxies.rows(), dim, &mut self.prefix);
            Units::new(self.prefix.rows())
        } else {
            self.units.set(self.embedded.rows());
            Units::new(proxies.rows())
        };
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
        proxies.carry_back(&mut derivatives.by_proxy);
        loss
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
        let loss = self.pull(&state.proxies, remaining);
        let by_row = self.by_row.rows();
        transposed_product(by_row, self.rows.rows(), &mut self.gradient)?;
        let lambda = self.settings.lambda as f32;
        let (start, gradient) = (self.start.as_ref(), &mut self.gradient);
        (self.settings.regulariser).pull(&state.map, start, lambda, gradient);
        let rate = self.settings.rate * remaining;
        let values = self.gradient.values();
        (state.map_adam).step(state.map.values_mut(), values, rate as f32);
        if !state.proxies.is_empty() {
            let rate = (rate * self.proxy_rate) as f32;
            let by_proxy = self.by_proxy.values();
            (state.proxy_adam).step(state.proxies.values_mut(), by_proxy, rate);
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
pub(super) struct Derivatives {
    /// By all cosines.
    slopes: Vec<f32>,
    pub(super) by_row: RowBuf,
    pub(super) by_proxy: RowBuf,
}

impl Derivatives {
    pub(super) fn new(rank: usize) -> Self {
        Derivatives {
            slopes: Vec::new(),
            by_row: RowBuf::empty(rank),
            by_proxy: RowBuf::empty(rank),
        }
    }

    /// Those of another batch; gives its loss. The rows of the batch stand twice: as anchors, and as the items
    /// that these are compared with.
    pub(super) fn set(
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
    use crate::data::synthetic::Nuisance;
    use crate::dataset::Dataset;
    use crate::methods::{ProxyAnchor, SupCon};
    use crate::supervision::{Labels, Supervision};

    /// The mean over prefixes, against differences of the loss, by the map and by the proxies.
    #[test]
    fn nested_gradients_equal_finite_differences() {
        let set = Nuisance {
            classes: 5,
            signal: 3,
            noise: 4,
            seed: 2,
        };
        let set = set.rows(40);
        let labels = Labels::from_numbers(&set.classes).unwrap();
        let supervision = Supervision::labels(labels.clone());
        let data = Dataset::new(&set.corpus, &supervision).unwrap();
        let space = TrainingSpace::new(&data).unwrap();
        let settings = InBatchTraining {
            rank: 4,
            nested: 1,
            batch: 20,
            ..InBatchTraining::default()
        };
        let supcon = SupCon {
            temperature: 0.3,
            ..SupCon::default()
        };
        let proxy_anchor = ProxyAnchor {
            alpha: 8.0,
            ..ProxyAnchor::default()
        };
        let mut random = Stream::new(1, "test", 0);
        let mut normal = |rows: usize, dim: usize| {
            let values = (0..rows * dim).map(|_| random.normal() as f32).collect();
            RowBuf::from_values(values, dim).unwrap()
        };
        let to_map = |_: &RowBuf| unreachable!("no map is asked for");
        let losses: [(&dyn PairLoss, usize); 2] = [(&supcon, 0), (&proxy_anchor, 5)];
        for (loss, count) in losses {
            let plan = settings.plan(&data, &labels, count > 0);
            let mut descent = BatchDescent::new(&settings, loss, plan, &space, 1.0, &to_map);
            assert_eq!(descent.prefixes, [4, 2, 1]);
            let mut draw = Stream::new(3, "test", 0);
            descent
                .batch
                .draw(&descent.plan, &descent.classes, &mut draw);
            let (queries, items) = (descent.queries, descent.items);
            let origin = descent.origin.clone();
            (descent.batch)
                .fetch(queries, items, origin.as_deref(), 1.0, &mut descent.rows)
                .unwrap();
            let (map, proxies) = (normal(4, space.dim()), normal(count, 4));
            let mut value = |map: &RowBuf, proxies: &RowBuf| {
                map_rows(descent.rows.rows(), map.rows(), &mut descent.embedded).unwrap();
                let loss = descent.pull(proxies, 1.0);
                let mut by_map = RowBuf::empty(1);
                let (by_row, rows) = (descent.by_row.rows(), descent.rows.rows());
                transposed_product(by_row, rows, &mut by_map).unwrap();
                (loss, by_map, descent.by_proxy.clone())
            };
            let (_, by_map, by_proxy) = value(&map, &proxies);
            let all = [(&map, &by_map), (&proxies, &by_proxy)];
            for (number, (moved, derivatives)) in all.into_iter().enumerate() {
                for place in 0..moved.values().len() {
                    let mut at = |by: f32| {
                        let mut both = [map.clone(), proxies.clone()];
                        both[number].values_mut()[place] += by;
                        value(&both[0], &both[1]).0
                    };
                    let slope = (at(1e-3) - at(-1e-3)) / 2e-3;
                    let found = f64::from(derivatives.values()[place]);
                    let tolerance = 0.01 * slope.abs().max(0.05);
                    assert!(
                        (slope - found).abs() < tolerance,
                        "{number} {place}: {slope} {found}"
                    );
                }
            }
        }
    }

    #[test]
    fn prefixes_are_halves() {
        assert_eq!(prefixes(64, 0), [64]);
        assert_eq!(prefixes(64, 16), [64, 32, 16]);
        assert_eq!(prefixes(20, 3), [20, 10, 5]);
        assert_eq!(prefixes(3, 1), [3, 1]);
        assert_eq!(prefixes(8, 9), [8]);
    }
}
