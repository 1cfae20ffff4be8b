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
