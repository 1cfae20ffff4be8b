//! Writing vectors: npy and Parquet, row block by row block. A file appears when it is whole.

use crate::column::Column;
use crate::error::{Error, Result};
use arrow_array::{
    ArrayRef, FixedSizeListArray, Float16Array, Float32Array, Int8Array, Int64Array, RecordBatch,
    StringArray, UInt8Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use half::f16;
use metra::internal::{AtomicFile, npy_header};
use metra::linalg::Rows;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of vectors in a row group: a writer holds one in memory.
const ROW_GROUP_BYTES: usize = 32 << 20;

/// Rows in a group of the longest vectors: fewer would make the file's own tables large beside them.
const LEAST_ROWS: usize = 64;

/// What a dimension of a written vector is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenElement {
    /// f32.
    Float32,
    /// f16.
    Float16,
    /// i8.
    Int8,
    /// u8: eight bits, or the number of a centroid.
    UInt8,
}

impl WrittenElement {
    /// Bytes of one number.
    pub fn bytes(self) -> usize {
        match self {
            WrittenElement::Float32 => 4,
            WrittenElement::Float16 => 2,
            WrittenElement::Int8 | WrittenElement::UInt8 => 1,
        }
    }

    /// As npy names it.
    fn npy(self) -> &'static str {
        match self {
            WrittenElement::Float32 => "<f4",
            WrittenElement::Float16 => "<f2",
            WrittenElement::Int8 => "|i1",
            WrittenElement::UInt8 => "|u1",
        }
    }

    fn field(self) -> Arc<Field> {
        let kind = match self {
            WrittenElement::Float32 => DataType::Float32,
            WrittenElement::Float16 => DataType::Float16,
            WrittenElement::Int8 => DataType::Int8,
            WrittenElement::UInt8 => DataType::UInt8,
        };
        Arc::new(Field::new("element", kind, false))
    }

    /// Numbers from their little-endian bytes.
    fn array(self, bytes: &[u8]) -> ArrayRef {
        let floats = |chunk: &[u8; 4]| f32::from_le_bytes(*chunk);
        let halves = |chunk: &[u8; 2]| f16::from_le_bytes(*chunk);
        match self {
            WrittenElement::Float32 => Arc::new(Float32Array::from_iter_values(
                bytes.as_chunks().0.iter().map(floats),
            )),
            WrittenElement::Float16 => Arc::new(Float16Array::from_iter_values(
                bytes.as_chunks().0.iter().map(halves),
            )),
            WrittenElement::Int8 => Arc::new(Int8Array::from_iter_values(
                bytes.iter().map(|byte| *byte as i8),
            )),
            WrittenElement::UInt8 => Arc::new(UInt8Array::from(bytes.to_vec())),
        }
    }
}

/// How vectors are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorLayout {
    /// Numbers in a vector.
    pub dim: usize,
    /// What each of them is.
    pub element: WrittenElement,
    /// Whether an f32 that multiplies them stands behind each vector; Parquet has a column for it.
    pub scale: bool,
}

/// Vectors of f32.
impl From<usize> for VectorLayout {
    fn from(dim: usize) -> Self {
        VectorLayout {
            dim,
            element: WrittenElement::Float32,
            scale: false,
        }
    }
}

impl VectorLayout {
    /// Bytes of a vector, with its scale.
    fn row_bytes(self) -> usize {
        self.dim * self.element.bytes() + if self.scale { 4 } else { 0 }
    }
}

/// The column of scales.
const SCALE: &str = "scale";

/// Counts rows against what was announced, for both writers.
struct Count {
    path: PathBuf,
    layout: VectorLayout,
    expected: Option<u64>,
    written: u64,
}

impl Count {
    /// Bytes of vectors; their number.
    fn add(&mut self, bytes: &[u8]) -> Result<usize> {
        let size = self.layout.row_bytes();
        if !bytes.len().is_multiple_of(size) {
            return Err(self.wrong(format!("vectors of {size} bytes"), bytes.len()));
        }
        let rows = bytes.len() / size;
        self.written += rows as u64;
        match self.expected {
            Some(expected) if self.written > expected => {
                Err(self.wrong(format!("{expected} rows"), self.written))
            }
            _ => Ok(rows),
        }
    }

