//! The counting pass: for every relevant item, how many other items lie nearer and how many tie.
//!
//! Neither the matrix of scores nor a sort of a row is needed. For a block of queries:
//!
//! 1. *Guess.* The relevant items of the block are gathered and scored by products of the same
//!    shape as all others. Queries are ordered by cluster, so that a block has few of them.
//! 2. *Count.* All items are scored, and their scores counted against the sorted relevant scores of
//!    each query ([`Thresholds`]). Scores of relevant and excluded items are taken from this pass,
//!    so that all comparisons are between numbers of the same products and ties are exact.
//! 3. *Settle.* Relevant and excluded items are taken out of the counts.
//!
//! Nothing rests on the guess: products of one shape give equal scores for equal rows on the
//! machines we know, but where a relevant score of step 2 differs from that of step 1, the block is
//! counted again with the scores now known.

use super::measure_values::{PlaceCounts, TieGroup};
use super::radix::sort_by_upper_half;
use super::thresholds::{ScoreRow, Space, Thresholds, best_width};
use super::truth::{Judged, Truth};
use crate::data::RowId;
use crate::linalg::RowBuf;
use crate::search::scores::{Items, QueryBlock, TILE, ordered, score_of};
use crate::{Error, Result};

/// Queries in a block. Fixed, so that results do not depend on the number of threads.
pub(super) const QUERIES: usize = 64;

/// Marks an item that is in no list.
const NOWHERE: u32 = u32::MAX;

/// Counts one block after another.
pub(super) struct Counting<'a> {
    items: &'a Items<'a>,
    tie_rank: Option<&'a [u32]>,
    /// Place of an item in `union`, or `NOWHERE`.
    place: Vec<u32>,
    /// Items that are relevant to a query of the block.
    union: Vec<RowId>,
    rows: RowBuf,
    products: Vec<f32>,
    queries: Vec<Query>,
    space: Space,
    scratch: Vec<u64>,
    /// Added to guesses, so that tests can make them wrong.
    #[cfg(test)]
    disturb: f32,
}

/// What is known of one query of the block.
#[derive(Default)]
struct Query {
    judged: Judged,
    /// Scores of the relevant items: first guessed, then exact.
    relevant: Vec<f32>,
    /// Whether a guess was wrong.
    is_surprised: bool,
    excluded: Vec<f32>,
    next_relevant: usize,
    next_excluded: usize,
    /// Relevant items from near to far: their score in the upper half, their place in the lower.
    order: Vec<u64>,
    thresholds: Thresholds,
    /// Items with the score of a relevant one; looked for only where an order of ties is given.
    tied: Vec<(u64, RowId)>,
}

impl<'a> Counting<'a> {
    pub(super) fn new(items: &'a Items<'a>, tie_rank: Option<&'a [u32]>) -> Self {
        Counting {
            items,
            tie_rank,
            place: vec![NOWHERE; items.len()],
            union: Vec::new(),
            rows: RowBuf::empty(items.dim()),
            products: Vec::new(),
            queries: Vec::new(),
            space: Space::default(),
            scratch: Vec::new(),
            #[cfg(test)]
            disturb: 0.0,
        }
    }

    /// Count for every query of the block and hand the counts on, in the block's order.
    pub(super) fn count(
        &mut self,
        block: &QueryBlock,
        truth: &dyn Truth,
        done: &mut dyn FnMut(u32, &PlaceCounts),
    ) -> Result<()> {
        self.queries.resize_with(block.ids().len(), Query::default);
        for (query, id) in self.queries.iter_mut().zip(block.ids()) {
            query.judged.clear();
            truth.judge(*id as usize, &mut query.judged);
            check(&query.judged, *id, self.items.len() as u64)?;
        }
        self.guess(block)?;
        loop {
            for query in &mut self.queries {
                query.start(&mut self.scratch);
            }
            let mut space = std::mem::take(&mut self.space);
            self.pass(block, |query, first, row| {
                query.take(first, row);
                query.thresholds.add(row, &mut space);
            })?;
            self.space = space;
            // The scores are exact now, so that there is no third time.
            if !self.queries.iter().any(|query| query.is_surprised) {
                break;
            }
        }
        let mut counts = PlaceCounts::default();
        match self.tie_rank {
            None => {
                for (query, id) in self.queries.iter_mut().zip(block.ids()) {
                    query.settle(self.items.len() as u64, &mut counts);
                    done(*id as u32, &counts);
                }
            }
            Some(ranks) => {
                if self.queries.iter_mut().any(Query::has_ties) {
                    self.pass(block, Query::find_tied)?;
                }
                for (query, id) in self.queries.iter_mut().zip(block.ids()) {
                    query.settle(self.items.len() as u64, &mut counts);
                    query.order_ties(ranks, &mut counts);
                    done(*id as u32, &counts);
                }
            }
        }
        Ok(())
    }

