//! Parquet and Feather (Arrow IPC): a list column of numbers is the vectors, any other columns are
//! named.
//!
//! Only the columns asked for are decoded, of Parquet a few thousand rows at a time. Arrow's types
//! end at this file.

use crate::column::Cell;
use crate::element::{ElementType, Vector};
use crate::error::{Error, Result};
use crate::sink::{Chunk, Source, collect};
use crate::table::{ReadProgress, Table, TableOptions, no_vector, positions};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch, RecordBatchReader};
use arrow_schema::{DataType, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::File;
use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Bytes of vectors decoded at once, so that memory does not grow with the dimension.
const BATCH_BYTES: usize = 4 << 20;
/// Rows decoded at once at most, and where the dimension is not known.
const BATCH_ROWS: usize = 2048;

/// Which of the two formats a file has.
#[derive(Clone, Copy)]
pub(crate) enum Container {
    Parquet,
    Feather,
}

impl Container {
    fn name(self) -> &'static str {
        match self {
            Container::Parquet => "Parquet",
            Container::Feather => "Feather",
        }
    }

    /// The schema, and the number of rows where the file's head says it.
    fn schema(self, path: &Path) -> Result<(SchemaRef, Option<u64>)> {
        match self {
            Container::Parquet => {
                let builder = open_parquet(path)?;
                let rows = builder.metadata().file_metadata().num_rows();
                Ok((builder.schema().clone(), u64::try_from(rows).ok()))
            }
            Container::Feather => Ok((open_feather(path, None)?.schema(), None)),
        }
    }

    /// Visit the batches of some columns.
    fn batches(
        self,
        path: &Path,
        roots: &[usize],
        batch_rows: usize,
        visit: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let mut reader: Box<dyn RecordBatchReader> = match self {
            Container::Parquet => {
                let builder = open_parquet(path)?;
                let mask = ProjectionMask::roots(builder.parquet_schema(), roots.iter().copied());
                let builder = builder.with_projection(mask).with_batch_size(batch_rows);
                let built = guarded(path, self, || {
                    (builder.build()).map_err(|e| Error::format(path, self.name(), e))
                });
                Box::new(built?)
            }
            Container::Feather => Box::new(open_feather(path, Some(roots.to_vec()))?),
        };
        let mut next = || {
            guarded(path, self, || {
                let batch = reader.next().transpose();
                batch.map_err(|e| Error::format(path, self.name(), e))
            })
        };
        while let Some(batch) = next()? {
            visit(batch)?;
        }
        Ok(())
    }
}

pub(crate) fn read(
    container: Container,
    path: &Path,
    options: &TableOptions,
    progress: ReadProgress<'_>,
) -> Result<Table> {
    let (schema, rows) = container.schema(path)?;
    let names: Vec<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
    let vector = vector_column(path, &schema, &names, options.vector.as_deref())?;
    let field = schema.field(vector);
    let element = element_type(field.data_type()).ok_or_else(|| {
        let problem = format!(
            "column {:?}: expected lists of f16, f32, f64, i8, i16, i32, u8 or u16, but found {}",
            field.name(),
            field.data_type()
        );
        Error::file(path, problem)
    })?;
    let columns = positions(path, &names, options)?;
    for column in &columns {
        let kind = schema.field(*column).data_type();
        if !is_name(kind) {
            let problem = format!(
                "column {:?}: expected integers, booleans, texts or whole floating-point numbers, \
                 but found {kind}",
                names[*column]
            );
            return Err(Error::file(path, problem));
        }
    }
    let batch_rows = match field.data_type() {
        DataType::FixedSizeList(_, dim) => {
            let bytes = usize::try_from(*dim).unwrap_or(0).max(1) * element.bytes();
            (BATCH_BYTES / bytes).clamp(1, BATCH_ROWS)
        }
        _ => BATCH_ROWS / 4,
    };
    // A projected batch keeps the order of the file, so places in it follow from sorted roots.
    let mut roots: Vec<usize> = columns.iter().copied().chain([vector]).collect();
    roots.sort_unstable();
    roots.dedup();
    let within = |root: &usize| roots.binary_search(root).unwrap_or(0);
    let source = ArrowSource {
        container,
        path: path.to_path_buf(),
        name: names[vector].clone(),
        element,
        rows,
        batch_rows,
        vector: within(&vector),
        columns: columns.iter().map(within).collect(),
        roots,
    };
    collect(&source, options, progress)
}

fn open_parquet(path: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    guarded(path, Container::Parquet, || {
        ParquetRecordBatchReaderBuilder::try_new(file)
            .map_err(|e| Error::format(path, "Parquet", e))
    })
}

