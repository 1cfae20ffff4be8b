//! Exact evaluation of a distributed corpus, in two passes over the shards of the items.
//!
//! The first pass collects the scores of each query's relevant items, which are few. The second
//! counts, against these, how many irrelevant items lie nearer and how many tie: what average
//! precision, CMC and the rest are made of. Relevant items are left out of the second count, so that
//! nothing rests on two passes giving the same last bit.

use super::evaluation::{Evaluation, EvaluationOptions, Tally, Ties};
use super::measure::Measure;
use super::measure_values::{PlaceCounts, TieGroup};
use super::thresholds::{ScoreRow, Space as Working, Thresholds, WIDTH};
use crate::data::{Corpus, Keys, PartialResult, RowId};
use crate::execute::{Sample, Statistic, decode_list, encode_list, expect_parts, fold};
use crate::linalg::RowBuf;
use crate::search::QueryBatch;
use crate::search::distributed::{Block, Scored};
use crate::search::scores::TILE;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Queries that are scored at once.
const QUERIES: usize = 64;
/// Pairs of query and score in a message of words.
const SAID: usize = 1 << 16;

/// Queries with what is right for them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabelledQueries {
    batch: QueryBatch,
    /// Class of each query, numbered as the items' are; nothing is relevant where there is none.
    classes: Vec<Option<u32>>,
    /// Row number of each query where queries are items themselves, which are then left out.
    own: Option<Vec<RowId>>,
}

impl LabelledQueries {
    /// Items of a query's class are relevant, but the query itself.
    pub fn new(
        batch: QueryBatch,
        classes: Vec<Option<u32>>,
        own: Option<Vec<RowId>>,
    ) -> Result<Self> {
        let described = own.as_ref().map_or(classes.len(), Vec::len);
        for found in [classes.len(), described] {
            if found != batch.len() {
                return Err(Error::shape(
                    "queries that are described",
                    batch.len(),
                    found,
                ));
            }
        }
        Ok(LabelledQueries {
            batch,
            classes,
            own,
        })
    }

    /// Show every query its scores of a block of items: query, scores, and whether each item
    /// counts for it and is relevant.
    fn score(&self, block: &Block<'_>, see: &mut See<'_>) -> Result<()> {
        let (mut buffer, mut products) = (RowBuf::empty(block.items.dim()), Vec::new());
        for start in (0..self.batch.len()).step_by(QUERIES) {
            let end = self.batch.len().min(start + QUERIES);
            let ids = (start as RowId..end as RowId).collect();
            let queries = block.items.queries(block.queries, ids)?;
            for tile in 0..block.items.tiles() {
                (block.items).products(&queries, tile..tile + 1, &mut buffer, &mut products)?;
                let first = tile * TILE;
                let len = TILE.min(block.items.len() - first);
                let offsets = block.items.offsets(first..first + len);
                let rows = products.chunks_exact_mut(TILE);
                for (query, row) in (start..end).zip(rows) {
                    for (product, offset) in row[..len].iter_mut().zip(offsets) {
                        *product += offset;
                    }
                    let own = self.own.as_ref().map(|own| own[query]);
                    see(query, &mut row[..len], &|place| {
                        let item = first + place;
                        if own == Some(block.first + item as RowId) {
                            Answer::Excluded
                        } else if self.classes[query] == block.keys.get(item).copied() {
                            Answer::Relevant
                        } else {
                            Answer::Irrelevant
                        }
                    });
                }
            }
        }
        Ok(())
    }
}

/// Shown a query, its scores, and what each item is to it.
type See<'a> = dyn FnMut(usize, &mut [f32], &dyn Fn(usize) -> Answer) + 'a;

#[derive(Clone, Copy, PartialEq)]
enum Answer {
    Relevant,
    Irrelevant,
    Excluded,
}

/// Rank all items of a corpus for every query, wherever they lie, and measure the ranking.
/// `clusters` has what each query belongs to for the bootstrap.
pub fn evaluate_distributed(
    corpus: &dyn Corpus,
    keys: Keys<'_>,
    labelled: &LabelledQueries,
    clusters: &[u64],
    options: &EvaluationOptions<'_>,
) -> Result<Evaluation> {
    Measure::check_ranked(&options.measures)?;
    if options.ties == Ties::Trec {
        let expected = "expected values where the items lie elsewhere";
        return Err(Error::parameter("ties", expected, "the order of trec_eval"));
    }
    if clusters.len() != labelled.batch.len() {
        let (expected, found) = (labelled.batch.len(), clusters.len());
        return Err(Error::shape("clusters of the queries", expected, found));
    }
    let relevant = fold::<RelevantScores>(corpus, keys, labelled)?;
    let counted = Counted {
        labelled: labelled.clone(),
        relevant,
    };
    let counts = fold::<IrrelevantCounts>(corpus, keys, &counted)?;
    let mut tally = Tally::new(options);
    for (query, counts) in counts.iter().enumerate() {
        tally.add(query as u32, clusters[query], counts, options);
    }
    Ok(tally.finish(options))
}

