//! PCCA and rPCCA, linear and after a kernel: similar pairs nearer than 1 and dissimilar ones farther, by
//! a logistic loss on listed pairs. Mignon & Jurie, "PCCA: a new approach for distance learning from
//! sparse pairwise constraints", CVPR 2012; with the penalty λ|L|² it is rPCCA of Xiong, Gou, Camps &
//! Sznaier, "Person re-identification using kernel-based metric learning methods", ECCV 2014.
//!
//! With d the squared distance after the map and y = 1 for similar pairs, −1 for dissimilar ones, the
//! loss is the mean over pairs of log(1 + exp(β y (d − 1)))/β. Departs from the papers: quasi-Newton
//! steps, not gradient descent; data are scaled so that the threshold 1 lies between the mean squared
//! distances of the two kinds at the start; of a pair only its two row numbers are kept, where an
//! implementation by differences holds a whole vector of it.

use crate::data::{Corpus, JoinedCorpus, RowId};
use crate::dataset::Dataset;
use crate::linalg::{RowBuf, Rows};
use crate::model::Map;
use crate::supervision::SupervisionKind;
use crate::training::descent::{Schedule, descend};
use crate::training::differences::{irrelevant_pairs, relevant_pairs};
use crate::training::full_batch::{FullBatch, LbfgsDescent, MappedLoss};
use crate::training::kernel::{KernelAxes, KernelSpec};
use crate::training::pair_lists::{PairLists, Reversed, apart, slopes};
use crate::training::parameters::{Bound, parameters, require_rank};
use crate::training::training_space::{Start, TrainingSpace};
use crate::training::warp::check_relevance;
use crate::training::{Method, Run};
use crate::{Error, Result};
use rayon::prelude::*;

parameters! {
    /// Similar pairs nearer than a threshold and dissimilar ones farther, by a logistic loss: rPCCA, and
    /// PCCA with lambda 0. Learns from labels, relevance judgements or pairs. A step costs O(n·d·rank +
    /// pairs·rank), memory O(n·rank) and 20 bytes a pair. Use it where pairs are what you have; WARCA is
    /// faster and ranks better.
    pub struct Pcca {
        /// Dimension of a mapped vector.
        rank: usize = 64 => Bound::AtLeast(1.0),
        /// Weight of |L|² beside the mean loss; 0 is PCCA as it was published first.
        lambda: f64 = 1e-5 => Bound::AtLeast(0.0),
        /// How sharply the loss bends at the threshold.
        beta: f64 = 3.0 => Bound::Above(0.0),
        /// Maximum number of relevant pairs; a random sample is used if there are more.
        pairs: usize = 100_000 => Bound::AtLeast(1.0),
        /// Irrelevant pairs drawn for each relevant one.
        negatives: usize = 10 => Bound::AtLeast(1.0),
        /// Initialisation of the map: pca, lda (needs labels) or random.
        start: Start = Start::Pca,
        /// Stop when one step decreases the objective by less than this fraction.
        tolerance: f64 = 1e-5 => Bound::BelowOne,
    }
    shared {
        /// When it validates and stops.
        schedule: Schedule = Schedule::of(200),
    }
}

impl Method for Pcca {
    const NAME: &'static str = "pcca";
    const SUMMARY: &'static str =
        "Low-rank map that keeps similar pairs within a threshold (rPCCA).";
    const NEEDS: &'static [SupervisionKind] = SupervisionKind::RELEVANCE;
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("lambda", &["1e-6", "1e-5", "1e-4"])];

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        require_rank(self.rank, data.dim())?;
        check_relevance(data.relevance("pcca")?)?;
        train("pcca", self, data, &TrainingSpace::new(data)?, run)
    }
}

parameters! {
    /// rPCCA after a kernel: for histograms compared by χ² above all. Learns from labels, relevance
    /// judgements or pairs. With N landmarks it takes O(N²·d + N³) once and O(n·N·rank + pairs·rank) a
    /// step; memory O(N² + n·N) and 20 bytes a pair. Use it to compare with kernel WARCA, which needs a
    /// fraction of the time.
    pub struct KernelPcca {
    }
    shared {
        /// The kernel.
        kernel: KernelSpec = KernelSpec::default(),
        /// The linear method in the feature space.
        linear: Pcca = Pcca {
            rank: 100,
            ..Pcca::default()
        },
    }
}

impl Method for KernelPcca {
    const NAME: &'static str = "kernel-pcca";
    const SUMMARY: &'static str = "Kernel rPCCA, mainly for histograms with a χ² kernel.";
    const NEEDS: &'static [SupervisionKind] = SupervisionKind::RELEVANCE;
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("lambda", &["1e-6", "1e-5", "1e-4"])];

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        check_relevance(data.relevance("kernel-pcca")?)?;
        let axes = KernelAxes::new(data.items(), self.kernel, run.seed)?;
        run.check_stop()?;
        run.facts.insert("axes".into(), axes.rank() as f64);
        let mut settings = self.linear.clone();
        settings.rank = settings.rank.min(axes.rank());
        let space = TrainingSpace::in_kernel_space(data, &axes)?;
        train("kernel-pcca", &settings, data, &space, run)
    }
}

