//! NCA: neighbourhood components analysis. Goldberger, Roweis, Hinton & Salakhutdinov, "Neighbourhood
//! components analysis", NIPS 2004.
//!
//! Every row picks another one with a probability that falls with its squared distance after the map,
//! p_ij = exp(−d_ij)/Σ_k exp(−d_ik); the chance that it picks one of its own class, summed over all rows
//! and divided by their number, is what grows. Departs from the paper: quasi-Newton steps over all rows
//! without any n × n matrix, or Adam over balanced batches for sets too large for that; data are scaled
//! to unit mean distance of relevant pairs, since a softmax over large distances sees one neighbour
//! alone and has no slope.

mod loss;

use crate::Result;
use crate::dataset::Dataset;
use crate::linalg::{RowBuf, map_rows, transposed_product};
use crate::model::{Map, Space};
use crate::optimize::Adam;
use crate::random::Stream;
use crate::supervision::SupervisionKind;
use crate::training::descent::{Descent, Outcome, Schedule, check_finite, descend};
use crate::training::full_batch::{FullBatch, LbfgsDescent, MappedLoss};
use crate::training::in_batch::{Batch, Plan};
use crate::training::parameters::{Bound, parameters, require, require_rank};
use crate::training::training_space::{Start, TrainingSpace};
use crate::training::warp::check_relevance;
use crate::training::{Method, Run};
use loss::NcaLoss;

parameters! {
    /// Neighbourhood components analysis: the chance that a row picks a neighbour of its own class.
    /// Learns from labels. Over all rows a step costs O(n²·rank) and memory is O(n·rank); with batches
    /// O(batch²·rank + batch·d·rank), and memory does not grow with the number of rows. Use it for
    /// classification by neighbours with few rows and low ranks.
    pub struct Nca {
        /// Dimension of a mapped vector.
        rank: usize = 32 => Bound::AtLeast(1.0),
        /// Rows in a batch; 0 takes all rows in every step.
        batch: usize = 0,
        /// Rows per class in a batch.
        per_class: usize = 8 => Bound::AtLeast(2.0),
        /// L2 regularisation of the map.
        lambda: f64 = 0.0 => Bound::AtLeast(0.0),
        /// Initial learning rate (Adam) if batches are drawn; it decays linearly to 0.
        rate: f64 = 0.01 => Bound::Above(0.0),
        /// Initialisation of the map: pca, lda (needs labels) or random.
        start: Start = Start::Pca,
        /// Stop when one full-batch step decreases the objective by less than this fraction.
        tolerance: f64 = 1e-5 => Bound::BelowOne,
    }
    shared {
        /// When it validates and stops.
        schedule: Schedule = Schedule::of(200),
    }
}

impl Method for Nca {
    const NAME: &'static str = "nca";
    const SUMMARY: &'static str =
        "Low-rank map that maximises the probability that a nearest neighbour has the same class.";
    const NEEDS: &'static [SupervisionKind] = &[SupervisionKind::Labels];
    const STARTS_FROM_MODEL: bool = true;
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("rank", &["16", "32"]), ("lambda", &["0", "1e-4", "1e-3"])];

    fn check(&self) -> Result<()> {
        require(self.batch != 1, "batch", "0 or at least 2", self.batch)?;
        Ok(())
    }

    /// Its neighbours are those by distance.
    fn own_spaces(&self) -> &'static [Space] {
        &[Space::SquaredL2]
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let settings = self;
        require_rank(settings.rank, data.dim())?;
        let labels = data.training_labels("nca")?;
        let relevance = data.relevance("nca")?;
        check_relevance(relevance)?;
        let space = TrainingSpace::for_run(data, run)?;
        let scale = space.pair_scale(relevance, run.seed)?;
        run.facts.insert("scale".into(), scale);
        let rank = settings.rank.min(space.dim());
        let start = space.start_of(run, "nca", (settings.start, rank, scale))?;
        let schedule = settings.schedule;
        if settings.batch == 0 {
            let whole = FullBatch::new(&space, space.items(), scale, rank);
            let point = whole.point(&start);
            let picks = NcaLoss::new(labels.of());
            let mut steady = LbfgsDescent::new(whole, picks, settings.lambda, settings.tolerance);
            let map = descend(schedule, &mut steady, point, run)?;
            // The loss is minus the mean chance.
            if let Some(value) = steady.value() {
                run.facts.insert("objective".into(), value);
            }
            return Ok(map);
        }
        let plan = Plan {
            relevance,
            labels: Some(labels),
            proxies: false,
            rows: settings.batch,
            per_class: settings.per_class,
            drawn: 0,
        };
        let mut training = Batches {
            settings,
            classes: plan.usable_classes(),
            of: labels.of(),
            plan,
            space: &space,
            centre: space.centre(),
            inverse: (1.0 / scale) as f32,
            batch: Batch::default(),
            rows: RowBuf::empty(space.dim()),
            mapped: RowBuf::empty(rank),
            gradient: RowBuf::empty(space.dim()),
        };
        let adam = Adam::new(start.values().len());
        descend(schedule, &mut training, (start, adam), run)
    }
}

/// Steps over drawn batches.
struct Batches<'a> {
    settings: &'a Nca,
    plan: Plan<'a>,
    /// Classes of at least two rows.
    classes: Vec<u32>,
    /// The class of each row.
    of: &'a [u32],
    space: &'a TrainingSpace<'a>,
    centre: Option<Vec<f32>>,
    inverse: f32,
    batch: Batch,
    rows: RowBuf,
    mapped: RowBuf,
    gradient: RowBuf,
}

impl Descent for Batches<'_> {
    type State = (RowBuf, Adam);

    fn step(
        &mut self,
        (map, adam): &mut (RowBuf, Adam),
        step: u64,
        remaining: f64,
        seed: u64,
    ) -> Result<Outcome> {
        let mut random = Stream::new(seed, "nca rows", step);
        self.batch.draw(&self.plan, &self.classes, &mut random);
        let (items, centre) = (self.space.items(), self.centre.as_deref());
        (self.batch).fetch(items, items, centre, self.inverse, &mut self.rows)?;
        map_rows(self.rows.rows(), map.rows(), &mut self.mapped)?;
        let drawn = self.batch.items.items().iter();
        let classes: Vec<u32> = drawn.map(|row| self.of[*row as usize]).collect();
        let (mut loss, slopes) = NcaLoss::new(&classes).evaluate(self.mapped.rows())?;
        transposed_product(slopes.rows(), self.rows.rows(), &mut self.gradient)?;
        let lambda = self.settings.lambda;
        for (g, w) in self.gradient.values_mut().iter_mut().zip(map.values()) {
            loss += lambda * f64::from(*w).powi(2);
            *g += 2.0 * lambda as f32 * w;
        }
        let rate = (self.settings.rate * remaining) as f32;
        adam.step(map.values_mut(), self.gradient.values(), rate);
        check_finite(map.values(), loss, step)?;
        Ok(Outcome {
            loss,
            ..Outcome::default()
        })
    }

    fn map(&self, (map, _): &(RowBuf, Adam)) -> Result<Map> {
        self.space.carry_back(map, self.inverse, true)
    }
}

#[cfg(test)]
mod oracle_tests;
