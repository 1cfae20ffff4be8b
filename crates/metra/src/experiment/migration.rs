//! May the embedding model be changed, and how? The same items and queries in the old space and in the new one are ranked in every
//! way that a change can be made, and each way is compared with staying.
//!
//! Maps between the spaces are learned from the items. No item is ranked by a map that was learned from it, nor is a row that is query and
//! item at once: most items of a full collection were not among those that a map is learned from, either.

use super::scores::Scores;
use crate::data::{BorrowedCorpus, Corpus, CorpusRef, MemoryCorpus, Subset};
use crate::evaluate::{Comparison, Measure, RankedQuery, Verdict};
use crate::linalg::RowBuf;
use crate::model::Space;
use crate::random::{Stream, dealt};
use crate::search::{Fusion, ScoreScale, ScoredItem, top_k};
use crate::training::Alignment;
use crate::training::fusion_weights::{ScaledQuery, fit_scaled};
use crate::{Error, Result};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Items of a ranking that are looked at; those behind them count as not found.
const DEPTH: usize = 1000;
/// First items of the new model that count as right where nothing is judged.
const AGREEING: usize = 10;
/// Parts of the queries, each of which is ranked by weights that were learned from the others.
const FOLDS: usize = 5;
/// A lesser change may lose this share of the best way's gain, at most: more must be ruled out by the interval.
const TOLERATED: f64 = 0.25;
/// Fewer queries say too little to advise on.
const FEWEST_QUERIES: usize = 10;

/// A way to change the embedding model, from the one that changes least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MigrationWay {
    /// Queries and items of the old model.
    Stay,
    /// Queries of the new model, mapped into the space of the old one, among the items as they are stored.
    MapQueries,
    /// Queries of the new model among the old items, mapped into the space of the new one.
    MapItems,
    /// The same with a part of the items embedded anew.
    EmbedPart,
    /// Queries and items of the new model.
    EmbedAll,
    /// Both models, their similarities added up by learned weights.
    Both,
}

impl fmt::Display for MigrationWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MigrationWay::Stay => "stay",
            MigrationWay::MapQueries => "map queries",
            MigrationWay::MapItems => "map items",
            MigrationWay::EmbedPart => "embed a part",
            MigrationWay::EmbedAll => "embed all",
            MigrationWay::Both => "use both",
        })
    }
}

/// What right answers to a query are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryTruth {
    /// Grades above 0 by item.
    pub grades: BTreeMap<u32, f32>,
    /// What the query belongs to: queries of one cluster rise and fall together.
    pub cluster: u64,
}

/// Queries in both spaces.
pub enum MigrationQueries<'a> {
    /// Rows of the items, which are not looked for themselves.
    Items(&'a [u64]),
    /// Other vectors: in the old space, and in the new one.
    Apart(&'a dyn Corpus, &'a dyn Corpus),
}

/// The same things in two spaces.
pub struct TwoSpaces<'a> {
    /// Items in the old space.
    pub old: &'a dyn Corpus,
    /// Items in the new space, in the same order.
    pub new: &'a dyn Corpus,
    /// Queries.
    pub queries: MigrationQueries<'a>,
    /// What is right for each query; without, it is what the new model ranks first.
    pub truth: Option<&'a [QueryTruth]>,
}

/// How the ways are compared.
#[derive(Debug, Clone)]
pub struct MigrationStudy {
    /// What is measured; the first one decides.
    pub measures: Vec<Measure>,
    /// How vectors are compared, in both spaces.
    pub space: Space,
    /// The part of the items that [`MigrationWay::EmbedPart`] embeds anew.
    pub share: f64,
    /// Seed of the folds, the part and the bootstrap.
    pub seed: u64,
}