    fn check_dim(&self, dim: usize) -> Result<()> {
        match dim == self.layout.dim {
            true => Ok(()),
            false => Err(self.wrong(format!("vectors of dimension {}", self.layout.dim), dim)),
        }
    }

    fn check(&self) -> Result<()> {
        match self.expected {
            Some(expected) if self.written != expected => {
                Err(self.wrong(format!("{expected} rows"), self.written))
            }
            _ => Ok(()),
        }
    }

    fn wrong(&self, expected: String, found: impl std::fmt::Display) -> Error {
        Error::file(
            &self.path,
            format!("expected {expected}, but was given {found}"),
        )
    }
}

/// Numbers as little-endian bytes.
fn le_bytes(values: &[f32]) -> Cow<'_, [u8]> {
    match cfg!(target_endian = "little") {
        true => Cow::Borrowed(bytemuck::cast_slice(values)),
        false => values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect(),
    }
}

/// Writes vectors as npy (version 1, C order).
pub struct NpyWriter {
    target: AtomicFile,
    count: Count,
}

impl NpyWriter {
    /// A file of so many vectors. npy has no place for scales.
    pub fn create(path: &Path, rows: u64, layout: impl Into<VectorLayout>) -> Result<Self> {
        let layout = layout.into();
        if layout.scale {
            let problem = "npy has no place for the scales of vectors: write Parquet";
            return Err(Error::file(path, problem.to_owned()));
        }
        let mut target = AtomicFile::create(path).map_err(|e| Error::metra(path, e))?;
        let written = target.write_all(&npy_header(layout.element.npy(), rows, layout.dim));
        written.map_err(|e| Error::io(path, e))?;
        Ok(NpyWriter {
            target,
            count: Count {
                path: path.to_path_buf(),
                layout,
                expected: Some(rows),
                written: 0,
            },
        })
    }

    /// Append vectors.
    pub fn push(&mut self, rows: Rows<'_>) -> Result<()> {
        self.count.check_dim(rows.dim())?;
        self.push_bytes(&le_bytes(rows.values()))
    }

    /// Append vectors as the layout has them, little-endian.
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.count.add(bytes)?;
        let failed = |e| Error::io(&self.count.path, e);
        self.target.write_all(bytes).map_err(failed)
    }

    /// Put the file in its place; the number of rows must be the one announced.
    pub fn finish(self) -> Result<()> {
        self.count.check()?;
        let path = &self.count.path;
        self.target.finish().map_err(|e| Error::metra(path, e))
    }
}

/// Writes vectors as Parquet, with columns passed through beside them.
pub struct ParquetVectorWriter<'a> {
    writer: ArrowWriter<AtomicFile>,
    schema: Arc<Schema>,
    columns: Vec<&'a Column>,
    /// Values of the columns that have no vector.
    left_out: usize,
    count: Count,
}

