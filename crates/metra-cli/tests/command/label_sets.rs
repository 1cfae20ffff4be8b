//! Several labels per row, as users give them.

use super::folder::{Folder, QUICK, SET, number, rows, texts};
use metra_files::Column;
use std::fmt::Write;

const ROWS: usize = 240;

/// Rows with two labels, their class and one that two classes share, in every form that is read.
fn tagged(folder: &Folder) {
    let (rows, classes) = rows(SET, ROWS);
    let pair = |row: usize| format!("pair{}", classes[row] / 2);
    let columns = [
        ("class", Column::Integers(classes.clone())),
        ("pair", texts(ROWS, pair)),
        (
            "text",
            texts(ROWS, |row| format!("{} | {}", classes[row], pair(row))),
        ),
    ];
    folder.write_parquet("x.parquet", &rows, &columns);
    let mut lines = String::new();
    for (row, vector) in rows.rows().iter().enumerate() {
        let (class, pair) = (classes[row], pair(row));
        writeln!(
            lines,
            r#"{{"vector": {vector:?}, "tags": ["{class}", "{pair}"]}}"#
        )
        .unwrap();
    }
    folder.write("x.jsonl", &lines);
}

#[test]
fn every_form_of_several_labels_teaches_the_same() {
    let folder = Folder::new();
    tagged(&folder);
    let train = |data: &str, name: &str| {
        let line = format!(
            "train {data} --method warca --rank 4 --seed 1 --validation 0 --test 0.3 -o {name}"
        );
        folder.good(&line, &QUICK)
    };
    let (out, _) = train("x.jsonl --label tags", "list.model");
    assert!(
        out.contains("2.0 labels per row of 240 rows, 18 labels in all"),
        "{out}"
    );
    assert!(
        out.contains("rows: 168 train, 0 validation, 72 test"),
        "{out}"
    );
    train("x.parquet --label text --label-separator |", "text.model");
    assert!(folder.bytes("list.model") == folder.bytes("text.model"));
    let (out, _) = train("x.parquet --label class,pair", "columns.model");
    assert!(
        out.contains("2.0 labels per row of 240 rows, 18 labels in all"),
        "{out}"
    );
    let share = "x.jsonl --label tags --label-grade share";
    train(share, "share.model");
    assert!(folder.bytes("list.model") != folder.bytes("share.model"));
}

#[test]
fn rows_are_judged_by_the_labels_that_they_share() {
    let folder = Folder::new();
    tagged(&folder);
    let judged = |label: &str| {
        folder.json(
            &format!("eval euclid {label} --measures map,ndcg@10,r@100"),
            &[],
        )
    };
    // A row that shares its pair is found like one that shares its class, too.
    let (both, pair) = (
        judged("x.jsonl --label tags"),
        judged("x.parquet --label pair"),
    );
    assert_eq!(both["measures"]["map"], pair["measures"]["map"]);
    assert_eq!(both["queries"], 240);
    // By grades an answer of the same class counts twice.
    assert!(both["measures"]["ndcg@10"] != pair["measures"]["ndcg@10"]);

    let learn = "train x.jsonl --label tags --method warca --rank 4 --holdout none -o m.model";
    folder.good(learn, &["--set", "steps=200"]);
    let gate = "gate --base euclid --candidate m.model --data x.jsonl --label tags --json";
    let output = folder.run(gate, &[]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(number(&report, "/gain/low") > 0.0, "{report:#}");
    // It has learned from these rows.
    assert_eq!(output.status.code(), Some(8), "{report:#}");
    let found = folder.json("check x.jsonl --label tags", &[]);
    assert_eq!(
        found["labels"],
        "2.0 labels per row of 240 rows, 18 labels in all"
    );
    let cross = "--holdout rows --folds 3 --method warca --rank 4 --set steps=20";
    let found = folder.json(&format!("train x.jsonl --label tags {cross}"), &[]);
    assert_eq!(
        number(&found, "/pooled/measures/0/queries"),
        240.0,
        "{found:#}"
    );
}

#[test]
fn what_needs_one_label_says_so() {
    let folder = Folder::new();
    tagged(&folder);
    let refused = |line: &str| folder.refused(line, &[]);
    let message = refused("train x.jsonl --label tags --method lda -o m.model");
    assert!(
        message.contains("class labels") && message.contains("2.0 labels per row"),
        "{message}"
    );
    let message = refused("train x.jsonl --label tags --holdout identities -o m.model");
    assert!(
        message.contains("rows or none with several labels per row"),
        "{message}"
    );
    let message = refused("eval euclid x.jsonl --label tags --protocol single-shot");
    assert!(
        message.contains("leave-one-out or against-training"),
        "{message}"
    );
    folder.good(
        "train x.jsonl --label tags --rank 4 --holdout none -o m.model",
        &QUICK,
    );
    folder.write("tree.tsv", "0\troot\n");
    for (line, expected) in [
        (
            "calibrate m.model x.jsonl --label tags -o c.model",
            "one is needed here",
        ),
        (
            "index m.model x.jsonl --label tags -o x.index",
            "one is needed here",
        ),
        (
            "train x.jsonl --label tags --taxonomy tree.tsv -o m.model",
            "no other supervision beside them",
        ),
        (
            "train x.parquet --label class --label-grade share",
            "--label gives one",
        ),
        ("train x.parquet --label class,class", "different names"),
        ("check x.jsonl --label vector", "is the vector"),
    ] {
        let message = refused(line);
        assert!(message.contains(expected), "{line}: {message}");
    }
    folder.write(
        "mixed.jsonl",
        "{\"vector\": [1, 2], \"tags\": [\"a\"]}\n{\"vector\": [1, 3], \"tags\": \"a\"}\n",
    );
    let message = refused("train mixed.jsonl --label tags -o m.model");
    assert!(
        message.contains("a list, as in the rows before") && message.contains("line 2"),
        "{message}"
    );
    folder.write(
        "half.jsonl",
        "{\"vector\": [1, 2], \"tags\": [\"a\"]}\n{\"vector\": [1, 3], \"tags\": [null]}\n",
    );
    let message = refused("train half.jsonl --label tags -o m.model");
    assert!(
        message.contains("[null]") && message.contains("line 2"),
        "{message}"
    );
    assert_eq!(
        folder.names(),
        [
            "half.jsonl",
            "m.model",
            "mixed.jsonl",
            "tree.tsv",
            "x.jsonl",
            "x.parquet"
        ]
    );
}
