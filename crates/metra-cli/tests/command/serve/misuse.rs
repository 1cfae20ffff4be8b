//! Requests that are wrong, too large, too slow or not allowed.

use super::{Answer, Folder, Server, prepared, refusal_of, vectors};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

#[test]
fn what_is_wrong_with_a_request_is_said() {
    let folder = Folder::new();
    let queries = prepared(&folder);
    let server = Server::start(
        &folder,
        "m.safetensors --index idx --max-rows 30 --max-k 50",
    );
    let good = vectors(&queries);
    let many: Value = vec![vec![0.5; 12]; 31].into();
    for (path, body, status, message) in [
        (
            "/v1/map",
            json!({ "vectors": [[1, 2]] }),
            400,
            "expected vectors of 12 dimensions",
        ),
        (
            "/v1/map",
            json!({ "vectors": [] }),
            400,
            "at least one vector",
        ),
        (
            "/v1/map",
            json!({ "vectors": [[1], [1, 2]] }),
            400,
            "equal dimension",
        ),
        (
            "/v1/map",
            json!({ "vectors": many }),
            413,
            "at most 30 vectors",
        ),
        (
            "/v1/map",
            json!({ "vectors": good, "sides": "query" }),
            400,
            "unknown field `sides`",
        ),
        (
            "/v1/map",
            json!({ "vectors": good, "side": "left" }),
            400,
            "unknown variant `left`",
        ),
        (
            "/v1/map",
            json!({ "vectors": good, "model": "../m" }),
            404,
            "expected a model among m@",
        ),
        (
            "/v1/map",
            json!({ "vectors": good, "output": "codes" }),
            400,
            "code must be",
        ),
        (
            "/v1/search",
            json!({ "vectors": good, "k": 51 }),
            400,
            "\"k\" from 1 to 50",
        ),
        (
            "/v1/search",
            json!({ "vectors": good, "filter": { "label": [1] } }),
            400,
            "expected a string",
        ),
        (
            "/v1/search",
            json!({ "vectors": good, "effort": 10 }),
            400,
            "this one compares every item",
        ),
        (
            "/v1/similar",
            json!({ "queries": good, "items": [[1]] }),
            400,
            "as many queries as items",
        ),
        (
            "/v1/embeddings",
            json!({ "input": "text" }),
            404,
            "--upstream",
        ),
        ("/v1/feedback", json!({}), 404, "--feedback"),
        (
            "/v1/../../etc/passwd",
            json!({}),
            404,
            "nothing at this address",
        ),
        (
            "/v1/map/%2e%2e%2f",
            json!({}),
            404,
            "nothing at this address",
        ),
    ] {
        let answer = server.post(path, &body);
        assert_eq!(answer.status, status, "{path} {}", answer.text());
        assert!(
            answer.message().contains(message),
            "{path} {}",
            answer.text()
        );
    }
    let method = server.get("/v1/map");
    assert_eq!(method.status, 405);
    assert!(method.message().contains("another method"));
    let query = server.request("POST", "/v1/map?sides=query", &[], b"");
    assert_eq!(query.status, 400);
    assert!(
        query.message().contains("unknown field"),
        "{}",
        query.text()
    );
    for page in [("Origin", "http://localhost"), ("Host", "example.org")] {
        let answer = server.request("GET", "/v1/models", &[page], b"");
        assert_eq!(answer.status, 403, "{}", answer.text());
    }
    let plain = [("Content-Type", "text/plain")];
    assert_eq!(
        server.request("POST", "/v1/search", &plain, b"{}").status,
        415
    );
    let texts: [(&str, &[u8], u16); 5] = [
        ("application/json", b"{\"vectors\": [[1e999]]}", 400),
        ("application/json", b"{", 400),
        ("text/plain", b"1 2 3", 415),
        ("application/octet-stream", &[0; 7], 400),
        ("application/vnd.apache.arrow.stream", b"nothing", 400),
    ];
    for (kind, body, status) in texts {
        let answer = server.request("POST", "/v1/map", &[("Content-Type", kind)], body);
        assert_eq!(answer.status, status, "{kind} {}", answer.text());
        answer.message();
    }
    let nan = [f32::NAN; 12].map(f32::to_le_bytes).concat();
    let kind = [("Content-Type", "application/octet-stream")];
    let answer = server.request("POST", "/v1/map?side=query", &kind, &nan);
    assert!(
        answer.message().contains("row 0, column 0"),
        "{}",
        answer.text()
    );
    let packed = [("Content-Encoding", "gzip")];
    assert_eq!(server.request("POST", "/v1/map", &packed, b"").status, 415);
    let deep = "[".repeat(100_000);
    assert_eq!(
        server
            .request("POST", "/v1/map", &[], deep.as_bytes())
            .status,
        400
    );
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn large_and_slow_bodies_are_given_up() {
    let folder = Folder::new();
    prepared(&folder);
    let limits = "m.safetensors --max-body 10K --max-memory 20K --client-timeout 0.5";
    let server = Server::start(&folder, limits);
    let answer = server.request("POST", "/v1/map", &[], &[b' '; 20_000]);
    assert_eq!(answer.status, 413);
    assert!(answer.message().contains("at most 10240 bytes"));
    // A body that does not end, in pieces.
    let mut endless =
        b"POST /v1/map HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..40 {
        endless.extend(b"400\r\n");
        endless.extend([b' '; 1024]);
        endless.extend(b"\r\n");
    }
    assert_eq!(server.raw(&endless).unwrap().status, 413);
    // Heads and bodies that do not come.
    let slow_body = b"POST /v1/map HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{";
    assert_eq!(server.raw(slow_body).unwrap().status, 408);
    for started in [
        &b""[..],
        b"POST /v1/map HT",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nA: b",
    ] {
        let began = Instant::now();
        let mut stream = server.connect();
        stream.write_all(started).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(began.elapsed() < Duration::from_secs(10), "{started:?}");
    }
    // So many bodies at once are more than the memory for them, whoever comes last.
    let ask = |server: &Server| server.post("/v1/map", &json!({ "vectors": [[1]] })).status;
    server.until("a body is refused for want of memory", |server| {
        let half = || {
            let mut stream = server.connect();
            let head = b"POST /v1/map HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10240\r\n\r\n";
            stream.write_all(head).unwrap();
            stream.write_all(&[b' '; 10_000]).unwrap();
            stream
        };
        let _waiting = [half(), half()];
        std::thread::sleep(Duration::from_millis(100));
        ask(server) == 503
    });
    server.until("memory is free again", |server| ask(server) == 400);
}

