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

use super::batch::Kind;
use super::cosines::{Counts, PairLoss, Terms};
use super::{Course, SPACES, train};
use crate::Result;
use crate::learn::descent::Schedule;
use crate::learn::field::Start;
use crate::learn::parameters::{Checked, parameters, require};
use crate::learn::{Learner, Parameters, Problem, Run};
use crate::metric::{Map, Space};
use std::collections::BTreeMap;

parameters! {
    /// Low-rank map with one point a class, by cosine near to the rows of its class and far from all
    /// others. Needs class labels. A step costs O(b·d·rank + b·classes·rank) for b = batch + drawn
    /// rows; memory is O(classes·(d + rank + b)), whatever the number of rows. Use it for some thousand
    /// known classes of several rows; for new identities the other losses of its kind are as good.
    pub struct ProxyAnchor {
        /// Numbers in a mapped vector.
        rank: usize = 64,
        /// Sharpness α.
        alpha: f64 = 8.0,
        /// Margin δ on both sides of cosine 0.
        margin: f64 = 0.5,
        /// Rate of the proxies, relative to that of the map.
        proxy_rate: f64 = 1.0,
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

impl ProxyAnchor {
    /// Check the parameters.
    pub fn check(self) -> Result<Checked<Self>> {
        require(self.alpha > 0.0, "alpha", "above 0", self.alpha)?;
        let rate = self.proxy_rate;
        require(rate >= 0.0, "proxy_rate", "at least 0", rate)?;
        self.course().check()?;
        Ok(Checked(self))
    }

    fn course(&self) -> Course {
        Course {
            rank: self.rank,
            lambda: self.lambda,
            rate: self.rate,
            proxy_rate: self.proxy_rate,
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

impl Learner for Checked<ProxyAnchor> {
    fn name(&self) -> &'static str {
        "proxy-anchor"
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        self.0.values()
    }

    fn spaces(&self) -> &'static [Space] {
        &SPACES
    }

    fn fit(&self, problem: &Problem<'_>, run: &mut Run<'_>) -> Result<Map> {
        train(
            "proxy-anchor",
            &self.0.course(),
            &self.0,
            true,
            problem,
            run,
        )
    }
}

impl PairLoss for ProxyAnchor {
    fn anchor(&self, cosines: &mut [f32], kinds: &[Kind], counts: Counts) -> f64 {
        let (alpha, margin) = (self.alpha as f32, self.margin as f32);
        let (mut own, mut others) = (Terms::default(), Terms::default());
        for (place, (s, kind)) in cosines.iter().zip(kinds).enumerate() {
            match kind {
                Kind::Positive => own.push(place, -alpha * (s - margin)),
                Kind::Negative => others.push(place, alpha * (s + margin)),
                Kind::Ignored => {}
            }
        }
        let own_share = 1.0 / counts.with_positives.max(1) as f64;
        let other_share = 1.0 / counts.anchors.max(1) as f64;
        let loss = own_share * own.soft_sum() + other_share * others.soft_sum();
        cosines.fill(0.0);
        own.place(-self.alpha * own_share, cosines);
        others.place(self.alpha * other_share, cosines);
        loss
    }
}
