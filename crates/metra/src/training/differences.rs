//! Second moments of the differences of relevant and of irrelevant pairs, which KISSME and XQDA
//! compare, and of any listed pairs.
//!
//! With labels they are exact over all pairs, though no pair is ever listed: the ordered pairs of a
//! class of n rows sum up to 2n times its spread about its mean, all ordered pairs to 2n² times the
//! covariance, and irrelevant pairs are what remains. Otherwise pairs are drawn.

use super::training_space::TrainingSpace;
use crate::data::{Corpus, Keys, RowId};
use crate::dataset::Dataset;
use crate::execute::{keyed_sums, moments, within_scatter};
use crate::linalg::{RowBuf, Symmetric, accumulate_outer};
use crate::random::Stream;
use crate::supervision::{Labels, Relevance, Supervision, derive};
use crate::{Error, Result};
use faer::Mat;

/// Differences gathered at once.
const BLOCK_PAIRS: usize = 1024;

/// Mean of (x − y)(x − y)ᵀ over pairs, not about their mean difference: a pair and the same pair the
/// other way round are one.
pub(crate) struct Differences {
    pub(crate) relevant: Symmetric,
    pub(crate) irrelevant: Symmetric,
}

impl Differences {
    /// In the training space's coordinates, of relevance that has pairs of both kinds: exact for labels; otherwise
    /// over at most `pairs` of each kind, all relevant pairs where there are no more and dissimilar pairs as
    /// given where some are.
    pub(crate) fn new(
        learner: &str,
        data: &Dataset<'_>,
        space: &TrainingSpace<'_>,
        pairs: usize,
        seed: u64,
    ) -> Result<Self> {
        let relevance = data.relevance(learner)?;
        let found = match data.supervision().as_labels() {
            Some(labels) => Self::exact(space.items(), labels)?,
            None => Self::drawn(data.supervision(), relevance, space, pairs, seed)?,
        };
        if found.relevant.trace() <= 0.0 && found.irrelevant.trace() <= 0.0 {
            return Err(Error::Data(
                "all vectors are equal: nothing can be learned".into(),
            ));
        }
        Ok(found)
    }

    fn exact(corpus: &dyn Corpus, labels: &Labels) -> Result<Self> {
        let sums = keyed_sums(corpus, Keys::Class(labels.of()), labels.classes())?;
        let sizes: Vec<f64> = sums.counts.iter().map(|count| *count as f64).collect();
        let within = within_scatter(corpus, Keys::Class(labels.of()), &sums, &sizes)?;
        let total = moments(corpus)?.covariance;
        let rows = corpus.len() as f64;
        let relevant_pairs = labels.pairs() as f64;
        let irrelevant_pairs = rows * rows - sizes.iter().map(|size| size * size).sum::<f64>();
        let (within, total) = (within.entries(), total.entries());
        let combined = |of_total: f64, of_within: f64| {
            Symmetric::new(Mat::from_fn(within.nrows(), within.ncols(), |i, j| {
                of_total * total[(i, j)] + of_within * within[(i, j)]
            }))
        };
        Ok(Differences {
            relevant: combined(0.0, 2.0 / relevant_pairs)?,
            irrelevant: combined(
                2.0 * rows * rows / irrelevant_pairs,
                -2.0 / irrelevant_pairs,
            )?,
        })
    }

    fn drawn(
        supervision: &Supervision,
        relevance: &dyn Relevance,
        space: &TrainingSpace<'_>,
        pairs: usize,
        seed: u64,
    ) -> Result<Self> {
        let near = relevant_pairs(relevance, pairs, seed);
        let far = irrelevant_pairs(supervision, relevance, pairs, seed);
        Ok(Differences {
            relevant: pair_spread(space.queries(), space.items(), &near)?,
            irrelevant: pair_spread(space.queries(), space.items(), &far)?,
        })
    }

    /// The error of a learner that found no direction in which irrelevant pairs are farther apart.
    pub(crate) fn nothing_separates() -> Error {
        Error::Data(
            "irrelevant pairs are in no direction farther apart than relevant ones: nothing can be \
             learned"
                .into(),
        )
    }
}

/// Pairs of rows: a query and an item.
pub(crate) type Pairs = Vec<(RowId, RowId)>;

/// Relevant pairs: all of them, or as many drawn ones where there are more than `most`. Two rows of one corpus
/// that are relevant to each other are one pair.
pub(crate) fn relevant_pairs(relevance: &dyn Relevance, most: usize, seed: u64) -> Pairs {
    let known = relevance.pairs();
    if known <= 2 * most as u64 {
        let is_first = |(a, b): &(RowId, RowId)| {
            !relevance.within() || a < b || !relevance.is_relevant(*b, *a)
        };
        let all = (0..known).map(|number| relevance.pair(number));
        let once: Pairs = all.filter(is_first).collect();
        if once.len() <= most {
            return once;
        }
    }
    let mut random = Stream::new(seed, "relevant pairs", 0);
    (0..most)
        .map(|_| relevance.pair(random.below(known)))
        .collect()
}

/// Irrelevant pairs: dissimilar ones where some were listed, otherwise so many drawn ones.
pub(crate) fn irrelevant_pairs(
    supervision: &Supervision,
    relevance: &dyn Relevance,
    count: usize,
    seed: u64,
) -> Pairs {
    if let Supervision::Comparisons(comparisons) = supervision
        && !comparisons.dissimilar().is_empty()
    {
        let listed = comparisons.dissimilar().iter();
        return listed.map(|[a, b]| (*a, *b)).collect();
    }
    let mut random = Stream::new(seed, "irrelevant pairs", 0);
    (0..count)
        .map_while(|_| derive::triplet(relevance, &mut random))
        .map(|[query, _, far]| (query, far))
        .collect()
}