/// Scores of the relevant items of every query.
pub(crate) struct RelevantScores {
    labelled: LabelledQueries,
    scored: Scored,
    shard: u64,
    found: Vec<(u32, f32)>,
}

impl RelevantScores {
    fn collect(
        labelled: &LabelledQueries,
        found: &mut Vec<(u32, f32)>,
        block: &Block<'_>,
    ) -> Result<()> {
        labelled.score(block, &mut |query, scores, answer| {
            for (place, score) in scores.iter().enumerate() {
                if answer(place) == Answer::Relevant {
                    found.push((query as u32, *score));
                }
            }
        })
    }
}

impl Statistic for RelevantScores {
    const NAME: &'static str = "scores of relevant rows";
    type Spec = LabelledQueries;
    /// Increasing scores of each query.
    type Out = Vec<Vec<f32>>;

    fn start(labelled: &LabelledQueries, shard: u64) -> Result<Self> {
        Ok(RelevantScores {
            labelled: labelled.clone(),
            scored: Scored::new(&labelled.batch)?,
            shard,
            found: Vec::new(),
        })
    }

    fn update(&mut self, sample: &Sample<'_>) -> Result<()> {
        let (labelled, found) = (&self.labelled, &mut self.found);
        (self.scored).take(sample, &mut |block| Self::collect(labelled, found, block))
    }

    fn close(mut self) -> Result<Vec<PartialResult>> {
        let (labelled, found) = (&self.labelled, &mut self.found);
        (self.scored).flush(&mut |block| Self::collect(labelled, found, block))?;
        Ok(vec![encode_list(self.shard, &self.found, SAID)?])
    }

    fn finish(labelled: &LabelledQueries, parts: Vec<PartialResult>) -> Result<Vec<Vec<f32>>> {
        let [pairs] = expect_parts(parts)?;
        let mut scores = vec![Vec::new(); labelled.batch.len()];
        for (query, score) in decode_list::<(u32, f32)>(pairs)? {
            let known = scores.get_mut(query as usize);
            let known = known.ok_or_else(|| Error::shape("a query", "known", query))?;
            known.push(score);
        }
        for scores in &mut scores {
            scores.sort_unstable_by(f32::total_cmp);
        }
        Ok(scores)
    }
}

/// What [`IrrelevantCounts`] must know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counted {
    labelled: LabelledQueries,
    /// Increasing scores of each query's relevant items.
    relevant: Vec<Vec<f32>>,
}

/// How many irrelevant items lie nearer than each relevant one, and how many tie.
pub(crate) struct IrrelevantCounts {
    labelled: LabelledQueries,
    scored: Scored,
    thresholds: Vec<Thresholds>,
    /// Items that count as irrelevant for each query.
    irrelevant: Vec<u64>,
    working: Working,
    kept: Vec<f32>,
}

impl IrrelevantCounts {
    fn show(&mut self, sample: Option<&Sample<'_>>) -> Result<()> {
        let Self {
            labelled,
            scored,
            thresholds,
            irrelevant,
            working,
            kept,
        } = self;
        let mut count = |block: &Block<'_>| {
            labelled.score(block, &mut |query, scores, answer| {
                kept.clear();
                let places = scores.iter().enumerate();
                let others = places.filter(|(place, _)| answer(*place) == Answer::Irrelevant);
                kept.extend(others.map(|(_, score)| *score));
                irrelevant[query] += kept.len() as u64;
                if let Some(thresholds) = thresholds.get_mut(query) {
                    for scores in kept.chunks(WIDTH) {
                        thresholds.add(ScoreRow::plain(scores), working);
                    }
                }
            })
        };
        match sample {
            Some(sample) => scored.take(sample, &mut count),
            None => scored.flush(&mut count),
        }
    }
}

impl Statistic for IrrelevantCounts {
    const NAME: &'static str = "counts of irrelevant rows";
    type Spec = Counted;
    type Out = Vec<PlaceCounts>;

    fn start(counted: &Counted, _: u64) -> Result<Self> {
        let thresholds = counted.relevant.iter().map(|scores| {
            let mut thresholds = Thresholds::default();
            thresholds.set(groups(scores).map(|(score, _)| score));
            thresholds
        });
        Ok(IrrelevantCounts {
            scored: Scored::new(&counted.labelled.batch)?,
            thresholds: thresholds.collect(),
            irrelevant: vec![0; counted.labelled.batch.len()],
            labelled: counted.labelled.clone(),
            working: Working::default(),
            kept: Vec::new(),
        })
    }

    fn update(&mut self, sample: &Sample<'_>) -> Result<()> {
        self.show(Some(sample))
    }

    fn close(mut self) -> Result<Vec<PartialResult>> {
        self.show(None)?;
        let mut counts = Vec::new();
        for thresholds in &mut self.thresholds {
            for count in thresholds.finish() {
                counts.extend([count.below, count.equal]);
            }
        }
        Ok(vec![
            PartialResult::Count(self.irrelevant),
            PartialResult::Count(counts),
        ])
    }

