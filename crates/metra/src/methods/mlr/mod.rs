//! MLR: metric learning to rank, a structural SVM over rankings. McFee & Lanckriet, "Metric learning to
//! rank", ICML 2010, in the 1-slack form with the ADMM solver of Lim, McFee & Lanckriet, "Robust
//! structural metric learning", ICML 2013.
//!
//! For each query the ranking with the relevant items first must score better than any other one by that
//! one's loss, up to one slack for all queries together. Rounds alternate between two steps: the metric
//! over the constraints so far, and, by an oracle, the ranking of each query that violates the most. What
//! a round adds is one matrix Ψ, the mean over queries of ψ(q, best) − ψ(q, violator), and one number Δ,
//! the mean loss; pairs are never listed (see `all_pairs`). It ends where a new constraint is violated by
//! hardly more than the slack.

mod oracle;
mod solver;

use crate::dataset::Dataset;
use crate::linalg::{Symmetric, rows_from};
use crate::model::Map;
use crate::supervision::SupervisionKind;
use crate::training::all_pairs::{AllPairs, Pair, QueryLoss};
use crate::training::parameters::{Bound, Choice, parameters, rank_or_all};
use crate::training::training_space::TrainingSpace;
use crate::training::warp::check_relevance;
use crate::training::{Method, Progress, Run};
use crate::{Error, Result};
use faer::Mat;
use oracle::{Scored, violator_by_area, violator_by_first, violator_by_precision};
use solver::{Solver, inner};
use std::time::Instant;

/// What a wrong ranking costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RankingLoss {
    /// 1 − the area under the ROC curve.
    Auc,
    /// 1 − average precision.
    Map,
    /// 1 − the reciprocal rank of the first relevant item.
    Mrr,
}

impl Choice for RankingLoss {
    const ALL: &'static [(&'static str, Self)] = &[
        ("auc", RankingLoss::Auc),
        ("map", RankingLoss::Map),
        ("mrr", RankingLoss::Mrr),
    ];
}

parameters! {
    /// A metric by a structural SVM over whole rankings. Learns from labels, relevance judgements or
    /// similar pairs. A round costs O(n²·d) and, with loss=map, O(n²·relevant), beside O(d³) for each of
    /// the solver's steps; memory O(n·d + rounds·d²). Use it where average precision itself is to be
    /// optimised over some thousand rows; FRML and WARCA come as far in a fraction of the time.
    pub struct Mlr {
        /// Maximum dimension of a mapped vector; 0 for full rank.
        rank: usize = 0,
        /// What a wrong ranking costs: auc, map (average precision) or mrr (rank of the first relevant item).
        loss: RankingLoss = RankingLoss::Auc,
        /// C: what a unit of slack costs beside ½‖W‖².
        cost: f64 = 100.0 => Bound::Above(0.0),
        /// Whether only a weight for each column is learned.
        diagonal: bool = false,
        /// Maximum number of training rows; a random sample is used if there are more.
        rows: usize = 5000 => Bound::AtLeast(2.0),
        /// Maximum number of rounds; each adds a constraint.
        rounds: u64 = 50 => Bound::AtLeast(1.0),
        /// Stop when a new constraint is violated by at most this much more than the slack.
        tolerance: f64 = 0.01 => Bound::Above(0.0),
    }
}

impl Method for Mlr {
    const NAME: &'static str = "mlr";
    const SUMMARY: &'static str = "Semidefinite metric by a structural SVM over whole rankings.";
    const NEEDS: &'static [SupervisionKind] = SupervisionKind::RELEVANCE;
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("cost", &["1", "100", "10000"])];

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let settings = self;
        let rank = rank_or_all(settings.rank, data.dim())?;
        let relevance = data.relevance("mlr")?;
        check_relevance(relevance)?;
        let space = TrainingSpace::new(data)?;
        let scale = space.pair_scale(relevance, run.seed)?;
        let inverse = (1.0 / scale) as f32;
        let pairs = AllPairs::new(data, relevance, &space, inverse, settings.rows, run.seed)?;
        let (relevant, irrelevant) = pairs.counts();
        if relevant == 0 || irrelevant == 0 {
            return Err(Error::Data(format!(
                "mlr needs relevant and irrelevant pairs among the rows taken, found {relevant} and \
                 {irrelevant}"
            )));
        }
        let metric = rounds(settings, &pairs, run)?;
        let root = Symmetric::new(metric)?.eigen()?.factor(rank);
        if root.nrows() == 0 {
            return Err(Error::Data(
                "the metric is 0: no direction puts relevant items before others".into(),
            ));
        }
        run.facts.insert("rank".into(), root.nrows() as f64);
        space.carry_back(&rows_from(root.as_ref()), inverse, true)
    }
}