#[test]
fn keys_and_scopes() {
    let folder = Folder::new();
    prepared(&folder);
    folder.write(
        "keys",
        "read 0123456789abcdef-r\nadmin 0123456789abcdef-a\n",
    );
    let refused = refusal_of(&folder, "serve m.safetensors --bind 0.0.0.0:0");
    assert!(
        refused.contains("expected keys (--keys FILE or METRA_KEYS)"),
        "{refused}"
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |mode| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(folder.path("keys"), permissions).unwrap();
        };
        mode(0o644);
        let refused = refusal_of(
            &folder,
            "serve m.safetensors --keys keys --bind 127.0.0.1:0",
        );
        assert!(refused.contains("chmod 600"), "{refused}");
        mode(0o600);
    }
    let other = [("METRA_KEYS", "read fedcba9876543210")];
    let server = Server::start_with(&folder, "m.safetensors --keys keys", &other);
    let status = |method: &str, path: &str, key: &str| {
        let value = format!("Bearer {key}");
        let headers = [("Authorization", value.as_str())];
        let headers = if key.is_empty() {
            &headers[..0]
        } else {
            &headers[..]
        };
        server.request(method, path, headers, b"").status
    };
    assert_eq!(status("GET", "/healthz", ""), 200);
    assert_eq!(status("GET", "/readyz", ""), 200);
    for path in ["/v1/models", "/metrics", "/openapi.json"] {
        assert_eq!(status("GET", path, ""), 401);
        assert_eq!(status("GET", path, "0123456789abcdef"), 401);
        assert_eq!(status("GET", path, "0123456789abcdef-r"), 200);
        assert_eq!(status("GET", path, "fedcba9876543210"), 200);
    }
    assert_eq!(
        status("POST", "/v1/admin/reload", "0123456789abcdef-r"),
        403
    );
    assert_eq!(
        status("POST", "/v1/admin/reload", "0123456789abcdef-a"),
        200
    );
    // Keys that have changed hold from the next reload on.
    folder.write("keys", "admin another-0123456789\n");
    assert_eq!(
        status("POST", "/v1/admin/reload", "0123456789abcdef-a"),
        200
    );
    assert_eq!(
        status("POST", "/v1/admin/reload", "0123456789abcdef-a"),
        401
    );
    assert!(!server.log().contains("0123456789abcdef"));
}

#[test]
fn overload_is_refused_soon_and_passes() {
    let folder = Folder::new();
    let queries = prepared(&folder);
    let line = "m.safetensors --index idx --concurrency 1 --queue 1 --queue-time 0.2";
    let server = Server::start(&folder, line);
    let body = json!({ "vectors": vectors(&queries), "k": 300 });
    let answers: Vec<(Answer, Duration)> = std::thread::scope(|scope| {
        let ask = || {
            let timed = |_| {
                let began = Instant::now();
                (server.post("/v1/search", &body), began.elapsed())
            };
            (0..15).map(timed).collect::<Vec<_>>()
        };
        let clients: Vec<_> = (0..12).map(|_| scope.spawn(ask)).collect();
        clients
            .into_iter()
            .flat_map(|client| client.join().unwrap())
            .collect()
    });
    let good = answers
        .iter()
        .filter(|(answer, _)| answer.status == 200)
        .count();
    for (answer, time) in answers.iter().filter(|(answer, _)| answer.status != 200) {
        // Not so soon that clients which ask again at once take the processor from others.
        assert!(*time >= Duration::from_millis(100), "{time:?}");
        assert_eq!(
            (answer.status, answer.headers["retry-after"].as_str()),
            (503, "1")
        );
        assert!(
            answer.message().contains("which is the limit"),
            "{}",
            answer.text()
        );
    }
    assert!(
        good > 0 && good < answers.len(),
        "{good} of {}",
        answers.len()
    );
    assert_eq!(server.post("/v1/search", &body).status, 200);
    let metrics = server.get("/metrics").text();
    assert!(
        metrics.contains("metra_refusals_total{reason=\"overloaded\"}"),
        "{metrics}"
    );
    assert!(metrics.contains("metra_requests_running 0"), "{metrics}");
}
