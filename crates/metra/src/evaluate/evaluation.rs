//! The evaluation of a ranking: its options, and the value of every measure for every query.

use super::counts::{Counting, QUERIES};
use super::measure::{GradeGain, Measure};
use super::measure_values::PlaceCounts;
use super::significance::{Bootstrap, Comparison, paired_bootstrap};
use super::truth::Truth;
use crate::data::{Corpus, RowId};
use crate::model::Space;
use crate::search::scores::{Items, check_dimensions};
use crate::{Error, Result};
use rayon::prelude::*;

/// What happens to items of equal score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ties {
    /// Measures are expected values over all orders of tied items.
    #[default]
    Expected,
    /// The order of trec_eval: a given rank decides (document id descending, as text).
    Trec,
}

/// What happens to queries that have nothing relevant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Empty {
    /// They are left out and counted.
    #[default]
    Skip,
    /// They count with 0 in every measure.
    Zero,
}

/// What to evaluate.
#[derive(Debug, Clone)]
pub struct EvaluationOptions<'a> {
    /// The measures.
    pub measures: Vec<Measure>,
    /// What happens to ties.
    pub ties: Ties,
    /// For [`Ties::Trec`]: the place of each item among all items when they tie, smaller first.
    pub tie_rank: Option<&'a [u32]>,
    /// GradeGain of nDCG.
    pub gain: GradeGain,
    /// What happens to queries without a relevant item.
    pub empty: Empty,
    /// Ranks of the CMC curve.
    pub curve: usize,
}

impl Default for EvaluationOptions<'_> {
    fn default() -> Self {
        EvaluationOptions {
            measures: Measure::DEFAULT.to_vec(),
            ties: Ties::default(),
            tie_rank: None,
            gain: GradeGain::default(),
            empty: Empty::default(),
            curve: 50,
        }
    }
}

/// The outcome for every query that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// Numbers of the queries, increasing.
    pub queries: Vec<u32>,
    /// The cluster of each of them.
    pub clusters: Vec<u64>,
    /// Values of each measure, one a query.
    pub values: Vec<(Measure, Vec<f64>)>,
    /// Queries left out because nothing is relevant to them.
    pub skipped: u64,
    /// Share of queries whose first relevant item has rank 1, at most 2, … (the CMC curve).
    pub curve: Vec<f64>,
    /// Mean precision at recall 0, 0.05, … 1.
    pub precision: Vec<f64>,
}

/// Recall levels of [`Evaluation::precision`].
pub(crate) const RECALL_LEVELS: usize = 21;

impl Evaluation {
    /// Values of a measure, one a query, if it was asked for.
    pub fn of(&self, measure: Measure) -> Option<&[f64]> {
        let found = self.values.iter().find(|(known, _)| *known == measure);
        found.map(|(_, values)| values.as_slice())
    }

    /// Mean of a measure over the queries, if it was asked for and there is a query.
    pub fn mean(&self, measure: Measure) -> Option<f64> {
        let values = self.of(measure).filter(|values| !values.is_empty())?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    }

    /// How much better `learned` is than this, with an interval. Both must have judged the same
    /// queries.
    pub fn compare(
        &self,
        learned: &Evaluation,
        measure: Measure,
        bootstrap: &Bootstrap,
    ) -> Result<Comparison> {
        let missing = || Error::Data(format!("{measure} was not evaluated for both systems"));
        let (base, other) = (
            self.of(measure).ok_or_else(missing)?,
            learned.of(measure).ok_or_else(missing)?,
        );
        if self.queries != learned.queries {
            return Err(Error::Data(format!(
                "a paired comparison needs the same queries, but one system has {} and the other \
                 {} (or other ones)",
                self.queries.len(),
                learned.queries.len()
            )));
        }
        paired_bootstrap(base, other, &self.clusters, bootstrap)
    }
}

/// Rank all items for every query and measure the ranking against the truth.
///
/// Exact, in one pass of matrix products: no matrix of all scores and no full sort. Memory beside
/// the result is some megabytes a thread. Results do not depend on the number of threads.
pub fn evaluate(
    space: Space,
    queries: &dyn Corpus,
    items: &dyn Corpus,
    truth: &dyn Truth,
    options: &EvaluationOptions<'_>,
) -> Result<Evaluation> {
    let tie_rank = check(queries, items, truth, options)?;
    let prepared = Items::prepare(space, items)?;
    // Queries of one cluster share relevant items, whose approximate scores are then one product.
    let mut order: Vec<u32> = (0..queries.len() as u32).collect();
    order.sort_by_cached_key(|query| truth.cluster(*query as usize));
    let blocks: Vec<Result<Tally>> = order
        .par_chunks(QUERIES)
        .map_init(
            || Counting::new(&prepared, tie_rank),
            |counting, block| {
                let mut tally = Tally::new(options);
                let rows = block.iter().map(|query| RowId::from(*query)).collect();
                let block = prepared.queries(queries, rows)?;
                counting.count(&block, truth, &mut |query, counts| {
                    tally.add(query, truth.cluster(query as usize), counts, options);
                })?;
                Ok(tally)
            },
        )
        .collect();
    let mut all = Tally::new(options);
    for block in blocks {
        all.append(block?);
    }
    Ok(all.finish(options))
}

