//! Parquet and Feather (Arrow IPC): a column of lists of numbers is the vectors, or columns of numbers
//! are, or a column of sparse vectors (`arrow_sparse`); any other columns are named.
//!
//! Only the columns asked for are decoded, of Parquet a few thousand rows at a time. Arrow's types
//! end at this file.

use crate::arrow_container::{Container, guarded, open_parquet};
use crate::arrow_sparse::{SparseArrays, dimension, sparse_element};
use crate::arrow_values::{
    MOST_NUMBERS, NumberReader, list_element, number_element, numbers, range,
};
use crate::column::Cell;
use crate::element::{ElementType, Vector};
use crate::error::{Error, Result};
use crate::feather_blocks::largest_block;
use crate::parquet_pages::ColumnPages;
use crate::sink::{Chunk, Source, collect};
use crate::table::{ReadProgress, Table, TableOptions, positions};
use crate::vector_columns::VectorColumns;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch};
use arrow_schema::{DataType, Schema};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Bytes of vectors decoded at once, so that memory does not grow with the dimension.
const BATCH_BYTES: usize = 4 << 20;
/// Rows decoded at once at most, and where the dimension is not known.
const BATCH_ROWS: usize = 2048;

/// Memory that decoding may take, however little is allowed for.
const LEAST_MEMORY: u64 = 64 << 20;

pub(crate) fn read(
    container: Container,
    path: &Path,
    options: &TableOptions,
    progress: ReadProgress<'_>,
) -> Result<Table> {
    let most = options.memory.max(LEAST_MEMORY);
    if let Container::Feather = container {
        let (length, largest) = guarded(path, container, || largest_block(path))?;
        if largest > most.max(length) {
            return Err(too_much(path, "a block of its rows is", largest));
        }
    }
    let (schema, rows) = container.schema(path)?;
    let names: Vec<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
    let columns = positions(path, &names, options)?;
    let kind = |column: usize| schema.field(column).data_type();
    let is_free = |column: &usize| !columns.contains(column);
    let lists = (0..names.len()).filter(|column| is_free(column) && is_vector(kind(*column)));
    let lists: Vec<usize> = lists.collect();
    let vector = VectorColumns::find(path, &names, &columns, &lists, options)?;
    let element = vector_element(path, &schema, &vector)?;
    for column in &columns {
        let kind = schema.field(*column).data_type();
        let is_numbers = matches!(vector, VectorColumns::Numbers(_));
        if !is_name(kind) || (!is_numbers && vector.all().contains(column)) {
            let problem = format!(
                "column {:?}: expected integers, booleans, texts or whole floating-point numbers, or lists of \
                 them, but found {kind}",
                names[*column]
            );
            return Err(Error::file(path, problem));
        }
    }
    // A projected batch keeps the order of the file, so places in it follow from sorted roots.
    let mut roots: Vec<usize> = columns.iter().chain(vector.all()).copied().collect();
    roots.sort_unstable();
    roots.dedup();
    // Before anything is decoded, as the largest index of sparse vectors is.
    let decodable = match container {
        Container::Parquet => check_pages(path, &roots, element, most)?,
        Container::Feather => usize::MAX,
    };
    let dim = match &vector {
        VectorColumns::Numbers(columns) => Some(columns.len()),
        VectorColumns::Lists(columns) => {
            let dims = columns.iter().map(|column| match kind(*column) {
                DataType::FixedSizeList(_, dim) => usize::try_from(*dim).ok(),
                _ => None,
            });
            dims.sum()
        }
        VectorColumns::List(column) => match kind(*column) {
            DataType::FixedSizeList(_, dim) => usize::try_from(*dim).ok(),
            DataType::Struct(_) => {
                let field = schema.field(*column);
                Some(dimension(
                    container,
                    path,
                    field,
                    *column,
                    decodable.min(BATCH_ROWS),
                )?)
            }
            _ => None,
        },
    };
    let batch_rows = match dim {
        Some(dim) if dim > MOST_NUMBERS => return Err(too_wide(path, dim as u64)),
        Some(dim) => (BATCH_BYTES / (dim.max(1) * element.bytes())).clamp(1, BATCH_ROWS),
        None => BATCH_ROWS / 4,
    };
    let is_sparse = |column: &usize| matches!(kind(*column), DataType::Struct(_));
    let sparse_dim = dim.filter(|_| vector.all().iter().any(is_sparse));
    let batch_rows = batch_rows.min(decodable);
    let within = |root: &usize| roots.binary_search(root).unwrap_or(0);
    let source = ArrowSource {
        container,
        path: path.to_path_buf(),
        element,
        rows,
        batch_rows,
        places: vector.all().iter().map(within).collect(),
        columns: columns.iter().map(within).collect(),
        names,
        vector,
        sparse_dim,
        roots,
    };
    collect(&source, options, progress)
}