    /// Scores of the relevant items, before the others are known.
    fn guess(&mut self, block: &QueryBlock) -> Result<()> {
        self.union.clear();
        for query in &mut self.queries {
            for (item, _) in &query.judged.relevant {
                let place = &mut self.place[*item as usize];
                if *place == NOWHERE {
                    *place = 0;
                    self.union.push(*item);
                }
            }
            query.relevant.clear();
            query.relevant.resize(query.judged.relevant.len(), 0.0);
            query.next_relevant = 0;
        }
        // In the order of items, in which every query names its own.
        self.union.sort_unstable();
        for (place, item) in self.union.iter().enumerate() {
            self.place[*item as usize] = place as u32;
        }
        for (chunk, items) in self.union.chunks(TILE).enumerate() {
            self.items.gather(items, &mut self.rows)?;
            self.rows.reset(TILE, self.items.dim());
            self.items
                .products_with(block, self.rows.rows(), &mut self.products);
            let first = chunk * TILE;
            for (query, row) in self
                .queries
                .iter_mut()
                .zip(self.products.chunks_exact(TILE))
            {
                while let Some((item, _)) = query.judged.relevant.get(query.next_relevant)
                    && let Some(product) = row.get(self.place[*item as usize] as usize - first)
                {
                    let score = product + self.items.offset(*item);
                    // The pass refuses what is not finite; until it does, any other score serves.
                    let score = if score.is_finite() { score } else { 0.0 };
                    #[cfg(test)]
                    let score = score + self.disturb;
                    query.relevant[query.next_relevant] = score;
                    query.next_relevant += 1;
                }
            }
        }
        for item in &self.union {
            self.place[*item as usize] = NOWHERE;
        }
        Ok(())
    }

    /// Score all items and show every query that has relevant items its scores, from first to last
    /// item, with the number of the first item of each row.
    fn pass(
        &mut self,
        block: &QueryBlock,
        mut visit: impl FnMut(&mut Query, RowId, ScoreRow<'_>),
    ) -> Result<()> {
        let most = self.queries.iter().map(|query| query.relevant.len()).max();
        let run = best_width(most.unwrap_or(0)) / TILE;
        for first in (0..self.items.tiles()).step_by(run) {
            let tiles = first..self.items.tiles().min(first + run);
            let width = tiles.len() * TILE;
            self.items
                .products(block, tiles.clone(), &mut self.rows, &mut self.products)?;
            let start = first * TILE;
            let len = width.min(self.items.len() - start);
            let offsets = self.items.offsets(start..start + len);
            let rows = self.products.chunks_exact(width);
            for (query, row) in self.queries.iter_mut().zip(rows) {
                if !query.relevant.is_empty() {
                    visit(query, start as RowId, ScoreRow::new(row, offsets));
                }
            }
        }
        Ok(())
    }
}

impl Query {
    /// Make ready for a pass with the relevant scores as they are known.
    fn start(&mut self, scratch: &mut Vec<u64>) {
        self.is_surprised = false;
        self.next_relevant = 0;
        self.next_excluded = 0;
        self.excluded.clear();
        self.excluded.resize(self.judged.excluded.len(), 0.0);
        self.tied.clear();
        self.order.clear();
        let keys = self.relevant.iter().enumerate();
        self.order
            .extend(keys.map(|(place, score)| ordered(*score) << 32 | place as u64));
        sort_by_upper_half(&mut self.order, scratch);
        let groups = self.order.chunk_by(|a, b| a >> 32 == b >> 32);
        self.thresholds.set(groups.map(|group| score_of(group[0])));
    }

    /// Take the exact scores of this query's items out of a row that starts at item `first`.
    fn take(&mut self, first: RowId, row: ScoreRow<'_>) {
        let end = first + row.len() as RowId;
        while let Some((item, _)) = self.judged.relevant.get(self.next_relevant)
            && *item < end
        {
            let score = row.score((item - first) as usize);
            let known = &mut self.relevant[self.next_relevant];
            self.is_surprised |= *known != score;
            *known = score;
            self.next_relevant += 1;
        }
        while let Some(item) = self.judged.excluded.get(self.next_excluded)
            && *item < end
        {
            self.excluded[self.next_excluded] = row.score((item - first) as usize);
            self.next_excluded += 1;
        }
    }

