//! Several rankings of one query added up to one: scores are brought to a scale, weighted and summed (a convex
//! combination, up to a factor), or their ranks are (reciprocal-rank fusion: Cormack, Clarke & Büttcher, SIGIR 2009).
//!
//! A list that does not have an item says that the item comes after all that it has: it counts as much as the list's
//! last item, and by ranks nothing. A list that has nothing for a query says nothing about it.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// An item of a ranked list with its score: larger is better, as in a TREC run.
pub type ScoredItem = (u32, f64);

/// What scores of a list become before they are weighted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScoreScale {
    /// As they are: 12 is twice 6, for every query alike.
    Raw,
    /// From 0 for the last item of the query's list to 1 for its first.
    MinMax,
    /// In standard deviations from the mean of the query's list.
    ZScore,
    /// 1 / (60 + rank), whatever the scores are.
    ReciprocalRank,
}

/// What is added to a rank: the constant of the paper.
const RANK_OFFSET: f64 = 60.0;

impl ScoreScale {
    /// All of them.
    pub const ALL: [ScoreScale; 4] = [
        ScoreScale::Raw,
        ScoreScale::MinMax,
        ScoreScale::ZScore,
        ScoreScale::ReciprocalRank,
    ];

    /// A list's scores on this scale, and what counts for items that it does not have.
    fn scaled(self, list: &[ScoredItem]) -> (Vec<f64>, f64) {
        let lowest = list.iter().map(|item| item.1).fold(f64::INFINITY, f64::min);
        if list.is_empty() {
            return (Vec::new(), 0.0);
        }
        let map = |change: &dyn Fn(f64) -> f64| {
            let scores = list.iter().map(|item| change(item.1)).collect();
            (scores, change(lowest))
        };
        match self {
            ScoreScale::Raw => map(&|score| score),
            ScoreScale::MinMax => {
                let highest = list.iter().map(|item| item.1).fold(lowest, f64::max);
                match highest - lowest {
                    // Equal scores say only what is in the list.
                    0.0 => (vec![1.0; list.len()], 0.0),
                    range => map(&|score| (score - lowest) / range),
                }
            }
            ScoreScale::ZScore => {
                let count = list.len() as f64;
                let mean = list.iter().map(|item| item.1).sum::<f64>() / count;
                let squares: f64 = list.iter().map(|item| (item.1 - mean).powi(2)).sum();
                match (squares / count).sqrt() {
                    0.0 => (vec![0.0; list.len()], 0.0),
                    deviation => map(&|score| (score - mean) / deviation),
                }
            }
            ScoreScale::ReciprocalRank => {
                let mut order: Vec<usize> = (0..list.len()).collect();
                order.sort_by(|a, b| list[*b].1.total_cmp(&list[*a].1));
                let mut scores = vec![0.0; list.len()];
                let mut rank = 0;
                // Items of equal scores share the mean of their ranks: no order of a file decides.
                for tied in order.chunk_by(|a, b| list[*a].1 == list[*b].1) {
                    let mean = rank as f64 + (tied.len() + 1) as f64 / 2.0;
                    rank += tied.len();
                    for place in tied {
                        scores[*place] = 1.0 / (RANK_OFFSET + mean);
                    }
                }
                (scores, 0.0)
            }
        }
    }
}

impl fmt::Display for ScoreScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ScoreScale::Raw => "raw",
            ScoreScale::MinMax => "min-max",
            ScoreScale::ZScore => "z-score",
            ScoreScale::ReciprocalRank => "rrf",
        })
    }
}

impl FromStr for ScoreScale {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = ScoreScale::ALL
            .iter()
            .find(|scale| scale.to_string() == name);
        found.copied().ok_or_else(|| {
            let expected = "raw, min-max, z-score or rrf";
            Error::parameter("scale", expected, format!("{name:?}"))
        })
    }
}

