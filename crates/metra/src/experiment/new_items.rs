//! Which items settings are chosen for: those that training judgements name, new ones, or both.
//!
//! A map learned from judgements can gain on items that they name and lose on all others. A validation
//! part with judgements has queries of both kinds, so that settings can be held to the kind that matters.

use super::scores::Scores;
use crate::evaluate::Measure;
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Queries of a kind below which a validation part says nothing about that kind.
const LEAST_QUERIES: usize = 10;

/// What settings are chosen by, where a part has queries about known and about new items. A query is
/// about new items if no training query has one of its relevant items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NewItems {
    /// The mean over queries about new items.
    Yes,
    /// The mean over queries about known items.
    No,
    /// The mean over all queries, of settings by which neither kind falls behind the baseline by more
    /// than a standard error.
    #[default]
    Both,
    /// The mean over all queries, whatever becomes of either kind.
    All,
}

impl fmt::Display for NewItems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NewItems::Yes => "yes",
            NewItems::No => "no",
            NewItems::Both => "both",
            NewItems::All => "all",
        })
    }
}

impl FromStr for NewItems {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Ok(match name {
            "yes" => NewItems::Yes,
            "no" => NewItems::No,
            "both" => NewItems::Both,
            "all" => NewItems::All,
            other => {
                let found = format!("{other:?}");
                return Err(Error::parameter("new-items", "yes, no, both or all", found));
            }
        })
    }
}

/// The value by which settings are compared on a validation part.
pub(super) struct Criterion {
    measure: Measure,
    /// With judgements: the rule, the queries about known items, and the baseline's scores.
    kinds: Option<(NewItems, BTreeSet<u64>, Scores)>,
}

impl Criterion {
    /// The mean of a measure over all queries.
    pub(super) fn mean(measure: Measure) -> Self {
        Criterion {
            measure,
            kinds: None,
        }
    }

    /// By a rule for known and new items, with the baseline's scores on the same part.
    pub(super) fn by_kinds(
        measure: Measure,
        rule: NewItems,
        seen: BTreeSet<u64>,
        baseline: Scores,
    ) -> Self {
        Criterion {
            measure,
            kinds: Some((rule, seen, baseline)),
        }
    }

    /// Larger is better. Below 0 where a kind of queries falls behind the baseline by more than a
    /// standard error, which [`NewItems::Both`] does not allow: minus by how much more.
    pub(super) fn value(&self, scores: &Scores) -> f64 {
        let all = scores.mean(self.measure);
        let Some((rule, seen, baseline)) = &self.kinds else {
            return all;
        };
        let of_kind = |known: bool| {
            let part = scores.filter(|query| seen.contains(&query) == known);
            (part.queries().len() >= LEAST_QUERIES).then_some(part)
        };
        match rule {
            NewItems::Yes => of_kind(false).map_or(all, |part| part.mean(self.measure)),
            NewItems::No => of_kind(true).map_or(all, |part| part.mean(self.measure)),
            NewItems::All => all,
            NewItems::Both => {
                let behind = [true, false].into_iter().filter_map(|known| {
                    let part = of_kind(known)?;
                    let base = baseline.filter(|query| seen.contains(&query) == known);
                    Some(shortfall(
                        part.values(self.measure),
                        base.values(self.measure),
                    ))
                });
                match behind.fold(0.0, f64::max) {
                    0.0 => all,
                    most => -most,
                }
            }
        }
    }
}

/// By how much the mean of `values` lies below that of `base` beyond a standard error of the paired
/// difference; 0 if it does not.
pub(super) fn shortfall(values: &[f64], base: &[f64]) -> f64 {
    let differences: Vec<f64> = base.iter().zip(values).map(|(b, v)| b - v).collect();
    let count = differences.len().max(2) as f64;
    let mean = differences.iter().sum::<f64>() / count;
    let squares: f64 = differences.iter().map(|d| (d - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    (mean - error).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::Evaluation;

    const MEASURE: Measure = Measure::AveragePrecision;

    fn scores(values: &[f64]) -> Scores {
        let ids: Vec<u64> = (0..values.len() as u64).collect();
        let found = Evaluation {
            queries: (0..values.len() as u32).collect(),
            clusters: ids.clone(),
            values: vec![(MEASURE, values.to_vec())],
            skipped: 0,
            curve: Vec::new(),
            precision: Vec::new(),
        };
        Scores::of(&ids, |id| id, &found)
    }

    /// Twenty queries, the first ten about known items.
    fn of_kinds(known: f64, new: f64) -> Scores {
        scores(&[[known; 10], [new; 10]].concat())
    }

    fn rule(new_items: NewItems) -> Criterion {
        Criterion::by_kinds(MEASURE, new_items, (0..10).collect(), of_kinds(0.5, 0.5))
    }

    #[test]
    fn each_rule_looks_at_its_kind() {
        let found = of_kinds(0.9, 0.6);
        for (new_items, expected) in [
            (NewItems::Yes, 0.6),
            (NewItems::No, 0.9),
            (NewItems::Both, 0.75),
            (NewItems::All, 0.75),
        ] {
            assert!((rule(new_items).value(&found) - expected).abs() < 1e-12);
        }
        assert!((Criterion::mean(MEASURE).value(&found) - 0.75).abs() < 1e-12);
    }

    #[test]
    fn a_gain_on_known_items_does_not_buy_a_loss_on_new_ones() {
        // .95 and .45 have a higher mean than .6 and .5, but lose .05 on new items without any spread.
        let value = rule(NewItems::Both).value(&of_kinds(0.95, 0.45));
        assert!((value + 0.05).abs() < 1e-12, "{value}");
        assert!(value < rule(NewItems::Both).value(&of_kinds(0.6, 0.5)));
    }

    #[test]
    fn a_loss_within_a_standard_error_is_none() {
        // Differences .1 and 0 in turn: mean .05, deviation .0527, standard error .0167.
        assert!((shortfall(&[0.4, 0.5].repeat(5), &[0.5; 10]) - (0.05 - 0.016_667)).abs() < 1e-5);
        // 1 and −1 in turn but for one: the mean .2 is below the error .327.
        let base = [1.0, 0.0].repeat(5);
        let values = [[0.0, 1.0].repeat(4), vec![0.0, 0.0]].concat();
        assert_eq!(shortfall(&values, &base), 0.0);
    }

    #[test]
    fn too_few_queries_of_a_kind_say_nothing() {
        let criterion = Criterion::by_kinds(
            MEASURE,
            NewItems::Both,
            (0..15).collect(),
            of_kinds(0.5, 0.5),
        );
        // Five queries about new items lose everything.
        let found = scores(&[[0.6; 15].to_vec(), [0.0; 5].to_vec()].concat());
        assert!((criterion.value(&found) - 0.45).abs() < 1e-12);
    }
}
