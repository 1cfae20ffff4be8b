//! Coordinates in which a linear scorer is learned, whether it is linear in the vectors or in a
//! kernel's feature space, brought to unit size.
//!
//! In the kernel form w = Σ a_m φ(x_m) lies in the span of landmark rows. Coordinates of kernel PCA
//! have the centred kernel as their inner product, for landmarks exactly, so |w|² and all scores are
//! those of the kernel form, and one linear solver serves both (Chapelle 2007 works with a itself;
//! the optimum is the same).

use crate::data::Corpus;
use crate::execute::spread;
use crate::linalg::RowBuf;
use crate::model::Map;
use crate::training::training_space::TrainingSpace;
use crate::{Error, Result};

/// Rows in which scores are linear, and the way back.
pub(super) struct Coordinates<'a> {
    space: TrainingSpace<'a>,
    /// Root of the mean squared distance from the mean: coordinates are divided by it.
    pub(super) scale: f64,
}

impl<'a> Coordinates<'a> {
    /// Those of the training space, with their size.
    pub(super) fn new(space: TrainingSpace<'a>) -> Result<Self> {
        let deviation = spread(space.items())?.deviation;
        let scale = deviation.iter().map(|d| d * d).sum::<f64>().sqrt();
        if scale.is_finite() && scale > 0.0 {
            return Ok(Coordinates { space, scale });
        }
        Err(Error::Data(
            "all vectors are equal: nothing can be learned".into(),
        ))
    }

    /// The rows; scores are w·row/scale.
    pub(super) fn rows(&self) -> &dyn Corpus {
        self.space.items()
    }

    /// The map of the vectors whose outputs are the scores of these scorers, less their means.
    pub(super) fn map(&self, scorers: &[Vec<f64>]) -> Result<Map> {
        let mut scaled = RowBuf::zeros(scorers.len(), self.space.dim());
        for (row, scorer) in scorers.iter().enumerate() {
            for (value, weight) in scaled.row_mut(row).iter_mut().zip(scorer) {
                *value = (weight / self.scale) as f32;
            }
        }
        self.space.carry_back(&scaled, 1.0, true)
    }
}