/// The items of some lists for one query, with a number of each list for every item.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScaledCandidates {
    /// Items in increasing order.
    pub(crate) items: Vec<u32>,
    /// Row after row, one number a list.
    pub(crate) scores: Vec<f64>,
    /// The place of every item in the list in which it comes first, counted from 0.
    pub(crate) places: Vec<u32>,
    /// As the scores: whether the list has the item.
    is_listed: Vec<bool>,
}

impl ScaledCandidates {
    /// The union of the lists.
    pub(crate) fn new(lists: &[Vec<ScoredItem>], scale: ScoreScale) -> Self {
        let mut items: Vec<u32> = lists.iter().flatten().map(|item| item.0).collect();
        items.sort_unstable();
        items.dedup();
        let numbers = items.len() * lists.len();
        let mut found = ScaledCandidates {
            scores: vec![0.0; numbers],
            places: vec![u32::MAX; items.len()],
            is_listed: vec![false; numbers],
            items,
        };
        for (number, list) in lists.iter().enumerate() {
            let (scaled, absent) = scale.scaled(list);
            let of_list = found.scores.iter_mut().skip(number).step_by(lists.len());
            of_list.for_each(|score| *score = absent);
            let mut order: Vec<usize> = (0..list.len()).collect();
            order.sort_by(|a, b| list[*b].1.total_cmp(&list[*a].1));
            for (place, at) in (0..).zip(order) {
                if let Ok(row) = found.items.binary_search(&list[at].0) {
                    found.scores[row * lists.len() + number] = scaled[at];
                    found.is_listed[row * lists.len() + number] = true;
                    found.places[row] = found.places[row].min(place);
                }
            }
        }
        found
    }

    /// Rows of the items that a list of positive weight has, with their summed scores.
    pub(crate) fn sums<'s>(
        &'s self,
        weights: &'s [f64],
    ) -> impl Iterator<Item = (usize, f64)> + 's {
        let rows = self.scores.chunks_exact(weights.len());
        let listed = self.is_listed.chunks_exact(weights.len());
        (rows.zip(listed).enumerate()).filter_map(move |(row, (scores, listed))| {
            let is_wanted = weights
                .iter()
                .zip(listed)
                .any(|(weight, listed)| *listed && *weight > 0.0);
            let sum = scores
                .iter()
                .zip(weights)
                .map(|(score, weight)| score * weight)
                .sum();
            is_wanted.then_some((row, sum))
        })
    }
}

/// Weights of lists on a scale.
#[derive(Debug, Clone, PartialEq)]
pub struct Fusion {
    scale: ScoreScale,
    weights: Vec<f64>,
}

impl Fusion {
    /// A weight for every list: none below 0, and one above.
    pub fn new(scale: ScoreScale, weights: Vec<f64>) -> Result<Self> {
        let is_usable = |weight: &f64| weight.is_finite() && *weight >= 0.0;
        match weights.iter().all(is_usable) && weights.iter().any(|weight| *weight > 0.0) {
            true => Ok(Fusion { scale, weights }),
            false => {
                let expected = "finite, none below 0, and one above";
                Err(Error::parameter(
                    "weights",
                    expected,
                    format!("{weights:?}"),
                ))
            }
        }
    }

    /// The same weight for so many lists.
    pub fn equal(scale: ScoreScale, lists: usize) -> Result<Self> {
        Self::new(scale, vec![1.0; lists])
    }

    /// The scale.
    pub fn scale(&self) -> ScoreScale {
        self.scale
    }

