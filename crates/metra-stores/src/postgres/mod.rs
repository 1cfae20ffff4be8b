//! PostgreSQL with pgvector: a column of a table holds what a plan stores, the column's comment says who
//! wrote it, and a registry beside the table says how far it is and what applications search.
//!
//! | file | question |
//! | --- | --- |
//! | `connect`, `tls` | Where is the database, and who answers there? |
//! | `conditions` (and `sql` of the crate) | How do names and values get into SQL? |
//! | `table`, `vectors`, `rows` | What is in the table, and how is it read and written? |
//! | `request`, `target`, `push`, `run`, `fill`, `index` | How does a model get into a live table? |
//! | `lock_retry` | How does a statement get its lock without blocking others? |
//! | `registry`, `swap` | Which model is searched, and how does that change? |
//! | `pull`, `search`, `stage` | How do vectors come out, and answers? |
//!
//! The client is a blocking one: a push waits for one server, and nothing else.

mod conditions;
mod connect;
mod failure;
mod fill;
mod index;
mod lock_retry;
mod pull;
mod push;
mod registry;
mod request;
mod rows;
mod run;
mod search;
mod stage;
mod swap;
mod table;
mod target;
mod tls;
mod vectors;

pub use conditions::Condition;
pub use connect::Address;
pub use pull::{Pulled, Pulling, Values, Vectors, pull};
pub use push::Push;
pub use registry::{PushedModel, PushedModels, models};
pub use request::{PushSummary, Pushing};
pub use search::{Hit, Search, Searching};
pub use stage::SearchedColumn;
pub use swap::{Swapped, Swapping, rollback, swap};
pub use target::PushTarget;
pub use vectors::VectorType;
