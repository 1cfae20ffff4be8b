//! SupCon and InfoNCE: each relevant item as the right answer among all items of the batch. Khosla,
//! Teterwak, Wang, Sarna, Tian, Isola, Maschinot, Liu & Krishnan, "Supervised Contrastive Learning",
//! NeurIPS 2020 (L_out, eq. 2); van den Oord, Li & Vinyals, "Representation Learning with Contrastive
//! Predictive Coding", 2018.
//!
//! With cosines S of an anchor, τ the temperature, positives P and all items A but itself, the loss is
//! the mean over anchors with a positive of −1/|P|·Σ_P ln(e^{S/τ} / Σ_A e^{S/τ}). Where queries are
//! another corpus they are the anchors, and with one relevant item each this is InfoNCE with the
//! relevant items of other queries and the drawn items as negatives.

use super::batch::Kind;
use super::cosines::{Counts, PairLoss, exponentials};
use super::{Course, SPACES, WithoutProxies, train};
use crate::Result;
use crate::learn::descent::Schedule;
use crate::learn::field::Start;
use crate::learn::parameters::{Checked, parameters, require};
use crate::learn::rounds::ByRounds;
use crate::learn::{Learner, Parameters, Problem, Run};
use crate::metric::{Map, Space};
use std::collections::BTreeMap;

parameters! {
    /// Low-rank map in which, by cosine, relevant items stand out among all items of a batch. Learns
    /// from labels, relevance judgements or similar pairs; with queries in another corpus it is
    /// InfoNCE. A step costs O(b·d·rank + b²·rank) for b = batch + drawn rows, and memory does not
    /// grow with the number of rows. Use it for retrieval by queries, and beside `multi-similarity`
    /// where classes have several rows; compare by cosine.
    pub struct SupCon {
        /// Numbers in a mapped vector.
        rank: usize = 64,
        /// Temperature τ: less counts the nearest more.
        temperature: f64 = 0.1,
        /// Pull of the map towards orthonormal rows. More for new identities.
        lambda: f64 = 1e-4,
        /// Adam's rate at the start; it falls linearly to 0.
        rate: f64 = 0.003,
        /// Batches.
        steps: u64 = 1000,
        /// Rows in a batch, about.
        batch: usize = 512,
        /// Rows of each class in a batch, where there are labels; more where there are few classes.
        per_class: usize = 4,
        /// Items drawn uniformly beside these.
        drawn: usize = 128,
        /// Where training starts.
        start: Start = Start::Pca,
        /// Subtract the training mean before mapping, in training as in use.
        centre: bool = true,
        /// Validate this many times along the way and keep the best map.
        checks: u64 = 10,
        /// Stop after this many validations without a new best.
        patience: u64 = 4,
    }
}

impl SupCon {
    /// Check the parameters.
    pub fn check(self) -> Result<Checked<Self>> {
        let temperature = self.temperature;
        require(temperature > 0.0, "temperature", "above 0", temperature)?;
        self.course().check()?;
        Ok(Checked(self))
    }
}

impl WithoutProxies for SupCon {
    fn course(&self) -> Course {
        Course {
            rank: self.rank,
            lambda: self.lambda,
            rate: self.rate,
            proxy_rate: 1.0,
            schedule: Schedule {
                steps: self.steps,
                checks: self.checks,
                patience: self.patience,
            },
            batch: self.batch,
            per_class: self.per_class,
            drawn: self.drawn,
            start: self.start,
            centre: self.centre,
        }
    }
}

impl Learner for Checked<SupCon> {
    fn name(&self) -> &'static str {
        "supcon"
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        self.0.values()
    }

    fn spaces(&self) -> &'static [Space] {
        &SPACES
    }

    fn by_rounds(&self) -> Option<&dyn ByRounds> {
        Some(self)
    }

    fn fit(&self, problem: &Problem<'_>, run: &mut Run<'_>) -> Result<Map> {
        train("supcon", &self.0.course(), &self.0, false, problem, run)
    }
}

impl PairLoss for SupCon {
    fn anchor(&self, cosines: &mut [f32], kinds: &[Kind], counts: Counts) -> f64 {
        let positives = kinds.iter().filter(|k| **k == Kind::Positive).count();
        if positives == 0 {
            cosines.fill(0.0);
            return 0.0;
        }
        let inverse = (1.0 / self.temperature) as f32;
        let (mut largest, mut wanted) = (f32::NEG_INFINITY, 0.0_f64);
        for (s, kind) in cosines.iter_mut().zip(kinds) {
            match kind {
                Kind::Positive => wanted += f64::from(*s),
                Kind::Negative => {}
                // No cosine is so low: what is ignored has no part in the sum.
                Kind::Ignored => *s = f32::NEG_INFINITY,
            }
            largest = largest.max(*s);
        }
        let wanted = (wanted / positives as f64 - f64::from(largest)) / self.temperature;
        let total = exponentials(cosines, largest, inverse);
        let share = 1.0 / counts.with_positives.max(1) as f64;
        let factor = (share / self.temperature / total) as f32;
        let pull = (share / self.temperature / positives as f64) as f32;
        for (s, kind) in cosines.iter_mut().zip(kinds) {
            *s *= factor;
            if *kind == Kind::Positive {
                *s -= pull;
            }
        }
        share * (total.ln() - wanted)
    }
}
