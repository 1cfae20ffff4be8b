//! MLAPG: a positive semidefinite metric by a logistic loss over all pairs, with accelerated proximal
//! gradients. Liao & Li, "Efficient PSD constrained asymmetric metric learning for person
//! re-identification", ICCV 2015.
//!
//! With d the squared distance, μ its mean over all pairs at the start and y = 1 for relevant pairs, −1
//! for others, the loss is Σ w log(1 + exp(y (d − μ))), where relevant and irrelevant pairs weigh as much
//! in all as each other (the asymmetric weights). Departs from the paper: of its many pairs no matrix is
//! made; steps are FISTA with backtracking and restarts; the scale is that of relevant pairs at mean
//! distance 1.

use crate::dataset::Dataset;
use crate::linalg::{LANES, Symmetric, rows_from, softplus, vectorized};
use crate::model::Map;
use crate::optimize::{Composite, ProximalGradient};
use crate::supervision::SupervisionKind;
use crate::training::all_pairs::{AllPairs, Pair, QueryLoss};
use crate::training::parameters::{Bound, parameters, rank_or_all};
use crate::training::training_space::TrainingSpace;
use crate::training::warp::check_relevance;
use crate::training::{Method, Run};
use crate::{Error, Result};
use faer::Mat;

parameters! {
    /// Semidefinite metric by a logistic loss over all pairs. Learns from labels, relevance judgements or
    /// similar pairs. A step costs O(n²·d + n·d² + d³), memory is O(n·d + d²) and never n². Use it for
    /// re-identification with some thousand images, after pca above some hundred dimensions.
    pub struct Mlapg {
        /// Maximum dimension of a mapped vector; 0 for full rank.
        rank: usize = 0,
        /// Weight of the trace beside the loss: above 0 the metric gets fewer directions.
        lambda: f64 = 0.0 => Bound::AtLeast(0.0),
        /// Maximum number of training rows; a random sample is used if there are more.
        rows: usize = 10_000 => Bound::AtLeast(2.0),
        /// Maximum number of optimisation steps.
        iterations: usize = 200 => Bound::AtLeast(1.0),
        /// Stop when one step changes the metric by less than this fraction.
        tolerance: f64 = 1e-3 => Bound::BetweenZeroAndOne,
    }
}

impl Method for Mlapg {
    const NAME: &'static str = "mlapg";
    const SUMMARY: &'static str = "Semidefinite metric by a logistic loss over all pairs.";
    const NEEDS: &'static [SupervisionKind] = SupervisionKind::RELEVANCE;
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("lambda", &["0", "1e-3", "1e-2"])];

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let settings = self;
        let rank = rank_or_all(settings.rank, data.dim())?;
        let relevance = data.relevance("mlapg")?;
        check_relevance(relevance)?;
        let space = TrainingSpace::new(data)?;
        let scale = space.pair_scale(relevance, run.seed)?;
        let inverse = (1.0 / scale) as f32;
        let pairs = AllPairs::new(data, relevance, &space, inverse, settings.rows, run.seed)?;
        let (relevant, irrelevant) = pairs.counts();
        if relevant == 0 || irrelevant == 0 {
            return Err(Error::Data(format!(
                "mlapg needs relevant and irrelevant pairs among the rows taken, found {relevant} and \
                 {irrelevant}"
            )));
        }
        let dim = pairs.dim();
        let start = Mat::<f64>::identity(dim, dim);
        let threshold = mean_distance(&pairs, &start, relevant + irrelevant)?;
        run.facts.insert("threshold".into(), threshold);
        let mut objective = Objective {
            stop: run,
            loss: Logistic {
                threshold: threshold as f32,
                relevant: 1.0 / relevant as f32,
                irrelevant: 1.0 / irrelevant as f32,
            },
            lambda: settings.lambda,
            pairs,
        };
        let search = ProximalGradient {
            tolerance: settings.tolerance,
            iterations: settings.iterations,
        };
        let flat: Vec<f64> = start
            .col_iter()
            .flat_map(|c| c.iter().copied().collect::<Vec<_>>())
            .collect();
        let found = search.minimise(&mut objective, &flat)?;
        run.facts.insert("objective".into(), found.value);
        run.facts.insert("steps".into(), found.iterations as f64);
        let metric = Symmetric::new(matrix(&found.point, dim))?;
        let root = metric.eigen()?.factor(rank);
        if root.nrows() == 0 {
            return Err(Error::Data(
                "the metric has no direction left: relevant pairs are as far apart as irrelevant ones"
                    .into(),
            ));
        }
        run.facts.insert("rank".into(), root.nrows() as f64);
        space.carry_back(&rows_from(root.as_ref()), inverse, true)
    }
}

