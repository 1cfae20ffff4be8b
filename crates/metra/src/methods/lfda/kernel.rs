//! LFDA in a kernel's feature space (Sec. 3.4 of the paper; χ² kernels by Xiong et al., ECCV 2014).
//!
//! It runs in coordinates of kernel PCA, where the linear learner needs no change. With all rows as
//! landmarks this is exact: directions that maximise the ratio lie in the span of the rows, and a
//! ridge on these coordinates is a ridge on the feature space. Kernel values are f32: before a linear
//! or polynomial kernel, vectors far from the origin want `--prepare centre`.

use super::{Lfda, classes_of};
use crate::Result;
use crate::dataset::Dataset;
use crate::model::Map;
use crate::supervision::SupervisionKind;
use crate::training::kernel::{KernelAxes, KernelSpec};
use crate::training::parameters::parameters;
use crate::training::training_space::TrainingSpace;
use crate::training::{Method, Run};

parameters! {
    /// LFDA after a kernel: for histograms compared by χ² above all. Needs class labels. With N
    /// landmarks it takes O(N²·d + N³) once, the linear learner's time in N dimensions and O(N²)
    /// memory; mapping a new vector costs O(N·d), and the model file holds the N training vectors.
    /// Use it for re-identification with histogram features and some thousand training images: it
    /// is a closed form, close to `kernel-warca`.
    pub struct KernelLfda {
    }
    shared {
        /// The kernel.
        kernel: KernelSpec = KernelSpec::default(),
        /// The linear method in the feature space.
        linear: Lfda = Lfda {
            rank: 100,
            ridge: 0.05,
            ..Lfda::default()
        },
    }
}

impl Method for KernelLfda {
    const NAME: &'static str = "kernel-lfda";
    const SUMMARY: &'static str = "Kernel LFDA, mainly for histograms with a χ² kernel.";
    const NEEDS: &'static [SupervisionKind] = &[SupervisionKind::Labels];
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("ridge", &["0.01", "0.03", "0.1"])];

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let labels = classes_of(data, "kernel-lfda")?;
        let axes = KernelAxes::new(data.items(), self.kernel, run.seed)?;
        run.check_stop()?;
        run.facts.insert("axes".into(), axes.rank() as f64);
        let space = TrainingSpace::in_kernel_space(data, &axes)?;
        let map = self.linear.solve(&space, labels, run)?;
        space.carry_back(&map, 1.0, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::synthetic::Nuisance;
    use crate::model::{Chain, Space};
    use crate::supervision::{Labels, Supervision};
    use crate::training::{AnyMethod, KernelKind};

    #[test]
    fn the_linear_kernel_gives_linear_lfda() {
        let set = Nuisance {
            classes: 8,
            signal: 4,
            noise: 70,
            seed: 1,
        }
        .rows(60);
        let supervision = Supervision::labels(Labels::from_numbers(&set.classes).unwrap());
        let data = Dataset::new(&set.corpus, &supervision).unwrap();
        let kernel = KernelLfda {
            kernel: KernelSpec {
                kernel: KernelKind::Linear,
                ..KernelSpec::default()
            },
            linear: Lfda {
                rank: 5,
                ..KernelLfda::default().linear
            },
        };
        let distances = |learner: &dyn AnyMethod| {
            let map = learner.fit(&data, &mut Run::new(1)).unwrap();
            let chain = Chain::new(74, Vec::new(), map, Space::SquaredL2).unwrap();
            let all = crate::data::Batch::new(set.corpus.rows());
            let mut out = Vec::new();
            chain.dissimilarity(&all, &all, &mut out).unwrap();
            out
        };
        let linear = distances(&kernel.linear.clone().checked().unwrap());
        let found = distances(&kernel.checked().unwrap());
        let largest = linear.iter().fold(0.0_f32, |a, b| a.max(*b));
        for (a, b) in linear.iter().zip(&found) {
            assert!((a - b).abs() < 1e-3 * largest, "{a} {b}");
        }
    }
}
