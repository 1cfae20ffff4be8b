//! LMNN: every row's nearest rows of its own class come near, and rows of other classes keep a margin
//! behind them. Weinberger & Saul, "Distance metric learning for large margin nearest neighbor
//! classification", JMLR 2009, eq. 11 to 13.
//!
//! The objective is (with d the squared distance after the map L, j a target of i, l of another class)
//!
//!   pull · Σ_ij d_ij + (1 − pull) · Σ_ijl max(0, margin + d_ij − d_il).
//!
//! Departs from the paper: L is moved by quasi-Newton steps instead of M by projected gradients, so that
//! a rank can be given; nothing of size n² is kept. Impostors are found by exact search in tiles every
//! few steps, with a little room for what comes near in between, and once more at the end: the search is
//! over when a full search brings no new ones. Where steps were lower only because impostors were not
//! known, they are taken back, and those impostors are known from then on. As many neighbours as the
//! largest class has rows make it global: all rows of a class are pulled together. Data are scaled to
//! unit mean squared distance of targets, so that the margin means the same everywhere.

mod attribute_space;
mod edges;
mod loss;

use crate::data::{Corpus, MemoryCorpus, RowId};
use crate::dataset::Dataset;
use crate::linalg::RowBuf;
use crate::model::{Map, Space};
use crate::optimize::LimitedMemory;
use crate::supervision::{Labels, SupervisionKind};
use crate::training::descent::{Descent, Outcome, Schedule, check_finite, descend};
use crate::training::full_batch::FullBatch;
use crate::training::pair_lists::PairLists;
use crate::training::parameters::{Bound, Choice, parameters, require_rank};
use crate::training::training_space::{Start, TrainingSpace};
use crate::training::warp::check_relevance;
use crate::training::{Method, Run};
use crate::{Error, Result};
use edges::{impostors, targets, united};
use loss::{Loss, Triplets};

#[cfg(test)]
mod oracle_tests;
#[cfg(test)]
mod tests;

/// What LMNN compares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Compared {
    /// The vectors as they are.
    Vectors,
    /// Scores of attributes, learned by `attributes`.
    Attributes,
    /// Scores of attributes, learned by `rank-svm`.
    RankSvm,
}

impl Choice for Compared {
    const ALL: &'static [(&'static str, Self)] = &[
        ("vectors", Compared::Vectors),
        ("attributes", Compared::Attributes),
        ("rank-svm", Compared::RankSvm),
    ];
}

parameters! {
    /// Large margin nearest neighbours: for classification by neighbours, with many rows a class.
    /// Learns from labels. A step costs O(n·d·rank + impostors·rank), and every few steps an exact
    /// search O(n²·rank); memory O(n·(rank + impostors)) and never n². Use it as the baseline that
    /// everybody knows; WARCA and FRML rank better where the top of a long ranking counts.
    pub struct Lmnn {
        /// Dimension of a mapped vector.
        rank: usize = 64 => Bound::AtLeast(1.0),
        /// Number of target neighbours per row: its nearest rows of the same class in the input
        /// space.
        neighbours: usize = 3 => Bound::AtLeast(1.0),
        /// Weight of the pull term; the push term has weight 1 − pull.
        pull: f64 = 0.5 => Bound::BelowOne,
        /// How far behind targets impostors must be, where targets are at mean squared distance 1 at
        /// the start.
        margin: f64 = 0.3 => Bound::Above(0.0),
        /// Maximum number of impostors kept per row, nearest first; the fact `left_out` counts the
        /// others.
        impostors: usize = 300 => Bound::AtLeast(1.0),
        /// Scale the data to unit mean squared distance of targets.
        scaled: bool = true,
        /// Input space: vectors, or the scores of attributes that are learned first from orderings
        /// of classes.
        on: Compared = Compared::Vectors,
        /// `lambda` of the attributes' learner, where `on` is not vectors.
        attribute_lambda: f64 = 3e-3 => Bound::Above(0.0),
        /// Initialisation of the map: pca, lda (needs labels) or random.
        start: Start = Start::Pca,
        /// Steps between two searches for impostors.
        refresh: u64 = 10 => Bound::AtLeast(1.0),
        /// Stop when one step decreases the objective by less than this fraction.
        tolerance: f64 = 1e-4 => Bound::BelowOne,
    }
    shared {
        /// When it validates and stops.
        schedule: Schedule = Schedule::of(200),
    }
}

