//! What is asked of a push, and what it reports.

use super::vectors::VectorType;
use crate::sql::TableName;
use metra::metric::Wish;

/// What to push where.
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
    /// What the plan has to keep to; limits of pgvector come on top.
    pub wish: Wish,
    /// The model's name in the registry.
    pub name: String,
    /// Rows of a transaction.
    pub batch: usize,
    /// Whether an index of HNSW is made.
    pub index: bool,
    /// Memory for making it, in bytes; none for the server's own setting.
    pub index_memory: Option<u64>,
    /// Write rows that have a vector again, because their input changed.
    pub refill: bool,
}

/// What a push did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// Vectors written now.
    pub written: u64,
    /// Rows without an input vector, which have no vector in the target either.
    pub without_vector: u64,
    /// Rows that other transactions held, or that came after the last pass.
    pub left: u64,
    /// Whether an index was made.
    pub indexed: bool,
}
