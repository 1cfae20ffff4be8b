//! Exact search: which items lie nearest to a query.
//!
//! Items and queries are embedded vectors; a [`crate::model::Space`] compares them. Scores come
//! from blocked matrix products (`scores`), which the evaluation shares; a search then puts the nearest into
//! the order of scores in f64 (`exact`), which differs where f32 cannot tell items apart. `attributes`
//! searches where every number has a name, and `fusion` adds up several rankings.

mod attributes;
mod candidates;
pub(crate) mod distributed;
mod exact;
mod fusion;
mod hamming;
mod model_search;
mod rerank;
pub(crate) mod scores;
pub(crate) mod top_k;
pub(crate) mod two_stages;

pub use attributes::{Alike, AttributeSpace, Change};
pub use candidates::nearest_among;
pub(crate) use distributed::{NearestRows, QueryBatch};
pub(crate) use fusion::ScaledCandidates;
pub use fusion::{Fusion, ScoreScale, ScoredItem};
pub use hamming::HammingItems;
pub use rerank::{Rerank, Reranking};
pub use top_k::{Neighbours, top_k};