/// One way with what it is worth.
pub struct WayFound {
    /// Which one.
    pub way: MigrationWay,
    /// Of all queries.
    pub scores: Scores,
    /// Its gain over staying by each measure; none for staying itself.
    pub gains: Vec<(Measure, Comparison)>,
    /// By the measure that decides, against embedding everything anew; none for that itself.
    pub against_all: Option<Comparison>,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MigrationAdvice {
    /// The least change that is better than staying and surely keeps three quarters of what the best way gains; or to stay.
    Choose(MigrationWay),
    /// Without judgements nobody knows which model is better.
    Unknown,
}

/// What a study found.
pub struct MigrationFound {
    /// The ways, from the one that changes least.
    pub ways: Vec<WayFound>,
    /// From the new space into the old one: for queries.
    pub query_map: Alignment,
    /// From the old space into the new one: for items.
    pub item_map: Alignment,
    /// What both models were added up by, old first, learned from all queries.
    pub weights: Option<Fusion>,
    /// What to do.
    pub advice: MigrationAdvice,
}

impl MigrationStudy {
    /// Rank the queries in every way.
    pub fn run(&self, data: &TwoSpaces<'_>) -> Result<MigrationFound> {
        let criterion = self.check(data)?;
        let (old, new) = (data.old, data.new);
        let query_map = Alignment::new(new, old, self.space, self.seed)?;
        let item_map = Alignment::new(old, new, self.space, self.seed)?;
        let mapped_items = BorrowedCorpus::new(item_map.mapped.rows())?;
        let partly_new = self.partly_new(new, &item_map.mapped)?;
        let mapped_queries = CorpusRef::Owned(match data.queries {
            MigrationQueries::Items(_) => Box::new(BorrowedCorpus::new(query_map.mapped.rows())?),
            MigrationQueries::Apart(_, new) => Box::new(query_map.map(new)?),
        });
        let (old_queries, new_queries) = match data.queries {
            MigrationQueries::Items(_) => (old, new),
            MigrationQueries::Apart(old, new) => (old, new),
        };
        let rank = |queries: &dyn Corpus, items: &dyn Corpus| match data.queries {
            MigrationQueries::Items(rows) => self.ranked(queries, items, Some(rows)),
            MigrationQueries::Apart(..) => self.ranked(queries, items, None),
        };
        let by_new = rank(new_queries, new)?;
        let truth: Cow<'_, [QueryTruth]> = match data.truth {
            Some(truth) => truth.into(),
            None => by_new.iter().enumerate().map(first_items).collect(),
        };
        let scores = |lists: Vec<Vec<ScoredItem>>| self.scores(lists, &truth);
        let by_old = rank(old_queries, old)?;
        let both = match data.truth {
            Some(_) => Some(self.both(&by_old, &by_new, &truth)?),
            None => None,
        };
        let mut found = vec![
            (MigrationWay::Stay, scores(by_old)?),
            (
                MigrationWay::MapQueries,
                scores(rank(&*mapped_queries, old)?)?,
            ),
            (
                MigrationWay::MapItems,
                scores(rank(new_queries, &mapped_items)?)?,
            ),
            (
                MigrationWay::EmbedPart,
                scores(rank(new_queries, &partly_new)?)?,
            ),
            (MigrationWay::EmbedAll, scores(by_new)?),
        ];
        let weights = both.map(|(scores, weights)| {
            found.push((MigrationWay::Both, scores));
            weights
        });
        let ways = self.compared(found, criterion)?;
        let advice = match data.truth {
            Some(_) => MigrationAdvice::Choose(self.choose(&ways, criterion)?),
            None => MigrationAdvice::Unknown,
        };
        // It borrows what is returned.
        drop(mapped_queries);
        Ok(MigrationFound {
            ways,
            query_map,
            item_map,
            weights,
            advice,
        })
    }

