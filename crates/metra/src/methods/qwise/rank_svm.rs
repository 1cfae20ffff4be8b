//! RankSVM for relative attributes: one linear ranking function an attribute, from classes ordered
//! by it and classes said to be alike. Parikh & Grauman, "Relative Attributes", ICCV 2011, whose
//! eq. 4 to 6 are ½|w|² + C·(Σ ξ² + Σ γ²) with w·x_i ≥ w·x_j + 1 − ξ for ordered rows and
//! |w·x_i − w·x_j| ≤ γ for similar ones; that is squared hinges and plain squares of score
//! differences. Solved in the primal by Newton's method as in Chapelle & Keerthi, "Efficient
//! algorithms for ranking with SVMs", Information Retrieval 2010.
//!
//! The square of a difference is a squared hinge of margin 0 in both directions, so that similar
//! rows are level pairs as ordered ones are, and none of the n² pairs is listed.
//!
//! Departs from it: the loss is a mean unless `cost` asks for the sum, and vectors are brought to unit
//! mean squared distance from their mean, so that λ means the same on any data.

use super::attributes::{Strength, Task};
use super::coordinates::Coordinates;
use super::hinge::Hinge;
use super::sampling::{ByGap, Light, PairScheme, Quads, Scheme};
use crate::Result;
use crate::dataset::Dataset;
use crate::model::Map;
use crate::supervision::Supervision;
use crate::supervision::SupervisionKind;
use crate::training::parameters::{Bound, parameters};
use crate::training::training_space::TrainingSpace;
use crate::training::{Method, Run};

parameters! {
    /// One linear ranking function an attribute, from orderings of classes: Parikh & Grauman's
    /// relative attributes. A Newton step costs O(n·d²) in the smaller of rows and dimensions, all
    /// pairs of two levels O(n log n), and memory is O(n + d²). Use it as the measure for
    /// `attributes`, or where its two settings are enough.
    pub struct RankSvm {
        /// Weight of |w|² beside the mean loss, for vectors at unit mean squared distance from
        /// their mean.
        lambda: f64 = 1e-2 => Bound::Above(0.0),
        /// If above 0, minimise ½|w|² + C·Σ loss with this C (the form of the paper) instead of
        /// using lambda.
        cost: f64 = 0.0 => Bound::AtLeast(0.0),
        /// Similarity constraints: level (all rows of one level), classes (different classes of one
        /// level) or none.
        similar: Light = Light::Level,
    }
}

impl RankSvm {
    fn task(&self) -> Task {
        Task {
            scheme: Scheme {
                pairs: PairScheme::All,
                quads: Quads::None,
                light: self.similar,
                margin: ByGap::Unit,
                weight: ByGap::Unit,
                count: 0,
            },
            hinge: Hinge::squared(),
            // The half is the paper's: ½|w|² + C·Σ is |w|² + 2C·Σ.
            strength: if self.cost > 0.0 {
                Strength::Cost(2.0 * self.cost)
            } else {
                Strength::Lambda(self.lambda)
            },
        }
    }
}

impl Method for RankSvm {
    const NAME: &'static str = "rank-svm";
    const SUMMARY: &'static str =
        "One linear ranking function per attribute (RankSVM, squared hinge).";
    const NEEDS: &'static [SupervisionKind] = &[SupervisionKind::Orderings];
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("lambda", &["0.003", "0.01", "0.03"])];

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let Supervision::Orderings(orderings) = data.supervision() else {
            let needs = "orderings of classes by attributes";
            return Err(data.unusable("rank-svm", needs));
        };
        let coordinates = Coordinates::new(TrainingSpace::new(data)?)?;
        run.facts.insert("scale".into(), coordinates.scale);
        let scorers = self.task().scorers(&coordinates, orderings, run)?;
        coordinates.map(&scorers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::linalg::RowBuf;
    use crate::supervision::{ClassOrdering, Labels, Orderings};

    /// The script's rows: classes A, B, C, D in turn, ordered A < B ~ C < D.
    fn fitted(settings: RankSvm) -> Vec<f32> {
        let (mut values, mut names) = (Vec::new(), Vec::new());
        for row in 0..12_u8 {
            let r = f64::from(row);
            names.push(["A", "B", "C", "D"][usize::from(row % 4)]);
            let level = [0.0, 1.0, 1.0, 2.0][usize::from(row % 4)];
            values.push((level + 0.9 * (2.3 * r).sin()) as f32);
            values.push((0.5 * level + (1.1 * r + 0.5).cos()) as f32);
            values.push((1.7 * r + 0.3).sin() as f32);
        }
        let corpus = MemoryCorpus::new(RowBuf::from_values(values, 3).unwrap()).unwrap();
        let labels = Labels::from_names(&names).unwrap();
        let ordering = ClassOrdering::parse("up", "A<B~C<D").unwrap();
        let orderings = Orderings::new(labels, vec![ordering]).unwrap();
        let supervision = Supervision::Orderings(orderings);
        let data = Dataset::new(&corpus, &supervision).unwrap();
        let map = settings.checked().unwrap().fit(&data, &mut Run::new(1));
        let Map::LowRank(map) = map.unwrap() else {
            panic!("expected a low-rank map");
        };
        map.weights().values().to_vec()
    }

    fn assert_weights(settings: RankSvm, expected: [f64; 3]) {
        let found = fitted(settings.clone());
        for (found, expected) in found.iter().zip(expected) {
            let difference = (f64::from(*found) - expected).abs();
            assert!(difference < 2e-5, "{settings:?}: {found} {expected}");
        }
    }

    // Printed by tests/oracles/constants/rank_svm.py.
    const ORDERED_0_1: [f64; 3] = [0.491166246, 0.176261573, -0.277609473];
    const ORDERED_10: [f64; 3] = [1.501334360, 0.278950959, -0.569716010];
    const LEVEL_0_1: [f64; 3] = [0.347825062, 0.121025914, -0.209712963];
    const LEVEL_10: [f64; 3] = [0.387586110, 0.130888080, -0.249429251];
    const CLASSES_0_1: [f64; 3] = [0.404905607, 0.151812901, -0.228142037];

    #[test]
    fn the_optimum_is_that_of_scikit_learn_and_scipy() {
        let cost = |cost, similar| RankSvm {
            cost,
            similar,
            ..RankSvm::default()
        };
        assert_weights(cost(0.1, Light::None), ORDERED_0_1);
        assert_weights(cost(10.0, Light::None), ORDERED_10);
        assert_weights(cost(0.1, Light::Level), LEVEL_0_1);
        assert_weights(cost(10.0, Light::Level), LEVEL_10);
        assert_weights(cost(0.1, Light::Classes), CLASSES_0_1);
    }
}
