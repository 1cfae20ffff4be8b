//! The one reader for every format of vectors.

use crate::arrow;
use crate::arrow_container::Container;
use crate::error::Result;
use crate::source_file::{Format, SourceFile};
use crate::table::{ReadProgress, Table, TableOptions};
use crate::{csv, json_lines, npy, npz};
use std::path::Path;

/// Read vectors and columns from `path`, in the format that its first bytes or its extension name.
///
/// - `.parquet`, `.feather`: numbers are f16, f32, f64, i8, i16, i32, u8 or u16. Wanted columns may
///   hold integers, booleans, texts, or floating-point numbers that are whole.
/// - `.npy`: two axes, the same types; f32 in C order is memory-mapped where it lies. `.npz`: an array
///   of it; other arrays are the columns.
/// - `.jsonl`: an object a line, whose keys are the columns.
/// - `.csv`, `.tsv`: with a header; the separator is recognised (comma, tab, semicolon or bar).
///
/// [`TableOptions::vector`] names a column of lists (in CSV `[0.1, 0.2]`); or columns of numbers, one
/// by one (`age,price`), by a pattern (`emb_*`, in the order of the file), or by a prefix that a number
/// follows, with or without `_` between (`vector_0`, `v12`), in the order of the numbers. `*` takes
/// all columns that are neither wanted nor filtered on, in the order of the file; it must be asked
/// for, because a forgotten id would become a feature. Where it is not given, it is `vector`, or the
/// only column of lists.
///
/// Files packed by gzip or zstd are unpacked, and `-` is standard input. Infinite values are errors
/// that name their cell, and so are missing ones, unless [`TableOptions::missing`] skips their rows.
pub fn read_table(
    path: &Path,
    options: &TableOptions,
    progress: ReadProgress<'_>,
) -> Result<Table> {
    let source = SourceFile::open(path, &options.cache_dir)?;
    let file = source.path();
    let table = match source.format {
        Format::Parquet => arrow::read(Container::Parquet, file, options, progress),
        Format::Feather => arrow::read(Container::Feather, file, options, progress),
        Format::Npy => npy::read(file, options, progress),
        Format::Npz => npz::read(file, options, progress),
        Format::JsonLines => json_lines::read(file, options, progress),
        Format::Csv(separator) => csv::read(file, separator, options, progress),
    };
    if !source.is_copy() {
        return table;
    }
    let mut table = table.map_err(|error| error.in_file(path))?;
    table.path = path.to_path_buf();
    Ok(table)
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