/// Constraints are added until none is violated by more than the slack allows.
fn rounds(settings: &Mlr, pairs: &AllPairs<'_>, run: &mut Run<'_>) -> Result<Mat<f64>> {
    let dim = pairs.dim();
    let mut solver = Solver::new(dim, settings.cost, settings.diagonal);
    let mut metric = Mat::<f64>::zeros(dim, dim);
    let mut slack = 0.0;
    let began = Instant::now();
    let mut done = 0;
    while done < settings.rounds {
        run.check_stop()?;
        let (change, loss) = most_violated(settings.loss, pairs, &metric)?;
        done += 1;
        let product: f64 = inner(&metric, &change);
        let violated = loss - product - slack;
        if !violated.is_finite() {
            return Err(Error::Diverged {
                step: done,
                problem: "the metric is not finite".into(),
            });
        }
        let is_enough = run.tell(&Progress {
            step: done,
            steps: settings.rounds,
            loss: loss - product,
            ranking: None,
            speed: done as f64 / began.elapsed().as_secs_f64().max(1e-9),
            validation: None,
        });
        run.facts.insert("violated".into(), violated);
        if is_enough || violated <= settings.tolerance {
            break;
        }
        solver.add(change, loss);
        (metric, slack) = solver.solve()?;
    }
    run.facts.insert("rounds".into(), done as f64);
    run.facts.insert("slack".into(), slack);
    Ok(metric)
}

/// Ψ and Δ of the rankings that violate most under a metric.
fn most_violated(
    loss: RankingLoss,
    pairs: &AllPairs<'_>,
    metric: &Mat<f64>,
) -> Result<(Mat<f64>, f64)> {
    let between = faer::Scale(-2.0) * metric;
    let violators = Violators {
        loss,
        share: 1.0 / pairs.queries() as f64,
    };
    let judged = pairs.judge(metric.as_ref(), between.as_ref(), &violators)?;
    let change = &judged.own - &judged.cross - judged.cross.transpose();
    Ok((change, judged.loss))
}

/// Gives each item of a query what ψ(q, best) − ψ(q, violator) weighs its squared distance by.
struct Violators {
    loss: RankingLoss,
    /// One over the number of queries.
    share: f64,
}

impl QueryLoss for Violators {
    fn judge(&self, pairs: &[Pair], scores: &mut [f32]) -> f64 {
        let mut places: Vec<usize> = (0..pairs.len())
            .filter(|place| pairs[*place] != Pair::Itself)
            .collect();
        // Nearest first; a distance's minus is the score of the structural SVM.
        places.sort_by(|a, b| scores[*a].total_cmp(&scores[*b]).then(a.cmp(b)));
        let scored: Vec<Scored> = (places.iter())
            .map(|place| Scored {
                score: -f64::from(scores[*place]),
                relevant: pairs[*place] == Pair::Relevant,
            })
            .collect();
        let (weights, loss) = match self.loss {
            RankingLoss::Auc => violator_by_area(&scored),
            RankingLoss::Map => violator_by_precision(&scored),
            RankingLoss::Mrr => violator_by_first(&scored),
        };
        scores.fill(0.0);
        for (place, weight) in places.iter().zip(weights) {
            // ψ weighs −(q − x)(q − x)ᵀ, so that the distance has the opposite sign.
            scores[*place] = (-self.share * weight) as f32;
        }
        self.share * loss
    }
}
