//! Where vectors lie: in memory, in a memory-mapped file, or in a part of either; how they are
//! split; who folds over them where they lie elsewhere; and sets made to a known answer.

mod corpus;
mod corpus_ref;
mod element;
mod groups;
mod interruptible;
mod joined;
mod mapped;
mod narrow;
mod partial_result;
mod pass_executor;
mod split;
mod storage;
pub mod synthetic;

pub(crate) use corpus::check_rows;
pub use corpus::{
    Batch, BorrowedCorpus, Corpus, MemoryCorpus, SCAN_ROWS, Subset, check_finite, fingerprint,
};
pub use corpus_ref::{CorpusRef, IntoCorpus};
pub use element::ElementMap;
pub use groups::Groups;
pub use interruptible::Interruptible;
pub use joined::JoinedCorpus;
pub use mapped::{MappedCorpus, Spool};
pub use narrow::{ColumnRanges, Narrowing, NarrowingJudgement};
pub use partial_result::{Nearest, PartialResult};
pub use pass_executor::{KeyedBy, Keys, PassExecutor, RowId, Task};
pub use split::{Split, SplitKind, SplitSet, positions, stratified_rows, whole_classes};
pub use storage::Storage;
