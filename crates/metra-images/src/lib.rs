//! Images on both ends of a metric: features that come out of them, and pictures that show what was
//! found.
//!
//! [`decode`] is the one door for pixels, with limits. Nothing here writes tables: features are rows of
//! f32, and whoever calls writes them.

pub mod decode;
mod error;
pub mod pages;

pub use decode::{Limits, Picture};
pub use error::{Error, Result};
