//! Scores of pairs in f64, from differences where the space has them, and how the nearest by products in f32
//! become the nearest by these.
//!
//! A squared distance as |x|² − 2q·x in f32 is off by some 1e-6 of the squared lengths: among items that are
//! nearer to each other than that it orders by chance, and says 0 of most. So a search keeps a few items more
//! than it was asked for. Those whose products may hide that they are among the nearest are scored again.

use super::scores::{Items, QueryBlock, TILE};
use crate::data::RowId;
use crate::linalg::{RowBuf, Rows, block_distance, vectorized};
use crate::model::Space;
use crate::{Error, Result};

/// Running sums that the compiler keeps in vector registers; their order is fixed.
const LANES: usize = 8;

/// Rounding of f32.
const UNIT: f64 = 1.0 / (1 << 24) as f64;

/// Items that a search for the `k` nearest keeps: of ordinary vectors hardly any more may be among them.
pub(super) fn kept(k: usize) -> usize {
    k.saturating_add(8 + k / 8)
}

/// One query of a block, its items in question and those that it must not have.
pub(super) struct Settle<'a> {
    pub(super) items: &'a Items<'a>,
    pub(super) queries: &'a QueryBlock,
    /// The query's place in the block.
    pub(super) place: usize,
    pub(super) k: usize,
    pub(super) skip: &'a dyn Fn(RowId) -> bool,
}

impl Settle<'_> {
    /// The `k` nearest by scores in f64. `found` are the nearest by products, sorted: all items, or more
    /// than `k`.
    pub(super) fn nearest(
        &self,
        found: Vec<(f32, u32)>,
        buffer: &mut RowBuf,
        products: &mut Vec<f32>,
    ) -> Result<Vec<(RowId, f32)>> {
        let last = found
            .last()
            .map_or(f64::NEG_INFINITY, |(score, _)| f64::from(*score));
        let is_all = found.len() < kept(self.k);
        let candidates: Vec<RowId> = match found.get(..self.k) {
            None => found.iter().map(|(_, item)| u64::from(*item)).collect(),
            Some(best) => {
                let limit = self.limit(best);
                if is_all || last > limit {
                    let near = |(score, _): &&(f32, u32)| f64::from(*score) <= limit;
                    let near = found.iter().filter(near);
                    near.map(|(_, item)| u64::from(*item)).collect()
                } else {
                    self.within(limit, buffer, products)?
                }
            }
        };
        let corpus = self.items.corpus();
        corpus.gather(&candidates, buffer)?;
        let query = self.queries.original(self.place);
        let (space, rows) = (self.items.space(), buffer.rows());
        sorted(space, query, &candidates, rows, self.k).map_err(|(item, score)| Error::Score {
            query: self.queries.ids()[self.place],
            item,
            score,
        })
    }

    /// The score by products up to which an item may be one of the k nearest: that of the k-th, and twice
    /// what products may be off by.
    fn limit(&self, best: &[(f32, u32)]) -> f64 {
        let dim = self.items.dim() as f64;
        // The error of a sum of d products is within √d times a small factor with all but certainty
        // (Higham and Mary, 2019), and the rest is of a few additions and of the rows as converted.
        let relative = (8.0 * dim.sqrt() + 16.0) * UNIT;
        let worst = best.last().map_or(0.0, |(score, _)| f64::from(*score));
        let squared = self.queries.squared(self.place);
        let length = squared.sqrt();
        let error = match self.items.space() {
            // These are worked out from differences.
            Space::Blocks { .. } => 0.0,
            Space::Cosine => relative,
            Space::InnerProduct => relative * length * self.items.largest(),
            Space::SquaredL2 => {
                let offset = |(_, item): &(f32, u32)| self.items.offset(u64::from(*item));
                let farthest = f64::from(best.iter().map(offset).fold(0.0, f32::max)).sqrt();
                let error = relative * (length + farthest).powi(2);
                // Whatever is nearer than the k-th is not farther from the centre than this.
                let distance = (worst + squared + error).max(0.0).sqrt();
                relative * (length + farthest.max(length + distance)).powi(2)
            }
        };
        worst + 2.0 * error
    }

    /// All items up to a score by products.
    fn within(
        &self,
        limit: f64,
        buffer: &mut RowBuf,
        products: &mut Vec<f32>,
    ) -> Result<Vec<RowId>> {
        let items = self.items;
        let alone = self.queries.alone(self.place)?;
        let mut found = Vec::new();
        for tile in 0..items.tiles() {
            items.products(&alone, tile..tile + 1, buffer, products)?;
            let (start, end) = (tile * TILE, items.len().min((tile + 1) * TILE));
            for (product, (offset, item)) in products
                .iter()
                .zip(items.offsets(start..end).iter().zip(start..))
            {
                let item = item as RowId;
                if f64::from(product + offset) <= limit && !(self.skip)(item) {
                    found.push(item);
                }
            }
        }
        Ok(found)
    }
}

/// The `k` nearest of some items with their scores, ties by the smaller number; or an item whose score is
/// not finite.
pub(super) fn sorted(
    space: Space,
    query: &[f32],
    items: &[RowId],
    rows: Rows<'_>,
    k: usize,
) -> std::result::Result<Vec<(RowId, f32)>, (RowId, f32)> {
    let mut found = Vec::with_capacity(items.len());
    for (item, row) in items.iter().zip(rows.iter()) {
        let (item, score) = (*item, score(space, query, row));
        if !(score as f32).is_finite() {
            return Err((item, score as f32));
        }
        found.push((score, item));
    }
    found.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    found.truncate(k);
    Ok(found
        .into_iter()
        .map(|(score, item)| (item, score as f32))
        .collect())
}

/// Smaller is nearer. A cosine with a vector of length 0 is NaN.
fn score(space: Space, query: &[f32], item: &[f32]) -> f64 {
    vectorized(
        #[inline(always)]
        || match space {
            Space::SquaredL2 => sum(query, item, |a, b| (a - b) * (a - b)),
            Space::InnerProduct => -sum(query, item, |a, b| a * b),
            Space::Cosine => {
                let lengths = sum(query, query, |a, b| a * b) * sum(item, item, |a, b| a * b);
                -sum(query, item, |a, b| a * b) / lengths.sqrt()
            }
            Space::Blocks { size } => f64::from(block_distance(query, item, size as usize)),
        },
    )
}

#[inline(always)]
fn sum(left: &[f32], right: &[f32], term: impl Fn(f64, f64) -> f64) -> f64 {
    let (left_lanes, left_rest) = left.as_chunks::<LANES>();
    let (right_lanes, right_rest) = right.as_chunks::<LANES>();
    let mut sums = [0.0_f64; LANES];
    for (left, right) in left_lanes.iter().zip(right_lanes) {
        for lane in 0..LANES {
            sums[lane] += term(f64::from(left[lane]), f64::from(right[lane]));
        }
    }
    let rest = left_rest.iter().zip(right_rest);
    let rest: f64 = rest.map(|(a, b)| term(f64::from(*a), f64::from(*b))).sum();
    sums.iter().sum::<f64>() + rest
}
