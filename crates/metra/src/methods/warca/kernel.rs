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
use crate::dataset::Dataset;
use crate::model::Map;
use crate::supervision::SupervisionKind;
use crate::training::descent::Schedule;
use crate::training::irrelevant::IrrelevantItems;
use crate::training::kernel::{KernelAxes, KernelSpec};
use crate::training::parameters::{Bound, Choice, parameters};
use crate::training::training_space::TrainingSpace;
use crate::training::warp::check_relevance;
use crate::training::{Method, Run};
use crate::{Error, Result};

/// Optimiser: adam (on kernel PCA coordinates) or preconditioned (the paper's).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KernelOptimiser {
    /// Adam in coordinates of kernel PCA.
    Adam,
    /// The paper's preconditioned steps on the coefficients of the rows.
    Preconditioned,
}

impl Choice for KernelOptimiser {
    const ALL: &'static [(&'static str, Self)] = &[
        ("adam", KernelOptimiser::Adam),
        ("preconditioned", KernelOptimiser::Preconditioned),
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
        /// Dimension of a mapped vector.
        rank: usize = 100 => Bound::AtLeast(1.0),
        /// Margin by which irrelevant items must be farther, where relevant pairs are at mean
        /// distance 1. A small margin is met trivially in a kernel space.
        margin: f64 = 1.0 => Bound::Above(0.0),
        /// Strength of the regulariser.
        lambda: f64 = 3e-4 => Bound::AtLeast(0.0),
        /// How the map is moved.
        optimiser: KernelOptimiser = KernelOptimiser::Adam,
        /// Initial learning rate; it decays linearly to 0. Preconditioned steps need about 3.
        rate: f64 = 0.01 => Bound::Above(0.0),
        /// Relevant pairs per minibatch.
        batch: usize = 512 => Bound::AtLeast(1.0),
        /// Number of items sampled as possible negatives per minibatch.
        pool: usize = 512 => Bound::AtLeast(1.0),
        /// Items that count as irrelevant: all that are not relevant, or those judged irrelevant alone (a
        /// grade of 0 or less, or a dissimilar pair), where judges did not see all that is relevant.
        irrelevant: IrrelevantItems = IrrelevantItems::All,
        /// Initialisation of the map: pca, lda (needs labels) or random.
        start: Start = Start::Pca,
    }
    shared {
        /// When it validates and stops.
        schedule: Schedule = Schedule::of(300),
        /// The kernel.
        kernel: KernelSpec = KernelSpec::default(),
    }
}

impl KernelWarca {
    /// The settings of the linear learner that works in the feature space.
    fn warca(&self) -> Warca {
        Warca {
            rank: self.rank,
            margin: self.margin,
            lambda: self.lambda,
            rate: self.rate,
            batch: self.batch,
            pool: self.pool,
            start: self.start,
            schedule: self.schedule,
            ..Warca::default()
        }
    }
}

impl Method for KernelWarca {
    const NAME: &'static str = "kernel-warca";
    const SUMMARY: &'static str = "Kernel WARCA, mainly for histograms with a χ² kernel.";
    const NEEDS: &'static [SupervisionKind] = SupervisionKind::RELEVANCE;
    const TRAINS_FOR_CODES: bool = true;
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("margin", &["1", "1.4"]), ("start", &["pca", "lda"])];
    // Sec. 4.2 of the paper; rate and lambda are searched there. Its own steps (optimiser=preconditioned) need a
    // landmark a row and another rate.
    const PAPER: &'static [(&'static str, &'static str)] = &[
        ("rank", "40"),
        ("margin", "1"),
        ("batch", "512"),
        ("steps", "2000"),
        ("patience", "10"),
    ];

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let settings = self;
        let drawn = self.irrelevant.of("kernel-warca", data)?;
        let relevance = drawn.get();
        check_relevance(relevance)?;
        let axes = KernelAxes::new(data.items(), settings.kernel, run.seed)?;
        run.check_stop()?;
        run.facts.insert("axes".into(), axes.rank() as f64);
        let mut warca = settings.warca();
        warca.rank = warca.rank.min(axes.rank());
        match settings.optimiser {
            KernelOptimiser::Adam => {
                let space = TrainingSpace::in_kernel_space(data, &axes)?;
                train(&warca, "kernel-warca", relevance, &space, run)
            }
            KernelOptimiser::Preconditioned => {
                if !data.supervision().within() || axes.gram().len() as u64 != data.items().len() {
                    return Err(Error::parameter(
                        "optimiser",
                        "adam where queries are another corpus or rows are more than landmarks",
                        "preconditioned",
                    ));
                }
                train_preconditioned(&warca, relevance, data, &axes, run)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Optimiser;
    use super::*;
    use crate::data::synthetic::Nuisance;
    use crate::supervision::{Labels, Supervision};
    use crate::training::{AnyMethod, KernelKind, Observer, Progress};

    #[derive(Default)]
    struct Losses(Vec<f64>);

    impl Observer for Losses {
        fn progress(&mut self, progress: &Progress) {
            self.0.push(progress.loss);
        }
    }

    fn losses(learner: &dyn AnyMethod, data: &Dataset<'_>) -> Vec<f64> {
        let mut losses = Losses::default();
        let mut run = Run {
            seed: 3,
            observer: Some(&mut losses),
            ..Run::default()
        };
        learner.fit(data, &mut run).unwrap();
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
        let data = Dataset::new(&set.corpus, &supervision).unwrap();
        let kernel = KernelWarca {
            rank: 8,
            kernel: KernelSpec {
                kernel: KernelKind::Linear,
                ..KernelSpec::default()
            },
            margin: 0.5,
            schedule: Schedule::of(60),
            batch: 64,
            pool: 64,
            ..KernelWarca::default()
        };
        // Plain steps there are those that the kernel matrix's inverse preconditions, which never leaves the
        // coefficients of the rows.
        let plain = KernelWarca {
            optimiser: KernelOptimiser::Preconditioned,
            lambda: 0.0,
            rate: 1.0,
            ..kernel.clone()
        };
        let sgd = Warca {
            optimiser: Optimiser::Sgd,
            ..plain.warca()
        };
        for (linear, kernel) in [(kernel.warca(), kernel), (sgd, plain)] {
            let linear = losses(&linear.checked().unwrap(), &data);
            let found = losses(&kernel.checked().unwrap(), &data);
            assert_eq!(linear.len(), 60);
            assert!(linear[59] < 0.9 * linear[0], "{} {}", linear[0], linear[59]);
            for (step, (a, b)) in linear.iter().zip(&found).enumerate() {
                assert!((a - b).abs() <= 1e-4 * a.max(1.0), "step {step}: {a} {b}");
            }
        }
    }
}
