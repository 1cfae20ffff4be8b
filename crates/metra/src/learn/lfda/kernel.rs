//! LFDA in a kernel's feature space (Sec. 3.4 of the paper; χ² kernels by Xiong et al., ECCV 2014).
//!
//! It runs in coordinates of kernel PCA, where the linear learner needs no change. With all rows as
//! landmarks this is exact: directions that maximise the ratio lie in the span of the rows, and a
//! ridge on these coordinates is a ridge on the feature space. Kernel values are f32: before a linear
//! or polynomial kernel, vectors far from the origin want `--prepare centre`.

use super::{Lfda, Scaling, classes_of};
use crate::Result;
use crate::learn::field::Field;
use crate::learn::kernel::{KernelAxes, KernelKind, KernelSpec};
use crate::learn::parameters::{Checked, parameters};
use crate::learn::{Learner, Parameters, Problem, Run};
use crate::metric::Map;
use std::collections::BTreeMap;

parameters! {
    /// LFDA after a kernel: for histograms compared by χ² above all. Needs class labels. With N
    /// landmarks it takes O(N²·d + N³) once, the linear learner's time in N dimensions and O(N²)
    /// memory; mapping a new vector costs O(N·d), and the model file holds the N training vectors.
    /// Use it for re-identification with histogram features and some thousand training images: it
    /// is a closed form, close to `kernel-warca`.
    pub struct KernelLfda {
        /// Numbers in a mapped vector; fewer where the feature space has fewer.
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
        /// Added to the local spread within classes, relative to its mean variance. Search .01 to 1.
        ridge: f64 = 0.05,
        /// A row's scale is the distance to this neighbour of its class.
        neighbours: usize = 7,
        /// How long the directions are.
        scaling: Scaling = Scaling::Plain,
    }
}

impl KernelLfda {
    /// Check the parameters.
    pub fn check(self) -> Result<Checked<Self>> {
        self.spec().check()?;
        self.linear().check()?;
        Ok(Checked(self))
    }

    /// The settings of the linear learner that works in the feature space.
    fn linear(&self) -> Lfda {
        Lfda {
            rank: self.rank,
            ridge: self.ridge,
            neighbours: self.neighbours,
            scaling: self.scaling,
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

impl Learner for Checked<KernelLfda> {
    fn name(&self) -> &'static str {
        "kernel-lfda"
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        self.0.values()
    }

    fn fit(&self, problem: &Problem<'_>, run: &mut Run<'_>) -> Result<Map> {
        let labels = classes_of(problem, "kernel-lfda")?;
        let axes = KernelAxes::new(problem.items(), self.0.spec(), run.seed)?;
        run.check_stop()?;
        run.facts.insert("axes".into(), axes.rank() as f64);
        let field = Field::in_kernel_space(problem, &axes)?;
        let map = self.0.linear().solve(&field, labels, run)?;
        field.carry_back(&map, 1.0, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::synthetic::Nuisance;
    use crate::metric::{Chain, Metric, Space};
    use crate::supervision::{Labels, Supervision};

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
        let problem = Problem::new(&set.corpus, &supervision).unwrap();
        let kernel = KernelLfda {
            rank: 5,
            kernel: KernelKind::Linear,
            ..KernelLfda::default()
        };
        let distances = |learner: &dyn Learner| {
            let map = learner.fit(&problem, &mut Run::new(1)).unwrap();
            let chain = Chain::new(74, Vec::new(), map, Space::SquaredL2).unwrap();
            let all = crate::data::Batch::new(set.corpus.rows());
            let mut out = Vec::new();
            chain.dissimilarity(&all, &all, &mut out).unwrap();
            out
        };
        let linear = distances(&kernel.linear().check().unwrap());
        let found = distances(&kernel.check().unwrap());
        let largest = linear.iter().fold(0.0_f32, |a, b| a.max(*b));
        for (a, b) in linear.iter().zip(&found) {
            assert!((a - b).abs() < 1e-3 * largest, "{a} {b}");
        }
    }
}
