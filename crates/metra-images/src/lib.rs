//! Images on both ends of a metric: features that come out of them, and pictures that show what was
//! found.
//!
//! [`decode`] is the one door for pixels, with limits. Nothing here writes tables: features are rows of
//! f32, and whoever calls writes them.

pub mod decode;
pub mod describe;
mod error;
pub mod gist;
mod resample;

pub use decode::{Limits, Picture};
pub use describe::Describe;
pub use error::{Error, Result};
pub use gist::{Gist, GistSettings, Grid};
