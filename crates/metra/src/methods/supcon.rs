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
use crate::model::{Map, Space};
use crate::supervision::SupervisionKind;
use crate::training::in_batch::cosines::{Counts, Graded, PairLoss, exponentials};
use crate::training::in_batch::{InBatchTraining, SPACES, WithoutProxies, train};
use crate::training::local_sgd::LocalSgd;
use crate::training::parameters::{Bound, parameters};
use crate::training::{Method, Run};

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

impl<G: Graded> PairLoss<G> for SupCon {
    fn anchor(&self, cosines: &mut [f32], kinds: &[G], counts: Counts) -> f64 {
        let inverse = (1.0 / self.temperature) as f32;
        let (mut largest, mut wanted, mut grades) = (f32::NEG_INFINITY, 0.0_f64, 0.0_f64);
        for (s, kind) in cosines.iter_mut().zip(kinds) {
            match kind.grade() {
                Some(grade) => {
                    wanted += f64::from(grade) * f64::from(*s);
                    grades += f64::from(grade);
                }
                // No cosine is so low: what is ignored has no part in the sum.
                None => *s = f32::NEG_INFINITY,
            }
            largest = largest.max(*s);
        }
        if grades == 0.0 {
            cosines.fill(0.0);
            return 0.0;
        }
        let wanted = (wanted / grades - f64::from(largest)) / self.temperature;
        let total = exponentials(cosines, largest, inverse);
        let share = 1.0 / counts.with_positives.max(1) as f64;
        let factor = (share / self.temperature / total) as f32;
        let pull = (share / self.temperature / grades) as f32;
        for (s, kind) in cosines.iter_mut().zip(kinds) {
            *s = *s * factor - pull * kind.grade().unwrap_or(0.0);
        }
        share * (total.ln() - wanted)
    }
}
