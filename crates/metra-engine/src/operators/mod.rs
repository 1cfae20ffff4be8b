//! The operators of this crate in an engine's plan, and how they are encoded.
//!
//! A plan is a scan of a table, a stage that folds over it, an exchange by block, and one that merges.
//! The engine schedules, moves and repeats; what is computed is the library's.

mod assign;
pub(crate) mod blocks;
mod codec;
mod embed;
mod fold;
mod gather;
mod hello;
mod merge;
mod pass;
mod pause;
mod position;
mod shard_file;
mod stage;

pub(crate) use assign::{AssignWork, TARGET};
pub(crate) use codec::{codec, decode_stage};
pub(crate) use embed::EmbedWork;
pub(crate) use fold::Work;
pub(crate) use pass::PassWork;
pub(crate) use position::{Position, shard_and_first};
pub(crate) use shard_file::{ShardFile, is_job_name, part_name, shard_name};
pub(crate) use stage::{Stage, StageExec};
