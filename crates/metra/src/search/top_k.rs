//! Exact nearest neighbours: every query against every item, keeping the k nearest.
//!
//! Blocks of queries run side by side; inside a block, tiles of items are scored by one matrix
//! product and each row is compared with the query's k-th score so far. Almost nothing passes that
//! comparison, so it is a vectorised look at 32 scores at a time; what passes goes to a small
//! reservoir that is cut back to k and a few more when it is full. At the end these are put into the order of
//! scores in f64 (`exact`).

use super::exact::{Settle, kept};
use super::scores::{Items, QueryBlock, TILE, check_dimensions, ordered, score_of};
use crate::data::{Corpus, RowId};
use crate::linalg::{RowBuf, vectorized};
use crate::model::Space;
use crate::{Error, Result};
use rayon::prelude::*;
use std::sync::Arc;

/// Queries in a block. Fixed, so that results do not depend on the number of threads.
const QUERIES: usize = 128;

/// Up to so many queries, each by itself is quicker than a product of matrices. What is found is put into the order of scores in f64
/// either way, so that a query finds the same alone and among others.
const FEW: usize = 3;

/// Scores looked at with one comparison.
const LOOK: usize = 32;

/// Scores of a row between two updates of the k-th score.
const STRETCH: usize = 256;

/// Items of one query with their scores, nearest first.
type Found = Vec<(u64, f32)>;

/// The nearest items of every query, nearest first; ties by the smaller row number.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbours {
    /// Neighbours of a query: what was asked for, or all items where there are fewer.
    pub k: usize,
    /// Row numbers of the items, k for each query.
    pub ids: Vec<u64>,
    /// Their scores (squared distance, negative inner product or negative cosine).
    pub scores: Vec<f32>,
}

impl Neighbours {
    /// The answers of one query after another, `k` items each with their scores.
    pub fn of_queries(k: usize, answers: impl IntoIterator<Item = Vec<(RowId, f32)>>) -> Self {
        let (ids, scores) = answers.into_iter().flatten().unzip();
        Neighbours { k, ids, scores }
    }

    /// Number of queries.
    pub fn queries(&self) -> usize {
        self.ids.len().checked_div(self.k).unwrap_or(0)
    }

    /// Neighbours of a query.
    pub fn ids_of(&self, query: usize) -> &[u64] {
        &self.ids[query * self.k..(query + 1) * self.k]
    }

    /// Scores of a query's neighbours.
    pub fn scores_of(&self, query: usize) -> &[f32] {
        &self.scores[query * self.k..(query + 1) * self.k]
    }
}

/// The `k` items nearest to every query. With `exclude_self` the item with the query's own row
/// number is left out, as is right where queries are the first rows of the items or all of them.
///
/// Where there are fewer than `k` items all of them are given; `k = 0` is an error.
///
/// Time is one product of all queries with all items; memory beside the result is a tile a thread,
/// and a converted copy of the items only where that is below 64 MB.
pub fn top_k(
    space: Space,
    queries: &dyn Corpus,
    items: &dyn Corpus,
    k: usize,
    exclude_self: bool,
) -> Result<Neighbours> {
    if k == 0 {
        return Err(Error::parameter("k", "at least 1", 0));
    }
    check_dimensions(queries, items)?;
    if exclude_self && queries.len() > items.len() {
        return Err(Error::shape(
            "queries that exclude themselves",
            format!("at most {} (the items)", items.len()),
            queries.len(),
        ));
    }
    found_among(&Items::prepare(space, items)?, queries, k, exclude_self)
}

fn found_among(
    items: &Items<'_>,
    queries: &dyn Corpus,
    k: usize,
    exclude_self: bool,
) -> Result<Neighbours> {
    let k = k.min(items.len() - usize::from(exclude_self));
    let skip = |query, item| exclude_self && query == item;
    let found = nearest_of(items, queries, k, &skip)?;
    Ok(Neighbours::of_queries(k, found))
}

