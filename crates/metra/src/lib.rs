//! Metra learns what "similar" means for vectors that already exist, so that the right answers
//! rank first, and says honestly by how much.
//!
//! The modules follow the way of a vector: [`data`] (where vectors lie) and [`supervision`] (what
//! is relevant to what) make a [`learn::Problem`]; a learner of [`learn`] turns it into a
//! [`metric`]; [`search`] ranks with it; [`evaluate`] judges the ranking; [`study`] chooses
//! settings on held-out parts and states the gain with an interval.
//!
//! ```
//! use metra::Dataset;
//! use metra::data::synthetic::Nuisance;
//! use metra::methods::Warca;
//! use metra::model::Map;
//! use metra::supervision::{Labels, Supervision};
//! use metra::training::{Method, Run};
//!
//! // 40 classes that differ in 4 of 16 coordinates; the other 12 are loud noise.
//! let set = Nuisance { classes: 40, signal: 4, noise: 12, seed: 7 }.rows(320);
//! let supervision = Supervision::labels(Labels::from_numbers(&set.classes)?);
//! let data = Dataset::new(&set.corpus, &supervision)?;
//! let method = Warca { rank: 4, ..Warca::default() }.checked()?;
//! let Map::LowRank(map) = method.fit(&data, &mut Run::new(1))? else { unreachable!() };
//! assert_eq!(map.output_dim(), 4);
//! # Ok::<(), metra::Error>(())
//! ```
//!
//! Work is spread over the rayon pool of the caller; results do not depend on its size.

pub mod data;
pub mod dataset;
mod error;
pub mod evaluate;
pub mod execute;
pub mod experiment;
pub mod linalg;
pub mod methods;
pub mod model;
pub mod optimize;
pub mod passes;
pub mod pipeline;
pub mod random;
pub mod search;
pub mod supervision;
pub mod training;

pub use dataset::Dataset;
pub use error::{Error, Result};
pub use model::Model;
pub use pipeline::Pipeline;
