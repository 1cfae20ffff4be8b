//! Conversion from f64 to f32, with the shift and the scale that keep the precision which matters.
//!
//! Values are judged in f64 first. A value that f32 cannot hold is an error that names its cell. A
//! column that varies little around a large offset (time stamps, coordinates) would become constant
//! in f32, so it is shifted to its middle first; values all far too small or too large for products
//! in f32 are scaled by a common power of two. Neither changes the order of Euclidean distances.
//! What was done is part of the model, because new vectors must be treated alike.

use crate::linalg::RowBuf;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Fewer than 2^12 steps of f32 across a column's range count as lost.
const LOST: f64 = 1.0 / (1 << 12) as f64;
/// Outside these, sums of squares leave f32 or lose digits to underflow.
const SMALLEST: f64 = 1e-12;
const LARGEST: f64 = 1e15;

/// Shift and scale applied in f64 before values become f32: (x − shift) · scale.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Narrowing {
    /// What is taken from each column; 0 for columns that need nothing.
    pub shift: Vec<f64>,
    /// One factor for all columns, a power of two.
    pub scale: f64,
}

impl Narrowing {
    /// Narrow one row. `row` is its number, for error messages.
    pub fn apply(&self, row: u64, values: &[f64], out: &mut [f32]) -> Result<()> {
        if values.len() != self.shift.len() {
            return Err(Error::shape(
                format!("row {row}: dimension"),
                self.shift.len(),
                values.len(),
            ));
        }
        for (column, ((value, shift), out)) in values
            .iter()
            .zip(&self.shift)
            .zip(out.iter_mut())
            .enumerate()
        {
            *out = narrow_cell(row, column, (value - shift) * self.scale)?;
        }
        Ok(())
    }

    /// Narrow rows that were read as f32 already, in place.
    pub fn apply_rows(&self, first: u64, rows: &mut RowBuf) -> Result<()> {
        let mut wide = vec![0.0; rows.dim()];
        for index in 0..rows.len() {
            for (wide, value) in wide.iter_mut().zip(rows.row(index)) {
                *wide = f64::from(*value);
            }
            self.apply(first + index as u64, &wide, rows.row_mut(index))?;
        }
        Ok(())
    }
}

/// A finite f64 as f32, or an error that names the cell.
pub(crate) fn narrow_cell(row: u64, column: usize, value: f64) -> Result<f32> {
    let narrowed = value as f32;
    if narrowed.is_finite() {
        return Ok(narrowed);
    }
    let problem = if value.is_finite() {
        format!(
            "expected a value within ±{:e} (vectors are kept as f32), but found {value:e}",
            f32::MAX
        )
    } else {
        format!("expected a finite number, but found {value}")
    };
    Err(Error::Cell {
        row,
        column,
        problem,
    })
}

/// Smallest and largest value of every column: what is needed to judge how to narrow.
#[derive(Debug, Clone)]
pub struct ColumnRanges {
    low: Vec<f64>,
    high: Vec<f64>,
}

/// What [`ColumnRanges::judge`] found.
#[derive(Debug, Clone)]
pub struct NarrowingJudgement {
    /// The narrowing needed, if any.
    pub narrowing: Option<Narrowing>,
    /// Columns that hold one value only.
    pub constant_columns: usize,
    /// Columns that were shifted to keep their spread.
    pub shifted_columns: usize,
    /// Columns that vary, but so little beside the others that f32 cannot show it.
    pub lost_columns: usize,
}

impl ColumnRanges {
    /// Nothing seen yet.
    pub fn new(dim: usize) -> Self {
        ColumnRanges {
            low: vec![f64::INFINITY; dim],
            high: vec![f64::NEG_INFINITY; dim],
        }
    }

    /// See one row; values must be finite and within f32.
    pub fn update(&mut self, row: u64, values: &[f64]) -> Result<()> {
        if values.len() != self.low.len() {
            return Err(Error::shape(
                format!("row {row}: dimension"),
                self.low.len(),
                values.len(),
            ));
        }
        for (column, value) in values.iter().enumerate() {
            narrow_cell(row, column, *value)?;
            self.low[column] = self.low[column].min(*value);
            self.high[column] = self.high[column].max(*value);
        }
        Ok(())
    }

