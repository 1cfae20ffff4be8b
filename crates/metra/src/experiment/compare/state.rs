//! The state of a comparison: finished and pending trials of every method on every split, and their
//! keys in the log.

use super::log::{Log, Record};
use super::results::{Cost, Costs};
use super::schedule::{Best, Next, Stage, TrialSchedule, Tried};
use super::summary;
use crate::experiment::definition::Experiment;
use crate::experiment::protocol::Protocol;
use crate::experiment::study::Chosen;
use crate::pipeline::registry;
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Why a method has no result yet.
const UNFINISHED: &str = "not finished";

/// One piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Job {
    pub(super) split: usize,
    pub(super) method: usize,
    stage: Stage,
}

/// What a thread is given.
pub(super) struct Task {
    pub(super) job: Job,
    pub(super) what: String,
    pub(super) work: Work,
}

pub(super) enum Work {
    Trial {
        tried: Vec<(String, String)>,
        last_step: Option<u64>,
    },
    Judge(Chosen),
}

/// What is known of every method on every split.
pub(super) struct State {
    methods: usize,
    schedules: Vec<TrialSchedule>,
    /// Work that can be begun.
    pub(super) open: BTreeSet<Job>,
    /// Trials and fits that are done.
    pub(super) known: usize,
}

impl State {
    pub(super) fn new(experiment: &Experiment<'_>, log: &Log) -> Result<Self> {
        let methods = experiment.methods.len();
        let mut schedules = Vec::new();
        for split in 0..experiment.splits.len() {
            for (number, method) in experiment.methods.iter().enumerate() {
                let combinations = experiment.combinations(number).len();
                let learner = registry::find(&method.method)?.build(&method.settings)?;
                let steps = learner
                    .parameters()
                    .get("steps")
                    .and_then(|s| s.parse().ok());
                schedules.push(TrialSchedule::new(combinations, steps, experiment.halving));
                debug_assert_eq!(schedules.len(), split * methods + number + 1);
            }
        }
        let mut state = State {
            methods,
            schedules,
            open: BTreeSet::new(),
            known: 0,
        };
        for split in 0..experiment.splits.len() {
            for method in 0..methods {
                state.take_known(experiment, log, split, method)?;
            }
        }
        Ok(state)
    }

    pub(super) fn schedule(&self, split: usize, method: usize) -> &TrialSchedule {
        &self.schedules[split * self.methods + method]
    }

    pub(super) fn total(&self) -> usize {
        self.schedules.iter().map(TrialSchedule::total).sum()
    }

    /// Take from the log what it has, until something is open.
    fn take_known(
        &mut self,
        experiment: &Experiment<'_>,
        log: &Log,
        split: usize,
        method: usize,
    ) -> Result<()> {
        let combinations = experiment.combinations(method);
        loop {
            let schedule = &mut self.schedules[split * self.methods + method];
            match schedule.next() {
                Next::Trials(stages) => {
                    let mut any = false;
                    for stage in stages {
                        let Stage::Trial { rung, combination } = stage else {
                            continue;
                        };
                        let last_step = schedule.last_step(rung);
                        let tried = &combinations[combination];
                        let key = experiment.trial_key(split, method, tried, last_step)?;
                        if let Some(found) = log.find(&key).and_then(tried_of) {
                            schedule.record(rung, combination, found);
                            self.known += 1;
                            any = true;
                        } else {
                            self.open.insert(Job {
                                split,
                                method,
                                stage,
                            });
                        }
                    }
                    if !any {
                        return Ok(());
                    }
                }
                Next::Judge(combination, best) => {
                    let chosen = experiment.chosen(method, combination, best)?;
                    let stage = Stage::Judge;
                    match log.find(&experiment.judge_key(split, method, &chosen)?) {
                        Some(_) => self.known += 1,
                        None => {
                            self.open.insert(Job {
                                split,
                                method,
                                stage,
                            });
                        }
                    }
                    return Ok(());
                }
                // There will be no fit.
                Next::Failed(_) => {
                    self.known += 1;
                    return Ok(());
                }
            }
        }
    }

