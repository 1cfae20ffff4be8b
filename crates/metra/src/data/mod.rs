//! Storage of vectors (in memory, memory-mapped, subsets), train/test splits, the interface to
//! passes on other machines, and synthetic data. A [`Dataset`](crate::Dataset) adds the
//! supervision.

pub(crate) mod atomic_file;
mod column_range;
pub(crate) mod corpus;
mod corpus_ref;
mod element;
pub(crate) mod file_kind;
mod groups;
pub(crate) mod interruptible;
pub(crate) mod joined;
pub(crate) mod mapped;
pub(crate) mod narrow;
pub(crate) mod npy_header;
pub(crate) mod partial_result;
pub(crate) mod pass_executor;
mod row_digests;
pub(crate) mod several_vectors;
mod sparse;
mod split;
mod stacked;
mod storage;
pub mod synthetic;

pub(crate) use atomic_file::AtomicFile;
pub(crate) use column_range::ColumnRange;
pub use corpus::{Batch, BorrowedCorpus, Corpus, MemoryCorpus, SparseRow, Subset};
pub(crate) use corpus::{SCAN_ROWS, check_rows, fingerprint};
pub use corpus_ref::{CorpusRef, IntoCorpus};
pub use element::ElementMap;
pub(crate) use file_kind::FileKind;
pub use groups::Groups;
pub(crate) use interruptible::Interruptible;
pub(crate) use joined::JoinedCorpus;
pub use mapped::MappedCorpus;
pub(crate) use mapped::Spool;
pub use narrow::Narrowing;
pub(crate) use partial_result::{Nearest, PartialResult};
pub use pass_executor::RowId;
pub(crate) use pass_executor::{KeyedBy, Keys, PassExecutor, Task};
pub(crate) use row_digests::{MOST_DIGESTS, RowDigests, row_digest};
pub use sparse::SparseCorpus;
pub use split::{Split, SplitKind, SplitSet, positions};
pub(crate) use split::{stratified_rows, whole_classes};
pub(crate) use stacked::StackedCorpus;
pub use storage::Storage;