    /// Turn counts of all items into counts of irrelevant items.
    fn settle(&mut self, items: u64, counts: &mut PlaceCounts) {
        counts.groups.clear();
        counts.grades.clear();
        counts.missing.clear();
        counts.irrelevant =
            items - (self.judged.relevant.len() + self.judged.excluded.len()) as u64;
        let place = |key: &u64| (key & 0xffff_ffff) as usize;
        let grades = self
            .order
            .iter()
            .map(|key| self.judged.relevant[place(key)].1);
        counts.grades.extend(grades);
        self.excluded.sort_unstable_by(f32::total_cmp);
        let (mut relevant_before, mut excluded_before) = (0, 0);
        let groups = self.order.chunk_by(|a, b| a >> 32 == b >> 32);
        for (group, count) in groups.zip(self.thresholds.finish()) {
            let (score, relevant) = (score_of(group[0]), group.len() as u64);
            let excluded = &self.excluded[excluded_before as usize..];
            let nearer = excluded.iter().take_while(|other| **other < score).count();
            let tied = excluded[nearer..]
                .iter()
                .take_while(|other| **other == score)
                .count();
            excluded_before += nearer as u64;
            counts.groups.push(TieGroup {
                nearer: count.below - relevant_before - excluded_before,
                tied: count.equal - relevant - tied as u64,
                relevant,
            });
            excluded_before += tied as u64;
            relevant_before += relevant;
        }
    }

    /// Whether a relevant item shares its score with any other item.
    fn has_ties(&mut self) -> bool {
        self.thresholds.finish().iter().any(|count| count.equal > 1)
    }

    /// Remember items whose score is that of a relevant item.
    fn find_tied(&mut self, first: RowId, row: ScoreRow<'_>) {
        let groups = self.order.chunk_by(|a, b| a >> 32 == b >> 32);
        for (group, count) in groups.zip(self.thresholds.finish()) {
            // A lone relevant item of its score has no order to settle.
            if count.equal > 1 {
                let score = score_of(group[0]);
                let found = row.iter().enumerate().filter(|(_, other)| *other == score);
                let found = found.map(|(place, _)| (group[0] >> 32, first + place as RowId));
                self.tied.extend(found);
            }
        }
    }

    /// Split groups into single items by the rank that orders ties.
    fn order_ties(&mut self, ranks: &[u32], counts: &mut PlaceCounts) {
        self.tied
            .sort_unstable_by_key(|(score, item)| (*score, ranks[*item as usize]));
        let mut tied = self.tied.chunk_by(|a, b| a.0 == b.0).peekable();
        let groups = std::mem::take(&mut counts.groups);
        let grades = std::mem::take(&mut counts.grades);
        let keys = self.order.chunk_by(|a, b| a >> 32 == b >> 32);
        let mut grade = grades.into_iter();
        for (group, key) in groups.into_iter().zip(keys) {
            let Some(items) = tied.next_if(|items| items[0].0 == key[0] >> 32) else {
                counts.groups.push(group);
                counts.grades.extend(grade.by_ref().take(1));
                continue;
            };
            // Grades are found again by item.
            grade.by_ref().take(group.relevant as usize).for_each(drop);
            let mut nearer = group.nearer;
            for (_, item) in items {
                let relevant = self.judged.relevant.binary_search_by_key(item, |(i, _)| *i);
                if let Ok(place) = relevant {
                    counts.groups.push(TieGroup {
                        nearer,
                        tied: 0,
                        relevant: 1,
                    });
                    counts.grades.push(self.judged.relevant[place].1);
                } else if self.judged.excluded.binary_search(item).is_err() {
                    nearer += 1;
                }
            }
        }
    }
}

/// Refuse a truth that breaks its promises, before anything is indexed with it.
pub(super) fn check(judged: &Judged, query: RowId, items: u64) -> Result<()> {
    let problem = |problem: String| {
        Err(Error::Row {
            row: query,
            problem,
        })
    };
    let relevant = || judged.relevant.iter().map(|(item, _)| *item);
    if !relevant().is_sorted_by(|a, b| a < b) || !judged.excluded.is_sorted_by(|a, b| a < b) {
        return problem("its relevant and excluded items must be increasing".into());
    }
    if let Some(item) = relevant().next_back().max(judged.excluded.last().copied())
        && item >= items
    {
        return problem(format!("names item {item}, but there are {items} items"));
    }
    let grades = || judged.relevant.iter().map(|(_, grade)| *grade);
    if let Some(grade) = grades().find(|grade| !(*grade > 0.0 && grade.is_finite())) {
        return problem(format!("expected grades above 0, but found {grade}"));
    }
    let is_relevant = |item: &&RowId| {
        judged
            .relevant
            .binary_search_by_key(*item, |(i, _)| *i)
            .is_ok()
    };
    if let Some(item) = judged.excluded.iter().find(is_relevant) {
        return problem(format!("item {item} is both relevant and excluded"));
    }
    Ok(())
}

#[cfg(test)]
#[path = "counts_tests.rs"]
mod tests;
