//! Rows that a model learned from are recognised by every verb that evaluates it.

use super::folder::{Folder, example, number, text, texts};
use metra_files::Column;
use std::fmt::Write;

const TRAIN: &str = "train data.parquet --label label --method lda --rank 4";

/// Ten splits by row: the rows of every tenth round through the classes are tested.
fn ten_splits(folder: &Folder) {
    let rows = |keep: &dyn Fn(usize) -> bool| {
        let rows = (0..720).filter(|row| keep(*row));
        let rows: Vec<String> = rows.map(|row| row.to_string()).collect();
        rows.join(",")
    };
    let split = |number: usize| {
        let is_test = |row: usize| (row / 12) % 10 == number;
        let (train, test) = (rows(&|row| !is_test(row)), rows(&is_test));
        format!("{{\"train\": [{train}], \"test\": [{test}]}}")
    };
    let splits: Vec<String> = (0..10).map(split).collect();
    let splits = splits.join(",\n");
    folder.write(
        "splits.json",
        &format!("{{\"by\": \"row\", \"splits\": [{splits}]}}"),
    );
}

#[test]
fn a_model_of_one_split_is_not_evaluated_on_the_others() {
    let folder = Folder::new();
    example(&folder);
    ten_splits(&folder);
    folder.good(
        &format!("{TRAIN} --splits splits.json --split 3 -o m.safetensors"),
        &[],
    );
    let eval = "eval m.safetensors data.parquet --label label";
    let error = folder.refused(&format!("{eval} --splits splits.json"), &[]);
    assert!(
        error.contains("72 of 72 evaluated rows were learned from"),
        "{error}"
    );
    assert!(
        error.contains("--split") && error.contains("--allow-seen"),
        "{error}"
    );
    let own = folder.json(&format!("{eval} --splits splits.json --split 3"), &[]);
    assert_eq!(number(&own, "/seen_rows/seen"), 0.0);
    assert_eq!(own["queries"], 72);
    let all = folder.json(&format!("{eval} --splits splits.json --allow-seen"), &[]);
    assert_eq!(number(&all, "/seen_rows/seen"), 648.0);
    assert!(
        folder
            .refused(&format!("{eval} --splits splits.json --split 10"), &[])
            .contains("below 10")
    );
    // Without a split all rows are evaluated, and the figure is marked.
    let (out, _) = folder.good(eval, &[]);
    assert!(
        out.contains(
            "WARNING     648 of 720 evaluated rows were learned from: this is not a held-out"
        ),
        "{out}"
    );
}

