//! The passes of [`metra`] over tables of any size: Apache DataFusion on one machine, Ballista on
//! many.
//!
//! A [`Table`] is a set of Parquet files, cut into shards. A [`TableCorpus`] is a table as the
//! library's learners know vectors; what they ask of it an [`Engine`] sends to the rows.

mod carried;
mod columns;
mod corpus;
mod engine;
mod error;
mod operators;
mod stores;
mod table;

pub use corpus::TableCorpus;
pub use engine::{Columns, Embed, Engine};
pub use error::{Error, Result};
pub use table::Table;
