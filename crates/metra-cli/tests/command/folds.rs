//! Cross-testing by the command.

use crate::folder::{Folder, QUICK, SET, number, rows, texts};
use metra::data::synthetic::Nuisance;
use metra_files::Column;
use std::fmt::Write;

#[test]
fn every_row_is_tested_once() {
    let folder = Folder::new();
    let (rows, classes) = rows(SET, 242);
    folder.write_parquet("x.parquet", &rows, &[("label", Column::Integers(classes))]);
    let line = "train x.parquet --label label --method lda --rank 6 --base euclid";
    let run = |threads: &str| folder.json(line, &["--folds", "4", "--threads", threads]);
    let report = run("1");
    assert_eq!(report, run("2"));
    let folds = report["splits"].as_array().unwrap();
    let sizes: Vec<u64> = folds.iter().map(|f| f["test"].as_u64().unwrap()).collect();
    assert_eq!(sizes, [61, 61, 60, 60]);
    for fold in folds {
        let of = |name: &str| fold[name].as_u64().unwrap();
        assert_eq!(of("train") + of("validation") + of("test"), 242);
        assert!(of("validation") > 20);
    }
    let pooled = &report["pooled"]["measures"][0];
    assert_eq!(
        (&pooled["measure"], &pooled["queries"]),
        (&"map".into(), &242.into())
    );
    // The pooled mean is that over queries.
    let mean = |name: &str| -> f64 {
        let sum = |fold: &serde_json::Value| {
            let queries = number(fold, "/measures/0/queries");
            queries * number(fold, &format!("/measures/0/{name}"))
        };
        folds.iter().map(sum).sum::<f64>() / 242.0
    };
    for name in ["base", "learned"] {
        assert!((pooled[name].as_f64().unwrap() - mean(name)).abs() < 1e-12);
    }
    assert_eq!(report["summary"][0]["splits"], 4);
    let (out, _) = folder.good(line, &["--folds", "4"]);
    for part in [
        "fold 4 of 4",
        "over 4 folds",
        "pooled         euclid",
        "(242 queries of 12",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }

    let whole = folder.json(line, &["--folds", "3", "--holdout", "identities"]);
    assert_eq!(whole["splits"][0]["test"], 81);
    assert_eq!(whole["pooled"]["measures"][0]["queries"], 242);

    let message = folder.refused(line, &["--folds", "13", "--holdout", "identities"]);
    assert!(
        message.contains("folds must be between 2 and 12 (the identities there are), but is 13"),
        "{message}"
    );
    let message = folder.refused(line, &["--folds", "4", "-o", "m.model"]);
    assert!(message.contains("-o saves one model"), "{message}");
    let message = folder.refused(line, &["--folds", "4", "--holdout", "none"]);
    assert!(message.contains("nothing is held out"), "{message}");
    for other in [["--draws", "2"], ["--splits", "s.json"], ["--test", "0.3"]] {
        let output = folder.run(line, &[&["--folds", "4"], &other[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{other:?}");
    }
}

#[test]
fn every_judged_query_is_tested_once() {
    let folder = Folder::new();
    let (all, classes) = rows(Nuisance { classes: 20, ..SET }, 200);
    let id = |kind: &'static str| vec![("id", texts(200, move |row| format!("{kind}{row}")))];
    folder.write_parquet("q.parquet", &all, &id("q"));
    folder.write_parquet("d.parquet", &all, &id("d"));
    // Queries from 100 on are not judged; each of the others has a relevant item of its own, and
    // those of the first ten classes share one.
    let mut qrels = String::new();
    for (query, class) in classes.iter().enumerate().take(100) {
        writeln!(qrels, "q{query} 0 d{} 2", query + 20).unwrap();
        if *class < 10 {
            writeln!(qrels, "q{query} 0 d{class} 1").unwrap();
        }
    }
    folder.write("qrels.txt", &qrels);
    let line = "train --queries q.parquet --items d.parquet --qrels qrels.txt --id id --rank 6";
    let report = folder.json(line, &[&QUICK[..], &["--folds", "5"]].concat());
    let pooled = &report["pooled"];
    assert_eq!(pooled["measures"][0]["measure"], "ndcg@10");
    assert_eq!(pooled["measures"][0]["queries"], 100);
    let parts = ["seen_items", "unseen_items"].map(|part| &pooled[part][0]["queries"]);
    let parts = parts.map(|count| count.as_u64().unwrap());
    assert_eq!(parts[0] + parts[1], 100);
    let sum = |part: &str| -> u64 {
        let folds = report["splits"].as_array().unwrap().iter();
        folds
            .filter_map(|fold| fold[part][0]["queries"].as_u64())
            .sum()
    };
    assert_eq!(parts, ["seen_items", "unseen_items"].map(sum));
    let items = folder.json(
        line,
        &[&QUICK[..], &["--folds", "5", "--holdout", "items"]].concat(),
    );
    assert!(items["pooled"]["seen_items"].is_null(), "{items:#}");
    let of = |name: &str| items["splits"][0][name].as_u64().unwrap();
    assert!(of("test") == 20 && of("train") + of("validation") < 80);
}
