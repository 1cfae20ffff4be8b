//! The counting pass: for every relevant item, how many other items lie nearer and how many tie.
//!
//! Neither the matrix of scores nor a sort of a row is needed. For a block of queries:
//!
//! 1. *Guess.* The relevant items of the block are gathered and scored by one product. Per query
//!    this gives the range of relevant scores, which is cut into equal bins, and the bins that hold
//!    a relevant score (give or take the rounding of another product) are marked.
//! 2. *Count.* Tiles of items are scored. Every score raises the count of its bin; only those in
//!    marked bins, a few per cent, are listed. Scores of relevant and excluded items are taken
//!    from the tile itself, so that all comparisons are between numbers of the same product and
//!    ties are exact.
//! 3. *Settle.* Unmarked bins lie wholly before or behind each relevant score; listed scores are
//!    compared one by one. Excluded items are taken out again.
//!
//! A guess need not be right: if a relevant score turns out to lie in an unmarked bin, the block is
//! counted again with the scores now known, which are exact. Time is that of the products plus
//! about two machine cycles a score.

use super::measures::{PlaceCounts, TieGroup};
use super::truth::{Judged, Truth};
use crate::data::RowId;
use crate::linalg::{RowBuf, vectorized};
use crate::search::scores::{Items, QueryBlock, TILE, ordered, score_of};
use crate::{Error, Result};

/// Queries in a block. Fixed, so that results do not depend on the number of threads.
pub(super) const QUERIES: usize = 64;

/// Bins for each relevant item: with more of them fewer scores are listed, with fewer of them they
/// stay in the first-level cache.
const BINS_A_RELEVANT: usize = 8;
const LEAST_BINS: usize = 1024;
const MOST_BINS: usize = 1 << 16;

/// Set in the count of a bin that may hold a relevant score.
const MARK: u32 = 1 << 31;

/// Adding 2^23 leaves the nearest whole number in the low bits of an f32.
const WHOLE: f32 = 8_388_608.0;

const NOWHERE: u32 = u32::MAX;

/// Scratch space for counting one block after another.
pub(super) struct Counting<'a> {
    items: &'a Items<'a>,
    tie_rank: Option<&'a [u32]>,
    /// Place of an item in `union`, or `NOWHERE`.
    place: Vec<u32>,
    union: Vec<RowId>,
    rows: RowBuf,
    products: Vec<f32>,
    queries: Vec<Query>,
    /// Added to guesses, so that tests can make them wrong.
    #[cfg(test)]
    pub(super) disturb: f32,
}

/// What is known of one query of the block.
#[derive(Default)]
struct Query {
    judged: Judged,
    /// Scores of the relevant items: first guessed, then exact.
    relevant: Vec<f32>,
    excluded: Vec<f32>,
    next_relevant: usize,
    next_excluded: usize,
    scale: Scale,
    bins: Vec<u32>,
    /// Keys of scores in marked bins.
    listed: Vec<u64>,
}

/// Equal bins over the range of relevant scores.
#[derive(Clone, Copy, Default)]
struct Scale {
    low: f32,
    /// Bins a unit of score.
    density: f32,
    /// The last bin.
    last: f32,
}

