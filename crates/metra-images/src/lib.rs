//! Images on both ends of a metric: features that come out of them, and pictures that show what was
//! found.
//!
//! [`list`] says which images and what their names tell, [`decode`] is the one door for pixels, with limits,
//! [`Stripes`], [`Lomo`], [`Gist`], [`Grid`] and [`LabHistogram`] make features of them, and [`rows`] does so for a
//! whole list, in parallel and in order. [`pages`] finds the changes of a web page that matter. Nothing here
//! writes tables: features are rows of f32, and whoever calls writes them.

mod binary_patterns;
pub mod colour;
pub mod decode;
pub mod describe;
pub mod encode;
mod error;
pub mod gist;
pub mod list;
pub mod lomo;
mod manifest;
pub mod pages;
pub mod pattern;
mod resample;
pub mod rows;
pub mod sheet;
pub mod stripes;

pub use colour::LabHistogram;
pub use decode::{Limits, Picture};
pub use describe::Describe;
pub use error::{Error, Result};
pub use gist::{Gist, GistSettings, Grid};
pub use list::{ImageEntry, List, Unmatched};
pub use lomo::Lomo;
pub use pattern::Pattern;
pub use stripes::Stripes;