    /// See one row of f32, which must be finite.
    pub fn update_f32(&mut self, values: &[f32]) {
        for ((low, high), value) in self.low.iter_mut().zip(&mut self.high).zip(values) {
            let value = f64::from(*value);
            *low = low.min(value);
            *high = high.max(value);
        }
    }

    /// Decide how to narrow.
    pub fn judge(&self) -> NarrowingJudgement {
        let mut shift = vec![0.0; self.low.len()];
        let (mut constant_columns, mut shifted_columns) = (0, 0);
        let mut reach = 0.0_f64;
        for ((shift, low), high) in shift.iter_mut().zip(&self.low).zip(&self.high) {
            let magnitude = low.abs().max(high.abs());
            // A constant column needs no place in f32's range unless it is used as it stands.
            if high <= low {
                constant_columns += 1;
                continue;
            }
            if high - low < magnitude * LOST {
                *shift = low + (high - low) / 2.0;
                shifted_columns += 1;
            }
            reach = reach.max((low - *shift).abs()).max((high - *shift).abs());
        }
        let scale = if reach > 0.0 && !(SMALLEST..=LARGEST).contains(&reach) {
            2.0_f64.powi(-(reach.log2().floor() as i32))
        } else {
            1.0
        };
        let lost_columns = (0..shift.len())
            .filter(|c| {
                let spread = (self.high[*c] - self.low[*c]) * scale;
                spread > 0.0 && (spread as f32) < f32::MIN_POSITIVE
            })
            .count();
        let narrowing = (scale != 1.0 || shifted_columns > 0).then_some(Narrowing { shift, scale });
        NarrowingJudgement {
            narrowing,
            constant_columns,
            shifted_columns,
            lost_columns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(rows: &[[f64; 2]]) -> NarrowingJudgement {
        let mut ranges = ColumnRanges::new(2);
        for (index, row) in rows.iter().enumerate() {
            ranges.update(index as u64, row).unwrap();
        }
        ranges.judge()
    }

    #[test]
    fn ordinary_values_need_nothing() {
        let found = judge(&[[0.0, 1e8], [1.0, -1e8], [0.5, 1e-8]]);
        assert!(found.narrowing.is_none());
        assert_eq!(found.constant_columns, 0);
    }

    #[test]
    fn an_offset_is_taken_away_before_narrowing() {
        // 1e8 + {0, 1, 2} are one and the same number in f32, whose step is 8 there.
        let rows = [[1e8, 0.0], [1e8 + 1.0, 1.0], [1e8 + 2.0, 0.0]];
        let found = judge(&rows);
        assert_eq!(found.shifted_columns, 1);
        let narrowing = found.narrowing.unwrap();
        assert_eq!(narrowing.scale, 1.0);
        let mut out = [0.0; 2];
        narrowing.apply(0, &rows[0], &mut out).unwrap();
        assert_eq!(out, [-1.0, 0.0]);
        narrowing.apply(0, &rows[2], &mut out).unwrap();
        assert_eq!(out, [1.0, 0.0]);
    }

    #[test]
    fn tiny_values_are_scaled_up() {
        let rows = [[1e-200, 0.0], [3e-200, 2e-200]];
        let narrowing = judge(&rows).narrowing.unwrap();
        let mut out = [0.0; 2];
        narrowing.apply(0, &rows[1], &mut out).unwrap();
        assert!((out[1] / out[0] - 2.0 / 3.0).abs() < 1e-6 && out[0].abs() > 0.1);
    }

    #[test]
    fn overflow_names_the_cell() {
        let error = ColumnRanges::new(2).update(7, &[1.0, 1e200]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "row 7, column 1: expected a value within ±3.4028235e38 (vectors are kept as f32), but found 1e200"
        );
        assert!(ColumnRanges::new(2).update(7, &[f64::NAN, 1.0]).is_err());
    }
}
