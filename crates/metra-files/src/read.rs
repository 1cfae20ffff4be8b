//! The reader for every format of vectors: the extension of the file chooses it.

use crate::error::{Error, Result};
use crate::table::{ReadProgress, Table, TableOptions, extension};
use crate::{csv, npy, parquet};
use std::path::Path;

/// Read vectors and columns from `path`, in the format that its extension names.
///
/// - `.parquet`: a list column of f16, f32, f64, i8, i16, i32, u8 or u16. Wanted columns may hold
///   integers, booleans, texts, or floating-point numbers that are whole.
/// - `.npy`: two axes, the same types; f32 in C order is memory-mapped where it lies.
/// - `.csv`, `.tsv`: with a header. The vector is made of the columns named by the prefix
///   [`TableOptions::vector`] followed by a number, with or without `_` between (`vector_0`,
///   `v12`), in the order of the numbers. The prefix `*` takes all columns that are neither
///   wanted nor filtered on, in the order of the file; it must be asked for, because a forgotten
///   id would become a feature.
///
/// NaN, infinite and missing values in the rows kept are errors that name their cell.
pub fn read_table(
    path: &Path,
    options: &TableOptions,
    progress: ReadProgress<'_>,
) -> Result<Table> {
    let length = std::fs::metadata(path)
        .map_err(|e| Error::io(path, e))?
        .len();
    if length == 0 {
        return Err(Error::file(path, "expected vectors, but the file is empty"));
    }
    match extension(path).as_deref() {
        Some("parquet") => parquet::read(path, options, progress),
        Some("npy") => npy::read(path, options, progress),
        Some("csv") => csv::read(path, b',', options, progress),
        Some("tsv") => csv::read(path, b'\t', options, progress),
        found => Err(Error::file(
            path,
            format!(
                "expected a file that ends in .parquet, .npy, .csv or .tsv, but found {}",
                found.map_or("no extension".into(), |e| format!(".{e}"))
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_and_empty_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str| {
            read_table(
                &folder.path().join(name),
                &TableOptions::default(),
                &mut |_, _| {},
            )
            .err()
            .unwrap()
            .to_string()
        };
        assert!(read("none.npy").contains("none.npy"));
        for name in ["a.parquet", "a.npy", "a.csv"] {
            std::fs::write(folder.path().join(name), "").unwrap();
            assert!(read(name).contains("the file is empty"));
        }
        std::fs::write(folder.path().join("a.bin"), "x").unwrap();
        assert!(read("a.bin").contains("but found .bin"));
    }
}
