//! Computes the stored vectors and the query vectors of a plan, in f64 from the mapped vectors;
//! they leave as f32, checked: a store must never be given NaN.

use super::{Affine, Distance, Form, Plan};
use crate::data::{Batch, check_rows};
use crate::linalg::{RowBuf, Rows};
use crate::model::indefinite::{signed_square, turn};
use crate::model::unit_length::{length, normalise};
use crate::model::{Embedding, Side, Space};
use crate::{Error, Result};

impl Plan {
    /// What the store has to hold for these items; `first` is the number of the first row, for error
    /// messages. Rows are those that the chain takes.
    pub fn map_items(&self, first: u64, batch: &Batch<'_>, out: &mut RowBuf) -> Result<()> {
        self.chain.check_dim(Side::Item, batch)?;
        let mut mapped = RowBuf::empty(1);
        match &self.form {
            Form::Mapped { .. } | Form::UnitLength | Form::Candidates => {
                self.chain.embed_items(first, batch, out)?;
                self.finish_mapped(first, out)?;
            }
            Form::MappedAndNorm => {
                self.chain.embed_items(first, batch, &mut mapped)?;
                self.subtract_centre(&mut mapped);
                out.reset(mapped.len(), self.item_dim());
                for (number, row) in mapped.rows().iter().enumerate() {
                    let own = -0.5 * signed_square(row, self.signs);
                    write(out.row_mut(number), row.iter().copied().chain([own as f32]));
                }
            }
            Form::Input(input) => {
                out.clear(self.input_dim());
                out.extend(batch.rows);
                if input.scale != 1.0 {
                    for value in out.values_mut() {
                        *value = (f64::from(*value) / input.scale) as f32;
                    }
                }
            }
            Form::InputAndNorm(input) => {
                self.chain.embed_items(first, batch, &mut mapped)?;
                let centre = self.wide_centre();
                out.reset(mapped.len(), self.item_dim());
                for (number, (row, z)) in batch.rows.iter().zip(mapped.rows().iter()).enumerate() {
                    let squares = z.iter().enumerate().map(|(at, value)| {
                        let origin = centre.as_ref().and_then(|c| c.get(at)).unwrap_or(&0.0);
                        self.signs.own(at) * (f64::from(*value) - origin).powi(2)
                    });
                    let own = -0.5 * squares.sum::<f64>();
                    let stored = row.iter().map(|v| f64::from(*v) / input.scale);
                    write(out.row_mut(number), stored.chain([own]).map(|v| v as f32));
                }
            }
            Form::Rescaled(input) => {
                self.chain.embed_items(first, batch, &mut mapped)?;
                out.reset(mapped.len(), self.item_dim());
                for (number, (row, z)) in batch.rows.iter().zip(mapped.rows().iter()).enumerate() {
                    let length = length(first + number as u64, z)?;
                    let stored = row.iter().map(|v| f64::from(*v) / input.scale);
                    // The 1 is written where the plan has a place for it.
                    let divided = stored.chain([1.0]).map(|v| (v / length) as f32);
                    write(out.row_mut(number), divided);
                }
            }
        }
        self.check(first, out.rows())
    }

