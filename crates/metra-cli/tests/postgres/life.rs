//! The whole way on 100,000 vectors of dimension 384: killed five times and repeated, held against the library,
//! searched, swapped and rolled back, within its memory.

use crate::server::Server;
use crate::tables::{answered, client, load, made, output, parquet, save, shuffled_ids, text};
use metra::data::Batch;
use metra::internal::Stream;
use metra::linalg::RowBuf;
use metra::model::{Chain, LowRank, Map, Model, Space, Step};
use metra_stores::Provenance;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROWS: usize = 100_000;
const DIM: usize = 384;
const RANK: usize = 32;
/// Every so many rows have no vector.
const WITHOUT: usize = 1_000;
const KILLS: usize = 5;
const QUERIES: usize = 100;

fn model() -> Chain {
    let mut stream = Stream::new(3, "map", 0);
    let values = (0..RANK * DIM)
        .map(|_| stream.normal() as f32 / 8.0)
        .collect();
    let map = LowRank::new(RowBuf::from_values(values, DIM).unwrap(), None).unwrap();
    let centre = Step::Centre {
        mean: vec![0.1; DIM],
    };
    Chain::new(DIM, vec![centre], Map::LowRank(map), Space::SquaredL2).unwrap()
}

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_metra"));
    command
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Run to the end, watching the peak of memory.
fn watched(arguments: &[&str]) -> (Value, u64) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_metra"));
    let child = command
        .args(arguments)
        .arg("--json")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let watching = std::thread::spawn(move || {
        let mut peak = 0;
        while let Ok(text) = std::fs::read_to_string(&status) {
            let line = text.lines().find(|line| line.starts_with("VmHWM:"));
            let Some(line) = line else { break };
            let kilobytes = line.split_whitespace().nth(1).and_then(|n| n.parse().ok());
            peak = peak.max(kilobytes.unwrap_or(0));
            std::thread::sleep(Duration::from_millis(20));
        }
        peak
    });
    let done = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{error}");
    (
        serde_json::from_slice(&done.stdout).unwrap(),
        watching.join().unwrap(),
    )
}