#[test]
fn a_gate_does_not_pass_a_model_on_its_training_rows() {
    let folder = Folder::new();
    example(&folder);
    folder.good(&format!("{TRAIN} --where train=true -o m.safetensors"), &[]);
    let gate = "gate --base euclid --candidate m.safetensors --data data.parquet --label label";
    for (rows, code) in [("train=true", 8), ("train=false", 0), ("split!=none", 8)] {
        let output = folder.run(&format!("{gate} --where {rows}"), &[]);
        let out = text(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{rows}: {out}");
        assert_eq!(out.contains("not a test"), code == 8, "{out}");
    }
    let found = folder.run(&format!("{gate} --where train=true --json"), &[]);
    let found: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(found["decision"], "trained on");
    // The model learned from all but its own test part.
    let seen = number(&found, "/seen_rows/seen");
    assert!((300.0..480.0).contains(&seen), "{seen}");
    let rows = number(&found, "/seen_rows/rows");
    assert_eq!(rows, 480.0);
}

#[test]
fn a_refit_is_recorded_and_folds_save_a_model() {
    let folder = Folder::new();
    example(&folder);
    let (out, _) = folder.good(&format!("{TRAIN} --refit -o m.safetensors"), &[]);
    assert!(!out.contains("not saved"), "{out}");
    let shown = folder.json("inspect m.safetensors", &[]);
    assert_eq!(shown["training_rows"], 720);
    assert_eq!(shown["origin"]["refit"], true);
    assert!(
        folder
            .good("inspect m.safetensors", &[])
            .0
            .contains("refit on")
    );
    let found = folder.json(
        "eval m.safetensors data.parquet --label label --where train=false",
        &[],
    );
    assert_eq!(number(&found, "/seen_rows/seen"), 240.0);

    let line = format!("{TRAIN} --folds 3 -o folds.safetensors");
    assert!(folder.refused(&line, &[]).contains("--refit"));
    let report = folder.json(&format!("{line} --refit"), &[]);
    let shown = folder.json("inspect folds.safetensors", &[]);
    assert_eq!(shown["training_rows"], 720);
    // What the model keeps is what all folds together said.
    let map = |report: &serde_json::Value| number(report, "/learned");
    let pooled = report["pooled"]["measures"].as_array().unwrap();
    let pooled = pooled.iter().find(|row| row["measure"] == "map").unwrap();
    let kept = &shown["origin"]["held_out"]["measures"]["map"];
    assert_eq!(map(kept), map(pooled));

    let (out, _) = folder.good(TRAIN, &[]);
    assert!(out.contains("not saved: name a file with -o"), "{out}");
    folder.good(
        &format!("{TRAIN} --no-row-digests -o private.safetensors"),
        &[],
    );
    let shown = folder.json("inspect private.safetensors", &[]);
    assert!(shown["training_rows"].is_null());
    let found = folder.json("eval private.safetensors data.parquet --label label", &[]);
    assert!(found["seen_rows"].is_null());
}

#[test]
fn a_gate_tells_new_items_apart() {
    let folder = Folder::new();
    let (rows, classes) = super::folder::rows(super::folder::SET, 400);
    let dim = rows.dim();
    let part = |from: usize, to: usize| {
        let values = rows.rows().values()[from * dim..to * dim].to_vec();
        metra::linalg::RowBuf::from_values(values, dim).unwrap()
    };
    let id = |prefix: &'static str| [("id", texts(200, move |row| format!("{prefix}{row}")))];
    folder.write_parquet("q.parquet", &part(0, 200), &id("q"));
    folder.write_parquet("d.parquet", &part(200, 400), &id("d"));
    // Queries of even classes are for training; a few others ask for the same items.
    let mut qrels = [String::new(), String::new()];
    for query in 0..200 {
        let relevant = (0..200).filter(|item| classes[200 + item] == classes[query]);
        for item in relevant.take(4) {
            let late = usize::from(classes[query] % 2 == 1 || (query / 12).is_multiple_of(2));
            writeln!(qrels[late], "q{query} 0 d{item} 1").unwrap();
        }
    }
    folder.write("early.qrels", &qrels[0]);
    folder.write("late.qrels", &qrels[1]);
    let files = "--queries q.parquet --items d.parquet --id id";
    folder.good(
        &format!(
            "train {files} --qrels early.qrels --holdout none --set lambda=0.01 -o m.safetensors"
        ),
        &[],
    );
    let line =
        format!("gate --base cosine --candidate m.safetensors {files} --qrels late.qrels --json");
    let output = folder.run(&line, &[]);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(number(&found, "/seen_rows/seen"), 0.0, "{found}");
    let slices = found["slices"].as_array().unwrap();
    let of = |value: &str| {
        let slice = slices
            .iter()
            .find(|slice| slice["by"] == "relevant items in training" && slice["value"] == value);
        slice.map_or(0, |slice| slice["queries"].as_u64().unwrap())
    };
    let judged = |query: usize| classes[query] % 2 == 1 || (query / 12).is_multiple_of(2);
    let new = (0..200)
        .filter(|query| judged(*query) && classes[*query] % 2 == 1)
        .count();
    let known = (0..200)
        .filter(|query| judged(*query) && classes[*query] % 2 == 0)
        .count();
    assert_eq!(
        (of("none"), of("some")),
        (new as u64, known as u64),
        "{found:#}"
    );
}

#[test]
fn labels_that_are_no_classes_are_questioned() {
    let folder = Folder::new();
    let (rows, _) = super::folder::rows(super::folder::SET, 60);
    folder.write_parquet(
        "x.parquet",
        &rows,
        &[("price", Column::Integers((0..60).collect()))],
    );
    let (_, error) = folder.good("check x.parquet --label price", &[]);
    assert!(error.contains("an id or a measured quantity?"), "{error}");
}
