//! Newton's method with a line search, also for variables that must not be negative.
//!
//! Without bounds: a step solves H p = g by Cholesky, or by conjugate gradients above some
//! thousand variables, and is halved until the value falls enough (Armijo).
//!
//! With w ≥ 0: the two-metric projection of Bertsekas ("Projected Newton methods for optimization
//! problems with simple constraints", SIAM J. Control and Optimization 1982). Variables at the
//! bound whose gradient pushes outwards are held by the plain gradient, the others take the Newton
//! step of their own block of H, and the whole step is projected. Projecting a Newton step of all
//! variables would be wrong: it need not descend.
//!
//! How far a point is from optimal is the largest entry of w − P(w − g), P the projection onto the
//! bounds: 0 exactly where the Karush-Kuhn-Tucker conditions hold (g = 0 where w > 0, g ≥ 0 where
//! w = 0), and the largest entry of g where there is no bound.

use super::Objective;
use super::conjugate::{dot, solve as conjugate};
use crate::{Error, Result};
use faer::linalg::solvers::Solve;
use faer::{Mat, Side};

/// What values the variables may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    /// Any.
    Free,
    /// None below 0.
    NonNegative,
}

/// How a minimum is looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Newton {
    /// What values the variables may take.
    pub bound: Bound,
    /// Stop where the distance from optimal is below this share of that at the start.
    pub tolerance: f64,
    /// Stop after this many steps in any case.
    pub iterations: usize,
    /// Up to this many variables H is formed and factored; above, conjugate gradients.
    pub dense: usize,
}

impl Default for Newton {
    fn default() -> Self {
        Newton {
            bound: Bound::Free,
            tolerance: 1e-9,
            iterations: 200,
            dense: 1500,
        }
    }
}

/// Where the search ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Minimum {
    /// The point.
    pub point: Vec<f64>,
    /// The value there.
    pub value: f64,
    /// Largest entry of w − P(w − g).
    pub residual: f64,
    /// Steps taken.
    pub iterations: usize,
    /// Whether the tolerance was reached.
    pub converged: bool,
}

/// Share of the predicted fall that a step must reach.
const ARMIJO: f64 = 1e-4;
/// Variables nearer to the bound than this share of the largest count as being at it.
const NEAR_BOUND: f64 = 1e-6;
const HALVINGS: usize = 50;

impl Newton {
    /// Minimise from `start`, which is moved into the bounds first.
    pub(crate) fn minimise(&self, objective: &mut dyn Objective, start: &[f64]) -> Result<Minimum> {
        let dim = objective.dim();
        if start.len() != dim {
            return Err(Error::shape(
                "numbers in the starting point",
                dim,
                start.len(),
            ));
        }
        let mut point = start.to_vec();
        self.project(&mut point);
        let mut gradient = vec![0.0; dim];
        let mut value = finite(objective.evaluate(&point, &mut gradient)?, 0)?;
        let first = self.residual(&point, &gradient);
        let mut residual = first;
        let mut tried = vec![0.0; dim];
        let mut tried_gradient = vec![0.0; dim];
        let mut iterations = 0;
        while residual > self.tolerance * first && iterations < self.iterations {
            let free = self.free(&point, &gradient, residual);
            let step = self.step(objective, &gradient, &free, residual / first)?;
            let mut length = 1.0;
            let mut accepted = None;
            for _ in 0..HALVINGS {
                for (index, target) in tried.iter_mut().enumerate() {
                    *target = point[index] - length * step[index];
                }
                self.project(&mut tried);
                let tried_value = objective.evaluate(&tried, &mut tried_gradient)?;
                let mut fall = 0.0;
                for index in 0..dim {
                    fall += gradient[index]
                        * if free[index] {
                            length * step[index]
                        } else {
                            point[index] - tried[index]
                        };
                }
                // Near the minimum the fall is below what f64 can tell apart in the value.
                let slack = 8.0 * f64::EPSILON * value.abs();
                if tried_value <= value - ARMIJO * fall + slack {
                    accepted = Some(tried_value);
                    break;
                }
                length *= 0.5;
            }
            let Some(tried_value) = accepted else {
                // No step descends: rounding has the last word. H must be that of `point` again.
                objective.evaluate(&point, &mut gradient)?;
                break;
            };
            iterations += 1;
            std::mem::swap(&mut point, &mut tried);
            std::mem::swap(&mut gradient, &mut tried_gradient);
            value = finite(tried_value, iterations)?;
            residual = self.residual(&point, &gradient);
        }
        Ok(Minimum {
            converged: residual <= self.tolerance * first,
            point,
            value,
            residual,
            iterations,
        })
    }

