//! CSV and TSV: which columns are the vector, and errors that name line and column.

use crate::{options, read, refusal, texts, values};
use metra_files::{ElementType, Place, TableOptions};
use std::path::PathBuf;
use tempfile::TempDir;

fn file(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn with_vector(vector: &str, columns: &[&str]) -> TableOptions {
    TableOptions {
        vector: Some(vector.into()),
        ..options(columns, &[])
    }
}

#[test]
fn numbered_columns_are_the_vector_in_their_order() {
    let text = "\u{feff}id,vector_1,label,vector_0\n007,2, cat ,1\n8,4.5e0,\"a,\nb\",3\n9,6,x,5\n";
    let (_folder, path) = file(text);
    let table = read(&path, &options(&["id", "label"], &[])).unwrap();
    assert_eq!(values(&*table.corpus), [1.0, 2.0, 3.0, 4.5, 5.0, 6.0]);
    assert_eq!(table.element_type, ElementType::Text);
    assert_eq!(texts(&table, "id"), ["007", "8", "9"]);
    assert_eq!(texts(&table, "label"), ["cat", "a,\nb", "x"]);
    // The quoted field goes over two lines.
    assert_eq!(table.rows, Some(vec![2, 3, 5]));
    assert_eq!(table.place(2), Place::Line(5));
    assert!(table.narrowing.is_none());
    let kept = read(&path, &options(&["id"], &["label!=cat", "id=9"])).unwrap();
    assert_eq!(
        (values(&*kept.corpus), kept.rows),
        (vec![5.0, 6.0], Some(vec![5]))
    );
}

#[test]
fn a_prefix_or_all_others_can_be_asked_for() {
    let (_folder, path) = file("x,v0,v1,v10x\n1,2,3,4\n5,6,8,9\n");
    assert_eq!(
        values(&*read(&path, &with_vector("v", &[])).unwrap().corpus),
        [2.0, 3.0, 6.0, 8.0]
    );
    let all = read(&path, &with_vector("*", &["x"])).unwrap();
    assert_eq!(values(&*all.corpus), [2.0, 3.0, 4.0, 6.0, 8.0, 9.0]);
    assert_eq!(
        refusal(&path, &TableOptions::default()),
        "t.csv: expected a column \"vector\" of lists, or columns vector_0, vector_1, … of numbers, but \
         the columns are \"x\", \"v0\", \"v1\", \"v10x\"; name that of the vectors (--vector)"
    );
    let (_folder, path) = file("v0,v2\n1,2\n");
    assert!(refusal(&path, &with_vector("v", &[])).contains("\"v0\" is followed by \"v2\""));
    let (_folder, path) = file("v0,v_0\n1,2\n");
    assert!(refusal(&path, &with_vector("v", &[])).contains("every number of the vector once"));
}

#[test]
fn tabs_separate_in_tsv() {
    let (folder, path) = file("v0\tlabel\n1\ta b\n2\tc\n");
    let tsv = folder.path().join("t.tsv");
    std::fs::rename(path, &tsv).unwrap();
    let table = read(&tsv, &with_vector("v", &["label"])).unwrap();
    assert_eq!(texts(&table, "label"), ["a b", "c"]);
}

#[test]
fn bad_cells_name_line_and_column() {
    for (text, expected) in [
        (
            "v0,v1\n1,2\n3,x\n",
            "t.csv: line 3, column v1: expected a number, but found \"x\"",
        ),
        (
            "v0,v1\n1,\n",
            "t.csv: line 2, column v1: expected a value, but it is missing (an empty field, NaN or null); rows with missing values can be left out (--missing skip)",
        ),
        (
            "v0,v1\n1,NaN\n",
            "t.csv: line 2, column v1: expected a value, but it is missing (an empty field, NaN or null); rows with missing values can be left out (--missing skip)",
        ),
        (
            "v0,v1\n1,1e999\n",
            "t.csv: line 2, column v1: expected a finite number, but found inf",
        ),
        (
            "v0,v1\n1,2\n1\n",
            "t.csv: line 3: expected 2 fields as in the header, but found 1",
        ),
        (
            "v0,v1\n",
            "t.csv: expected rows, but the file has none below its head",
        ),
    ] {
        let (_folder, path) = file(text);
        assert_eq!(refusal(&path, &with_vector("v", &[])), expected);
    }
    let (_folder, path) = file("v0\n1\n1e200\n");
    let message = refusal(&path, &with_vector("v", &[]));
    assert!(
        message.starts_with("t.csv: line 3, column v0: expected a value within"),
        "{message}"
    );
    let (_folder, path) = file("v0,label\n1,a\n2,\n");
    assert!(refusal(&path, &with_vector("v", &["label"])).contains("line 3, column label"));
    let (_folder, path) = file("");
    std::fs::write(&path, b"v0\n1\n\xff\n").unwrap();
    assert!(refusal(&path, &with_vector("v", &[])).contains("line 3: expected UTF-8"));
}

#[test]
fn an_offset_is_shifted() {
    let (_folder, path) = file("v0,v1\n100000000,0\n100000001,1\n100000002,0\n");
    let table = read(&path, &with_vector("v", &[])).unwrap();
    assert_eq!(values(&*table.corpus), [-1.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
    assert_eq!(table.narrowing.unwrap().shift, [1e8 + 1.0, 0.0]);
}

#[test]
fn progress_counts_both_passes() {
    let (_folder, path) = file("v0\n1\n2\n");
    let mut seen = Vec::new();
    let mut progress = |done, total| seen.push((done, total));
    metra_files::read_table(&path, &with_vector("v", &[]), &mut progress).unwrap();
    assert_eq!(seen, [(2, None), (4, None)]);
}
