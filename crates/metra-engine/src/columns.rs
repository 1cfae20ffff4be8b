//! TableColumns of a batch as the library wants them: vectors as rows of f32, labels as class numbers.

use crate::{Error, Result};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, GenericListArray, OffsetSizeTrait, RecordBatch,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type, Int64Type};
use metra::linalg::Rows;
use std::collections::HashMap;

/// A column of a batch by its name.
pub(crate) fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef> {
    let found = batch.column_by_name(name);
    found.ok_or_else(|| Error::table(name, "the column was not read"))
}

/// Dimension of the vectors of a column of this type, where the type tells; an error where it holds no
/// vectors.
pub(crate) fn vector_dim(column: &str, data_type: &DataType) -> Result<Option<usize>> {
    let is_number = |field: &DataType| field.is_floating() || field.is_integer();
    match data_type {
        DataType::FixedSizeList(field, dim) if is_number(field.data_type()) => {
            Ok(usize::try_from(*dim).ok())
        }
        DataType::List(field) | DataType::LargeList(field) if is_number(field.data_type()) => {
            Ok(None)
        }
        other => Err(Error::table(
            column,
            format!("expected a column of lists of numbers, but found {other}"),
        )),
    }
}

/// Length of the first list of a column that is not null.
pub(crate) fn first_list_length(array: &ArrayRef) -> Option<usize> {
    let row = (0..array.len()).find(|row| array.is_valid(*row))?;
    match array.data_type() {
        DataType::FixedSizeList(_, dim) => usize::try_from(*dim).ok(),
        DataType::List(_) => Some(array.as_list::<i32>().value(row).len()),
        DataType::LargeList(_) => Some(array.as_list::<i64>().value(row).len()),
        _ => None,
    }
}

/// Reads vectors out of columns. Keeps a buffer for those that are not f32 already.
#[derive(Debug, Default)]
pub(crate) struct Vectors {
    /// The numbers of the latest column.
    values: Option<ArrayRef>,
    /// The same, where they are not f32.
    buffer: Vec<f32>,
}

impl Vectors {
    /// The vectors of a column as rows; `first` is the number of its first row, for messages.
    pub(crate) fn rows(&mut self, array: &ArrayRef, dim: usize, first: u64) -> Result<Rows<'_>> {
        let values = self.values.insert(flat(array, dim, first)?);
        let values: &[f32] = match values.data_type() {
            DataType::Float32 => values.as_primitive::<Float32Type>().values(),
            DataType::Float64 => {
                let wide = values.as_primitive::<Float64Type>().values();
                self.buffer.clear();
                self.buffer.extend(wide.iter().map(|v| *v as f32));
                &self.buffer
            }
            DataType::Float16 => {
                let narrow = values.as_primitive::<Float16Type>().values();
                self.buffer.clear();
                self.buffer.extend(narrow.iter().map(|v| v.to_f32()));
                &self.buffer
            }
            _ => {
                let numbers = cast(values, &DataType::Float32);
                let numbers = numbers.map_err(|e| Error::table("vectors", e))?;
                self.buffer.clear();
                (self.buffer).extend_from_slice(numbers.as_primitive::<Float32Type>().values());
                &self.buffer
            }
        };
        if let Some(place) = values.iter().position(|v| !v.is_finite()) {
            return Err(Error::Library(metra::Error::Cell {
                row: first + (place / dim.max(1)) as u64,
                column: place % dim.max(1),
                problem: format!("expected a finite number, but found {}", values[place]),
            }));
        }
        Ok(Rows::new(values, dim)?)
    }
}

