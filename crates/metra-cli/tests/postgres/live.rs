//! A table that is in use while a model is pushed: rows arrive, change and are read, others hold locks, and
//! somebody presses Ctrl-C.

use crate::server::Server;
use crate::tables::{answered, client, drawn, load, save, shuffled_ids, text};
use metra::model::{Chain, Map, Space};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const DIM: usize = 64;
const ROWS: usize = 20_000;
/// How long an application holds a row, and with it the table against changes of its columns.
const HELD: Duration = Duration::from_secs(6);

#[test]
#[ignore = "slow: starts PostgreSQL"]
fn a_table_in_use_is_pushed_without_a_wait() {
    let Some(server) = Server::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let items = drawn("items", ROWS, DIM, 0.0);
    load(&server, "docs", items.rows(), &shuffled_ids(ROWS), 0);
    let twice = Chain::new(
        DIM,
        vec![],
        Map::Diagonal(vec![2.0; DIM]),
        Space::InnerProduct,
    )
    .unwrap();
    let (_, path) = save(folder.path(), "model", twice);
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
        "v2",
        "--batch",
        "200",
    ];
    let (stop, inserted, read) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let slowest = std::thread::scope(|scope| {
        // Ids below, among and above those that are there.
        scope.spawn(|| {
            let mut client = client!(server);
            let mut number = 0_i64;
            while !stop.load(Ordering::Relaxed) {
                let id = (number * 7_919) % 120_000 - 20_000;
                let added = client
                    .execute(
                        "INSERT INTO docs (id, embedding) SELECT $1, embedding FROM docs WHERE id = -1000 \
                         ON CONFLICT DO NOTHING",
                        &[&id],
                    )
                    .unwrap();
                inserted.fetch_add(added, Ordering::Relaxed);
                // Inputs change, too: the vector of an old input must not stay.
                client
                    .execute("UPDATE docs SET embedding = embedding + embedding, v2 = NULL WHERE id = $1", &[&(3 * number % 3_000)])
                    .ok();
                number += 1;
            }
        });
        let reader = scope.spawn(|| {
            let mut client = client!(server);
            let mut slowest = Duration::ZERO;
            while !stop.load(Ordering::Relaxed) {
                let began = Instant::now();
                let rows = client
                    .query("SELECT id FROM docs ORDER BY embedding <#> (SELECT embedding FROM docs WHERE id = -1000) LIMIT 5", &[])
                    .unwrap();
                assert_eq!(rows.len(), 5);
                slowest = slowest.max(began.elapsed());
                read.fetch_add(1, Ordering::Relaxed);
            }
            slowest
        });
        // A transaction that holds a row for a while, as applications do.
        let mut holding = client!(server);
        let mut transaction = holding.transaction().unwrap();
        transaction
            .execute("UPDATE docs SET label = 9 WHERE id = 500", &[])
            .unwrap();
        let pushing = scope.spawn(|| answered(&push));
        std::thread::sleep(HELD);
        transaction.commit().unwrap();
        let done = pushing.join().unwrap();
        assert!(done["written"].as_u64().unwrap() >= ROWS as u64, "{done}");
        stop.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    let (inserted, read) = (inserted.into_inner(), read.into_inner());
    eprintln!("{inserted} rows inserted and {read} searches meanwhile, the slowest {slowest:?}");
    assert!(inserted > 0 && read > 0);
    assert!(
        slowest < HELD / 2,
        "readers waited behind a push that waited: {slowest:?}"
    );
    // What came after the last pass is found by repeating.
    answered(&push);
    let mut client = client!(server);
    let row = client
        .query_one(
            "SELECT count(*), count(v2), count(*) FILTER (WHERE v2 <-> (embedding + embedding) > 1e-5) FROM docs",
            &[],
        )
        .unwrap();
    let (all, filled, wrong): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    assert_eq!(all, ROWS as i64 + inserted as i64);
    assert_eq!((filled, wrong), (all, 0));
    // Inputs that change afterwards are mapped again when that is asked for.
    client
        .batch_execute("UPDATE docs SET embedding = embedding + embedding WHERE id > 0")
        .unwrap();
    assert_eq!(answered(&push)["written"], 0);
    assert_eq!(
        answered(&[&push[..], &["--refill"]].concat())["written"],
        all
    );
    let row = client.query_one(
        "SELECT count(*) FROM docs WHERE v2 <-> (embedding + embedding) > 1e-5",
        &[],
    );
    assert_eq!(row.unwrap().get::<_, i64>(0), 0);
}

#[test]
#[ignore = "slow: starts PostgreSQL"]
fn an_interrupted_push_says_how_to_go_on() {
    let Some(server) = Server::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let items = drawn("items", ROWS, DIM, 0.0);
    load(&server, "docs", items.rows(), &shuffled_ids(ROWS), 0);
    let twice = Chain::new(
        DIM,
        vec![],
        Map::Diagonal(vec![2.0; DIM]),
        Space::InnerProduct,
    )
    .unwrap();
    let (_, path) = save(folder.path(), "model", twice);
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
        "v2",
        "--batch",
        "20",
    ];
    let dry = answered(&[&push[..], &["--dry-run"]].concat());
    assert_eq!(dry["rows"], ROWS);
    // 64 numbers of 4 bytes and a head of 8.
    assert_eq!(dry["bytes"], ROWS * 264);
    let statements = dry["statements"].as_array().unwrap();
    let said = statements
        .iter()
        .map(|s| s.as_str().unwrap())
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        said.contains(r#"ALTER TABLE "public"."docs" ADD COLUMN "v2" "public".vector(64)"#),
        "{said}"
    );
    let mut client = client!(server);
    let there = "SELECT to_regclass('metra_models') IS NULL AND NOT EXISTS (SELECT FROM pg_attribute WHERE attname = 'v2')";
    assert!(
        client.query_one(there, &[]).unwrap().get::<_, bool>(0),
        "a dry run writes nothing"
    );

    let child = Command::new(env!("CARGO_BIN_EXE_metra"))
        .args(push)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    loop {
        assert!(began.elapsed() < Duration::from_secs(60), "no progress");
        let found = client
            .query_one("SELECT to_regclass('metra_models') IS NOT NULL", &[])
            .unwrap();
        if found.get(0) {
            let rows = client
                .query_opt("SELECT rows_written FROM metra_models", &[])
                .unwrap();
            if rows.is_some_and(|row| row.get::<_, i64>(0) > 500) {
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", "INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("the same command continues"), "{said}");
    let before: i64 = client
        .query_one("SELECT rows_written FROM metra_models", &[])
        .unwrap()
        .get(0);
    let done = answered(&push);
    assert_eq!(done["written"].as_i64().unwrap(), ROWS as i64 - before);
    let filled: i64 = client
        .query_one("SELECT count(v2) FROM docs", &[])
        .unwrap()
        .get(0);
    assert_eq!(filled, ROWS as i64);
}
