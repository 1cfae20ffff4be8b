//! Opening Parquet and Feather (Arrow IPC) files and reading their batches.

use crate::error::{Error, Result};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::File;
use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Which of the two formats a file has.
#[derive(Clone, Copy)]
pub(crate) enum Container {
    Parquet,
    Feather,
}

impl Container {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Container::Parquet => "Parquet",
            Container::Feather => "Feather",
        }
    }

    /// The schema, and the number of rows where the file's head says it.
    pub(crate) fn schema(self, path: &Path) -> Result<(SchemaRef, Option<u64>)> {
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
    pub(crate) fn batches(
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

pub(crate) fn open_parquet(path: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>> {
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
pub(crate) fn guarded<T>(
    path: &Path,
    container: Container,
    decode: impl FnOnce() -> Result<T>,
) -> Result<T> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|_| {
        let problem = "the decoder gave up, so the file is damaged";
        Err(Error::format(path, container.name(), problem))
    })
}
