//! Losses over all pairs of a query and an item, for quadratic scores, without any n × n matrix.
//!
//! A score is s(q, x) = qᵀAq + xᵀAx + qᵀBx; a squared distance by M is A = M, B = −2M. A loss that has
//! the slope g by the score of a pair has, by A and B,
//!
//!   Σ g (q qᵀ + x xᵀ)   and   Σ g q xᵀ.
//!
//! Queries are taken in blocks: their scores with all items (one product), the slopes in their place, and
//! two products more. Sums run in a fixed order on any number of threads.

use super::training_space::{TrainingSpace, fetch};
use crate::data::{Corpus, RowId};
use crate::dataset::Dataset;
use crate::linalg::{RowBuf, Rows, accumulate_product, cross, mix};
use crate::random::Stream;
use crate::supervision::Relevance;
use crate::{Error, Result};
use faer::{Accum, Mat, MatRef};
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// What an item is to a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pair {
    Relevant,
    Irrelevant,
    /// The query itself.
    Itself,
}

/// A loss over the scores of one query with all items.
pub(crate) trait QueryLoss: Sync {
    /// Put the slope by each score in its place; gives the loss.
    fn judge(&self, pairs: &[Pair], scores: &mut [f32]) -> f64;
}

/// What a loss comes to over all pairs.
pub(crate) struct Judged {
    pub(crate) loss: f64,
    /// Sum of all slopes: that by a constant.
    pub(crate) total: f64,
    /// Slope by A.
    pub(crate) own: Mat<f64>,
    /// Slope by B.
    pub(crate) cross: Mat<f64>,
}

/// Queries and items in memory, about the training space's centre and scaled.
pub(crate) struct AllPairs<'a> {
    relevance: &'a dyn Relevance,
    /// Rows of the training space that were taken, of queries and of items.
    asking: Vec<RowId>,
    found: Vec<RowId>,
    queries: RowBuf,
    items: RowBuf,
    stop: Option<&'a AtomicBool>,
}

/// Queries whose scores with all items are held at once.
const BLOCK: usize = 256;
/// Queries that a task takes of them.
const TASK: usize = 16;

impl<'a> AllPairs<'a> {
    /// All rows, or `most` of each side, drawn, where there are more.
    pub(crate) fn new(
        data: &Dataset<'a>,
        relevance: &'a dyn Relevance,
        space: &TrainingSpace<'_>,
        inverse: f32,
        most: usize,
        seed: u64,
    ) -> Result<Self> {
        let sampled = |corpus: &dyn Corpus, purpose: &str| -> Result<(Vec<RowId>, RowBuf)> {
            let mut chosen = Stream::new(seed, purpose, 0).choose(corpus.len(), most);
            chosen.sort_unstable();
            let mut rows = RowBuf::zeros(chosen.len(), corpus.dim());
            let centre = space.centre();
            fetch(
                corpus,
                &chosen,
                centre.as_deref(),
                inverse,
                rows.values_mut(),
            )?;
            Ok((chosen, rows))
        };
        let (found, items) = sampled(space.items(), "items of all pairs")?;
        let (asking, queries) = if data.supervision().within() {
            (found.clone(), items.clone())
        } else {
            sampled(space.queries(), "queries of all pairs")?
        };
        Ok(AllPairs {
            relevance,
            asking,
            found,
            queries,
            items,
            stop: data.stop(),
        })
    }

    /// Numbers in a row.
    pub(crate) fn dim(&self) -> usize {
        self.items.dim()
    }

    /// Number of queries.
    pub(crate) fn queries(&self) -> usize {
        self.queries.len()
    }