fn train(
    learner: &str,
    settings: &Pcca,
    data: &Dataset<'_>,
    space: &TrainingSpace<'_>,
    run: &mut Run<'_>,
) -> Result<Map> {
    let relevance = data.relevance(learner)?;
    let supervision = data.supervision();
    let near = relevant_pairs(relevance, settings.pairs, run.seed);
    let count = near.len().saturating_mul(settings.negatives);
    let far = irrelevant_pairs(supervision, relevance, count, run.seed);
    let joined;
    let (corpus, border): (&dyn Corpus, u64) = if relevance.within() {
        (space.items(), 0)
    } else {
        joined = JoinedCorpus::new(space.queries(), space.items())?;
        (&joined, space.queries().len())
    };
    let scale = mean_length(corpus, border, &near, &far)?;
    run.facts.insert("scale".into(), scale);
    let rows = corpus.len() as usize;
    let loss = Pairs {
        beta: settings.beta as f32,
        kinds: [
            Kind::new(rows, border, &near, 1.0),
            Kind::new(rows, border, &far, -1.0),
        ],
    };
    let rank = settings.rank.min(space.dim());
    let start = space.start(learner, settings.start, rank, run.seed)?;
    let whole = FullBatch::new(space, corpus, scale, rank);
    let point = whole.point(&start);
    let mut steady = LbfgsDescent::new(whole, loss, settings.lambda, settings.tolerance);
    let schedule = settings.schedule;
    let map = descend(schedule, &mut steady, point, run)?;
    if let Some(value) = steady.value() {
        run.facts.insert("objective".into(), value);
    }
    Ok(map)
}

/// The root of the mean of the two kinds' mean squared distances.
fn mean_length(
    corpus: &dyn Corpus,
    border: u64,
    near: &[(RowId, RowId)],
    far: &[(RowId, RowId)],
) -> Result<f64> {
    let (mut left, mut right) = (RowBuf::empty(1), RowBuf::empty(1));
    let mut means = 0.0;
    for pairs in [near, far] {
        let mut total = 0.0;
        for pairs in pairs.chunks(512) {
            let (from, to): (Vec<RowId>, Vec<RowId>) =
                pairs.iter().map(|(a, b)| (*a, border + b)).unzip();
            corpus.gather(&from, &mut left)?;
            corpus.gather(&to, &mut right)?;
            for (a, b) in left.values().iter().zip(right.values()) {
                total += (f64::from(*a) - f64::from(*b)).powi(2);
            }
        }
        means += total / pairs.len().max(1) as f64;
    }
    let mean = (means / 2.0).sqrt();
    if !mean.is_finite() {
        return Err(Error::Data("distances of pairs are not finite".into()));
    }
    if mean > 0.0 {
        return Ok(mean);
    }
    Err(Error::Data(
        "all vectors are equal: nothing can be learned".into(),
    ))
}

/// The logistic loss over listed pairs of both kinds.
struct Pairs {
    beta: f32,
    kinds: [Kind; 2],
}

struct Kind {
    edges: PairLists,
    reversed: Reversed,
    /// 1 for pairs that shall be near, −1 for those that shall be far.
    sign: f32,
}

impl Kind {
    fn new(rows: usize, border: u64, pairs: &[(RowId, RowId)], sign: f32) -> Self {
        let mut lists = vec![Vec::new(); rows];
        for (from, to) in pairs {
            lists[*from as usize].push((border + to) as u32);
        }
        let edges = PairLists::from_lists(lists.into_iter());
        Kind {
            reversed: edges.reversed(),
            edges,
            sign,
        }
    }
}

impl MappedLoss for Pairs {
    fn evaluate(&self, mapped: Rows<'_>) -> Result<(f64, RowBuf)> {
        let count: usize = self.kinds.iter().map(|kind| kind.edges.len()).sum();
        let share = 1.0 / count.max(1) as f64;
        let mut value = 0.0;
        let weights: Vec<Vec<f32>> = (self.kinds.iter())
            .map(|kind| {
                let by_row: Vec<(f64, Vec<f32>)> = (0..kind.edges.rows())
                    .into_par_iter()
                    .map(|row| self.of_row(kind, row, mapped, share))
                    .collect();
                let mut weights = Vec::with_capacity(kind.edges.len());
                for (part, of_row) in by_row {
                    value += part;
                    weights.extend(of_row);
                }
                weights
            })
            .collect();
        let kinds: Vec<(&PairLists, &Reversed, &Vec<f32>)> = (self.kinds.iter().zip(&weights))
            .map(|(kind, weights)| (&kind.edges, &kind.reversed, weights))
            .collect();
        Ok((value * share, slopes(mapped, &kinds)))
    }
}

