//! Agreement of a metric with pairs, triplets and quadruplets: the share ordered correctly, and the
//! AUC for pairs.
//!
//! Only the pairs that were named are measured, in blocks: cost grows with the number of
//! comparisons and never with the square of the rows. Blocks are filled up to one size, so that
//! equal rows are mapped to equal vectors wherever they stand and ties are ties.
//!
//! Comparisons that start from one row rise and fall together, so the interval of their share
//! resamples such rows. The area under the curve is no mean over pairs; its interval is that of
//! DeLong, DeLong & Clarke-Pearson (Biometrics 1988), paired where two metrics are compared.

use super::significance::{Bootstrap, Comparison, paired_bootstrap, within_rates};
use crate::data::{Batch, Corpus, Groups, RowId};
use crate::linalg::{BLOCK_ROWS, RowBuf};
use crate::model::{Chain, Embedding, Space};
use crate::supervision::Quadruplet;
use crate::{Error, Result};
use rayon::prelude::*;

/// Half the width of a 95 % interval of the normal distribution, in deviations.
pub(super) const NORMAL_95: f64 = 1.959_963_984_540_054;

/// Which of some comparisons a metric orders as they say.
#[derive(Debug, Clone, PartialEq)]
pub struct Agreement {
    values: Vec<f64>,
    /// The row that each comparison starts from.
    clusters: Vec<u64>,
}

/// Measure how a metric orders the pairs of quadruplets. A tie counts half, also for a light
/// quadruplet: a metric that takes everything for the same agrees with nobody.
pub fn agreement(
    metric: &Chain,
    corpus: &dyn Corpus,
    groups: Option<&Groups>,
    quadruplets: &[Quadruplet],
) -> Result<Agreement> {
    if quadruplets.is_empty() {
        return Err(Error::Data("there is no comparison to judge by".into()));
    }
    let pairs: Vec<[RowId; 2]> = quadruplets.iter().flat_map(|q| [q.near, q.far]).collect();
    let scores = dissimilarities(metric, corpus, groups, &pairs)?;
    let right = |pair: &[f64]| match (pair[0] < pair[1], pair[0] == pair[1]) {
        (true, _) => 1.0,
        (_, true) => 0.5,
        _ => 0.0,
    };
    Ok(Agreement {
        values: scores.chunks_exact(2).map(right).collect(),
        clusters: quadruplets.iter().map(|q| q.near[0]).collect(),
    })
}

impl Agreement {
    /// 1 for each comparison that is ordered right, ½ for a tie, 0 otherwise.
    #[cfg(test)]
    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    /// Share of comparisons ordered right.
    pub fn share(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len().max(1) as f64
    }

    /// Interval of the share.
    pub fn interval(&self, bootstrap: &Bootstrap) -> Result<(f64, f64)> {
        let nothing = vec![0.0; self.values.len()];
        let found = paired_bootstrap(&nothing, &self.values, &self.clusters, bootstrap)?;
        Ok(within_rates((found.low, found.high)))
    }

    /// How much more than `base` this agrees with the same comparisons.
    pub fn against(&self, base: &Agreement, bootstrap: &Bootstrap) -> Result<Comparison> {
        paired_bootstrap(&base.values, &self.values, &self.clusters, bootstrap)
    }
}

/// How well a metric tells similar pairs from dissimilar ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Separation {
    /// For each similar pair the share of dissimilar pairs that are farther, ties half.
    similar: Vec<f64>,
    /// For each dissimilar pair the share of similar pairs that are nearer, ties half.
    dissimilar: Vec<f64>,
}