    /// Relevant and irrelevant pairs.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let pairs: Vec<(u64, u64)> = (0..self.queries.len())
            .into_par_iter()
            .map(|query| {
                let pairs = self.pairs(query);
                let of = |kind| pairs.iter().filter(|pair| **pair == kind).count() as u64;
                (of(Pair::Relevant), of(Pair::Irrelevant))
            })
            .collect();
        pairs
            .iter()
            .fold((0, 0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1))
    }

    /// What every item is to a query.
    fn pairs(&self, query: usize) -> Vec<Pair> {
        let id = self.asking[query];
        let mut relevant = Vec::new();
        self.relevance.relevant(id, &mut relevant);
        let mut pairs = vec![Pair::Irrelevant; self.found.len()];
        for (item, _) in relevant {
            if let Ok(place) = self.found.binary_search(&item) {
                pairs[place] = Pair::Relevant;
            }
        }
        if self.relevance.within()
            && let Ok(place) = self.found.binary_search(&id)
        {
            pairs[place] = Pair::Itself;
        }
        pairs
    }

    /// A loss at the scores of A and B (both symmetric), with its slopes, until somebody asks to stop.
    pub(crate) fn judge(
        &self,
        own: MatRef<'_, f64>,
        between: MatRef<'_, f64>,
        loss: &dyn QueryLoss,
    ) -> Result<Judged> {
        let dim = self.dim();
        let of_queries = squares(self.queries.rows(), own);
        let of_items = squares(self.items.rows(), own);
        let crossed = times(self.queries.rows(), between);
        let mut judged = Judged {
            loss: 0.0,
            total: 0.0,
            own: Mat::zeros(dim, dim),
            cross: Mat::zeros(dim, dim),
        };
        let count = self.items.len();
        let mut by_item = vec![0.0_f64; count];
        let mut by_query = Vec::with_capacity(self.queries.len());
        let mut scores = Vec::new();
        for first in (0..self.queries.len()).step_by(BLOCK) {
            if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return Err(Error::Interrupted);
            }
            let end = (first + BLOCK).min(self.queries.len());
            scores.resize((end - first) * count, 0.0);
            let mut mixed = RowBuf::zeros(end - first, dim);
            let tasks: Vec<(f64, Vec<f64>)> = scores
                .par_chunks_mut(TASK * count)
                .zip(mixed.values_mut().par_chunks_mut(TASK * dim))
                .enumerate()
                .map(|(task, (scores, mixed))| {
                    let first = first + task * TASK;
                    let end = first + scores.len() / count;
                    cross(
                        crossed.rows().slice(first, end),
                        self.items.rows(),
                        1.0,
                        scores,
                    );
                    let (mut total, mut sums) = (0.0, Vec::new());
                    for (row, query) in scores.chunks_exact_mut(count).zip(first..end) {
                        let own = of_queries[query];
                        for (score, item) in row.iter_mut().zip(&of_items) {
                            *score += own + item;
                        }
                        total += loss.judge(&self.pairs(query), row);
                        sums.push(row.iter().map(|slope| f64::from(*slope)).sum());
                    }
                    let slopes = MatRef::from_row_major_slice(&*scores, end - first, count);
                    mix(slopes, self.items.rows(), 1.0, Accum::Replace, mixed);
                    (total, sums)
                })
                .collect();
            for (total, sums) in tasks {
                judged.loss += total;
                by_query.extend(sums);
            }
            for row in scores.chunks_exact(count) {
                for (sum, slope) in by_item.iter_mut().zip(row) {
                    *sum += f64::from(*slope);
                }
            }
            let queries = wide(self.queries.rows().slice(first, end));
            accumulate_product(
                queries.as_ref(),
                wide(mixed.rows()).as_ref(),
                judged.cross.as_mut(),
            );
        }
        judged.total = by_query.iter().sum();
        weighted(self.queries.rows(), &by_query, &mut judged.own);
        weighted(self.items.rows(), &by_item, &mut judged.own);
        Ok(judged)
    }
}

/// xᵀAx of every row.
fn squares(rows: Rows<'_>, matrix: MatRef<'_, f64>) -> Vec<f32> {
    let mapped = times(rows, matrix);
    (rows.iter().zip(mapped.rows().iter()))
        .map(|(a, b)| {
            let products = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b));
            products.sum::<f64>() as f32
        })
        .collect()
}

/// Every row times a symmetric matrix.
fn times(rows: Rows<'_>, matrix: MatRef<'_, f64>) -> RowBuf {
    let dim = rows.dim();
    let narrow = RowBuf::from_values(
        (0..dim * dim)
            .map(|at| matrix[(at / dim, at % dim)] as f32)
            .collect(),
        dim,
    );
    let mut out = RowBuf::zeros(rows.len(), dim);
    if let Ok(narrow) = narrow {
        out.values_mut()
            .par_chunks_mut(BLOCK * dim)
            .enumerate()
            .for_each(|(block, out)| {
                let first = block * BLOCK;
                let some = rows.slice(first, first + out.len() / dim);
                cross(some, narrow.rows(), 1.0, out);
            });
    }
    out
}

/// Add Σ weight · x xᵀ to `sum`.
fn weighted(rows: Rows<'_>, weights: &[f64], sum: &mut Mat<f64>) {
    for first in (0..rows.len()).step_by(4 * BLOCK) {
        let end = (first + 4 * BLOCK).min(rows.len());
        let some = wide(rows.slice(first, end));
        let scaled = Mat::from_fn(end - first, rows.dim(), |row, column| {
            weights[first + row] * some[(row, column)]
        });
        accumulate_product(some.as_ref(), scaled.as_ref(), sum.as_mut());
    }
}

