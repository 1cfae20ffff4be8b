//! Tables and models of the tests, and the command that is tested.

use crate::server::Server;
use metra::data::synthetic::Nuisance;
use metra::internal::Stream;
use metra::linalg::{RowBuf, Rows};
use metra::model::{Chain, Model, Origin};
use metra_files::{Column, ParquetVectorWriter};
use metra_stores::postgres::Address;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Run the command to its end.
pub(crate) fn output(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_metra"));
    command
        .args(arguments)
        .env_remove("PGPASSWORD")
        .output()
        .unwrap()
}

/// The answer of a command that must succeed, as JSON.
pub(crate) fn answered(arguments: &[&str]) -> Value {
    let done = output(&[arguments, &["--json"]].concat());
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{arguments:?}\n{error}");
    serde_json::from_slice(&done.stdout).unwrap_or(Value::Null)
}

/// What a command that must fail says.
pub(crate) fn refused(arguments: &[&str]) -> String {
    let done = output(arguments);
    let error = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{arguments:?}\n{error}");
    error
}

/// A connection.
macro_rules! client {
    ($server:expr) => {
        metra_stores::postgres::Address::parse(&$server.url())
            .unwrap()
            .connect()
            .unwrap()
    };
}
pub(crate) use client;

/// A table (id bigint, embedding vector, label integer); every `without`-th row has no vector. COPY in the
/// binary form, written by hand so that no code of the push is used.
pub(crate) fn load(server: &Server, table: &str, rows: Rows<'_>, ids: &[i64], without: usize) {
    let mut client = Address::parse(&server.url()).unwrap().connect().unwrap();
    let dim = rows.dim();
    client
        .batch_execute(&format!(
            "CREATE TABLE {table} (id bigint PRIMARY KEY, embedding vector({dim}), label integer)"
        ))
        .unwrap();
    let copy = format!("COPY {table} (id, embedding, label) FROM STDIN (FORMAT binary)");
    let mut writer = client.copy_in(&copy).unwrap();
    let mut bytes = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
    for (number, (row, id)) in rows.iter().zip(ids).enumerate() {
        bytes.extend(3_i16.to_be_bytes());
        bytes.extend(8_i32.to_be_bytes());
        bytes.extend(id.to_be_bytes());
        if without > 0 && number % without == without - 1 {
            bytes.extend((-1_i32).to_be_bytes());
        } else {
            bytes.extend((4 + 4 * dim as i32).to_be_bytes());
            bytes.extend((dim as u16).to_be_bytes());
            bytes.extend(0_u16.to_be_bytes());
            bytes.extend(row.iter().flat_map(|value| value.to_be_bytes()));
        }
        bytes.extend(4_i32.to_be_bytes());
        bytes.extend((number as i32 % 7).to_be_bytes());
        if bytes.len() > 1 << 20 {
            writer.write_all(&bytes).unwrap();
            bytes.clear();
        }
    }
    bytes.extend((-1_i16).to_be_bytes());
    writer.write_all(&bytes).unwrap();
    writer.finish().unwrap();
}

/// Vectors of classes that differ in a quarter of their numbers.
pub(crate) fn made(rows: usize, dim: usize) -> RowBuf {
    let signal = dim / 4;
    let set = Nuisance {
        classes: 50,
        signal,
        noise: dim - signal,
        seed: 11,
    };
    let mut values = RowBuf::zeros(rows, dim);
    for row in 0..rows {
        set.write(row as u64, values.row_mut(row));
    }
    values
}

/// Numbers in ±1, moved up by `above`.
pub(crate) fn drawn(purpose: &str, rows: usize, dim: usize, above: f64) -> RowBuf {
    let mut stream = Stream::new(5, purpose, 0);
    let values = (0..rows * dim)
        .map(|_| (2.0 * stream.unit() - 1.0 + above) as f32)
        .collect();
    RowBuf::from_values(values, dim).unwrap()
}

/// Different ids in no order, so that the order of rows is not that of ids.
pub(crate) fn shuffled_ids(count: usize) -> Vec<i64> {
    let mut ids: Vec<i64> = (0..count as i64).map(|id| 3 * id - 1000).collect();
    Stream::new(5, "ids", 0).shuffle(&mut ids);
    ids
}

/// A model file of a chain.
pub(crate) fn save(folder: &Path, name: &str, chain: Chain) -> (Model, PathBuf) {
    let origin = Origin {
        method: "made".into(),
        ..Origin::default()
    };
    let model = Model::new(None, chain, origin).unwrap();
    let path = folder.join(format!("{name}.safetensors"));
    model.save(&path).unwrap();
    (model, path)
}

/// A Parquet file of vectors with their ids.
pub(crate) fn parquet(path: &Path, rows: Rows<'_>, ids: &[i64]) {
    let ids = Column::Integers(ids.to_vec());
    let mut writer =
        ParquetVectorWriter::create(path, "vector", rows.dim(), &[("id", &ids)]).unwrap();
    writer.push(rows).unwrap();
    writer.finish().unwrap();
}

/// Path as text.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
