//! The passes of [`metra`] over tables of any size: Apache DataFusion on one machine, Ballista on
//! many.
//!
//! A [`ShardedTable`] is a set of Parquet files, cut into shards. A [`TableCorpus`] is a table as the
//! library's learners know vectors; what they ask of it an [`Engine`] sends to the rows.

pub mod cluster;
mod columns;
mod corpus;
mod engine;
mod error;
pub mod internal;
mod judge;
mod operators;
mod output_folder;
mod payload;
mod shard;
mod stores;
mod table;
mod train;

pub use corpus::TableCorpus;
pub use engine::{Embed, Engine, PassProgress, TableColumns};
pub use error::{Error, Result};
pub use judge::{Ranker, TableJudgement};
pub use shard::{Sharded, Sharding};
pub use table::{Cut, ShardedTable};
pub use train::Fit;
