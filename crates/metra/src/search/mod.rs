//! Exact search: which items lie nearest to a query.
//!
//! Items and queries are embedded vectors; a [`crate::model::Space`] compares them. Scores come
//! from blocked matrix products (`scores`), which the evaluation shares, so that what is searched
//! and what is judged are the same numbers. `attributes` searches where every number has a name.

mod attributes;
mod candidates;
pub(crate) mod distributed;
mod model_search;
mod rerank;
pub(crate) mod scores;
mod top_k;

pub use attributes::{Alike, AttributeSpace, Change};
pub use candidates::nearest_among;
pub(crate) use distributed::{NearestRows, QueryBatch};
pub use rerank::{Rerank, Reranking};
pub use top_k::{Neighbours, top_k};