impl Method for Lmnn {
    const NAME: &'static str = "lmnn";
    const SUMMARY: &'static str =
        "Low-rank Mahalanobis distance with a margin around the nearest rows of a class.";
    const NEEDS: &'static [SupervisionKind] = &[SupervisionKind::Labels];
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("margin", &["0.1", "0.3", "1"]), ("pull", &["0.2", "0.5"])];

    /// Its neighbours are those by distance.
    fn own_spaces(&self) -> &'static [Space] {
        &[Space::SquaredL2]
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        match self.scorer()? {
            None => self.fit_on_vectors(data, run),
            Some(scorer) => self.fit_on_scores(scorer.as_ref(), data, run),
        }
    }
}

impl Lmnn {
    fn fit_on_vectors(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let settings = self;
        require_rank(settings.rank, data.dim())?;
        let labels = data.training_labels("lmnn")?;
        check_relevance(data.relevance("lmnn")?)?;
        let space = TrainingSpace::new(data)?;
        let rank = settings.rank.min(space.dim());
        let start = space.start("lmnn", settings.start, rank, run.seed)?;
        let targets = targets(space.items(), labels, settings.neighbours)?;
        run.check_stop()?;
        let scale = if settings.scaled {
            mean_length(space.items(), &targets)?
        } else {
            1.0
        };
        run.facts.insert("scale".into(), scale);
        let mut training = Training {
            settings,
            labels,
            whole: FullBatch::new(&space, space.items(), scale, rank),
            triplets: Triplets::new(
                Loss {
                    pull: settings.pull,
                    margin: settings.margin,
                },
                targets,
            ),
            steps: None,
            held: None,
            // The first steps change most, and impostors that are not known let a map collapse.
            range: 1,
            since: 0,
            found: 0,
            left_out: 0,
        };
        let point = training.whole.point(&start);
        let schedule = settings.schedule;
        let map = descend(schedule, &mut training, point, run)?;
        if let Some(steps) = &training.steps {
            run.facts.insert("objective".into(), steps.value());
        }
        run.facts.insert("impostors".into(), training.found as f64);
        run.facts
            .insert("left_out".into(), training.left_out as f64);
        Ok(map)
    }
}

/// Mean length of the differences of targets, or of the rows where all targets coincide.
fn mean_length(corpus: &dyn Corpus, targets: &PairLists) -> Result<f64> {
    let (mut left, mut right) = (RowBuf::empty(1), RowBuf::empty(1));
    let mut total = 0.0;
    let pairs: Vec<(RowId, RowId)> = targets.pairs().collect();
    for pairs in pairs.chunks(512) {
        let (from, to): (Vec<RowId>, Vec<RowId>) = pairs.iter().copied().unzip();
        corpus.gather(&from, &mut left)?;
        corpus.gather(&to, &mut right)?;
        for (a, b) in left.values().iter().zip(right.values()) {
            total += (f64::from(*a) - f64::from(*b)).powi(2);
        }
    }
    let mean = (total / pairs.len() as f64).sqrt();
    if mean.is_finite() && mean > 0.0 {
        return Ok(mean);
    }
    let spread = crate::execute::spread(corpus)?;
    let deviation = spread.deviation.iter().map(|d| d * d).sum::<f64>().sqrt();
    if deviation.is_finite() && deviation > 0.0 {
        return Ok(deviation);
    }
    Err(Error::Data(
        "all vectors are equal: nothing can be learned".into(),
    ))
}

