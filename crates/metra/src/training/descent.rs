//! The training loop of iterative methods: progress, validation on the way, early stopping, and the
//! best state.

use super::parameters::{Bound, parameters};
use super::{Progress, Run};
use crate::model::{LowRank, Map};
use crate::{Error, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Instant;

parameters! {
    /// How many steps a method takes, how often it validates and when it stops.
    #[derive(Copy)]
    pub struct Schedule {
        /// Maximum number of optimisation steps: minibatches, or full-batch steps.
        steps: u64 = 1000,
        /// Number of validations during training; the best map is kept.
        checks: u64 = 10,
        /// Stop after this many validations without a new best.
        patience: u64 = 4 => Bound::AtLeast(1.0),
        /// Stop when the steps took this many seconds, as if all were done: the learning rate has then
        /// decayed. 0 for no limit. What is learned then depends on the machine's speed.
        seconds: f64 = 0.0 => Bound::AtLeast(0.0),
    }
}

impl Schedule {
    /// This many steps at most.
    pub fn of(steps: u64) -> Self {
        Schedule {
            steps,
            ..Schedule::default()
        }
    }

    /// How much of it is done after so many steps that took so many seconds, from 0 to 1.
    fn share_done(&self, steps: u64, seconds: f64) -> f64 {
        let of_steps = steps as f64 / self.steps.max(1) as f64;
        let of_time = match self.seconds > 0.0 {
            true => seconds / self.seconds,
            false => 0.0,
        };
        of_steps.max(of_time).min(1.0)
    }

    /// An error where steps are taken on several machines: none of them knows when it is time.
    pub(crate) fn check_distributed(&self) -> Result<()> {
        match self.seconds > 0.0 {
            true => Err(Error::parameter(
                "seconds",
                "0 for training on a cluster",
                self.seconds,
            )),
            false => Ok(()),
        }
    }
}

/// What a step found.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outcome {
    /// Mean loss of the minibatch.
    pub(crate) loss: f64,
    /// Of learners of ranking: share of violated pairs, mean estimated rank.
    pub(crate) ranking: Option<(f64, f64)>,
    /// Whether further steps would change nothing.
    pub(crate) finished: bool,
}

/// What moves in steps.
pub(crate) trait Descent {
    /// What a step changes and the best of which is kept.
    type State: Clone + Serialize + DeserializeOwned;
    /// Whether a step depends on nothing but the state, its number and the seed, so that a fit can go on
    /// from a state alone.
    const RESUMES: bool = true;

    /// One step; `remaining` falls from 1 to 0 over the schedule.
    fn step(
        &mut self,
        state: &mut Self::State,
        step: u64,
        remaining: f64,
        seed: u64,
    ) -> Result<Outcome>;

    /// The map of a state.
    fn map(&self, state: &Self::State) -> Result<Map>;
}

/// Take all steps; gives the map of the state to keep: the best on validation, or the last.
pub(crate) fn descend<D: Descent>(
    schedule: Schedule,
    descent: &mut D,
    mut state: D::State,
    run: &mut Run<'_>,
) -> Result<Map> {
    let steps = schedule.steps;
    let every = (steps / schedule.checks.max(1)).max(1);
    let mut best = Best::default();
    let mut done = 0;
    let mut trend = Trend::default();
    match run.resumed()? {
        Some(resumed) => (done, state, best.kept, best.missed, trend) = resumed,
        None => {
            // With a validation part, a map that leads away is not the best.
            if run.validate.is_none() {
                trend.first_norm = norm(&descent.map(&state)?);
            }
            _ = best.validate(descent, &state, 0, run)?;
        }
    }
    let (began, first) = (Instant::now(), done);
    for step in first..run.last_step.unwrap_or(steps).min(steps) {
        run.check_stop()?;
        let remaining = 1.0 - schedule.share_done(step, trend.seconds);
        let started = Instant::now();
        let outcome = descent.step(&mut state, step, remaining, run.seed)?;
        trend.seconds += started.elapsed().as_secs_f64();
        done = step + 1;
        trend.add(outcome.loss);
        let finished = outcome.finished || schedule.share_done(done, trend.seconds) >= 1.0;
        let validation = if done % every == 0 || finished {
            best.validate(descent, &state, done, run)?
        } else {
            None
        };
        let is_enough = run.tell(&Progress {
            step: done,
            steps,
            loss: outcome.loss,
            ranking: outcome.ranking,
            speed: (done - first) as f64 / began.elapsed().as_secs_f64().max(1e-9),
            validation,
        });
        if is_enough && validation.is_none() {
            _ = best.validate(descent, &state, done, run)?;
        }
        if is_enough || finished || best.missed >= schedule.patience {
            break;
        }
        if D::RESUMES {
            run.keep(&(done, &state, &best.kept, best.missed, &trend))?;
        }
    }
    run.facts.insert("steps".into(), done as f64);
    match best.kept {
        Some((_, kept, at)) => {
            run.facts.insert("best_step".into(), at as f64);
            descent.map(&kept)
        }
        None => {
            let map = descent.map(&state)?;
            trend.check(&map, done)?;
            Ok(map)
        }
    }
}

