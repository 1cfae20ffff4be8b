//! Passes over a corpus: a [`Statistic`] is defined once and folded over shards of rows.
//!
//! A shard's result depends on its rows alone and shards are merged in order, so a pass gives the
//! same bytes however many threads take part.

mod moments;
mod sums;
mod within;

pub use moments::{Moments, Spread, moments, spread};
pub use sums::{KeyedSums, keyed_sums};
pub use within::within_scatter;

use crate::Result;
use crate::data::Corpus;
use crate::linalg::Rows;

/// Rows in a shard, the unit that is folded alone and merged in order.
pub const SHARD_ROWS: u64 = 1 << 18;

/// What a statistic sees of some rows.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// The vectors.
    pub rows: Rows<'a>,
    /// A key for each row (its class or its group), where the statistic needs one.
    pub keys: Option<&'a [u32]>,
}

/// Something that is known of a corpus after seeing every row once, in any shards.
pub trait Statistic: Sized {
    /// What must be known beforehand.
    type Spec;
    /// What is known afterwards.
    type Out;

    /// Nothing seen yet.
    fn start(spec: &Self::Spec) -> Self;

    /// See some rows.
    fn update(&mut self, sample: &Sample<'_>) -> Result<()>;

    /// Take in what another shard saw.
    fn merge(&mut self, other: Self);

    /// The result.
    fn finish(self) -> Result<Self::Out>;
}

/// Fold a statistic over all rows of a corpus.
pub fn fold<S: Statistic>(
    corpus: &dyn Corpus,
    keys: Option<&[u32]>,
    spec: &S::Spec,
) -> Result<S::Out> {
    let mut total: Option<S> = None;
    let mut start = 0;
    loop {
        let end = corpus.len().min(start + SHARD_ROWS);
        let mut shard = S::start(spec);
        corpus.scan(start..end, &mut |first, rows| {
            let first = first as usize;
            let keys = keys.map(|keys| &keys[first..first + rows.len()]);
            shard.update(&Sample { rows, keys })
        })?;
        match &mut total {
            None => total = Some(shard),
            Some(total) => total.merge(shard),
        }
        start = end;
        if start >= corpus.len() {
            break;
        }
    }
    total.map_or_else(|| S::start(spec).finish(), S::finish)
}
