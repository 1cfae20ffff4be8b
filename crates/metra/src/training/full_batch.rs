//! Losses over all rows at once: the gradient with respect to the mapped rows, carried back to the
//! map, and quasi-Newton steps with it.
//!
//! With slopes S (rows × rank) of the loss by the mapped rows Z = X Lᵀ, the slope by L is Sᵀ X. Rows are
//! read in blocks wherever they lie; only mapped rows are kept.

use super::descent::{Descent, Outcome, check_finite};
use super::training_space::{TrainingSpace, fetch};
use crate::Result;
use crate::data::{Corpus, RowId};
use crate::linalg::{RowBuf, Rows, map_rows, transposed_product};
use crate::model::Map;
use crate::optimize::LimitedMemory;

/// A loss of all mapped rows, with its slope by each of them.
pub(crate) trait MappedLoss {
    /// Its value and slopes. Sums must run in a fixed order.
    fn evaluate(&self, mapped: Rows<'_>) -> Result<(f64, RowBuf)>;
}

/// All rows of a training space, as a map of some rank sees them.
pub(crate) struct FullBatch<'a> {
    pub(crate) space: &'a TrainingSpace<'a>,
    corpus: &'a dyn Corpus,
    centre: Option<Vec<f32>>,
    inverse: f32,
    rank: usize,
}

/// Rows that are fetched and mapped at once.
const BLOCK: usize = 4096;
/// Moves that shape a step.
const REMEMBERED: usize = 12;

impl<'a> FullBatch<'a> {
    /// The rows of a corpus in the coordinates of a training space, divided by `scale`.
    pub(crate) fn new(
        space: &'a TrainingSpace<'a>,
        corpus: &'a dyn Corpus,
        scale: f64,
        rank: usize,
    ) -> Self {
        FullBatch {
            centre: space.centre(),
            space,
            corpus,
            inverse: (1.0 / scale) as f32,
            rank,
        }
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.corpus.len() as usize
    }

    /// A map as steps move it.
    pub(crate) fn point(&self, map: &RowBuf) -> Vec<f64> {
        map.values().iter().map(|value| f64::from(*value)).collect()
    }

    /// The map of a point, over rows of the training space.
    pub(crate) fn map_at(&self, point: &[f64]) -> Result<RowBuf> {
        let values = point.iter().map(|value| *value as f32).collect();
        RowBuf::from_values(values, self.corpus.dim())
    }

    /// The map of a point, over vectors of the data.
    pub(crate) fn carry_back(&self, point: &[f64]) -> Result<Map> {
        self.space
            .carry_back(&self.map_at(point)?, self.inverse, true)
    }

    /// All rows under the map of a point.
    pub(crate) fn mapped(&self, point: &[f64]) -> Result<RowBuf> {
        let map = self.map_at(point)?;
        let mut all = RowBuf::zeros(self.rows(), self.rank);
        let mut part = RowBuf::empty(1);
        self.blocks(|first, rows| {
            map_rows(rows.rows(), map.rows(), &mut part)?;
            let target = &mut all.values_mut()[first * self.rank..];
            target[..part.values().len()].copy_from_slice(part.values());
            Ok(())
        })?;
        Ok(all)
    }

    /// The loss at a point; its gradient replaces what is in `gradient`.
    pub(crate) fn evaluate(
        &self,
        loss: &dyn MappedLoss,
        point: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64> {
        let mapped = self.mapped(point)?;
        let (value, slopes) = loss.evaluate(mapped.rows())?;
        gradient.fill(0.0);
        let mut part = RowBuf::empty(1);
        self.blocks(|first, rows| {
            let slopes = slopes.rows().slice(first, first + rows.len());
            transposed_product(slopes, rows.rows(), &mut part)?;
            for (sum, value) in gradient.iter_mut().zip(part.values()) {
                *sum += f64::from(*value);
            }
            Ok(())
        })?;
        Ok(value)
    }

    /// All rows, centred and scaled, some at a time.
    fn blocks(&self, mut visit: impl FnMut(usize, &RowBuf) -> Result<()>) -> Result<()> {
        let mut rows = RowBuf::empty(1);
        let ids: Vec<RowId> = (0..self.corpus.len()).collect();
        for (number, ids) in ids.chunks(BLOCK).enumerate() {
            rows.reset(ids.len(), self.corpus.dim());
            let centre = self.centre.as_deref();
            fetch(self.corpus, ids, centre, self.inverse, rows.values_mut())?;
            visit(number * BLOCK, &rows)?;
        }
        Ok(())
    }
}

/// Quasi-Newton steps along a loss that stays the same, with a pull of the map towards 0.
pub(crate) struct LbfgsDescent<'a, L> {
    whole: FullBatch<'a>,
    loss: L,
    /// Weight of |L|².
    lambda: f64,
    /// Further steps are in vain where one lets the value fall by less than this share.
    tolerance: f64,
    steps: Option<LimitedMemory>,
}

impl<'a, L: MappedLoss> LbfgsDescent<'a, L> {
    pub(crate) fn new(whole: FullBatch<'a>, loss: L, lambda: f64, tolerance: f64) -> Self {
        LbfgsDescent {
            whole,
            loss,
            lambda,
            tolerance,
            steps: None,
        }
    }

    /// The value at the point last reached.
    pub(crate) fn value(&self) -> Option<f64> {
        self.steps.as_ref().map(LimitedMemory::value)
    }
}

impl<L: MappedLoss> Descent for LbfgsDescent<'_, L> {
    /// L, row after row.
    type State = Vec<f64>;
    // What the steps before it found shapes the next one.
    const RESUMES: bool = false;

    fn step(&mut self, point: &mut Vec<f64>, step: u64, _: f64, _: u64) -> Result<Outcome> {
        let (whole, loss, lambda) = (&self.whole, &self.loss, self.lambda);
        let mut function = |point: &[f64], gradient: &mut [f64]| {
            let mut value = whole.evaluate(loss, point, gradient)?;
            for (g, p) in gradient.iter_mut().zip(point) {
                value += lambda * p * p;
                *g += 2.0 * lambda * p;
            }
            Ok(value)
        };
        let mut steps = match self.steps.take() {
            Some(steps) => steps,
            None => LimitedMemory::begin(point, REMEMBERED, &mut function)?,
        };
        let stepped = steps.step(point, &mut function)?;
        let value = steps.value();
        self.steps = Some(steps);
        check_finite(&[], value, step)?;
        Ok(Outcome {
            loss: value,
            finished: stepped.is_none_or(|s| s.fall <= self.tolerance * s.value.abs()),
            ..Outcome::default()
        })
    }

    fn map(&self, point: &Vec<f64>) -> Result<Map> {
        self.whole.carry_back(point)
    }
}
