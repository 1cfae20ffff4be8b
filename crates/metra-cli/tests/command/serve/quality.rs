//! What /metrics says of judged queries and of queries that are no longer what they were.

use super::{Folder, Server, prepared, refusal_of, vectors};
use crate::{SET, rows};
use metra::linalg::RowBuf;
use serde_json::json;
use std::collections::HashMap;

/// The value of a gauge, once it is shown.
fn gauge(server: &Server, name: &str) -> f64 {
    let mut found = None;
    server.until(name, |server| {
        let text = server.get("/metrics").text();
        let line = (text.lines()).find(|line| line.starts_with(&format!("metra_{name}{{")));
        found = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn judged_queries_are_ranked_as_by_search() {
    let folder = Folder::new();
    prepared(&folder);
    let line = "search m.safetensors idx --query items.parquet --id id --label label -k 10";
    let answers = folder.json(line, &[]);
    let answers = answers.as_array().unwrap();
    let labels: Vec<String> = (rows(SET, 300).1.iter())
        .map(|class| format!("class-{class}"))
        .collect();
    let mut sizes: HashMap<&str, usize> = HashMap::new();
    for label in &labels {
        *sizes.entry(label).or_default() += 1;
    }
    // Of those that ten answers could hold, the share that they held.
    let recall: f64 = (answers.iter().zip(&labels))
        .map(|(answer, label)| {
            let items = answer["items"].as_array().unwrap().iter();
            let held = items.filter(|item| item["label"] == label.as_str()).count();
            held as f64 / sizes[label.as_str()].min(10) as f64
        })
        .sum::<f64>()
        / labels.len() as f64;
    assert!((0.2..0.99).contains(&recall), "{recall}");
    let canary = "m.safetensors --index idx --canary items.parquet --canary-label label";
    let server = Server::start(&folder, canary);
    assert!((gauge(&server, "canary_recall") - recall).abs() < 1e-9);
    assert_eq!(gauge(&server, "canary_agreement"), 1.0);
    assert_eq!(gauge(&server, "canary_queries"), 300.0);
}

#[test]
fn judgements_name_items_of_the_index() {
    let folder = Folder::new();
    prepared(&folder);
    // Every item finds itself first; of the second query, one of two relevant items is not in the index.
    folder.write(
        "judged.qrels",
        "item-0 0 item-0 1\nitem-1 0 item-1 1\nitem-1 0 absent 1\nitem-2 0 item-9 0\n",
    );
    folder.write(
        "models.toml",
        "[[model]]\nname = \"m\"\nfile = \"m.safetensors\"\nindex = \"idx\"\n\
         canary = { queries = { file = \"items.parquet\" }, id = \"id\", qrels = \"judged.qrels\", k = 5 }\n",
    );
    let server = Server::start(&folder, "--models models.toml");
    assert_eq!(gauge(&server, "canary_queries"), 2.0);
    assert_eq!(gauge(&server, "canary_recall"), 0.75);
    for (line, message) in [
        (
            "--canary items.parquet",
            "either by a label, or by an id and qrels",
        ),
        (
            "--canary items.parquet --canary-label id",
            "a relevant item in the index",
        ),
        (
            "--canary items.parquet --canary-label label --canary-k 0",
            "at least 1",
        ),
        (
            "--canary absent.parquet --canary-label label",
            "absent.parquet",
        ),
        (
            "--reference queries.parquet",
            "at least 100 queries, but found 20",
        ),
        ("--reference items.parquet --vector absent", "absent"),
    ] {
        let serve = format!("serve m.safetensors --index idx --bind 127.0.0.1:0 {line}");
        let refused = refusal_of(&folder, &serve);
        assert!(refused.contains(message), "{line}: {refused}");
    }
}

#[test]
fn other_queries_than_those_of_the_reference_are_noticed() {
    let folder = Folder::new();
    prepared(&folder);
    let server = Server::start(
        &folder,
        "m.safetensors --index idx --reference items.parquet",
    );
    let items = folder.read("items.parquet");
    let ask = |path: &str, factor: f32| {
        for row in 0..60 {
            let values = items.row(row).iter().map(|value| value * factor).collect();
            let query = RowBuf::from_values(values, items.dim()).unwrap();
            server.good(path, &json!({ "vectors": vectors(&query) }));
        }
    };
    ask("/v1/search", 1.0);
    ask("/v1/map", 1.0);
    assert_eq!(gauge(&server, "drift_rows"), 120.0);
    assert!(gauge(&server, "drift_share_outside") < 0.05);
    assert!((gauge(&server, "drift_norm_ratio") - 1.0).abs() < 0.1);
    assert!(gauge(&server, "drift_mean_shift") < 0.5);
    // Vectors of items are not what the reference is about.
    let far: Vec<f32> = items.row(0).iter().map(|value| value * 50.0).collect();
    server.good("/v1/map", &json!({ "side": "item", "vectors": [far] }));
    assert_eq!(gauge(&server, "drift_rows"), 120.0);
    ask("/v1/map", 10.0);
    assert!(gauge(&server, "drift_share_outside") > 0.25);
    assert!(gauge(&server, "drift_norm_ratio") > 2.0);
}