struct Training<'a> {
    settings: &'a Lmnn,
    labels: &'a Labels,
    whole: FullBatch<'a>,
    triplets: Triplets,
    steps: Option<LimitedMemory>,
    /// The lowest point that a search has been made at, with the objective there.
    held: Option<(Vec<f64>, f64)>,
    /// Steps until the next search, and since the last one.
    range: u64,
    since: u64,
    /// Impostors of the search at the point held, and how many more there were.
    found: usize,
    left_out: u64,
}

/// Moves that shape a step.
const REMEMBERED: usize = 12;
/// Impostors this much of a margin too far are kept too, since the next steps may bring them in.
const ROOM: f32 = 0.25;

impl Descent for Training<'_> {
    /// L, row after row.
    type State = Vec<f64>;
    // What the steps before it found shapes the next one.
    const RESUMES: bool = false;

    fn step(&mut self, point: &mut Vec<f64>, step: u64, _: f64, _: u64) -> Result<Outcome> {
        if self.steps.is_none() || self.since >= self.range {
            self.search(point)?;
        }
        let Some(steps) = &mut self.steps else {
            return Ok(Outcome::default());
        };
        let (whole, triplets) = (&self.whole, &self.triplets);
        let mut function =
            |point: &[f64], gradient: &mut [f64]| whole.evaluate(triplets, point, gradient);
        let stepped = steps.step(point, &mut function)?;
        self.since += 1;
        let value = steps.value();
        check_finite(&[], value, step)?;
        let tolerance = self.settings.tolerance * value.abs();
        let stuck = stepped.is_none_or(|s| s.fall <= tolerance);
        let mut finished = false;
        if stuck || step + 1 == self.settings.schedule.steps {
            // No farther with the impostors known: are there new ones?
            self.search(point)?;
            finished = stuck && self.value() - value <= tolerance;
        }
        Ok(Outcome {
            loss: value / self.whole.rows() as f64,
            finished,
            ..Outcome::default()
        })
    }

    fn map(&self, point: &Vec<f64>) -> Result<Map> {
        self.whole.carry_back(point)
    }
}

impl Training<'_> {
    fn value(&self) -> f64 {
        self.steps.as_ref().map_or(0.0, LimitedMemory::value)
    }

    /// Find the impostors of the map as it is, and the objective with them. Where that is higher than at
    /// the last search, go back there and keep the new impostors too: each time more of them are known,
    /// so that this comes to an end.
    fn search(&mut self, point: &mut Vec<f64>) -> Result<()> {
        let mapped = MemoryCorpus::new(self.whole.mapped(point)?)?;
        let margin = self.settings.margin as f32;
        let reach: Vec<Option<f32>> = (self.triplets.reach(mapped.rows()).into_iter())
            .map(|reach| reach.map(|reach| reach + margin * (1.0 + ROOM)))
            .collect();
        let (found, left_out) = impostors(&mapped, self.labels, &reach, self.settings.impostors)?;
        let count = found.len();
        let known = self.triplets.set_impostors(found);
        self.refresh(point)?;
        match &self.held {
            Some((held, value)) if self.value() > *value => {
                point.clone_from(held);
                let all = united(&known, self.triplets.impostors());
                self.triplets.set_impostors(all);
                self.refresh(point)?;
                self.range = (self.range / 2).max(1);
            }
            _ => {
                (self.found, self.left_out) = (count, left_out);
                self.range = (2 * self.range).min(self.settings.refresh);
            }
        }
        self.held = Some((point.clone(), self.value()));
        self.since = 0;
        Ok(())
    }

    /// The objective at a point with the impostors known now.
    fn refresh(&mut self, point: &[f64]) -> Result<()> {
        let (whole, triplets) = (&self.whole, &self.triplets);
        let mut function =
            |point: &[f64], gradient: &mut [f64]| whole.evaluate(triplets, point, gradient);
        match &mut self.steps {
            Some(steps) => steps.refresh(point, &mut function),
            None => {
                self.steps = Some(LimitedMemory::begin(point, REMEMBERED, &mut function)?);
                Ok(())
            }
        }
    }
}
