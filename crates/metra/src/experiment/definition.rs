//! What an experiment is: methods on a data set, under one protocol, with splits and a budget of trials.

use super::compare::DataFacts;
use super::holdout::{HoldOut, Parts};
use super::protocol::EvaluationSettings;
use super::study::{Study, combinations};
use crate::dataset::Dataset;
use crate::evaluate::Measure;
use crate::model::{Model, Space};
use crate::pipeline::registry;
use crate::random::Stream;
use crate::training::{FitCheckpoint, Recipe};
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// What is compared, on what, and how.
#[derive(Clone)]
pub struct Experiment<'a> {
    /// Its name.
    pub name: String,
    /// What it is about; may be empty.
    pub about: String,
    /// How to get it again: a command line.
    pub command: String,
    /// The data in words and digests.
    pub data: DataFacts,
    /// The data.
    pub dataset: &'a Dataset<'a>,
    /// Parts of every split, with the seed of its fits and of the protocol's draws.
    pub splits: Vec<(Parts, u64)>,
    /// Whether the test parts together hold every unit once.
    pub folds: bool,
    /// What is new in held-out parts.
    pub holdout: HoldOut,
    /// How parts are judged.
    pub judging: EvaluationSettings,
    /// The measure to choose by.
    pub criterion: Measure,
    /// Seed of all draws that are not a split's own.
    pub seed: u64,
    /// The methods.
    pub methods: Vec<ComparedMethod>,
    /// Name of the method to compare with; `None` for the better one on validation of those that
    /// learn nothing.
    pub base: Option<String>,
    /// Most settings that a method may try on each split.
    pub budget: usize,
    /// Whether training keeps a method's defaults unless other values of the grid are better by more
    /// than a standard error on the validation part.
    pub prefer_defaults: bool,
    /// Factor of successive halving, for learners in steps: all settings take a part of the steps,
    /// one in this many goes on with this many times more. `None` runs each to its end.
    pub halving: Option<u32>,
    /// What was said beforehand about the order of methods.
    pub claims: Vec<Claim>,
    /// Facts that learners report and that tables are to show.
    pub facts: Vec<String>,
    /// Names of units, for reports.
    pub names: &'a (dyn Fn(u64) -> String + Sync),
    /// The model whose map fits start from; see [`Experiment::start_from`].
    pub start: Option<&'a Model>,
    /// Where a training keeps its fits, to go on from there after it was ended; see
    /// [`Experiment::checkpoint_at`].
    pub checkpoint: Option<FitCheckpoint>,
}

/// One method of a comparison.
#[derive(Debug, Clone)]
pub struct ComparedMethod {
    /// Its name in the comparison.
    pub name: String,
    /// The learner.
    pub method: String,
    /// Settings that are fixed.
    pub settings: BTreeMap<String, String>,
    /// Preparation, unless the grid has some.
    pub recipe: Recipe,
    /// Values to try, for parameters and for `prepare`.
    pub grid: Vec<(String, Vec<String>)>,
    /// Scores to choose among; empty for those that the method's objective is about.
    pub spaces: Vec<Space>,
    /// What a publication states, by measure.
    pub published: BTreeMap<Measure, f64>,
}

/// Something said about the order of two methods.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Name of the method said to be better.
    pub better: String,
    /// Name of the method said to be worse.
    pub worse: String,
    /// By this measure.
    pub measure: Measure,
    /// Who says so.
    pub source: String,
    /// A sentence on what came of it; may be empty.
    pub remark: String,
}

impl<'a> Experiment<'a> {
    /// One method or several on a data set, under one protocol. Names, texts, claims and the budget of
    /// trials have defaults, which the fields can change.
    pub fn new(
        dataset: &'a Dataset<'a>,
        (splits, holdout): (Vec<(Parts, u64)>, HoldOut),
        (judging, criterion): (EvaluationSettings, Measure),
        methods: Vec<ComparedMethod>,
        seed: u64,
    ) -> Result<Self> {
        let mut methods = methods;
        for method in &mut methods {
            let entry = registry::find(&method.method)?;
            let dim = dataset.dim().min(dataset.queries().dim());
            let dim = method.recipe.most_dim(dim);
            entry.settle(&mut method.settings, &method.grid, dim)?;
            method.limit_grid(dim)?;
        }
        Ok(Experiment {
            name: String::new(),
            about: String::new(),
            command: String::new(),
            data: DataFacts {
                text: dataset.supervision().describe(),
                fingerprint: dataset.fingerprint()?.to_owned(),
                supervision: dataset.supervision_fingerprint(),
            },
            dataset,
            splits,
            folds: false,
            holdout,
            judging,
            criterion,
            seed,
            methods,
            base: None,
            budget: usize::MAX,
            prefer_defaults: false,
            halving: None,
            claims: Vec::new(),
            facts: Vec::new(),
            names: &|unit| unit.to_string(),
            start: None,
            checkpoint: None,
        })
    }