fn too_wide(path: &Path, dim: u64) -> Error {
    let problem = format!("expected vectors of at most {MOST_NUMBERS} dimensions, but found {dim}");
    Error::file(path, problem)
}

fn too_much(path: &Path, what: &str, bytes: u64) -> Error {
    let problem = format!(
        "{what} {bytes} bytes when unpacked: if that is meant, allow for them with --memory"
    );
    Error::file(path, problem)
}

/// An error where decoding would take more than `most` bytes at once, for which the file's own length
/// gives no reason; and the rows that may be decoded at once.
fn check_pages(path: &Path, roots: &[usize], element: ElementType, most: u64) -> Result<usize> {
    let builder = open_parquet(path)?;
    let (metadata, schema) = (builder.metadata(), builder.parquet_schema());
    let mut file = File::open(path).map_err(|e| Error::io(path, e))?;
    let length = file.metadata().map_err(|e| Error::io(path, e))?.len();
    let (mut pages, mut largest_text) = (0_u64, 1);
    for leaf in 0..schema.num_columns() {
        let root = schema.get_column_root_idx(leaf);
        if roots.binary_search(&root).is_err() {
            continue;
        }
        let found = ColumnPages::of(path, &mut file, metadata, leaf)?;
        pages = pages.saturating_add(found.largest);
        // A list may have any number of values.
        let is_list = schema.root_schema().get_fields()[root].is_group();
        let bytes = found.values.saturating_mul(element.bytes() as u64);
        if is_list && bytes > most && bytes / 1000 > length {
            return Err(Error::file(
                path,
                format!(
                    "{length} bytes claim {} values of lists: if that is meant, allow for {bytes} bytes \
                     with --memory",
                    found.values
                ),
            ));
        }
        if !is_list {
            largest_text = largest_text.max(found.largest);
        }
    }
    if pages > most {
        return Err(too_much(path, "its pages are", pages));
    }
    // A text of a dictionary is copied for every row that has it.
    Ok(usize::try_from(most / largest_text)
        .unwrap_or(usize::MAX)
        .max(1))
}

/// The numbers that a vector is made of; where they are of several types, f64.
fn vector_element(path: &Path, schema: &Schema, vector: &VectorColumns) -> Result<ElementType> {
    let mut found = None;
    for column in vector.all() {
        let field = schema.field(*column);
        let (element, expected) = match vector {
            VectorColumns::List(_) => {
                let kind = field.data_type();
                (
                    list_element(kind).or_else(|| sparse_element(kind)),
                    "lists of ",
                )
            }
            VectorColumns::Lists(_) => (list_element(field.data_type()), "lists of "),
            VectorColumns::Numbers(_) => (number_element(field.data_type()), ""),
        };
        let element = element.ok_or_else(|| {
            let problem = format!(
                "column {:?}: expected {expected}f16, f32, f64, i8, i16, i32, u8 or u16, but found {}",
                field.name(),
                field.data_type()
            );
            Error::file(path, problem)
        })?;
        found = match found {
            None => Some(element),
            Some(other) if other == element => Some(element),
            Some(_) => Some(ElementType::F64),
        };
    }
    Ok(found.unwrap_or(ElementType::F64))
}

fn is_vector(kind: &DataType) -> bool {
    list_element(kind).is_some() || sparse_element(kind).is_some()
}

fn is_name(kind: &DataType) -> bool {
    match kind {
        DataType::Boolean | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => matches!(
            **values,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
        ),
        // Several labels of a row.
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            let kind = item.data_type();
            !kind.is_nested() && is_name(kind)
        }
        kind => kind.is_integer() || kind.is_floating(),
    }
}

struct ArrowSource {
    container: Container,
    path: PathBuf,
    names: Vec<String>,
    element: ElementType,
    rows: Option<u64>,
    batch_rows: usize,
    /// The columns that are read, and where in a batch those of the vector and the named ones are.
    roots: Vec<usize>,
    vector: VectorColumns,
    /// Dimensions of sparse vectors.
    sparse_dim: Option<usize>,
    places: Vec<usize>,
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

    fn is_sparse(&self) -> bool {
        self.sparse_dim.is_some()
    }

    fn vector_name(&self) -> String {
        self.vector.name(&self.names)
    }

