//! Writers: what they write comes back, and an unfinished file never appears.

use crate::{options, read, texts, values};
use metra::linalg::Rows;
use metra_files::{Column, NpyWriter, ParquetVectorWriter, TableOptions};

const VALUES: [f32; 6] = [1.0, 2.0, 3.0, 4.5, 5.0, -6.0];

fn rows(values: &[f32]) -> Rows<'_> {
    Rows::new(values, 2).unwrap()
}

#[test]
fn npy_comes_back_here_and_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.npy");
    let mut writer = NpyWriter::create(&path, 3, 2).unwrap();
    writer.push(rows(&VALUES[..2])).unwrap();
    assert!(!path.exists());
    writer.push(rows(&VALUES[2..])).unwrap();
    writer.finish().unwrap();
    let table = read(&path, &TableOptions::default()).unwrap();
    assert_eq!(values(&*table.corpus), VALUES);
    let bytes = std::fs::read(&path).unwrap();
    // What numpy.save writes for this array: the header is padded with blanks to 128 bytes.
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";
    let mut expected = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    expected.extend(format!("{header:<117}\n").bytes());
    expected.extend(VALUES.iter().flat_map(|value| value.to_le_bytes()));
    assert_eq!(bytes, expected);
}

#[test]
fn parquet_comes_back_with_its_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let id = Column::from_texts(["a", "b", "a"]);
    let label = Column::Integers(vec![5, -1, 7]);
    let columns = [("id", &id), ("label", &label)];
    let mut writer = ParquetVectorWriter::create(&path, "vector", 2, &columns).unwrap();
    writer.push(rows(&VALUES[..2])).unwrap();
    writer.push(rows(&VALUES[2..])).unwrap();
    assert!(!path.exists());
    writer.finish().unwrap();
    let table = read(&path, &options(&["id", "label"], &[])).unwrap();
    assert_eq!(values(&*table.corpus), VALUES);
    assert_eq!(texts(&table, "id"), ["a", "b", "a"]);
    assert_eq!(table.columns["label"], label);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn wrong_shapes_are_refused_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let npy = folder.path().join("t.npy");
    let mut writer = NpyWriter::create(&npy, 1, 2).unwrap();
    assert!(writer.push(rows(&VALUES)).is_err());
    drop(writer);
    let mut writer = NpyWriter::create(&npy, 4, 2).unwrap();
    assert!(writer.push(Rows::new(&VALUES, 3).unwrap()).is_err());
    writer.push(rows(&VALUES)).unwrap();
    let message = writer.finish().unwrap_err().to_string();
    assert!(
        message.ends_with("expected 4 rows, but was given 3"),
        "{message}"
    );

    let parquet = folder.path().join("t.parquet");
    let id = Column::Integers(vec![1, 2]);
    let create =
        |vector: &str, dim| ParquetVectorWriter::create(&parquet, vector, dim, &[("id", &id)]);
    assert!(create("id", 2).is_err() && create("vector", 0).is_err());
    assert!(create("vector", 2).unwrap().push(rows(&VALUES)).is_err());
    let mut writer = create("vector", 2).unwrap();
    writer.push(rows(&VALUES[..2])).unwrap();
    assert!(writer.finish().is_err());
    drop(create("vector", 2).unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(NpyWriter::create(&folder.path().join("none/t.npy"), 1, 1).is_err());
}

#[cfg(unix)]
#[test]
fn results_are_as_open_as_other_files() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.npy");
    let mut writer = NpyWriter::create(&path, 3, 2).unwrap();
    writer.push(rows(&VALUES)).unwrap();
    writer.finish().unwrap();
    let other = folder.path().join("other");
    std::fs::write(&other, "").unwrap();
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(path), mode(other));
}
