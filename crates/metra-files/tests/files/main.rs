//! Every rule of the readers and writers, on files that the tests make themselves.

mod csv;
mod formats;
mod npy;
mod parquet;
mod real;
mod supervision;
mod write;

use metra::data::Corpus;
use metra_files::{Result, Table, TableOptions, read_table};
use std::path::Path;

fn read(path: &Path, options: &TableOptions) -> Result<Table> {
    read_table(path, options, &mut |_, _| {})
}

/// The message of a reading that must fail, without the folder.
fn refusal(path: &Path, options: &TableOptions) -> String {
    let message = read(path, options)
        .err()
        .expect("the file must be refused")
        .to_string();
    let folder = path.parent().unwrap().display().to_string() + "/";
    message.replace(&folder, "")
}

fn options(columns: &[&str], filters: &[&str]) -> TableOptions {
    TableOptions {
        columns: columns.iter().map(|c| c.to_string()).collect(),
        filters: filters.iter().map(|f| f.parse().unwrap()).collect(),
        ..TableOptions::default()
    }
}

fn values(corpus: &dyn Corpus) -> Vec<f32> {
    let mut all = Vec::new();
    corpus
        .scan(0..corpus.len(), &mut |_, rows| {
            all.extend_from_slice(rows.values());
            Ok(())
        })
        .unwrap();
    all
}

fn texts(table: &Table, column: &str) -> Vec<String> {
    table.columns[column].iter().map(String::from).collect()
}