/// All numbers of a column of lists, which must have the same length.
fn flat(array: &ArrayRef, dim: usize, first: u64) -> Result<ArrayRef> {
    if let Some(row) = (0..array.len()).find(|row| array.is_null(*row)) {
        let problem = "expected a vector, but found null".to_owned();
        let row = first + row as u64;
        return Err(Error::Library(metra::Error::Row { row, problem }));
    }
    let values = match array.data_type() {
        DataType::FixedSizeList(..) => {
            let lists: &FixedSizeListArray = array.as_fixed_size_list();
            let found = usize::try_from(lists.value_length()).unwrap_or(0);
            if found != dim {
                return Err(wrong_length(first, dim, found));
            }
            let start = lists.offset() * dim;
            lists.values().slice(start, lists.len() * dim)
        }
        DataType::List(_) => of_lists(array.as_list::<i32>(), dim, first)?,
        DataType::LargeList(_) => of_lists(array.as_list::<i64>(), dim, first)?,
        other => {
            let problem = format!("expected lists of numbers, but found {other}");
            return Err(Error::table("vectors", problem));
        }
    };
    if values.null_count() > 0 {
        let place = (0..values.len()).find(|place| values.is_null(*place));
        let place = place.unwrap_or(0);
        return Err(Error::Library(metra::Error::Cell {
            row: first + (place / dim.max(1)) as u64,
            column: place % dim.max(1),
            problem: "expected a number, but found null".into(),
        }));
    }
    Ok(values)
}

fn of_lists<O: OffsetSizeTrait>(
    lists: &GenericListArray<O>,
    dim: usize,
    first: u64,
) -> Result<ArrayRef> {
    let offsets = lists.value_offsets();
    for (row, pair) in offsets.windows(2).enumerate() {
        let found = (pair[1] - pair[0]).as_usize();
        if found != dim {
            return Err(wrong_length(first + row as u64, dim, found));
        }
    }
    let start = offsets.first().map_or(0, |offset| offset.as_usize());
    Ok(lists.values().slice(start, lists.len() * dim))
}

fn wrong_length(row: u64, expected: usize, found: usize) -> Error {
    let problem = format!("expected a vector of dimension {expected}, but found {found}");
    Error::Library(metra::Error::Row { row, problem })
}

/// Names with their numbers: what turns a column of labels or groups into keys.
#[derive(Debug)]
pub(crate) struct Names {
    column: String,
    by_text: HashMap<String, u32>,
    /// Where every name is a whole number.
    by_number: Option<HashMap<i64, u32>>,
}

impl Names {
    /// Names of a column, numbered as they are listed.
    pub(crate) fn new(column: &str, names: &[String]) -> Self {
        let numbered = || names.iter().zip(0..);
        let by_number = numbered().map(|(name, number)| Some((name.parse().ok()?, number)));
        Names {
            column: column.to_owned(),
            by_number: by_number.collect(),
            by_text: numbered()
                .map(|(name, number)| (name.clone(), number))
                .collect(),
        }
    }

    /// The number of each row's name; `first` is the number of the first row, for messages.
    pub(crate) fn keys(&self, array: &ArrayRef, first: u64, out: &mut Vec<u32>) -> Result<()> {
        out.clear();
        if let (Some(by_number), true) = (&self.by_number, array.data_type().is_integer()) {
            let numbers = cast(array, &DataType::Int64).map_err(|e| self.unreadable(e))?;
            let numbers = numbers.as_primitive::<Int64Type>();
            for (row, number) in numbers.iter().enumerate() {
                let key = number.and_then(|number| by_number.get(&number));
                let shown = || number.map_or("null".to_owned(), |n| n.to_string());
                out.push(*key.ok_or_else(|| self.unknown(first + row as u64, shown()))?);
            }
            return Ok(());
        }
        for (row, name) in texts(&self.column, array)?.into_iter().enumerate() {
            let key = name.as_ref().and_then(|name| self.by_text.get(name));
            let shown = || name.clone().unwrap_or_else(|| "null".to_owned());
            out.push(*key.ok_or_else(|| self.unknown(first + row as u64, shown()))?);
        }
        Ok(())
    }

