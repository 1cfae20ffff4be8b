//! npy: types, orders, companions and headers made to harm.

use crate::{options, read, refusal, texts, values};
use half::f16;
use metra::data::Narrowing;
use metra_files::{Column, ElementType, NarrowingRule, TableOptions};
use std::path::PathBuf;
use tempfile::TempDir;

/// A file with this header (version 1 pads it as numpy does) and these bytes of values.
fn file(version: u8, header: &str, data: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.npy");
    let start = if version == 1 { 10 } else { 12 };
    let header = format!("{header:<width$}\n", width = 127 - start);
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    let length = (header.len() as u32).to_le_bytes();
    bytes.extend(if version == 1 { &length[..2] } else { &length });
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn matrix(descr: &str, order: &str, data: &[u8]) -> (TempDir, PathBuf) {
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': (2, 3), }}");
    file(1, &header, data)
}

fn bytes<T: Copy, const N: usize>(values: &[T], to: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|v| to(*v)).collect()
}

const F32: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0];

#[test]
fn every_type_and_order_reads_the_same() {
    let f64s = F32.map(f64::from);
    let shorts = F32.map(|v| v as i16);
    let ints = F32.map(|v| v as i32);
    let halves = F32.map(f16::from_f32);
    let turned = [1.0_f32, 4.0, 2.0, 5.0, 3.0, 7.0];
    let cases = [
        (
            "<f4",
            "False",
            bytes(&F32, f32::to_le_bytes),
            ElementType::F32,
        ),
        (
            ">f4",
            "False",
            bytes(&F32, f32::to_be_bytes),
            ElementType::F32,
        ),
        (
            "<f4",
            "True",
            bytes(&turned, f32::to_le_bytes),
            ElementType::F32,
        ),
        (
            ">f4",
            "True",
            bytes(&turned, f32::to_be_bytes),
            ElementType::F32,
        ),
        (
            "<f8",
            "False",
            bytes(&f64s, f64::to_le_bytes),
            ElementType::F64,
        ),
        (
            ">f8",
            "False",
            bytes(&f64s, f64::to_be_bytes),
            ElementType::F64,
        ),
        (
            "<f2",
            "False",
            bytes(&halves, f16::to_le_bytes),
            ElementType::F16,
        ),
        (
            "<i2",
            "False",
            bytes(&shorts, i16::to_le_bytes),
            ElementType::I16,
        ),
        (
            ">i2",
            "False",
            bytes(&shorts, i16::to_be_bytes),
            ElementType::I16,
        ),
        (
            "<i4",
            "False",
            bytes(&ints, i32::to_le_bytes),
            ElementType::I32,
        ),
        ("|u1", "False", vec![1, 2, 3, 4, 5, 7], ElementType::U8),
        ("|i1", "False", vec![1, 2, 3, 4, 5, 7], ElementType::I8),
    ];
    for (descr, order, data, element) in cases {
        let (folder, path) = matrix(descr, order, &data);
        for memory in [1 << 20, 0] {
            let options = TableOptions {
                memory,
                cache_dir: folder.path().into(),
                ..TableOptions::default()
            };
            let table = read(&path, &options).unwrap();
            assert_eq!(table.element_type, element);
            assert_eq!(values(&*table.corpus), F32, "{descr} {order}");
            // f32 as memory holds it stays where it is, whatever the limit.
            let in_place = (descr, order) == ("<f4", "False");
            assert_eq!(table.notes.is_empty(), in_place || memory > 0);
        }
    }
}

#[test]
fn versions_two_and_three_are_read_and_a_fourth_is_not() {
    let header = "{'shape': (2L, 3L), \"fortran_order\": False, 'descr': '<f4'}";
    for version in [1, 2, 3] {
        let (_folder, path) = file(version, header, &bytes(&F32, f32::to_le_bytes));
        let table = read(&path, &TableOptions::default()).unwrap();
        assert_eq!(values(&*table.corpus), F32);
    }
    let (_folder, path) = file(4, header, &[]);
    assert!(refusal(&path, &TableOptions::default()).contains("expected version 1, 2 or 3"));
}

