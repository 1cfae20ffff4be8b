//! Optimisers. They are ours because no kept crate offers them over today's faer.

mod adam;
mod conjugate;
mod limited_memory;
mod newton;
mod objective;
mod proximal;

pub use adam::Adam;
pub use limited_memory::{Function, LimitedMemory, Stepped};
pub use newton::{Bound, Minimum, Newton};
pub use objective::Objective;
pub use proximal::{Composite, ProximalGradient, ProximalMinimum};
