//! Graded relevance of items to queries, as search engineers keep it (qrels).
//!
//! It is neither symmetric nor transitive. What is not judged counts as irrelevant, as trec_eval
//! has it, unless a learner draws its negatives from what was judged alone (see `training::irrelevant`).

use super::relevance::{Pool, Relevance};
use crate::data::RowId;
use crate::{Error, Result};

/// One line: an item's grade for a query. A grade of 0 or less means judged irrelevant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// Row of the query in the query corpus.
    pub query: RowId,
    /// Row of the item in the item corpus.
    pub item: RowId,
    /// The grade.
    pub grade: f32,
}

/// Judgements between a query corpus and an item corpus, or within one corpus.
#[derive(Debug, Clone)]
pub struct Judgements {
    items: u64,
    within: bool,
    /// Relevant items with their grades.
    relevant: QueryLists<(RowId, f32)>,
    /// Items judged irrelevant.
    irrelevant: QueryLists<RowId>,
}

/// A list a query, one after the other, increasing by item.
#[derive(Debug, Clone)]
struct QueryLists<T> {
    /// Those of query q: `values[starts[q]..starts[q + 1]]`.
    starts: Vec<u64>,
    values: Vec<T>,
}

impl<T: Copy> QueryLists<T> {
    /// Of lines that are sorted by query.
    fn of_sorted(queries: u64, lines: &[(RowId, T)]) -> Self {
        let mut starts = vec![0_u64; queries as usize + 1];
        for (query, _) in lines {
            starts[*query as usize + 1] += 1;
        }
        for query in 0..queries as usize {
            starts[query + 1] += starts[query];
        }
        let values = lines.iter().map(|(_, value)| *value).collect();
        QueryLists { starts, values }
    }

    fn of(&self, query: RowId) -> &[T] {
        let query = query as usize;
        &self.values[self.starts[query] as usize..self.starts[query + 1] as usize]
    }

    /// The lists of these queries, in this order; an empty one for `None`.
    fn chosen(&self, queries: impl Iterator<Item = Option<RowId>>) -> Self {
        let (mut starts, mut values) = (vec![0], Vec::new());
        for query in queries {
            if let Some(query) = query {
                values.extend_from_slice(self.of(query));
            }
            starts.push(values.len() as u64);
        }
        QueryLists { starts, values }
    }
}

impl Judgements {
    /// Judgements of items for queries in another corpus.
    pub fn new(queries: u64, items: u64, lines: &[Judgement]) -> Result<Self> {
        Self::build(queries, items, false, lines)
    }

    /// Judgements between rows of one corpus. A row judged relevant to itself is left out.
    pub fn within_one(rows: u64, lines: &[Judgement]) -> Result<Self> {
        Self::build(rows, rows, true, lines)
    }

    fn build(queries: u64, items: u64, within: bool, lines: &[Judgement]) -> Result<Self> {
        let (mut relevant, mut irrelevant) = (Vec::with_capacity(lines.len()), Vec::new());
        for (number, line) in lines.iter().enumerate() {
            if line.query >= queries || line.item >= items {
                return Err(Error::Row {
                    row: number as u64,
                    problem: format!(
                        "judges query {} and item {}, but there are {queries} queries and {items} \
                         items",
                        line.query, line.item
                    ),
                });
            }
            if !line.grade.is_finite() {
                return Err(Error::Row {
                    row: number as u64,
                    problem: format!("expected a finite grade, but found {}", line.grade),
                });
            }
            if within && line.query == line.item {
                continue;
            }
            if line.grade > 0.0 {
                relevant.push((line.query, (line.item, line.grade)));
            } else {
                irrelevant.push((line.query, line.item));
            }
        }
        let twice = |query: RowId, item: RowId| {
            Error::Data(format!("query {query} and item {item} are judged twice"))
        };
        relevant.sort_by_key(|(query, (item, _))| (*query, *item));
        let key = |line: &(RowId, (RowId, f32))| (line.0, line.1.0);
        if let Some(pair) = relevant.windows(2).find(|w| key(&w[0]) == key(&w[1])) {
            return Err(twice(pair[0].0, pair[0].1.0));
        }
        irrelevant.sort_unstable();
        irrelevant.dedup();
        let relevant = QueryLists::of_sorted(queries, &relevant);
        let judgements = Judgements {
            items,
            within,
            relevant,
            irrelevant: QueryLists::of_sorted(queries, &irrelevant),
        };
        let both = |line: &&(RowId, RowId)| judgements.is_relevant(line.0, line.1);
        match irrelevant.iter().find(both) {
            Some((query, item)) => Err(twice(*query, *item)),
            None => Ok(judgements),
        }
    }

