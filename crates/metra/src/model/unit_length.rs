//! Division of mapped vectors by their length.

use crate::linalg::RowBuf;
use crate::{Error, Result};

/// Divide every row by its length, worked out in f64: squares of f32 can leave f32's range. `first`
/// is the number of the first row, for error messages.
pub(crate) fn normalise(first: u64, rows: &mut RowBuf) -> Result<()> {
    let dim = rows.dim();
    for (number, row) in rows.values_mut().chunks_exact_mut(dim).enumerate() {
        let length = length(first + number as u64, row)?;
        for value in row {
            *value = (f64::from(*value) / length) as f32;
        }
    }
    Ok(())
}

/// The length of a mapped row, which must not be 0.
pub(super) fn length(number: u64, row: &[f32]) -> Result<f64> {
    let squares = row.iter().map(|v| f64::from(*v).powi(2));
    let length = squares.sum::<f64>().sqrt();
    if length == 0.0 {
        return Err(Error::Row {
            row: number,
            problem: "has length 0 after the map: a cosine does not exist".into(),
        });
    }
    Ok(length)
}
