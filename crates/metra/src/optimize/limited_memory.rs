//! Quasi-Newton steps from the last few gradients (L-BFGS; Liu & Nocedal 1989), for many variables.
//!
//! One call is one step, so that whoever minimises can look in between: show progress, validate, stop.
//! The line search is the bisection of Lewis & Overton ("Nonsmooth optimization via quasi-Newton
//! methods", 2013), which asks for a sufficient fall and for a slope that has risen enough. It needs no
//! smoothness, and hinges have corners.

use super::conjugate::dot;
use crate::{Error, Result};
use std::collections::VecDeque;

/// A function of many variables: its value, and its gradient written over the slice.
pub(super) type Function<'a> = dyn FnMut(&[f64], &mut [f64]) -> Result<f64> + 'a;

/// Where the steps stand, with what the last ones taught.
#[derive(Debug, Clone)]
pub(crate) struct LimitedMemory {
    /// Moves and changes of the gradient, oldest first.
    learned: VecDeque<Move>,
    remembered: usize,
    value: f64,
    gradient: Vec<f64>,
    steps: u64,
}

#[derive(Debug, Clone)]
struct Move {
    moved: Vec<f64>,
    changed: Vec<f64>,
    /// 1/(moved · changed).
    inverse: f64,
}

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stepped {
    /// The value after it.
    pub value: f64,
    /// How much it fell.
    pub fall: f64,
    /// Largest entry of the gradient after it.
    pub slope: f64,
}

/// Share of the predicted fall that a step must reach.
const FALL: f64 = 1e-4;
/// Share of the slope that must be gone.
const RISE: f64 = 0.9;
const TRIALS: usize = 40;

impl LimitedMemory {
    /// Begin at a point; `remembered` moves shape a step.
    pub(crate) fn begin(
        point: &[f64],
        remembered: usize,
        function: &mut Function<'_>,
    ) -> Result<Self> {
        let mut gradient = vec![0.0; point.len()];
        let value = function(point, &mut gradient)?;
        if !value.is_finite() || !gradient.iter().all(|g| g.is_finite()) {
            return Err(diverged(0));
        }
        Ok(LimitedMemory {
            learned: VecDeque::new(),
            remembered: remembered.max(1),
            value,
            gradient,
            steps: 0,
        })
    }

    /// The function has changed a little: take its value here anew and keep what was learned.
    pub(crate) fn refresh(&mut self, point: &[f64], function: &mut Function<'_>) -> Result<()> {
        self.value = function(point, &mut self.gradient)?;
        if self.value.is_finite() {
            Ok(())
        } else {
            Err(diverged(self.steps))
        }
    }

    /// The value at the point last reached.
    pub(crate) fn value(&self) -> f64 {
        self.value
    }

    /// Take one step; `None` where no step makes the value fall.
    pub(crate) fn step(
        &mut self,
        point: &mut [f64],
        function: &mut Function<'_>,
    ) -> Result<Option<Stepped>> {
        let mut direction = self.direction();
        let mut slope = dot(&direction, &self.gradient);
        if slope.is_nan() || slope >= 0.0 {
            // What was learned misleads: forget it and go down the gradient.
            self.learned.clear();
            direction = self.gradient.iter().map(|g| -g).collect();
            slope = -dot(&self.gradient, &self.gradient);
        }
        if slope == 0.0 {
            return Ok(None);
        }
        let first = if self.learned.is_empty() {
            // Nothing is known of the curvature: a step of length 1 at most.
            (1.0 / dot(&direction, &direction).sqrt()).min(1.0)
        } else {
            1.0
        };
        let found = self.search(point, &direction, slope, first, function)?;
        let Some((length, value, gradient)) = found else {
            if self.learned.is_empty() {
                return Ok(None);
            }
            self.learned.clear();
            return self.step(point, function);
        };
        let moved: Vec<f64> = direction.iter().map(|d| length * d).collect();
        let changed: Vec<f64> = (gradient.iter().zip(&self.gradient))
            .map(|(new, old)| new - old)
            .collect();
        for (p, m) in point.iter_mut().zip(&moved) {
            *p += m;
        }
        let curvature = dot(&moved, &changed);
        if curvature > 1e-12 * dot(&changed, &changed).sqrt() * dot(&moved, &moved).sqrt() {
            if self.learned.len() == self.remembered {
                self.learned.pop_front();
            }
            self.learned.push_back(Move {
                moved,
                changed,
                inverse: 1.0 / curvature,
            });
        }
        let fall = self.value - value;
        self.value = value;
        self.gradient = gradient;
        self.steps += 1;
        let slope = self
            .gradient
            .iter()
            .fold(0.0_f64, |most, g| most.max(g.abs()));
        Ok(Some(Stepped { value, fall, slope }))
    }