    /// Relevant items of a query with their grades, increasing by item.
    pub fn of(&self, query: RowId) -> &[(RowId, f32)] {
        self.relevant.of(query)
    }

    /// Items judged irrelevant to a query, increasing.
    pub fn irrelevant_to(&self, query: RowId) -> &[RowId] {
        self.irrelevant.of(query)
    }

    /// How many pairs of a query and an item were judged irrelevant.
    pub fn irrelevant_pairs(&self) -> u64 {
        self.irrelevant.values.len() as u64
    }

    /// The judgements of some queries, renumbered 0, 1, …; the items stay.
    pub(crate) fn select_queries(&self, queries: &[RowId]) -> Result<Self> {
        if self.within {
            return Err(Error::Data(
                "queries cannot be renumbered where they are items too: restrict the judgements"
                    .into(),
            ));
        }
        let chosen = || queries.iter().map(|query| Some(*query));
        Ok(Judgements {
            items: self.items,
            within: false,
            relevant: self.relevant.chosen(chosen()),
            irrelevant: self.irrelevant.chosen(chosen()),
        })
    }

    /// The same queries and items, with nothing judged for queries other than these.
    pub(crate) fn restricted_to(&self, queries: &[RowId]) -> Self {
        let mut kept = vec![None; self.queries() as usize];
        for query in queries {
            if let Some(kept) = kept.get_mut(*query as usize) {
                *kept = Some(*query);
            }
        }
        Judgements {
            items: self.items,
            within: self.within,
            relevant: self.relevant.chosen(kept.iter().copied()),
            irrelevant: self.irrelevant.chosen(kept.iter().copied()),
        }
    }

    /// Which items are relevant to some query.
    pub(crate) fn judged_items(&self) -> Vec<bool> {
        let mut seen = vec![false; self.items as usize];
        for (item, _) in &self.relevant.values {
            seen[*item as usize] = true;
        }
        seen
    }

    pub(super) fn hash(&self, hasher: &mut blake3::Hasher) {
        hasher.update(b"judgements");
        hasher.update(&[u8::from(self.within)]);
        hasher.update(bytemuck::cast_slice(&self.relevant.starts));
        for (item, grade) in &self.relevant.values {
            hasher.update(&item.to_le_bytes());
            hasher.update(&grade.to_le_bytes());
        }
        if !self.irrelevant.values.is_empty() {
            hasher.update(b"irrelevant");
            hasher.update(bytemuck::cast_slice(&self.irrelevant.starts));
            hasher.update(bytemuck::cast_slice(&self.irrelevant.values));
        }
    }
}

impl Relevance for Judgements {
    fn queries(&self) -> u64 {
        self.relevant.starts.len() as u64 - 1
    }

    fn items(&self) -> u64 {
        self.items
    }

    fn within(&self) -> bool {
        self.within
    }

    fn pairs(&self) -> u64 {
        self.relevant.values.len() as u64
    }

    fn pair(&self, number: u64) -> (RowId, RowId) {
        let starts = &self.relevant.starts;
        let query = starts.partition_point(|start| *start <= number) - 1;
        (query as RowId, self.relevant.values[number as usize].0)
    }

