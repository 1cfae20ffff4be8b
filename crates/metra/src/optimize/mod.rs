//! Optimisers. They are ours because no kept crate offers them over today's faer.

mod adam;

pub use adam::Adam;