/// How a map may grow while the loss does not fall. A learning rate that is a thousand times too large
/// makes it grow by more, and one that is ten times too large by less.
const GROWTH: f64 = 100.0;

/// Where the loss goes, to notice steps that lead away from what they minimise: with bounded losses and
/// normalised steps nothing ever overflows.
#[derive(Default, Serialize, Deserialize)]
struct Trend {
    first_loss: Option<f64>,
    /// Mean of recent losses, the latest counting most.
    recent_loss: f64,
    /// Size of the first map.
    first_norm: Option<f64>,
    /// What the steps took.
    seconds: f64,
}

impl Trend {
    fn add(&mut self, loss: f64) {
        match self.first_loss {
            None => (self.first_loss, self.recent_loss) = (Some(loss), loss),
            Some(_) => self.recent_loss += 0.1 * (loss - self.recent_loss),
        }
    }

    fn check(&self, map: &Map, step: u64) -> Result<()> {
        let (Some(first), Some(before), Some(after)) =
            (self.first_loss, self.first_norm, norm(map))
        else {
            return Ok(());
        };
        if self.recent_loss > first && after > GROWTH * before {
            let (last, growth) = (self.recent_loss, after / before);
            return Err(Error::Diverged {
                step,
                problem: format!(
                    "the loss rose from {first:.3e} to {last:.3e} while the map grew {growth:.0} times \
                     larger"
                ),
            });
        }
        Ok(())
    }
}

/// Frobenius norm of what a map multiplies by, where it has one that is not zero.
fn norm(map: &Map) -> Option<f64> {
    let squares = |values: &[f32]| -> f64 { values.iter().map(|v| f64::from(*v).powi(2)).sum() };
    let low_rank = |map: &LowRank| squares(map.weights().values());
    let square = match map {
        Map::Identity | Map::Indefinite(_) => return None,
        Map::LowRank(map) => low_rank(map),
        Map::Diagonal(factors) => squares(factors),
        Map::Bilinear { query, item } => low_rank(query) + low_rank(item),
        Map::Kernel(map) => low_rank(map.map()),
    };
    (square > 0.0).then(|| square.sqrt())
}

/// An error where the loss or what a step changed has left the finite numbers.
pub(crate) fn check_finite<'a>(
    changed: impl IntoIterator<Item = &'a f32>,
    loss: f64,
    step: u64,
) -> Result<()> {
    let what = if !loss.is_finite() {
        "the loss"
    } else if !changed.into_iter().all(|v| v.is_finite()) {
        "the map"
    } else {
        return Ok(());
    };
    Err(Error::Diverged {
        step,
        problem: format!("{what} is not finite"),
    })
}

/// The best state on validation so far, with its value and step.
struct Best<S> {
    kept: Option<(f64, S, u64)>,
    /// Validations since.
    missed: u64,
}

impl<S> Default for Best<S> {
    fn default() -> Self {
        Best {
            kept: None,
            missed: 0,
        }
    }
}

