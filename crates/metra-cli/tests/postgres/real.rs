//! Real data: rankings by pgvector, written as TREC runs, measure the same as `metra eval` does on the model.

use crate::server::Server;
use crate::tables::{answered, load, output, text};
use metra::linalg::RowBuf;
use metra_files::{Column, Filter, ParquetVectorWriter, TableOptions, read_table};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Vectors with a column of whole numbers.
fn read(path: &Path, column: &str, filter: Option<&str>) -> (RowBuf, Vec<i64>) {
    let options = TableOptions {
        vector: Some("vector".into()),
        columns: vec![column.into()],
        filters: filter
            .map(|text| text.parse::<Filter>().unwrap())
            .into_iter()
            .collect(),
        narrowing: metra_files::NarrowingRule::None,
        ..TableOptions::default()
    };
    let table = read_table(path, &options, &mut |_, _| {}).unwrap();
    let mut rows = RowBuf::empty(table.corpus.dim());
    let all = 0..table.corpus.len();
    let mut take = |_, block: metra::linalg::Rows<'_>| {
        rows.extend(block);
        Ok(())
    };
    table.corpus.scan(all, &mut take).unwrap();
    match table.column(column).unwrap() {
        Column::Integers(values) => (rows, values.clone()),
        _ => panic!("{column} holds texts"),
    }
}

fn measure(report: &Value, name: &str) -> f64 {
    report["measures"][name]
        .as_f64()
        .unwrap_or_else(|| panic!("{report}"))
}

#[test]
#[ignore = "slow: needs METRA_DATA, starts PostgreSQL"]
fn scifact_by_queries_alone() {
    let (Some(data), Some(server)) = (metra_testing::data().map(PathBuf::from), Server::start())
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let docs = data.join("scifact_minilm_docs.parquet");
    let (queries, qrels) = (
        data.join("scifact_minilm_queries.parquet"),
        data.join("scifact_qrels.tsv"),
    );
    let splits = data.join("scifact_minilm.splits.json");
    let (vectors, ids) = read(&docs, "label", None);
    load(&server, "docs", vectors.rows(), &ids, 0);
    let model = folder.path().join("model.safetensors");
    let (model, url) = (text(&model), server.url());
    let judged = [
        "--queries",
        text(&queries),
        "--items",
        text(&docs),
        "--qrels",
        text(&qrels),
        "--id",
        "label",
    ];
    let train = [
        &["train"],
        &judged[..],
        &[
            "--splits",
            text(&splits),
            "--split",
            "0",
            "--rank",
            "384",
            "--set",
            "centre=false",
            "--set",
            "rate=0.001",
            "--set",
            "steps=100",
            "--score",
            "dot",
            "-o",
            model,
        ],
    ];
    let trained = output(&train.concat());
    assert!(
        trained.status.success(),
        "{}",
        String::from_utf8_lossy(&trained.stderr)
    );
    let test = ["--where-queries", "split=test", "--measures", "ndcg@10"];
    let own = answered(&[&["eval", model], &judged[..], &test].concat());
    let pushed = answered(&[
        "push",
        model,
        &url,
        "--table",
        "docs",
        "--from",
        "embedding",
        "--keep-items",
    ]);
    assert_eq!(
        (&pushed["record"]["way"], &pushed["written"]),
        (&"query-only".into(), &0.into())
    );
    let run = folder.path().join("run.trec");
    let searched = output(&[
        "search",
        model,
        &url,
        "--table",
        "docs",
        "--query",
        text(&queries),
        "--where-queries",
        "split=test",
        "--id",
        "label",
        "-k",
        "100",
        "--exact",
        "--run",
        text(&run),
    ]);
    assert!(
        searched.status.success(),
        "{}",
        String::from_utf8_lossy(&searched.stderr)
    );
    let served = answered(&[
        "eval",
        "--run",
        text(&run),
        "--qrels",
        text(&qrels),
        "--measures",
        "ndcg@10",
    ]);
    let (own, served) = (measure(&own, "ndcg@10"), measure(&served, "ndcg@10"));
    eprintln!("SciFact by query-only, nDCG@10: metra eval {own:.6}, pgvector {served:.6}");
    assert!((own - served).abs() < 1e-4, "{own} {served}");
}

