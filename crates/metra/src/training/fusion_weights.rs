//! Weights of ranked lists learned from relevance judgements.
//!
//! The loss of a query is the cross entropy between its grades, as shares, and the softmax of its items' summed scores
//! (ListNet's with one item on top: Cao, Qin, Liu, Tsai & Li, ICML 2007). It is convex in the weights, so that there is one
//! minimum, and Newton's method finds it with no weight below 0. Lists are brought to unit deviation within queries first,
//! so that the small ridge, which keeps weights finite where lists separate relevant items perfectly, is the same for
//! all.

use crate::evaluate::{RankedItem, RankedQuery};
use crate::optimize::{Bound, Newton, Objective};
use crate::search::{Fusion, ScaledCandidates, ScoreScale, ScoredItem};
use crate::{Error, Result};
use faer::Mat;
use std::collections::BTreeMap;

/// Half of it times the weights' squares is added to the mean loss.
const RIDGE: f64 = 1e-4;
/// So many first items of every list are learned from: the others would make up most of the loss, and measures look at
/// the top.
pub(crate) const DEPTH: u32 = 20;

/// One query with its ranked lists and the grades of its relevant items.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JudgedLists {
    /// One list a ranking, empty where it has nothing for the query.
    pub lists: Vec<Vec<ScoredItem>>,
    /// Grades above 0 by item, ranked or not.
    pub grades: BTreeMap<u32, f32>,
}

/// The same with the lists on a scale.
pub(crate) struct ScaledQuery {
    candidates: ScaledCandidates,
    /// Of every candidate; 0 where it is not relevant.
    grades: Vec<f32>,
    /// Those of relevant items that no list has.
    unlisted: Vec<f32>,
}

impl ScaledQuery {
    pub(crate) fn new(
        lists: &[Vec<ScoredItem>],
        grades: &BTreeMap<u32, f32>,
        scale: ScoreScale,
    ) -> Self {
        let candidates = ScaledCandidates::new(lists, scale);
        let mut unlisted = grades.clone();
        let mut grade = |item: &u32| unlisted.remove(item).unwrap_or(0.0);
        ScaledQuery {
            grades: candidates.items.iter().map(&mut grade).collect(),
            unlisted: unlisted.into_values().collect(),
            candidates,
        }
    }

    /// The query's ranking by some weights.
    pub(crate) fn ranked(&self, weights: &[f64], number: u64) -> RankedQuery {
        let mut is_ranked = vec![false; self.grades.len()];
        let item = |(row, sum): (usize, f64)| {
            is_ranked[row] = true;
            RankedItem {
                score: -sum as f32,
                grade: Some(self.grades[row]).filter(|grade| *grade > 0.0),
                tie_rank: 0,
            }
        };
        let items = self.candidates.sums(weights).map(item).collect();
        let left = self
            .grades
            .iter()
            .zip(is_ranked)
            .filter(|(grade, ranked)| **grade > 0.0 && !ranked);
        let left = left.map(|(grade, _)| *grade);
        RankedQuery {
            cluster: number,
            items,
            missing: self.unlisted.iter().copied().chain(left).collect(),
        }
    }

    /// What is learned from; nothing where no relevant item is among it.
    fn taught(&self, lists: usize) -> Option<TaughtQuery> {
        let rows = self
            .candidates
            .scores
            .chunks_exact(lists)
            .zip(&self.candidates.places);
        let near = rows
            .zip(&self.grades)
            .filter(|((_, place), _)| **place < DEPTH);
        let (mut scores, mut shares) = (Vec::new(), Vec::new());
        for ((row, _), grade) in near {
            scores.extend_from_slice(row);
            shares.push(f64::from(*grade));
        }
        let total: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= total);
        (total > 0.0 && shares.len() > 1).then_some(TaughtQuery { scores, shares })
    }
}

/// The weights by which the judged items come first. Queries without a relevant item among the first ones of their lists
/// teach nothing.
pub fn fit_fusion(queries: &[JudgedLists], scale: ScoreScale) -> Result<Fusion> {
    let lists = lists_of(queries)?;
    let scaled = (queries.iter()).map(|query| ScaledQuery::new(&query.lists, &query.grades, scale));
    let scaled: Vec<ScaledQuery> = scaled.collect();
    fit_scaled(scaled.iter(), scale, lists)
}

/// How many lists every query has.
pub(crate) fn lists_of(queries: &[JudgedLists]) -> Result<usize> {
    let lists = queries.first().map_or(0, |query| query.lists.len());
    match queries.iter().position(|query| query.lists.len() != lists) {
        None => Ok(lists),
        Some(number) => {
            let what = format!("ranked lists of query {number}");
            Err(Error::shape(what, lists, queries[number].lists.len()))
        }
    }
}

