//! A server starts, takes other files while it serves, and stops without losing a request.

use super::{Folder, Server, prepared, refusal_of, vectors};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_changed_model_is_taken_and_a_broken_one_is_not() {
    let folder = Folder::new();
    prepared(&folder);
    folder.good(
        "train items.parquet --label label --method lda --rank 3 -o small.safetensors",
        &[],
    );
    let server = Server::start(&folder, "m.safetensors --reload-interval 0.05");
    let dim = |server: &Server| server.get("/v1/models").json()["data"][0]["output_dim"].as_u64();
    assert_eq!(dim(&server), Some(6));
    std::fs::copy(folder.path("small.safetensors"), folder.path("new")).unwrap();
    std::fs::rename(folder.path("new"), folder.path("m.safetensors")).unwrap();
    server.until("the new model is served", |server| dim(server) == Some(3));

    folder.write("m.safetensors", "not a model");
    server.until("the broken one is noticed", |server| {
        server.log().contains("stays as it was before")
    });
    assert_eq!(dim(&server), Some(3));
    let metrics = server.get("/metrics").text();
    assert!(
        metrics.contains("metra_reloads_total{outcome=\"failure\"} 1"),
        "{metrics}"
    );
    let reload = server.post("/v1/admin/reload", &json!({}));
    assert_eq!(reload.status, 500, "{}", reload.text());
    std::fs::remove_file(folder.path("m.safetensors")).unwrap();
    std::fs::copy(
        folder.path("small.safetensors"),
        folder.path("m.safetensors"),
    )
    .unwrap();
    server.signal("HUP");
    server.until("it is well again", |server| {
        let metrics = server.get("/metrics").text();
        let line = (metrics.lines()).find(|line| line.contains("outcome=\"success\""));
        line.is_some_and(|line| !line.ends_with(" 1"))
    });
}

#[test]
fn an_index_of_another_model_is_refused() {
    let folder = Folder::new();
    prepared(&folder);
    folder.good(
        "train items.parquet --label label --method lda --rank 3 -o small.safetensors",
        &[],
    );
    let refused = refusal_of(
        &folder,
        "serve small.safetensors --index idx --bind 127.0.0.1:0",
    );
    assert!(refused.contains("was made with the model"), "{refused}");
    for (line, message) in [
        ("serve absent.safetensors", "absent.safetensors"),
        ("serve --models absent.toml", "absent.toml"),
        ("serve m.safetensors --threads 0", "at least 1"),
        ("serve m.safetensors --max-memory 1K", "--max-memory"),
        ("serve m.safetensors --upstream ftp://host", "http://"),
        ("serve m.safetensors --feedback absent/log", "absent/log"),
    ] {
        let refused = refusal_of(&folder, line);
        assert!(refused.contains(message), "{line}: {refused}");
    }
    folder.write(
        "models.toml",
        "[[model]]\nname = \"a/b\"\nfile = \"m.safetensors\"\n",
    );
    let refused = refusal_of(&folder, "serve --models models.toml");
    assert!(refused.contains("letters, digits"), "{refused}");
}

#[test]
fn a_server_that_stops_loses_no_request() {
    let folder = Folder::new();
    let queries = prepared(&folder);
    let mut server = Server::start(&folder, "m.safetensors --drain-delay 0.4");
    let body = json!({ "side": "query", "vectors": vectors(&queries) });
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (server, body, stopped) = (&server, &body, &stopped);
        let ask = move || {
            let mut answered = 0;
            while !stopped.load(Ordering::Relaxed) {
                let answer = server.post("/v1/map", body);
                assert_eq!(answer.status, 200, "{}", answer.text());
                answered += 1;
            }
            answered
        };
        let clients: Vec<_> = (0..3).map(|_| scope.spawn(ask)).collect();
        std::thread::sleep(Duration::from_millis(300));
        server.signal("TERM");
        server.until("load balancers are told", |server| {
            server.get("/readyz").status == 503
        });
        // They stop sending before the server stops taking.
        stopped.store(true, Ordering::Relaxed);
        for client in clients {
            assert!(client.join().unwrap() > 0);
        }
    });
    assert_eq!(server.ended(LONG).code(), Some(0));
    assert!(server.log().contains("stopping"));
}

#[test]
fn ctrl_c_ends_it_and_the_port_is_free_again() {
    let folder = Folder::new();
    prepared(&folder);
    let mut server = Server::start(&folder, "m.safetensors --drain-delay 0.01");
    let address = server.address.clone();
    server.signal("INT");
    assert_eq!(server.ended(LONG).code(), Some(0));
    std::net::TcpListener::bind(address).unwrap();
}
