//! The WARP loss of a minibatch (Usunier et al. 2009, Weston et al. 2010), shared by the methods
//! that minimise it: pairs with a relevant item, one pool of possible negatives, and the loss with
//! its gradient with respect to the embedded rows as matrix products.

mod loss;
mod weights;

pub use weights::RankWeights;

pub(crate) use loss::Workspace;

use super::parameters::Choice;
use super::training_space::fetch;
use crate::data::{Corpus, RowId};
use crate::linalg::RowBuf;
use crate::random::Stream;
use crate::supervision::{Pool, Relevance};
use crate::{Error, Result};

/// How the rank of a relevant item is estimated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sampling {
    /// From the violators in a pool that the minibatch shares.
    Pool,
    /// From all items: exact, for small sets.
    Exact,
    /// From the number of tries until the first violator, as in the papers.
    Sequential,
}

impl Choice for Sampling {
    const ALL: &'static [(&'static str, Self)] = &[
        ("pool", Sampling::Pool),
        ("exact", Sampling::Exact),
        ("sequential", Sampling::Sequential),
    ];
}

/// Which violators push.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Violators {
    /// All of them, each with its share.
    All,
    /// One, drawn uniformly.
    One,
}

impl Choice for Violators {
    const ALL: &'static [(&'static str, Self)] =
        &[("all", Violators::All), ("one", Violators::One)];
}

/// What the loss depends on.
#[derive(Debug, Clone)]
pub(crate) struct Warp {
    /// Margin by which irrelevant items must be farther.
    pub(crate) margin: f32,
    /// Whether distances are squared (FRML) or not (WARCA).
    pub(crate) squared: bool,
    pub(crate) sampling: Sampling,
    pub(crate) violators: Violators,
    pub(crate) weights: RankWeights,
    /// Ranks below this cost nothing; 1 keeps all.
    pub(crate) truncation: f64,
}

/// Pairs with a relevant item, and the pool of possible negatives.
#[derive(Default)]
pub(crate) struct Minibatch {
    pub(crate) pairs: Vec<(RowId, RowId)>,
    pub(crate) pool: Pool,
}

impl Minibatch {
    /// Draw uniform pairs of S and a uniform pool, or take all items as the pool.
    pub(crate) fn draw(
        &mut self,
        relevance: &dyn Relevance,
        pairs: usize,
        pool: Option<usize>,
        random: &mut Stream,
    ) {
        self.pairs.clear();
        for _ in 0..pairs {
            self.pairs
                .push(relevance.pair(random.below(relevance.pairs())));
        }
        let items = relevance.items();
        match pool {
            None => self.pool.fill(relevance, 0..items),
            Some(count) => {
                let pairs = &self.pairs;
                let draws = (0..count).map(|_| drawn_negative(relevance, pairs, random));
                self.pool.fill(relevance, draws);
            }
        }
    }

    /// Rows of the queries, and of the relevant items followed by the pool.
    pub(crate) fn rows(&self) -> (Vec<RowId>, Vec<RowId>) {
        let queries = self.pairs.iter().map(|p| p.0).collect();
        let relevant = self.pairs.iter().map(|p| p.1);
        let others = relevant.chain(self.pool.items().iter().copied());
        (queries, others.collect())
    }

    /// Fetch the vectors of queries, relevant items and pool, centred and multiplied.
    pub(crate) fn fetch(
        &self,
        queries: &dyn Corpus,
        items: &dyn Corpus,
        centre: Option<&[f32]>,
        factor: f32,
        out: &mut RowBuf,
    ) -> Result<()> {
        let (first, others) = self.rows();
        let dim = items.dim();
        out.reset(first.len() + others.len(), dim);
        let (left, right) = out.values_mut().split_at_mut(first.len() * dim);
        fetch(queries, &first, centre, factor, left)?;
        fetch(items, &others, centre, factor, right)
    }
}

/// An item for the pool: any, or one that was judged irrelevant to a query of the minibatch where these alone
/// count.
fn drawn_negative(
    relevance: &dyn Relevance,
    pairs: &[(RowId, RowId)],
    random: &mut Stream,
) -> RowId {
    let judges = (pairs.first()).is_some_and(|pair| relevance.judged_irrelevant(pair.0).is_some());
    if judges {
        let (query, _) = pairs[random.below(pairs.len() as u64) as usize];
        let judged = relevance.judged_irrelevant(query).unwrap_or_default();
        if !judged.is_empty() {
            return judged[random.below(judged.len() as u64) as usize];
        }
    }
    random.below(relevance.items())
}

/// An error where no pair is relevant, or nothing is irrelevant.
pub(crate) fn check_relevance(relevance: &dyn Relevance) -> Result<()> {
    if relevance.pairs() == 0 {
        return Err(Error::Data(
            "no row has a relevant other row (every class has one row, or no judgement is above \
             0): expected at least one relevant pair"
                .into(),
        ));
    }
    // A few pairs tell whether a query can have negatives at all: with one class none has.
    let mut random = Stream::new(0, "warca negatives", 0);
    let any = (0..64).any(|_| {
        let (query, _) = relevance.pair(random.below(relevance.pairs()));
        relevance.irrelevant_count(query) > 0
    });
    if any {
        return Ok(());
    }
    Err(Error::Data(
        "every item is relevant to every query (one class?): expected some irrelevant items".into(),
    ))
}
