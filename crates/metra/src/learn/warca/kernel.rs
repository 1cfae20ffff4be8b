//! WARCA in a kernel's feature space (Sec. 3.4 of the paper).
//!
//! z = A k(x), where k(x) are kernel values with the training rows. Two ways to the same end: Adam in
//! coordinates of kernel PCA, in which plain steps are already those that K⁻¹ preconditions, and the
//! paper's own update of A (eq. 25, see `preconditioned`). Adam needs no search for the rate and was
//! slightly ahead on VIPeR, so it is the default.
//!
//! Departs from the paper: χ² results need the exponential kernel exp(−χ²/(2·mean)), which its
//! figures fit and the additive one does not; landmarks (Nyström) where the N × N matrix would be
//! too large.

use super::preconditioned::train_preconditioned;
use super::{Start, Warca, train};
use crate::learn::field::Field;
use crate::learn::kernel::{KernelAxes, KernelKind, KernelSpec};
use crate::learn::parameters::{Checked, Choice, parameters};
use crate::learn::warp::check_relevance;
use crate::learn::{Learner, Parameters, Problem, Run};
use crate::metric::Map;
use crate::{Error, Result};
use std::collections::BTreeMap;

/// How the map is moved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Optimiser {
    /// Adam in coordinates of kernel PCA.
    Adam,
    /// The paper's preconditioned steps on the coefficients of the rows.
    Preconditioned,
}

impl Choice for Optimiser {
    const ALL: &'static [(&'static str, Self)] = &[
        ("adam", Optimiser::Adam),
        ("preconditioned", Optimiser::Preconditioned),
    ];
}

parameters! {
    /// WARCA after a kernel: for histograms compared by χ² above all. Learns from labels, relevance
    /// judgements or similar pairs. With N landmarks it takes O(N²·d + N³) once, O((batch +
    /// pool)·N·rank) a step and O(N²) memory; mapping a new vector costs O(N·d), and the model file
    /// holds the N training vectors. Use it for re-identification with histogram features and some
    /// thousand training images; for more, plain WARCA after `--prepare sqrt` or `chi2:1` costs a
    /// fraction.
    pub struct KernelWarca {
        /// Numbers in a mapped vector.
        rank: usize = 100,
        /// The kernel.
        kernel: KernelKind = KernelKind::ExponentialChiSquare,
        /// Width of rbf and exp-chi2, in mean distances of training rows.
        width: f64 = 2.0,
        /// Power of the polynomial kernel.
        degree: u64 = 2,
        /// Added to the inner product of the polynomial kernel, relative to the mean squared length.
        offset: f64 = 1.0,
        /// At most this many training rows serve as landmarks; more rows are then approximated.
        landmarks: usize = 2000,
        /// Margin by which irrelevant items must be farther, where relevant pairs are at mean
        /// distance 1. A kernel's space has room to keep a small one without learning anything.
        margin: f64 = 1.0,
        /// Strength of the regulariser.
        lambda: f64 = 3e-4,
        /// How the map is moved.
        optimiser: Optimiser = Optimiser::Adam,
        /// Rate at the start; it falls linearly to 0. Preconditioned steps want about 3.
        rate: f64 = 0.01,
        /// Minibatches.
        steps: u64 = 300,
        /// Relevant pairs in a minibatch.
        batch: usize = 512,
        /// Items drawn as possible negatives for a minibatch.
        pool: usize = 512,
        /// Where training starts.
        start: Start = Start::Pca,
        /// Validate this many times along the way and keep the best map.
        checks: u64 = 10,
        /// Stop after this many validations without a new best.
        patience: u64 = 4,
    }
}

impl KernelWarca {
    /// Check the parameters.
    pub fn check(self) -> Result<Checked<Self>> {
        self.spec().check()?;
        self.warca().check()?;
        Ok(Checked(self))
    }

    /// The settings of the linear learner that works in the feature space.
    fn warca(&self) -> Warca {
        Warca {
            rank: self.rank,
            margin: self.margin,
            lambda: self.lambda,
            rate: self.rate,
            steps: self.steps,
            batch: self.batch,
            pool: self.pool,
            start: self.start,
            checks: self.checks,
            patience: self.patience,
            ..Warca::default()
        }
    }

    fn spec(&self) -> KernelSpec {
        KernelSpec {
            kind: self.kernel,
            width: self.width,
            degree: u32::try_from(self.degree).unwrap_or(u32::MAX),
            offset: self.offset,
            landmarks: self.landmarks,
        }
    }
}

impl Learner for Checked<KernelWarca> {
    fn name(&self) -> &'static str {
        "kernel-warca"
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        self.0.values()
    }

    fn fit(&self, problem: &Problem<'_>, run: &mut Run<'_>) -> Result<Map> {
        let settings = &self.0;
        let relevance = problem.relevance("kernel-warca")?;
        check_relevance(relevance)?;
        let axes = KernelAxes::new(problem.items(), settings.spec(), run.seed)?;
        run.check_stop()?;
        run.facts.insert("axes".into(), axes.rank() as f64);
        let mut warca = settings.warca();
        warca.rank = warca.rank.min(axes.rank());
        match settings.optimiser {
            Optimiser::Adam => {
                let field = Field::in_kernel_space(problem, &axes)?;
                train(&warca, "kernel-warca", relevance, &field, run)
            }
            Optimiser::Preconditioned => {
                if !problem.supervision().within()
                    || axes.gram().len() as u64 != problem.items().len()
                {
                    return Err(Error::parameter(
                        "optimiser",
                        "adam where queries are another corpus or rows are more than landmarks",
                        "preconditioned",
                    ));
                }
                train_preconditioned(&warca, relevance, problem, &axes, run)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::synthetic::Nuisance;
    use crate::learn::{Observer, Progress};
    use crate::supervision::{Labels, Supervision};

    #[derive(Default)]
    struct Losses(Vec<f64>);

    impl Observer for Losses {
        fn progress(&mut self, progress: &Progress) {
            self.0.push(progress.loss);
        }
    }

    fn losses(learner: &dyn Learner, problem: &Problem<'_>) -> Vec<f64> {
        let mut losses = Losses::default();
        let mut run = Run {
            seed: 3,
            observer: Some(&mut losses),
            ..Run::default()
        };
        learner.fit(problem, &mut run).unwrap();
        losses.0
    }

    #[test]
    fn the_linear_kernel_goes_the_way_of_linear_warca() {
        // With fewer rows than dimensions both train in principal coordinates of the rows, from the
        // same start and with the same draws: they are the same up to the signs of the axes.
        let set = Nuisance {
            classes: 12,
            signal: 6,
            noise: 90,
            seed: 1,
        }
        .rows(60);
        let supervision = Supervision::labels(Labels::from_numbers(&set.classes).unwrap());
        let problem = Problem::new(&set.corpus, &supervision).unwrap();
        let kernel = KernelWarca {
            rank: 8,
            kernel: KernelKind::Linear,
            margin: 0.5,
            steps: 60,
            batch: 64,
            pool: 64,
            ..KernelWarca::default()
        };
        let linear = losses(&kernel.warca().check().unwrap(), &problem);
        let found = losses(&kernel.check().unwrap(), &problem);
        assert_eq!(linear.len(), 60);
        assert!(linear[59] < 0.9 * linear[0], "{} {}", linear[0], linear[59]);
        for (step, (a, b)) in linear.iter().zip(&found).enumerate() {
            assert!((a - b).abs() <= 1e-4 * a.max(1.0), "step {step}: {a} {b}");
        }
    }
}
