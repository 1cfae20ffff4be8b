//! Where a metric is served: what a plan of `metra` says is carried out here, in the stores and file
//! formats that people run. The algebra of plans is `metra::model::Plan`; nothing here decides what a
//! store must hold.

mod bytes;
mod error;
pub mod export;
pub mod index;
#[cfg(feature = "postgres")]
pub mod postgres;
mod provenance;
mod sql;

pub use error::{Error, Result};
pub use provenance::{Provenance, digest};
pub use sql::TableName;

/// First answers of codes that are put in order again where nobody says how many: several for each of the `k` that are
/// wanted.
fn rescored_answers(k: usize) -> usize {
    k.saturating_mul(4).max(100)
}