    /// One weight a list.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// All items that a list of positive weight has, with their summed scores, by item. An item stands in a list at most once.
    pub fn fuse(&self, lists: &[Vec<ScoredItem>]) -> Result<Vec<ScoredItem>> {
        if lists.len() != self.weights.len() {
            return Err(Error::shape(
                "ranked lists",
                self.weights.len(),
                lists.len(),
            ));
        }
        let candidates = ScaledCandidates::new(lists, self.scale);
        let sums = candidates.sums(&self.weights);
        Ok(sums
            .map(|(row, sum)| (candidates.items[row], sum))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fused(scale: ScoreScale, weights: &[f64], lists: &[&[ScoredItem]]) -> Vec<ScoredItem> {
        let lists: Vec<Vec<ScoredItem>> = lists.iter().map(|list| list.to_vec()).collect();
        let fusion = Fusion::new(scale, weights.to_vec()).unwrap();
        fusion.fuse(&lists).unwrap()
    }

    fn assert_near(found: &[ScoredItem], expected: &[ScoredItem]) {
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(
                found.0 == expected.0 && (found.1 - expected.1).abs() < 1e-12,
                "{found:?} {expected:?}"
            );
        }
    }

    const DENSE: &[ScoredItem] = &[(7, 0.9), (2, 0.5), (4, 0.1)];
    const LEXICAL: &[ScoredItem] = &[(2, 12.0), (9, 4.0)];

    #[test]
    fn scales_by_hand() {
        // An item that a list lacks counts as its last one.
        assert_near(
            &fused(ScoreScale::Raw, &[10.0, 1.0], &[DENSE, LEXICAL]),
            &[(2, 17.0), (4, 5.0), (7, 13.0), (9, 5.0)],
        );
        assert_near(
            &fused(ScoreScale::MinMax, &[1.0, 2.0], &[DENSE, LEXICAL]),
            &[(2, 2.5), (4, 0.0), (7, 1.0), (9, 0.0)],
        );
        // Deviations: of .9, .5, .1 √(.32 / 3); of 12 and 4 it is 4.
        let step = 0.4 / (0.32_f64 / 3.0).sqrt();
        assert_near(
            &fused(ScoreScale::ZScore, &[1.0, 1.0], &[DENSE, LEXICAL]),
            &[
                (2, 1.0),
                (4, -step - 1.0),
                (7, step - 1.0),
                (9, -step - 1.0),
            ],
        );
        assert_near(
            &fused(ScoreScale::ReciprocalRank, &[1.0, 1.0], &[DENSE, LEXICAL]),
            &[
                (2, 1.0 / 62.0 + 1.0 / 61.0),
                (4, 1.0 / 63.0),
                (7, 1.0 / 61.0),
                (9, 1.0 / 62.0),
            ],
        );
    }

    #[test]
    fn lists_without_a_spread_or_without_items() {
        let equal: &[ScoredItem] = &[(1, 3.0), (2, 3.0)];
        assert_near(
            &fused(ScoreScale::MinMax, &[1.0, 1.0], &[equal, &[(5, 1.0)]]),
            &[(1, 1.0), (2, 1.0), (5, 1.0)],
        );
        assert_near(
            &fused(ScoreScale::ZScore, &[1.0, 1.0], &[equal, &[]]),
            &[(1, 0.0), (2, 0.0)],
        );
        // Ranks 1 and 2 are tied: each has 1.5.
        let shared = 1.0 / 61.5;
        assert_near(
            &fused(ScoreScale::ReciprocalRank, &[1.0, 1.0], &[equal, &[]]),
            &[(1, shared), (2, shared)],
        );
        // What a list of weight 0 has is no candidate.
        assert_near(
            &fused(ScoreScale::Raw, &[0.0, 2.0], &[DENSE, LEXICAL]),
            &[(2, 24.0), (9, 8.0)],
        );
    }

    #[test]
    fn weights_and_names_are_checked() {
        for weights in [vec![], vec![0.0, 0.0], vec![-1.0, 2.0], vec![f64::NAN, 1.0]] {
            assert!(Fusion::new(ScoreScale::Raw, weights).is_err());
        }
        let both = Fusion::equal(ScoreScale::MinMax, 2).unwrap();
        let error = both.fuse(&[DENSE.to_vec()]).unwrap_err().to_string();
        assert_eq!(error, "ranked lists: expected 2, but found 1");
        for scale in ScoreScale::ALL {
            assert_eq!(scale.to_string().parse::<ScoreScale>().unwrap(), scale);
        }
        assert!("borda".parse::<ScoreScale>().is_err());
    }
}
