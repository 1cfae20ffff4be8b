//! The ranked items of every held-out query, as image sheets show them.
//!
//! A query's scores to all items of its round are made, sorted and forgotten; of each query the nearest
//! items are kept and the rank of the first right one, so that the worst can be picked out. Ties go to
//! the smaller row number here, while measures take their mean: a rank can differ where scores are equal.

use super::protocol::{EvaluationSettings, Protocol, check_rerank};
use super::retrieval_task::RetrievalTask;
use crate::data::RowId;
use crate::dataset::Dataset;
use crate::evaluate::Judged;
use crate::linalg::RowBuf;
use crate::model::{Chain, Embedding, Space};
use crate::search::Reranking;
use crate::search::scores::Items;
use crate::{Error, Result};
use rayon::prelude::*;

/// Queries whose scores are kept at once by a task.
const QUERIES: usize = 16;

/// The answers to one query.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// The round of the protocol, from 0: a unit may ask in several.
    pub round: usize,
    /// The unit that asks.
    pub query: u64,
    /// Rank of the first right answer, from 1.
    pub first_right: usize,
    /// The first right answer, which may be farther than those that were found.
    pub right: Answer,
    /// The nearest items, nearest first.
    pub found: Vec<Answer>,
}

/// One answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// Row of the item.
    pub item: u64,
    /// Its dissimilarity, as search reports it; re-ranked where that was asked for.
    pub dissimilarity: f32,
    /// Whether it is relevant.
    pub right: bool,
}

impl Dataset<'_> {
    /// The `k` nearest items of every query, as `judging` has these units ranked by a metric; queries
    /// with nothing relevant are left out. `trained` are the units learned from.
    pub fn ranked(
        &self,
        chain: &Chain,
        units: &[u64],
        trained: &[u64],
        judging: &EvaluationSettings,
        k: usize,
    ) -> Result<Vec<Ranking>> {
        if matches!(judging.protocol, Protocol::Classify(_)) {
            let expected = "one that ranks, so that there are answers to show";
            return Err(Error::parameter("protocol", expected, judging.protocol));
        }
        if judging.rerank.is_some() {
            check_rerank(chain, judging.protocol)?;
        }
        let mut all = Vec::new();
        let mut number = 0;
        self.retrieval_tasks(chain, units, trained, judging, &mut |task| {
            all.extend(rank_task(task, number, chain.space(), judging, k)?);
            number += 1;
            Ok(())
        })?;
        Ok(all)
    }
}

fn rank_task(
    task: &RetrievalTask<'_>,
    number: usize,
    space: Space,
    judging: &EvaluationSettings,
    k: usize,
) -> Result<Vec<Ranking>> {
    let items = Items::prepare(space, task.items)?;
    let reranking = (judging.rerank.as_ref())
        .map(|rerank| Reranking::new(rerank, space, task.queries, task.items, task.own))
        .transpose()?;
    let starts: Vec<RowId> = (0..task.queries.len()).step_by(QUERIES).collect();
    let blocks: Vec<Result<Vec<Ranking>>> = (starts.into_par_iter())
        .map(|start| {
            let block_rows: Vec<RowId> = (start..task.queries.len()).take(QUERIES).collect();
            let block = items.queries(task.queries, block_rows.clone())?;
            let mut scores = Vec::new();
            match &reranking {
                None => {
                    let mut buffer = RowBuf::empty(items.dim());
                    items.scores(&block, &mut buffer, &mut scores)?;
                }
                Some(reranking) => {
                    let end = start + block_rows.len() as RowId;
                    reranking.scores(start..end, &mut scores)?;
                }
            }
            let mut found = Vec::new();
            let rows = scores.chunks_exact(items.len());
            for (place, (query, row)) in block_rows.into_iter().zip(rows).enumerate() {
                let mut judged = Judged::default();
                task.truth.judge(query as usize, &mut judged);
                let reported = |score: f32| match reranking {
                    None => items.reported(score, block.squared(place)),
                    Some(_) => score,
                };
                let answer = |(item, score, right): FoundItem| Answer {
                    item: (task.item_ids)
                        .and_then(|ids| ids.get(item as usize).copied())
                        .unwrap_or(item),
                    dissimilarity: reported(score),
                    right,
                };
                if let Some((first_right, right, nearest)) = nearest(row, &judged, k) {
                    found.push(Ranking {
                        round: number,
                        query: task.ids.get(query as usize).copied().unwrap_or(query),
                        first_right,
                        right: answer(right),
                        found: nearest.into_iter().map(answer).collect(),
                    });
                }
            }
            Ok(found)
        })
        .collect();
    let mut all = Vec::new();
    for block in blocks {
        all.extend(block?);
    }
    Ok(all)
}

/// An item of a round with its score, and whether it is relevant.
type FoundItem = (RowId, f32, bool);

