//! Proxy-Anchor: one learned proxy a class, which pulls the rows of its class and pushes all others,
//! the farthest of its own and the nearest of the others counting most. Kim, Kim, Cho & Kwak, "Proxy
//! Anchor Loss for Deep Metric Learning", CVPR 2020; equation numbers are the paper's.
//!
//! With cosines S between the rows of a batch and a proxy p (eq. 4):
//! 1/|P⁺|·Σ_{P⁺} ln(1 + Σ_{own rows} e^{−α(S − δ)}) + 1/|P|·Σ_P ln(1 + Σ_{other rows} e^{α(S + δ)}),
//! where P⁺ are the proxies of the classes in the batch and P are all.
//!
//! Departs from it: proxies start at the mean of their class under the starting map instead of at
//! random directions, so that they need no head start (the paper gives them a hundredfold rate).

use crate::Result;
use crate::dataset::Dataset;
use crate::model::{Map, Space};
use crate::supervision::SupervisionKind;
use crate::training::in_batch::cosines::{Counts, PairLoss, SoftSum, soft_sums};
use crate::training::in_batch::{InBatchTraining, SPACES, train};
use crate::training::parameters::{Bound, parameters};
use crate::training::{Method, Run};

parameters! {
    /// Low-rank map with one point a class, by cosine near to the rows of its class and far from all
    /// others. Needs class labels. A step costs O(b·d·rank + b·classes·rank) for b = batch + drawn
    /// rows; memory is O(classes·(d + rank + b)), whatever the number of rows. Use it for some thousand
    /// known classes of several rows; for new identities the other losses of its kind are as good.
    pub struct ProxyAnchor {
        /// Sharpness α.
        alpha: f64 = 8.0 => Bound::Above(0.0),
        /// Margin δ on both sides of cosine 0.
        margin: f64 = 0.5,
        /// Rate of the proxies, relative to that of the map.
        proxy_rate: f64 = 1.0 => Bound::AtLeast(0.0),
    }
    shared {
        /// Batches and the map that is trained on them.
        training: InBatchTraining = InBatchTraining {
            rate: 0.003,
            ..InBatchTraining::default()
        },
    }
}

impl Method for ProxyAnchor {
    const NAME: &'static str = "proxy-anchor";
    const SUMMARY: &'static str = "Low-rank map for cosine, with one learned proxy per class.";
    const NEEDS: &'static [SupervisionKind] = &[SupervisionKind::Labels];
    const STARTS_FROM_MODEL: bool = true;
    const TRAINS_FOR_CODES: bool = true;
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("alpha", &["4", "8", "16"])];

    fn spaces(&self) -> &'static [Space] {
        &SPACES
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        train(
            Self::NAME,
            &self.training,
            self,
            Some(self.proxy_rate),
            data,
            run,
        )
    }
}

impl PairLoss for ProxyAnchor {
    fn anchor(&self, cosines: &mut [f32], grades: &[f32], counts: Counts) -> f64 {
        let sum = |sign: f64, anchors: usize| SoftSum {
            sharpness: (sign * self.alpha) as f32,
            base: (-sign * self.margin) as f32,
            weight: 1.0 / anchors.max(1) as f64,
        };
        let sums = (sum(-1.0, counts.with_positives), sum(1.0, counts.anchors));
        soft_sums(cosines, grades, f32::INFINITY, sums)
    }
}