    /// A job's outcome is in the log: see what it makes possible.
    pub(super) fn update(
        &mut self,
        experiment: &Experiment<'_>,
        log: &Log,
        job: Job,
    ) -> Result<()> {
        let Job { split, method, .. } = job;
        match job.stage {
            Stage::Judge => self.known += 1,
            Stage::Trial { rung, combination } => {
                let schedule = &mut self.schedules[split * self.methods + method];
                let last_step = schedule.last_step(rung);
                let tried = &experiment.combinations(method)[combination];
                let key = experiment.trial_key(split, method, tried, last_step)?;
                if let Some(found) = log.find(&key).and_then(tried_of) {
                    schedule.record(rung, combination, found);
                }
                self.known += 1;
                // The rest of the rung is open or on its way; only its end opens anything.
                if !matches!(schedule.next(), Next::Trials(stages) if stages.iter().any(|stage| {
                    matches!(stage, Stage::Trial { rung: other, .. } if *other == rung)
                })) {
                    self.take_known(experiment, log, split, method)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn task(&self, experiment: &Experiment<'_>, job: Job) -> Result<Task> {
        let Job {
            split,
            method,
            stage,
        } = job;
        let schedule = self.schedule(split, method);
        let name = &experiment.methods[method].name;
        let place = match experiment.splits.len() {
            1 => String::new(),
            splits => format!(" {}/{splits}", split + 1),
        };
        let (detail, work) = match stage {
            Stage::Trial { rung, combination } => {
                let tried = experiment.combinations(method).swap_remove(combination);
                let text: Vec<String> = tried.iter().map(|(n, v)| format!("{n}={v}")).collect();
                let last_step = schedule.last_step(rung);
                let steps = last_step.map_or(String::new(), |s| format!(" ({s} steps)"));
                let work = Work::Trial { tried, last_step };
                (format!("{}{steps}", text.join(" ")), work)
            }
            Stage::Judge => match schedule.next() {
                Next::Judge(combination, best) => {
                    let chosen = experiment.chosen(method, combination, best)?;
                    ("test".into(), Work::Judge(chosen))
                }
                _ => return Err(Error::Data("a fit was due before its trials".into())),
            },
        };
        Ok(Task {
            job,
            what: format!("{name}{place} {detail}").trim_end().to_owned(),
            work,
        })
    }

    /// Whether nothing of a split is left to do.
    pub(super) fn is_finished(&self, split: usize) -> bool {
        !self.open.iter().any(|job| job.split == split)
    }

    /// Everything that the summary needs.
    pub(super) fn finish<'l>(
        &self,
        experiment: &Experiment<'_>,
        log: &'l Log,
    ) -> Result<Vec<Vec<summary::Cell<'l>>>> {
        (0..self.methods)
            .map(|method| {
                (0..experiment.splits.len())
                    .map(|split| {
                        let schedule = self.schedule(split, method);
                        let trials = schedule.trials();
                        Ok(match schedule.next() {
                            Next::Judge(combination, best) => {
                                let chosen = experiment.chosen(method, combination, best)?;
                                let key = experiment.judge_key(split, method, &chosen)?;
                                let tried =
                                    experiment.combinations(method).swap_remove(combination);
                                let judged = log.find(&key);
                                summary::Cell {
                                    trials,
                                    chosen: Some((tried.into_iter().collect(), chosen)),
                                    failure: judged.is_none().then(|| UNFINISHED.into()),
                                    judged,
                                }
                            }
                            Next::Failed(why) => summary::Cell {
                                trials,
                                chosen: None,
                                judged: None,
                                failure: Some(why),
                            },
                            Next::Trials(_) => summary::Cell {
                                trials,
                                chosen: None,
                                judged: None,
                                failure: Some(UNFINISHED.into()),
                            },
                        })
                    })
                    .collect()
            })
            .collect()
    }
}

impl Experiment<'_> {
    /// Names of the methods whose cost alone the log does not have, of those that were fitted.
    pub fn without_cost(&self, log: &Log) -> Result<Vec<String>> {
        let state = State::new(self, log)?;
        let mut names = Vec::new();
        for (number, method) in self.methods.iter().enumerate() {
            if let Next::Judge(combination, best) = state.schedule(0, number).next() {
                let key = self.judge_key(0, number, &self.chosen(number, combination, best)?)?;
                if log.cost(&key).is_none() {
                    names.push(method.name.clone());
                }
            }
        }
        Ok(names)
    }

    /// What the comparison cost, from the log.
    pub fn costs(&self, log: &Log, threads: usize) -> Result<Costs> {
        let state = State::new(self, log)?;
        let spent = log.cpu_seconds();
        let mut lines = BTreeMap::new();
        let mut products = Vec::new();
        for (number, method) in self.methods.iter().enumerate() {
            let mut cost = Cost {
                cpu_seconds: spent.get(method.name.as_str()).copied().unwrap_or(0.0),
                ..Cost::default()
            };
            if let Next::Judge(combination, best) = state.schedule(0, number).next() {
                let key = self.judge_key(0, number, &self.chosen(number, combination, best)?)?;
                if let Some(Record::Judged { fit_seconds, .. }) = log.find(&key) {
                    cost.fit_cpu_seconds = *fit_seconds;
                }
                if let Some(Record::Cost {
                    fit_cpu_seconds,
                    fit_peak_bytes,
                    product_seconds,
                    ..
                }) = log.cost(&key)
                {
                    cost.fit_cpu_seconds = *fit_cpu_seconds;
                    cost.fit_peak_bytes = *fit_peak_bytes;
                    products.push(*product_seconds);
                }
            }
            lines.insert(method.name.clone(), cost);
        }
        products.sort_by(f64::total_cmp);
        Ok(Costs {
            lines,
            product_seconds: products.get(products.len() / 2).copied().unwrap_or(0.0),
            threads,
            wall_seconds: log.wall_seconds(),
            cpu_seconds: spent.values().sum(),
        })
    }
}

impl Experiment<'_> {
    /// What a combination and the outcome of its trial say for the fit.
    pub(super) fn chosen(&self, method: usize, combination: usize, best: Best) -> Result<Chosen> {
        let tried = self.combinations(method).swap_remove(combination);
        let (settings, recipe) = self.study(method, 0).with(&tried)?;
        Ok(Chosen {
            settings,
            recipe,
            space: best.space,
            last_step: best.last_step,
            value: Some(best.value),
            trials: Vec::new(),
            values: Vec::new(),
        })
    }