    fn relevant_count(&self, query: RowId) -> u64 {
        self.of(query).len() as u64
    }

    fn is_relevant(&self, query: RowId, item: RowId) -> bool {
        self.of(query)
            .binary_search_by_key(&item, |(i, _)| *i)
            .is_ok()
    }

    fn relevant(&self, query: RowId, out: &mut Vec<(RowId, f32)>) {
        out.extend_from_slice(self.of(query));
    }

    fn pool_key(&self, item: RowId) -> u64 {
        item
    }

    fn visit_pool(&self, query: RowId, pool: &Pool, visit: &mut dyn FnMut(usize)) {
        for (item, _) in self.of(query) {
            pool.places(*item).for_each(&mut *visit);
        }
        if self.within {
            pool.places(query).for_each(visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(query: RowId, item: RowId, grade: f32) -> Judgement {
        Judgement { query, item, grade }
    }

    #[test]
    fn pairs_follow_the_lines() {
        let lines = [
            line(2, 5, 1.0),
            line(0, 3, 2.0),
            line(2, 1, 3.0),
            line(1, 1, 0.0),
        ];
        let judged = Judgements::new(3, 6, &lines).unwrap();
        assert_eq!(judged.pairs(), 3);
        let pairs: Vec<_> = (0..3).map(|n| judged.pair(n)).collect();
        assert_eq!(pairs, vec![(0, 3), (2, 1), (2, 5)]);
        assert!(!judged.is_relevant(1, 1));
        assert_eq!(
            (judged.irrelevant_to(1), judged.irrelevant_pairs()),
            (&[1][..], 1)
        );
        assert!(judged.restricted_to(&[2]).irrelevant_to(1).is_empty());
        assert_eq!(
            judged.select_queries(&[2, 1]).unwrap().irrelevant_to(1),
            [1]
        );
        assert_eq!(judged.irrelevant_count(2), 4);
        assert_eq!(judged.select_queries(&[2]).unwrap().pair(0), (0, 1));
    }

    #[test]
    fn within_one_corpus_self_is_excluded_and_direction_matters() {
        let lines = [line(0, 0, 1.0), line(0, 1, 1.0), line(1, 2, 1.0)];
        let judged = Judgements::within_one(3, &lines).unwrap();
        assert_eq!(judged.pairs(), 2);
        assert!(judged.is_relevant(0, 1) && !judged.is_relevant(1, 0));
        assert!(!judged.is_relevant(0, 0) && !judged.is_relevant(0, 2));
        assert_eq!(judged.irrelevant_count(0), 1);
        let part = judged.restricted_to(&[1]);
        assert_eq!((part.queries(), part.pairs(), part.pair(0)), (3, 1, (1, 2)));
        assert!(part.within() && part.of(0).is_empty());
        let mut pool = Pool::default();
        pool.fill(&judged, [0, 1, 2, 1].into_iter());
        let mut found = Vec::new();
        judged.visit_pool(0, &pool, &mut |p| found.push(p));
        assert_eq!(found, vec![1, 3, 0]);
    }

    #[test]
    fn bad_lines_are_named() {
        assert!(Judgements::new(1, 1, &[line(0, 1, 1.0)]).is_err());
        assert!(Judgements::new(1, 1, &[line(0, 0, f32::NAN)]).is_err());
        let twice = Judgements::new(1, 1, &[line(0, 0, 1.0), line(0, 0, 2.0)]);
        assert_eq!(
            twice.unwrap_err().to_string(),
            "query 0 and item 0 are judged twice"
        );
        let both = Judgements::new(1, 1, &[line(0, 0, 0.0), line(0, 0, 1.0)]);
        assert!(both.is_err());
        let again = Judgements::new(1, 1, &[line(0, 0, 0.0), line(0, 0, -1.0)]);
        assert_eq!(again.unwrap().irrelevant_pairs(), 1);
    }
}