/// An error where queries, items, truth and options do not fit together; the order of ties, where
/// one is asked for.
pub(super) fn check<'a>(
    queries: &dyn Corpus,
    items: &dyn Corpus,
    truth: &dyn Truth,
    options: &EvaluationOptions<'a>,
) -> Result<Option<&'a [u32]>> {
    check_dimensions(queries, items)?;
    Measure::check_ranked(&options.measures)?;
    for (what, corpus, expected) in [
        ("queries", queries, truth.queries() as u64),
        ("items", items, truth.items()),
    ] {
        if corpus.len() != expected {
            return Err(Error::shape(
                format!("{what} that the truth speaks of"),
                corpus.len(),
                expected,
            ));
        }
    }
    if u32::try_from(queries.len()).is_err() {
        return Err(Error::shape("queries", "fewer than 2^32", queries.len()));
    }
    match (options.ties, options.tie_rank) {
        (Ties::Expected, _) => Ok(None),
        (Ties::Trec, Some(ranks)) if ranks.len() as u64 == items.len() => Ok(Some(ranks)),
        (Ties::Trec, ranks) => Err(Error::shape(
            "tie ranks of the items (needed by the trec order)",
            items.len(),
            ranks.map_or(0, <[u32]>::len),
        )),
    }
}

/// Values of some queries, in the order they were counted.
pub(super) struct Tally {
    queries: Vec<u32>,
    clusters: Vec<u64>,
    /// Values query by query, one a measure.
    values: Vec<f64>,
    skipped: u64,
    curve: Vec<f64>,
    precision: [f64; RECALL_LEVELS],
}

impl Tally {
    pub(super) fn new(options: &EvaluationOptions<'_>) -> Self {
        Tally {
            queries: Vec::new(),
            clusters: Vec::new(),
            values: Vec::new(),
            skipped: 0,
            curve: vec![0.0; options.curve],
            precision: [0.0; RECALL_LEVELS],
        }
    }

    pub(super) fn add(
        &mut self,
        query: u32,
        cluster: u64,
        counts: &PlaceCounts,
        options: &EvaluationOptions<'_>,
    ) {
        if counts.relevant() == 0 {
            if options.empty == Empty::Skip {
                self.skipped += 1;
                return;
            }
            let zeros = std::iter::repeat_n(0.0, options.measures.len());
            self.values.extend(zeros);
        } else {
            counts.values(&options.measures, options.gain, &mut self.values);
            counts.add_first_rank(&mut self.curve);
            counts.add_precision(&mut self.precision);
        }
        self.queries.push(query);
        self.clusters.push(cluster);
    }

    pub(super) fn append(&mut self, other: Tally) {
        self.queries.extend(other.queries);
        self.clusters.extend(other.clusters);
        self.values.extend(other.values);
        self.skipped += other.skipped;
        for (sum, part) in self.curve.iter_mut().zip(other.curve) {
            *sum += part;
        }
        for (sum, part) in self.precision.iter_mut().zip(other.precision) {
            *sum += part;
        }
    }

    pub(super) fn finish(self, options: &EvaluationOptions<'_>) -> Evaluation {
        let mut order: Vec<usize> = (0..self.queries.len()).collect();
        order.sort_unstable_by_key(|place| self.queries[*place]);
        let width = options.measures.len();
        let values = options
            .measures
            .iter()
            .enumerate()
            .map(|(column, measure)| {
                let values = order
                    .iter()
                    .map(|place| self.values[place * width + column]);
                (*measure, values.collect())
            })
            .collect();
        let count = self.queries.len().max(1) as f64;
        let mut sum = 0.0;
        let curve = self.curve.iter().map(|share| {
            sum += share;
            sum / count
        });
        Evaluation {
            queries: order.iter().map(|place| self.queries[*place]).collect(),
            clusters: order.iter().map(|place| self.clusters[*place]).collect(),
            values,
            skipped: self.skipped,
            curve: curve.collect(),
            precision: self.precision.iter().map(|sum| sum / count).collect(),
        }
    }
}

#[cfg(test)]
#[path = "evaluation_tests.rs"]
mod tests;