    pub(super) fn trial_key(
        &self,
        split: usize,
        method: usize,
        tried: &[(String, String)],
        last_step: Option<u64>,
    ) -> Result<String> {
        let study = self.study(method, split);
        let (settings, recipe) = study.with(tried)?;
        let spaces: Vec<String> = study.spaces.iter().map(ToString::to_string).collect();
        Ok(digest(&(
            "trial",
            split,
            study.method,
            settings,
            recipe.to_string(),
            spaces,
            last_step,
        )))
    }

    pub(super) fn judge_key(&self, split: usize, method: usize, chosen: &Chosen) -> Result<String> {
        Ok(digest(&(
            "judged",
            split,
            &self.methods[method].method,
            &chosen.settings,
            chosen.recipe.to_string(),
            chosen.space.to_string(),
            chosen.last_step,
        )))
    }

    /// Digest of what all records of a log have in common.
    pub(in crate::experiment) fn digest(&self) -> Result<String> {
        let judging = &self.judging;
        let mut protocol = judging.protocol.to_string();
        if let Some(rerank) = judging.rerank {
            protocol.push_str(&format!(" re-ranked by {rerank}"));
        }
        if judging.protocol == Protocol::Judged {
            protocol.push_str(&format!(", chosen for new items: {}", judging.new_items));
        }
        let measures: Vec<String> = judging.measures.iter().map(ToString::to_string).collect();
        let splits: Vec<_> = (self.splits.iter())
            .map(|(parts, seed)| (&parts.train, &parts.validation, &parts.test, seed))
            .collect();
        Ok(digest(&(
            env!("CARGO_PKG_VERSION"),
            (self.dataset.vectors_key()?, &self.data.supervision),
            splits,
            (protocol, measures),
            format!("{:?} {:?} {:?}", judging.ties, judging.gain, judging.empty),
            self.criterion.to_string(),
            self.seed,
        )))
    }
}

fn tried_of(record: &Record) -> Option<Tried> {
    let Record::Trial {
        value,
        score,
        best_step,
        failure,
        ..
    } = record
    else {
        return None;
    };
    let space = score.as_ref().and_then(|score| score.parse().ok());
    let best = value.zip(space).map(|(value, space)| Best {
        value,
        space,
        last_step: *best_step,
    });
    let why = || {
        failure
            .clone()
            .unwrap_or_else(|| "its value is not finite".into())
    };
    Some(Tried {
        outcome: best.ok_or_else(why),
    })
}

fn digest(value: &impl serde::Serialize) -> String {
    // Maps are sorted and floats never occur in keys, so the text is canonical.
    let text = serde_json::to_string(value).unwrap_or_default();
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}
