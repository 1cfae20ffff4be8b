//! AON, the approximately orthonormal regulariser of WARCA (Jose & Fleuret, ECCV 2016, eq. 18):
//! ‖WWᵀ − I‖² keeps the rows of a map of about length 1 and apart, so that no direction dies out
//! and none takes over. Other losses over a low-rank map use it too.

use crate::linalg::{RowBuf, cross, mix};
use faer::{Accum, MatRef};

/// Add λ times the derivative of ½‖WWᵀ − I‖², which is 2(WWᵀ − I)W (eq. 19).
pub(crate) fn pull_to_orthonormal(map: &RowBuf, lambda: f32, gradient: &mut RowBuf) {
    let rank = map.len();
    let mut product = vec![0.0; rank * rank];
    cross(map.rows(), map.rows(), 1.0, &mut product);
    for index in 0..rank {
        product[index * rank + index] -= 1.0;
    }
    let product = MatRef::from_row_major_slice(&product, rank, rank);
    let target = gradient.values_mut();
    mix(product, map.rows(), 2.0 * lambda, Accum::Add, target);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pull_is_the_derivative_of_the_penalty() {
        let values = vec![0.9, 0.3, -0.2, 0.1, 1.2, 0.4];
        let penalty = |values: &[f32]| {
            let mut sum = 0.0_f64;
            for i in 0..2 {
                for j in 0..2 {
                    let product: f64 = (0..3)
                        .map(|k| f64::from(values[3 * i + k]) * f64::from(values[3 * j + k]))
                        .sum();
                    sum += 0.5 * (product - f64::from(u8::from(i == j))).powi(2);
                }
            }
            sum
        };
        let map = RowBuf::from_values(values.clone(), 3).unwrap();
        let mut gradient = RowBuf::zeros(2, 3);
        pull_to_orthonormal(&map, 0.5, &mut gradient);
        for place in 0..6 {
            let moved = |by: f32| {
                let mut values = values.clone();
                values[place] += by;
                penalty(&values)
            };
            let slope = (moved(1e-3) - moved(-1e-3)) / 2e-3;
            let found = f64::from(gradient.values()[place]) / 0.5;
            assert!((slope - found).abs() < 1e-3, "{slope} {found}");
        }
    }
}
