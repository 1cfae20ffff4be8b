//! Writing vectors: npy and Parquet, row block by row block. A file appears when it is whole.

use crate::column::Column;
use crate::error::{Error, Result};
use arrow_array::{
    ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch, StringArray,
};
use arrow_schema::{DataType, Field, Schema};
use metra::internal::{AtomicFile, npy_header};
use metra::linalg::Rows;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of vectors in a row group: a writer holds one in memory.
const ROW_GROUP_BYTES: usize = 32 << 20;

/// Rows in a group of the longest vectors: fewer would make the file's own tables large beside them.
const LEAST_ROWS: usize = 64;

/// Counts rows against what was announced, for both writers.
struct Count {
    path: PathBuf,
    dim: usize,
    expected: Option<u64>,
    written: u64,
}

impl Count {
    fn add(&mut self, rows: Rows<'_>) -> Result<()> {
        if rows.dim() != self.dim {
            return Err(self.wrong(format!("vectors of {} numbers", self.dim), rows.dim()));
        }
        self.written += rows.len() as u64;
        match self.expected {
            Some(expected) if self.written > expected => {
                Err(self.wrong(format!("{expected} rows"), self.written))
            }
            _ => Ok(()),
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

/// Writes f32 vectors as npy (version 1, C order).
pub struct NpyWriter {
    target: AtomicFile,
    count: Count,
}

impl NpyWriter {
    /// A file of `rows` vectors of `dim` numbers.
    pub fn create(path: &Path, rows: u64, dim: usize) -> Result<Self> {
        let mut target = AtomicFile::create(path).map_err(|e| Error::metra(path, e))?;
        let written = target.write_all(&npy_header(rows, dim));
        written.map_err(|e| Error::io(path, e))?;
        Ok(NpyWriter {
            target,
            count: Count {
                path: path.to_path_buf(),
                dim,
                expected: Some(rows),
                written: 0,
            },
        })
    }

    /// Append vectors.
    pub fn push(&mut self, rows: Rows<'_>) -> Result<()> {
        self.count.add(rows)?;
        let failed = |e| Error::io(&self.count.path, e);
        if cfg!(target_endian = "little") {
            let bytes = bytemuck::cast_slice(rows.values());
            return self.target.write_all(bytes).map_err(failed);
        }
        for value in rows.values() {
            self.target
                .write_all(&value.to_le_bytes())
                .map_err(failed)?;
        }
        Ok(())
    }

    /// Put the file in its place; the number of rows must be the one announced.
    pub fn finish(self) -> Result<()> {
        self.count.check()?;
        let path = &self.count.path;
        self.target.finish().map_err(|e| Error::metra(path, e))
    }
}

/// Writes f32 vectors as Parquet, with columns passed through beside them.
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
        dim: usize,
        columns: &[(&str, &'a Column)],
    ) -> Result<Self> {
        let width = i32::try_from(dim).ok().filter(|d| *d > 0).ok_or_else(|| {
            let problem = format!("expected vectors of 1 to 2^31 - 1 numbers, but found {dim}");
            Error::file(path, problem)
        })?;
        let mut fields = Vec::with_capacity(columns.len() + 1);
        for (position, (name, column)) in columns.iter().enumerate() {
            if *name == vector || columns[..position].iter().any(|(n, _)| n == name) {
                let problem = format!("expected columns of different names, but {name:?} is twice");
                return Err(Error::file(path, problem));
            }
            let kind = match column {
                Column::Integers(_) => DataType::Int64,
                Column::Text { .. } => DataType::Utf8,
            };
            fields.push(Field::new(*name, kind, false));
        }
        fields.push(Field::new(
            vector,
            DataType::FixedSizeList(number_field(), width),
            false,
        ));
        let schema = Arc::new(Schema::new(fields));
        // Numbers of vectors hardly repeat: a dictionary of them costs time and saves nothing.
        let element_path = vec![vector.into(), "list".into(), "element".into()];
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(
                (ROW_GROUP_BYTES / (4 * dim)).clamp(LEAST_ROWS, 1 << 20),
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
                dim,
                expected: columns.first().map(|(_, column)| column.len() as u64),
                written: 0,
            },
        })
    }

    /// Append vectors with the next values of the columns.
    pub fn push(&mut self, rows: Rows<'_>) -> Result<()> {
        let start = self.count.written as usize + self.left_out;
        self.count.add(rows)?;
        let path = &self.count.path;
        let range = start..start + rows.len();
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
                Column::Text { names, of } => Arc::new(StringArray::from_iter_values(
                    of[range.clone()].iter().map(|name| &names[*name as usize]),
                )),
            });
        }
        let values = Arc::new(Float32Array::from(rows.values().to_vec()));
        let damaged = |e| Error::format(path, "Parquet", e);
        let vectors = FixedSizeListArray::try_new(number_field(), rows.dim() as i32, values, None)
            .map_err(damaged)?;
        arrays.push(Arc::new(vectors));
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

fn number_field() -> Arc<Field> {
    Arc::new(Field::new("element", DataType::Float32, false))
}
