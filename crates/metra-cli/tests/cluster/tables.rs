//! Tables for the tests of the cluster: classes that differ in some coordinates, as Parquet files.

use metra::data::synthetic::Nuisance;
use metra::linalg::RowBuf;
use metra_files::{Column, ParquetVectorWriter};
use std::path::{Path, PathBuf};

/// A folder of Parquet files of vectors with their class in `label`.
pub(crate) struct Made {
    folder: tempfile::TempDir,
}

impl Made {
    /// So many files of so many rows of `dim` numbers.
    pub(crate) fn new(files: usize, rows: usize, dim: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = Made { folder };
        std::fs::create_dir(made.path()).unwrap();
        for file in 0..files {
            let path = made.path().join(format!("part-{file:03}.parquet"));
            write(&path, rows, dim, file);
        }
        made
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("table")
    }

    pub(crate) fn address(&self) -> String {
        self.path().display().to_string()
    }

    /// A place beside the table.
    pub(crate) fn beside(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

fn write(path: &Path, rows: usize, dim: usize, file: usize) {
    let signal = dim / 4;
    let set = Nuisance {
        classes: 40,
        signal,
        noise: dim - signal,
        seed: 7,
    };
    let mut values = RowBuf::zeros(rows, dim);
    let mut classes = Vec::with_capacity(rows);
    for row in 0..rows {
        let number = (file * rows + row) as u64;
        set.write(number, values.row_mut(row));
        classes.push(set.class(number));
    }
    let label = Column::Integers(classes);
    let mut writer =
        ParquetVectorWriter::create(path, "vector", dim, &[("label", &label)]).unwrap();
    writer.push(values.rows()).unwrap();
    writer.finish().unwrap();
}
