//! Evaluates a ranking made by another program, such as a TREC run file, by the same measures.

use super::evaluation::{Evaluation, EvaluationOptions, Tally, Ties};
use super::measure_values::{PlaceCounts, TieGroup};
use crate::{Error, Result};

/// One item of a given ranking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankedItem {
    /// Smaller is nearer, as everywhere: a run file's similarities are to be negated.
    pub score: f32,
    /// The grade (above 0) if the item is relevant to the query.
    pub grade: Option<f32>,
    /// Who comes first among equal scores under [`Ties::Trec`]: the smaller rank.
    pub tie_rank: u32,
}

/// The ranking of one query, in any order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RankedQuery {
    /// The cluster of the bootstrap it belongs to; its own number where queries are unrelated.
    pub cluster: u64,
    /// The items that were ranked.
    pub items: Vec<RankedItem>,
    /// Grades of relevant items that were not ranked: they count in recall, average precision and
    /// the ideal gain, and come after everything.
    pub missing: Vec<f32>,
}

/// Measure given rankings. Irrelevant items that were not ranked are unknown, so `auc` and
/// `cmc-area` speak of the ranked items only.
pub fn evaluate_ranking(
    queries: &[RankedQuery],
    options: &EvaluationOptions<'_>,
) -> Result<Evaluation> {
    super::Measure::check_ranked(&options.measures)?;
    let mut tally = Tally::new(options);
    let mut order: Vec<RankedItem> = Vec::new();
    for (number, query) in queries.iter().enumerate() {
        for (place, item) in query.items.iter().enumerate() {
            if !item.score.is_finite() {
                return Err(Error::Score {
                    query: number as u64,
                    item: place as u64,
                    score: item.score,
                });
            }
        }
        let grades = query.items.iter().filter_map(|item| item.grade);
        if let Some(grade) = grades
            .chain(query.missing.iter().copied())
            .find(|grade| !(*grade > 0.0 && grade.is_finite()))
        {
            return Err(Error::Row {
                row: number as u64,
                problem: format!("expected grades above 0 for relevant items, but found {grade}"),
            });
        }
        order.clear();
        order.extend_from_slice(&query.items);
        let counts = count_ranked(&mut order, query.missing.clone(), options.ties);
        tally.add(number as u32, query.cluster, &counts, options);
    }
    Ok(tally.finish(options))
}

/// Counts of one ranking, whose items are put in order. Scores must be finite.
pub(super) fn count_ranked(items: &mut [RankedItem], missing: Vec<f32>, ties: Ties) -> PlaceCounts {
    // Adding 0 makes one zero of the two that f32 has.
    let key = |item: &RankedItem| match ties {
        Ties::Expected => (item.score + 0.0, 0),
        Ties::Trec => (item.score + 0.0, item.tie_rank),
    };
    items.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
    });
    let mut counts = PlaceCounts {
        missing,
        ..PlaceCounts::default()
    };
    for group in items.chunk_by(|a, b| key(a) == key(b)) {
        let before = counts.grades.len();
        counts
            .grades
            .extend(group.iter().filter_map(|item| item.grade));
        let relevant = (counts.grades.len() - before) as u64;
        let tied = group.len() as u64 - relevant;
        if relevant > 0 {
            counts.groups.push(TieGroup {
                nearer: counts.irrelevant,
                tied,
                relevant,
            });
        }
        counts.irrelevant += tied;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::{GradeGain, Measure};

    fn item(score: f32, grade: Option<f32>, tie_rank: u32) -> RankedItem {
        RankedItem {
            score,
            grade,
            tie_rank,
        }
    }

    #[test]
    fn missing_items_count_in_the_denominator() {
        // Ranked: wrong, right (grade 2); a right item of grade 3 was not ranked. R = 2.
        // AP = (1/2) / 2 = 0.25; r@2 = 1/2; DCG = 2/log2(3), ideal = 3/log2(2) + 2/log2(3).
        let query = RankedQuery {
            cluster: 0,
            items: vec![item(0.5, Some(2.0), 0), item(0.1, None, 1)],
            missing: vec![3.0],
        };
        let options = EvaluationOptions {
            measures: vec![
                Measure::AveragePrecision,
                Measure::RecallAt(2),
                Measure::Ndcg,
                Measure::InverseNegativePenalty,
            ],
            ..EvaluationOptions::default()
        };
        let found = evaluate_ranking(&[query], &options).unwrap();
        let log3 = 3.0_f64.log2();
        assert_eq!(found.mean(Measure::AveragePrecision), Some(0.25));
        assert_eq!(found.mean(Measure::RecallAt(2)), Some(0.5));
        let ndcg = found.mean(Measure::Ndcg).unwrap();
        assert!((ndcg - (2.0 / log3) / (3.0 + 2.0 / log3)).abs() < 1e-15);
        assert_eq!(found.mean(Measure::InverseNegativePenalty), Some(0.0));
        assert_eq!(GradeGain::Exponential.of(3.0), 7.0);
    }

    #[test]
    fn trec_order_decides_ties() {
        let query = |rank: u32| RankedQuery {
            cluster: 0,
            items: vec![item(1.0, None, 5), item(1.0, Some(1.0), rank)],
            missing: vec![],
        };
        let options = |ties| EvaluationOptions {
            measures: vec![Measure::ReciprocalRank],
            ties,
            ..EvaluationOptions::default()
        };
        let mrr = |rank, ties| {
            let found = evaluate_ranking(&[query(rank)], &options(ties)).unwrap();
            found.mean(Measure::ReciprocalRank).unwrap()
        };
        assert_eq!(mrr(4, Ties::Trec), 1.0);
        assert_eq!(mrr(6, Ties::Trec), 0.5);
        assert_eq!(mrr(6, Ties::Expected), 0.75);
    }

    #[test]
    fn bad_rankings_are_named() {
        let with = |item| RankedQuery {
            items: vec![item],
            ..RankedQuery::default()
        };
        let run = |item| evaluate_ranking(&[with(item)], &EvaluationOptions::default());
        assert!(run(item(f32::NAN, None, 0)).is_err());
        assert!(run(item(1.0, Some(0.0), 0)).is_err());
        assert_eq!(run(item(1.0, None, 0)).unwrap().skipped, 1);
    }
}
