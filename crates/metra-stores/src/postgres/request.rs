//! What is asked of a push, and what it reports.

use super::vectors::VectorType;
use crate::sql::TableName;
use metra::model::PlanConstraints;

/// The request of a push: a model, as a plan writes it, into a column.
#[derive(Debug, Clone)]
pub struct Pushing {
    /// The table.
    pub table: TableName,
    /// Its column of identifiers, which must differ.
    pub id: String,
    /// The column of input vectors.
    pub from: String,
    /// The column to write; none where items stay as they are.
    pub to: Option<String>,
    /// Its type, where it is made.
    pub kind: VectorType,
    /// The column of cameras, where the model needs one.
    pub camera: Option<String>,
    /// The constraints on the plan; the limits of pgvector are added.
    pub constraints: PlanConstraints,
    /// The model's name in the registry.
    pub name: String,
    /// Rows of a transaction.
    pub batch: usize,
    /// Whether an HNSW index is built.
    pub index: bool,
    /// Memory for building it, in bytes; `None` for the server's own setting.
    pub index_memory: Option<u64>,
    /// Whether rows that have a vector are written again, because their input changed.
    pub refill: bool,
}

/// The result of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PushSummary {
    /// Vectors written now.
    pub written: u64,
    /// Rows without an input vector, which have no vector in the target either.
    pub without_vector: u64,
    /// Rows that other transactions held, or that came after the last pass.
    pub left: u64,
    /// Whether an index was built.
    pub indexed: bool,
}
