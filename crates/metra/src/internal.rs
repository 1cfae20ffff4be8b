//! What the other crates of this workspace, their tests and benches use beside the public
//! interface.
//!
//! Nothing here is documented for users or promised to stay: passes over rows that other machines
//! hold, sums and products, keyed random streams.

pub use crate::data::atomic_file::{AtomicFile, AtomicFolder};
pub use crate::data::corpus::{check_finite, check_mapped, fingerprint, scan_rows};
pub use crate::data::file_kind::{FILE_START, FileKind};
pub use crate::data::interruptible::Interruptible;
pub use crate::data::joined::JoinedCorpus;
pub use crate::data::mapped::Spool;
pub use crate::data::narrow::{ColumnRanges, NarrowingJudgement};
pub use crate::data::npy_header::npy_header;
pub use crate::data::partial_result::{Nearest, PartialResult};
pub use crate::data::pass_executor::{KeyedBy, Keys, PassExecutor, Task};
pub use crate::evaluate::distributed::{LabelledQueries, evaluate_distributed};
pub use crate::execute::chosen::fetched;
pub use crate::execute::moments::{moments, spread};
pub use crate::execute::sums::keyed_sums;
pub use crate::execute::within::within_scatter;
pub use crate::execute::{decode, encode};
pub use crate::linalg::decompose::Symmetric;
pub use crate::linalg::kernels::gram_within;
pub use crate::linalg::products::{accumulate_outer, cross, mix};
pub use crate::passes::{ALL as PASSES, Incoming, Pass, Ready, Started};
pub use crate::pipeline::distributed::{Checkpoint, Rounds};
pub use crate::random::Stream;
pub use crate::search::distributed::{QueryBatch, hard_negatives, nearest};
pub use crate::search::top_k::PreparedItems;
pub use crate::training::checkpoint::CheckpointFile;
pub use crate::training::local_sgd::SharedState;
