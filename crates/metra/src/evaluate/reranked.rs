//! Evaluating a ranking after k-reciprocal re-ranking, or in two stages.
//!
//! Such distances and ranks come of other items too and not of products alone, so that they cannot be counted in
//! the pass that [`super::evaluate`] makes: a query's row of them is made, sorted and forgotten.

use super::counts;
use super::evaluation::{Evaluation, EvaluationOptions, Tally, check};
use super::ranking::{RankedItem, count_ranked};
use super::truth::{Judged, Truth};
use crate::data::{Corpus, RowId};
use crate::model::Space;
use crate::search::two_stages::{Stage, TwoStages};
use crate::search::{Rerank, Reranking};
use crate::{Error, Result};
use rayon::prelude::*;
use std::ops::Range;

/// Queries whose distances are kept at once by a task.
const QUERIES: usize = 16;

/// Rank all items for every query by re-ranked distances and measure the ranking against the truth.
/// `own` names the items that the queries are, where they are items too.
pub fn evaluate_reranked(
    rerank: &Rerank,
    space: Space,
    queries: &dyn Corpus,
    items: &dyn Corpus,
    own: Option<&[RowId]>,
    truth: &dyn Truth,
    options: &EvaluationOptions<'_>,
) -> Result<Evaluation> {
    let tie_rank = check(queries, items, truth, options)?;
    let reranking = Reranking::new(rerank, space, queries, items, own)?;
    let sizes = (queries.len(), items.len());
    evaluate_rows(
        &|block, out| reranking.scores(block, out),
        sizes,
        truth,
        tie_rank,
        options,
    )
}

/// The same for a ranking in two stages.
pub(crate) fn evaluate_two_stages(
    coarse: Stage<'_>,
    fine: Stage<'_>,
    first: usize,
    truth: &dyn Truth,
    options: &EvaluationOptions<'_>,
) -> Result<Evaluation> {
    let tie_rank = check(coarse.queries, coarse.items, truth, options)?;
    let sizes = (coarse.queries.len(), coarse.items.len());
    let stages = TwoStages::new(coarse, fine, first)?;
    evaluate_rows(
        &|block, out| stages.ranks(block, out),
        sizes,
        truth,
        tie_rank,
        options,
    )
}

/// Makes the scores of all items for some queries, row after row.
type ScoreRows<'a> = dyn Fn(Range<RowId>, &mut Vec<f32>) -> Result<()> + Sync + 'a;

fn evaluate_rows(
    score: &ScoreRows<'_>,
    (queries, items): (u64, u64),
    truth: &dyn Truth,
    tie_rank: Option<&[u32]>,
    options: &EvaluationOptions<'_>,
) -> Result<Evaluation> {
    let starts: Vec<RowId> = (0..queries).step_by(QUERIES).collect();
    let blocks: Vec<Result<Tally>> = (starts.into_par_iter())
        .map(|start| {
            let block = start..queries.min(start + QUERIES as RowId);
            let mut tally = Tally::new(options);
            let (mut scores, mut ranked) = (Vec::new(), Vec::new());
            score(block.clone(), &mut scores)?;
            let rows = scores.chunks_exact(items as usize);
            for (query, row) in block.zip(rows) {
                let mut judged = Judged::default();
                truth.judge(query as usize, &mut judged);
                counts::check(&judged, query, items)?;
                rank(query, row, &judged, tie_rank, &mut ranked)?;
                let counts = count_ranked(&mut ranked, Vec::new(), options.ties);
                tally.add(
                    query as u32,
                    truth.cluster(query as usize),
                    &counts,
                    options,
                );
            }
            Ok(tally)
        })
        .collect();
    let mut all = Tally::new(options);
    for block in blocks {
        all.append(block?);
    }
    Ok(all.finish(options))
}

