//! Models: a metric, its embedding, the space in which embedded vectors are compared, and plans for
//! serving it from a vector store ([`Plan`]).

mod chain;
mod code;
mod embed;
mod indefinite;
mod low_rank;
mod map;
mod model_file;
mod plan;
mod shorten;
mod space;
mod trained_model;
mod training_rows;
mod unit_length;

pub use chain::{Chain, Preprocessing, Step};
pub use code::{Code, CodedItems, Int8Scale, ProductCode};
pub(crate) use code::{MOST_CENTROIDS, nearest, range};
pub use embed::{Embedded, Side, embed_corpus, for_each_embedded};
pub use indefinite::{Indefinite, Signs};
pub use low_rank::LowRank;
pub use map::{KernelMap, Map};
pub use plan::{
    Distance, Element, Plan, PlanConstraints, PlanReport, Store, Strategy, agreement, fold,
};
pub use space::Space;
pub use trained_model::{HeldOut, MatchDecision, MeasuredGain, Model, Origin, StartedFrom};
pub use training_rows::{SeenRows, TrainingRows};
pub(crate) use unit_length::normalise;

use crate::Result;
use crate::data::Batch;
use crate::linalg::RowBuf;

/// Maps into a space that vector stores can search. Queries and items have a map each, which may
/// differ.
pub trait Embedding: Send + Sync {
    /// How embedded vectors are compared.
    fn space(&self) -> Space;

    /// Dimension of an input vector: of an item, where queries have another one.
    fn input_dim(&self) -> usize;

    /// Dimension of a query as it comes.
    fn query_input_dim(&self) -> usize {
        self.input_dim()
    }

    /// Numbers in an embedded vector.
    fn output_dim(&self) -> usize;

    /// Embed queries; `first` is the number of the first row, for error messages.
    fn embed_queries(&self, first: u64, queries: &Batch<'_>, out: &mut RowBuf) -> Result<()>;

    /// Embed items, as their codes stand for them where they are coded; `first` is the number of the first row, for error messages.
    fn embed_items(&self, first: u64, items: &Batch<'_>, out: &mut RowBuf) -> Result<()>;
}
