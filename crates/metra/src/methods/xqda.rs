//! XQDA: cross-view quadratic discriminant analysis (Liao, Hu, Zhu & Li, CVPR 2015).
//!
//! KISSME's metric in the subspace that suits it: the directions in which irrelevant differences
//! spread most relative to relevant ones. In the paper Σ_I is the spread of differences within a
//! person and Σ_E that between persons; the directions W solve Σ_E w = λ (Σ_I + ridge) w, those with
//! λ > 1 are kept, and the metric is (WᵀΣ_I W)⁻¹ − (WᵀΣ_E W)⁻¹ there.
//!
//! Departs from it: with the directions scaled so that Wᵀ(Σ_I + ridge)W = I both matrices are
//! diagonal, and the metric is diag(1 − 1/λ). It is positive semidefinite as it is, since λ > 1, so
//! that nothing needs to be projected. (The authors' code takes singular vectors of the product
//! Σ_I⁻¹Σ_E, for which this does not hold.) Pairs are those of one set, whatever their cameras.

use crate::Result;
use crate::dataset::Dataset;
use crate::linalg::largest_ratios;
use crate::model::Map;
use crate::supervision::SupervisionKind;
use crate::training::differences::Differences;
use crate::training::parameters::{Bound, parameters, require_rank};
use crate::training::training_space::TrainingSpace;
use crate::training::warp::check_relevance;
use crate::training::{Method, Run};

parameters! {
    /// Directions in which irrelevant pairs spread most relative to relevant ones, with the
    /// log-ratio of their Gaussians as metric. Learns from labels, relevance judgements or pairs.
    /// Three passes in O(n·d²) time with labels, O(pairs·d²) without, two decompositions in O(d³),
    /// O(d²) memory (fewer rows than dimensions: n for d). Use it for re-identification and other
    /// new identities, where it takes thousands of dimensions without PCA.
    pub struct Xqda {
        /// Maximum dimension of a mapped vector; less if fewer directions separate.
        rank: usize = 100 => Bound::AtLeast(1.0),
        /// Ridge added to the covariance of relevant pairs, relative to its mean variance. Search
        /// .01 to 1.
        ridge: f64 = 0.1 => Bound::AtLeast(0.0),
        /// Number of relevant and of irrelevant pairs to sample if there are no labels.
        pairs: usize = 50_000 => Bound::AtLeast(1.0),
    }
}

impl Method for Xqda {
    const NAME: &'static str = "xqda";
    const SUMMARY: &'static str = "KISSME's log-likelihood ratio in a discriminant subspace of relevant and irrelevant pairs.";
    const NEEDS: &'static [SupervisionKind] = SupervisionKind::RELEVANCE;
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("ridge", &["0.01", "0.03", "0.1", "0.3"])];

    fn runs_by_passes(&self) -> bool {
        true
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let settings = self;
        require_rank(settings.rank, data.dim())?;
        check_relevance(data.relevance("xqda")?)?;
        let space = TrainingSpace::new(data)?;
        let spread = Differences::new("xqda", data, &space, settings.pairs, run.seed)?;
        run.check_stop()?;
        let found = largest_ratios(
            &spread.irrelevant,
            &spread.relevant,
            settings.ridge,
            &|| run.check_stop(),
        )?;
        // A ratio of 1 by rounding would add a direction of weight 0.
        let separating = found.values.iter().take_while(|ratio| **ratio > 1.0 + 1e-9);
        let factors: Vec<f64> = separating
            .take(settings.rank)
            .map(|ratio| (1.0 - 1.0 / ratio).sqrt())
            .collect();
        if factors.is_empty() {
            return Err(Differences::nothing_separates());
        }
        run.facts.insert("ridge_added".into(), found.ridge);
        run.facts.insert("rank".into(), factors.len() as f64);
        space.carry_back(&found.scaled_rows(&factors), 1.0, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::data::synthetic::Nuisance;
    use crate::linalg::{RowBuf, Symmetric};
    use crate::supervision::{Labels, Supervision};
    use faer::linalg::solvers::DenseSolveCore;

    #[test]
    fn the_metric_by_hand() {
        // As for KISSME: Σ_I = diag(4, 0), Σ_E = diag(2, 32), ridge 1. Ratios 32/1 and 2/5: only the
        // first is kept, and the metric is diag(0, 1/1 − 1/32).
        let values = vec![0.0, 0.0, 2.0, 0.0, 0.0, 4.0, 2.0, 4.0, 0.0, 8.0, 2.0, 8.0];
        let corpus = MemoryCorpus::new(RowBuf::from_values(values, 2).unwrap()).unwrap();
        let labels = Labels::from_numbers(&[0, 0, 1, 1, 2, 2]).unwrap();
        let supervision = Supervision::labels(labels);
        let data = Dataset::new(&corpus, &supervision).unwrap();
        let learner = Xqda {
            rank: 2,
            ridge: 0.5,
            ..Xqda::default()
        };
        let mut run = Run::new(1);
        let map = learner.checked().unwrap().fit(&data, &mut run).unwrap();
        let Map::LowRank(map) = map else {
            panic!("XQDA gives a low-rank map");
        };
        assert_eq!((map.output_dim(), run.facts["rank"]), (1, 1.0));
        let row = map.weights().row(0);
        let expected = (31.0_f32 / 32.0).sqrt();
        assert!(
            row[0].abs() < 1e-6 && (row[1].abs() - expected).abs() < 1e-6,
            "{row:?}"
        );
    }

    #[test]
    fn the_metric_is_that_of_the_papers_formula() {
        let set = Nuisance {
            classes: 9,
            signal: 4,
            noise: 5,
            seed: 2,
        }
        .rows(120);
        let labels = Labels::from_numbers(&set.classes).unwrap();
        let supervision = Supervision::labels(labels);
        let data = Dataset::new(&set.corpus, &supervision).unwrap();
        let learner = Xqda {
            rank: 3,
            ridge: 0.2,
            ..Xqda::default()
        };
        let map = learner
            .checked()
            .unwrap()
            .fit(&data, &mut Run::new(1))
            .unwrap();
        let Map::LowRank(map) = map else {
            panic!("XQDA gives a low-rank map");
        };
        // (WᵀΣ_I W)⁻¹ − (WᵀΣ_E W)⁻¹ does not depend on how the directions are scaled.
        let space = TrainingSpace::new(&data).unwrap();
        let spread = Differences::new("xqda", &data, &space, 1, 1).unwrap();
        let mut relevant: Symmetric = spread.relevant;
        let ridge = 0.2 * relevant.trace() / 9.0;
        for i in 0..9 {
            relevant.entries_mut()[(i, i)] += ridge;
        }
        let directions = largest_ratios(&spread.irrelevant, &relevant, 0.0, &|| Ok(())).unwrap();
        let w = directions.scaled_rows(&[3.0, 0.5, 2.0]);
        let w = faer::Mat::from_fn(9, 3, |row, column| f64::from(w.row(column)[row]));
        let near = (w.transpose() * relevant.entries() * &w)
            .partial_piv_lu()
            .inverse();
        let far = (w.transpose() * spread.irrelevant.entries() * &w)
            .partial_piv_lu()
            .inverse();
        let metric = &w * (near - far) * w.transpose();
        for i in 0..9 {
            for j in 0..9 {
                let found: f64 = (map.weights().iter())
                    .map(|row| f64::from(row[i]) * f64::from(row[j]))
                    .sum();
                let wanted = metric[(i, j)];
                assert!(
                    (found - wanted).abs() < 1e-4 * metric.norm_l2(),
                    "{found} {wanted}"
                );
            }
        }
    }
}
