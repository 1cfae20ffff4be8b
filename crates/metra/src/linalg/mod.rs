//! Linear algebra: row-major f32 matrices, blocked products over faer, decompositions in f64.
//!
//! Blocks have a fixed size that does not depend on the number of threads, and sums are never
//! split between threads in a way that depends on their number: results are the same bytes
//! on one thread and on many.

pub(crate) mod decompose;
mod exponential;
mod generalised;
pub(crate) mod kernels;
pub(crate) mod products;
mod rows;
mod simd;

pub(crate) use decompose::rows_from;
pub(crate) use decompose::{Eigen, Symmetric, discriminant_directions};
pub(crate) use exponential::{exponential, exponential_f64, softplus};
pub(crate) use generalised::largest_ratios;
pub use kernels::Kernel;
pub(crate) use kernels::{finish_kernel, gram, raw_kernel_within};
pub(crate) use products::{
    BLOCK_ROWS, accumulate_outer, accumulate_product, block_distance, cross, dot, map_rows, mix,
    product, squared_norms, transposed_product,
};
pub use rows::{RowBuf, Rows};
pub(crate) use simd::{LANES, vectorized};