#[test]
fn hostile_headers_are_refused_before_anything_is_allocated() {
    let cases = [
        (
            "'<f4'",
            "False",
            "(1099511627776, 1099511627776)",
            "needs more than 2^64 bytes",
        ),
        (
            "'<f4'",
            "False",
            "(1000000000000, 3)",
            "needs 12000000000128 bytes, but the file has",
        ),
        ("'<f4'", "False", "(-2, 3)", "is not made of numbers"),
        (
            "'<f4'",
            "False",
            "(99999999999999999999, 3)",
            "is not made of numbers",
        ),
        (
            "'<f4'",
            "False",
            "(2, 0)",
            "expected at least 1 × 1 numbers",
        ),
        (
            "'<f4'",
            "False",
            "(0, 3)",
            "expected at least 1 × 1 numbers",
        ),
        (
            "'<f4'",
            "False",
            "(0, 18446744073709551615)",
            "expected at least 1 × 1 numbers",
        ),
        ("'<f4'", "False", "(6,)", "expected two axes"),
        ("'<f4'", "False", "()", "expected two axes"),
        ("'<f4'", "False", "[2, 3]", "the shape is not a tuple"),
        ("'<f4'", "Maybe", "(2, 3)", "neither True nor False"),
        ("'|O8'", "False", "(2, 3)", "needs 176 bytes"),
        ("'|O4'", "False", "(2, 3)", "expected numbers of type f2"),
        ("'<c4'", "False", "(2, 3)", "expected numbers of type f2"),
        ("'<f99999999999999999999'", "False", "(2, 3)", "is unknown"),
        ("'<é4'", "False", "(2, 3)", "is unknown"),
        ("'<f'", "False", "(2, 3)", "is unknown"),
        ("'<f0'", "False", "(2, 3)", "expected numbers of type f2"),
        ("[('a', '<f4')]", "False", "(2, 3)", "the type is a record"),
    ];
    for (descr, order, shape, expected) in cases {
        let header = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}");
        let (_folder, path) = file(1, &header, &bytes(&F32, f32::to_le_bytes));
        let message = refusal(&path, &TableOptions::default());
        assert!(message.contains(expected), "{message}");
    }
    let (_folder, path) = file(1, "((((", &[]);
    assert!(refusal(&path, &TableOptions::default()).contains("no entry \"descr\""));
    // The length of a header of version 2 goes up to 4 GB.
    std::fs::write(&path, b"\x93NUMPY\x02\x00\xff\xff\xff\xff{").unwrap();
    assert!(refusal(&path, &TableOptions::default()).contains("said to be 4294967295 bytes"));
    for (start, format) in [
        (&b"\x93NUMPY"[..], "npy"),
        (b"\x93NUMPY\x01\x00", "npy"),
        (b"PK\x03\x04 and more", "npz"),
    ] {
        std::fs::write(&path, start).unwrap();
        let message = refusal(&path, &TableOptions::default());
        assert!(
            message.contains(&format!("cannot be read as {format}:")),
            "{message}"
        );
    }
}

#[test]
fn bad_values_and_offsets_are_found_in_a_mapped_file_too() {
    let (_folder, path) = matrix("<f4", "False", &{
        let mut values = F32;
        values[4] = f32::NAN;
        bytes(&values, f32::to_le_bytes)
    });
    assert_eq!(
        refusal(&path, &TableOptions::default()),
        "t.npy: row 1, column 1: expected a value, but it is missing (an empty field, NaN or null); rows with missing values can be left out (--missing skip)"
    );
    let offset = [1e7_f32, 0.0, 0.0, 1e7 + 2.0, 1.0, 0.0];
    let (_folder, path) = matrix("<f4", "False", &bytes(&offset, f32::to_le_bytes));
    let table = read(&path, &TableOptions::default()).unwrap();
    assert_eq!(values(&*table.corpus), [-1.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
    assert_eq!(table.narrowing.unwrap().shift[0], 1e7 + 1.0);
    assert_eq!(table.notes.len(), 2);
    let narrowing = NarrowingRule::Apply(Narrowing {
        shift: vec![0.0; 3],
        scale: 0.5,
    });
    let prescribed = TableOptions {
        narrowing,
        ..TableOptions::default()
    };
    let table = read(&path, &prescribed).unwrap();
    assert_eq!(values(&*table.corpus)[4], 0.5);
}

#[test]
fn companions_are_columns() {
    let (folder, path) = matrix("<f4", "False", &bytes(&F32, f32::to_le_bytes));
    let companion = |name: &str, descr: &str, shape: &str, data: &[u8]| {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        let (_own, made) = file(1, &header, data);
        let path = folder.path().join(name);
        std::fs::copy(made, &path).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let short = companion("short.npy", ">i2", "(2,)", &[0xff, 0xfe, 0, 3]);
    let long = companion("long.npy", "<u8", "(2,)", &bytes(&[7, 8], u64::to_le_bytes));
    let lines = folder.path().join("ids.txt");
    std::fs::write(&lines, "a\r\nb\n").unwrap();
    let lines = lines.to_str().unwrap();
    let table = read(&path, &options(&[&short, &long, lines], &[])).unwrap();
    assert_eq!(table.columns[&short], Column::Integers(vec![-2, 3]));
    assert_eq!(table.columns[&long], Column::Integers(vec![7, 8]));
    assert_eq!(texts(&table, lines), ["a", "b"]);

    let three = companion("three.npy", "|u1", "(3,)", &[1, 2, 3]);
    let message = refusal(&path, &options(&[&three], &[]));
    assert_eq!(
        message,
        "three.npy: expected 2 values, one for each row of t.npy, but found 3"
    );
    let float = companion("float.npy", "<f4", "(2,)", &[0; 8]);
    assert!(refusal(&path, &options(&[&float], &[])).contains("expected whole numbers"));
    let flat = companion("flat.npy", "|u1", "(1, 2)", &[0; 2]);
    assert!(refusal(&path, &options(&[&flat], &[])).contains("expected one axis"));
    let huge = companion("huge.npy", "<u8", "(2,)", &[0xff; 16]);
    assert!(refusal(&path, &options(&[&huge], &[])).contains("row 0: expected a value below 2^63"));
    std::fs::write(lines, "a\n\n").unwrap();
    assert!(refusal(&path, &options(&[lines], &[])).contains("line 2: expected a value"));
}

#[test]
fn filters_and_names_do_not_suit_npy() {
    let (_folder, path) = matrix("<f4", "False", &bytes(&F32, f32::to_le_bytes));
    let message = refusal(&path, &options(&[], &["a=1"]));
    assert!(
        message.contains("the filter a=1 cannot be used"),
        "{message}"
    );
    let named = TableOptions {
        vector: Some("v".into()),
        ..TableOptions::default()
    };
    assert!(refusal(&path, &named).contains("an npy file has no names"));
}