#[test]
#[ignore = "slow: needs METRA_DATA, starts PostgreSQL"]
fn clinc_by_an_extra_coordinate_and_rescaled() {
    let (Some(data), Some(server)) = (metra_testing::data().map(PathBuf::from), Server::start())
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let source = data.join("clinc150_minilm.parquet");
    let (items, item_labels) = read(&source, "label", Some("split=train"));
    let (tests, test_labels) = read(&source, "label", Some("split=test"));
    // One query of every class against the whole training part: a full ranking of each.
    let (mut queries, mut query_labels) = (RowBuf::empty(items.dim()), Vec::new());
    let mut seen = BTreeSet::new();
    for (row, label) in test_labels.iter().enumerate() {
        if item_labels.contains(label) && seen.insert(*label) {
            queries.extend(tests.rows().slice(row, row + 1));
            query_labels.push(*label);
        }
    }
    let file = |name: &str, rows: &RowBuf, labels: &[i64]| {
        let path = folder.path().join(name);
        let ids = Column::Integers((0..rows.len() as i64).collect());
        let labels = Column::Integers(labels.to_vec());
        let columns = [("id", &ids), ("label", &labels)];
        let mut writer =
            ParquetVectorWriter::create(&path, "vector", rows.dim(), &columns).unwrap();
        writer.push(rows.rows()).unwrap();
        writer.finish().unwrap();
        path
    };
    let item_file = file("items.parquet", &items, &item_labels);
    let query_file = file("queries.parquet", &queries, &query_labels);
    let mut judged = String::new();
    for (query, label) in query_labels.iter().enumerate() {
        for (item, _) in item_labels
            .iter()
            .enumerate()
            .filter(|(_, other)| *other == label)
        {
            writeln!(judged, "{query} 0 {item} 1").unwrap();
        }
    }
    let qrels = folder.path().join("qrels.txt");
    std::fs::write(&qrels, judged).unwrap();
    load(
        &server,
        "docs",
        items.rows(),
        &(0..items.len() as i64).collect::<Vec<_>>(),
        0,
    );
    let url = server.url();
    let k = items.len().to_string();
    for (score, way, more) in [
        ("euclid", "extra-coordinate", &["--keep-input"][..]),
        ("cosine", "rescaled", &[]),
    ] {
        let model = folder.path().join(format!("{score}.safetensors"));
        let model = text(&model);
        let trained = output(&[
            "train",
            text(&item_file),
            "--label",
            "label",
            "--method",
            "lda",
            "--rank",
            "64",
            "--score",
            score,
            "--validation",
            "0",
            "--test",
            "0",
            "-o",
            model,
        ]);
        assert!(
            trained.status.success(),
            "{}",
            String::from_utf8_lossy(&trained.stderr)
        );
        let own = answered(&[
            "eval",
            model,
            "--queries",
            text(&query_file),
            "--items",
            text(&item_file),
            "--qrels",
            text(&qrels),
            "--id",
            "id",
            "--measures",
            "map",
        ]);
        let column = format!("by_{score}");
        let push = [
            "push",
            model,
            &url,
            "--table",
            "docs",
            "--from",
            "embedding",
            "--to",
            &column,
            "--way",
            way,
        ];
        let pushed = answered(&[&push[..], more].concat());
        assert_eq!(pushed["record"]["way"], way);
        let run = folder.path().join("run.trec");
        let searched = output(&[
            "search",
            model,
            &url,
            "--table",
            "docs",
            "--table-vector",
            &column,
            "--query",
            text(&query_file),
            "--id",
            "id",
            "-k",
            &k,
            "--exact",
            "--run",
            text(&run),
        ]);
        assert!(
            searched.status.success(),
            "{}",
            String::from_utf8_lossy(&searched.stderr)
        );
        let served = answered(&[
            "eval",
            "--run",
            text(&run),
            "--qrels",
            text(&qrels),
            "--measures",
            "map",
        ]);
        let (own, served) = (measure(&own, "map"), measure(&served, "map"));
        eprintln!(
            "CLINC150 by {way} ({score}), mAP of {} queries: metra eval {own:.6}, pgvector {served:.6}",
            queries.len()
        );
        assert!((own - served).abs() < 1e-4, "{own} {served}");
    }
}
