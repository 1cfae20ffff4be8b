//! SupCon and InfoNCE: each relevant item as the right answer among all items of the batch. Khosla,
//! Teterwak, Wang, Sarna, Tian, Isola, Maschinot, Liu & Krishnan, "Supervised Contrastive Learning",
//! NeurIPS 2020 (L_out, eq. 2); van den Oord, Li & Vinyals, "Representation Learning with Contrastive
//! Predictive Coding", 2018.
//!
//! With cosines S of an anchor, τ the temperature, positives P and all items A but itself, the loss is
//! the mean over anchors with a positive of −1/|P|·Σ_P ln(e^{S/τ} / Σ_A e^{S/τ}). Where queries are
//! another corpus they are the anchors, and with one relevant item each this is InfoNCE with the
//! relevant items of other queries and the drawn items as negatives. With graded items ([`super::adapter`])
//! the mean over P is weighted by the grades.

use crate::Result;
use crate::dataset::Dataset;
use crate::linalg::{LANES, vectorized};
use crate::model::{Map, Space};
use crate::supervision::SupervisionKind;
use crate::training::in_batch::cosines::{Counts, PairLoss, exponentials, in_lanes, total};
use crate::training::in_batch::{InBatchTraining, SPACES, WithoutProxies, train};
use crate::training::local_sgd::LocalSgd;
use crate::training::parameters::{Bound, parameters};
use crate::training::{Method, Run, TwoModels};

parameters! {
    /// Low-rank map in which, by cosine, relevant items stand out among all items of a batch. Learns
    /// from labels, relevance judgements or similar pairs; with queries in another corpus it is
    /// InfoNCE. A step costs O(b·d·rank + b²·rank) for b = batch + drawn rows, and memory does not
    /// grow with the number of rows. Use it for retrieval by queries, and beside `multi-similarity`
    /// where classes have several rows; compare by cosine.
    pub struct SupCon {
        /// Temperature τ: lower values put more weight on the nearest items.
        temperature: f64 = 0.1 => Bound::Above(0.0),
    }
    shared {
        /// Batches and the map that is trained on them.
        training: InBatchTraining = InBatchTraining {
            rate: 0.003,
            ..InBatchTraining::default()
        },
    }
}

impl WithoutProxies for SupCon {
    fn training(&self) -> &InBatchTraining {
        &self.training
    }
}

impl Method for SupCon {
    const NAME: &'static str = "supcon";
    const SUMMARY: &'static str =
        "Low-rank map for cosine, by the supervised contrastive (InfoNCE) loss.";
    const NEEDS: &'static [SupervisionKind] = SupervisionKind::RELEVANCE;
    const STARTS_FROM_MODEL: bool = true;
    const TRAINS_FOR_CODES: bool = true;
    const TWO_MODELS: TwoModels = TwoModels::Stack;
    const GRID: &'static [(&'static str, &'static [&'static str])] = &[
        ("temperature", &["0.1", "0.2"]),
        ("rate", &["0.001", "0.003"]),
    ];

    fn spaces(&self) -> &'static [Space] {
        &SPACES
    }

    fn local_sgd(&self) -> Option<&dyn LocalSgd> {
        Some(self)
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        train(Self::NAME, &self.training, self, None, data, run)
    }
}

impl PairLoss for SupCon {
    fn anchor(&self, cosines: &mut [f32], grades: &[f32], counts: Counts) -> f64 {
        let inverse = (1.0 / self.temperature) as f32;
        let Wanted {
            largest,
            wanted,
            total: graded,
        } = Wanted::prepare(cosines, grades);
        if graded == 0.0 {
            cosines.fill(0.0);
            return 0.0;
        }
        let wanted = (wanted / graded - f64::from(largest)) / self.temperature;
        let total = exponentials(cosines, largest, inverse);
        let share = 1.0 / counts.with_positives.max(1) as f64;
        let factor = (share / self.temperature / total) as f32;
        let pull = (share / self.temperature / graded) as f32;
        vectorized(
            #[inline(always)]
            || {
                for (s, grade) in cosines.iter_mut().zip(grades) {
                    *s = *s * factor - pull * grade.max(0.0);
                }
            },
        );
        share * (total.ln() - wanted)
    }
}

/// What the loss needs to know of an anchor's cosines before their exponentials.
struct Wanted {
    largest: f32,
    /// Cosines of relevant items, weighted by their grades, and the grades' sum.
    wanted: f64,
    total: f64,
}

impl Wanted {
    /// Look at all cosines; those of items without a part become lower than any.
    fn prepare(cosines: &mut [f32], grades: &[f32]) -> Self {
        vectorized(
            #[inline(always)]
            || {
                for (s, grade) in cosines.iter_mut().zip(grades) {
                    *s = if *grade < 0.0 { f32::NEG_INFINITY } else { *s };
                }
            },
        );
        let mut largest = [f32::NEG_INFINITY; LANES];
        let (mut wanted, mut sums) = ([0.0; LANES], [0.0; LANES]);
        in_lanes(
            cosines,
            grades,
            #[inline(always)]
            |cosines, grades| {
                // The last lanes may be no items.
                let mut counted = [0.0_f32; LANES];
                for lane in 0..LANES {
                    let is_ignored = grades[lane] < 0.0;
                    counted[lane] = if is_ignored {
                        f32::NEG_INFINITY
                    } else {
                        cosines[lane]
                    };
                }
                for lane in 0..LANES {
                    largest[lane] = largest[lane].max(counted[lane]);
                }
                for lane in 0..LANES {
                    let is_relevant = grades[lane] > 0.0;
                    wanted[lane] += if is_relevant {
                        grades[lane] * cosines[lane]
                    } else {
                        0.0
                    };
                }
                for lane in 0..LANES {
                    sums[lane] += grades[lane].max(0.0);
                }
            },
        );
        Wanted {
            largest: largest.into_iter().fold(f32::NEG_INFINITY, f32::max),
            wanted: total(&wanted),
            total: total(&sums),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All cosines are far below 0 for the temperature, with and without lanes that no item fills.
    #[test]
    fn a_low_temperature_takes_the_largest_cosine_of_the_items_alone() {
        for count in [5, 16, 17] {
            let loss = SupCon {
                temperature: 0.001,
                ..SupCon::default()
            };
            let mut cosines: Vec<f32> = (0..count).map(|i| -0.5 - 0.01 * i as f32).collect();
            let mut grades = vec![0.0; count];
            (grades[0], grades[1]) = (crate::training::in_batch::batch::IGNORED, 1.0);
            let counts = Counts {
                anchors: 1,
                with_positives: 1,
            };
            let value = loss.anchor(&mut cosines, &grades, counts);
            // The relevant item is the nearest by ten temperatures.
            assert!((0.0..1e-4).contains(&value), "{count}: {value}");
            assert!(cosines.iter().all(|slope| slope.is_finite()), "{cosines:?}");
        }
    }
}