    /// What the store has to be asked with for these queries; `first` is the number of the first
    /// row, for error messages. Rows are those that the chain takes.
    pub fn map_queries(&self, first: u64, batch: &Batch<'_>, out: &mut RowBuf) -> Result<()> {
        let mut mapped = RowBuf::empty(1);
        self.chain.embed_queries(first, batch, &mut mapped)?;
        match &self.form {
            Form::Mapped { .. } | Form::UnitLength | Form::Candidates => {
                *out = mapped;
                self.finish_mapped(first, out)?;
            }
            Form::MappedAndNorm => {
                self.subtract_centre(&mut mapped);
                out.reset(mapped.len(), self.item_dim());
                for (number, row) in mapped.rows().iter().enumerate() {
                    let mapped = out.row_mut(number);
                    write(mapped, row.iter().copied().chain([1.0]));
                    turn(&mut mapped[..row.len()], self.signs);
                }
            }
            Form::Input(input) => {
                // |z_q − z|² = s² |y − x|² plus a part of the query, with y = Aᵀ (z_q − b) / s².
                let affine = &input.affine;
                let (shift, factor) = match self.chain.space() {
                    Space::SquaredL2 => (
                        Some(affine.offset.as_slice()),
                        affine.isometry().map_or(1.0, |squared| 1.0 / squared),
                    ),
                    _ => (None, 1.0),
                };
                self.take_back(affine, mapped.rows(), shift, factor, None, out);
            }
            Form::InputAndNorm(input) => {
                let mut centre = self.wide_centre();
                for (at, origin) in centre.iter_mut().flatten().enumerate() {
                    *origin *= self.signs.crossed(at);
                }
                for row in mapped
                    .values_mut()
                    .chunks_exact_mut(self.chain.output_dim())
                {
                    turn(row, self.signs);
                }
                let ones = vec![1.0; mapped.len()];
                let affine = &input.affine;
                self.take_back(
                    affine,
                    mapped.rows(),
                    centre.as_deref(),
                    1.0,
                    Some(&ones),
                    out,
                );
            }
            Form::Rescaled(input) => {
                // At length 1, so that the store's inner product is the cosine itself.
                normalise(first, &mut mapped)?;
                let affine = &input.affine;
                let offsets: Vec<f64> = mapped
                    .rows()
                    .iter()
                    .map(|z| {
                        z.iter()
                            .zip(&affine.offset)
                            .map(|(z, b)| f64::from(*z) * b)
                            .sum()
                    })
                    .collect();
                self.take_back(affine, mapped.rows(), None, 1.0, Some(&offsets), out);
            }
        }
        self.check(first, out.rows())
    }

    /// `factor · Aᵀ (z − shift)` for every mapped row, followed by its last number where the plan
    /// has a place for one.
    fn take_back(
        &self,
        affine: &Affine,
        mapped: Rows<'_>,
        shift: Option<&[f64]>,
        factor: f64,
        last: Option<&[f64]>,
        out: &mut RowBuf,
    ) {
        out.reset(mapped.len(), self.item_dim());
        affine
            .linear
            .for_each_back(mapped, shift, &mut |number, values| {
                let last = last.and_then(|last| last.get(number)).copied();
                let all = values.map(|v| v * factor).chain(last);
                write(out.row_mut(number), all.map(|v| v as f32));
            });
    }

    fn finish_mapped(&self, first: u64, rows: &mut RowBuf) -> Result<()> {
        self.subtract_centre(rows);
        match self.form {
            Form::UnitLength => normalise(first, rows),
            _ => Ok(()),
        }
    }

    fn subtract_centre(&self, rows: &mut RowBuf) {
        if let Some(centre) = &self.centre {
            for row in rows.values_mut().chunks_exact_mut(centre.len()) {
                for (value, centre) in row.iter_mut().zip(centre) {
                    *value -= centre;
                }
            }
        }
    }

    fn wide_centre(&self) -> Option<Vec<f64>> {
        let centre = self.centre.as_ref()?;
        Some(centre.iter().map(|v| f64::from(*v)).collect())
    }

    /// Refuse what a store cannot compare.
    fn check(&self, first: u64, rows: Rows<'_>) -> Result<()> {
        check_rows(first, rows)?;
        if self.distance == Distance::Cosine
            && let Some(at) = rows.iter().position(|row| row.iter().all(|v| *v == 0.0))
        {
            return Err(Error::Row {
                row: first + at as u64,
                problem: "has length 0 in the store: a cosine does not exist".into(),
            });
        }
        Ok(())
    }
}

fn write(row: &mut [f32], values: impl Iterator<Item = f32>) {
    for (place, value) in row.iter_mut().zip(values) {
        *place = value;
    }
}