    fn check(&self, data: &TwoSpaces<'_>) -> Result<Measure> {
        if !(self.share > 0.0 && self.share < 1.0) {
            return Err(Error::parameter("share", "between 0 and 1", self.share));
        }
        let queries = match data.queries {
            MigrationQueries::Items(rows) => rows.len(),
            MigrationQueries::Apart(old, new) if old.len() == new.len() => old.len() as usize,
            MigrationQueries::Apart(old, new) => {
                let what = "queries in both spaces";
                return Err(Error::shape(what, old.len(), new.len()));
            }
        };
        if queries < FEWEST_QUERIES {
            let expected = format!("at least {FEWEST_QUERIES}");
            return Err(Error::shape("queries", expected, queries));
        }
        if let Some(truth) = data.truth.filter(|truth| truth.len() != queries) {
            let what = "queries with judgements";
            return Err(Error::shape(what, queries, truth.len()));
        }
        let first = self.measures.first().copied();
        first.ok_or_else(|| Error::shape("measures", "at least 1", 0))
    }

    /// The items of the new space, of which all but a part drawn at random are replaced by old ones that were mapped.
    fn partly_new(&self, new: &dyn Corpus, mapped: &RowBuf) -> Result<MemoryCorpus> {
        let mut rows = mapped.clone();
        let count = (self.share * rows.len() as f64).round() as usize;
        let anew = Stream::new(self.seed, "items embedded anew", 0).choose(new.len(), count);
        let mut found = RowBuf::empty(new.dim());
        new.gather(&anew, &mut found)?;
        for (row, values) in anew.into_iter().zip(found.rows().iter()) {
            rows.row_mut(row as usize).copy_from_slice(values);
        }
        MemoryCorpus::new(rows)
    }

    /// The first items of every query; a query that is an item is no answer to itself.
    fn ranked(
        &self,
        queries: &dyn Corpus,
        items: &dyn Corpus,
        own: Option<&[u64]>,
    ) -> Result<Vec<Vec<ScoredItem>>> {
        let found = match own {
            Some(rows) => {
                let queries = Subset::new(queries, rows.to_vec())?;
                top_k(self.space, &queries, items, DEPTH + 1, false)?
            }
            None => top_k(self.space, queries, items, DEPTH, false)?,
        };
        let list = |query: usize| {
            let own = own.map(|rows| rows[query]);
            let hits = found.ids_of(query).iter().zip(found.scores_of(query));
            hits.filter(|(item, _)| Some(**item) != own)
                .take(DEPTH)
                .map(|(item, score)| (*item as u32, -f64::from(*score)))
                .collect()
        };
        Ok((0..found.queries()).map(list).collect())
    }

    fn scores(&self, lists: Vec<Vec<ScoredItem>>, truth: &[QueryTruth]) -> Result<Scores> {
        let alone = |(list, truth): (Vec<ScoredItem>, &QueryTruth)| {
            let query = ScaledQuery::new(&[list], &truth.grades, ScoreScale::Raw);
            query.ranked(&[1.0], truth.cluster)
        };
        self.evaluated(lists.into_iter().zip(truth).map(alone).collect(), truth)
    }

    fn evaluated(&self, ranked: Vec<RankedQuery>, truth: &[QueryTruth]) -> Result<Scores> {
        let numbers: Vec<u64> = (0..truth.len() as u64).collect();
        let cluster = |query: u64| truth[query as usize].cluster;
        Scores::of_rankings(&numbers, cluster, &ranked, &self.measures)
    }