/// Mean of (x − y)(x − y)ᵀ over pairs of a query x and an item y.
pub(crate) fn pair_spread(
    queries: &dyn Corpus,
    items: &dyn Corpus,
    pairs: &[(RowId, RowId)],
) -> Result<Symmetric> {
    let dim = items.dim();
    let mut sum = Symmetric::zeros(dim);
    let (mut left, mut right) = (RowBuf::empty(dim), RowBuf::empty(dim));
    let factor = 1.0 / (pairs.len().max(1) as f64).sqrt();
    for block in pairs.chunks(BLOCK_PAIRS) {
        let (asking, found): (Vec<RowId>, Vec<RowId>) = block.iter().copied().unzip();
        queries.gather(&asking, &mut left)?;
        items.gather(&found, &mut right)?;
        let differences = Mat::from_fn(block.len(), dim, |pair, column| {
            factor * (f64::from(left.row(pair)[column]) - f64::from(right.row(pair)[column]))
        });
        accumulate_outer(differences.as_ref(), sum.entries_mut().as_mut());
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::synthetic::Nuisance;

    const SET: Nuisance = Nuisance {
        classes: 4,
        signal: 2,
        noise: 3,
        seed: 5,
    };

    fn assert_close(one: &Symmetric, other: &Symmetric, tolerance: f64) {
        for i in 0..one.dim() {
            for j in 0..one.dim() {
                let (a, b) = (one.entries()[(i, j)], other.entries()[(i, j)]);
                assert!((a - b).abs() < tolerance, "({i}, {j}): {a} {b}");
            }
        }
    }

    #[test]
    fn sums_over_classes_equal_the_mean_over_listed_pairs() {
        // Classes of different sizes, one of them a single row.
        let set = SET.rows(30);
        let classes: Vec<i64> = (0..30_i64)
            .map(|row| (row * row) % 7 + row / 29 * 9)
            .collect();
        let labels = Labels::from_numbers(&classes).unwrap();
        assert_eq!(labels.singletons(), 1);
        let (mut near, mut far) = (Vec::new(), Vec::new());
        for i in 0..30 {
            for j in 0..30 {
                if i != j && classes[i] == classes[j] {
                    near.push((i as RowId, j as RowId));
                } else if i != j {
                    far.push((i as RowId, j as RowId));
                }
            }
        }
        let found = Differences::exact(&set.corpus, &labels).unwrap();
        let listed = |pairs| pair_spread(&set.corpus, &set.corpus, pairs).unwrap();
        assert_close(&found.relevant, &listed(&near), 1e-10);
        assert_close(&found.irrelevant, &listed(&far), 1e-10);
    }

    #[test]
    fn a_pair_counts_once() {
        let listed = |similar: &[[RowId; 2]], dissimilar: &[[RowId; 2]]| {
            let comparisons = crate::supervision::Comparisons::new(9);
            Supervision::Comparisons(comparisons.with_pairs(similar, dissimilar).unwrap())
        };
        let pairs = |supervision: &Supervision, most| {
            let relevance = supervision.relevance().unwrap();
            (
                relevant_pairs(relevance, most, 1),
                irrelevant_pairs(supervision, relevance, most, 1),
            )
        };
        let once = listed(&[[0, 1], [3, 2]], &[[5, 4], [0, 6]]);
        let expected = (vec![(0, 1), (2, 3)], vec![(0, 6), (4, 5)]);
        assert_eq!(pairs(&once, 2), expected);
        // Whichever row comes first, and however often it is said.
        let more = [[1, 0], [2, 3], [3, 2], [0, 1], [0, 1]];
        assert_eq!(
            pairs(&listed(&more, &[[6, 0], [4, 5], [5, 4]]), 2),
            expected
        );
        assert_eq!(pairs(&once, 1).0.len(), 1);

        let line = |query, item| crate::supervision::Judgement {
            query,
            item,
            grade: 1.0,
        };
        let lines = [line(0, 1), line(1, 0), line(3, 2)];
        let judged = crate::supervision::Judgements::within_one(5, &lines).unwrap();
        assert_eq!(relevant_pairs(&judged, 9, 1), [(0, 1), (3, 2)]);

        let labels = Supervision::labels(Labels::from_numbers(&[7, 8, 7, 7, 8]).unwrap());
        let (near, far) = pairs(&labels, 4);
        assert_eq!(near, [(0, 2), (0, 3), (2, 3), (1, 4)]);
        assert_eq!(far.len(), 4);
    }

    #[test]
    fn a_pair_by_hand() {
        // (1, 2) − (4, 0) = (−3, 2): 9, −6, 4. (1, 2) − (1, 4) = (0, −2): 0, 0, 4. Their mean:
        let rows = RowBuf::from_values(vec![1.0, 2.0, 4.0, 0.0, 1.0, 4.0], 2).unwrap();
        let corpus = crate::data::MemoryCorpus::new(rows).unwrap();
        let found = pair_spread(&corpus, &corpus, &[(0, 1), (0, 2)]).unwrap();
        let entries = [(0, 0), (0, 1), (1, 1)].map(|at| found.entries()[at]);
        for (found, expected) in entries.iter().zip([4.5, -3.0, 4.0]) {
            assert!((found - expected).abs() < 1e-12);
        }
    }
}
