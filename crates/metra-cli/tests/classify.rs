//! `--classifier` of train and eval: the real binary, judged by classes found.

use metra::data::synthetic::Nuisance;
use metra_files::{Column, ParquetVectorWriter};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};

fn metra(folder: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_metra"))
        .current_dir(folder)
        .args(line.split_whitespace())
        .output()
        .unwrap()
}

fn report(folder: &Path, line: &str) -> Value {
    let output = metra(folder, &format!("{line} --json"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// 300 rows of 6 classes in 4 coordinates with 36 loud ones, and one split by row.
fn folder() -> tempfile::TempDir {
    let set = Nuisance {
        classes: 6,
        signal: 4,
        noise: 36,
        seed: 2,
    }
    .rows(300);
    let place = tempfile::tempdir().unwrap();
    let labels = Column::Integers(set.classes.clone());
    let path = place.path().join("set.parquet");
    let mut writer =
        ParquetVectorWriter::create(&path, "vector", 40, &[("label", &labels)]).unwrap();
    writer.push(set.corpus.rows()).unwrap();
    writer.finish().unwrap();
    let train: Vec<u64> = (0..180).collect();
    let test: Vec<u64> = (180..300).collect();
    let splits = json!({"by": "row", "splits": [{"train": train, "test": test}]});
    std::fs::write(place.path().join("splits.json"), splits.to_string()).unwrap();
    place
}

#[test]
fn classes_are_found_by_gaussians_and_by_neighbours() {
    let place = folder();
    let folder = place.path();
    let line = "train set.parquet --label label --method lda --rank 4 --set ridge=0.1 \
                --splits splits.json --split 0 -o m.safetensors";
    for classifier in ["gaussian", "gaussian:0.5", "knn:5"] {
        let found = report(folder, &format!("{line} --classifier {classifier}"));
        assert_eq!(found["protocol"], format!("classify ({classifier})"));
        let row = &found["splits"][0]["measures"][0];
        assert_eq!(row["measure"], "accuracy");
        let (base, learned) = (
            row["base"].as_f64().unwrap(),
            row["learned"].as_f64().unwrap(),
        );
        assert!(learned > 0.8, "{classifier}: {row}");
        // 30 rows a class make no covariance of dimension 40, so that the plain base is 5-NN; half
        // pooled there is one, and with it the base needs no map on this set.
        let same_base = classifier == "gaussian:0.5";
        assert!(same_base || learned > base + 0.1, "{classifier}: {row}");
        let line = "eval m.safetensors set.parquet --label label --splits splits.json";
        let again = report(folder, &format!("{line} --classifier {classifier}"));
        // Train judged what had learned from validation rows too, on the same references.
        assert_eq!(
            again["measures"]["accuracy"].as_f64().unwrap(),
            learned,
            "{classifier}"
        );
    }
}

#[test]
fn unseen_classes_are_found_by_their_orderings() {
    let place = tempfile::tempdir().unwrap();
    // Five classes that differ in size and age, beside a number that says nothing.
    let levels = [
        ("a", 0, 2),
        ("b", 1, 0),
        ("c", 2, 4),
        ("d", 3, 1),
        ("e", 4, 3),
    ];
    let mut table = "class,v0,v1,v2\n".to_owned();
    for row in 0..300 {
        let (class, size, age) = levels[row % 5];
        let noise = |step: usize| 0.4 * ((row * step) as f64).sin();
        let (x, y) = (f64::from(size) + noise(7), f64::from(age) + noise(11));
        table += &format!("{class},{x},{y},{}\n", 3.0 * noise(13));
    }
    std::fs::write(place.path().join("t.csv"), table).unwrap();
    let orderings = "size: a<b<c<d<e\nage: b<d<a<e<c\n";
    std::fs::write(place.path().join("o.txt"), orderings).unwrap();
    let line = "train t.csv --vector v --label class --orderings o.txt --method rank-svm --holdout rows \
                --classifier zero-shot:0.5 --draws 3";
    let found = report(place.path(), &format!("{line} --unseen-classes 1"));
    for split in found["splits"].as_array().unwrap() {
        let part = |name: &str| {
            let row = &split[name][0];
            [&row["base"], &row["learned"]].map(|value| value.as_f64().unwrap())
        };
        // Neighbours never vote for a class without rows.
        let ([base, unseen], [_, seen]) = (part("unseen_items"), part("seen_items"));
        assert!(base == 0.0 && unseen > 0.7 && seen > 0.7, "{split}");
    }
    // Without unseen classes it is a Gaussian a class, and nothing is reported apart.
    let found = report(place.path(), line);
    assert!(found["splits"][0].get("unseen_items").is_none());
    for (more, words) in [
        ("--unseen-classes 4", "at most 3"),
        (
            "--method lda --rank 1 --unseen-classes 1",
            "one an attribute",
        ),
    ] {
        let line = match more.contains("--method") {
            true => line.replace("--method rank-svm", more),
            false => format!("{line} {more}"),
        };
        let output = metra(place.path(), &line);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(words), "{error}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let place = folder();
    let refused = |line: &str| {
        let output = metra(place.path(), line);
        assert!(!output.status.success(), "{line}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let train = "train set.parquet --label label --method lda --rank 4";
    let error = refused(&format!("{train} --classifier svm"));
    assert!(
        error.contains("gaussian, zero-shot, either with :SHARE"),
        "{error}"
    );
    let error = refused(&format!("{train} --measures accuracy"));
    assert!(
        error.contains("accuracy is measured with a classifier"),
        "{error}"
    );
    let error = refused("eval euclid set.parquet --label label --protocol classify");
    assert!(error.contains("--splits"), "{error}");
    let wide = "train set.parquet --label label --method pca --rank 40 --splits splits.json";
    let error = refused(&format!("{wide} --classifier gaussian"));
    assert!(error.contains("its covariance is singular"), "{error}");
}