    /// −H·gradient by the two loops over what was learned.
    fn direction(&self) -> Vec<f64> {
        let mut direction: Vec<f64> = self.gradient.iter().map(|g| -g).collect();
        let mut shares = Vec::with_capacity(self.learned.len());
        for learned in self.learned.iter().rev() {
            let share = learned.inverse * dot(&learned.moved, &direction);
            add(&mut direction, -share, &learned.changed);
            shares.push(share);
        }
        if let Some(last) = self.learned.back() {
            let scale = 1.0 / (last.inverse * dot(&last.changed, &last.changed));
            direction.iter_mut().for_each(|d| *d *= scale);
        }
        for (learned, share) in self.learned.iter().zip(shares.iter().rev()) {
            let back = learned.inverse * dot(&learned.changed, &direction);
            add(&mut direction, share - back, &learned.moved);
        }
        direction
    }

    /// A length that makes the value fall enough and the slope rise enough, with value and gradient
    /// there. Values that are not finite count as too far.
    fn search(
        &self,
        point: &[f64],
        direction: &[f64],
        slope: f64,
        first: f64,
        function: &mut Function<'_>,
    ) -> Result<Option<(f64, f64, Vec<f64>)>> {
        let (mut near, mut far, mut length) = (0.0, f64::INFINITY, first);
        let mut best: Option<(f64, f64, Vec<f64>)> = None;
        for _ in 0..TRIALS {
            let tried: Vec<f64> = (point.iter().zip(direction))
                .map(|(p, d)| p + length * d)
                .collect();
            let mut gradient = vec![0.0; point.len()];
            let value = function(&tried, &mut gradient)?;
            let finite = value.is_finite() && gradient.iter().all(|g| g.is_finite());
            if !finite || value > self.value + FALL * length * slope {
                far = length;
            } else if dot(&gradient, direction) < RISE * slope {
                near = length;
                best = Some((length, value, gradient));
            } else {
                return Ok(Some((length, value, gradient)));
            }
            length = if far.is_finite() {
                0.5 * (near + far)
            } else {
                2.0 * near
            };
        }
        Ok(best)
    }
}

fn add(target: &mut [f64], factor: f64, values: &[f64]) {
    for (target, value) in target.iter_mut().zip(values) {
        *target += factor * value;
    }
}

fn diverged(step: u64) -> Error {
    Error::Diverged {
        step,
        problem: "the objective is not finite".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minimised(start: &[f64], steps: usize, function: &mut Function<'_>) -> (Vec<f64>, f64) {
        let mut point = start.to_vec();
        let mut state = LimitedMemory::begin(&point, 8, function).unwrap();
        for _ in 0..steps {
            if state.step(&mut point, function).unwrap().is_none() {
                break;
            }
        }
        (point, state.value())
    }

    #[test]
    fn rosenbrocks_valley_is_followed_to_its_end() {
        let mut valley = |x: &[f64], g: &mut [f64]| {
            let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
            g[0] = -2.0 * a - 400.0 * x[0] * b;
            g[1] = 200.0 * b;
            Ok(a * a + 100.0 * b * b)
        };
        let (point, value) = minimised(&[-1.2, 1.0], 100, &mut valley);
        assert!(value < 1e-16, "{value}");
        assert!((point[0] - 1.0).abs() < 1e-7 && (point[1] - 1.0).abs() < 1e-7);
    }

    #[test]
    fn corners_do_not_stop_it() {
        // Σ i·|x_i − i| + ½|x|²/100: the minimum is at x_i = i, where the function has a corner.
        let mut corners = |x: &[f64], g: &mut [f64]| {
            let mut value = 0.0;
            for (place, (x, g)) in x.iter().zip(g).enumerate() {
                let at = place as f64 + 1.0;
                value += at * (x - at).abs() + 0.005 * x * x;
                *g = at * (x - at).signum() + 0.01 * x;
            }
            Ok(value)
        };
        let (point, _) = minimised(&[0.3; 5], 500, &mut corners);
        for (place, x) in point.iter().enumerate() {
            assert!((x - place as f64 - 1.0).abs() < 1e-3, "{point:?}");
        }
    }

    #[test]
    fn what_is_not_finite_is_too_far_or_an_error() {
        // −ln x + x, not defined below 0.
        let mut barrier = |x: &[f64], g: &mut [f64]| {
            g[0] = 1.0 - 1.0 / x[0];
            Ok(if x[0] > 0.0 {
                x[0] - x[0].ln()
            } else {
                f64::NAN
            })
        };
        let (point, _) = minimised(&[5.0], 50, &mut barrier);
        assert!((point[0] - 1.0).abs() < 1e-6, "{point:?}");
        let mut nothing = |_: &[f64], _: &mut [f64]| Ok(f64::NAN);
        assert!(LimitedMemory::begin(&[1.0], 5, &mut nothing).is_err());
    }
}