    fn unreadable(&self, problem: impl std::fmt::Display) -> Error {
        Error::table(self.column.clone(), problem)
    }

    fn unknown(&self, row: u64, found: String) -> Error {
        let problem = format!(
            "column {}: expected one of the {} known values, but found {found:?}",
            self.column,
            self.by_text.len()
        );
        Error::Library(metra::Error::Row { row, problem })
    }
}

/// The values of a column as text, whatever its type.
pub(crate) fn texts(column: &str, array: &ArrayRef) -> Result<Vec<Option<String>>> {
    if array.data_type().is_nested() {
        let problem = format!(
            "expected one value per row, but found {}",
            array.data_type()
        );
        return Err(Error::table(column, problem));
    }
    let text = cast(array, &DataType::Utf8).map_err(|e| Error::table(column, e))?;
    let text = text.as_string::<i32>();
    Ok(text.iter().map(|t| t.map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{
        Float32Array, Float64Array, Int32Array, ListArray, StringArray,
    };
    use datafusion::arrow::buffer::OffsetBuffer;
    use datafusion::arrow::datatypes::Field;
    use std::sync::Arc;

    fn fixed(values: Vec<f32>, dim: i32) -> ArrayRef {
        let field = Arc::new(Field::new("item", DataType::Float32, true));
        let values = Arc::new(Float32Array::from(values));
        Arc::new(FixedSizeListArray::new(field, dim, values, None))
    }

    #[test]
    fn vectors_are_read_from_all_kinds_of_lists_also_in_slices() {
        let mut vectors = Vectors::default();
        let array = fixed((0..8).map(|v| v as f32).collect(), 2).slice(1, 2);
        let rows = vectors.rows(&array, 2, 0).unwrap();
        assert_eq!(rows.values(), &[2.0, 3.0, 4.0, 5.0]);
        let field = Arc::new(Field::new("item", DataType::Float64, true));
        let values = Arc::new(Float64Array::from(vec![0.5, 1.5, 2.5, 3.5]));
        let offsets = OffsetBuffer::new(vec![0, 2, 4].into());
        let lists: ArrayRef = Arc::new(ListArray::new(field, offsets, values, None));
        let lists = lists.slice(1, 1);
        let rows = vectors.rows(&lists, 2, 0).unwrap();
        assert_eq!(rows.values(), &[2.5, 3.5]);
        let error = vectors.rows(&lists, 3, 7).unwrap_err().to_string();
        assert_eq!(
            error,
            "row 7: expected a vector of dimension 3, but found 2"
        );
    }

    #[test]
    fn cells_that_are_no_numbers_are_named() {
        let mut vectors = Vectors::default();
        let error = vectors.rows(&fixed(vec![0.0, 1.0, f32::NAN, 2.0], 2), 2, 10);
        let error = error.unwrap_err().to_string();
        assert_eq!(
            error,
            "row 11, column 0: expected a finite number, but found NaN"
        );
    }

    #[test]
    fn names_become_numbers() {
        let names = Names::new("label", &["a".to_owned(), "b".to_owned()]);
        let mut keys = Vec::new();
        let array: ArrayRef = Arc::new(StringArray::from(vec!["b", "a", "b"]));
        names.keys(&array, 0, &mut keys).unwrap();
        assert_eq!(keys, vec![1, 0, 1]);
        let array: ArrayRef = Arc::new(StringArray::from(vec!["b", "c"]));
        let error = names.keys(&array, 5, &mut keys).unwrap_err().to_string();
        assert!(
            error.starts_with("row 6: column label") && error.contains("\"c\""),
            "{error}"
        );
        let numbers = Names::new("label", &["-1".to_owned(), "7".to_owned()]);
        let array: ArrayRef = Arc::new(Int32Array::from(vec![7, -1]));
        numbers.keys(&array, 0, &mut keys).unwrap();
        assert_eq!(keys, vec![1, 0]);
    }
}