fn matrix(point: &[f64], dim: usize) -> Mat<f64> {
    Mat::from_fn(dim, dim, |i, j| {
        0.5 * (point[i + j * dim] + point[j + i * dim])
    })
}

/// Mean squared distance over relevant and irrelevant pairs.
fn mean_distance(pairs: &AllPairs<'_>, metric: &Mat<f64>, count: u64) -> Result<f64> {
    struct Sum;
    impl QueryLoss for Sum {
        fn judge(&self, pairs: &[Pair], scores: &mut [f32]) -> f64 {
            let of = |(pair, score): (&Pair, &f32)| match pair {
                Pair::Itself => 0.0,
                Pair::Relevant | Pair::Irrelevant => f64::from(*score),
            };
            pairs.iter().zip(scores.iter()).map(of).sum()
        }
    }
    let between = faer::Scale(-2.0) * metric;
    let judged = pairs.judge(metric.as_ref(), between.as_ref(), &Sum)?;
    Ok(judged.loss / count as f64)
}

/// Σ w log(1 + exp(y (d − μ))).
struct Logistic {
    threshold: f32,
    /// Weights of the two kinds of pairs.
    relevant: f32,
    irrelevant: f32,
}

impl Logistic {
    /// Sign and weight of a pair.
    #[inline(always)]
    fn kind(&self, pair: Pair) -> (f32, f32) {
        let is_relevant = pair == Pair::Relevant;
        let weight = if is_relevant {
            self.relevant
        } else {
            self.irrelevant
        };
        let weight = if pair == Pair::Itself { 0.0 } else { weight };
        (if is_relevant { 1.0 } else { -1.0 }, weight)
    }

    /// The losses of some pairs, added to sums of their own; slopes take the place of scores. In f32, as the distances
    /// are, and step by step over all pairs, so that each step is one of wide vectors.
    #[inline(always)]
    fn judge_lanes(
        &self,
        pairs: &[Pair; LANES],
        scores: &mut [f32; LANES],
        sums: &mut [f64; LANES],
    ) {
        let (mut signs, mut weights) = ([0.0; LANES], [0.0; LANES]);
        for lane in 0..LANES {
            (signs[lane], weights[lane]) = self.kind(pairs[lane]);
        }
        let mut losses = [0.0; LANES];
        for lane in 0..LANES {
            let (loss, slope) = softplus(signs[lane] * (scores[lane] - self.threshold));
            scores[lane] = signs[lane] * weights[lane] * slope;
            losses[lane] = weights[lane] * loss;
        }
        for lane in 0..LANES {
            sums[lane] += f64::from(losses[lane]);
        }
    }
}

impl QueryLoss for Logistic {
    fn judge(&self, pairs: &[Pair], scores: &mut [f32]) -> f64 {
        vectorized(
            #[inline(always)]
            || {
                let mut sums = [0.0_f64; LANES];
                let (chunks, rest) = pairs.as_chunks::<LANES>();
                let (targets, last) = scores.as_chunks_mut::<LANES>();
                for (pairs, scores) in chunks.iter().zip(targets) {
                    self.judge_lanes(pairs, scores, &mut sums);
                }
                // The last few, filled up with pairs that weigh nothing.
                let (mut pairs, mut scores) = ([Pair::Itself; LANES], [0.0; LANES]);
                pairs[..rest.len()].copy_from_slice(rest);
                scores[..last.len()].copy_from_slice(last);
                self.judge_lanes(&pairs, &mut scores, &mut sums);
                last.copy_from_slice(&scores[..last.len()]);
                sums.iter().sum()
            },
        )
    }
}

struct Objective<'a, 'r, 's> {
    pairs: AllPairs<'a>,
    loss: Logistic,
    lambda: f64,
    stop: &'r Run<'s>,
}

