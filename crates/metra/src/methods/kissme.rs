//! KISSME: keep it simple and straightforward metric learning (Koestinger, Hirzer, Wohlhart, Roth &
//! Bischof, CVPR 2012).
//!
//! The logarithm of the ratio of two zero-mean Gaussians of pair differences, relevant and
//! irrelevant, is up to a constant the quadratic form of M = Σ_S⁻¹ − Σ_D⁻¹, worked out in a space of
//! a few principal directions and projected onto the positive semidefinite matrices.
//!
//! Departs from it: both covariances are over all pairs where there are labels, instead of over
//! drawn ones; the same ridge is added to both, so that directions that say nothing get nothing; the
//! projection can be left out (`definite=false`).

use crate::Result;
use crate::dataset::Dataset;
use crate::execute::moments;
use crate::linalg::{Eigen, Symmetric, product, rows_from};
use crate::model::{Indefinite, Map, Space};
use crate::supervision::SupervisionKind;
use crate::training::differences::Differences;
use crate::training::parameters::{Bound, parameters, require_rank};
use crate::training::principal_axes::usable;
use crate::training::training_space::TrainingSpace;
use crate::training::warp::check_relevance;
use crate::training::{Method, Run};
use faer::Mat;

parameters! {
    /// The log-ratio of two Gaussians of pair differences, relevant and irrelevant ones, among the
    /// principal directions. Learns from labels, relevance judgements or pairs. Four passes in
    /// O(n·d²) time with labels, O((n + pairs)·d²) without, one decomposition in O(d³), O(d²) memory
    /// (fewer rows than dimensions: n for d). Use it as the classic base of re-identification; it
    /// has no margin and no ranking in it, and `xqda` is mostly ahead.
    pub struct Kissme {
        /// Number of principal components to work in, the maximum dimension of a mapped vector. Too
        /// many fit noise; search 30 to 200.
        rank: usize = 64 => Bound::AtLeast(1.0),
        /// Ridge added to both covariances, relative to the mean variance of the relevant one.
        ridge: f64 = 0.01 => Bound::AtLeast(0.0),
        /// Number of relevant and of irrelevant pairs to sample if there are no labels.
        pairs: usize = 50_000 => Bound::AtLeast(1.0),
        /// Project M onto the positive semidefinite cone; otherwise M may be indefinite, and
        /// directions in which relevant pairs differ more than irrelevant ones reduce the distance.
        definite: bool = true,
    }
}

impl Method for Kissme {
    const NAME: &'static str = "kissme";
    const SUMMARY: &'static str = "Log-likelihood ratio of Gaussians over differences of relevant and irrelevant pairs, after PCA.";
    const NEEDS: &'static [SupervisionKind] = SupervisionKind::RELEVANCE;
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("rank", &["32", "64"]), ("ridge", &["0.01", "0.1"])];

    fn spaces(&self) -> &'static [Space] {
        match self.definite {
            true => &Space::ALL,
            false => &[Space::InnerProduct],
        }
    }

    fn runs_by_passes(&self) -> bool {
        true
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let settings = self;
        require_rank(settings.rank, data.dim())?;
        check_relevance(data.relevance("kissme")?)?;
        let space = TrainingSpace::new(data)?;
        let spread = Differences::new("kissme", data, &space, settings.pairs, run.seed)?;
        run.check_stop()?;
        let principal = moments(space.items())?.covariance.eigen()?;
        let rank = usable(settings.rank, principal.numerical_rank())?;
        let basis = principal.vectors.subcols(0, rank).to_owned();
        let inside = |spread: &Symmetric| {
            let half = product(spread.entries(), basis.as_ref());
            Symmetric::new(product(basis.transpose(), half.as_ref()))
        };
        let metric = log_ratio(
            &inside(&spread.relevant)?,
            &inside(&spread.irrelevant)?,
            settings.ridge,
        )?;
        run.facts.insert("ridge_added".into(), metric.ridge);
        run.facts
            .insert("negative_share".into(), metric.negative_share);
        let positive = metric.positive;
        let kept = if settings.definite {
            metric.root.as_ref().subrows(0, positive)
        } else {
            metric.root.as_ref()
        };
        run.facts.insert("rank".into(), kept.nrows() as f64);
        let weights = product(kept, basis.transpose());
        match space.carry_back(&rows_from(weights.as_ref()), 1.0, true)? {
            Map::LowRank(map) if !settings.definite => {
                Ok(Map::Indefinite(Indefinite::new(map, positive)?))
            }
            map => Ok(map),
        }
    }
}

/// (relevant + ridge)⁻¹ − (irrelevant + ridge)⁻¹.
struct LogRatio {
    /// A factor of it: a row for each positive eigenvalue, then one for each negative one.
    root: Mat<f64>,
    positive: usize,
    ridge: f64,
    /// Share of the eigenvalues' sizes that a projection onto the semidefinite matrices removes.
    negative_share: f64,
}