    fn number_name(&self, index: usize) -> String {
        self.vector.number_name(&self.names, index)
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
    vector: VectorArrays<'a>,
    columns: Vec<CellReader<'a>>,
}

/// The vectors of a batch.
enum VectorArrays<'a> {
    /// Columns of lists, one vector of a row each.
    Lists(Vec<Lists<'a>>),
    /// What reads each number of a vector.
    Numbers(Vec<NumberReader<'a>>),
    /// Sparse vectors, and their dimensions.
    Sparse(SparseArrays<'a>, usize),
}

impl<'a> ArrowChunk<'a> {
    fn new(source: &'a ArrowSource, batch: &'a RecordBatch, first: u64) -> Result<Self> {
        let changed = || Error::file(&source.path, "the file changed while it was read");
        let array = |place: &usize| batch.columns().get(*place);
        let arrays: Option<Vec<&ArrayRef>> = source.places.iter().map(array).collect();
        let arrays = arrays.ok_or_else(changed)?;
        let vector = match &source.vector {
            VectorColumns::Numbers(_) => {
                let readers = arrays.into_iter().map(numbers).collect::<Option<_>>();
                VectorArrays::Numbers(readers.ok_or_else(changed)?)
            }
            VectorColumns::List(_) if source.is_sparse() => {
                let sparse = SparseArrays::new(arrays[0]).ok_or_else(changed)?;
                VectorArrays::Sparse(sparse, source.sparse_dim.ok_or_else(changed)?)
            }
            VectorColumns::List(_) | VectorColumns::Lists(_) => {
                let lists = arrays.into_iter().map(Lists::new).collect::<Option<_>>();
                VectorArrays::Lists(lists.ok_or_else(changed)?)
            }
        };
        let reader = |column: &usize| array(column).and_then(cells);
        let columns: Option<Vec<_>> = source.columns.iter().map(reader).collect();
        Ok(ArrowChunk {
            source,
            first,
            len: batch.num_rows(),
            vector,
            columns: columns.ok_or_else(changed)?,
        })
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
        match &self.vector {
            VectorArrays::Lists(all) => {
                out.clear();
                for lists in all {
                    if !lists.append(row, out, &self.source.path)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            VectorArrays::Sparse(arrays, dim) => arrays.fill(row, *dim, out).map_err(|problem| {
                let place = self.source.place(self.number(row));
                Error::row(&self.source.path, place, problem)
            }),
            VectorArrays::Numbers(arrays) => {
                let numbers = arrays.iter().map(|number| number(row));
                out.fill(numbers);
                Ok(true)
            }
        }
    }

    fn vector_dims(&self, row: usize) -> Vec<usize> {
        match (&self.source.vector, &self.vector) {
            (VectorColumns::Lists(_), VectorArrays::Lists(all)) => {
                let dims = all.iter().map(|lists| range(lists.lists, row));
                dims.map(|(start, end)| end - start).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// A column of lists, and all their numbers one after the other.
struct Lists<'a> {
    lists: &'a ArrayRef,
    numbers: &'a ArrayRef,
}

impl<'a> Lists<'a> {
    fn new(lists: &'a ArrayRef) -> Option<Self> {
        let numbers = match lists.data_type() {
            DataType::FixedSizeList(..) => lists.as_fixed_size_list().values(),
            DataType::List(_) => lists.as_list::<i32>().values(),
            DataType::LargeList(_) => lists.as_list::<i64>().values(),
            _ => return None,
        };
        Some(Lists { lists, numbers })
    }

    /// Put the list of a row behind what `out` has; false where it is missing.
    fn append(&self, row: usize, out: &mut Vector, path: &Path) -> Result<bool> {
        let Lists { lists, numbers } = self;
        if lists.is_null(row) {
            return Ok(false);
        }
        let (start, end) = range(lists, row);
        let before = out.len();
        macro_rules! fill {
            ($type:ty) => {{
                let values = numbers.as_primitive::<$type>().values();
                out.append(values[start..end].iter().copied())
            }};
        }
        match numbers.data_type() {
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
                return Err(Error::file(path, problem));
            }
        }
        if numbers.null_count() > 0 {
            for index in (start..end).filter(|index| numbers.is_null(*index)) {
                out.set_missing(before + index - start);
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
        DataType::FixedSizeList(..) => list_cells(array, array.as_fixed_size_list().values())?,
        DataType::List(_) => list_cells(array, array.as_list::<i32>().values())?,
        DataType::LargeList(_) => list_cells(array, array.as_list::<i64>().values())?,
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

/// The same of a column of lists, whose values lie one after the other in `values`.
fn list_cells<'a>(array: &'a ArrayRef, values: &'a ArrayRef) -> Option<CellReader<'a>> {
    let value = cells(values)?;
    Some(Box::new(move |row| {
        let (start, end) = range(array, row);
        Cell::list((start..end).map(&value))
    }))
}