impl Composite for Objective<'_, '_, '_> {
    fn dim(&self) -> usize {
        self.pairs.dim() * self.pairs.dim()
    }

    fn smooth(&mut self, point: &[f64], gradient: &mut [f64]) -> Result<f64> {
        self.stop.check_stop()?;
        let dim = self.pairs.dim();
        let metric = matrix(point, dim);
        let between = faer::Scale(-2.0) * &metric;
        let judged = self
            .pairs
            .judge(metric.as_ref(), between.as_ref(), &self.loss)?;
        for j in 0..dim {
            for i in 0..dim {
                let crossed = judged.cross[(i, j)] + judged.cross[(j, i)];
                let diagonal = f64::from(u8::from(i == j));
                gradient[i + j * dim] = judged.own[(i, j)] - crossed + self.lambda * diagonal;
            }
        }
        let trace: f64 = (0..dim).map(|i| metric[(i, i)]).sum();
        Ok(judged.loss + self.lambda * trace)
    }

    /// Scores and losses are in f32.
    fn precision(&self) -> f64 {
        1e-6
    }

    /// The nearest positive semidefinite matrix.
    fn proximal(&mut self, point: &mut [f64], _: f64) -> Result<f64> {
        let dim = self.pairs.dim();
        let eigen = Symmetric::new(matrix(point, dim))?.eigen()?;
        let scaled = Mat::from_fn(dim, dim, |row, column| {
            eigen.values[column].max(0.0) * eigen.vectors[(row, column)]
        });
        let projected = &scaled * eigen.vectors.transpose();
        for j in 0..dim {
            for i in 0..dim {
                point[i + j * dim] = projected[(i, j)];
            }
        }
        Ok(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::synthetic::Nuisance;
    use crate::supervision::{Labels, Supervision};

    /// The optimum of a convex problem has no slope along any matrix that stays semidefinite: neither
    /// along itself nor along any v vᵀ downwards.
    #[test]
    fn the_end_is_the_optimum() {
        let set = Nuisance {
            classes: 5,
            signal: 2,
            noise: 3,
            seed: 2,
        }
        .rows(60);
        let supervision = Supervision::labels(Labels::from_numbers(&set.classes).unwrap());
        let data = Dataset::new(&set.corpus, &supervision).unwrap();
        let settings = Mlapg {
            tolerance: 1e-9,
            iterations: 5000,
            ..Mlapg::default()
        };
        let mut run = Run::new(1);
        let map = settings.checked().unwrap().fit(&data, &mut run).unwrap();
        let Map::LowRank(map) = map else {
            panic!("MLAPG gives a low-rank map");
        };
        let rows: Vec<Vec<f64>> = (set.corpus.rows().iter())
            .map(|row| row.iter().map(|v| f64::from(*v)).collect())
            .collect();
        let metric = Mat::from_fn(5, 5, |i, j| -> f64 {
            let weights = map.weights();
            weights
                .iter()
                .map(|row| f64::from(row[i]) * f64::from(row[j]))
                .sum()
        });
        let threshold = run.facts["threshold"];
        let (relevant, irrelevant) = (60.0 * 11.0, 60.0 * 48.0);
        let value = |metric: &Mat<f64>| {
            let mut sum = 0.0;
            for a in 0..60 {
                for b in (0..60).filter(|b| *b != a) {
                    let v = Mat::from_fn(5, 1, |i, _| rows[a][i] - rows[b][i]);
                    let distance = (v.transpose() * metric * &v)[(0, 0)];
                    let same = set.classes[a] == set.classes[b];
                    let (sign, weight) = if same {
                        (1.0, relevant)
                    } else {
                        (-1.0, irrelevant)
                    };
                    sum += (1.0 + (sign * (distance - threshold)).exp()).ln() / weight;
                }
            }
            sum
        };
        let least = value(&metric);
        assert!((least - run.facts["objective"]).abs() < 1e-4 * least);
        let scaled = |by: f64| value(&(faer::Scale(by) * &metric));
        assert!(scaled(1.01) > least - 1e-6 && scaled(0.99) > least - 1e-6);
        for axis in 0..5 {
            let more = |by: f64| {
                let mut moved = metric.clone();
                moved[(axis, axis)] += by;
                value(&moved)
            };
            let step = 1e-3 * metric[(axis, axis)].max(1e-3);
            assert!(more(step) > least - 1e-6, "axis {axis}");
        }
    }
}