/// Measure how a metric separates similar from dissimilar pairs. Both must be there.
pub fn separation(
    metric: &Chain,
    corpus: &dyn Corpus,
    groups: Option<&Groups>,
    similar: &[[RowId; 2]],
    dissimilar: &[[RowId; 2]],
) -> Result<Separation> {
    if similar.is_empty() || dissimilar.is_empty() {
        return Err(Error::Data(format!(
            "judging by pairs needs similar and dissimilar ones, but there are {} and {}",
            similar.len(),
            dissimilar.len()
        )));
    }
    let near = dissimilarities(metric, corpus, groups, similar)?;
    let far = dissimilarities(metric, corpus, groups, dissimilar)?;
    Ok(Separation {
        dissimilar: shares_below(&far, &near),
        similar: (shares_below(&near, &far).into_iter())
            .map(|below| 1.0 - below)
            .collect(),
    })
}

impl Separation {
    /// Number of pairs.
    pub fn pairs(&self) -> usize {
        self.similar.len() + self.dissimilar.len()
    }

    /// Probability that a similar pair is nearer than a dissimilar one: the area under the curve.
    pub fn auc(&self) -> f64 {
        mean(&self.similar)
    }

    /// 95 % interval of the area.
    pub fn interval(&self) -> (f64, f64) {
        let width = NORMAL_95 * deviation(&self.similar, &self.dissimilar);
        let auc = self.auc();
        ((auc - width).max(0.0), (auc + width).min(1.0))
    }

    /// How much larger the area is than that of `base` for the same pairs.
    pub fn against(&self, base: &Separation) -> Result<Comparison> {
        for (what, own, other) in [
            ("similar pairs", &self.similar, &base.similar),
            ("dissimilar pairs", &self.dissimilar, &base.dissimilar),
        ] {
            if own.len() != other.len() {
                return Err(Error::shape(what, own.len(), other.len()));
            }
        }
        let gains = |own: &[f64], base: &[f64]| -> Vec<f64> {
            own.iter().zip(base).map(|(own, base)| own - base).collect()
        };
        let similar = gains(&self.similar, &base.similar);
        let dissimilar = gains(&self.dissimilar, &base.dissimilar);
        let width = NORMAL_95 * deviation(&similar, &dissimilar);
        let difference = mean(&similar);
        Ok(Comparison {
            base: base.auc(),
            learned: self.auc(),
            difference,
            low: difference - width,
            high: difference + width,
            queries: self.pairs(),
            clusters: self.pairs(),
        })
    }
}

/// Dissimilarity of each pair of rows; the first row is the query, the second the item.
pub fn dissimilarities(
    metric: &Chain,
    corpus: &dyn Corpus,
    groups: Option<&Groups>,
    pairs: &[[RowId; 2]],
) -> Result<Vec<f64>> {
    dissimilarities_between(metric, (corpus, groups), (corpus, groups), pairs)
}

/// Rows with the group of each, where groups are known.
pub type GroupedRows<'a> = (&'a dyn Corpus, Option<&'a Groups>);

/// Dissimilarity of pairs of a query and an item.
pub fn dissimilarities_between(
    metric: &Chain,
    queries: GroupedRows<'_>,
    items: GroupedRows<'_>,
    pairs: &[[RowId; 2]],
) -> Result<Vec<f64>> {
    for (corpus, groups) in [queries, items] {
        if let Some(groups) = groups
            && groups.len() as u64 != corpus.len()
        {
            let expected = corpus.len();
            return Err(Error::shape("groups of the rows", expected, groups.len()));
        }
    }
    let blocks: Vec<Result<Vec<f64>>> = pairs
        .par_chunks(BLOCK_ROWS)
        .map(|pairs| embedded(metric, (queries, items), pairs))
        .collect();
    let mut all = Vec::with_capacity(pairs.len());
    for block in blocks {
        all.extend(block?);
    }
    Ok(all)
}

/// One row of each pair, filled up to a whole block with the last one.
struct Side {
    rows: RowBuf,
    groups: Option<Vec<u32>>,
}

impl Side {
    fn gather(
        (corpus, groups): GroupedRows<'_>,
        rows: impl Iterator<Item = RowId>,
    ) -> Result<Self> {
        let mut ids: Vec<RowId> = rows.collect();
        ids.resize(BLOCK_ROWS, ids.last().copied().unwrap_or(0));
        let mut rows = RowBuf::empty(corpus.dim());
        corpus.gather(&ids, &mut rows)?;
        let groups = groups.map(|g| ids.iter().map(|row| g.of()[*row as usize]).collect());
        Ok(Side { rows, groups })
    }