/// Items that are kept ready for many exact searches: [`top_k`] reads all of them before it compares a first query.
pub struct PreparedItems(Items<'static>);

impl PreparedItems {
    /// Read the items once.
    pub fn new(space: Space, items: Arc<dyn Corpus>) -> Result<Self> {
        Items::prepare_shared(space, items).map(PreparedItems)
    }

    /// What [`top_k`] gives for these items.
    pub fn top_k(&self, queries: &dyn Corpus, k: usize) -> Result<Neighbours> {
        if k == 0 {
            return Err(Error::parameter("k", "at least 1", 0));
        }
        check_dimensions(queries, self.0.corpus())?;
        found_among(&self.0, queries, k, false)
    }
}

/// The `k` items nearest to every query, but those that it must `skip` (query, item); fewer where
/// there are no more.
pub(super) fn nearest_of(
    items: &Items<'_>,
    queries: &dyn Corpus,
    k: usize,
    skip: &(dyn Fn(RowId, RowId) -> bool + Sync),
) -> Result<Vec<Found>> {
    let blocks: Vec<Result<Vec<Found>>> = (0..queries.len().div_ceil(QUERIES as u64))
        .into_par_iter()
        .map(|block| {
            let start = block * QUERIES as u64;
            let ids = (start..queries.len().min(start + QUERIES as u64)).collect();
            let go_on = || queries.check_stop();
            search_block(items, &items.queries(queries, ids)?, k, skip, &go_on)
        })
        .collect();
    let mut found = Vec::with_capacity(queries.len() as usize);
    for block in blocks {
        found.extend(block?);
    }
    Ok(found)
}

fn search_block(
    items: &Items<'_>,
    queries: &QueryBlock,
    k: usize,
    skip: &(dyn Fn(RowId, RowId) -> bool + Sync),
    go_on: &(dyn Fn() -> Result<()> + Sync),
) -> Result<Vec<Found>> {
    if k == 0 {
        return Ok(vec![Vec::new(); queries.ids().len()]);
    }
    let reservoir = |_: &RowId| Reservoir::new(kept(k));
    let mut nearest: Vec<Reservoir> = queries.ids().iter().map(reservoir).collect();
    let (mut buffer, mut tile_scores) = (RowBuf::empty(items.dim()), Vec::new());
    let mut passed = [0_u32; STRETCH];
    for tile in 0..items.tiles() {
        go_on()?;
        match queries.ids().len() <= FEW {
            true => items.products_one_by_one(queries, tile, &mut buffer, &mut tile_scores)?,
            false => items.products(queries, tile..tile + 1, &mut buffer, &mut tile_scores)?,
        }
        let len = TILE.min(items.len() - tile * TILE);
        let offsets = items.offsets(tile * TILE..tile * TILE + len);
        let rows = tile_scores.chunks_exact_mut(TILE);
        for ((row, reservoir), query) in rows.zip(&mut nearest).zip(queries.ids()) {
            for start in (0..len).step_by(STRETCH) {
                let end = len.min(start + STRETCH);
                let (row, offsets) = (&mut row[start..end], &offsets[start..end]);
                let count = nearer_than(row, offsets, reservoir.worst, &mut passed);
                for place in &passed[..count] {
                    let item = (tile * TILE + start) as u64 + u64::from(*place);
                    if !skip(*query, item) {
                        reservoir.offer(row[*place as usize], item as u32);
                    }
                }
            }
        }
    }
    let mut found = Vec::with_capacity(nearest.len());
    for (place, reservoir) in nearest.into_iter().enumerate() {
        let query = queries.ids()[place];
        let settle = Settle {
            items,
            queries,
            place,
            k,
            skip: &|item| skip(query, item),
        };
        found.push(settle.nearest(reservoir.finish(), &mut buffer, &mut tile_scores)?);
    }
    Ok(found)
}

/// Turn products into scores in the looks where one is nearer than `worst`, and write the places of
/// those to `passed`. Returns their number.
fn nearer_than(row: &mut [f32], offsets: &[f32], worst: f32, passed: &mut [u32; STRETCH]) -> usize {
    vectorized(
        #[inline(always)]
        || {
            let mut count = 0;
            let looks = row.chunks_mut(LOOK).zip(offsets.chunks(LOOK)).enumerate();
            for (look, (row, offsets)) in looks {
                let mut near = 0_u32;
                for (product, offset) in row.iter().zip(offsets) {
                    near |= u32::from(product + offset < worst);
                }
                if near != 0 {
                    for (place, (product, offset)) in row.iter_mut().zip(offsets).enumerate() {
                        *product += offset;
                        passed[count % STRETCH] = (look * LOOK + place) as u32;
                        count += usize::from(*product < worst);
                    }
                }
            }
            count
        },
    )
}

/// The k smallest of the keys offered so far, and some that are not.
struct Reservoir {
    k: usize,
    /// Score that a newcomer must beat. Items come by increasing row number, so that an equal score
    /// never displaces: ties go to the smaller row number.
    worst: f32,
    keys: Vec<u64>,
}

impl Reservoir {
    fn new(k: usize) -> Self {
        Reservoir {
            k,
            worst: f32::INFINITY,
            keys: Vec::with_capacity(2 * k + 8),
        }
    }

    fn offer(&mut self, score: f32, item: u32) {
        if score < self.worst {
            self.keys.push(ordered(score) << 32 | u64::from(item));
            if self.keys.len() >= 2 * self.k + 8 {
                self.cut();
            }
        }
    }

    fn cut(&mut self) {
        let (_, last, _) = self.keys.select_nth_unstable(self.k - 1);
        self.worst = score_of(*last);
        self.keys.truncate(self.k);
    }

    fn finish(mut self) -> Vec<(f32, u32)> {
        self.keys.sort_unstable();
        self.keys.truncate(self.k);
        let found = self.keys.into_iter();
        found.map(|key| (score_of(key), key as u32)).collect()
    }
}

#[cfg(test)]
#[path = "top_k_tests.rs"]
mod tests;