impl Pairs {
    /// Loss of a row's pairs, and the slope by each of their distances.
    fn of_row(&self, kind: &Kind, row: usize, mapped: Rows<'_>, share: f64) -> (f64, Vec<f32>) {
        let (beta, sign) = (f64::from(self.beta), f64::from(kind.sign));
        let mut value = 0.0;
        let own = mapped.row(row);
        let weights = (kind.edges.of(row).iter())
            .map(|to| {
                let distance = f64::from(apart(own, mapped.row(*to as usize)));
                let t = beta * sign * (distance - 1.0);
                // log(1 + e^t) without overflow, and its slope.
                value += (t.max(0.0) + (-t.abs()).exp().ln_1p()) / beta;
                (share * sign / (1.0 + (-t).exp())) as f32
            })
            .collect();
        (value, weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::synthetic::Nuisance;
    use crate::supervision::{Labels, Supervision};
    use crate::training::KernelKind;

    fn loss(rows: usize) -> Pairs {
        let near: Vec<(RowId, RowId)> = (0..rows as u64 - 4).map(|row| (row, row + 4)).collect();
        let far: Vec<(RowId, RowId)> = (0..rows as u64 - 1).map(|row| (row + 1, row)).collect();
        Pairs {
            beta: 3.0,
            kinds: [
                Kind::new(rows, 0, &near, 1.0),
                Kind::new(rows, 0, &far, -1.0),
            ],
        }
    }

    /// By the definition, in f64.
    fn dense(rows: &[Vec<f64>]) -> f64 {
        let count = rows.len();
        let term = |a: usize, b: usize, sign: f64| {
            let squares = rows[a].iter().zip(&rows[b]).map(|(a, b)| (a - b).powi(2));
            (1.0 + (3.0 * sign * (squares.sum::<f64>() - 1.0)).exp()).ln() / 3.0
        };
        let near: f64 = (0..count - 4).map(|row| term(row, row + 4, 1.0)).sum();
        let far: f64 = (0..count - 1).map(|row| term(row + 1, row, -1.0)).sum();
        (near + far) / (2 * count - 5) as f64
    }

    #[test]
    fn value_and_slope_are_those_of_the_definition() {
        let set = Nuisance {
            classes: 4,
            signal: 2,
            noise: 1,
            seed: 3,
        }
        .rows(40);
        let mut near = RowBuf::from_values(set.corpus.rows().values().to_vec(), 3).unwrap();
        near.values_mut().iter_mut().for_each(|v| *v *= 0.3);
        let rows: Vec<Vec<f64>> = (near.rows().iter())
            .map(|row| row.iter().map(|v| f64::from(*v)).collect())
            .collect();
        let (value, slopes) = loss(40).evaluate(near.rows()).unwrap();
        assert!((value - dense(&rows)).abs() < 1e-6, "{value}");
        for (row, column) in [(0, 0), (17, 2), (39, 1)] {
            let at = |by: f64| {
                let mut moved = rows.clone();
                moved[row][column] += by;
                dense(&moved)
            };
            let expected = (at(1e-5) - at(-1e-5)) / 2e-5;
            let found = f64::from(slopes.row(row)[column]);
            assert!((found - expected).abs() < 1e-5, "{found} {expected}");
        }
    }

    #[test]
    fn a_linear_kernel_gives_the_linear_result() {
        let set = Nuisance {
            classes: 5,
            signal: 2,
            noise: 4,
            seed: 3,
        }
        .rows(80);
        let supervision = Supervision::labels(Labels::from_numbers(&set.classes).unwrap());
        let data = Dataset::new(&set.corpus, &supervision).unwrap();
        let linear = Pcca {
            rank: 3,
            ..Pcca::default()
        };
        let kernel = KernelPcca {
            kernel: KernelSpec {
                kernel: KernelKind::Linear,
                ..KernelSpec::default()
            },
            linear: Pcca {
                rank: 3,
                ..KernelPcca::default().linear
            },
        };
        let (mut one, mut other) = (Run::new(1), Run::new(1));
        linear.checked().unwrap().fit(&data, &mut one).unwrap();
        kernel.checked().unwrap().fit(&data, &mut other).unwrap();
        let (a, b) = (one.facts["objective"], other.facts["objective"]);
        assert!((a / b - 1.0).abs() < 1e-3, "{a} {b}");
        assert!(a < 0.9 * f64::ln(2.0) / 3.0 * 2.0, "{a}");
    }
}
