//! Cross-validation: N folds in which every row, class or query is tested once, so that a small set
//! gives one verdict over all of its queries and not one over a fifth of them.
//!
//! Every fold learns and chooses anew from the rest, so no query is judged by a metric that has
//! seen it. The folds' metrics share training data; the interval over the pooled queries is that
//! of the procedure on these queries, and says nothing of how much another training set would
//! move it (Bengio & Grandvalet, JMLR 2004: no unbiased estimate of that exists).

use super::holdout::{HoldOut, unfit, without_shared_items};
use super::scores::Scores;
use super::verdicts::Verdicts;
use crate::dataset::Dataset;
use crate::random::Stream;
use crate::supervision::Supervision;
use crate::{Error, Result};
use std::collections::BTreeSet;

/// The (rest, test) units of `count` folds: queries dealt out at random, rows of every class dealt
/// out evenly, or whole classes. Each unit is in exactly one test part; with
/// [`HoldOut::Items`] the rest leaves out queries that share a relevant item with the test part.
pub fn folds(
    data: &Dataset<'_>,
    units: &[u64],
    kind: HoldOut,
    count: usize,
    seed: u64,
) -> Result<Vec<(Vec<u64>, Vec<u64>)>> {
    if kind == HoldOut::None {
        return Err(Error::parameter(
            "folds",
            "absent where nothing is held out",
            count,
        ));
    }
    let groups = split_groups(data, units, kind, &mut Stream::new(seed, "folds", 0))?;
    if count < 2 || count > groups.len() {
        let expected = format!("between 2 and {} (the {kind} there are)", groups.len());
        return Err(Error::parameter("folds", expected, count));
    }
    let mut tests = vec![Vec::new(); count];
    for (number, group) in groups.into_iter().enumerate() {
        tests[number % count].extend(group);
    }
    (tests.into_iter())
        .map(|mut test| {
            test.sort_unstable();
            let held: BTreeSet<u64> = test.iter().copied().collect();
            let others = units.iter().copied().filter(|unit| !held.contains(unit));
            let mut rest: Vec<u64> = others.collect();
            if let (HoldOut::Items, Supervision::Judgements(judgements)) =
                (kind, data.supervision())
            {
                rest = without_shared_items(judgements, rest, &test);
            }
            Ok((rest, test))
        })
        .collect()
}

/// What is dealt out, or given out for labelling: lists of units that stay together, in random
/// order but for rows, which lie class by class.
pub(super) fn split_groups(
    data: &Dataset<'_>,
    units: &[u64],
    kind: HoldOut,
    stream: &mut Stream,
) -> Result<Vec<Vec<u64>>> {
    let labels = data.labels();
    Ok(match (kind, data.supervision(), labels) {
        (HoldOut::Queries | HoldOut::Items, Supervision::Judgements(_), _)
        | (HoldOut::Rows, Supervision::LabelSets(_), _) => {
            let mut shuffled = units.to_vec();
            stream.shuffle(&mut shuffled);
            shuffled.into_iter().map(|unit| vec![unit]).collect()
        }
        (HoldOut::Rows | HoldOut::Identities, _, Some(labels)) => {
            let mut classes: Vec<Vec<u64>> = vec![Vec::new(); labels.classes()];
            for unit in units {
                classes[labels.of()[*unit as usize] as usize].push(*unit);
            }
            classes.retain(|rows| !rows.is_empty());
            if kind == HoldOut::Identities {
                stream.shuffle(&mut classes);
                classes
            } else {
                // Dealing goes on where the class before ended, so that the remainders of many
                // small classes do not all fall to the first folds.
                (classes.into_iter())
                    .flat_map(|mut rows| {
                        stream.shuffle(&mut rows);
                        rows
                    })
                    .map(|row| vec![row])
                    .collect()
            }
        }
        (kind, supervision, _) => return Err(unfit(supervision, labels, kind)),
    })
}

