//! Accelerated proximal gradient for a smooth convex function plus a simple one.
//!
//! Beck & Teboulle (FISTA, 2009) with their backtracking for the length of a step and the restart
//! of O'Donoghue & Candès (2015): the momentum is dropped whenever it points uphill, which keeps
//! fast convergence on strongly convex problems without knowing how strongly.

use super::conjugate::dot;
use crate::{Error, Result};

/// f + g, where f is smooth and g allows a proximal step.
pub(crate) trait Composite {
    /// Numbers in a point.
    fn dim(&self) -> usize;

    /// Value of f; its gradient replaces what is in `gradient`.
    fn smooth(&mut self, point: &[f64], gradient: &mut [f64]) -> Result<f64>;

    /// How exact values of f are, relative to them. A search would shorten its steps without end on
    /// account of differences smaller than that.
    fn precision(&self) -> f64 {
        1e-14
    }

    /// Replace `point` by the minimiser of g(x) + |x − point|²/(2·length); returns g there.
    fn proximal(&mut self, point: &mut [f64], length: f64) -> Result<f64>;
}

/// How a minimum is looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ProximalGradient {
    /// Stop where a step moves the point by less than this share of its length.
    pub tolerance: f64,
    /// Stop after this many steps in any case.
    pub iterations: usize,
}

/// Where the search ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProximalMinimum {
    /// The point.
    pub point: Vec<f64>,
    /// Value of f + g there.
    pub value: f64,
    /// Length of the last move relative to that of the point.
    pub residual: f64,
    /// Steps taken.
    pub iterations: usize,
}

impl ProximalGradient {
    /// Minimise from `start`.
    pub(crate) fn minimise(
        &self,
        objective: &mut dyn Composite,
        start: &[f64],
    ) -> Result<ProximalMinimum> {
        let dim = objective.dim();
        if start.len() != dim {
            return Err(Error::shape(
                "numbers in the starting point",
                dim,
                start.len(),
            ));
        }
        let mut point = start.to_vec();
        let mut ahead = point.clone();
        let mut gradient = vec![0.0; dim];
        let mut next = vec![0.0; dim];
        let mut unused = vec![0.0; dim];
        let (mut length, mut momentum) = (1.0, 1.0_f64);
        let (mut value, mut residual) = (f64::INFINITY, f64::INFINITY);
        let mut iterations = 0;
        while iterations < self.iterations {
            let here = objective.smooth(&ahead, &mut gradient)?;
            if !here.is_finite() {
                return Err(Error::Diverged {
                    step: iterations as u64,
                    problem: "the objective is not finite".into(),
                });
            }
            // A step may grow again: the function is flat where few constraints are violated.
            length *= 2.0;
            loop {
                for ((target, a), g) in next.iter_mut().zip(&ahead).zip(&gradient) {
                    *target = a - length * g;
                }
                let simple = objective.proximal(&mut next, length)?;
                let moved: Vec<f64> = next.iter().zip(&ahead).map(|(n, a)| n - a).collect();
                let squared = dot(&moved, &moved);
                let bound = here + dot(&gradient, &moved) + squared / (2.0 * length);
                let reached = objective.smooth(&next, &mut unused)?;
                if reached <= bound + objective.precision() * here.abs() || length < 1e-30 {
                    value = reached + simple;
                    break;
                }
                length *= 0.5;
            }
            iterations += 1;
            let moved: Vec<f64> = next.iter().zip(&point).map(|(n, p)| n - p).collect();
            let step: Vec<f64> = next.iter().zip(&ahead).map(|(n, a)| n - a).collect();
            let scale = dot(&next, &next).sqrt().max(f64::MIN_POSITIVE);
            // The step from the point looked ahead to is a true proximal step: it vanishes only at
            // a minimum, which the move from the last point would not promise.
            residual = dot(&step, &step).sqrt() / scale;
            let uphill = dot(&step, &moved) < 0.0;
            let following = if uphill {
                1.0
            } else {
                0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt())
            };
            let push = if uphill {
                0.0
            } else {
                (momentum - 1.0) / following
            };
            momentum = following;
            for (((a, n), p), m) in ahead.iter_mut().zip(&next).zip(&mut point).zip(&moved) {
                *p = *n;
                *a = n + push * m;
            }
            if residual <= self.tolerance || step.iter().all(|s| *s == 0.0) {
                break;
            }
        }
        Ok(ProximalMinimum {
            point,
            value,
            residual,
            iterations,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ½|x − a|² weighted by (1, 100), plus |x|₁.
    struct Lasso;

    const TARGET: [f64; 2] = [3.0, 0.005];
    const WEIGHT: [f64; 2] = [1.0, 100.0];

    impl Composite for Lasso {
        fn dim(&self) -> usize {
            2
        }

        fn smooth(&mut self, point: &[f64], gradient: &mut [f64]) -> Result<f64> {
            let mut value = 0.0;
            for k in 0..2 {
                gradient[k] = WEIGHT[k] * (point[k] - TARGET[k]);
                value += 0.5 * WEIGHT[k] * (point[k] - TARGET[k]).powi(2);
            }
            Ok(value)
        }

        fn proximal(&mut self, point: &mut [f64], length: f64) -> Result<f64> {
            for value in point.iter_mut() {
                *value = value.signum() * (value.abs() - length).max(0.0);
            }
            Ok(point.iter().map(|v| v.abs()).sum())
        }
    }

    #[test]
    fn shrinks_by_hand() {
        // Weight 1: 3 shrinks by 1 to 2. Weight 100: 100·0.005 = 0.5 < 1, so 0 it is.
        let search = ProximalGradient {
            tolerance: 1e-12,
            iterations: 1000,
        };
        let found = search.minimise(&mut Lasso, &[0.0, 0.0]).unwrap();
        assert!((found.point[0] - 2.0).abs() < 1e-9, "{found:?}");
        assert_eq!(found.point[1], 0.0);
        // ½(2 − 3)² + ½·100·0.005² + 2.
        assert!((found.value - (0.5 + 0.00125 + 2.0)).abs() < 1e-9);
        assert!(found.iterations < 200, "{}", found.iterations);
    }
}