impl Scale {
    /// The bin of a score. It never falls as the score rises, whatever is rounded, and that is all
    /// that counting rests on.
    #[inline(always)]
    fn bin(self, score: f32) -> u32 {
        // Two bins at each end take what lies outside the range.
        let place = ((score - self.low) * self.density + 2.0)
            .max(0.0)
            .min(self.last);
        (place + WHOLE).to_bits() & 0xffff
    }
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
        // The rounding of two products of different shapes may differ; four units in the last
        // place of the largest number in the sum are enough nearly always.
        let largest = self.items.largest();
        let rounding = |place: usize| {
            let length = block.squared(place).sqrt();
            ((2.0 * length + largest) * largest * f64::from(2.0 * f32::EPSILON)) as f32
        };
        for (place, query) in self.queries.iter_mut().enumerate() {
            query.mark(rounding(place));
        }
        self.pass(block)?;
        if !self.queries.iter().all(Query::is_covered) {
            for query in &mut self.queries {
                query.mark(0.0);
            }
            self.pass(block)?;
        }
        let mut counts = PlaceCounts::default();
        for (query, id) in self.queries.iter_mut().zip(block.ids()) {
            query.settle(self.items.len() as u64, self.tie_rank, &mut counts);
            done(*id as u32, &counts);
        }
        Ok(())
    }

    /// Approximate scores of the relevant items.
    fn guess(&mut self, block: &QueryBlock) -> Result<()> {
        self.union.clear();
        for query in &self.queries {
            for (item, _) in &query.judged.relevant {
                let place = &mut self.place[*item as usize];
                if *place == NOWHERE {
                    *place = self.union.len() as u32;
                    self.union.push(*item);
                }
            }
        }
        for query in &mut self.queries {
            query.relevant.clear();
            query.relevant.resize(query.judged.relevant.len(), 0.0);
        }
        for (chunk, items) in self.union.chunks(TILE).enumerate() {
            self.items.gather(items, &mut self.rows)?;
            self.items
                .products_with(block, self.rows.rows(), &mut self.products);
            let first = (chunk * TILE) as u32;
            let rows = self.products.chunks_exact(items.len());
            for (query, row) in self.queries.iter_mut().zip(rows) {
                for (score, (item, _)) in query.relevant.iter_mut().zip(&query.judged.relevant) {
                    let place = self.place[*item as usize].wrapping_sub(first) as usize;
                    if let Some(product) = row.get(place) {
                        *score = product + self.items.offset(*item);
                        #[cfg(test)]
                        {
                            *score += self.disturb;
                        }
                    }
                }
            }
        }
        for item in &self.union {
            self.place[*item as usize] = NOWHERE;
        }
        Ok(())
    }

    /// Score all tiles, count, list and take the exact scores of relevant and excluded items.
    fn pass(&mut self, block: &QueryBlock) -> Result<()> {
        let mut found = [0_u16; TILE];
        let mut places = [0_u16; TILE];
        for tile in 0..self.items.tiles() {
            self.items
                .products(block, tile, &mut self.rows, &mut self.products)?;
            let len = self.items.tile_len(tile);
            let offsets = &self.items.tile_offsets(tile)[..len];
            let first = (tile * TILE) as RowId;
            for (query, row) in self
                .queries
                .iter_mut()
                .zip(self.products.chunks_exact_mut(TILE))
            {
                if query.judged.relevant.is_empty() {
                    continue;
                }
                let row = &mut row[..len];
                let count = raise(
                    row,
                    offsets,
                    query.scale,
                    &mut query.bins,
                    &mut places,
                    &mut found,
                );
                query.take(first, row);
                let listed = found[..count].iter().map(|place| {
                    let rank = self
                        .tie_rank
                        .map_or(0, |ranks| ranks[first as usize + usize::from(*place)]);
                    ordered(row[usize::from(*place)]) << 32 | u64::from(rank)
                });
                query.listed.extend(listed);
            }
        }
        Ok(())
    }
}

/// Turn a row of products into scores, raise the count of each score's bin, and write the places of
/// scores in marked bins to `found`; returns their number.
fn raise(
    row: &mut [f32],
    offsets: &[f32],
    scale: Scale,
    bins: &mut [u32],
    places: &mut [u16; TILE],
    found: &mut [u16; TILE],
) -> usize {
    vectorized(
        #[inline(always)]
        || {
            for ((product, offset), place) in row.iter_mut().zip(offsets).zip(places.iter_mut()) {
                *product += offset;
                *place = scale.bin(*product) as u16;
            }
        },
    );
    match bins.len() {
        0x0400 => raise_bins::<0x0400>(&places[..row.len()], bins, found),
        0x0800 => raise_bins::<0x0800>(&places[..row.len()], bins, found),
        0x1000 => raise_bins::<0x1000>(&places[..row.len()], bins, found),
        0x2000 => raise_bins::<0x2000>(&places[..row.len()], bins, found),
        0x4000 => raise_bins::<0x4000>(&places[..row.len()], bins, found),
        0x8000 => raise_bins::<0x8000>(&places[..row.len()], bins, found),
        _ => raise_bins::<0x10000>(&places[..row.len()], bins, found),
    }
}

