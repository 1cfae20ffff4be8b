//! What the command pushed, Python searches, and what Python wrote, the command searches: one record. Needs an
//! interpreter with the package `metra`, psycopg and numpy, named by `METRA_PYTHON`.

use crate::server::Server;
use crate::tables::{answered, drawn, load, parquet, save, shuffled_ids, text};
use metra::model::{Chain, LowRank, Map, Space};
use std::process::Command;

const SCRIPT: &str = r#"
import sys, json
import metra, numpy as np, psycopg
from metra.stores import pgvector
url, path, items, queries = sys.argv[1:5]
model = metra.Model.load(path)
read = lambda name: np.load(name)
with psycopg.connect(url.split("?")[0]) as connection:
    pushed = pgvector.open(model, connection, "docs", vector_column="pushed")
    found, scores = pushed.search(read(queries), k=5, exact=True)
    pgvector.open(model, connection, "written").write(np.arange(len(read(items))), read(items))
print(json.dumps([found.tolist(), scores.tolist()]))
"#;

#[test]
#[ignore = "slow: starts PostgreSQL and Python"]
fn python_and_the_command_read_each_other() {
    let what = "an interpreter with metra, psycopg and numpy";
    let Some(python) = metra_testing::variable("METRA_PYTHON", what) else {
        return;
    };
    let Some(server) = Server::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let map = LowRank::new(drawn("map", 3, 8, 0.0), Some(vec![1.0, 2.0, 3.0])).unwrap();
    let chain = Chain::new(8, vec![], Map::LowRank(map), Space::SquaredL2).unwrap();
    let (_, model) = save(folder.path(), "model", chain);
    let (items, queries) = (drawn("items", 300, 8, 1.0), drawn("queries", 4, 8, 1.0));
    let ids = shuffled_ids(300);
    load(&server, "docs", items.rows(), &ids, 0);
    let (model, url) = (text(&model), server.url());
    answered(&[
        "push",
        model,
        &url,
        "--table",
        "docs",
        "--from",
        "embedding",
        "--to",
        "pushed",
    ]);
    let npy = |name: &str, rows: &metra::linalg::RowBuf| {
        let path = folder.path().join(name);
        let mut writer = metra_files::NpyWriter::create(&path, rows.len() as u64, 8).unwrap();
        writer.push(rows.rows()).unwrap();
        writer.finish().unwrap();
        path
    };
    let (item_file, query_file) = (npy("items.npy", &items), npy("queries.npy", &queries));
    let ran = Command::new(python)
        .args([
            "-c",
            SCRIPT,
            &url,
            model,
            text(&item_file),
            text(&query_file),
        ])
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let theirs: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let asked = folder.path().join("queries.parquet");
    parquet(&asked, queries.rows(), &[0, 1, 2, 3]);
    let search = |table: &str, column: &str| {
        answered(&[
            "search",
            model,
            &url,
            "--table",
            table,
            "--table-vector",
            column,
            "--query",
            text(&asked),
            "-k",
            "5",
            "--exact",
        ])
    };
    let (pushed, written) = (search("docs", "pushed"), search("written", "embedding"));
    for query in 0..4 {
        for rank in 0..5 {
            let hit = &pushed[query]["items"][rank];
            let id: i64 = hit["item"].as_str().unwrap().parse().unwrap();
            assert_eq!(theirs[0][query][rank], id);
            let difference =
                theirs[1][query][rank].as_f64().unwrap() - hit["dissimilarity"].as_f64().unwrap();
            assert!(difference.abs() < 1e-4, "{difference}");
            let row: usize = written[query]["items"][rank]["item"]
                .as_str()
                .unwrap()
                .parse()
                .unwrap();
            assert_eq!(ids[row], id);
        }
    }
    // A repeated push from the command's side adds nothing to what Python wrote.
    let again = [
        "push",
        model,
        &url,
        "--table",
        "docs",
        "--from",
        "embedding",
        "--to",
        "pushed",
    ];
    assert_eq!(answered(&again)["written"], 0);
}