    fn batch(&self) -> Batch<'_> {
        Batch {
            rows: self.rows.rows(),
            groups: self.groups.as_deref(),
        }
    }
}

fn embedded(
    metric: &Chain,
    corpora: (GroupedRows<'_>, GroupedRows<'_>),
    pairs: &[[RowId; 2]],
) -> Result<Vec<f64>> {
    let left = Side::gather(corpora.0, pairs.iter().map(|pair| pair[0]))?;
    let right = Side::gather(corpora.1, pairs.iter().map(|pair| pair[1]))?;
    let corpora = [corpora.0.0, corpora.1.0];
    let named = |which: usize| {
        // The rows that fill the block up repeat the last pair.
        move |place: u64| {
            let pair = pairs.get(place as usize).or(pairs.last());
            pair.map_or(place, |pair| corpora[which].origin(pair[which]))
        }
    };
    let (mut queries, mut items) = (RowBuf::empty(1), RowBuf::empty(1));
    (metric.embed_queries(0, &left.batch(), &mut queries)).map_err(|e| e.renumbered(named(0)))?;
    (metric.embed_items(0, &right.batch(), &mut items)).map_err(|e| e.renumbered(named(1)))?;
    (pairs.iter().enumerate())
        .map(|(place, pair)| {
            let (query, item) = (queries.row(place), items.row(place));
            let score = match metric.space() {
                Space::SquaredL2 => sum(query, item, |a, b| (a - b) * (a - b)),
                Space::InnerProduct => -sum(query, item, |a, b| a * b),
                Space::Cosine => {
                    let lengths = [query, item].map(|row| sum(row, row, |a, b| a * b).sqrt());
                    if let Some(which) = lengths.iter().position(|length| *length == 0.0) {
                        return Err(Error::Row {
                            row: corpora[which].origin(pair[which]),
                            problem:
                                "expected a vector of non-zero length to compare by cosine, but \
                                  all its values are 0 after the map"
                                    .into(),
                        });
                    }
                    -sum(query, item, |a, b| a * b) / (lengths[0] * lengths[1])
                }
                Space::Blocks { size } => {
                    let size = size.max(1) as usize;
                    let blocks = query.chunks(size).zip(item.chunks(size));
                    blocks
                        .map(|(q, x)| sum(q, x, |a, b| (a - b) * (a - b)).sqrt())
                        .sum()
                }
            };
            finite(score, pair)
        })
        .collect()
}

fn finite(score: f64, pair: &[RowId; 2]) -> Result<f64> {
    if score.is_finite() {
        return Ok(score);
    }
    Err(Error::Score {
        query: pair[0],
        item: pair[1],
        score: score as f32,
    })
}

fn sum(a: &[f32], b: &[f32], of: impl Fn(f64, f64) -> f64) -> f64 {
    let pairs = a.iter().zip(b);
    pairs.map(|(a, b)| of(f64::from(*a), f64::from(*b))).sum()
}

/// For each of `values` the share of `others` that lie below it, ties half.
fn shares_below(values: &[f64], others: &[f64]) -> Vec<f64> {
    let mut sorted = others.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    (values.iter())
        .map(|value| {
            let below = sorted.partition_point(|other| other < value);
            let not_above = sorted.partition_point(|other| other <= value);
            (below + not_above) as f64 / (2 * sorted.len()) as f64
        })
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Deviation of an area from the shares of both kinds of pairs (DeLong et al., eq. 3 to 5).
fn deviation(similar: &[f64], dissimilar: &[f64]) -> f64 {
    let variance = |values: &[f64]| {
        let mean = mean(values);
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        squares / (values.len().saturating_sub(1).max(1) * values.len()) as f64
    };
    (variance(similar) + variance(dissimilar)).sqrt()
}

#[cfg(test)]
#[path = "agreement_tests.rs"]
mod tests;