/// The items that count, with their scores and grades.
fn rank(
    query: RowId,
    scores: &[f32],
    judged: &Judged,
    tie_rank: Option<&[u32]>,
    out: &mut Vec<RankedItem>,
) -> Result<()> {
    out.clear();
    let mut relevant = judged.relevant.iter().peekable();
    let mut excluded = judged.excluded.iter().peekable();
    for (item, score) in scores.iter().enumerate() {
        let id = item as RowId;
        if excluded.next_if(|excluded| **excluded == id).is_some() {
            continue;
        }
        if !score.is_finite() {
            return Err(Error::Score {
                query,
                item: id,
                score: *score,
            });
        }
        out.push(RankedItem {
            score: *score,
            grade: relevant
                .next_if(|(relevant, _)| *relevant == id)
                .map(|(_, grade)| *grade),
            tie_rank: tie_rank.map_or(0, |ranks| ranks[item]),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::synthetic::Nuisance;
    use crate::data::{Groups, Subset};
    use crate::evaluate::{
        AgainstGallery, LeaveOneOut, Measure, RankedQuery, ReIdentification, evaluate,
        evaluate_ranking,
    };
    use crate::supervision::Labels;

    const SET: Nuisance = Nuisance {
        classes: 9,
        signal: 4,
        noise: 1,
        seed: 8,
    };

    /// With λ = 1 only the distance as it was is left, so that nothing may change.
    #[test]
    fn the_old_distance_alone_gives_the_old_ranking() {
        let set = SET.rows(120);
        let labels = Labels::from_numbers(&set.classes).unwrap();
        let cameras: Vec<String> = (0..120).map(|row| (row / 9 % 2).to_string()).collect();
        let cameras = Groups::new(&cameras);
        let own: Vec<RowId> = (0..120).collect();
        let rerank = Rerank {
            lambda: 1.0,
            ..Rerank::default()
        };
        let crossed = ReIdentification::new(&labels, &cameras, &labels, &cameras).unwrap();
        let truths: [&dyn Truth; 2] = [&LeaveOneOut(&labels), &crossed];
        let (options, corpus) = (EvaluationOptions::default(), &set.corpus);
        for space in [Space::SquaredL2, Space::Cosine] {
            for truth in truths {
                let wanted = evaluate(space, corpus, corpus, truth, &options).unwrap();
                let own = Some(own.as_slice());
                let found = evaluate_reranked(&rerank, space, corpus, corpus, own, truth, &options);
                let found = found.unwrap();
                assert_eq!(found.queries, wanted.queries);
                for ((_, a), (_, b)) in found.values.iter().zip(&wanted.values) {
                    let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9;
                    assert!(a.iter().zip(b).all(close), "{space}");
                }
            }
        }
    }

    #[test]
    fn measures_are_those_of_the_distances() {
        let set = SET.rows(150);
        let queries = Subset::new(&set.corpus, (0..40).collect()).unwrap();
        let items = Subset::new(&set.corpus, (40..150).collect()).unwrap();
        let query_labels = Labels::from_numbers(&set.classes[..40]).unwrap();
        let searched = Labels::from_numbers(&set.classes[40..]).unwrap();
        let truth = AgainstGallery::new(&query_labels, &searched);
        let (rerank, space, options) = (
            Rerank::default(),
            Space::SquaredL2,
            EvaluationOptions::default(),
        );
        let reranking = Reranking::new(&rerank, space, &queries, &items, None).unwrap();
        let ranked: Vec<RankedQuery> = (0..40)
            .map(|query| {
                let mut scores = Vec::new();
                reranking.scores(query..query + 1, &mut scores).unwrap();
                let class = set.classes[query as usize];
                let item = |(item, score): (usize, &f32)| RankedItem {
                    score: *score,
                    grade: (set.classes[40 + item] == class).then_some(1.0),
                    tie_rank: 0,
                };
                RankedQuery {
                    items: scores.iter().enumerate().map(item).collect(),
                    ..RankedQuery::default()
                }
            })
            .collect();
        let wanted = evaluate_ranking(&ranked, &options).unwrap();
        let found = evaluate_reranked(&rerank, space, &queries, &items, None, &truth, &options);
        let found = found.unwrap();
        assert_eq!(found.values, wanted.values);
        // Neighbourhoods of clusters help.
        let plain = evaluate(space, &queries, &items, &truth, &options).unwrap();
        let mean = |of: &Evaluation| of.mean(Measure::AveragePrecision).unwrap();
        assert!(
            mean(&found) > mean(&plain) + 0.01,
            "{} {}",
            mean(&found),
            mean(&plain)
        );
    }
}
