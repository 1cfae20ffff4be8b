//! Tables of vectors with a column of labels, under a limit of memory.

use crate::{Outcome, Reading};
use metra_files::{TableOptions, read_table};
use std::path::PathBuf;
use std::sync::LazyLock;
use tempfile::TempDir;

/// Bytes of vectors to keep in memory; more goes to a file.
const MEMORY: u64 = 1 << 20;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

pub(crate) fn parquet(bytes: &[u8]) -> Outcome {
    read(bytes, "parquet", &["label"])
}

pub(crate) fn feather(bytes: &[u8]) -> Outcome {
    read(bytes, "feather", &["label"])
}

pub(crate) fn npy(bytes: &[u8]) -> Outcome {
    read(bytes, "npy", &[])
}

pub(crate) fn csv(bytes: &[u8]) -> Outcome {
    read(bytes, "csv", &["label"])
}

pub(crate) fn json_lines(bytes: &[u8]) -> Outcome {
    read(bytes, "jsonl", &["label"])
}

fn read(bytes: &[u8], extension: &str, columns: &[&str]) -> Outcome {
    let path: PathBuf = FOLDER.path().join(format!("input.{extension}"));
    std::fs::write(&path, bytes).expect("a file of the input");
    let options = TableOptions {
        columns: columns.iter().map(|&name| name.to_owned()).collect(),
        memory: MEMORY,
        cache_dir: FOLDER.path().to_owned(),
        ..TableOptions::default()
    };
    let table = read_table(&path, &options, &mut |_, _| {}).ok()?;
    let mut reading = Reading::default();
    let rows = table.corpus.len();
    for name in columns {
        let column = table.column(name).expect("a column that was asked for");
        assert_eq!(column.len() as u64, rows, "labels and vectors");
        column.iter().for_each(|text| reading.text(&text));
    }
    let scanned = table.corpus.scan(0..rows, &mut |_, block| {
        reading.numbers(block.values());
        Ok(())
    });
    scanned.expect("a corpus that was read can be read again");
    reading.done()
}
