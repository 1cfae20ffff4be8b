//! Sparse vectors in Parquet and Feather: a column of structs with two lists, `indices` and `values`, as vector databases
//! have them.
//!
//! The metadata `dim` of the column says how many dimensions there are; without it the largest index does, which is
//! that of one file only.

use crate::arrow_container::Container;
use crate::arrow_values::{MOST_NUMBERS, NumberReader, list_element, numbers, range};
use crate::element::{ElementType, Vector};
use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};
use std::path::Path;

/// The numbers of sparse vectors, where a column holds such.
pub(crate) fn sparse_element(kind: &DataType) -> Option<ElementType> {
    let DataType::Struct(fields) = kind else {
        return None;
    };
    let (_, indices) = fields.find("indices")?;
    let is_whole = |item: &Field| item.data_type().is_integer();
    match indices.data_type() {
        DataType::List(item) | DataType::LargeList(item) if is_whole(item) => {}
        _ => return None,
    }
    list_element(fields.find("values")?.1.data_type())
}

/// The lists of a batch.
pub(crate) struct SparseArrays<'a> {
    whole: &'a ArrayRef,
    indices: (&'a ArrayRef, NumberReader<'a>),
    values: (&'a ArrayRef, NumberReader<'a>),
}

impl<'a> SparseArrays<'a> {
    /// `None` for a column that [`sparse_element`] refuses.
    pub(crate) fn new(whole: &'a ArrayRef) -> Option<Self> {
        let fields = whole.as_struct_opt()?;
        let side = |name: &str| {
            let lists = fields.column_by_name(name)?;
            let inner = match lists.data_type() {
                DataType::FixedSizeList(..) => lists.as_fixed_size_list().values(),
                DataType::List(_) => lists.as_list::<i32>().values(),
                DataType::LargeList(_) => lists.as_list::<i64>().values(),
                _ => return None,
            };
            Some((lists, numbers(inner)?))
        };
        Some(SparseArrays {
            whole,
            indices: side("indices")?,
            values: side("values")?,
        })
    }

    /// Indices and numbers of a row; `None` where it is missing.
    fn row(
        &self,
        row: usize,
    ) -> Option<(
        impl ExactSizeIterator<Item = f64> + '_,
        impl ExactSizeIterator<Item = f64> + '_,
    )> {
        let (indices, index) = &self.indices;
        let (values, value) = &self.values;
        if self.whole.is_null(row) || indices.is_null(row) || values.is_null(row) {
            return None;
        }
        let ((from, to), (first, last)) = (range(indices, row), range(values, row));
        Some(((from..to).map(index), (first..last).map(value)))
    }

    /// The vector of a row with all its zeros, or what is wrong with it; false where it is missing.
    pub(crate) fn fill(
        &self,
        row: usize,
        dim: usize,
        out: &mut Vector,
    ) -> std::result::Result<bool, String> {
        let Some((indices, values)) = self.row(row) else {
            return Ok(false);
        };
        if indices.len() != values.len() {
            let (indices, values) = (indices.len(), values.len());
            return Err(format!("has {indices} indices, but {values} values"));
        }
        let mut dense = vec![0.0_f64; dim];
        let mut seen: Vec<usize> = Vec::with_capacity(indices.len());
        for (index, value) in indices.zip(values) {
            let place = (0.0..dim as f64).contains(&index).then_some(index as usize);
            let place = place.ok_or_else(|| {
                format!("has the index {index}, expected indices from 0 and below {dim}")
            })?;
            dense[place] = value;
            seen.push(place);
        }
        seen.sort_unstable();
        if let Some(twice) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("has the index {} twice", twice[0]));
        }
        out.fill(dense.into_iter());
        Ok(true)
    }

    /// The largest index.
    fn largest(&self) -> f64 {
        let rows = (0..self.whole.len()).filter_map(|row| self.row(row));
        rows.flat_map(|(indices, _)| indices).fold(-1.0, f64::max)
    }
}

/// How many dimensions the sparse vectors of a column have.
pub(crate) fn dimension(
    container: Container,
    path: &Path,
    field: &Field,
    column: usize,
    batch_rows: usize,
) -> Result<usize> {
    if let Some(text) = field.metadata().get("dim") {
        let dim = text
            .parse()
            .ok()
            .filter(|dim| (1..=MOST_NUMBERS).contains(dim));
        return dim.ok_or_else(|| {
            let problem = format!(
                "column {:?}: expected its metadata \"dim\" to be a number from 1 to {MOST_NUMBERS}, but found \
                 {text:?}",
                field.name()
            );
            Error::file(path, problem)
        });
    }
    let mut largest = -1.0_f64;
    container.batches(path, &[column], batch_rows, &mut |batch| {
        if let Some(arrays) = batch.columns().first().and_then(SparseArrays::new) {
            largest = largest.max(arrays.largest());
        }
        Ok(())
    })?;
    let dim = largest + 1.0;
    if dim < 1.0 {
        let problem = format!(
            "column {:?}: no row has an index: state the number of dimensions in its metadata \"dim\"",
            field.name()
        );
        return Err(Error::file(path, problem));
    }
    if dim > MOST_NUMBERS as f64 {
        let problem = format!(
            "column {:?}: expected indices below {MOST_NUMBERS}, but the largest is {largest}",
            field.name()
        );
        return Err(Error::file(path, problem));
    }
    Ok(dim as usize)
}
