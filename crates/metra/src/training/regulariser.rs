//! What keeps a map in bounds while it is trained in steps.
//!
//! AON, the approximately orthonormal regulariser of WARCA (Jose & Fleuret, ECCV 2016, eq. 18):
//! ‖WWᵀ − I‖² keeps the rows of a map of about length 1 and apart, so that no direction dies out
//! and none takes over. Shrinkage towards the start, ‖W − W₀‖², keeps what the vectors say where
//! nothing is learned: with all principal axes as W₀ that is the identity up to a rotation.

use super::parameters::Choice;
use crate::linalg::{RowBuf, cross, mix};
use crate::{Error, Result};
use faer::{Accum, MatRef};

/// Regulariser: aon (‖WWᵀ − I‖²), frobenius (‖W‖²) or identity (‖W − W₀‖² for the start W₀, which with
/// pca and all dimensions is the identity up to a rotation).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Regulariser {
    /// ‖WWᵀ − I‖², approximately orthonormal rows.
    Aon,
    /// ‖W‖².
    Frobenius,
    /// ‖W − W₀‖² for the start W₀.
    Identity,
}

impl Choice for Regulariser {
    const ALL: &'static [(&'static str, Self)] = &[
        ("aon", Regulariser::Aon),
        ("frobenius", Regulariser::Frobenius),
        ("identity", Regulariser::Identity),
    ];
}

impl Regulariser {
    /// The start that it needs to know.
    pub(crate) fn start(self, map: &RowBuf) -> Option<RowBuf> {
        (self == Regulariser::Identity).then(|| map.clone())
    }

    /// An error where shards train apart, which do not know the start.
    pub(crate) fn check_distributed(self) -> Result<()> {
        match self {
            Regulariser::Identity => Err(Error::parameter(
                "regulariser",
                "aon or frobenius on distributed rows",
                "identity",
            )),
            _ => Ok(()),
        }
    }

    /// Add λ times half the derivative of the penalty.
    pub(crate) fn pull(
        self,
        map: &RowBuf,
        start: Option<&RowBuf>,
        lambda: f32,
        gradient: &mut RowBuf,
    ) {
        if lambda == 0.0 {
            return;
        }
        let slopes = gradient.values_mut().iter_mut().zip(map.values());
        match (self, start) {
            (Regulariser::Aon, _) => pull_to_orthonormal(map, lambda, gradient),
            (Regulariser::Identity, Some(start)) => {
                for ((slope, value), start) in slopes.zip(start.values()) {
                    *slope += lambda * (value - start);
                }
            }
            (Regulariser::Frobenius | Regulariser::Identity, _) => {
                for (slope, value) in slopes {
                    *slope += lambda * value;
                }
            }
        }
    }
}

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
    use crate::data::synthetic::Nuisance;
    use crate::dataset::Dataset;
    use crate::methods::{SupCon, Warca};
    use crate::model::Map;
    use crate::supervision::Labels;
    use crate::training::{InBatchTraining, Method, Run};

    /// Held hard, a map of all dimensions compares as the vectors do: WᵀW is the identity.
    #[test]
    fn shrinkage_to_the_start_keeps_the_metric_of_the_vectors() {
        let recipe = Nuisance {
            classes: 5,
            signal: 3,
            noise: 3,
            seed: 4,
        };
        let set = recipe.rows(100);
        let labels = Labels::from_numbers(&set.classes).unwrap();
        let data = Dataset::builder(&set.corpus)
            .labels(labels)
            .build()
            .unwrap();
        let deviation = |lambda: f64, warca: bool| {
            let regulariser = Regulariser::Identity;
            let training = InBatchTraining {
                rank: 6,
                lambda,
                regulariser,
                ..InBatchTraining::default()
            };
            let supcon = SupCon {
                training,
                ..SupCon::default()
            };
            let warca_method = Warca {
                rank: 6,
                lambda,
                regulariser,
                ..Warca::default()
            };
            let map = match warca {
                true => Method::fit(&warca_method, &data, &mut Run::new(1)),
                false => Method::fit(&supcon, &data, &mut Run::new(1)),
            };
            let Map::LowRank(map) = map.unwrap() else {
                panic!("expected a low-rank map")
            };
            let product = |i: usize, j: usize| -> f32 {
                map.weights().iter().map(|row| row[i] * row[j]).sum()
            };
            // The scale of the data is part of the map, and no part of the metric's order.
            let scale = (0..6).map(|i| product(i, i)).sum::<f32>() / 6.0;
            let pairs = (0..6).flat_map(|i| (0..6).map(move |j| (i, j)));
            let off = pairs.map(|(i, j)| product(i, j) / scale - f32::from(u8::from(i == j)));
            off.map(|value| value * value).sum::<f32>()
        };
        for warca in [true, false] {
            let (free, held) = (deviation(0.0, warca), deviation(1000.0, warca));
            assert!(free > 0.1 && held < 0.01 * free, "{warca}: {free} {held}");
        }
    }

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