    fn project(&self, point: &mut [f64]) {
        if self.bound == Bound::NonNegative {
            for value in point {
                *value = value.max(0.0);
            }
        }
    }

    /// Largest entry of w − P(w − g).
    fn residual(&self, point: &[f64], gradient: &[f64]) -> f64 {
        let entries = point.iter().zip(gradient).map(|(w, g)| match self.bound {
            Bound::Free => g.abs(),
            Bound::NonNegative => (w - (w - g).max(0.0)).abs(),
        });
        entries.fold(0.0, f64::max)
    }

    /// Variables that take the Newton step: not those at the bound that the gradient holds there.
    fn free(&self, point: &[f64], gradient: &[f64], residual: f64) -> Vec<bool> {
        if self.bound == Bound::Free {
            return vec![true; point.len()];
        }
        let largest = point.iter().copied().fold(0.0, f64::max);
        let near = residual.min(NEAR_BOUND * largest);
        (point.iter().zip(gradient))
            .map(|(w, g)| !(*w <= near && *g > 0.0))
            .collect()
    }

    /// The step to be subtracted: H⁻¹g on the free variables, g on the others.
    fn step(
        &self,
        objective: &dyn Objective,
        gradient: &[f64],
        free: &[bool],
        progress: f64,
    ) -> Result<Vec<f64>> {
        let mut step = if gradient.len() <= self.dense {
            dense_step(objective, gradient, free)?
        } else {
            let tolerance = progress.sqrt().min(0.5);
            let limit = (2 * gradient.len()).min(500);
            conjugate(objective, gradient, free, tolerance, limit)?
        };
        // Rounding may spoil a step of a nearly singular H; the gradient always descends.
        let descent = dot(gradient, &step);
        if descent.is_nan() || descent <= 0.0 {
            step.copy_from_slice(gradient);
        }
        for ((target, g), free) in step.iter_mut().zip(gradient).zip(free) {
            if !*free {
                *target = *g;
            }
        }
        Ok(step)
    }
}

fn dense_step(objective: &dyn Objective, gradient: &[f64], free: &[bool]) -> Result<Vec<f64>> {
    let dim = gradient.len();
    let mut whole = Mat::zeros(dim, dim);
    objective.add_hessian(&mut whole)?;
    let places: Vec<usize> = (0..dim).filter(|index| free[*index]).collect();
    let count = places.len();
    let mut step = vec![0.0; dim];
    if count == 0 {
        return Ok(step);
    }
    let trace: f64 = places.iter().map(|p| whole[(*p, *p)]).sum();
    let mut ridge = 0.0;
    for _ in 0..8 {
        let part = Mat::from_fn(count, count, |row, column| {
            // Only the lower triangle is filled in.
            let (a, b) = (places[row.max(column)], places[row.min(column)]);
            whole[(a, b)] + if row == column { ridge } else { 0.0 }
        });
        if let Ok(factor) = part.llt(Side::Lower) {
            let right = Mat::from_fn(count, 1, |row, _| gradient[places[row]]);
            let solved = factor.solve(&right);
            for (row, place) in places.iter().enumerate() {
                step[*place] = solved[(row, 0)];
            }
            return Ok(step);
        }
        // Not positive definite to working precision: the least ridge that factors.
        ridge = if ridge == 0.0 {
            1e-14 * trace / count as f64
        } else {
            100.0 * ridge
        };
    }
    step.copy_from_slice(gradient);
    Ok(step)
}