fn wide(rows: Rows<'_>) -> Mat<f64> {
    Mat::from_fn(rows.len(), rows.dim(), |row, column| {
        f64::from(rows.row(row)[column])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Subset;
    use crate::data::synthetic::Nuisance;
    use crate::supervision::{Judgement, Judgements, Labels, Supervision};

    /// Σ over pairs of ½ y s², with y = 1 or −2: any smooth function of the scores will do.
    struct Squares;

    impl QueryLoss for Squares {
        fn judge(&self, pairs: &[Pair], scores: &mut [f32]) -> f64 {
            let mut loss = 0.0;
            for (pair, score) in pairs.iter().zip(scores) {
                let weight = match pair {
                    Pair::Relevant => 1.0,
                    Pair::Irrelevant => -2.0,
                    Pair::Itself => 0.0,
                };
                loss += 0.5 * weight * f64::from(*score).powi(2);
                *score *= weight as f32;
            }
            loss
        }
    }

    fn symmetric(dim: usize, seed: u64) -> Mat<f64> {
        let mut stream = Stream::new(seed, "test", 0);
        let some = Mat::from_fn(dim, dim, |_, _| 0.2 * stream.normal());
        &some + some.transpose()
    }

    fn assert_slopes(all: &AllPairs<'_>) {
        let dim = all.dim();
        let (own, between) = (symmetric(dim, 1), symmetric(dim, 2));
        let found = all.judge(own.as_ref(), between.as_ref(), &Squares).unwrap();
        let value = |own: &Mat<f64>, between: &Mat<f64>| {
            // By the definition, pair by pair, in f64.
            let (queries, items) = (wide(all.queries.rows()), wide(all.items.rows()));
            let mut sum = 0.0;
            for q in 0..queries.nrows() {
                let pairs = all.pairs(q);
                for (x, pair) in pairs.iter().enumerate() {
                    let weight = match pair {
                        Pair::Relevant => 1.0,
                        Pair::Irrelevant => -2.0,
                        Pair::Itself => 0.0,
                    };
                    let (q, x) = (queries.row(q), items.row(x));
                    let score = q * own * q.transpose()
                        + x * own * x.transpose()
                        + q * between * x.transpose();
                    sum += 0.5 * weight * score * score;
                }
            }
            sum
        };
        let expected = value(&own, &between);
        assert!(
            (found.loss / expected - 1.0).abs() < 1e-4,
            "{} {expected}",
            found.loss
        );
        for (i, j) in [(0, 0), (1, 3), (4, 2)] {
            let step = 1e-5;
            let moved = |matrix: &Mat<f64>, by: f64| {
                let mut moved = matrix.clone();
                moved[(i, j)] += by;
                moved
            };
            let slope = |high: f64, low: f64| (high - low) / (2.0 * step);
            let by_own = slope(
                value(&moved(&own, step), &between),
                value(&moved(&own, -step), &between),
            );
            let by_cross = slope(
                value(&own, &moved(&between, step)),
                value(&own, &moved(&between, -step)),
            );
            for (found, expected) in [(found.own[(i, j)], by_own), (found.cross[(i, j)], by_cross)]
            {
                assert!(
                    (found - expected).abs() < 2e-3 * expected.abs().max(100.0),
                    "{found} {expected}"
                );
            }
        }
    }

    #[test]
    fn slopes_are_those_of_the_definition_within_one_corpus_and_between_two() {
        let set = Nuisance {
            classes: 4,
            signal: 2,
            noise: 3,
            seed: 3,
        }
        .rows(60);
        let labels = Supervision::labels(Labels::from_numbers(&set.classes).unwrap());
        let data = Dataset::new(&set.corpus, &labels).unwrap();
        let space = TrainingSpace::new(&data).unwrap();
        let relevance = data.relevance("test").unwrap();
        let all = AllPairs::new(&data, relevance, &space, 0.7, 1000, 1).unwrap();
        assert_eq!(all.counts(), (60 * 14, 60 * 45));
        assert_slopes(&all);
        let part = AllPairs::new(&data, relevance, &space, 0.7, 40, 1).unwrap();
        assert_eq!(part.queries(), 40);
        assert_slopes(&part);
        let (queries, items) = (
            Subset::new(&set.corpus, (0..17).collect()).unwrap(),
            Subset::new(&set.corpus, (17..60).collect()).unwrap(),
        );
        let lines: Vec<Judgement> = (0..17)
            .map(|query| Judgement {
                query,
                item: query * 2 + 3,
                grade: 1.0,
            })
            .collect();
        let judged = Supervision::judgements(Judgements::new(17, 43, &lines).unwrap());
        let data = Dataset::between(&queries, &items, &judged).unwrap();
        let space = TrainingSpace::new(&data).unwrap();
        let relevance = data.relevance("test").unwrap();
        let all = AllPairs::new(&data, relevance, &space, 0.7, 1000, 1).unwrap();
        assert_eq!(all.counts(), (17, 17 * 42));
        assert_slopes(&all);
    }
}
