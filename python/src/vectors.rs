//! Arrays as rows of f32: single precision is borrowed, double precision is judged and narrowed as
//! files of vectors are, so that the same numbers give the same model from either.

use metra::Result;
use metra::data::{BorrowedCorpus, Narrowing};
use metra::internal::ColumnRanges;
use metra::linalg::{RowBuf, Rows};
use numpy::{PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::borrow::Cow;

/// A two-dimensional array of single or double precision with its rows one after the other.
/// Whatever else a caller has is made into one in Python, by `metra._arrays`.
pub(crate) enum Given<'py> {
    Single(PyReadonlyArray2<'py, f32>),
    Double(PyReadonlyArray2<'py, f64>),
}

impl<'py> Given<'py> {
    /// The array, if it can be used as it is.
    fn as_it_is(given: &Bound<'py, PyAny>) -> Option<Self> {
        if let Ok(array) = given.extract::<PyReadonlyArray2<'py, f32>>() {
            return array.is_c_contiguous().then_some(Given::Single(array));
        }
        let array = given.extract::<PyReadonlyArray2<'py, f64>>().ok()?;
        array.is_c_contiguous().then_some(Given::Double(array))
    }
}

impl<'py> FromPyObject<'_, 'py> for Given<'py> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // A masked array is an array, too, but says that some of its numbers are none.
        let plain = !given.hasattr("mask")?;
        if let Some(array) = Given::as_it_is(&given).filter(|_| plain) {
            return Ok(array);
        }
        let arrays = given.py().import("metra._arrays")?;
        let made = arrays.call_method1("as_rows", (&*given,))?;
        Given::as_it_is(&made).ok_or_else(|| PyValueError::new_err("expected an array of numbers"))
    }
}

/// Names of groups, from anything that can be gone through: each is taken as text.
pub(crate) struct Names(pub(crate) Vec<String>);

impl<'py> FromPyObject<'_, 'py> for Names {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let names = given.try_iter()?.map(|name| Ok(name?.str()?.to_string()));
        names.collect::<PyResult<_>>().map(Names)
    }
}

/// Numbers of an array, without the interpreter.
#[derive(Clone, Copy)]
pub(crate) enum Numbers<'a> {
    Single(&'a [f32], usize),
    Double(&'a [f64], usize),
}

impl Numbers<'_> {
    /// Numbers in all rows.
    pub(crate) fn count(&self) -> usize {
        match self {
            Numbers::Single(values, _) => values.len(),
            Numbers::Double(values, _) => values.len(),
        }
    }

    /// Numbers in a row.
    pub(crate) fn dim(&self) -> usize {
        match self {
            Numbers::Single(_, dim) | Numbers::Double(_, dim) => *dim,
        }
    }
}

impl Given<'_> {
    /// Its numbers, row after row.
    pub(crate) fn numbers(&self) -> PyResult<Numbers<'_>> {
        Ok(match self {
            Given::Single(array) => Numbers::Single(array.as_slice()?, array.shape()[1]),
            Given::Double(array) => Numbers::Double(array.as_slice()?, array.shape()[1]),
        })
    }
}

/// How numbers become f32.
pub(crate) enum Rule<'a> {
    /// As their ranges ask for.
    Judge,
    /// As a model says.
    Apply(Option<&'a Narrowing>),
}

/// Rows of f32, borrowed where they can be.
pub(crate) struct Vectors<'a> {
    values: Cow<'a, [f32]>,
    dim: usize,
    /// What was done to them.
    pub(crate) narrowing: Option<Narrowing>,
}

impl<'a> Vectors<'a> {
    /// Read numbers by a rule.
    pub(crate) fn read(numbers: Numbers<'a>, rule: &Rule<'_>) -> Result<Self> {
        let narrowing = match rule {
            Rule::Judge => judge(numbers)?,
            Rule::Apply(narrowing) => narrowing.cloned(),
        };
        let (values, dim) = match (numbers, &narrowing) {
            (Numbers::Single(values, dim), None) => (Cow::Borrowed(values), dim),
            (Numbers::Single(values, dim), Some(narrowing)) => {
                let mut rows = RowBuf::from_values(values.to_vec(), dim)?;
                narrowing.apply_rows(0, &mut rows)?;
                (Cow::Owned(rows.into_values()), dim)
            }
            (Numbers::Double(values, dim), narrowing) => {
                let plain = Narrowing {
                    shift: vec![0.0; dim],
                    scale: 1.0,
                };
                let narrowing = narrowing.as_ref().unwrap_or(&plain);
                let mut out = RowBuf::zeros(values.len() / dim.max(1), dim);
                for (number, row) in values.chunks_exact(dim.max(1)).enumerate() {
                    narrowing.apply(number as u64, row, out.row_mut(number))?;
                }
                (Cow::Owned(out.into_values()), dim)
            }
        };
        Ok(Vectors {
            values,
            dim,
            narrowing,
        })
    }

    /// The rows.
    pub(crate) fn rows(&self) -> Result<Rows<'_>> {
        Rows::new(&self.values, self.dim)
    }

    /// The rows as a corpus; all values must be finite.
    pub(crate) fn corpus(&self) -> Result<BorrowedCorpus<'_>> {
        BorrowedCorpus::new(self.rows()?)
    }
}

/// The narrowing that these numbers need, as reading a file of them would find it.
fn judge(numbers: Numbers<'_>) -> Result<Option<Narrowing>> {
    let ranges = match numbers {
        Numbers::Single(values, dim) => {
            let mut ranges = ColumnRanges::new(dim);
            // Values that are not finite are refused when the rows become a corpus.
            for row in values.chunks_exact(dim.max(1)) {
                ranges.update_f32(row);
            }
            ranges
        }
        Numbers::Double(values, dim) => {
            let mut ranges = ColumnRanges::new(dim);
            for (number, row) in values.chunks_exact(dim.max(1)).enumerate() {
                ranges.update(number as u64, row)?;
            }
            ranges
        }
    };
    Ok(ranges.judge().narrowing)
}
