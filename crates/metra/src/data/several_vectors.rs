//! Rows that are several vectors, one behind the other: a title's and a body's, or those of two models.

use super::element::divide_by_length;
use crate::linalg::RowBuf;
use crate::{Error, Result};
use std::ops::Range;

/// The dimension of a row of vectors of these dimensions, or an error where one of them has none.
pub(crate) fn row_dim(vector_dims: &[usize]) -> Result<usize> {
    let sum = (vector_dims.iter()).try_fold(0_usize, |sum, dim| sum.checked_add(*dim));
    match sum.filter(|_| !vector_dims.is_empty() && !vector_dims.contains(&0)) {
        Some(dim) => Ok(dim),
        None => Err(Error::shape(
            "dimensions of the vectors of a row",
            "at least 1 each",
            format!("{vector_dims:?}"),
        )),
    }
}

/// Where each vector lies in a row.
pub(crate) fn places(vector_dims: &[usize]) -> impl Iterator<Item = Range<usize>> + '_ {
    vector_dims.iter().scan(0, |first, dim| {
        let place = *first..*first + dim;
        *first = place.end;
        Some(place)
    })
}

/// Divide every vector of every row by its own length. Vectors of zeros stay, but not all of a row may be zeros. `first` is the
/// number of the first row, for error messages.
pub(crate) fn normalise_each(first: u64, vector_dims: &[usize], rows: &mut RowBuf) -> Result<()> {
    let dim = rows.dim();
    for (index, row) in rows.values_mut().chunks_exact_mut(dim).enumerate() {
        let mut found = false;
        for place in places(vector_dims) {
            found |= divide_by_length(&mut row[place]);
        }
        if !found {
            return Err(Error::Row {
                row: first + index as u64,
                problem: "expected a vector of non-zero length to normalise, but all vectors of the row are 0".into(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_vector_has_length_one_or_none() {
        let values = vec![3.0, 4.0, 5.0, 0.0, 0.0, -2.0];
        let mut rows = RowBuf::from_values(values, 3).unwrap();
        normalise_each(0, &[2, 1], &mut rows).unwrap();
        assert_eq!(rows.values(), &[0.6, 0.8, 1.0, 0.0, 0.0, -1.0]);
        let mut rows = RowBuf::from_values(vec![1.0, 1.0, 0.0, 0.0], 2).unwrap();
        let error = normalise_each(7, &[1, 1], &mut rows).unwrap_err();
        assert!(error.to_string().starts_with("row 8:"), "{error}");
    }

    #[test]
    fn dimensions_are_at_least_one_and_add_up() {
        assert_eq!(row_dim(&[2, 3]).unwrap(), 5);
        assert_eq!(places(&[2, 3]).collect::<Vec<_>>(), [0..2, 2..5]);
        for wrong in [&[][..], &[2, 0], &[usize::MAX, 1]] {
            assert!(row_dim(wrong).is_err(), "{wrong:?}");
        }
    }
}