    fn finish(counted: &Counted, parts: Vec<PartialResult>) -> Result<Vec<PlaceCounts>> {
        let [irrelevant, counts] = expect_parts(parts)?;
        let (irrelevant, counts) = (irrelevant.into_count()?, counts.into_count()?);
        let expected: usize = (counted.relevant.iter()).map(|s| groups(s).count()).sum();
        if counts.len() != 2 * expected || irrelevant.len() != counted.relevant.len() {
            return Err(Error::shape("counts of rows", 2 * expected, counts.len()));
        }
        let mut counts = counts.as_chunks::<2>().0.iter();
        let places = counted.relevant.iter().zip(irrelevant);
        let places = places.map(|(scores, irrelevant)| PlaceCounts {
            groups: groups(scores)
                .zip(counts.by_ref())
                .map(|((_, relevant), [nearer, tied])| TieGroup {
                    nearer: *nearer,
                    tied: *tied,
                    relevant,
                })
                .collect(),
            grades: vec![1.0; scores.len()],
            missing: Vec::new(),
            irrelevant,
        });
        Ok(places.collect())
    }
}

/// Different scores with how often each occurs.
fn groups(sorted: &[f32]) -> impl Iterator<Item = (f32, u64)> {
    let groups = sorted.chunk_by(|a, b| a == b);
    groups.map(|group| (group[0], group.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::data::synthetic::Nuisance;
    use crate::evaluate::{AgainstGallery, LeaveOneOut, evaluate};
    use crate::model::Space;
    use crate::supervision::Labels;

    const SET: Nuisance = Nuisance {
        classes: 9,
        signal: 2,
        noise: 3,
        seed: 3,
    };

    fn options() -> EvaluationOptions<'static> {
        EvaluationOptions {
            measures: vec![
                Measure::AveragePrecision,
                Measure::PrecisionAt(5),
                Measure::CmcAt(1),
            ],
            ..EvaluationOptions::default()
        }
    }

    #[test]
    fn two_passes_equal_the_evaluation_in_memory() {
        // Some rows twice, so that there are ties.
        let set = SET.rows(700);
        let mut values = set.corpus.rows().values().to_vec();
        values.copy_within(0..200 * 5, 300 * 5);
        let corpus = MemoryCorpus::new(RowBuf::from_values(values, 5).unwrap()).unwrap();
        let labels = Labels::from_numbers(&set.classes).unwrap();
        let rows = RowBuf::from_values(corpus.rows().values().to_vec(), 5).unwrap();
        for space in Space::ALL {
            let batch = QueryBatch::plain(space, &rows).unwrap();
            let classes = labels.of().iter().map(|class| Some(*class)).collect();
            let own = Some((0..700).collect());
            let labelled = LabelledQueries::new(batch, classes, own).unwrap();
            let clusters: Vec<u64> = labels.of().iter().map(|c| u64::from(*c)).collect();
            let keys = Keys::Class(labels.of());
            let found =
                evaluate_distributed(&corpus, keys, &labelled, &clusters, &options()).unwrap();
            let truth = LeaveOneOut(&labels);
            let expected = evaluate(space, &corpus, &corpus, &truth, &options()).unwrap();
            close(&found, &expected);
        }
    }

    #[test]
    fn queries_of_another_corpus_may_have_nothing_relevant() {
        let (set, asking) = (SET.rows(500), Nuisance { classes: 11, ..SET }.rows(60));
        let labels = Labels::from_numbers(&set.classes).unwrap();
        let theirs = Labels::from_numbers(&asking.classes).unwrap();
        let classes: Vec<Option<u32>> = (theirs.of().iter())
            .map(|class| labels.names().iter().position(|n| n == theirs.name(*class)))
            .map(|class| class.map(|class| class as u32))
            .collect();
        assert!(classes.contains(&None));
        let rows = RowBuf::from_values(asking.corpus.rows().values().to_vec(), 5).unwrap();
        let batch = QueryBatch::plain(Space::SquaredL2, &rows).unwrap();
        let labelled = LabelledQueries::new(batch, classes, None).unwrap();
        let clusters: Vec<u64> = theirs.of().iter().map(|c| u64::from(*c)).collect();
        let keys = Keys::Class(labels.of());
        let found =
            evaluate_distributed(&set.corpus, keys, &labelled, &clusters, &options()).unwrap();
        let truth = AgainstGallery::new(&theirs, &labels);
        let (space, asking) = (Space::SquaredL2, &asking.corpus);
        let expected = evaluate(space, asking, &set.corpus, &truth, &options()).unwrap();
        assert!(expected.skipped > 0);
        assert_eq!(found.skipped, expected.skipped);
        close(&found, &expected);
    }

    /// Scores are about another centre, so that a rounding may turn two items around.
    fn close(found: &Evaluation, expected: &Evaluation) {
        assert_eq!(found.queries, expected.queries);
        for ((measure, a), (_, b)) in found.values.iter().zip(&expected.values) {
            let difference: f64 = a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum();
            assert!(
                difference / a.len() as f64 <= 1e-4,
                "{measure}: {difference}"
            );
        }
    }
}
