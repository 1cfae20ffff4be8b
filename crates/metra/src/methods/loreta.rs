//! LORETA: a similarity qᵀWx with W = L Lᵀ of fixed rank from triplets, by steps along the manifold of
//! such matrices. Shalit, Weinshall & Chechik, "Online learning in the embedded manifold of low-rank
//! matrices", JMLR 2012 (the positive semidefinite form).
//!
//! The hinge of a triplet, max(0, 1 − qᵀW(x⁺ − x⁻)), has the symmetric slope −½(q δᵀ + δ qᵀ) by W. The
//! step along it is the retraction that FRML takes (see `manifold`), one triplet at a time. Departs from
//! the paper: it starts from PCA, not from random directions, and vectors are scaled to unit mean squared
//! length.

use super::oasis::Triplets;
use crate::Result;
use crate::dataset::Dataset;
use crate::linalg::RowBuf;
use crate::model::{Map, Space};
use crate::supervision::SupervisionKind;
use crate::training::descent::{Descent, Outcome, Schedule, check_finite, descend};
use crate::training::irrelevant::IrrelevantItems;
use crate::training::manifold::moved;
use crate::training::parameters::{Bound, parameters, require_rank};
use crate::training::training_space::{Start, TrainingSpace};
use crate::training::warp::check_relevance;
use crate::training::{Method, Run, TwoModels};

parameters! {
    /// Positive semidefinite similarity of fixed rank from triplets, on its manifold. Learns from
    /// labels, relevance judgements or similar pairs. A triplet that lacks its margin costs
    /// O(d·rank²), any other O(d·rank); memory is O(d·rank) and does not grow with the number of rows.
    /// Use it as a baseline beside FRML, which takes the same steps by a better loss.
    pub struct Loreta {
        /// Dimension of a mapped vector: the rank of the similarity, which never drops.
        rank: usize = 30 => Bound::AtLeast(1.0),
        /// Initial learning rate per triplet; it decays linearly to 0.
        rate: f64 = 0.1 => Bound::Above(0.0),
        /// Maximum step length, relative to the similarity's norm; it decays with the learning
        /// rate.
        radius: f64 = 1.0 => Bound::Above(0.0),
        /// Subtract the training mean first.
        centre: bool = true,
        /// Initialisation of the map: pca, lda (needs labels) or random.
        start: Start = Start::Pca,
        /// Items that count as irrelevant: all that are not relevant, or those judged irrelevant alone (a
        /// grade of 0 or less, or a dissimilar pair), where judges did not see all that is relevant.
        irrelevant: IrrelevantItems = IrrelevantItems::All,
        /// Triplets per step.
        batch: usize = 200 => Bound::AtLeast(1.0),
    }
    shared {
        /// When it validates and stops.
        schedule: Schedule = Schedule::of(100),
    }
}

/// The inner product first: it is what the loss is over.
const SPACES: [Space; 3] = [Space::InnerProduct, Space::Cosine, Space::SquaredL2];

impl Method for Loreta {
    const NAME: &'static str = "loreta";
    const SUMMARY: &'static str =
        "Semidefinite similarity of fixed rank from triplets, by Riemannian optimisation.";
    const NEEDS: &'static [SupervisionKind] = SupervisionKind::RELEVANCE;
    const TWO_MODELS: TwoModels = TwoModels::Stack;
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("rate", &["0.01", "0.03", "0.1"])];

    fn spaces(&self) -> &'static [Space] {
        &SPACES
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let settings = self;
        require_rank(settings.rank, data.dim())?;
        let drawn = self.irrelevant.of("loreta", data)?;
        let relevance = drawn.get();
        check_relevance(relevance)?;
        let triplets = Triplets::new(data, relevance, settings.centre)?;
        run.facts
            .insert("scale".into(), f64::from(1.0 / triplets.inverse));
        let space = TrainingSpace::plain(data, vec![0.0; data.dim()]);
        let factor = space.start("loreta", settings.start, settings.rank, run.seed)?;
        let mut training = Training { settings, triplets };
        let schedule = settings.schedule;
        descend(schedule, &mut training, factor, run)
    }
}

struct Training<'a> {
    settings: &'a Loreta,
    triplets: Triplets<'a>,
}

impl Descent for Training<'_> {
    /// Lᵀ, which is the map itself.
    type State = RowBuf;

    fn step(
        &mut self,
        factor: &mut RowBuf,
        step: u64,
        remaining: f64,
        seed: u64,
    ) -> Result<Outcome> {
        let (rate, radius) = (
            self.settings.rate * remaining,
            self.settings.radius * remaining,
        );
        let count = self.settings.batch;
        let (mut loss, mut failed) = (0.0, None);
        self.triplets
            .visit(count, (seed, step), &mut |query, apart| {
                if failed.is_some() {
                    return;
                }
                let (missing, slope) = slope(factor, query, apart);
                loss += missing;
                if let Some(slope) = slope {
                    match moved(factor, &slope, rate, radius) {
                        Ok(Some(next)) => *factor = next,
                        // A triplet that only a metric of lower rank would satisfy moves nothing.
                        Ok(None) => {}
                        Err(error) => failed = Some(error),
                    }
                }
            })?;
        if let Some(error) = failed {
            return Err(error);
        }
        check_finite(factor.values(), loss, step)?;
        Ok(Outcome {
            loss: loss / count as f64,
            ..Outcome::default()
        })
    }

    fn map(&self, factor: &RowBuf) -> Result<Map> {
        let mut weights = factor.clone();
        (weights.values_mut().iter_mut()).for_each(|value| *value *= self.triplets.inverse);
        Ok(Map::LowRank(self.triplets.side(weights)?))
    }
}

