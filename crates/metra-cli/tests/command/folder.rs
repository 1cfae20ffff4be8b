//! A folder of its own for every test, the files in it, and the command run on them.

use metra::data::synthetic::Nuisance;
use metra::linalg::RowBuf;
use metra_files::{Column, NpyWriter, ParquetVectorWriter, TableOptions, read_table};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

pub(crate) const SET: Nuisance = Nuisance {
    classes: 12,
    signal: 4,
    noise: 8,
    seed: 2,
};

pub(crate) const QUICK: [&str; 6] = ["--set", "steps=40", "--set", "batch=64", "--set", "pool=64"];

/// A folder with files, in which the command runs.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn command(&self, line: &str, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_metra"));
        command
            .current_dir(self.0.path())
            .args(line.split_whitespace())
            .args(more);
        command
    }

    pub(crate) fn run(&self, line: &str, more: &[&str]) -> Output {
        self.command(line, more).output().unwrap()
    }

    /// Standard output of a command that must succeed, and standard error.
    pub(crate) fn good(&self, line: &str, more: &[&str]) -> (String, String) {
        let output = self.run(line, more);
        let (out, error) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{line}\n{out}\n{error}");
        (out, error)
    }

    /// The JSON document of a command that must succeed, and nothing else on standard output.
    pub(crate) fn json(&self, line: &str, more: &[&str]) -> Value {
        let (out, _) = self.good(&format!("{line} --json"), more);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{line}: {error}\n{out}"))
    }

    /// The message of a command that must fail as a bad request does.
    pub(crate) fn refused(&self, line: &str, more: &[&str]) -> String {
        let output = self.run(line, more);
        let (out, error) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{line}\n{out}\n{error}");
        let message = error.lines().find(|line| line.starts_with("ERROR "));
        let message = message.unwrap_or_else(|| panic!("{line}: no message in\n{error}"));
        message.to_owned()
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.unwrap().file_name().into_string().unwrap()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// A matrix of f64, as numpy writes it.
    pub(crate) fn write_f64(&self, name: &str, rows: &[Vec<f64>]) {
        let shape = format!("({}, {})", rows.len(), rows[0].len());
        let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(rows.iter().flatten().flat_map(|value| value.to_le_bytes()));
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn write_f32(&self, name: &str, rows: &RowBuf) {
        let rows = rows.rows();
        let path = self.path(name);
        let mut writer = NpyWriter::create(&path, rows.len() as u64, rows.dim()).unwrap();
        writer.push(rows).unwrap();
        writer.finish().unwrap();
    }

    pub(crate) fn write_parquet(&self, name: &str, rows: &RowBuf, columns: &[(&str, Column)]) {
        let columns: Vec<(&str, &Column)> = columns.iter().map(|(n, c)| (*n, c)).collect();
        let path = self.path(name);
        let mut writer =
            ParquetVectorWriter::create(&path, "vector", rows.dim(), &columns).unwrap();
        writer.push(rows.rows()).unwrap();
        writer.finish().unwrap();
    }

    /// Rows and dimension of a file of vectors, and the vectors.
    pub(crate) fn read(&self, name: &str) -> RowBuf {
        let options = TableOptions::default();
        let table = read_table(&self.path(name), &options, &mut |_, _| {}).unwrap();
        let rows: Vec<u64> = (0..table.corpus.len()).collect();
        let mut out = RowBuf::empty(1);
        table.corpus.gather(&rows, &mut out).unwrap();
        out
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub(crate) fn digits() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/digits.parquet");
    path.canonicalize().unwrap().to_str().unwrap().to_owned()
}

/// Rows of a synthetic set and their classes.
pub(crate) fn rows(set: Nuisance, len: usize) -> (RowBuf, Vec<i64>) {
    let made = set.rows(len);
    let values = made.corpus.rows().values().to_vec();
    (
        RowBuf::from_values(values, set.dim()).unwrap(),
        made.classes,
    )
}

pub(crate) fn texts(len: usize, of: impl Fn(usize) -> String) -> Column {
    Column::from_texts((0..len).map(of))
}

/// A Parquet file with everything that the examples of the documentation name.
pub(crate) fn example(folder: &Folder) {
    // More than 64 dimensions, so that the usual rank can be used as it is.
    let (rows, classes) = rows(
        Nuisance {
            signal: 12,
            noise: 58,
            ..SET
        },
        720,
    );
    // Every third round through the classes is for testing.
    let test = |row: usize| (row / 12).is_multiple_of(3);
    let split = |row: usize| if test(row) { "test" } else { "train" };
    let columns = [
        ("label", Column::Integers(classes)),
        ("train", texts(720, |row| (!test(row)).to_string())),
        ("split", texts(720, |row| split(row).to_owned())),
        ("id", texts(720, |row| format!("row-{row}"))),
    ];
    folder.write_parquet("data.parquet", &rows, &columns);
}

/// npy files with labels, in f32 and in f64 after a change of every value.
pub(crate) fn plain(folder: &Folder) -> Vec<Vec<f64>> {
    let (rows, classes) = rows(SET, 240);
    folder.write_f32("x.npy", &rows);
    let lines: Vec<String> = classes.iter().map(|class| format!("{class}\n")).collect();
    folder.write("y.txt", &lines.concat());
    let wide = |row: &[f32]| row.iter().map(|value| f64::from(*value)).collect();
    rows.rows().iter().map(wide).collect()
}

pub(crate) fn changed(
    rows: &[Vec<f64>],
    change: impl Fn(usize, usize, f64) -> f64,
) -> Vec<Vec<f64>> {
    let mut rows = rows.to_vec();
    for (number, row) in rows.iter_mut().enumerate() {
        for (column, value) in row.iter_mut().enumerate() {
            *value = change(number, column, *value);
        }
    }
    rows
}

pub(crate) fn number(report: &Value, pointer: &str) -> f64 {
    let found = report.pointer(pointer).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no number at {pointer} in {report:#}"))
}
