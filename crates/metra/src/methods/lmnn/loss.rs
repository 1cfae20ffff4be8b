//! The objective over listed impostors, and its gradient with respect to the mapped rows.
//!
//! Every edge gets a weight first: a target that of pulling and one for each impostor within its margin,
//! an impostor minus one for each target that it violates.

use crate::Result;
use crate::linalg::{RowBuf, Rows};
use crate::training::full_batch::MappedLoss;
use crate::training::pair_lists::{PairLists, Reversed, apart, slopes};
use rayon::prelude::*;

/// How much pulling counts, and the margin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loss {
    pub(super) pull: f64,
    pub(super) margin: f64,
}

/// Targets and the impostors that are known.
pub(super) struct Triplets {
    loss: Loss,
    targets: PairLists,
    to_targets: Reversed,
    impostors: PairLists,
    to_impostors: Reversed,
}

/// Rows that a task takes at once.
const TASK: usize = 64;

impl Triplets {
    pub(super) fn new(loss: Loss, targets: PairLists) -> Self {
        let impostors = PairLists::none(targets.rows());
        Triplets {
            loss,
            to_targets: targets.reversed(),
            to_impostors: impostors.reversed(),
            targets,
            impostors,
        }
    }

    pub(super) fn impostors(&self) -> &PairLists {
        &self.impostors
    }

    /// Take other impostors; gives those known before.
    pub(super) fn set_impostors(&mut self, impostors: PairLists) -> PairLists {
        self.to_impostors = impostors.reversed();
        std::mem::replace(&mut self.impostors, impostors)
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.targets.rows()
    }

    /// Squared distance of each row to its farthest target, where it has one.
    pub(super) fn reach(&self, mapped: Rows<'_>) -> Vec<Option<f32>> {
        (0..self.rows())
            .into_par_iter()
            .map(|row| {
                let targets = self.targets.of(row).iter();
                let far = targets.map(|to| apart(mapped.row(row), mapped.row(*to as usize)));
                far.max_by(f32::total_cmp)
            })
            .collect()
    }

    /// The weights cut into the parts that tasks write.
    fn tasks<'a>(&self, weights: &'a mut Weights) -> Vec<Task<'a>> {
        let (mut targets, mut impostors) = (
            weights.targets.as_mut_slice(),
            weights.impostors.as_mut_slice(),
        );
        let mut tasks = Vec::new();
        for first in (0..self.rows()).step_by(TASK) {
            let end = (first + TASK).min(self.rows());
            let count = |edges: &PairLists| edges.range(end - 1).end - edges.range(first).start;
            let (own, rest) = targets.split_at_mut(count(&self.targets));
            targets = rest;
            let (others, rest) = impostors.split_at_mut(count(&self.impostors));
            impostors = rest;
            tasks.push(Task {
                rows: first..end,
                targets: own,
                impostors: others,
            });
        }
        tasks
    }
}

impl MappedLoss for Triplets {
    fn evaluate(&self, mapped: Rows<'_>) -> Result<(f64, RowBuf)> {
        let mut weights = Weights {
            targets: vec![0.0; self.targets.len()],
            impostors: vec![0.0; self.impostors.len()],
        };
        let parts = self.tasks(&mut weights);
        let values: Vec<f64> = (parts.into_par_iter())
            .map(|part| part.weigh(self, mapped))
            .collect();
        let slopes = slopes(
            mapped,
            &[
                (&self.targets, &self.to_targets, &weights.targets),
                (&self.impostors, &self.to_impostors, &weights.impostors),
            ],
        );
        Ok((values.iter().sum(), slopes))
    }
}

struct Weights {
    targets: Vec<f32>,
    impostors: Vec<f32>,
}

/// Some rows with the weights of their edges.
struct Task<'a> {
    rows: std::ops::Range<usize>,
    targets: &'a mut [f32],
    impostors: &'a mut [f32],
}

impl Task<'_> {
    /// Write the weights; gives the rows' part of the objective.
    fn weigh(self, triplets: &Triplets, mapped: Rows<'_>) -> f64 {
        let loss = triplets.loss;
        let (mut targets, mut impostors) = (self.targets, self.impostors);
        let (pull, push) = (loss.pull as f32, (1.0 - loss.pull) as f32);
        let mut value = 0.0;
        let mut limits = Vec::new();
        for row in self.rows {
            let own = mapped.row(row);
            let near = triplets.targets.of(row);
            let (weights, rest) = targets.split_at_mut(near.len());
            targets = rest;
            limits.clear();
            for (to, weight) in near.iter().zip(weights.iter_mut()) {
                let distance = apart(own, mapped.row(*to as usize));
                value += loss.pull * f64::from(distance);
                limits.push(distance + loss.margin as f32);
                *weight = pull;
            }
            let far = triplets.impostors.of(row);
            let (violations, rest) = impostors.split_at_mut(far.len());
            impostors = rest;
            for (to, violation) in far.iter().zip(violations) {
                let distance = apart(own, mapped.row(*to as usize));
                for (limit, weight) in limits.iter().zip(weights.iter_mut()) {
                    let over = limit - distance;
                    if over > 0.0 {
                        value += f64::from(push * over);
                        *weight += push;
                        *violation -= push;
                    }
                }
            }
        }
        value
    }
}