    /// Both models, with every query ranked by weights that were learned from others; and weights learned from all.
    fn both(
        &self,
        old: &[Vec<ScoredItem>],
        new: &[Vec<ScoredItem>],
        truth: &[QueryTruth],
    ) -> Result<(Scores, Fusion)> {
        // Similarities as they are: a weighted sum of them is one search among vectors put together.
        let scale = ScoreScale::Raw;
        let joined = old.iter().zip(new).zip(truth).map(|((old, new), truth)| {
            ScaledQuery::new(&[old.clone(), new.clone()], &truth.grades, scale)
        });
        let joined: Vec<ScaledQuery> = joined.collect();
        // Where no list has anything right near its top, no weights are better than others.
        let fit = |queries: Vec<usize>| {
            let queries = queries.into_iter().map(|query| &joined[query]);
            match fit_scaled(queries, scale, 2) {
                Err(Error::Data(_)) => Fusion::equal(scale, 2),
                fitted => fitted,
            }
        };
        let fold_of = Stream::new(self.seed, "migration folds", 0).deal(joined.len(), FOLDS);
        let mut ranked = vec![RankedQuery::default(); joined.len()];
        for fold in 0..FOLDS {
            let fusion = fit(dealt(&fold_of, fold, false))?;
            for query in dealt(&fold_of, fold, true) {
                let whole = joined[query].ranked(fusion.weights(), truth[query].cluster);
                ranked[query] = first_of(whole);
            }
        }
        let weights = fit((0..joined.len()).collect())?;
        Ok((self.evaluated(ranked, truth)?, weights))
    }

    fn compared(
        &self,
        found: Vec<(MigrationWay, Scores)>,
        criterion: Measure,
    ) -> Result<Vec<WayFound>> {
        let of = |wanted: MigrationWay| {
            let found = found.iter().find(|(way, _)| *way == wanted);
            found.map(|(_, scores)| scores.clone())
        };
        let (stay, all) = (of(MigrationWay::Stay), of(MigrationWay::EmbedAll));
        let mut ways = Vec::with_capacity(found.len());
        for (way, scores) in found {
            let mut gains = Vec::new();
            for measure in self.measures.iter().filter(|_| way != MigrationWay::Stay) {
                if let Some(stay) = &stay {
                    gains.push((*measure, scores.against(stay, *measure, self.seed)?));
                }
            }
            let against_all = match &all {
                Some(all) if way != MigrationWay::EmbedAll => {
                    Some(scores.against(all, criterion, self.seed)?)
                }
                _ => None,
            };
            ways.push(WayFound {
                way,
                scores,
                gains,
                against_all,
            });
        }
        Ok(ways)
    }

    /// Both models at once cost twice as much for ever: that is no change that somebody asked about, and is not advised here.
    fn choose(&self, ways: &[WayFound], criterion: Measure) -> Result<MigrationWay> {
        let helps = |found: &&WayFound| {
            let gain = found
                .gains
                .iter()
                .find(|(measure, _)| *measure == criterion);
            found.way != MigrationWay::Both
                && gain.is_some_and(|(_, gain)| gain.verdict() == Verdict::Better)
        };
        let mean = |found: &WayFound| found.scores.mean(criterion);
        let helping: Vec<&WayFound> = ways.iter().filter(helps).collect();
        let best = helping.iter().max_by(|a, b| mean(a).total_cmp(&mean(b)));
        let Some(best) = best else {
            return Ok(MigrationWay::Stay);
        };
        let stay = ways.iter().find(|found| found.way == MigrationWay::Stay);
        let gain = mean(best) - stay.map_or(0.0, mean);
        for found in &helping {
            let loss = found.scores.against(&best.scores, criterion, self.seed)?;
            if found.way == best.way || loss.low >= -TOLERATED * gain {
                return Ok(found.way);
            }
        }
        Ok(best.way)
    }
}

/// The first items of a ranking; the others were not found.
fn first_of(mut ranked: RankedQuery) -> RankedQuery {
    if ranked.items.len() > DEPTH {
        ranked.items.sort_by(|a, b| a.score.total_cmp(&b.score));
        let behind = ranked.items.split_off(DEPTH);
        ranked
            .missing
            .extend(behind.iter().filter_map(|item| item.grade));
    }
    ranked
}

/// What the new model ranks first, taken for right.
fn first_items((number, list): (usize, &Vec<ScoredItem>)) -> QueryTruth {
    QueryTruth {
        grades: list
            .iter()
            .take(AGREEING)
            .map(|(item, _)| (*item, 1.0))
            .collect(),
        cluster: number as u64,
    }
}

#[cfg(test)]
#[path = "migration_tests.rs"]
mod tests;
