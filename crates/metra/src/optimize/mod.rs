//! Optimisers: Adam, L-BFGS, projected Newton and proximal gradient; written here because no
//! maintained crate offers them over the current faer.

mod adam;
mod conjugate;
mod limited_memory;
mod newton;
mod objective;
mod proximal;

pub(crate) use adam::Adam;
pub(crate) use limited_memory::LimitedMemory;
pub(crate) use newton::{Bound, Newton};
pub(crate) use objective::Objective;
pub(crate) use proximal::{Composite, ProximalGradient, ProximalMinimum};