/// The same for queries on the scale, with so many lists each.
pub(crate) fn fit_scaled<'q>(
    queries: impl Iterator<Item = &'q ScaledQuery>,
    scale: ScoreScale,
    lists: usize,
) -> Result<Fusion> {
    let mut taught: Vec<TaughtQuery> = queries.filter_map(|query| query.taught(lists)).collect();
    if taught.is_empty() {
        return Err(Error::Data(format!(
            "no judged query has a relevant item among the first {DEPTH} of a list: there is nothing to learn weights from"
        )));
    }
    let deviations = deviations(&taught, lists);
    for query in &mut taught {
        for row in query.scores.chunks_exact_mut(lists) {
            row.iter_mut()
                .zip(&deviations)
                .for_each(|(score, deviation)| *score /= deviation);
        }
    }
    let newton = Newton {
        bound: Bound::NonNegative,
        ..Newton::default()
    };
    let mut objective = SoftmaxLoss {
        queries: taught,
        lists,
        hessian: Mat::zeros(lists, lists),
    };
    let found = newton.minimise(&mut objective, &vec![1.0; lists])?;
    let weights: Vec<f64> = found
        .point
        .iter()
        .zip(&deviations)
        .map(|(w, d)| w / d)
        .collect();
    if weights.iter().all(|weight| *weight == 0.0) {
        return Err(Error::Data(
            "every ranked list puts the relevant items behind the others, or does not tell them apart: no weights above 0 help"
                .into(),
        ));
    }
    Fusion::new(scale, weights)
}

/// Items of a query: their numbers of all lists, row after row, and their shares of the grades.
struct TaughtQuery {
    scores: Vec<f64>,
    shares: Vec<f64>,
}

/// Deviation of each list's scores about the queries' own means; 1 where there is none.
fn deviations(queries: &[TaughtQuery], lists: usize) -> Vec<f64> {
    let mut squares = vec![0.0; lists];
    let mut rows = 0;
    for query in queries {
        let count = query.shares.len();
        rows += count;
        for (list, total) in squares.iter_mut().enumerate() {
            let of_list = || query.scores.iter().skip(list).step_by(lists);
            let mean = of_list().sum::<f64>() / count as f64;
            *total += of_list().map(|score| (score - mean).powi(2)).sum::<f64>();
        }
    }
    let deviation = |total: f64| (total / rows as f64).sqrt();
    let usable = |total| Some(deviation(total)).filter(|d| *d > 0.0).unwrap_or(1.0);
    squares.into_iter().map(usable).collect()
}

/// The mean loss of all queries with the ridge.
struct SoftmaxLoss {
    queries: Vec<TaughtQuery>,
    lists: usize,
    hessian: Mat<f64>,
}

impl Objective for SoftmaxLoss {
    fn dim(&self) -> usize {
        self.lists
    }

    fn evaluate(&mut self, point: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let lists = self.lists;
        let mut value = 0.0;
        gradient.fill(0.0);
        self.hessian = Mat::zeros(lists, lists);
        let each = 1.0 / self.queries.len() as f64;
        let mut sums = Vec::new();
        for query in &self.queries {
            let rows = || query.scores.chunks_exact(lists);
            sums.clear();
            sums.extend(rows().map(|row| row.iter().zip(point).map(|(s, w)| s * w).sum::<f64>()));
            let highest = sums.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = sums.iter().map(|sum| (sum - highest).exp()).sum();
            let normaliser = highest + total.ln();
            let mut mean = vec![0.0; lists];
            let mut products = Mat::<f64>::zeros(lists, lists);
            for ((row, sum), share) in rows().zip(&sums).zip(&query.shares) {
                let chance = (sum - normaliser).exp();
                value += each * share * (normaliser - sum);
                for (a, score) in row.iter().enumerate() {
                    mean[a] += chance * score;
                    gradient[a] += each * (chance - share) * score;
                    for (b, other) in row.iter().enumerate().take(a + 1) {
                        products[(a, b)] += chance * score * other;
                    }
                }
            }
            for a in 0..lists {
                for b in 0..=a {
                    self.hessian[(a, b)] += each * (products[(a, b)] - mean[a] * mean[b]);
                }
            }
        }
        for (index, weight) in point.iter().enumerate() {
            value += 0.5 * RIDGE * weight * weight;
            gradient[index] += RIDGE * weight;
            self.hessian[(index, index)] += RIDGE;
        }
        Ok(value)
    }

    fn hessian_product(&self, direction: &[f64], out: &mut [f64]) -> Result<()> {
        for (a, out) in out.iter_mut().enumerate() {
            let entry = |b: usize| self.hessian[(a.max(b), a.min(b))];
            *out = direction
                .iter()
                .enumerate()
                .map(|(b, value)| entry(b) * value)
                .sum();
        }
        Ok(())
    }

