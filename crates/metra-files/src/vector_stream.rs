//! Vectors in Arrow's format for streams, as which programs send them to each other.
//!
//! Only what is not compressed is read, so that a short message cannot ask for much memory.

use crate::arrow_values::{list_element, numbers, range};
use crate::error::{Error, Result};
use crate::feather_blocks::{CONTINUATION, batch_of};
use crate::write::{VectorLayout, vector_array};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::root_as_message;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// What errors call it.
const STREAM: &str = "the stream of Arrow";

fn wrong(problem: impl Into<String>) -> Error {
    Error::file(Path::new(STREAM), problem)
}

fn damaged(problem: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::format(Path::new(STREAM), "an Arrow stream", problem)
}

/// The numbers of a column of vectors, row after row, and the dimension of each. Without a name, the stream must have one column of
/// lists of numbers.
pub fn read_vector_stream(bytes: &[u8], column: Option<&str>) -> Result<(Vec<f64>, usize)> {
    check_messages(bytes)?;
    // The decoder panics on some damaged streams.
    catch_unwind(AssertUnwindSafe(|| read(bytes, column)))
        .unwrap_or_else(|_| Err(damaged("the decoder gave up")))
}

fn read(bytes: &[u8], column: Option<&str>) -> Result<(Vec<f64>, usize)> {
    let reader = StreamReader::try_new(bytes, None).map_err(damaged)?;
    let place = column_of(&reader.schema(), column)?;
    let (mut values, mut dim) = (Vec::new(), None);
    for batch in reader {
        let batch = batch.map_err(damaged)?;
        append(batch.column(place), &mut values, &mut dim)?;
    }
    Ok((values, dim.unwrap_or(0)))
}

/// The place of the column of vectors.
fn column_of(schema: &Schema, column: Option<&str>) -> Result<usize> {
    let fields = schema.fields();
    let lists: Vec<usize> = (0..fields.len())
        .filter(|place| list_element(fields[*place].data_type()).is_some())
        .collect();
    match column {
        Some(name) => {
            let found = fields.iter().position(|field| field.name() == name);
            let found = found.filter(|place| lists.contains(place));
            found.ok_or_else(|| wrong(format!("expected a column {name:?} of lists of numbers")))
        }
        None if lists.len() == 1 => Ok(lists[0]),
        None => Err(wrong(format!(
            "expected one column of lists of numbers, but found {}: name the column",
            lists.len()
        ))),
    }
}

fn append(lists: &ArrayRef, values: &mut Vec<f64>, dim: &mut Option<usize>) -> Result<()> {
    if lists.null_count() > 0 {
        return Err(wrong("expected no missing vectors"));
    }
    // Lists without numbers could be any number of rows in a short message.
    if let DataType::FixedSizeList(_, 0) = lists.data_type() {
        return Err(wrong("expected vectors of at least one dimension"));
    }
    let all = match lists.data_type() {
        DataType::FixedSizeList(..) => lists.as_fixed_size_list().values(),
        DataType::List(_) => lists.as_list::<i32>().values(),
        _ => lists.as_list::<i64>().values(),
    };
    let number = numbers(all).ok_or_else(|| wrong("expected lists of numbers"))?;
    for row in 0..lists.len() {
        let (start, end) = range(lists, row);
        let expected = *dim.get_or_insert(end - start);
        if end - start != expected || expected == 0 {
            let found = end - start;
            return Err(wrong(format!(
                "expected vectors of one dimension ({expected}, at least 1), but row {row} of a batch has {found}"
            )));
        }
        values.extend((start..end).map(&number));
    }
    Ok(())
}

/// An error where a message is compressed or cut short.
fn check_messages(mut rest: &[u8]) -> Result<()> {
    while let Some((first, after)) = rest.split_first_chunk::<4>() {
        let (length, after) = match (*first == CONTINUATION, after.split_first_chunk::<4>()) {
            (false, _) => (first, after),
            (true, Some((length, after))) => (length, after),
            (true, None) => return Err(damaged("it is cut short")),
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length == 0 {
            return Ok(());
        }
        let head = after
            .get(..length)
            .ok_or_else(|| damaged("it is cut short"))?;
        let message = root_as_message(head).map_err(|e| damaged(e.to_string()))?;
        if batch_of(&message).is_some_and(|batch| batch.compression().is_some()) {
            return Err(wrong("expected buffers that are not compressed"));
        }
        let body = usize::try_from(message.bodyLength()).unwrap_or(usize::MAX);
        rest = (after[length..].get(body..)).ok_or_else(|| damaged("it is cut short"))?;
    }
    Ok(())
}

/// Vectors as a stream with one column, called `vector`, from their little-endian bytes.
pub fn write_vector_stream(layout: impl Into<VectorLayout>, bytes: &[u8]) -> Result<Vec<u8>> {
    let vectors = vector_array(layout.into(), bytes).map_err(|e| wrong(e.to_string()))?;
    let field = Field::new("vector", vectors.data_type().clone(), false);
    let schema = Arc::new(Schema::new(vec![field]));
    let written =
        RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(vectors)]).and_then(|batch| {
            let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
            writer.write(&batch)?;
            writer.into_inner()
        });
    written.map_err(|e| wrong(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::WrittenElement;
    use arrow_ipc::CompressionType;
    use arrow_ipc::writer::IpcWriteOptions;

    fn bytes_of(values: &[f32]) -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()
    }

    fn stream() -> Vec<u8> {
        write_vector_stream(2, &bytes_of(&[1.0, -2.5, 0.25, 4.0])).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let expected = (vec![1.0, -2.5, 0.25, 4.0], 2);
        assert_eq!(read_vector_stream(&stream(), None).unwrap(), expected);
        assert_eq!(
            read_vector_stream(&stream(), Some("vector")).unwrap(),
            expected
        );
        let codes = VectorLayout {
            dim: 3,
            element: WrittenElement::UInt8,
            scale: false,
        };
        let codes = write_vector_stream(codes, &[1, 2, 255]).unwrap();
        assert_eq!(
            read_vector_stream(&codes, None).unwrap(),
            (vec![1.0, 2.0, 255.0], 3)
        );
        let error = read_vector_stream(&stream(), Some("other")).unwrap_err();
        assert!(error.to_string().contains("a column \"other\""), "{error}");
    }

    #[test]
    fn compressed_and_cut_streams_are_refused() {
        let whole = stream();
        let reader = StreamReader::try_new(&whole[..], None).unwrap();
        let options = IpcWriteOptions::default();
        let options = options.try_with_compression(Some(CompressionType::LZ4_FRAME));
        let (schema, options) = (reader.schema(), options.unwrap());
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
        for batch in reader {
            writer.write(&batch.unwrap()).unwrap();
        }
        let packed = writer.into_inner().unwrap();
        let error = read_vector_stream(&packed, None).unwrap_err().to_string();
        assert!(error.contains("not compressed"), "{error}");
        for length in 0..whole.len() {
            // The mark at the end may be missing.
            let _ = read_vector_stream(&whole[..length], None);
        }
        assert!(read_vector_stream(b"", None).is_err());
        assert!(read_vector_stream(&[0xff; 64], None).is_err());
    }

    #[test]
    fn flipped_bits_do_not_end_the_process() {
        let whole = stream();
        for bit in 0..8 * whole.len() {
            let mut other = whole.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            let _ = read_vector_stream(&other, None);
        }
    }
}
