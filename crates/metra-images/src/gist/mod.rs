//! GIST: what a scene looks like as a whole, by the energy of textures in the parts of the image.
//!
//! Oliva and Torralba, "Modeling the shape of the scene", IJCV 2001: contrast made even (`prefilter`), 32
//! filters of 4 scales and 8 orientations (`bank`), and the mean of what passes each in 4 × 4 blocks: 512
//! numbers. Choices that the published code leaves to its options are those under which the published
//! features of OSR and PubFig were found again: the image is stretched to 128 × 128 whatever its shape, and
//! filters wrap around rather than see a border. Numbers are ordered by filter (scale, then orientation), of
//! each filter by block, columns first.
//!
//! Transforms run in f32, as the result is kept: they differ from f64 by some 1e-6.

mod bank;
mod descriptor;
mod fourier;
mod grid;
mod prefilter;

pub use descriptor::{Gist, GistSettings};
pub use grid::Grid;
pub(crate) use grid::cell;