    fn add_hessian(&self, out: &mut Mat<f64>) -> Result<()> {
        *out += &self.hessian;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    /// Queries of 30 items whose grade-1 item is the best of `truth` · scores with some noise.
    fn drawn(queries: usize, truth: &[f64], noise: f64) -> Vec<JudgedLists> {
        let mut stream = Stream::new(5, "fusion test", 0);
        let query = |_| {
            let rows: Vec<Vec<f64>> = (0..30)
                .map(|_| truth.iter().map(|_| stream.normal()).collect())
                .collect();
            let sum = |row: &[f64]| row.iter().zip(truth).map(|(s, w)| s * w).sum::<f64>();
            let noisy: Vec<f64> = rows
                .iter()
                .map(|row| sum(row) + noise * stream.normal())
                .collect();
            let best = (0..30)
                .max_by(|a, b| noisy[*a].total_cmp(&noisy[*b]))
                .unwrap();
            let list = |at: usize| {
                rows.iter()
                    .zip(0..)
                    .map(|(row, item)| (item, row[at]))
                    .collect()
            };
            JudgedLists {
                lists: (0..truth.len()).map(list).collect(),
                grades: BTreeMap::from([(best as u32, 1.0)]),
            }
        };
        (0..queries).map(query).collect()
    }

    #[test]
    fn derivatives_equal_differences() {
        let queries = drawn(3, &[1.0, 0.5, 0.2], 0.5);
        let taught = |query: &JudgedLists| {
            ScaledQuery::new(&query.lists, &query.grades, ScoreScale::ZScore).taught(3)
        };
        let mut loss = SoftmaxLoss {
            queries: queries.iter().filter_map(taught).collect(),
            lists: 3,
            hessian: Mat::zeros(3, 3),
        };
        let point = [0.7, 0.1, 1.3];
        let mut gradient = [0.0; 3];
        loss.evaluate(&point, &mut gradient).unwrap();
        let mut second = [0.0; 3];
        let direction = [1.0, -2.0, 0.5];
        loss.hessian_product(&direction, &mut second).unwrap();
        let step = 1e-5;
        let mut at = |length: f64| {
            let moved: Vec<f64> = point
                .iter()
                .zip(&direction)
                .map(|(p, d)| p + length * d)
                .collect();
            let mut gradient = [0.0; 3];
            (loss.evaluate(&moved, &mut gradient).unwrap(), gradient)
        };
        let (ahead, behind) = (at(step), at(-step));
        let slope: f64 = gradient.iter().zip(&direction).map(|(g, d)| g * d).sum();
        assert!(((ahead.0 - behind.0) / (2.0 * step) - slope).abs() < 1e-8);
        for (index, expected) in second.iter().enumerate() {
            let found = (ahead.1[index] - behind.1[index]) / (2.0 * step);
            assert!((found - expected).abs() < 1e-8, "{found} {expected}");
        }
    }

    #[test]
    fn true_weights_are_found_whatever_the_units() {
        // The best of Gumbel noise would give the weights themselves; of normal noise it gives their direction.
        let mut queries = drawn(800, &[2.0, 1.0, 0.0], 1.0);
        for item in queries.iter_mut().flat_map(|query| &mut query.lists[1]) {
            item.1 = 1000.0 * item.1 + 7.0;
        }
        let fusion = fit_fusion(&queries, ScoreScale::Raw).unwrap();
        let [first, second, third] = fusion.weights() else {
            panic!("{fusion:?}")
        };
        assert!((second * 1000.0 / first - 0.5).abs() < 0.05, "{fusion:?}");
        assert!(third / first < 0.05, "{fusion:?}");
    }

    #[test]
    fn lists_that_mislead_get_nothing() {
        let mut queries = drawn(60, &[1.0, 1.0], 0.3);
        for item in queries.iter_mut().flat_map(|query| &mut query.lists[1]) {
            item.1 = -item.1;
        }
        let fusion = fit_fusion(&queries, ScoreScale::MinMax).unwrap();
        assert!(
            fusion.weights()[0] > 0.0 && fusion.weights()[1] == 0.0,
            "{fusion:?}"
        );
        for query in &mut queries {
            query.lists.remove(0);
        }
        let error = fit_fusion(&queries, ScoreScale::Raw)
            .unwrap_err()
            .to_string();
        assert!(error.contains("behind the others"), "{error}");
    }

    #[test]
    fn perfect_lists_have_finite_weights_and_nothing_judged_is_an_error() {
        let query = JudgedLists {
            lists: vec![vec![(0, 2.0), (1, 1.0)], vec![(1, 3.0)]],
            grades: BTreeMap::from([(0, 1.0)]),
        };
        let fusion = fit_fusion(std::slice::from_ref(&query), ScoreScale::Raw).unwrap();
        assert!(fusion.weights()[0] > 0.0, "{fusion:?}");
        let unjudged = JudgedLists {
            grades: BTreeMap::from([(9, 1.0)]),
            ..query
        };
        assert!(fit_fusion(&[unjudged], ScoreScale::Raw).is_err());
        assert!(fit_fusion(&[], ScoreScale::Raw).is_err());
    }
}
