//! Counting against a full sort, over ties, grades, exclusions, wrong guesses and broken truths.

use super::*;
use crate::data::{Corpus, MemoryCorpus};
use crate::evaluate::Qrels;
use crate::linalg::RowBuf;
use crate::model::Space;
use crate::random::Stream;
use crate::supervision::{Judgement, Judgements};

/// Rows of a few whole numbers: many equal rows, many tied scores.
fn coarse(len: usize, values: u64, seed: u64) -> MemoryCorpus {
    let mut stream = Stream::new(seed, "test", 0);
    let values = (0..len * 3)
        .map(|_| 1.0 + stream.below(values) as f32)
        .collect();
    MemoryCorpus::new(RowBuf::from_values(values, 3).unwrap()).unwrap()
}

/// A truth by list, with exclusions.
struct Listed(Vec<Judged>, u64);

impl Truth for Listed {
    fn queries(&self) -> usize {
        self.0.len()
    }

    fn items(&self) -> u64 {
        self.1
    }

    fn cluster(&self, query: usize) -> u64 {
        query as u64 % 7
    }

    fn judge(&self, query: usize, out: &mut Judged) {
        out.clone_from(&self.0[query]);
    }
}

fn random_truth(queries: usize, items: u64, seed: u64) -> Listed {
    let mut stream = Stream::new(seed, "test truth", 0);
    let judged = (0..queries).map(|_| {
        let relevant_count = stream.below(40) as usize;
        let chosen = stream.choose(items, relevant_count + 10);
        let mut judged = Judged::default();
        for item in chosen {
            if stream.below(4) == 0 {
                judged.excluded.push(item);
            } else {
                judged.relevant.push((item, 1.0 + stream.below(3) as f32));
            }
        }
        judged
    });
    Listed(judged.collect(), items)
}

fn count(
    space: Space,
    queries: &dyn Corpus,
    items: &dyn Corpus,
    truth: &dyn Truth,
    tie_rank: Option<&[u32]>,
    disturb: f32,
) -> Vec<PlaceCounts> {
    let prepared = Items::prepare(space, items).unwrap();
    let mut counting = Counting::new(&prepared, tie_rank);
    counting.disturb = disturb;
    let mut all = Vec::new();
    let ids: Vec<RowId> = (0..queries.len()).collect();
    for block in ids.chunks(QUERIES) {
        let block = prepared.queries(queries, block.to_vec()).unwrap();
        counting
            .count(&block, truth, &mut |query, counts| {
                assert_eq!(query as usize, all.len());
                all.push(counts.clone());
            })
            .unwrap();
    }
    all
}

/// The same counts from a full sort of the scores that search reports.
fn oracle(scores: &[(f32, u64)], judged: &Judged, tie_rank: Option<&[u32]>) -> PlaceCounts {
    let mut order: Vec<(f32, u32, Option<f32>)> = scores
        .iter()
        .filter(|(_, item)| !judged.excluded.contains(item))
        .map(|(score, item)| {
            let grade = judged
                .relevant
                .iter()
                .find(|(i, _)| i == item)
                .map(|(_, g)| *g);
            (
                *score,
                tie_rank.map_or(0, |ranks| ranks[*item as usize]),
                grade,
            )
        })
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut counts = PlaceCounts::default();
    for group in order.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let grades: Vec<f32> = group.iter().filter_map(|(_, _, grade)| *grade).collect();
        let tied = (group.len() - grades.len()) as u64;
        if !grades.is_empty() {
            counts.groups.push(TieGroup {
                nearer: counts.irrelevant,
                tied,
                relevant: grades.len() as u64,
            });
        }
        counts.grades.extend(grades);
        counts.irrelevant += tied;
    }
    counts
}

fn sorted_grades(mut counts: PlaceCounts) -> PlaceCounts {
    // Within a group the order of grades means nothing.
    let mut start = 0;
    for group in &counts.groups {
        let end = start + group.relevant as usize;
        counts.grades[start..end].sort_by(f32::total_cmp);
        start = end;
    }
    counts
}

/// All scores of every query, from products of one query with all items, sorted.
fn sorted_scores(
    space: Space,
    queries: &MemoryCorpus,
    items: &MemoryCorpus,
) -> Vec<Vec<(f32, u64)>> {
    let prepared = Items::prepare(space, items).unwrap();
    let (mut buffer, mut scores) = (RowBuf::empty(1), Vec::new());
    (0..queries.len())
        .map(|query| {
            let block = prepared.queries(queries, vec![query]).unwrap();
            prepared.scores(&block, &mut buffer, &mut scores).unwrap();
            let mut sorted: Vec<(f32, u64)> = scores.iter().copied().zip(0..).collect();
            sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            sorted
        })
        .collect()
}