/// The number of bins is a constant here, so that no index needs a check: this is the one loop over
/// all scores that cannot be vectorised.
fn raise_bins<const BINS: usize>(
    places: &[u16],
    bins: &mut [u32],
    found: &mut [u16; TILE],
) -> usize {
    let Ok(bins) = <&mut [u32; BINS]>::try_from(bins) else {
        return 0;
    };
    // Two loops: where a mark is written must not depend on a count just read, or every read would
    // wait for the write before it.
    let mut marks = [0_u8; TILE];
    for (mark, bin) in marks.iter_mut().zip(places) {
        let slot = &mut bins[usize::from(*bin) & (BINS - 1)];
        *mark = (*slot >> 31) as u8;
        *slot = slot.wrapping_add(1);
    }
    let mut count = 0_usize;
    for (place, mark) in marks.iter().enumerate() {
        // Written always, kept only where the bin is marked: no branch to guess wrong.
        found[count & (TILE - 1)] = place as u16;
        count += usize::from(*mark);
    }
    count
}

impl Query {
    /// Lay out bins over the known scores and mark those within `rounding` of one.
    fn mark(&mut self, rounding: f32) {
        let wanted = (self.relevant.len() * BINS_A_RELEVANT).next_power_of_two();
        let bins = wanted.clamp(LEAST_BINS, MOST_BINS);
        self.bins.clear();
        self.bins.resize(bins, 0);
        self.listed.clear();
        self.next_relevant = 0;
        self.next_excluded = 0;
        self.excluded.clear();
        self.excluded.resize(self.judged.excluded.len(), 0.0);
        let low = self.relevant.iter().copied().fold(f32::INFINITY, f32::min);
        let high = self
            .relevant
            .iter()
            .copied()
            .fold(f32::NEG_INFINITY, f32::max);
        // A bin is not narrower than the rounding, or one score would mark many.
        let width = ((high - low) / (bins - 4) as f32)
            .max(rounding)
            .max(f32::MIN_POSITIVE * 1e6);
        self.scale = Scale {
            low,
            density: 1.0 / width,
            last: (bins - 1) as f32,
        };
        for score in &self.relevant {
            let first = self.scale.bin(score - rounding);
            for bin in first..=self.scale.bin(score + rounding) {
                self.bins[bin as usize] = MARK;
            }
        }
    }

    /// Take the exact scores of this query's items out of a row that starts at item `first`.
    fn take(&mut self, first: RowId, row: &[f32]) {
        let end = first + row.len() as RowId;
        while let Some((item, _)) = self.judged.relevant.get(self.next_relevant)
            && *item < end
        {
            self.relevant[self.next_relevant] = row[(item - first) as usize];
            self.next_relevant += 1;
        }
        while let Some(item) = self.judged.excluded.get(self.next_excluded)
            && *item < end
        {
            self.excluded[self.next_excluded] = row[(item - first) as usize];
            self.next_excluded += 1;
        }
    }

    /// Whether every relevant score lies in a marked bin, as the listing supposed.
    fn is_covered(&self) -> bool {
        let marked = |score: &f32| self.bins[self.scale.bin(*score) as usize] & MARK != 0;
        self.relevant.iter().all(marked)
    }

