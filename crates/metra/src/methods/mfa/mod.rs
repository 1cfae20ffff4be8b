//! MFA: marginal Fisher analysis (Yan, Xu, Zhang, Zhang, Yang & Lin, TPAMI 2007).
//!
//! Two graphs in place of Fisher's spreads: the intrinsic one joins each row with its nearest rows of
//! the same class, the penalty one joins, for each class, the nearest pairs of a row inside and a row
//! outside. The directions are those in which penalty pairs are farthest apart relative to intrinsic
//! ones. No Gaussian is assumed: only what lies near the border counts.
//!
//! Departs from the paper: a ridge on the intrinsic spread in place of PCA before it.

mod graphs;

use super::lfda::{Scaling, classes_of};
use crate::dataset::Dataset;
use crate::linalg::largest_ratios;
use crate::model::Map;
use crate::supervision::SupervisionKind;
use crate::training::differences::pair_spread;
use crate::training::parameters::{Bound, parameters, require_rank};
use crate::training::training_space::TrainingSpace;
use crate::training::{Method, Run};
use crate::{Error, Result};
use graphs::graphs;

parameters! {
    /// Directions in which near pairs across the borders of classes are far apart relative to near
    /// pairs inside them. Needs class labels. O(n²·d) time for the pairs, O((n·near +
    /// classes·far)·d²) for their spreads and O(d³) for the decomposition; O(d²) memory beside the
    /// pairs (fewer rows than dimensions: n for d). Use it where classes are far from Gaussian and
    /// rows some ten thousand at most.
    pub struct Mfa {
        /// Maximum dimension of a mapped vector; less if there are fewer pairs across class
        /// borders.
        rank: usize = 64 => Bound::AtLeast(1.0),
        /// Ridge added to the scatter of near pairs inside classes, relative to its mean variance.
        /// Search .01 to 3.
        ridge: f64 = 0.1 => Bound::AtLeast(0.0),
        /// Number of nearest rows of its own class that each row is pulled to (k1 in the paper).
        near: usize = 5 => Bound::AtLeast(1.0),
        /// Number of nearest pairs across the border of each class that are pushed apart (k2 in the
        /// paper).
        far: usize = 100 => Bound::AtLeast(1.0),
        /// Scaling of the directions: plain (unit within-class scatter) or weighted (also by the
        /// square root of the eigenvalue).
        scaling: Scaling = Scaling::Plain,
    }
}

impl Method for Mfa {
    const NAME: &'static str = "mfa";
    const SUMMARY: &'static str = "Directions that separate nearby rows of different classes and keep those of one class together.";
    const NEEDS: &'static [SupervisionKind] = &[SupervisionKind::Labels];
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("ridge", &["0.01", "0.1", "1"])];

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let settings = self;
        require_rank(settings.rank, data.dim())?;
        let labels = classes_of(data, "mfa")?;
        let space = TrainingSpace::new(data)?;
        let items = space.items();
        let pairs = graphs(items, labels, settings.near, settings.far).map_err(too_large)?;
        run.check_stop()?;
        let intrinsic = pair_spread(items, items, &pairs.intrinsic)?;
        let penalty = pair_spread(items, items, &pairs.penalty)?;
        let found = largest_ratios(&penalty, &intrinsic, settings.ridge, &|| run.check_stop())?;
        // Fewer pairs than dimensions leave ratios that are rounding.
        let floor = found.values.first().copied().unwrap_or(0.0) * 1e-9;
        let separating = found.values.iter().take_while(|ratio| **ratio > floor);
        let factors: Vec<f64> = separating
            .take(settings.rank)
            .map(|ratio| settings.scaling.factor(*ratio))
            .collect();
        if factors.is_empty() {
            return Err(Error::Data(
                "the nearest rows of different classes coincide: nothing can be learned".into(),
            ));
        }
        run.facts.insert("ridge_added".into(), found.ridge);
        run.facts.insert("rank".into(), factors.len() as f64);
        space.carry_back(&found.scaled_rows(&factors), 1.0, true)
    }
}

/// A search speaks of scores, of which whoever trains knows nothing.
fn too_large(error: Error) -> Error {
    match error {
        Error::Score { query, item, score } => Error::Data(format!(
            "the distance of rows {query} and {item} is {score}: the data's values are too large \
             or not finite"
        )),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::linalg::RowBuf;
    use crate::supervision::{Labels, Supervision};

    #[test]
    fn the_direction_by_hand() {
        // Class 0 at (0, 0), (2, 0) and (−2, 0), class 1 at (0, 1), (2, 1) and (−2, 1): each row's
        // nearest of its class is 2 away along the first axis; the nearest pairs across are 1 apart
        // along the second. Intrinsic spread diag(4, 0), penalty spread diag(0, 1), ridge .5·4/2 = 1:
        // ratios 1/1 and 0/5, so that the one direction is the second axis with length 1.
        let values = vec![0.0, 0.0, 2.0, 0.0, -2.0, 0.0, 0.0, 1.0, 2.0, 1.0, -2.0, 1.0];
        let corpus = MemoryCorpus::new(RowBuf::from_values(values, 2).unwrap()).unwrap();
        let labels = Labels::from_numbers(&[0, 0, 0, 1, 1, 1]).unwrap();
        let supervision = Supervision::labels(labels);
        let data = Dataset::new(&corpus, &supervision).unwrap();
        let learner = Mfa {
            rank: 2,
            ridge: 0.5,
            near: 1,
            far: 3,
            scaling: Scaling::Plain,
        };
        let mut run = Run::new(1);
        let map = learner.checked().unwrap().fit(&data, &mut run).unwrap();
        let Map::LowRank(map) = map else {
            panic!("MFA gives a low-rank map");
        };
        assert_eq!((map.output_dim(), run.facts["ridge_added"]), (1, 1.0));
        let row = map.weights().row(0);
        assert!(
            row[0].abs() < 1e-6 && (row[1].abs() - 1.0).abs() < 1e-6,
            "{row:?}"
        );
    }
}