    /// An error if something cannot be compared as asked, before any time is spent on it.
    pub fn check(&self) -> Result<()> {
        if self.holdout == HoldOut::None {
            let expected = "one that leaves something to judge by";
            return Err(Error::parameter("holdout", expected, self.holdout));
        }
        if self.splits.is_empty() || self.methods.is_empty() {
            let what = "splits and methods to compare";
            return Err(Error::shape(what, "at least 1 of each", 0));
        }
        if self.budget == 0 {
            return Err(Error::parameter("trials", "at least 1", 0));
        }
        if self.halving.is_some_and(|factor| factor < 2) {
            let found = self.halving.unwrap_or(0);
            return Err(Error::parameter("halving", "at least 2", found));
        }
        let mut names = BTreeSet::new();
        for (number, method) in self.methods.iter().enumerate() {
            if !names.insert(method.name.as_str()) {
                let name = format!("{:?} twice", method.name);
                return Err(Error::parameter("names of methods", "different", name));
            }
            let study = self.study(number, 0);
            for tried in self.combinations(number) {
                let (settings, recipe) = study.with(&tried)?;
                let pipeline = study.pipeline_with(&settings, &recipe)?;
                pipeline.check_spaces(self.dataset)?;
                study.spaces_of(&pipeline)?;
            }
        }
        let known = |what: &str, name: &str| {
            if names.contains(name) {
                return Ok(());
            }
            let all: Vec<&str> = self.methods.iter().map(|m| m.name.as_str()).collect();
            let expected = format!("the name of a method ({})", all.join(", "));
            Err(Error::parameter(what, expected, format!("{name:?}")))
        };
        if let Some(base) = &self.base {
            known("base", base)?;
        } else if !self.methods.iter().any(|m| self.is_base(&m.method)) {
            let bases = self.dataset.baselines().join(" or ");
            let expected = format!("{bases} among the methods, or the name of another as base");
            return Err(Error::parameter("base", expected, "none of them"));
        }
        for claim in &self.claims {
            known("claim", &claim.better)?;
            known("claim", &claim.worse)?;
            if !self.judging.measures.contains(&claim.measure) {
                let expected = "one of those measured";
                return Err(Error::parameter(
                    "measure of a claim",
                    expected,
                    claim.measure,
                ));
            }
        }
        Ok(())
    }

    /// Whether others are compared with this method where no base is named.
    pub(super) fn is_base(&self, method: &str) -> bool {
        self.dataset.baselines().contains(&method)
    }

    /// The study of one method on one split.
    pub(super) fn study(&self, method: usize, split: usize) -> Study<'a> {
        self.study_of(&self.methods[method], split)
    }

    /// The study of any method on one split.
    pub(super) fn study_of(&self, method: &ComparedMethod, split: usize) -> Study<'a> {
        let seed = self.splits[split].1;
        Study {
            data: self.dataset,
            method: method.method.clone(),
            settings: method.settings.clone(),
            recipe: method.recipe.clone(),
            grid: method.grid.clone(),
            prefer_defaults: self.prefer_defaults,
            spaces: method.spaces.clone(),
            base: self.base.as_deref().and_then(|name| name.parse().ok()),
            judging: EvaluationSettings {
                seed,
                ..self.judging.clone()
            },
            criterion: self.criterion,
            seed,
            start: self.start,
            checkpoint: self.checkpoint.clone(),
        }
    }

    /// The checkpoint of this training, in a file that gets the state of the fit under way every so many
    /// seconds. `refit` says whether a model of all rows is fitted at the end.
    pub fn checkpoint_at(&self, path: &Path, every: f64, refit: bool) -> Result<FitCheckpoint> {
        let every = Duration::try_from_secs_f64(every)
            .map_err(|_| Error::parameter("checkpoint-every", "seconds, 0 or more", every))?;
        // All that the fits depend on.
        let methods = self.methods.iter().map(|method| {
            let ComparedMethod {
                method,
                settings,
                recipe,
                grid,
                spaces,
                ..
            } = method;
            format!("{method} {settings:?} {recipe} {grid:?} {spaces:?}")
        });
        let methods = methods.collect::<Vec<_>>().join("; ");
        let start = (self.start.map(|model| Ok(blake3::hash(&model.to_bytes()?)))).transpose()?;
        let key = format!(
            "{} {methods} {:?} refit: {refit} start: {start:?}",
            self.digest()?,
            self.base
        );
        FitCheckpoint::open(path, &key, every)
    }

    /// What a method tries: all of its grid, or as many of it as the budget allows, drawn by the
    /// seed and its name: the same on every split, and whatever it is compared with.
    pub(super) fn combinations(&self, method: usize) -> Vec<Vec<(String, String)>> {
        let method = &self.methods[method];
        let all = combinations(&method.grid);
        let mut stream = Stream::new(self.seed, &format!("budget of {}", method.name), 0);
        let kept = stream.choose(all.len() as u64, self.budget);
        kept.into_iter()
            .map(|at| all[at as usize].clone())
            .collect()
    }
}