    /// Turn bins and lists into counts before and among the relevant scores.
    fn settle(&mut self, items: u64, tie_rank: Option<&[u32]>, counts: &mut PlaceCounts) {
        counts.groups.clear();
        counts.grades.clear();
        counts.missing.clear();
        counts.irrelevant =
            items - (self.judged.relevant.len() + self.judged.excluded.len()) as u64;
        let key = |score: f32, item: RowId| {
            let rank = tie_rank.map_or(0, |ranks| ranks[item as usize]);
            ordered(score) << 32 | u64::from(rank)
        };
        let mut relevant: Vec<(u64, f32)> = self
            .relevant
            .iter()
            .zip(&self.judged.relevant)
            .map(|(score, (item, grade))| (key(*score, *item), *grade))
            .collect();
        relevant.sort_unstable_by_key(|(key, _)| *key);
        let mut keys: Vec<u64> = Vec::with_capacity(relevant.len());
        for group in relevant.chunk_by(|a, b| a.0 == b.0) {
            keys.push(group[0].0);
            counts.grades.extend(group.iter().map(|(_, grade)| *grade));
            counts.groups.push(TieGroup {
                nearer: 0,
                tied: 0,
                relevant: group.len() as u64,
            });
        }
        // between[i]: items behind key i − 1 and before key i; at[i]: items at key i.
        let mut between = vec![0_i64; keys.len() + 1];
        let mut at = vec![0_i64; keys.len()];
        // From here on a bin holds the number of keys in bins before it.
        let mut start = 0;
        for (number, key) in keys.iter().enumerate() {
            let end = self.scale.bin(score_of(*key)) as usize;
            if end >= start {
                between[number] += unmarked(&mut self.bins[start..=end], number as u32);
                start = end + 1;
            }
        }
        between[keys.len()] += unmarked(&mut self.bins[start..], keys.len() as u32);
        let find = |key: u64| {
            let bin = self.scale.bin(score_of(key)) as usize;
            let first = self.bins[bin] as usize;
            let end = self
                .bins
                .get(bin + 1)
                .map_or(keys.len(), |next| *next as usize);
            let number = first + keys[first..end].partition_point(|known| *known < key);
            (number, keys.get(number) == Some(&key))
        };
        for key in &self.listed {
            match find(*key) {
                (number, true) => at[number] += 1,
                (number, false) => between[number] += 1,
            }
        }
        for (score, item) in self.excluded.iter().zip(&self.judged.excluded) {
            match find(key(*score, *item)) {
                (number, true) => at[number] -= 1,
                (number, false) => between[number] -= 1,
            }
        }
        let mut nearer = 0;
        for (group, (between, at)) in counts.groups.iter_mut().zip(between.iter().zip(&at)) {
            nearer += *between as u64;
            group.nearer = nearer;
            group.tied = *at as u64 - group.relevant;
            nearer += group.tied;
        }
    }
}

/// Sum of the counts of unmarked bins; each bin is then overwritten.
fn unmarked(bins: &mut [u32], number: u32) -> i64 {
    vectorized(
        #[inline(always)]
        || {
            let mut sum = 0_u64;
            for bin in bins {
                sum += u64::from(if *bin & MARK == 0 { *bin } else { 0 });
                *bin = number;
            }
            sum as i64
        },
    )
}

/// Refuse a truth that breaks its promises, before anything is indexed with it.
fn check(judged: &Judged, query: RowId, items: u64) -> Result<()> {
    let problem = |problem: String| {
        Err(Error::Row {
            row: query,
            problem,
        })
    };
    let relevant = || judged.relevant.iter().map(|(item, _)| *item);
    let increasing =
        relevant().is_sorted_by(|a, b| a < b) && judged.excluded.is_sorted_by(|a, b| a < b);
    if !increasing {
        return problem("its relevant and excluded items must be increasing".into());
    }
    if let Some(item) = relevant().last().max(judged.excluded.last().copied())
        && item >= items
    {
        return problem(format!("names item {item}, but there are {items} items"));
    }
    let grades = judged.relevant.iter().map(|(_, grade)| *grade);
    if let Some(grade) = grades
        .into_iter()
        .find(|grade| !(*grade > 0.0 && grade.is_finite()))
    {
        return problem(format!("expected grades above 0, but found {grade}"));
    }
    let shared = |item: &RowId| {
        judged
            .relevant
            .binary_search_by_key(item, |(i, _)| *i)
            .is_ok()
    };
    if let Some(item) = judged.excluded.iter().find(|item| shared(item)) {
        return problem(format!("item {item} is both relevant and excluded"));
    }
    Ok(())
}

#[cfg(test)]
#[path = "counts_tests.rs"]
mod tests;
