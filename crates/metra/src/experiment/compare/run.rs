//! Working through a comparison: one thread hands out work and writes the log, the others fit.
//!
//! Every fit runs on one thread of its own, so that its CPU time can be told from the others', and
//! as many run at once as there are threads.

use super::log::{Log, Reached, Record};
use super::results::Results;
use super::schedule::Next;
use super::state::{Job, State, Task, Work};
use super::summary::{self, RESAMPLES};
use crate::experiment::cost::{peak_memory, product_seconds, timed_on_thread};
use crate::experiment::definition::Experiment;
use crate::experiment::ranked::Ranking;
use crate::experiment::study::{Chosen, Study};
use crate::model::{Model, Space};
use crate::pipeline::Fitted;
use crate::training::{Observer, Progress};
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// What happens, for whoever watches.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// There is this much to do, of which some is known from the log.
    Begin {
        /// Trials and fits.
        total: usize,
        /// Known already.
        known: usize,
    },
    /// A thread took up something.
    Started {
        /// The thread.
        worker: usize,
        /// What.
        what: String,
    },
    /// A learner in steps goes on.
    Step {
        /// The thread.
        worker: usize,
        /// Steps done.
        step: u64,
        /// Steps planned.
        steps: u64,
    },
    /// Something is done.
    Done {
        /// The thread.
        worker: usize,
        /// What.
        what: String,
        /// Value of the criterion, or why there is none.
        outcome: std::result::Result<f64, String>,
        /// Whether it was judged on the test part, and not on the validation part.
        judged: bool,
    },
}

/// What a thread tells.
enum Message {
    Step(u64, u64),
    Done(Box<Outcome>),
}

struct Outcome {
    job: Job,
    what: String,
    record: Result<Record>,
}