/// What a triplet lacks of its margin, and (∇ L)ᵀ = −½(Lᵀδ qᵀ + Lᵀq δᵀ) where it lacks some.
fn slope(factor: &RowBuf, query: &[f32], apart: &[f32]) -> (f64, Option<RowBuf>) {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let products = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b));
        products.sum()
    };
    let along: Vec<(f64, f64)> = (factor.rows().iter())
        .map(|row| (dot(row, query), dot(row, apart)))
        .collect();
    let score: f64 = along.iter().map(|(query, apart)| query * apart).sum();
    if score >= 1.0 {
        return (0.0, None);
    }
    let mut slope = RowBuf::zeros(factor.len(), factor.dim());
    for (index, (of_query, of_apart)) in along.iter().enumerate() {
        let (of_query, of_apart) = (-0.5 * *of_query as f32, -0.5 * *of_apart as f32);
        let row = slope.row_mut(index).iter_mut();
        for (out, (query, apart)) in row.zip(query.iter().zip(apart)) {
            *out = of_apart * query + of_query * apart;
        }
    }
    (1.0 - score, Some(slope))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn random(rows: usize, dim: usize, seed: u64) -> RowBuf {
        let mut stream = Stream::new(seed, "test", 0);
        let values = (0..rows * dim)
            .map(|_| stream.normal() as f32 * 0.3)
            .collect();
        RowBuf::from_values(values, dim).unwrap()
    }

    fn score(matrix: &[Vec<f64>], query: &[f32], apart: &[f32]) -> f64 {
        let mut sum = 0.0;
        for (i, row) in matrix.iter().enumerate() {
            for (j, value) in row.iter().enumerate() {
                sum += f64::from(query[i]) * value * f64::from(apart[j]);
            }
        }
        sum
    }

    fn whole(factor: &RowBuf) -> Vec<Vec<f64>> {
        let dim = factor.dim();
        let entry = |i: usize, j: usize| -> f64 {
            let rows = factor.rows();
            rows.iter()
                .map(|row| f64::from(row[i]) * f64::from(row[j]))
                .sum()
        };
        (0..dim)
            .map(|i| (0..dim).map(|j| entry(i, j)).collect())
            .collect()
    }

    /// The slope is ∇ L of the symmetric ∇ = −½(qδᵀ + δqᵀ), and a small step along the manifold is to
    /// first order its projection onto the tangent space: P∇ + ∇P − P∇P with P onto the span of L.
    #[test]
    fn a_small_step_is_the_projected_slope() {
        let (dim, rank) = (6, 2);
        let factor = random(rank, dim, 1);
        let (query, apart) = (random(1, dim, 2), random(1, dim, 3));
        let (query, apart) = (query.row(0), apart.row(0));
        let (loss, found) = slope(&factor, query, apart);
        let before = whole(&factor);
        assert!((loss - 1.0 + score(&before, query, apart)).abs() < 1e-6);
        let rate = 1e-3;
        let after = whole(&moved(&factor, &found.unwrap(), rate, 1.0).unwrap().unwrap());
        let nabla = |i: usize, j: usize| -> f64 {
            let (qi, qj) = (f64::from(query[i]), f64::from(query[j]));
            let (ai, aj) = (f64::from(apart[i]), f64::from(apart[j]));
            -0.5 * (qi * aj + ai * qj)
        };
        // P from the Gram-Schmidt basis of the two rows.
        let mut basis: Vec<Vec<f64>> = Vec::new();
        for row in factor.rows().iter() {
            let mut row: Vec<f64> = row.iter().map(|v| f64::from(*v)).collect();
            for done in &basis {
                let along: f64 = row.iter().zip(done).map(|(a, b)| a * b).sum();
                row.iter_mut().zip(done).for_each(|(a, b)| *a -= along * b);
            }
            let length = row.iter().map(|v| v * v).sum::<f64>().sqrt();
            row.iter_mut().for_each(|v| *v /= length);
            basis.push(row);
        }
        let onto = |i: usize, j: usize| -> f64 { basis.iter().map(|b| b[i] * b[j]).sum() };
        for i in 0..dim {
            for j in 0..dim {
                let mut projected = 0.0;
                for k in 0..dim {
                    projected += onto(i, k) * nabla(k, j) + nabla(i, k) * onto(k, j);
                    for l in 0..dim {
                        projected -= onto(i, k) * nabla(k, l) * onto(l, j);
                    }
                }
                let expected = -rate * projected;
                let found = after[i][j] - before[i][j];
                assert!((found - expected).abs() < 2e-6, "{found} {expected}");
            }
        }
    }

    #[test]
    fn a_triplet_with_its_margin_moves_nothing() {
        let factor = RowBuf::from_values(vec![2.0, 0.0, 0.0, 2.0], 2).unwrap();
        assert_eq!(slope(&factor, &[1.0, 0.0], &[0.5, 3.0]), (0.0, None));
    }
}