fn log_ratio(relevant: &Symmetric, irrelevant: &Symmetric, ridge: f64) -> Result<LogRatio> {
    let dim = relevant.dim();
    let (near, far) = (relevant.eigen()?, irrelevant.eigen()?);
    let mean = |of: &Symmetric| of.trace().max(0.0) / dim as f64;
    let scale = if mean(relevant) > 0.0 {
        mean(relevant)
    } else {
        mean(irrelevant)
    };
    let ridge = ridge * scale;
    let largest = |of: &Eigen| of.values.first().copied().unwrap_or(0.0);
    // Relevant pairs that coincide in some direction would give it an infinite weight.
    let floor = 1e-9 * (largest(&near).max(largest(&far)) + ridge);
    let metric = inverse(&near, ridge, floor) - inverse(&far, ridge, floor);
    let eigen = Symmetric::new(metric)?.eigen()?;
    let sizes: f64 = eigen.values.iter().map(|v| v.abs()).sum();
    let positive = eigen.numerical_rank();
    if positive == 0 {
        return Err(Differences::nothing_separates());
    }
    // Noise of the decomposition is not a direction, whatever its sign.
    let floor = sizes * dim as f64 * f64::EPSILON;
    let negative = (0..dim).filter(|place| eigen.values[*place] < -floor);
    let places: Vec<usize> = (0..positive).chain(negative).collect();
    Ok(LogRatio {
        root: Mat::from_fn(places.len(), dim, |row, column| {
            let place = places[row];
            eigen.values[place].abs().sqrt() * eigen.vectors[(column, place)]
        }),
        positive,
        ridge,
        negative_share: eigen.values.iter().map(|v| (-v).max(0.0)).sum::<f64>() / sizes,
    })
}

fn inverse(of: &Eigen, ridge: f64, floor: f64) -> Mat<f64> {
    let dim = of.values.len();
    let scaled = Mat::from_fn(dim, dim, |row, column| {
        of.vectors[(row, column)] / (of.values[column].max(0.0) + ridge).max(floor)
    });
    product(scaled.as_ref(), of.vectors.transpose())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Batch, MemoryCorpus};
    use crate::linalg::{RowBuf, Rows};
    use crate::model::Chain;
    use crate::supervision::{Labels, Supervision};

    /// Classes {(0, 0), (2, 0)}, {(0, 4), (2, 4)} and so on: relevant pairs differ by (±2, 0).
    /// Centres 4 apart along the second axis at 0, 4, 8: irrelevant pairs differ by 0 or ±2 and by
    /// 4, 4, 8.
    fn ladder() -> MemoryCorpus {
        let values = vec![0.0, 0.0, 2.0, 0.0, 0.0, 4.0, 2.0, 4.0, 0.0, 8.0, 2.0, 8.0];
        MemoryCorpus::new(RowBuf::from_values(values, 2).unwrap()).unwrap()
    }

    #[test]
    fn the_metric_by_hand() {
        // Σ_S = diag(4, 0). Of the irrelevant pairs half differ by 2 along the first axis, so that
        // Σ_D = diag(2, (16 + 16 + 64)/3 = 32). The ridge is .5·tr/2 = 1:
        // M = diag(1/5 − 1/3, 1/1 − 1/33) = diag(−2/15, 32/33), projected diag(0, 32/33).
        let corpus = ladder();
        let labels = Labels::from_numbers(&[0, 0, 1, 1, 2, 2]).unwrap();
        let supervision = Supervision::labels(labels);
        let data = Dataset::new(&corpus, &supervision).unwrap();
        let learner = Kissme {
            rank: 2,
            ridge: 0.5,
            ..Kissme::default()
        };
        let mut run = Run::new(1);
        let map = learner.checked().unwrap().fit(&data, &mut run).unwrap();
        let Map::LowRank(map) = map else {
            panic!("KISSME gives a low-rank map");
        };
        assert_eq!(map.output_dim(), 1);
        let row = map.weights().row(0);
        let expected = (32.0_f32 / 33.0).sqrt();
        assert!(
            row[0].abs() < 1e-6 && (row[1].abs() - expected).abs() < 1e-6,
            "{row:?}"
        );
        assert!((run.facts["ridge_added"] - 1.0).abs() < 1e-9);
        let share = (2.0 / 15.0) / (2.0 / 15.0 + 32.0 / 33.0);
        assert!((run.facts["negative_share"] - share).abs() < 1e-9);
    }

    #[test]
    fn unprojected_it_keeps_what_counts_against() {
        // The same M = diag(−2/15, 32/33).
        let corpus = ladder();
        let labels = Labels::from_numbers(&[0, 0, 1, 1, 2, 2]).unwrap();
        let supervision = Supervision::labels(labels);
        let data = Dataset::new(&corpus, &supervision).unwrap();
        let learner = Kissme {
            rank: 2,
            ridge: 0.5,
            definite: false,
            ..Kissme::default()
        };
        let learner = learner.checked().unwrap();
        let map = learner.fit(&data, &mut Run::new(1)).unwrap();
        let chain = Chain::new(2, Vec::new(), map, learner.spaces()[0]).unwrap();
        let (query, items) = ([1.0, 4.0], [4.0, 4.0, 1.0, 7.0]);
        let batch = |values| Batch::new(Rows::new(values, 2).unwrap());
        let mut found = Vec::new();
        let result = chain.dissimilarity(&batch(&query), &batch(&items), &mut found);
        result.unwrap();
        for (found, expected) in found.iter().zip([-9.0 * 2.0 / 15.0, 9.0 * 32.0 / 33.0]) {
            assert!((found - expected).abs() < 1e-5, "{found} {expected}");
        }
    }

    #[test]
    fn labels_that_separate_nothing_are_an_error() {
        // Rows of one class are as far apart as they can be, those of different classes coincide.
        let values = vec![0.0, 0.0, 3.0, 1.0, 0.0, 0.0, 3.0, 1.0];
        let corpus = MemoryCorpus::new(RowBuf::from_values(values, 2).unwrap()).unwrap();
        let labels = Labels::from_numbers(&[0, 0, 1, 1]).unwrap();
        let supervision = Supervision::labels(labels);
        let data = Dataset::new(&corpus, &supervision).unwrap();
        let learner = Kissme {
            rank: 2,
            ..Kissme::default()
        };
        let error = learner.checked().unwrap().fit(&data, &mut Run::new(1));
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("irrelevant pairs are in no direction"),
            "{error}"
        );
    }
}
