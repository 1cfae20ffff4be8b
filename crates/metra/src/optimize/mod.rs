//! Optimisers. They are ours because no kept crate offers them over today's faer.

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
