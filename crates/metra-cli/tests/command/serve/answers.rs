//! What a server answers is what the command answers.

use super::{Folder, RowBuf, Server, prepared, vectors};
use serde_json::{Value, json};

fn numbers(value: &Value) -> Vec<f32> {
    let rows = value.as_array().unwrap().iter();
    let numbers = rows.flat_map(|row| row.as_array().unwrap());
    numbers
        .map(|number| number.as_f64().unwrap() as f32)
        .collect()
}

fn f32_bytes(rows: &RowBuf) -> Vec<u8> {
    rows.values().iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn mapped_vectors_are_those_of_embed_in_every_form() {
    let folder = Folder::new();
    let queries = prepared(&folder);
    folder.good(
        "embed m.safetensors queries.parquet --side query -o mapped.npy",
        &[],
    );
    let expected = folder.read("mapped.npy");
    let server = Server::start(&folder, "m.safetensors");
    let answer = server.good(
        "/v1/map",
        &json!({ "side": "query", "vectors": vectors(&queries) }),
    );
    assert_eq!(numbers(&answer["vectors"]), expected.values());
    assert_eq!(answer["dim"], expected.dim());
    assert!(answer["model"].as_str().unwrap().starts_with("m@"));

    let path = "/v1/map?model=m&side=query";
    let kind = |kind| [("Content-Type", kind)];
    let binary = "application/octet-stream";
    let answer = server.request("POST", path, &kind(binary), &f32_bytes(&queries));
    assert_eq!(answer.body, f32_bytes(&expected), "{}", answer.text());
    assert_eq!(answer.headers["metra-rows"], "20");

    let (path64, short) = (format!("{path}&element=float64"), [0; 7]);
    let doubles: Vec<u8> = (queries.values().iter())
        .flat_map(|value| f64::from(*value).to_le_bytes())
        .collect();
    let answer = server.request("POST", &path64, &kind(binary), &doubles);
    assert_eq!(answer.body, f32_bytes(&expected), "{}", answer.text());
    let refused = server.request("POST", &path64, &kind(binary), &short);
    assert!(
        refused.message().contains("little-endian float64 ("),
        "{}",
        refused.text()
    );

    let arrow = "application/vnd.apache.arrow.stream";
    let stream = metra_files::write_vector_stream(queries.dim(), &f32_bytes(&queries)).unwrap();
    let answer = server.request("POST", path, &kind(arrow), &stream);
    let (values, dim) = metra_files::read_vector_stream(&answer.body, None).unwrap();
    let values: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
    assert_eq!((values, dim), (expected.values().to_vec(), expected.dim()));
}

#[test]
fn answers_to_searches_are_those_of_search() {
    let folder = Folder::new();
    let queries = prepared(&folder);
    let line = "search m.safetensors idx --query queries.parquet --id id -k 7";
    let expected = folder.json(line, &[]);
    let server = Server::start(&folder, "m.safetensors --index idx");
    let request = json!({ "vectors": vectors(&queries), "k": 7 });
    let answer = server.good("/v1/search", &request);
    for (query, found) in answer["results"].as_array().unwrap().iter().enumerate() {
        for (place, hit) in found.as_array().unwrap().iter().enumerate() {
            let own = &expected[query]["items"][place];
            assert_eq!((&hit["id"], &hit["label"]), (&own["item"], &own["label"]));
            assert_eq!(hit["dissimilarity"], own["dissimilarity"]);
        }
    }
    let label = &expected[0]["items"][0]["label"];
    let filtered = json!({ "vectors": vectors(&queries), "k": 300, "filter": { "label": label } });
    let answer = server.good("/v1/search", &filtered);
    let whole = json!({ "vectors": vectors(&queries), "k": 300, "exact": true });
    let whole = server.good("/v1/search", &whole);
    for query in 0..20 {
        let own = whole["results"][query].as_array().unwrap().iter();
        let own: Vec<&Value> = own.filter(|hit| &hit["label"] == label).collect();
        let found: Vec<&Value> = answer["results"][query]
            .as_array()
            .unwrap()
            .iter()
            .collect();
        assert_eq!(found, own);
    }
    let none = json!({ "vectors": vectors(&queries), "filter": { "label": ["", "nobody"] } });
    let none = server.good("/v1/search", &none);
    assert_eq!(none["results"].as_array().unwrap().len(), 20);
}

#[test]
fn pairs_are_decided_as_by_decide() {
    let folder = Folder::new();
    prepared(&folder);
    let calibrate =
        "calibrate m.safetensors items.parquet --label label --fmr 0.1 -o c.safetensors";
    folder.good(calibrate, &[]);
    let pairs: String = (0..40)
        .map(|row| format!("{row}\t{}\n", row + 13))
        .collect();
    folder.write("pairs.tsv", &pairs);
    let expected = folder.json("decide c.safetensors items.parquet --pairs pairs.tsv", &[]);
    let items = folder.read("items.parquet");
    let part = |from: usize| {
        let values = items.rows().slice(from, from + 40).values().to_vec();
        vectors(&RowBuf::from_values(values, items.dim()).unwrap())
    };
    let server = Server::start(&folder, "c.safetensors");
    let answer = server.good(
        "/v1/similar",
        &json!({ "queries": part(0), "items": part(13) }),
    );
    assert_eq!(answer["threshold"], expected["threshold"]);
    for pair in 0..40 {
        let (own, found) = (&expected["pairs"][pair], &answer["results"][pair]);
        assert_eq!(own["same"], found["same"]);
        assert_eq!(own["dissimilarity"], found["dissimilarity"]);
    }
}

#[test]
fn several_models_are_found_by_name_and_version() {
    let folder = Folder::new();
    let queries = prepared(&folder);
    folder.good(
        "train items.parquet --label label --method lda --rank 3 -o small.safetensors",
        &[],
    );
    let list = "[[model]]\nname = \"m\"\nversion = \"1\"\nfile = \"m.safetensors\"\nindex = \"idx\"\n\
                [[model]]\nname = \"m\"\nversion = \"2\"\nfile = \"small.safetensors\"\n\
                [[model]]\nname = \"other\"\nfile = \"m.safetensors\"\n";
    folder.write("models.toml", list);
    let server = Server::start(&folder, "--models models.toml");
    let dim = |name: &str| {
        let request = json!({ "model": name, "side": "item", "vectors": vectors(&queries) });
        let answer = server.post("/v1/map", &request);
        answer.json()["dim"].as_u64()
    };
    assert_eq!(dim("m@1"), Some(6));
    assert_eq!(dim("m@2"), Some(3));
    assert_eq!(dim("m"), Some(3));
    assert_eq!(dim("other"), Some(6));
    assert_eq!(dim("absent"), None);
    let listed = server.get("/v1/models").json();
    let ids: Vec<&str> = (listed["data"].as_array().unwrap().iter())
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids[..2], ["m@1", "m@2"]);
    assert_eq!(listed["data"][0]["index"]["items"], 300);
    let unnamed = server.post("/v1/map", &json!({ "vectors": vectors(&queries) }));
    assert!(
        unnamed
            .message()
            .contains("expected \"model\" to name one of m@1, m@2")
    );
}