impl Experiment<'_> {
    /// Do what the log does not have, with this many threads, and sum up. A stop leaves the log
    /// complete up to the trials that were on their way.
    pub fn run(
        &self,
        log: &mut Log,
        threads: usize,
        follow: &mut dyn FnMut(Event),
    ) -> Result<Results> {
        self.check()?;
        log.begin(&self.name, self.digest()?)?;
        let began = Instant::now();
        let mut state = State::new(self, log)?;
        follow(Event::Begin {
            total: state.total(),
            known: state.known,
        });
        if !state.open.is_empty() {
            let worked = self.work(&mut state, log, threads.max(1), follow);
            log.write(Record::Run {
                wall_seconds: began.elapsed().as_secs_f64(),
                threads: threads.max(1),
            })?;
            worked?;
        }
        summary::sum_up(self, &state.finish(self, log)?, RESAMPLES)
    }

    fn work(
        &self,
        state: &mut State,
        log: &mut Log,
        threads: usize,
        follow: &mut dyn FnMut(Event),
    ) -> Result<()> {
        std::thread::scope(|scope| {
            let (tell, messages) = channel::<(usize, Message)>();
            let mut workers: Vec<Sender<Task>> = Vec::new();
            for worker in 0..threads {
                let (sender, tasks) = channel::<Task>();
                let tell = tell.clone();
                workers.push(sender);
                scope.spawn(move || self.serve(worker, &tasks, &tell));
            }
            drop(tell);
            let mut stopped = false;
            let mut idle: BTreeSet<usize> = (0..threads).collect();
            loop {
                while let (Some(worker), Some(job), false) = (
                    idle.first().copied(),
                    state.open.first().copied(),
                    stopped || self.dataset.is_stopped(),
                ) {
                    idle.remove(&worker);
                    state.open.remove(&job);
                    let task = state.task(self, job)?;
                    let what = task.what.clone();
                    follow(Event::Started { worker, what });
                    if workers[worker].send(task).is_err() {
                        return Err(Error::Data("a thread of the comparison ended early".into()));
                    }
                }
                if idle.len() == threads {
                    break;
                }
                // All senders live in threads that still work, so this waits for one of them.
                let Ok((worker, message)) = messages.recv() else {
                    return Err(Error::Data("a thread of the comparison ended early".into()));
                };
                match message {
                    Message::Step(step, steps) => follow(Event::Step {
                        worker,
                        step,
                        steps,
                    }),
                    Message::Done(outcome) => {
                        idle.insert(worker);
                        match outcome.record {
                            Ok(record) => {
                                follow(done(worker, outcome.what, &record, self));
                                log.write(record)?;
                                state.update(self, log, outcome.job)?;
                            }
                            Err(Error::Interrupted) => stopped = true,
                            Err(error) => return Err(error),
                        }
                    }
                }
            }
            if (stopped || self.dataset.is_stopped()) && !state.open.is_empty() {
                return Err(Error::Interrupted);
            }
            Ok(())
        })
    }

    /// What a thread does until there is nothing more to do.
    fn serve(&self, worker: usize, tasks: &Receiver<Task>, tell: &Sender<(usize, Message)>) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        for task in tasks {
            let record = match &pool {
                Ok(pool) => pool.install(|| self.execute(worker, &task, tell)),
                Err(error) => Err(Error::Data(format!("a thread cannot be started: {error}"))),
            };
            let outcome = Outcome {
                job: task.job,
                what: task.what,
                record,
            };
            if tell
                .send((worker, Message::Done(Box::new(outcome))))
                .is_err()
            {
                break;
            }
        }
    }

    fn execute(
        &self,
        worker: usize,
        task: &Task,
        tell: &Sender<(usize, Message)>,
    ) -> Result<Record> {
        let Job { split, method, .. } = task.job;
        let mut observer = Forward {
            worker,
            tell,
            last: Instant::now(),
        };
        let parts = &self.splits[split].0;
        let study = self.study(method, split);
        let line = self.methods[method].name.clone();
        match &task.work {
            Work::Trial { tried, last_step } => {
                let held = (parts.train.as_slice(), parts.validation.as_slice());
                let criterion = study.validation_criterion(held)?;
                let (chosen, seconds) = timed_on_thread(|| {
                    study.trial(tried, held, &criterion, *last_step, &mut observer)
                });
                let (chosen, failure) = fallible(chosen)?;
                let chosen = chosen.filter(|c| c.value.is_some_and(f64::is_finite));
                Ok(Record::Trial {
                    key: self.trial_key(split, method, tried, *last_step)?,
                    line,
                    split,
                    settings: tried.iter().cloned().collect(),
                    last_step: *last_step,
                    value: chosen.as_ref().and_then(|c| c.value),
                    score: chosen.as_ref().map(|c| c.space.to_string()),
                    best_step: chosen.as_ref().and_then(|c| c.last_step),
                    failure,
                    seconds,
                })
            }
            Work::Judge(chosen) => {
                let trained = parts.learned_from();
                let (fitted, fit_seconds) =
                    timed_on_thread(|| study.fit(&trained, chosen, &mut observer));
                let (judged, more) = timed_on_thread(|| {
                    fitted.and_then(|Fitted { chain, facts, .. }| {
                        Ok((study.scores(&chain, &parts.test, &trained)?, facts))
                    })
                });
                let (judged, failure) = fallible(judged)?;
                let (scores, facts) = judged.unzip();
                Ok(Record::Judged {
                    key: self.judge_key(split, method, chosen)?,
                    line,
                    split,
                    scores: scores.as_ref().map(Reached::new),
                    facts: facts.unwrap_or_default(),
                    failure,
                    seconds: fit_seconds + more,
                    fit_seconds,
                })
            }
        }
    }

    /// Fit one method alone with the settings that the log says were chosen on the first split, and
    /// tell what it cost: a record for the log, or `None` where there is nothing to fit. Memory is
    /// that of the process, so a process of its own tells most.
    pub fn measure_cost(&self, log: &Log, method: &str) -> Result<Option<Record>> {
        let Some((number, chosen)) = self.chosen_on(log, method, 0)? else {
            return Ok(None);
        };
        let key = self.judge_key(0, number, &chosen)?;
        let study = self.study(number, 0);
        let trained = self.splits[0].0.learned_from();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let pool = pool.map_err(|error| Error::Data(error.to_string()))?;
        let ((fitted, fit_cpu_seconds), fit_peak_bytes) = peak_memory(|| {
            pool.install(|| timed_on_thread(|| study.fit(&trained, &chosen, &mut Unheard)))
        });
        let (_, failure) = fallible(fitted)?;
        Ok(failure.is_none().then(|| Record::Cost {
            key,
            line: method.to_owned(),
            fit_cpu_seconds,
            fit_peak_bytes,
            product_seconds: product_seconds(),
        }))
    }

    /// The `k` answers that a method gave to every query of a split's test part. The log keeps measures
    /// and not answers, so the method is fitted again as it was judged: with the settings that the log
    /// says were chosen there, on the same units, with the same seed. `None` where it failed.
    pub fn ranked(
        &self,
        log: &Log,
        method: &str,
        split: usize,
        k: usize,
    ) -> Result<Option<Vec<Ranking>>> {
        let Some(again) = self.fit_again(log, method, split)? else {
            return Ok(None);
        };
        let (study, test) = (&again.study, &self.splits[split].0.test);
        let chain = &again.fitted.chain;
        let ranked = (self.dataset).ranked(chain, test, &again.trained, &study.judging, k);
        Ok(fallible(ranked)?.0)
    }

    /// The model of a method as it was evaluated on a split, with what its test part says against a
    /// baseline. It is fitted again as [`Experiment::ranked`] does. `None` where the method failed.
    pub fn model_of(
        &self,
        log: &Log,
        method: &str,
        base: Space,
        split: usize,
    ) -> Result<Option<Model>> {
        let Some(again) = self.fit_again(log, method, split)? else {
            return Ok(None);
        };
        let (study, test) = (&again.study, &self.splits[split].0.test);
        let verdicts = study.judge_test(&again.fitted.chain, base, test, &again.trained)?;
        let held_out = Some(self.held_out(&verdicts));
        let model = study.model(&again.chosen, again.fitted, &again.trained, held_out)?;
        Ok(Some(model))
    }

    /// Fit a method as it was judged on a split; `None` where it failed.
    fn fit_again(&self, log: &Log, method: &str, split: usize) -> Result<Option<FittedAgain<'_>>> {
        let Some((number, chosen)) = self.chosen_on(log, method, split)? else {
            return Ok(None);
        };
        let study = self.study(number, split);
        let trained = self.splits[split].0.learned_from();
        let (fitted, _) = fallible(study.fit(&trained, &chosen, &mut Unheard))?;
        Ok(fitted.map(|fitted| FittedAgain {
            study,
            chosen,
            trained,
            fitted,
        }))
    }

    /// The results of what the log has, of a comparison that is not finished. Splits on which every
    /// method is finished are summed up, or else the first one, where a method that is not finished
    /// counts as failed.
    pub fn results_so_far(&self, log: &Log) -> Result<Results> {
        let state = State::new(self, log)?;
        let finished = |split: &usize| state.is_finished(*split);
        let splits = (0..self.splits.len()).take_while(finished).count();
        let part = Experiment {
            splits: self.splits[..splits.max(1)].to_vec(),
            ..self.clone()
        };
        summary::sum_up(
            &part,
            &State::new(&part, log)?.finish(&part, log)?,
            RESAMPLES,
        )
    }

    /// The method's number and what the log says was chosen for it on a split; `None` where all of its
    /// trials failed.
    fn chosen_on(&self, log: &Log, method: &str, split: usize) -> Result<Option<(usize, Chosen)>> {
        let number = self.methods.iter().position(|m| m.name == method);
        let number = number.ok_or_else(|| {
            let expected = "the name of a method of this comparison";
            Error::parameter("method", expected, format!("{method:?}"))
        })?;
        if split >= self.splits.len() {
            let expected = format!("below {}", self.splits.len());
            return Err(Error::parameter("split", expected, split));
        }
        let state = State::new(self, log)?;
        Ok(match state.schedule(split, number).next() {
            Next::Judge(combination, best) => {
                Some((number, self.chosen(number, combination, best)?))
            }
            _ => None,
        })
    }
}