/// Judge all test queries of all folds together: each counts once, and those of one identity are
/// resampled together whichever fold they were tested in.
pub fn pool(folds: &[&Verdicts], seed: u64) -> Result<Verdicts> {
    let Some(first) = folds.first() else {
        return Err(Error::Data("there is no fold to pool".into()));
    };
    let mut base = Scores::new(first.base.measures());
    let mut learned = base.clone();
    let mut seen = first.seen_queries.as_ref().map(|_| BTreeSet::new());
    for fold in folds {
        base.append(&fold.base);
        learned.append(&fold.learned);
        if let (Some(all), Some(more)) = (&mut seen, &fold.seen_queries) {
            all.extend(more);
        }
    }
    Verdicts::new(base, learned, (seen, first.kind), seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::synthetic::Nuisance;
    use crate::evaluate::{Evaluation, Measure};
    use crate::experiment::SeenKind;
    use crate::supervision::{Comparisons, Judgement, Labels};

    /// Rows in classes of 7, or judgements that share an item two by two.
    fn with<T>(judged: bool, test: impl Fn(&Dataset<'_>) -> T) -> T {
        let set = Nuisance {
            classes: 10,
            signal: 1,
            noise: 1,
            seed: 1,
        }
        .rows(70);
        let lines: Vec<Judgement> = (0..70)
            .map(|query| Judgement {
                query,
                item: query / 2,
                grade: 1.0,
            })
            .collect();
        let data = Dataset::builder(&set.corpus);
        let data = if judged {
            data.queries(&set.corpus).qrels(lines)
        } else {
            data.labels(Labels::from_numbers(&set.classes).unwrap())
        };
        test(&data.build().unwrap())
    }

    fn check(data: &Dataset<'_>, kind: HoldOut) -> Vec<(Vec<u64>, Vec<u64>)> {
        let units: Vec<u64> = (0..70).collect();
        let made = folds(data, &units, kind, 4, 1).unwrap();
        assert_eq!(made, folds(data, &units, kind, 4, 1).unwrap());
        assert_ne!(made, folds(data, &units, kind, 4, 2).unwrap());
        let mut tested: Vec<u64> = made.iter().flat_map(|(_, test)| test.clone()).collect();
        tested.sort_unstable();
        assert_eq!(tested, units, "each unit is tested once");
        for (rest, test) in &made {
            assert!(rest.iter().all(|unit| test.binary_search(unit).is_err()));
            if kind != HoldOut::Items {
                assert_eq!(rest.len() + test.len(), 70);
            }
        }
        made
    }

    #[test]
    fn rows_are_dealt_out_evenly_in_every_class() {
        with(false, |data| {
            let labels = data.labels().unwrap();
            for (_, test) in check(data, HoldOut::Rows) {
                // 70 rows over 4 folds, and 7 of each class: 17 or 18, one or two of each.
                assert!((17..=18).contains(&test.len()));
                for class in 0..10 {
                    let of = |row: &&u64| labels.of()[**row as usize] == class;
                    assert!((1..=2).contains(&test.iter().filter(of).count()));
                }
            }
        });
    }

    #[test]
    fn classes_stay_whole() {
        with(false, |data| {
            let labels = data.labels().unwrap();
            let class = |row: &u64| labels.of()[*row as usize];
            for (rest, test) in check(data, HoldOut::Identities) {
                assert!(test.len() == 14 || test.len() == 21);
                assert!(
                    test.iter()
                        .all(|t| rest.iter().all(|r| class(r) != class(t)))
                );
            }
        });
    }

    #[test]
    fn queries_are_dealt_out_and_shared_items_leave_the_rest() {
        with(true, |data| {
            for (_, test) in check(data, HoldOut::Queries) {
                assert!((17..=18).contains(&test.len()));
            }
            for (rest, test) in check(data, HoldOut::Items) {
                assert!(test.iter().all(|t| rest.iter().all(|r| r / 2 != t / 2)));
            }
        });
    }

    #[test]
    fn pooled_queries_count_once_each() {
        let measure = Measure::PrecisionAt(1);
        // Queries by number in their part, and whether base and learned were right.
        let fold = |units: &[u64], base: &[f64], learned: &[f64], seen: &[u64]| {
            let scores = |values: &[f64]| {
                let mut scores = Scores::new(&[measure]);
                let found = Evaluation {
                    queries: (0..units.len() as u32).collect(),
                    clusters: vec![0; units.len()],
                    values: vec![(measure, values.to_vec())],
                    skipped: 1,
                    curve: Vec::new(),
                    precision: Vec::new(),
                };
                scores.extend(units, |unit| unit / 10, &found);
                scores
            };
            let seen = Some(seen.iter().copied().collect());
            Verdicts::new(scores(base), scores(learned), (seen, SeenKind::Items), 1).unwrap()
        };
        let folds = [
            fold(&[11, 21, 31], &[0.0, 0.0, 1.0], &[1.0, 1.0, 1.0], &[11]),
            fold(&[12], &[1.0], &[0.0], &[]),
        ];
        let pooled = pool(&folds.each_ref(), 1).unwrap();
        let row = pooled.rows[0].1;
        // Means over the four queries, not over the two folds; 11 and 12 are one cluster.
        assert_eq!((row.base, row.learned), (0.5, 0.75));
        assert_eq!((row.queries, row.clusters), (4, 3));
        assert_eq!(pooled.base.skipped(), 2);
        assert_eq!(pooled.seen[0].1.queries, 1);
        let unseen = pooled.unseen[0].1;
        assert_eq!((unseen.queries, unseen.learned), (3, 2.0 / 3.0));
        assert!(pool(&[], 1).is_err());
    }

    #[test]
    fn folds_that_cannot_be_made_are_refused() {
        let units: Vec<u64> = (0..70).collect();
        let message = |data: &Dataset<'_>, kind, count| {
            let made = folds(data, &units, kind, count, 1);
            made.unwrap_err().to_string()
        };
        with(false, |data| {
            assert!(message(data, HoldOut::Rows, 1).contains("between 2 and 70"));
            assert!(message(data, HoldOut::Identities, 11).contains("between 2 and 10"));
            assert!(message(data, HoldOut::None, 5).contains("nothing is held out"));
            assert!(message(data, HoldOut::Queries, 5).contains("identities, rows or none"));
            let comparisons = Supervision::Comparisons(Comparisons::new(70));
            let alone = Dataset::new(data.items(), &comparisons).unwrap();
            assert!(message(&alone, HoldOut::Rows, 5).contains("none with pairs"));
        });
    }
}