#[test]
fn feedback_is_what_clicks_reads() {
    let folder = Folder::new();
    prepared(&folder);
    let server = Server::start(&folder, "m.safetensors --feedback clicks.jsonl");
    for session in 0..30 {
        let shown = if session % 2 == 0 {
            ["a", "b"]
        } else {
            ["b", "a"]
        };
        let body = json!({ "query": "q 1", "shown": shown, "clicked": ["b"] });
        let answer = server.post("/v1/feedback", &body);
        assert_eq!(
            (answer.status, &answer.json()["recorded"]),
            (202, &json!(true))
        );
    }
    for wrong in [
        json!({ "query": "q", "shown": ["a"], "clicked": ["b"] }),
        json!({ "query": "q", "shown": ["a", "a"], "clicked": [] }),
        json!({ "query": "q", "shown": [], "clicked": [] }),
        json!({ "query": "a\nb", "shown": ["a"], "clicked": [] }),
    ] {
        assert_eq!(server.post("/v1/feedback", &wrong).status, 400, "{wrong}");
    }
    let log = String::from_utf8(folder.bytes("clicks.jsonl")).unwrap();
    folder.write("named.jsonl", &log.replace("q 1", "q1"));
    let report = folder.json("clicks named.jsonl -o judged.qrels", &[]);
    assert_eq!(
        (report["sessions"].as_u64(), report["clicks"].as_u64()),
        (Some(30), Some(30))
    );
}

#[test]
fn the_log_has_ids_and_no_vectors() {
    let folder = Folder::new();
    prepared(&folder);
    let server = Server::start(&folder, "m.safetensors");
    let row = vec![0.123456789; 12];
    let body = json!({ "side": "query", "vectors": [row] }).to_string();
    let headers = [
        ("x-request-id", "mine-1"),
        ("Content-Type", "application/json"),
    ];
    let answer = server.request("POST", "/v1/map", &headers, body.as_bytes());
    assert_eq!(
        (answer.status, answer.headers["x-request-id"].as_str()),
        (200, "mine-1")
    );
    let hostile = [("x-request-id", "a b\"{}")];
    let answer = server.request("GET", "/v1/models", &hostile, b"");
    assert!(!answer.headers["x-request-id"].contains('"'));
    let log = server.log();
    let line = log.lines().find(|line| line.contains("mine-1")).unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!(
        (&line["status"], &line["rows"], &line["route"]),
        (&json!(200), &json!(1), &json!("/v1/map"))
    );
    assert!(!log.contains("0.1234"), "{log}");
    let metrics = server.get("/metrics").text();
    assert!(
        metrics.contains("metra_requests_total{route=\"/v1/map\",status=\"200\"} 1"),
        "{metrics}"
    );
    assert!(metrics.contains("metra_rows_total{model=\"m@"), "{metrics}");
}
