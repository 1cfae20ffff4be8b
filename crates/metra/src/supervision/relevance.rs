//! The [`Relevance`] trait: which items are relevant to which queries, with uniform sampling of
//! relevant pairs.

use crate::data::RowId;

/// Which items are relevant to which queries.
///
/// Let S be the set of pairs (query, item) with a relevant item, self pairs excluded. S is never
/// listed: [`Relevance::pair`] gives its n-th member, so a uniform number gives a uniform pair.
pub trait Relevance: Sync {
    /// Number of queries.
    fn queries(&self) -> u64;

    /// Number of items.
    fn items(&self) -> u64;

    /// Whether queries and items are the same corpus, so that a row is not an item to itself.
    fn within(&self) -> bool;

    /// |S|.
    fn pairs(&self) -> u64;

    /// The pair of S with this number in `0..pairs()`.
    fn pair(&self, number: u64) -> (RowId, RowId);

    /// Number of items relevant to `query`.
    fn relevant_count(&self, query: RowId) -> u64;

    /// The items that alone count as irrelevant to `query`, increasing; `None` where all do that are not
    /// relevant to it.
    fn judged_irrelevant(&self, _query: RowId) -> Option<&[RowId]> {
        None
    }

    /// Number of items that count as irrelevant to `query`: |T| in WARCA.
    fn irrelevant_count(&self, query: RowId) -> u64 {
        match self.judged_irrelevant(query) {
            Some(judged) => judged.len() as u64,
            None => self.items() - self.relevant_count(query) - u64::from(self.within()),
        }
    }

    /// Whether `item` is relevant to `query`. A row is never relevant to itself.
    fn is_relevant(&self, query: RowId, item: RowId) -> bool;

    /// Append the items relevant to `query` in increasing order, with their grades.
    fn relevant(&self, query: RowId, out: &mut Vec<(RowId, f32)>);

    /// A key under which an item can be found in a [`Pool`]; items that are relevant to the same
    /// queries may share one.
    fn pool_key(&self, item: RowId) -> u64;

    /// Visit the places in `pool` that hold items relevant to `query`, or the query itself.
    fn visit_pool(&self, query: RowId, pool: &Pool, visit: &mut dyn FnMut(usize));
}

/// Items drawn to serve as negatives for a whole minibatch, ordered so that those relevant to a
/// query are found without looking at the others.
#[derive(Debug, Clone, Default)]
pub struct Pool {
    items: Vec<RowId>,
    order: Vec<(u64, u32)>,
}

impl Pool {
    /// Take these items (repetitions allowed).
    pub(crate) fn fill(&mut self, relevance: &dyn Relevance, items: impl Iterator<Item = RowId>) {
        self.items.clear();
        self.items.extend(items);
        self.order.clear();
        self.order.extend(
            self.items
                .iter()
                .enumerate()
                .map(|(place, item)| (relevance.pool_key(*item), place as u32)),
        );
        self.order.sort_unstable();
    }

    /// The items in the order given.
    pub(crate) fn items(&self) -> &[RowId] {
        &self.items
    }

    /// Places of the items with this key.
    pub(crate) fn places(&self, key: u64) -> impl Iterator<Item = usize> {
        let start = self.order.partition_point(|(k, _)| *k < key);
        self.order[start..]
            .iter()
            .take_while(move |(k, _)| *k == key)
            .map(|(_, place)| *place as usize)
    }
}