fn finite(value: f64, step: usize) -> Result<f64> {
    if value.is_finite() {
        return Ok(value);
    }
    Err(Error::Diverged {
        step: step as u64,
        problem: "the objective is not finite".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ½ wᵀQw − bᵀw + Σ log(1 + exp(w)): convex, not quadratic.
    struct Soft {
        quadratic: Mat<f64>,
        linear: Vec<f64>,
        point: Vec<f64>,
    }

    fn sigmoid(w: f64) -> f64 {
        1.0 / (1.0 + (-w).exp())
    }

    impl Objective for Soft {
        fn dim(&self) -> usize {
            self.linear.len()
        }

        fn evaluate(&mut self, point: &[f64], gradient: &mut [f64]) -> Result<f64> {
            self.point = point.to_vec();
            let dim = self.dim();
            let mut value = 0.0;
            for row in 0..dim {
                let product: f64 = (0..dim).map(|c| self.quadratic[(row, c)] * point[c]).sum();
                gradient[row] = product - self.linear[row] + sigmoid(point[row]);
                value += point[row] * (0.5 * product - self.linear[row]);
                value += (1.0 + point[row].exp()).ln();
            }
            Ok(value)
        }

        fn hessian_product(&self, direction: &[f64], out: &mut [f64]) -> Result<()> {
            let mut whole = Mat::zeros(self.dim(), self.dim());
            self.add_hessian(&mut whole)?;
            for (row, target) in out.iter_mut().enumerate() {
                *target = (0..self.dim())
                    .map(|c| whole[(row, c)] * direction[c])
                    .sum();
            }
            Ok(())
        }

        fn add_hessian(&self, out: &mut Mat<f64>) -> Result<()> {
            *out += &self.quadratic;
            for (index, w) in self.point.iter().enumerate() {
                out[(index, index)] += sigmoid(*w) * (1.0 - sigmoid(*w));
            }
            Ok(())
        }
    }

    fn soft(dim: usize) -> Soft {
        let mut random = crate::random::Stream::new(4, "newton test", 0);
        let root = Mat::from_fn(dim, dim, |_, _| random.normal());
        Soft {
            quadratic: &root * root.transpose() + 0.1 * Mat::<f64>::identity(dim, dim),
            linear: (0..dim).map(|_| 3.0 * random.normal()).collect(),
            point: Vec::new(),
        }
    }

    /// Projected gradient with a step of 1/L until nothing moves: slow and simple.
    fn reference(objective: &mut Soft, bound: f64) -> Vec<f64> {
        let dim = objective.dim();
        let step = 1.0 / (objective.quadratic.norm_l2() + 0.25);
        let mut point = vec![0.0; dim];
        let mut gradient = vec![0.0; dim];
        for _ in 0..200_000 {
            objective.evaluate(&point, &mut gradient).unwrap();
            for (w, g) in point.iter_mut().zip(&gradient) {
                *w = (*w - step * g).max(bound);
            }
        }
        point
    }

    #[test]
    fn both_solvers_with_and_without_bounds_reach_the_reference() {
        for (bound, floor) in [(Bound::Free, f64::MIN), (Bound::NonNegative, 0.0)] {
            let expected = reference(&mut soft(12), floor);
            let held = expected.iter().filter(|w| **w == 0.0).count();
            assert_eq!(held > 0, bound == Bound::NonNegative, "{expected:?}");
            for dense in [0, 100] {
                let newton = Newton {
                    bound,
                    dense,
                    ..Newton::default()
                };
                let found = newton.minimise(&mut soft(12), &[1.0; 12]).unwrap();
                assert!(found.converged && found.residual < 1e-7, "{found:?}");
                for (a, b) in found.point.iter().zip(&expected) {
                    assert!((a - b).abs() < 1e-7, "{bound:?} dense {dense}: {a} {b}");
                }
            }
        }
    }

    #[test]
    fn the_residual_is_zero_only_where_the_conditions_hold() {
        let newton = Newton {
            bound: Bound::NonNegative,
            ..Newton::default()
        };
        // w = 0 with g ≥ 0 is optimal; w > 0 with g ≠ 0 and w = 0 with g < 0 are not.
        assert_eq!(newton.residual(&[0.0, 2.0], &[3.0, 0.0]), 0.0);
        assert_eq!(newton.residual(&[0.0, 2.0], &[3.0, 0.5]), 0.5);
        assert_eq!(newton.residual(&[0.0, 2.0], &[-3.0, 0.0]), 3.0);
        assert_eq!(newton.residual(&[0.1], &[5.0]), 0.1);
    }
}