/// Rank of the first relevant item, that item and the `k` nearest; `None` where nothing is relevant.
fn nearest(
    scores: &[f32],
    judged: &Judged,
    k: usize,
) -> Option<(usize, FoundItem, Vec<FoundItem>)> {
    let excluded = |item: &RowId| judged.excluded.binary_search(item).is_ok();
    let right = |item: &RowId| {
        let relevant = judged
            .relevant
            .binary_search_by_key(item, |(item, _)| *item);
        relevant.is_ok()
    };
    let mut order: Vec<(RowId, f32)> = (0..).zip(scores.iter().copied()).collect();
    order.retain(|(item, _)| !excluded(item));
    order.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    let first = order.iter().position(|(item, _)| right(item))?;
    let (item, score) = order[first];
    let first_right = (item, score, true);
    order.truncate(k);
    let found = order.into_iter();
    let found = found.map(|(item, score)| (item, score, right(&item)));
    Some((first + 1, first_right, found.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Groups, MemoryCorpus};
    use crate::evaluate::Measure;
    use crate::supervision::Labels;

    /// Persons 0, 1 and 2 seen by cameras a and b, on a line. In camera b: 0 at 10, 1 at 21, 2 at 30.
    /// From a: 0 at 11 finds 0 first, at 1, then 1 at 100; 1 at 29 finds 2 at 1 and 1 at 64, so it is
    /// right at rank 2; 2 at 0 finds 0 at 100, 1 at 441 and 2 at 900.
    #[test]
    fn answers_by_hand() {
        let values = [11.0, 10.0, 29.0, 21.0, 0.0, 30.0, 99.0];
        let corpus = MemoryCorpus::new(RowBuf::from_values(values.to_vec(), 1).unwrap()).unwrap();
        let groups = Groups::new(&["a", "b", "a", "b", "a", "b", "a"]);
        let labels = Labels::from_numbers(&[0, 0, 1, 1, 2, 2, 3]).unwrap();
        let data = Dataset::builder(&corpus).groups(groups).labels(labels);
        let data = data.build().unwrap();
        let chain = Chain::identity(1, Space::SquaredL2);
        let judging = |protocol| {
            EvaluationSettings::new(&data, protocol, Vec::new(), None, 1)
                .unwrap()
                .0
        };
        let single = judging(Protocol::SingleShot { repeats: 1 });
        // Row 6 was trained on.
        let ranked = data
            .ranked(&chain, &[0, 1, 2, 3, 4, 5], &[6], &single, 2)
            .unwrap();
        let seen = |ranking: &Ranking| {
            let found = ranking
                .found
                .iter()
                .map(|a| (a.item, a.dissimilarity.round(), a.right));
            (
                ranking.round,
                ranking.query,
                ranking.first_right,
                found.collect::<Vec<_>>(),
            )
        };
        let forward: Vec<_> = ranked.iter().filter(|r| r.round == 0).map(seen).collect();
        assert_eq!(
            forward[0],
            (0, 0, 1, vec![(1, 1.0, true), (3, 100.0, false)])
        );
        assert_eq!(
            forward[1],
            (0, 2, 2, vec![(5, 1.0, false), (3, 64.0, true)])
        );
        assert_eq!(
            forward[2],
            (0, 4, 3, vec![(1, 100.0, false), (3, 441.0, false)])
        );
        assert_eq!((forward.len(), ranked.len()), (3, 6));
        // The first right answer is known beyond those that were asked for.
        assert_eq!(
            (ranked[2].right.item, ranked[2].right.dissimilarity),
            (5, 900.0)
        );
        // The measures count the same ranks.
        let spaces = [Space::SquaredL2];
        let units = [0, 1, 2, 3, 4, 5];
        let scores = data
            .evaluate_part(&chain, &spaces, &units, &[6], &single)
            .unwrap();
        let scores = scores.into_iter().next().unwrap().unwrap();
        let at_1 = ranked.iter().filter(|r| r.first_right == 1).count() as f64 / 6.0;
        assert!((scores.mean(Measure::CmcAt(1)) - at_1).abs() < 1e-12);
        // Person 3 has one image: nothing is relevant to it, and it is left out.
        let others = data.ranked(&chain, &[0, 1, 6], &[], &judging(Protocol::LeaveOneOut), 9);
        let others = others.unwrap();
        assert_eq!(others.iter().map(|r| r.query).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(others[0].found.len(), 2, "all but the query itself");
        let crossed = judging(Protocol::CrossCamera);
        let crossed = data
            .ranked(&chain, &[0, 1, 2, 3], &[], &crossed, 1)
            .unwrap();
        assert_eq!(crossed[0].found[0].item, 1);
        let classes = judging(Protocol::Classify(Default::default()));
        assert!(data.ranked(&chain, &[0, 1], &[2], &classes, 1).is_err());
    }
}