impl<'a> ParquetVectorWriter<'a> {
    /// A file with the vectors in the column `vector`, after `columns`, whose values are taken in
    /// the order in which rows are pushed.
    pub fn create(
        path: &Path,
        vector: &str,
        layout: impl Into<VectorLayout>,
        columns: &[(&str, &'a Column)],
    ) -> Result<Self> {
        let layout = layout.into();
        let dim = layout.dim;
        let width = i32::try_from(dim).ok().filter(|d| *d > 0).ok_or_else(|| {
            let problem = format!("expected vectors of 1 to 2^31 - 1 dimensions, but found {dim}");
            Error::file(path, problem)
        })?;
        let mut fields = Vec::with_capacity(columns.len() + 1);
        for (position, (name, column)) in columns.iter().enumerate() {
            let is_taken = *name == vector || (layout.scale && *name == SCALE);
            if is_taken || columns[..position].iter().any(|(n, _)| n == name) {
                let problem = format!("expected columns of different names, but {name:?} is twice");
                return Err(Error::file(path, problem));
            }
            let kind = match column {
                Column::Integers(_) => DataType::Int64,
                Column::Text { .. } | Column::Lists { .. } => DataType::Utf8,
            };
            fields.push(Field::new(*name, kind, false));
        }
        fields.push(Field::new(
            vector,
            DataType::FixedSizeList(layout.element.field(), width),
            false,
        ));
        if layout.scale {
            fields.push(Field::new(SCALE, DataType::Float32, false));
        }
        let schema = Arc::new(Schema::new(fields));
        // Numbers of vectors hardly repeat: a dictionary of them costs time and saves nothing.
        let element_path = vec![vector.into(), "list".into(), "element".into()];
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(
                (ROW_GROUP_BYTES / layout.row_bytes()).clamp(LEAST_ROWS, 1 << 20),
            ))
            .set_column_dictionary_enabled(element_path.into(), false)
            .build();
        let target = AtomicFile::create(path).map_err(|e| Error::metra(path, e))?;
        let writer = ArrowWriter::try_new(target, schema.clone(), Some(properties))
            .map_err(|e| Error::format(path, "Parquet", e))?;
        Ok(ParquetVectorWriter {
            writer,
            schema,
            columns: columns.iter().map(|(_, column)| *column).collect(),
            left_out: 0,
            count: Count {
                path: path.to_path_buf(),
                layout,
                expected: columns.first().map(|(_, column)| column.len() as u64),
                written: 0,
            },
        })
    }

    /// Append vectors with the next values of the columns.
    pub fn push(&mut self, rows: Rows<'_>) -> Result<()> {
        self.count.check_dim(rows.dim())?;
        self.push_bytes(&le_bytes(rows.values()))
    }

    /// Append vectors as the layout has them, little-endian, with the next values of the columns.
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let start = self.count.written as usize + self.left_out;
        let rows = self.count.add(bytes)?;
        let layout = self.count.layout;
        let path = &self.count.path;
        let range = start..start + rows;
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len() + 1);
        for column in &self.columns {
            if column.len() < range.end {
                return Err(self
                    .count
                    .wrong(format!("{} rows", column.len()), range.end));
            }
            arrays.push(match column {
                Column::Integers(values) => {
                    Arc::new(Int64Array::from(values[range.clone()].to_vec()))
                }
                Column::Text { names, of } | Column::Lists { lists: names, of } => {
                    Arc::new(StringArray::from_iter_values(
                        of[range.clone()].iter().map(|name| &names[*name as usize]),
                    ))
                }
            });
        }
        let (numbers, scales) = split(bytes, layout);
        let damaged = |e| Error::format(path, "Parquet", e);
        arrays.push(Arc::new(vector_array(layout, &numbers).map_err(damaged)?));
        if layout.scale {
            arrays.push(WrittenElement::Float32.array(&scales));
        }
        let batch = RecordBatch::try_new(self.schema.clone(), arrays).map_err(damaged)?;
        self.writer
            .write(&batch)
            .map_err(|e| Error::format(path, "Parquet", e))
    }

    /// The next values of the columns have no vector and are not written.
    pub fn leave_out(&mut self, rows: usize) {
        self.left_out += rows;
        self.count.expected = self
            .count
            .expected
            .map(|all| all.saturating_sub(rows as u64));
    }

    /// Put the file in its place; there must be as many rows as the columns have values, but those left
    /// out.
    pub fn finish(self) -> Result<()> {
        self.count.check()?;
        for column in &self.columns {
            if column.len() as u64 != self.count.written + self.left_out as u64 {
                return Err(self
                    .count
                    .wrong(format!("{} rows", column.len()), self.count.written));
            }
        }
        let target = self
            .writer
            .into_inner()
            .map_err(|e| Error::format(&self.count.path, "Parquet", e))?;
        let path = &self.count.path;
        target.finish().map_err(|e| Error::metra(path, e))
    }
}

/// Vectors from the little-endian bytes of their numbers.
pub(crate) fn vector_array(
    layout: VectorLayout,
    numbers: &[u8],
) -> Result<FixedSizeListArray, ArrowError> {
    let values = layout.element.array(numbers);
    FixedSizeListArray::try_new(layout.element.field(), layout.dim as i32, values, None)
}

/// The numbers of all vectors, and their scales.
fn split(bytes: &[u8], layout: VectorLayout) -> (Cow<'_, [u8]>, Vec<u8>) {
    if !layout.scale {
        return (Cow::Borrowed(bytes), Vec::new());
    }
    let (mut numbers, mut scales) = (Vec::with_capacity(bytes.len()), Vec::new());
    for row in bytes.chunks_exact(layout.row_bytes()) {
        let (own, scale) = row.split_at(layout.dim * layout.element.bytes());
        numbers.extend(own);
        scales.extend(scale);
    }
    (Cow::Owned(numbers), scales)
}