fn open_feather(
    path: &Path,
    projection: Option<Vec<usize>>,
) -> Result<arrow_ipc::reader::FileReader<BufReader<File>>> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    guarded(path, Container::Feather, || {
        arrow_ipc::reader::FileReader::try_new_buffered(file, projection)
            .map_err(|e| Error::format(path, "Feather", e))
    })
}

/// Run the decoder. It panics on some damaged files (an unknown precision in the embedded Arrow
/// schema is one), and a damaged file must not end the program.
fn guarded<T>(path: &Path, container: Container, decode: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|_| {
        let problem = "the decoder gave up, so the file is damaged";
        Err(Error::format(path, container.name(), problem))
    })
}

fn vector_column(
    path: &Path,
    schema: &Schema,
    names: &[String],
    wanted: Option<&str>,
) -> Result<usize> {
    if let Some(position) = names.iter().position(|n| n == wanted.unwrap_or("vector")) {
        return Ok(position);
    }
    if let Some(wanted) = wanted {
        return Err(Error::MissingColumn {
            path: path.to_path_buf(),
            column: wanted.into(),
            found: names.to_vec(),
        });
    }
    let lists: Vec<usize> = (0..names.len())
        .filter(|i| element_type(schema.field(*i).data_type()).is_some())
        .collect();
    match lists[..] {
        [only] => Ok(only),
        _ => {
            let expected = "a column \"vector\" or exactly one column of lists of numbers";
            Err(no_vector(path, expected, names))
        }
    }
}

fn element_type(list: &DataType) -> Option<ElementType> {
    let (DataType::FixedSizeList(item, _) | DataType::List(item) | DataType::LargeList(item)) =
        list
    else {
        return None;
    };
    Some(match item.data_type() {
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

fn is_name(kind: &DataType) -> bool {
    match kind {
        DataType::Boolean | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => matches!(
            **values,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
        ),
        kind => kind.is_integer() || kind.is_floating(),
    }
}

struct ArrowSource {
    container: Container,
    path: PathBuf,
    name: String,
    element: ElementType,
    rows: Option<u64>,
    batch_rows: usize,
    roots: Vec<usize>,
    vector: usize,
    columns: Vec<usize>,
}

impl Source for ArrowSource {
    fn path(&self) -> &Path {
        &self.path
    }

    fn element(&self) -> ElementType {
        self.element
    }

    fn rows(&self) -> Option<u64> {
        self.rows
    }

    fn vector_name(&self) -> String {
        self.name.clone()
    }

    fn number_name(&self, index: usize) -> String {
        format!("{}[{index}]", self.name)
    }

    fn chunks(&self, visit: &mut dyn FnMut(&dyn Chunk) -> Result<()>) -> Result<()> {
        let mut first = 0;
        let (path, batch_rows) = (&self.path, self.batch_rows);
        self.container
            .batches(path, &self.roots, batch_rows, &mut |batch| {
                visit(&ArrowChunk::new(self, &batch, first)?)?;
                first += batch.num_rows() as u64;
                Ok(())
            })
    }
}

type CellReader<'a> = Box<dyn Fn(usize) -> Cell<'a> + 'a>;

struct ArrowChunk<'a> {
    source: &'a ArrowSource,
    first: u64,
    len: usize,
    lists: &'a ArrayRef,
    numbers: &'a ArrayRef,
    columns: Vec<CellReader<'a>>,
}

impl<'a> ArrowChunk<'a> {
    fn new(source: &'a ArrowSource, batch: &'a RecordBatch, first: u64) -> Result<Self> {
        let changed = || Error::file(&source.path, "the file changed while it was read");
        let lists = batch.columns().get(source.vector).ok_or_else(changed)?;
        let numbers = match lists.data_type() {
            DataType::FixedSizeList(..) => lists.as_fixed_size_list().values(),
            DataType::List(_) => lists.as_list::<i32>().values(),
            DataType::LargeList(_) => lists.as_list::<i64>().values(),
            _ => return Err(changed()),
        };
        let reader = |column: &usize| batch.columns().get(*column).and_then(cells);
        let columns: Option<Vec<_>> = source.columns.iter().map(reader).collect();
        Ok(ArrowChunk {
            source,
            first,
            len: batch.num_rows(),
            lists,
            numbers,
            columns: columns.ok_or_else(changed)?,
        })
    }

    /// Where the numbers of a row lie.
    fn range(&self, row: usize) -> (usize, usize) {
        match self.lists.data_type() {
            DataType::FixedSizeList(_, dim) => {
                let start = self.lists.as_fixed_size_list().value_offset(row) as usize;
                (start, start + *dim as usize)
            }
            DataType::List(_) => {
                let offsets = self.lists.as_list::<i32>().value_offsets();
                (offsets[row] as usize, offsets[row + 1] as usize)
            }
            _ => {
                let offsets = self.lists.as_list::<i64>().value_offsets();
                (offsets[row] as usize, offsets[row + 1] as usize)
            }
        }
    }
}

impl Chunk for ArrowChunk<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn number(&self, row: usize) -> u64 {
        self.first + row as u64
    }

    fn cell(&self, column: usize, row: usize) -> Cell<'_> {
        self.columns[column](row)
    }

    fn vector(&self, row: usize, out: &mut Vector) -> Result<bool> {
        if self.lists.is_null(row) {
            return Ok(false);
        }
        let (start, end) = self.range(row);
        macro_rules! fill {
            ($type:ty) => {{
                let values = self.numbers.as_primitive::<$type>().values();
                out.fill(values[start..end].iter().copied())
            }};
        }
        match self.numbers.data_type() {
            DataType::Float16 => fill!(Float16Type),
            DataType::Float32 => fill!(Float32Type),
            DataType::Float64 => fill!(Float64Type),
            DataType::Int8 => fill!(Int8Type),
            DataType::Int16 => fill!(Int16Type),
            DataType::Int32 => fill!(Int32Type),
            DataType::UInt8 => fill!(UInt8Type),
            DataType::UInt16 => fill!(UInt16Type),
            other => {
                let problem = format!("expected numbers, but found {other}");
                return Err(Error::file(&self.source.path, problem));
            }
        }
        if self.numbers.null_count() > 0 {
            for index in (start..end).filter(|index| self.numbers.is_null(*index)) {
                out.set_missing(index - start);
            }
        }
        Ok(true)
    }
}

