//! Search in two stages: all items by a coarse score, the first of them again by a fine one.

use super::scores::{Items, ordered};
use crate::data::{Corpus, RowId};
use crate::linalg::RowBuf;
use crate::model::Space;
use crate::{Error, Result};
use std::ops::Range;

/// Queries and items of one stage, and how they are compared.
pub(crate) struct Stage<'a> {
    pub(crate) space: Space,
    pub(crate) queries: &'a dyn Corpus,
    pub(crate) items: &'a dyn Corpus,
}

/// Ranks by two stages.
pub(crate) struct TwoStages<'a> {
    coarse: Items<'a>,
    fine: Items<'a>,
    queries: [&'a dyn Corpus; 2],
    first: usize,
}

impl<'a> TwoStages<'a> {
    /// The `first` items by the coarse stage are ranked again by the fine one.
    pub(crate) fn new(coarse: Stage<'a>, fine: Stage<'a>, first: usize) -> Result<Self> {
        if first == 0 {
            return Err(Error::parameter("items to rescore", "at least 1", 0));
        }
        Ok(TwoStages {
            queries: [coarse.queries, fine.queries],
            coarse: Items::prepare(coarse.space, coarse.items)?,
            fine: Items::prepare(fine.space, fine.items)?,
            first,
        })
    }

    /// The rank of every item for some queries, row after row; items that cannot be told apart share one. The
    /// first by the coarse score come first whatever the fine one says, and ties for a place among them are
    /// broken by the items' order.
    pub(crate) fn ranks(&self, queries: Range<RowId>, out: &mut Vec<f32>) -> Result<()> {
        let ids: Vec<RowId> = queries.collect();
        let count = self.coarse.len();
        let first = self.first.min(count);
        let coarse = self.coarse.queries(self.queries[0], ids.clone())?;
        let fine = self.fine.queries(self.queries[1], ids.clone())?;
        let mut buffer = RowBuf::empty(1);
        self.coarse.scores(&coarse, &mut buffer, out)?;
        let (mut keys, mut rows) = (Vec::new(), RowBuf::empty(1));
        let mut products = Vec::new();
        for (place, scores) in out.chunks_exact_mut(count).enumerate() {
            keys.clear();
            let scored = (0_u64..).zip(scores.iter());
            keys.extend(scored.map(|(item, score)| ordered(*score) << 32 | item));
            if first < count {
                keys.select_nth_unstable(first);
            }
            let mut chosen: Vec<RowId> =
                keys[..first].iter().map(|key| key & 0xffff_ffff).collect();
            chosen.sort_unstable();
            self.fine.gather(&chosen, &mut rows)?;
            let alone = fine.alone(place)?;
            self.fine.products_with(&alone, rows.rows(), &mut products);
            for (key, (item, product)) in keys.iter_mut().zip(chosen.iter().zip(&products)) {
                let score = product + self.fine.offset(*item);
                if !score.is_finite() {
                    return Err(Error::Score {
                        query: ids[place],
                        item: *item,
                        score,
                    });
                }
                *key = ordered(score) << 32 | item;
            }
            let (nearest, others) = keys.split_at_mut(first);
            for (before, part) in [(0, nearest), (first, others)] {
                part.sort_unstable();
                let mut rank = before;
                for at in 0..part.len() {
                    if at > 0 && part[at] >> 32 != part[at - 1] >> 32 {
                        rank = before + at;
                    }
                    scores[(part[at] & 0xffff_ffff) as usize] = rank as f32;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;

    fn line(values: &[f32]) -> MemoryCorpus {
        MemoryCorpus::new(RowBuf::from_values(values.to_vec(), 1).unwrap()).unwrap()
    }

    #[test]
    fn the_first_are_ranked_again() {
        // By coarse scores 0 1 2 3 3 the order is a b c and d with e; the fine ones turn a, b and c around.
        let (query, coarse) = (line(&[-1.0]), line(&[0.0, 1.0, 2.0, 3.0, 3.0]));
        let fine = line(&[9.0, 8.0, 7.0, 0.0, 0.0]);
        let stage = |items| Stage {
            space: Space::InnerProduct,
            queries: &query,
            items,
        };
        let ranks = |first| {
            let mut out = Vec::new();
            let both = TwoStages::new(stage(&coarse), stage(&fine), first).unwrap();
            both.ranks(0..1, &mut out).unwrap();
            out
        };
        assert_eq!(ranks(3), [2.0, 1.0, 0.0, 3.0, 3.0]);
        assert_eq!(ranks(1), [0.0, 1.0, 2.0, 3.0, 3.0]);
        // All again: d and e are the nearest by the fine score.
        assert_eq!(ranks(9), [4.0, 3.0, 2.0, 0.0, 0.0]);
        assert!(TwoStages::new(stage(&coarse), stage(&fine), 0).is_err());
    }
}
