//! The passes of [`metra`] over tables of any size: Apache DataFusion on one machine, Ballista on
//! many.

pub mod cluster;
mod error;
pub mod operators;
pub mod stores;

pub use error::{Error, Result};

/// Names of the passes that this build knows. Programs of one cluster must know the same ones.
pub fn passes() -> Vec<&'static str> {
    Vec::new()
}
