//! Metra learns what "similar" means for vectors that already exist, so that the right answers
//! rank first, and says honestly by how much.
//!
//! The modules follow the way of a vector: [`data`] (where vectors lie) and [`supervision`] (what
//! is relevant to what) make a [`learn::Problem`]; a learner of [`learn`] turns it into a
//! [`metric`]; [`search`] ranks with it; [`evaluate`] judges the ranking; [`study`] chooses
//! settings on held-out parts and states the gain with an interval.
//!
//! ```
//! use metra::data::synthetic::Nuisance;
//! use metra::learn::{Learner, Problem, Run, warca::Warca};
//! use metra::metric::Map;
//! use metra::supervision::{Labels, Supervision};
//!
//! // 40 classes that differ in 4 of 16 coordinates; the other 12 are loud noise.
//! let set = Nuisance { classes: 40, signal: 4, noise: 12, seed: 7 }.rows(320);
//! let supervision = Supervision::labels(Labels::from_numbers(&set.classes)?);
//! let problem = Problem::new(&set.corpus, &supervision)?;
//! let learner = Warca { rank: 4, ..Warca::default() }.check()?;
//! let Map::LowRank(map) = learner.fit(&problem, &mut Run::new(1))? else { unreachable!() };
//! assert_eq!(map.output_dim(), 4);
//! # Ok::<(), metra::Error>(())
//! ```
//!
//! Work is spread over the rayon pool of the caller; results do not depend on its size.

pub mod data;
mod error;
pub mod evaluate;
pub mod execute;
pub mod learn;
pub mod linalg;
pub mod metric;
pub mod optimize;
pub mod passes;
pub mod random;
pub mod search;
pub mod study;
pub mod supervision;

pub use error::{Error, Result};