/// How to read a cell of a column, decided once per batch. `None` for types that [`is_name`] refuses.
fn cells<'a>(array: &'a ArrayRef) -> Option<CellReader<'a>> {
    fn primitive<'a, T: ArrowPrimitiveType>(
        array: &'a ArrayRef,
        cell: impl Fn(T::Native) -> Cell<'a> + 'a,
    ) -> CellReader<'a> {
        let values = array.as_primitive::<T>();
        Box::new(move |row| cell(values.value(row)))
    }
    let value: CellReader<'a> = match array.data_type() {
        DataType::Int8 => primitive::<Int8Type>(array, |v| Cell::Integer(v.into())),
        DataType::Int16 => primitive::<Int16Type>(array, |v| Cell::Integer(v.into())),
        DataType::Int32 => primitive::<Int32Type>(array, |v| Cell::Integer(v.into())),
        DataType::Int64 => primitive::<Int64Type>(array, Cell::Integer),
        DataType::UInt8 => primitive::<UInt8Type>(array, |v| Cell::Integer(v.into())),
        DataType::UInt16 => primitive::<UInt16Type>(array, |v| Cell::Integer(v.into())),
        DataType::UInt32 => primitive::<UInt32Type>(array, |v| Cell::Integer(v.into())),
        DataType::UInt64 => primitive::<UInt64Type>(array, |v| match i64::try_from(v) {
            Ok(value) => Cell::Integer(value),
            Err(_) => Cell::Other(v.to_string()),
        }),
        DataType::Float16 => primitive::<Float16Type>(array, |v| Cell::from_float(v.to_f64())),
        DataType::Float32 => primitive::<Float32Type>(array, |v| Cell::from_float(v.into())),
        DataType::Float64 => primitive::<Float64Type>(array, Cell::from_float),
        DataType::Boolean => {
            let values = array.as_boolean();
            Box::new(move |row| Cell::Bool(values.value(row)))
        }
        DataType::Utf8 => {
            let values = array.as_string::<i32>();
            Box::new(move |row| Cell::Text(values.value(row)))
        }
        DataType::LargeUtf8 => {
            let values = array.as_string::<i64>();
            Box::new(move |row| Cell::Text(values.value(row)))
        }
        DataType::Utf8View => {
            let values = array.as_string_view();
            Box::new(move |row| Cell::Text(values.value(row)))
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary_opt()?;
            if dictionary.values().is_empty() {
                // Keys of an empty dictionary are all missing.
                return Some(Box::new(|_| Cell::Null));
            }
            let keys = dictionary.normalized_keys();
            let value = cells(dictionary.values())?;
            Box::new(move |row| value(keys[row]))
        }
        _ => return None,
    };
    Some(Box::new(move |row| {
        if array.is_null(row) {
            Cell::Null
        } else {
            value(row)
        }
    }))
}
