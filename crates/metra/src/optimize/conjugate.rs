//! Conjugate gradients for Newton steps whose Hessian is too large to form.
//!
//! The system is solved on the free variables only, and no more exactly than the outer method can
//! use (Dembo, Eisenstat & Steihaug 1982): the residual falls to min(½, √‖g‖/‖g₀‖) of ‖g‖.

use super::Objective;
use crate::Result;

/// Solve H p = g on the variables for which `free` holds; `p` is 0 elsewhere.
pub(super) fn solve(
    objective: &dyn Objective,
    gradient: &[f64],
    free: &[bool],
    tolerance: f64,
    limit: usize,
) -> Result<Vec<f64>> {
    let dim = gradient.len();
    let mut solution = vec![0.0; dim];
    let mut residual: Vec<f64> = (gradient.iter().zip(free))
        .map(|(g, free)| if *free { *g } else { 0.0 })
        .collect();
    let mut direction = residual.clone();
    let mut product = vec![0.0; dim];
    let mut squared = dot(&residual, &residual);
    let goal = squared * tolerance * tolerance;
    for _ in 0..limit {
        if squared <= goal || squared == 0.0 {
            break;
        }
        objective.hessian_product(&direction, &mut product)?;
        for (value, free) in product.iter_mut().zip(free) {
            if !*free {
                *value = 0.0;
            }
        }
        let curvature = dot(&direction, &product);
        // Rounding can make the curvature of a flat direction vanish: what was found so far is a
        // descent direction already.
        if curvature.is_nan() || curvature <= 0.0 {
            break;
        }
        let step = squared / curvature;
        for (value, d) in solution.iter_mut().zip(&direction) {
            *value += step * d;
        }
        for (value, h) in residual.iter_mut().zip(&product) {
            *value -= step * h;
        }
        let next = dot(&residual, &residual);
        let ratio = next / squared;
        squared = next;
        for (d, r) in direction.iter_mut().zip(&residual) {
            *d = r + ratio * *d;
        }
    }
    Ok(solution)
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