fn check_against_sort(queries: &MemoryCorpus, items: &MemoryCorpus, disturb: f32, trec: bool) {
    let n = items.len();
    let truth = random_truth(queries.len() as usize, n, 11);
    let mut ranks: Vec<u32> = (0..n as u32).collect();
    Stream::new(2, "test ranks", 0).shuffle(&mut ranks);
    let tie_rank = trec.then_some(ranks.as_slice());
    for space in Space::ALL {
        let found = count(space, queries, items, &truth, tie_rank, disturb);
        let all = sorted_scores(space, queries, items);
        for (query, counts) in found.into_iter().enumerate() {
            let scores = &all[query];
            let expected = oracle(scores, &truth.0[query], tie_rank);
            assert_eq!(
                sorted_grades(counts),
                sorted_grades(expected),
                "{space} query {query}"
            );
        }
    }
}

#[test]
fn counts_equal_a_sort_with_ties_grades_and_exclusions() {
    for values in [2, 5, 1000] {
        let (queries, items) = (coarse(150, values, 1), coarse(2600, values, 2));
        for trec in [false, true] {
            check_against_sort(&queries, &items, 0.0, trec);
        }
    }
}

#[test]
fn squared_distances_on_centred_whole_numbers_equal_a_sort() {
    // Rows and their negatives: the mean is exactly 0, so that distances are exact in f32.
    let half = coarse(1300, 6, 3);
    let mut values = half.rows().values().to_vec();
    values.extend(half.rows().values().iter().map(|v| -v));
    let items = MemoryCorpus::new(RowBuf::from_values(values, 3).unwrap()).unwrap();
    let queries = coarse(100, 6, 4);
    let truth = random_truth(100, 2600, 5);
    let found = count(Space::SquaredL2, &queries, &items, &truth, None, 0.0);
    for (query, counts) in found.into_iter().enumerate() {
        let q = queries.rows().row(query);
        let scores: Vec<(f32, u64)> = (0..2600)
            .map(|item| {
                let x = items.rows().row(item);
                let distance = q.iter().zip(x).map(|(a, b)| (a - b) * (a - b)).sum();
                (distance, item as u64)
            })
            .collect();
        let expected = oracle(&scores, &truth.0[query], None);
        assert_eq!(
            sorted_grades(counts),
            sorted_grades(expected),
            "query {query}"
        );
    }
}

#[test]
fn wrong_guesses_change_nothing() {
    let (queries, items) = (coarse(70, 400, 1), coarse(2100, 400, 2));
    check_against_sort(&queries, &items, 1234.5, false);
    check_against_sort(&queries, &items, -0.75, true);
}

#[test]
fn a_single_relevant_item_and_an_outlier() {
    // One relevant item: the range of relevant scores is a point. One far relevant item: all other
    // scores fall into one bin.
    let (queries, items) = (coarse(3, 300, 1), coarse(1500, 300, 2));
    let mut values = items.rows().values().to_vec();
    values[..3].copy_from_slice(&[1e6, 1e6, 1e6]);
    let items = MemoryCorpus::new(RowBuf::from_values(values, 3).unwrap()).unwrap();
    let lines = |relevant: &[RowId]| -> Vec<Judgement> {
        let line = |query, item| Judgement {
            query,
            item,
            grade: 1.0,
        };
        (0..3)
            .flat_map(|q| relevant.iter().map(move |i| line(q, *i)))
            .collect()
    };
    for relevant in [vec![77], vec![0, 5, 900], vec![0]] {
        let judgements = Judgements::new(3, 1500, &lines(&relevant)).unwrap();
        let found = count(
            Space::InnerProduct,
            &queries,
            &items,
            &Qrels(&judgements),
            None,
            0.0,
        );
        let all = sorted_scores(Space::InnerProduct, &queries, &items);
        for (query, counts) in found.into_iter().enumerate() {
            let scores = &all[query];
            let mut judged = Judged::default();
            Qrels(&judgements).judge(query, &mut judged);
            assert_eq!(counts, oracle(scores, &judged, None));
        }
    }
}

#[test]
fn a_truth_that_breaks_its_promise_is_an_error() {
    let judged = |relevant: &[(RowId, f32)], excluded: &[RowId]| Judged {
        relevant: relevant.to_vec(),
        excluded: excluded.to_vec(),
    };
    assert!(check(&judged(&[(1, 1.0), (3, 2.0)], &[0, 2]), 0, 4).is_ok());
    assert!(check(&judged(&[(3, 1.0), (1, 1.0)], &[]), 0, 4).is_err());
    assert!(check(&judged(&[(4, 1.0)], &[]), 0, 4).is_err());
    assert!(check(&judged(&[], &[1, 1]), 0, 4).is_err());
    assert!(check(&judged(&[(1, 0.0)], &[]), 0, 4).is_err());
    assert!(check(&judged(&[(1, 1.0)], &[1]), 0, 4).is_err());
}
