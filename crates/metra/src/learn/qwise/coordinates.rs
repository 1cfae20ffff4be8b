//! Coordinates in which a linear scorer is learned, whether it is linear in the vectors or in a
//! kernel's feature space, and the way back to a map of the vectors.
//!
//! In the kernel form w = Σ a_m φ(x_m) lies in the span of landmark rows. Coordinates of kernel PCA
//! have the centred kernel as their inner product, for landmarks exactly, so |w|² and all scores are
//! those of the kernel form, and one linear solver serves both (Chapelle 2007 works with a itself;
//! the optimum is the same). With all rows as landmarks nothing is approximated; with some of them it
//! is the Nyström approximation.

use super::super::kernel::{KernelAxes, KernelKind, KernelSpec};
use super::super::reduce::{PrincipalAxes, coordinates, principal_axes};
use crate::data::{Corpus, MemoryCorpus};
use crate::execute::spread;
use crate::linalg::RowBuf;
use crate::metric::{Embedded, LowRank, Map};
use crate::{Error, Result};

/// Rows in which scores are linear, and the way back.
pub(super) struct Field<'a> {
    corpus: &'a dyn Corpus,
    kind: FieldKind,
    /// Root of the mean squared distance from the mean: coordinates are divided by it.
    pub(super) scale: f64,
}

enum FieldKind {
    Plain { mean: Vec<f64> },
    Reduced(PrincipalAxes, MemoryCorpus),
    Kernel(KernelAxes, Embedded),
}

impl<'a> Field<'a> {
    /// Linear: the vectors themselves, or, where there are fewer rows than dimensions, their
    /// coordinates in the rows' span.
    pub(super) fn linear(corpus: &'a dyn Corpus) -> Result<Self> {
        let kind = if corpus.len() < corpus.dim() as u64 {
            let axes = principal_axes(corpus)?;
            let rows = coordinates(corpus, &axes)?;
            FieldKind::Reduced(axes, rows)
        } else {
            let mean = spread(corpus)?.mean;
            FieldKind::Plain { mean }
        };
        Self::scaled(corpus, kind)
    }

    /// A kernel's feature space, spanned by at most `landmarks` rows.
    pub(super) fn kernel(
        corpus: &'a dyn Corpus,
        kind: KernelKind,
        width: f64,
        landmarks: usize,
        seed: u64,
    ) -> Result<Self> {
        let spec = KernelSpec {
            kind,
            width,
            degree: 2,
            offset: 1.0,
            landmarks,
        };
        let axes = KernelAxes::new(corpus, spec, seed)?;
        let rows = axes.own_coordinates(corpus)?;
        Self::scaled(corpus, FieldKind::Kernel(axes, rows))
    }

    fn scaled(corpus: &'a dyn Corpus, kind: FieldKind) -> Result<Self> {
        let mut field = Field {
            corpus,
            kind,
            scale: 1.0,
        };
        let deviation = spread(field.rows())?.deviation;
        field.scale = deviation.iter().map(|d| d * d).sum::<f64>().sqrt();
        if field.scale.is_finite() && field.scale > 0.0 {
            return Ok(field);
        }
        Err(Error::Data(
            "all vectors are equal: nothing can be learned".into(),
        ))
    }

    /// The rows; scores are w·row/scale.
    pub(super) fn rows(&self) -> &dyn Corpus {
        match &self.kind {
            FieldKind::Plain { .. } => self.corpus,
            FieldKind::Reduced(_, rows) => rows,
            FieldKind::Kernel(_, rows) => rows.corpus(),
        }
    }

    /// The map of the vectors whose outputs are the scores of these scorers, less their means.
    pub(super) fn map(&self, scorers: &[Vec<f64>]) -> Result<Map> {
        let mut scaled = RowBuf::zeros(scorers.len(), self.rows().dim());
        for (row, scorer) in scorers.iter().enumerate() {
            for (value, weight) in scaled.row_mut(row).iter_mut().zip(scorer) {
                *value = (weight / self.scale) as f32;
            }
        }
        match &self.kind {
            FieldKind::Plain { mean } => Ok(Map::LowRank(LowRank::centred(scaled, mean)?)),
            FieldKind::Reduced(axes, _) => {
                let weights = axes.carry_back(&scaled)?;
                Ok(Map::LowRank(LowRank::centred(weights, &axes.mean)?))
            }
            FieldKind::Kernel(axes, _) => axes.map(axes.carry_back(&scaled)?),
        }
    }
}