#[test]
#[ignore = "slow: 100,000 vectors in PostgreSQL"]
fn a_model_lives_in_a_table() {
    let Some(server) = Server::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let items = made(ROWS, DIM);
    let ids = shuffled_ids(ROWS);
    let began = Instant::now();
    load(&server, "docs", items.rows(), &ids, WITHOUT);
    eprintln!("loaded in {:.1} s", began.elapsed().as_secs_f64());
    let (model, path) = save(folder.path(), "model", model());
    let (path, url) = (text(&path), server.url());
    let push = [
        "push",
        path,
        &url,
        "--table",
        "docs",
        "--from",
        "embedding",
        "--to",
        "embedding_v2",
    ];
    let mut client = client!(server);

    // Killed at five random points of the fill, each within a batch, not between two.
    let with = (ROWS - ROWS / WITHOUT) as i64;
    let mut stream = Stream::new(7, "kills", 0);
    let mut points: Vec<i64> = (0..KILLS)
        .map(|_| stream.below(with as u64) as i64)
        .collect();
    points.sort_unstable();
    let mut killed = 0;
    for point in &points {
        let mut child = start(&push);
        let began = Instant::now();
        loop {
            assert!(
                began.elapsed() < Duration::from_secs(120),
                "no progress to {point}"
            );
            let rows = client
                .query_opt("SELECT to_regclass('metra_models')::text", &[])
                .unwrap()
                .and_then(|row| row.get::<_, Option<String>>(0))
                .and_then(|_| {
                    client
                        .query_opt("SELECT rows_written FROM metra_models", &[])
                        .unwrap()
                })
                .map_or(0, |row| row.get::<_, i64>(0));
            if rows >= *point {
                break;
            }
            if child.try_wait().unwrap().is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_millis(stream.below(60)));
        killed += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(
        killed, KILLS,
        "every push was killed before its end: {points:?}"
    );
    let between: i64 = client
        .query_one("SELECT count(embedding_v2) FROM docs", &[])
        .unwrap()
        .get(0);
    let said: i64 = client
        .query_one("SELECT rows_written FROM metra_models", &[])
        .unwrap()
        .get(0);
    // A batch of the killed client may still be on its way.
    assert!((between - said).abs() <= 1_000, "{between} {said}");
    let (done, peak) = watched(&push);
    eprintln!(
        "killed at {points:?} of {with}; the last push wrote {} rows in {:.1} s, peak of memory {} MB",
        done["written"],
        done["seconds"].as_f64().unwrap(),
        peak / 1024
    );
    assert!(peak < 300 * 1024, "{peak} kB");
    assert_eq!(done["without_vector"], ROWS / WITHOUT);
    assert_eq!(done["left"], 0);
    let counts = client
        .query_one(
            "SELECT count(*), count(embedding), count(embedding_v2), (SELECT rows_written FROM \
             metra_models), (SELECT state FROM metra_models) FROM docs",
            &[],
        )
        .unwrap();
    assert_eq!(counts.get::<_, i64>(0), ROWS as i64);
    assert_eq!(
        (counts.get::<_, i64>(1), counts.get::<_, i64>(2)),
        (with, with)
    );
    assert_eq!(counts.get::<_, i64>(3), with, "every row was written once");
    assert_eq!(counts.get::<_, String>(4), "ready");
    assert_eq!(
        same_as_the_library(&server, &model, &items, &ids),
        with as usize
    );
    assert_eq!(
        answered(&push)["written"],
        0,
        "a repeated push has nothing to do"
    );

    // Search exactly; then with an index, whose making is interrupted first.
    let queries = folder.path().join("queries.parquet");
    let numbers: Vec<i64> = (0..QUERIES as i64).collect();
    parquet(&queries, items.rows().slice(0, QUERIES), &numbers);
    let search = |column: &str, more: &[&str]| {
        let base = [
            "search",
            path,
            &url,
            "--table",
            "docs",
            "--table-vector",
            column,
            "--query",
        ];
        let answers = answered(&[&base[..], &[text(&queries)], more].concat());
        nearest(&answers)
    };
    let exact = search("embedding_v2", &["--exact"]);
    let files = folder.path().join("items.parquet");
    let (kept, kept_ids) = with_vector(&items, &ids);
    parquet(&files, kept.rows(), &kept_ids);
    let own = answered(&[
        "search",
        path,
        text(&files),
        "--id",
        "id",
        "--query",
        text(&queries),
    ]);
    let same = exact
        .iter()
        .zip(nearest(&own))
        .filter(|(a, b)| **a == *b)
        .count();
    // Scores nearer than f32 tells apart may change places.
    assert!(
        same >= QUERIES - 2,
        "{same} of {QUERIES} answers are the metric's own"
    );

    let indexed = [&push[..], &["--index", "hnsw", "--index-memory", "256M"]].concat();
    let mut child = start(&indexed);
    let began = Instant::now();
    let building = "SELECT 1 FROM pg_stat_progress_create_index";
    while client.query_opt(building, &[]).unwrap().is_none() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "no index is made"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let began = Instant::now();
    assert_eq!(answered(&indexed)["indexed"], true);
    eprintln!("index made again in {:.1} s", began.elapsed().as_secs_f64());
    let indexes = client
        .query(
            "SELECT indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid \
             JOIN pg_am ON pg_am.oid = relam WHERE indrelid = 'docs'::regclass AND amname = 'hnsw'",
            &[],
        )
        .unwrap();
    assert_eq!(indexes.len(), 1, "the leftover was dropped");
    assert!(indexes[0].get::<_, bool>(0));
    for search_width in ["40", "200"] {
        let found = search("embedding_v2", &["--ef-search", search_width]);
        let recall = recall(&found, &exact);
        eprintln!("recall@10 of HNSW at ef_search {search_width}: {recall:.3}");
        assert!(recall > 0.7, "{recall}");
    }

    // Swap and back, each twice.
    let swap = [&push[..], &["--swap", "--former", "embedding_raw"]].concat();
    assert_eq!(answered(&swap)["renamed"][1][1], "embedding");
    assert_eq!(
        answered(&swap)["renamed"],
        Value::Array(vec![]),
        "it is so already"
    );
    assert_eq!(
        dimensions(&server),
        [("embedding", RANK), ("embedding_raw", DIM)]
    );
    assert_eq!(search("embedding", &["--exact"]), exact);
    // Rows that come now are found by a push from where the input is.
    client.batch_execute("INSERT INTO docs (id, embedding_raw) SELECT 1000000, embedding_raw FROM docs WHERE embedding_raw IS NOT NULL LIMIT 1").unwrap();
    let said = output(&push);
    assert!(!said.status.success(), "the input is elsewhere now");
    let more = [
        "push",
        path,
        &url,
        "--table",
        "docs",
        "--from",
        "embedding_raw",
        "--to",
        "embedding",
    ];
    assert_eq!(answered(&more)["written"], 1);
    let back = [&push[..], &["--rollback"]].concat();
    assert_eq!(answered(&back)["renamed"][1][1], "embedding");
    assert_eq!(answered(&back)["renamed"], Value::Array(vec![]));
    assert_eq!(
        dimensions(&server),
        [("embedding", DIM), ("embedding_v2", RANK)]
    );
    let listed = answered(&["models", &url]);
    assert_eq!(
        (&listed[0]["state"], &listed[0]["input"]),
        (&"ready".into(), &"embedding".into())
    );
    assert_eq!(
        answered(&swap)["renamed"][0][1],
        "embedding_raw",
        "and once more"
    );
}

/// Compare every stored vector with what the library's plan gives; how many were.
fn same_as_the_library(server: &Server, model: &Model, items: &RowBuf, ids: &[i64]) -> usize {
    let mut client = client!(server);
    let comment: String = client
        .query_one(
            "SELECT col_description(attrelid, attnum) FROM pg_attribute WHERE attrelid = \
             'docs'::regclass AND attname = 'embedding_v2'",
            &[],
        )
        .unwrap()
        .get(0);
    let record = Provenance::from_text(&comment, "the comment").unwrap();
    let plan = record.plan(model, "the comment").unwrap();
    let row_of: HashMap<i64, usize> = ids.iter().enumerate().map(|(row, id)| (*id, row)).collect();
    let (mut last, mut compared) = (i64::MIN, 0);
    loop {
        let rows = client
            .query(
                "SELECT id, embedding_v2::real[] FROM docs WHERE id > $1 AND embedding_v2 IS NOT NULL \
                 ORDER BY id LIMIT 4096",
                &[&last],
            )
            .unwrap();
        let Some(end) = rows.last() else {
            return compared;
        };
        last = end.get(0);
        for row in &rows {
            let item = row_of[&row.get::<_, i64>(0)];
            let mut expected = RowBuf::empty(1);
            let batch = Batch::new(items.rows().slice(item, item + 1));
            plan.map_items(0, &batch, &mut expected).unwrap();
            let stored: Vec<f32> = row.get(1);
            assert!(
                near(&stored, expected.values()),
                "{stored:?} {:?}",
                expected.values()
            );
            compared += 1;
        }
    }
}

/// Products of one row and of a thousand are summed in another order: the last digit differs.
fn near(stored: &[f32], expected: &[f32]) -> bool {
    let largest = expected.iter().fold(0.0_f32, |a, b| a.max(b.abs()));
    let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 16.0 * f32::EPSILON * largest;
    stored.len() == expected.len() && stored.iter().zip(expected).all(close)
}

fn with_vector(items: &RowBuf, ids: &[i64]) -> (RowBuf, Vec<i64>) {
    let (mut kept, mut kept_ids) = (RowBuf::empty(DIM), Vec::new());
    for (number, id) in ids.iter().enumerate() {
        if number % WITHOUT != WITHOUT - 1 {
            kept.extend(items.rows().slice(number, number + 1));
            kept_ids.push(*id);
        }
    }
    (kept, kept_ids)
}

fn nearest(answers: &Value) -> Vec<Vec<String>> {
    let items = |answer: &Value| {
        let items = answer["items"].as_array().unwrap().iter();
        items
            .map(|hit| hit["item"].as_str().unwrap().to_owned())
            .collect()
    };
    answers.as_array().unwrap().iter().map(items).collect()
}

fn recall(found: &[Vec<String>], exact: &[Vec<String>]) -> f64 {
    let mut hits = 0;
    for (found, exact) in found.iter().zip(exact) {
        let exact: BTreeSet<&String> = exact.iter().collect();
        hits += found.iter().filter(|id| exact.contains(id)).count();
    }
    hits as f64 / (10 * exact.len()) as f64
}

/// Columns of vectors with their dimensions.
fn dimensions(server: &Server) -> Vec<(&'static str, usize)> {
    let mut client = client!(server);
    let rows = client
        .query(
            "SELECT attname::text, atttypmod FROM pg_attribute WHERE attrelid = 'docs'::regclass \
             AND attname LIKE 'embedding%' ORDER BY 1",
            &[],
        )
        .unwrap();
    let known = ["embedding", "embedding_raw", "embedding_v2"];
    rows.iter()
        .map(|row| {
            let name: String = row.get(0);
            let name = known.into_iter().find(|known| *known == name).unwrap();
            (name, row.get::<_, i32>(1) as usize)
        })
        .collect()
}
