//! The schedule of one method on one split: trials, by successive halving if requested, then the
//! final fit.

use crate::model::Space;

/// What a trial found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tried {
    /// Value on validation with the best score and the best step, or why there is none.
    pub(super) outcome: Result<Best, String>,
}

/// The best of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Best {
    pub(super) value: f64,
    pub(super) space: Space,
    pub(super) last_step: Option<u64>,
}

/// Something to do; the order is that in which it is done first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Try a combination with the steps of a rung.
    Trial {
        /// The rung, from 0.
        rung: usize,
        /// The combination.
        combination: usize,
    },
    /// Fit with what was chosen and judge on the test part.
    Judge,
}

/// What is next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Next {
    /// These trials, all of one rung, of which some may be on their way.
    Trials(Vec<Stage>),
    /// The fit with the winner: a combination and what its trial found.
    Judge(usize, Best),
    /// Nothing: no trial succeeded, and this is why the first failed.
    Failed(String),
}

/// The rungs of a method on a split with all results so far.
#[derive(Debug, Clone)]
pub(super) struct TrialSchedule {
    /// Last step of each rung; `None` for all steps.
    rungs: Vec<Option<u64>>,
    factor: usize,
    /// Results of each rung, by combination.
    tried: Vec<Vec<Option<Tried>>>,
}

impl TrialSchedule {
    /// For `combinations` settings of a learner that takes `steps` (`None` for one that does not
    /// work in steps: halving would save nothing there).
    pub(super) fn new(combinations: usize, steps: Option<u64>, halving: Option<u32>) -> Self {
        let factor = halving.map_or(1, |factor| factor.max(2) as usize);
        let mut rungs = vec![None];
        if let (Some(steps), true) = (steps, factor > 1) {
            // As many rungs as it takes to come from all combinations to one, but none of fewer
            // than ten steps.
            let (mut left, mut share) = (combinations, factor as u64);
            while left > 1 && steps / share >= 10 {
                rungs.insert(0, Some(steps / share));
                left = left.div_ceil(factor);
                share *= factor as u64;
            }
        }
        TrialSchedule {
            tried: vec![vec![None; combinations]; rungs.len()],
            rungs,
            factor,
        }
    }

    /// Last step of a rung.
    pub(super) fn last_step(&self, rung: usize) -> Option<u64> {
        self.rungs[rung]
    }

    /// Take in what a trial found.
    pub(super) fn record(&mut self, rung: usize, combination: usize, found: Tried) {
        self.tried[rung][combination] = Some(found);
    }

    /// Everything that will be done, counted.
    pub(super) fn total(&self) -> usize {
        let mut left = self.tried.first().map_or(0, Vec::len);
        let mut sum = 1;
        for _ in &self.rungs {
            sum += left;
            left = left.div_ceil(self.factor);
        }
        sum
    }

    /// What is next, with what is known.
    pub(super) fn next(&self) -> Next {
        let mut contenders: Vec<usize> = (0..self.tried.first().map_or(0, Vec::len)).collect();
        for (rung, tried) in self.tried.iter().enumerate() {
            let open: Vec<Stage> = (contenders.iter())
                .filter(|combination| tried[**combination].is_none())
                .map(|combination| Stage::Trial {
                    rung,
                    combination: *combination,
                })
                .collect();
            if !open.is_empty() {
                return Next::Trials(open);
            }
            let value = |combination: usize| match &tried[combination] {
                Some(Tried { outcome: Ok(best) }) => Some(*best),
                _ => None,
            };
            // Stable: of equal values the earlier combination wins.
            let mut ranked: Vec<(usize, Best)> = (contenders.iter())
                .filter_map(|combination| Some((*combination, value(*combination)?)))
                .collect();
            ranked.sort_by(|(_, a), (_, b)| b.value.total_cmp(&a.value));
            let Some(winner) = ranked.first().copied() else {
                let why = contenders.iter().find_map(|at| match &tried[*at] {
                    Some(Tried { outcome: Err(why) }) => Some(why.clone()),
                    _ => None,
                });
                return Next::Failed(why.unwrap_or_else(|| "there was nothing to try".into()));
            };
            if rung + 1 == self.tried.len() {
                return Next::Judge(winner.0, winner.1);
            }
            ranked.truncate(contenders.len().div_ceil(self.factor));
            contenders = ranked.into_iter().map(|(at, _)| at).collect();
            contenders.sort_unstable();
        }
        Next::Failed("there was nothing to try".into())
    }

    /// How many settings were tried at all.
    pub(super) fn trials(&self) -> usize {
        self.tried.first().map_or(0, Vec::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(value: f64) -> Tried {
        let best = Best {
            value,
            space: Space::Cosine,
            last_step: None,
        };
        Tried { outcome: Ok(best) }
    }

    fn open(schedule: &TrialSchedule) -> Vec<(usize, usize)> {
        match schedule.next() {
            Next::Trials(stages) => (stages.iter())
                .map(|stage| match stage {
                    Stage::Trial { rung, combination } => (*rung, *combination),
                    Stage::Judge => panic!("a judgement is no trial"),
                })
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_halving_all_are_tried_once() {
        let mut schedule = TrialSchedule::new(3, Some(900), None);
        assert_eq!((schedule.total(), schedule.last_step(0)), (4, None));
        assert_eq!(open(&schedule), [(0, 0), (0, 1), (0, 2)]);
        schedule.record(0, 1, found(0.5));
        assert_eq!(open(&schedule), [(0, 0), (0, 2)]);
        schedule.record(0, 0, found(0.5));
        schedule.record(
            0,
            2,
            Tried {
                outcome: Err("bad".into()),
            },
        );
        // Equal values: the earlier one.
        assert!(matches!(schedule.next(), Next::Judge(0, _)));
    }

    #[test]
    fn halving_gives_more_steps_to_fewer() {
        // Nine settings by thirds: 9 with 100 steps, 3 with 300, 1 with all 900.
        let mut schedule = TrialSchedule::new(9, Some(900), Some(3));
        let steps: Vec<_> = (0..3).map(|rung| schedule.last_step(rung)).collect();
        assert_eq!(steps, [Some(100), Some(300), None]);
        assert_eq!(schedule.total(), 9 + 3 + 1 + 1);
        for combination in 0..9 {
            schedule.record(0, combination, found(combination as f64));
        }
        assert_eq!(open(&schedule), [(1, 6), (1, 7), (1, 8)]);
        // The leader of the first rung need not stay it.
        for (combination, value) in [(6, 3.0), (7, 2.0), (8, 1.0)] {
            schedule.record(1, combination, found(value));
        }
        assert_eq!(open(&schedule), [(2, 6)]);
        schedule.record(2, 6, found(0.1));
        assert!(matches!(schedule.next(), Next::Judge(6, _)));
        // A learner without steps, and one whose rungs would be too short, run to their end.
        assert_eq!(TrialSchedule::new(9, None, Some(3)).total(), 10);
        assert_eq!(TrialSchedule::new(9, Some(20), Some(3)).total(), 10);
    }

    #[test]
    fn failures_never_win_and_all_of_them_end_it() {
        let mut schedule = TrialSchedule::new(2, None, None);
        schedule.record(
            0,
            0,
            Tried {
                outcome: Err("first".into()),
            },
        );
        schedule.record(
            0,
            1,
            Tried {
                outcome: Err("second".into()),
            },
        );
        assert_eq!(schedule.next(), Next::Failed("first".into()));
    }
}
