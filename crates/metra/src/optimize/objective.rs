//! What Newton's method minimises: a smooth convex function with its derivatives.

use crate::Result;
use faer::Mat;

/// A convex function with a gradient everywhere and a second derivative almost everywhere.
///
/// The second derivative is always that of the point last given to [`Objective::evaluate`], so
/// that an implementation can keep what it worked out there. Values and derivatives must be sums
/// in a fixed order: the same point gives the same bytes on any number of threads.
pub(crate) trait Objective {
    /// Numbers in a point.
    fn dim(&self) -> usize;

    /// The value at `point`; its gradient replaces what is in `gradient`.
    fn evaluate(&mut self, point: &[f64], gradient: &mut [f64]) -> Result<f64>;

    /// The second derivative times `direction`, which replaces what is in `out`.
    fn hessian_product(&self, direction: &[f64], out: &mut [f64]) -> Result<()>;

    /// Add the second derivative to `out` (dim × dim); only what lies on and below the diagonal
    /// is read.
    fn add_hessian(&self, out: &mut Mat<f64>) -> Result<()>;
}
