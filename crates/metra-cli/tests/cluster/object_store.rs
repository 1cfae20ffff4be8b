//! Tables, shards, settings and embedded vectors in a store that speaks S3, read and written by a
//! driver and executors that know it by their environment alone.
//!
//! The store is `moto_server` (PyPI `moto[server]`, see tests/requirements-servers.txt), named by `METRA_MOTO`;
//! without it the test says so and passes.

use crate::processes::{Executor, Scheduler, metra};
use crate::tables::Made;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

struct Store {
    server: Child,
    port: u16,
}

impl Store {
    fn start(program: &str) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let server = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let store = Store { server, port };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < Duration::from_secs(60), "no store");
            std::thread::sleep(Duration::from_millis(100));
        }
        store
    }

    /// Make a bucket.
    fn bucket(&self, name: &str) {
        let answer = self.ask(&format!("PUT /{name}"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    fn ask(&self, what: &str) -> String {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let request = format!(
            "{what} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            self.port
        );
        connection.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
#[ignore = "slow: starts a store and a cluster"]
fn shards_settings_and_results_lie_in_an_object_store() {
    let Some(program) = metra_testing::variable("METRA_MOTO", "a moto_server") else {
        return;
    };
    let store = Store::start(&program);
    store.bucket("vectors");
    let endpoint = format!("http://127.0.0.1:{}", store.port);
    let environment = [
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ENDPOINT", endpoint.as_str()),
    ];
    let made = Made::new(3, 6000, 16);
    let scheduler = Scheduler::start("");
    let _executors = [
        Executor::start_with(&scheduler, "", &environment),
        Executor::start_with(&scheduler, "", &environment),
    ];
    let away = format!(
        "--cluster {} --scratch s3://vectors/scratch",
        scheduler.url()
    );
    let run = |line: String| {
        let done = metra(&line).envs(environment).output().unwrap();
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{line}\n{error}");
        serde_json::from_slice::<serde_json::Value>(&done.stdout).unwrap()
    };
    let (table, model) = (made.address(), made.beside("lda.safetensors"));
    let written = run(format!(
        "shard {table} --label label --shards 3 -o s3://vectors/shards {away} --json"
    ));
    assert_eq!(written["rows"].as_array().unwrap().len(), 3);
    run(format!(
        "train s3://vectors/shards/ --label label --method lda --rank 4 -o {model} {away} --json"
    ));
    let embedded = run(format!(
        "embed {model} s3://vectors/shards/ --keep label -o s3://vectors/embedded {away} --json"
    ));
    assert_eq!(embedded["rows"], 18_000);
    let judge = |model: &str, items: &str| {
        let line = format!("eval {model} {items} --label label --measures map {away} --json");
        run(line)["measures"]["map"].as_f64().unwrap()
    };
    let by_model = judge(&model, "s3://vectors/shards/");
    let by_vectors = judge("euclid", "s3://vectors/embedded/");
    assert!(
        (by_model - by_vectors).abs() < 1e-4,
        "{by_model} {by_vectors}"
    );
    // 18,000 queries of dimension 16 are more than a plan carries.
    judge("cosine", "s3://vectors/shards/");
    let listed = store.ask("GET /vectors?list-type=2&prefix=scratch/");
    assert!(listed.contains("settings-"), "{listed}");
    let missing = metra(&format!(
        "train s3://vectors/nothing/ --label label --method lda -o {model} {away}"
    ));
    let missing = { missing }.envs(environment).output().unwrap();
    let error = String::from_utf8_lossy(&missing.stderr);
    assert!(error.contains("s3://vectors/nothing"), "{error}");
}