impl<S: Clone> Best<S> {
    fn validate<D: Descent<State = S>>(
        &mut self,
        descent: &D,
        state: &S,
        step: u64,
        run: &mut Run<'_>,
    ) -> Result<Option<f64>> {
        let Some(validate) = run.validate.as_deref_mut() else {
            return Ok(None);
        };
        let value = validate(&descent.map(state)?)?;
        if self
            .kept
            .as_ref()
            .is_none_or(|(so_far, _, _)| value > *so_far)
        {
            self.kept = Some((value, state.clone(), step));
            self.missed = 0;
        } else {
            self.missed += 1;
        }
        Ok(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::Validate;

    /// Counts its steps; the map is that many factors.
    struct Count;

    impl Descent for Count {
        type State = usize;

        fn step(&mut self, state: &mut usize, _: u64, _: f64, _: u64) -> Result<Outcome> {
            *state += 1;
            Ok(Outcome::default())
        }

        fn map(&self, state: &usize) -> Result<Map> {
            Ok(Map::Diagonal(vec![1.0; *state]))
        }
    }

    #[test]
    fn steps_that_lead_away_are_noticed() {
        let map = |factor| Map::Diagonal(vec![factor; 3]);
        let check = |losses: &[f64], factor| {
            let mut trend = Trend {
                first_norm: norm(&map(1.0)),
                ..Trend::default()
            };
            losses.iter().for_each(|loss| trend.add(*loss));
            trend.check(&map(factor), losses.len() as u64)
        };
        let error = check(&[1.0, 9e9, 8e9], 1e6).unwrap_err().to_string();
        assert!(
            error.contains("at step 3: the loss rose from 1.000e0"),
            "{error}"
        );
        assert!(error.contains("grew 1000000 times larger"), "{error}");
        // A loss that falls, and noise of a map that hardly grew, are none.
        check(&[1.0, 0.5, 0.4], 1e6).unwrap();
        check(&[1.0, 2.0, 1.5], 50.0).unwrap();
        check(&[1.0, 2.0], 0.0).unwrap();
    }

    fn taken<'a>(
        validate: Option<&'a mut Validate<'a>>,
        last_step: Option<u64>,
    ) -> (usize, f64, f64) {
        let schedule = Schedule {
            steps: 100,
            checks: 10,
            patience: 2,
            ..Schedule::default()
        };
        let mut run = Run {
            validate,
            last_step,
            ..Run::default()
        };
        let map = descend(schedule, &mut Count, 0, &mut run).unwrap();
        let steps = map.output_dim(map.input_dim(crate::model::Side::Item).unwrap());
        let best = run.facts.get("best_step").copied().unwrap_or(-1.0);
        (steps, run.facts["steps"], best)
    }

    /// Has seen enough after so many steps.
    struct Until(u64, u64);

    impl crate::training::Observer for Until {
        fn progress(&mut self, progress: &Progress) {
            self.1 = progress.step;
        }

        fn is_enough(&self) -> bool {
            self.1 >= self.0
        }
    }

    #[test]
    fn time_ends_it_with_the_rate_at_its_end() {
        /// Sleeps through its steps and keeps what was left of the schedule.
        struct Slow(Vec<f64>);

        impl Descent for Slow {
            type State = usize;

            fn step(&mut self, state: &mut usize, _: u64, rest: f64, _: u64) -> Result<Outcome> {
                std::thread::sleep(std::time::Duration::from_millis(20));
                self.0.push(rest);
                *state += 1;
                Ok(Outcome::default())
            }

            fn map(&self, state: &usize) -> Result<Map> {
                Ok(Map::Diagonal(vec![1.0; *state]))
            }
        }

        let mut slow = Slow(Vec::new());
        let mut validated = Vec::new();
        let mut grows = |map: &Map| {
            validated.push(map.input_dim(crate::model::Side::Item));
            Ok(validated.len() as f64)
        };
        let mut run = Run {
            validate: Some(&mut grows),
            ..Run::default()
        };
        let schedule = Schedule {
            seconds: 0.1,
            ..Schedule::of(10_000)
        };
        let map = descend(schedule, &mut slow, 0, &mut run).unwrap();
        // A sleep takes no less than it was asked for, and on a busy machine more.
        assert!((1..=5).contains(&slow.0.len()), "{:?}", slow.0);
        assert!(slow.0[0] == 1.0 && slow.0.is_sorted_by(|a, b| a > b));
        assert_eq!(map.input_dim(crate::model::Side::Item), Some(slow.0.len()));
        assert_eq!(schedule.share_done(2500, 0.05), 0.5);
        assert_eq!(Schedule::of(10).share_done(5, 1e9), 0.5);
        assert!(schedule.check_distributed().is_err());
    }

    #[test]
    fn whoever_observes_can_end_it() {
        // The state at the end is validated too: after 17 steps it is the best, after 23 that of step 20 is.
        for (validated, end, kept) in [(true, 17, 17), (true, 23, 20), (false, 17, 17)] {
            let mut first = |map: &Map| {
                Ok(-(map.input_dim(crate::model::Side::Item).unwrap() as f64 - 20.0).abs())
            };
            let mut observer = Until(end, 0);
            let mut run = Run {
                observer: Some(&mut observer),
                validate: validated.then_some(&mut first as &mut Validate<'_>),
                ..Run::default()
            };
            let map = descend(Schedule::of(100), &mut Count, 0, &mut run).unwrap();
            assert_eq!(
                (map.input_dim(crate::model::Side::Item), run.facts["steps"]),
                (Some(kept), end as f64)
            );
        }
    }

    #[test]
    fn the_best_state_is_kept_and_patience_ends_it() {
        // Best after 30 steps; the checks after 40 and 50 miss it, and that ends the course.
        let mut peak =
            |map: &Map| Ok(-(map.input_dim(crate::model::Side::Item).unwrap() as f64 - 30.0).abs());
        assert_eq!(taken(Some(&mut peak), None), (30, 50.0, 30.0));
        // Without validation, and as far as an earlier run's best step.
        assert_eq!(taken(None, None), (100, 100.0, -1.0));
        assert_eq!(taken(None, Some(30)), (30, 30.0, -1.0));
    }
}
