//! Weights of columns or of blocks by projected Newton, with an active set of constraints.
//!
//! A constraint that holds with its margin has no loss and no slope. So the minimum over a part of
//! the constraints that no constraint outside violates is the minimum over all: the solver starts
//! from a part, adds what is violated, and ends exactly (LMNN's active set, Weinberger & Saul 2008).

use super::constraints::{Constraint, ConstraintLoss, Costs, Features, Source};
use super::hinge::Hinge;
use crate::data::Corpus;
use crate::optimize::{Bound, Newton};
use crate::random::Stream;
use crate::{Error, Result};

/// What was found.
pub(super) struct Weights {
    /// D = Σ weights · Ψ.
    pub(super) weights: Vec<f64>,
    /// The learned threshold of the distance, in the semi-supervised form.
    pub(super) threshold: Option<f64>,
    /// Largest violation of the optimality conditions.
    pub(super) residual: f64,
    /// Constraints that the last solve looked at.
    pub(super) active: usize,
    /// Newton steps.
    pub(super) steps: usize,
    /// Mean length of Ψ, by which it was divided.
    pub(super) scale: f64,
}

/// What is to be solved.
pub(super) struct Task<'a> {
    pub(super) corpus: &'a dyn Corpus,
    pub(super) features: Features,
    pub(super) hinge: Hinge,
    pub(super) costs: Costs,
    /// Constraints of the first part.
    pub(super) active: usize,
    pub(super) seed: u64,
}

/// Constraints from which the scale of Ψ is estimated.
const SCALE: usize = 1024;

impl Task<'_> {
    pub(super) fn solve(&self, constraints: &[Constraint]) -> Result<Weights> {
        let pairs = (constraints.iter())
            .any(|c| matches!(c, Constraint::Similar(_) | Constraint::Dissimilar(_)));
        let plain = Source {
            corpus: self.corpus,
            features: self.features,
            factor: 1.0,
            threshold: false,
        };
        let scale = mean_length(&plain, constraints, self.seed)?;
        let source = Source {
            factor: 1.0 / scale,
            threshold: pairs,
            ..plain
        };
        let whole =
            |part: Vec<Constraint>| ConstraintLoss::new(source, self.hinge, self.costs, part);
        let newton = Newton {
            bound: Bound::NonNegative,
            ..Newton::default()
        };
        let mut random = Stream::new(self.seed, "active constraints", 0);
        let mut inside = vec![false; constraints.len()];
        for place in random.choose(constraints.len() as u64, self.active) {
            inside[place as usize] = true;
        }
        let mut point = vec![0.0; source.width()];
        let mut steps = 0;
        loop {
            let part: Vec<Constraint> = (constraints.iter().zip(&inside))
                .filter_map(|(c, inside)| inside.then_some(*c))
                .collect();
            let active = part.len();
            let found = newton.minimise(&mut whole(part)?, &point)?;
            point = found.point;
            steps += found.iterations;
            let outside: Vec<usize> = (0..constraints.len()).filter(|n| !inside[*n]).collect();
            let left: Vec<Constraint> = outside.iter().map(|n| constraints[*n]).collect();
            let violated = if left.is_empty() {
                Vec::new()
            } else {
                whole(left)?.pushing(&point)?
            };
            if violated.is_empty() {
                let threshold = if pairs { point.pop() } else { None };
                if point.iter().all(|w| *w == 0.0) {
                    return Err(Error::Data(
                        "no weight is above 0: no column is farther apart in the far pairs than \
                         in the near ones"
                            .into(),
                    ));
                }
                return Ok(Weights {
                    weights: point.iter().map(|w| w / scale).collect(),
                    threshold,
                    residual: found.residual,
                    active,
                    steps,
                    scale,
                });
            }
            for place in violated {
                inside[outside[place]] = true;
            }
        }
    }
}

/// Mean length of z over some constraints: what Ψ is divided by, so that λ means the same on any
/// data.
fn mean_length(source: &Source<'_>, constraints: &[Constraint], seed: u64) -> Result<f64> {
    let mut random = Stream::new(seed, "scale of constraints", 0);
    let chosen: Vec<Constraint> = random
        .choose(constraints.len() as u64, SCALE)
        .into_iter()
        .map(|place| constraints[place as usize])
        .collect();
    let width = source.width();
    let rows = source.rows(&chosen)?;
    let lengths = rows
        .chunks_exact(width)
        .map(|z| z.iter().map(|v| v * v).sum::<f64>().sqrt());
    let mean = lengths.sum::<f64>() / chosen.len().max(1) as f64;
    if mean.is_finite() && mean > 0.0 {
        return Ok(mean);
    }
    if !mean.is_finite() {
        return Err(Error::Data(
            "the mean distance of the pairs compared is not finite: the data's values are too \
             large or not finite"
                .into(),
        ));
    }
    Err(Error::Data(
        "near and far pairs are equally far apart in every column: nothing can be learned".into(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::linalg::RowBuf;
    use crate::supervision::Quadruplet;

    /// Column 0 tells near from far; the others are noise.
    fn set() -> (MemoryCorpus, Vec<Constraint>) {
        let mut random = Stream::new(5, "diagonal test", 0);
        let mut values = Vec::new();
        for row in 0..60 {
            values.push((row % 3) as f32 * 2.0 + 0.3 * random.normal() as f32);
            values.push(random.normal() as f32);
            values.push(0.5 * random.normal() as f32);
        }
        let corpus = MemoryCorpus::new(RowBuf::from_values(values, 3).unwrap()).unwrap();
        let constraints = (0..900)
            .map(|_| {
                let class = random.below(3);
                let mut of = |class: u64| 3 * random.below(20) + class;
                let (a, b, c, d) = (of(class), of(class), of(class), of((class + 1) % 3));
                Constraint::Quadruplet(Quadruplet {
                    near: [a, b],
                    far: [c, d],
                    strict: true,
                })
            })
            .collect();
        (corpus, constraints)
    }

    fn solve(active: usize) -> Weights {
        let (corpus, constraints) = set();
        let task = Task {
            corpus: &corpus,
            features: Features::Squares,
            hinge: Hinge::rounded(0.05),
            costs: Costs {
                lambda: 1e-3,
                quadruplet: 1.0 / 900.0,
                of_classes: 0.0,
                pair: 1.0,
            },
            active,
            seed: 1,
        };
        task.solve(&constraints).unwrap()
    }

    #[test]
    fn an_active_set_ends_at_the_minimum_over_all() {
        let (all, some) = (solve(usize::MAX), solve(20));
        assert_eq!(all.active, 900);
        assert!(some.active < 900, "{}", some.active);
        for (a, b) in all.weights.iter().zip(&some.weights) {
            assert!((a - b).abs() < 1e-6, "{a} {b}");
        }
        assert!(all.residual < 1e-7 && all.weights[0] > 3.0 * all.weights[1]);
    }
}
