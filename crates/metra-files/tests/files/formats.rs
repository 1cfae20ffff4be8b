//! Which format a file has, and formats beside Parquet, npy and CSV. What other programs write is read in
//! `tests/oracles/formats.py`.

use crate::{options, read, refusal, texts, values};
use metra_files::{MissingValues, TableOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const LINES: &str = "id,vector_0,vector_1\na,1,2\nb,3,4.5\n";

fn file(name: &str, bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn assert_lines(path: &Path) {
    let table = read(path, &options(&["id"], &[])).unwrap();
    assert_eq!(values(&*table.corpus), [1.0, 2.0, 3.0, 4.5]);
    assert_eq!(texts(&table, "id"), ["a", "b"]);
    assert_eq!(table.path, path);
}

#[test]
fn packed_files_are_unpacked_whatever_they_are_called() {
    let zstd = zstd::encode_all(LINES.as_bytes(), 3).unwrap();
    let gzip = gzip(LINES.as_bytes());
    for (name, bytes) in [
        ("x.csv", LINES.as_bytes()),
        ("x.csv.gz", &gzip),
        ("x.csv", &gzip),
        ("x.csv.zst", &zstd),
    ] {
        let (_folder, path) = file(name, bytes);
        assert_lines(&path);
    }
    // Messages name the file that the user knows.
    let (_folder, path) = file("x.csv.gz", &gzip);
    assert!(refusal(&path, &options(&["label"], &[])).starts_with("x.csv.gz: expected a column"));
    let (_folder, path) = file("x.csv.gz", &gzip[..gzip.len() / 2]);
    assert!(refusal(&path, &options(&[], &[])).starts_with("x.csv.gz: "));
    let (_folder, path) = file("x.csv", b"BZh91AY&SY");
    assert!(refusal(&path, &options(&[], &[])).contains("packed by bzip2"));
}

#[test]
fn separators_are_recognised() {
    for separator in [";", "\t", "|"] {
        let (_folder, path) = file("x.csv", LINES.replace(',', separator).as_bytes());
        assert_lines(&path);
    }
    let (_folder, path) = file("x.csv", b"id;vector_0;vector_1\na;1,5;2\n");
    assert!(refusal(&path, &options(&[], &[])).contains("numbers need a decimal point"));
}

#[test]
fn lines_are_counted_whatever_they_end_in() {
    for end in ["\n", "\r\n"] {
        let text = ["vector_0,vector_1", "1,2", "3,x", ""].join(end);
        let (_folder, path) = file("x.csv", text.as_bytes());
        let message = refusal(&path, &options(&[], &[]));
        assert!(
            message.contains("line 3, column vector_1"),
            "{end:?}: {message}"
        );
    }
}

#[test]
fn vectors_of_text_files_can_be_named_in_many_ways() {
    let text = "name,emb_a,emb_b,x,list\na,1,2,9,\"[1, 2]\"\nb,3,4,9,[3 4.0]\n";
    let (_folder, path) = file("x.csv", text.as_bytes());
    for vector in ["emb_*", "emb_a,emb_b", "list"] {
        let options = TableOptions {
            vector: Some(vector.into()),
            ..options(&["name"], &[])
        };
        let table = read(&path, &options).unwrap();
        assert_eq!(values(&*table.corpus), [1.0, 2.0, 3.0, 4.0], "{vector}");
    }
    let lacking = TableOptions {
        vector: Some("emb_a,emb_c".into()),
        ..options(&[], &[])
    };
    assert!(refusal(&path, &lacking).contains("expected a column \"emb_c\""));
    let (_folder, path) = file("x.csv", b"list\n\"[1, 2]\"\n\"[1]\"\n");
    let list = TableOptions {
        vector: Some("list".into()),
        ..options(&[], &[])
    };
    assert!(refusal(&path, &list).contains("expected a vector of dimension 2"));
}

#[test]
fn objects_of_json_lines_are_rows() {
    let text = "\u{feff}{\"id\": 7, \"v\": [1, 2.5], \"kind\": \"a\"}\n\n{\"v\": [3, 4], \"kind\": null, \"id\": 8}\n";
    let (_folder, path) = file("x.jsonl", text.as_bytes());
    let table = read(&path, &options(&["id"], &["id!=9"])).unwrap();
    assert_eq!(values(&*table.corpus), [1.0, 2.5, 3.0, 4.0]);
    assert_eq!(table.rows, Some(vec![1, 3]));
    assert!(
        refusal(&path, &options(&["kind"], &[])).contains("line 3, column kind: expected a value")
    );
    let (_folder, path) = file("x.jsonl", b"{\"v\": [1, \"x\"]}\n");
    assert!(refusal(&path, &options(&[], &[])).contains("line 1, column v[1]: expected a number"));
    let (_folder, path) = file("x.jsonl", b"{\"v\": [1]\n");
    assert!(refusal(&path, &options(&[], &[])).contains("line 1: expected a JSON object"));
}

#[test]
fn a_vector_of_one_key_or_column_each_is_read() {
    let wanted = |vector: &str, missing| TableOptions {
        vector: Some(vector.to_owned()),
        missing,
        ..options(&["kind"], &[])
    };
    let text =
        "{\"b\": 2, \"a\": 1.5, \"kind\": \"x\"}\n{\"a\": null, \"b\": 4, \"kind\": \"y\"}\n";
    let (_folder, path) = file("x.jsonl", text.as_bytes());
    let skip = |vector: &str| read(&path, &wanted(vector, MissingValues::Skip)).unwrap();
    assert_eq!(values(&*skip("b,a").corpus), [2.0, 1.5]);
    assert_eq!(values(&*skip("*").corpus), [1.5, 2.0]);
    let message = refusal(&path, &wanted("*", MissingValues::Error));
    assert!(message.contains("line 2, column a: "), "{message}");
    let message = refusal(&path, &wanted("a,kind", MissingValues::Error));
    assert!(message.contains("also a label"), "{message}");
}

#[test]
fn missing_values_are_skipped_and_counted_in_every_format() {
    let skipping = |columns: &[&str]| TableOptions {
        missing: MissingValues::Skip,
        ..options(columns, &[])
    };
    let text = "id,vector_0,vector_1\na,1,2\nb,,4\n,5,6\nc,7,NaN\nd,9,8\n";
    let (_folder, path) = file("x.csv", text.as_bytes());
    let table = read(&path, &skipping(&["id"])).unwrap();
    assert_eq!(values(&*table.corpus), [1.0, 2.0, 9.0, 8.0]);
    assert_eq!(table.rows, Some(vec![2, 6]));
    assert!(
        table
            .notes
            .contains(&"3 of 5 rows left out: a value is missing".to_owned())
    );
    let text = "{\"v\": [1, 2]}\n{\"v\": null}\n{\"v\": [3, null]}\n{\"v\": [5, 6]}\n";
    let (_folder, path) = file("x.jsonl", text.as_bytes());
    let table = read(&path, &skipping(&[])).unwrap();
    assert_eq!(values(&*table.corpus), [1.0, 2.0, 5.0, 6.0]);
    let text = "{\"n\": \"NaN \\\" NaN\", \"v\": [1, NaN]}\n{\"n\": \"NaN\", \"v\": [5, 6]}\n";
    let (_folder, path) = file("x.jsonl", text.as_bytes());
    let table = read(&path, &skipping(&["n"])).unwrap();
    assert_eq!(values(&*table.corpus), [5.0, 6.0]);
    assert_eq!(texts(&table, "n"), ["NaN"]);
    let (_folder, path) = file("x.csv", b"vector_0,vector_1\n1,\n,2\n");
    assert!(refusal(&path, &skipping(&[])).contains("missing in each of the 2 rows"));
    // Infinity is not missing: it is wrong.
    let (_folder, path) = file("x.csv", b"vector_0,vector_1\n1,inf\n");
    assert!(refusal(&path, &skipping(&[])).contains("expected a finite number"));
}

#[test]
fn what_is_no_file_of_vectors_is_named() {
    let model = b"\x20\0\0\0\0\0\0\0{\"__metadata__\":{}}";
    let (_folder, path) = file("m.safetensors", model);
    assert!(refusal(&path, &options(&[], &[])).contains("it is a model"));
    let (_folder, path) = file("x.csv", b"\x89PNG\r\n\x1a\n0000");
    assert!(refusal(&path, &options(&[], &[])).contains("it is an image"));
}
