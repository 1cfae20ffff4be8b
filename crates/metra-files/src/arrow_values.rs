//! Numbers in Arrow's arrays, whatever their type.

use crate::element::{ElementType, Number};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

/// Numbers of a vector at most: 1 MiB of f32.
pub(crate) const MOST_NUMBERS: usize = 1 << 18;

/// Reads a number of an array.
pub(crate) type NumberReader<'a> = Box<dyn Fn(usize) -> f64 + 'a>;

pub(crate) fn list_element(kind: &DataType) -> Option<ElementType> {
    match kind {
        DataType::FixedSizeList(item, _) | DataType::List(item) | DataType::LargeList(item) => {
            element_type(item.data_type())
        }
        _ => None,
    }
}

/// The same of a column of single numbers, as which programs write 64-bit integers even where they are
/// small.
pub(crate) fn number_element(kind: &DataType) -> Option<ElementType> {
    match kind {
        DataType::Int64 | DataType::UInt32 | DataType::UInt64 => Some(ElementType::F64),
        kind => element_type(kind),
    }
}

fn element_type(number: &DataType) -> Option<ElementType> {
    Some(match number {
        DataType::Float16 => ElementType::F16,
        DataType::Float32 => ElementType::F32,
        DataType::Float64 => ElementType::F64,
        DataType::Int8 => ElementType::I8,
        DataType::Int16 => ElementType::I16,
        DataType::Int32 => ElementType::I32,
        DataType::UInt8 => ElementType::U8,
        DataType::UInt16 => ElementType::U16,
        _ => return None,
    })
}

/// Where the numbers of a row of lists lie.
pub(crate) fn range(lists: &ArrayRef, row: usize) -> (usize, usize) {
    match lists.data_type() {
        DataType::FixedSizeList(_, dim) => {
            let start = lists.as_fixed_size_list().value_offset(row) as usize;
            (start, start + *dim as usize)
        }
        DataType::List(_) => {
            let offsets = lists.as_list::<i32>().value_offsets();
            (offsets[row] as usize, offsets[row + 1] as usize)
        }
        _ => {
            let offsets = lists.as_list::<i64>().value_offsets();
            (offsets[row] as usize, offsets[row + 1] as usize)
        }
    }
}

/// How to read a number of a column, NaN where it is missing. `None` for types that [`number_element`]
/// refuses.
pub(crate) fn numbers<'a>(array: &'a ArrayRef) -> Option<NumberReader<'a>> {
    macro_rules! reader {
        ($type:ty) => {{
            let values = array.as_primitive::<$type>();
            Box::new(move |row| match values.is_null(row) {
                true => f64::NAN,
                false => values.value(row).wide(),
            })
        }};
    }
    Some(match array.data_type() {
        DataType::Float16 => reader!(Float16Type),
        DataType::Float32 => reader!(Float32Type),
        DataType::Float64 => reader!(Float64Type),
        DataType::Int8 => reader!(Int8Type),
        DataType::Int16 => reader!(Int16Type),
        DataType::Int32 => reader!(Int32Type),
        DataType::Int64 => reader!(Int64Type),
        DataType::UInt8 => reader!(UInt8Type),
        DataType::UInt16 => reader!(UInt16Type),
        DataType::UInt32 => reader!(UInt32Type),
        DataType::UInt64 => reader!(UInt64Type),
        _ => return None,
    })
}