/// A method fitted as it was judged.
struct FittedAgain<'a> {
    study: Study<'a>,
    chosen: Chosen,
    trained: Vec<u64>,
    fitted: Fitted,
}

/// Tells nobody of steps.
struct Unheard;

impl Observer for Unheard {
    fn progress(&mut self, _: &Progress) {}
}

/// Tells of steps, a few times a second.
struct Forward<'a> {
    worker: usize,
    tell: &'a Sender<(usize, Message)>,
    last: Instant,
}

impl Observer for Forward<'_> {
    fn progress(&mut self, progress: &Progress) {
        if self.last.elapsed() > Duration::from_millis(250) {
            self.last = Instant::now();
            let message = Message::Step(progress.step, progress.steps);
            // Nobody listens any more only where the whole comparison ends.
            let _ = self.tell.send((self.worker, message));
        }
    }
}

/// A failure in words, except a stop, which fails the whole comparison.
fn fallible<T>(outcome: Result<T>) -> Result<(Option<T>, Option<String>)> {
    match outcome {
        Ok(value) => Ok((Some(value), None)),
        Err(Error::Interrupted) => Err(Error::Interrupted),
        Err(error) => Ok((None, Some(error.to_string()))),
    }
}

fn done(worker: usize, what: String, record: &Record, experiment: &Experiment<'_>) -> Event {
    let missing = |failure: &Option<String>| failure.clone().unwrap_or_default();
    let (outcome, judged) = match record {
        Record::Trial { value, failure, .. } => (value.ok_or_else(|| missing(failure)), false),
        Record::Judged {
            scores, failure, ..
        } => {
            let measures = &experiment.judging.measures;
            let place = measures.iter().position(|m| *m == experiment.criterion);
            let value = scores.as_ref().zip(place).map(|(scores, place)| {
                let values = &scores.values[place];
                values.iter().sum::<f64>() / values.len().max(1) as f64
            });
            (value.ok_or_else(|| missing(failure)), true)
        }
        _ => (Err(String::new()), false),
    };
    Event::Done {
        worker,
        what,
        outcome,
        judged,
    }
}
