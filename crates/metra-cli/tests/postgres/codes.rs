//! Models with a code of bits in a column of type `bit`: the order is the model's own, by the index and past it, and a
//! second column rescores.

use crate::server::Server;
use crate::tables::{answered, client, drawn, load, parquet, refused, save, text};
use metra::linalg::RowBuf;
use metra::model::{Chain, Code, LowRank, Map, Space};
use serde_json::Value;

const ROWS: usize = 3_000;
const DIM: usize = 24;
/// Not a multiple of 8: the last byte is not full.
const BITS: usize = 61;
const QUERIES: usize = 20;
const K: usize = 10;

fn mapped(space: Space) -> Chain {
    let map = LowRank::new(drawn("map", BITS, DIM, 0.0), None).unwrap();
    Chain::new(DIM, Vec::new(), Map::LowRank(map), space).unwrap()
}

/// What was found for every query: ids and dissimilarities.
fn found(answer: &Value) -> Vec<Vec<(String, f64)>> {
    let hit = |hit: &Value| {
        let id = hit["item"].as_str().unwrap().to_owned();
        (id, hit["dissimilarity"].as_f64().unwrap())
    };
    let queries = answer.as_array().unwrap();
    let items = queries
        .iter()
        .map(|query| query["items"].as_array().unwrap());
    items.map(|items| items.iter().map(hit).collect()).collect()
}

/// Both rankings have the same distances; items of equal bits are equally near, in any order.
fn same_scores(truth: &[Vec<(String, f64)>], found: &[Vec<(String, f64)>], name: &str) {
    assert_eq!(truth.len(), QUERIES);
    for (truth, found) in truth.iter().zip(found) {
        assert_eq!((truth.len(), found.len()), (K, K));
        for ((_, own), (_, given)) in truth.iter().zip(found) {
            assert!(
                (own - given).abs() < 1e-4 * own.abs().max(1.0),
                "{name}: {own} {given}"
            );
        }
    }
}

/// The share of the first by one ranking that another has, nearest items of equal distance being equally good.
fn recall(found: &[Vec<(String, f64)>], truth: &[Vec<(String, f64)>]) -> f64 {
    let mut hits = 0;
    for (found, truth) in found.iter().zip(truth) {
        let last = truth.last().unwrap().1;
        hits += found.iter().filter(|(_, d)| *d <= last + 1e-4).count();
    }
    hits as f64 / (QUERIES * K) as f64
}

#[test]
#[ignore = "slow: starts PostgreSQL"]
fn bits_are_searched_in_the_order_of_the_model() {
    let Some(server) = Server::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (items, queries) = (
        drawn("items", ROWS, DIM, 0.0),
        drawn("queries", QUERIES, DIM, 0.0),
    );
    let ids: Vec<i64> = (0..ROWS as i64).collect();
    load(&server, "docs", items.rows(), &ids, 0);
    let file = |name: &str, rows: &RowBuf| {
        let path = folder.path().join(name);
        parquet(&path, rows.rows(), &ids[..rows.len()]);
        path
    };
    let (item_file, query_file) = (
        file("items.parquet", &items),
        file("queries.parquet", &queries),
    );
    let (item_file, query_file) = (text(&item_file), text(&query_file));
    let url = server.url();
    let k = K.to_string();
    let in_table = |model: &str, column: &str, more: &[&str]| {
        let search = [
            "search",
            model,
            &url,
            "--table",
            "docs",
            "--table-vector",
            column,
            "--query",
            query_file,
            "-k",
            &k,
        ];
        found(&answered(&[&search[..], more].concat()))
    };
    let in_file = |model: &str| {
        let search = [
            "search", model, item_file, "--query", query_file, "--id", "id", "-k", &k,
        ];
        found(&answered(&search))
    };
    let push = |model: &str, column: &str, kind: &str, more: &[&str]| {
        let push = [
            "push",
            model,
            &url,
            "--table",
            "docs",
            "--from",
            "embedding",
            "--to",
            column,
            "--type",
            kind,
        ];
        answered(&[&push[..], more].concat())
    };
    let (_, fine) = save(folder.path(), "fine", mapped(Space::Cosine));
    push(text(&fine), "fine", "halfvec", &[]);
    for (space, queries) in [
        (Space::SquaredL2, false),
        (Space::Cosine, false),
        (Space::InnerProduct, false),
        (Space::SquaredL2, true),
    ] {
        let code = Code::Bits {
            scale: 0.7,
            queries,
        };
        let name = format!("{space}_{queries}");
        let (_, model) = save(
            folder.path(),
            &name,
            mapped(space).with_code(Some(code)).unwrap(),
        );
        let model = text(&model);
        let pushed = push(model, &name, "bit", &["--index", "hnsw"]);
        assert_eq!(
            (&pushed["written"], &pushed["indexed"]),
            (&ROWS.into(), &true.into()),
            "{pushed}"
        );
        // Bits of the server are those of the model, most significant first.
        let text = format!("SELECT \"{name}\"::text FROM docs WHERE id = 7");
        let stored: String = client!(server).query_one(&text, &[]).unwrap().get(0);
        let mut own = RowBuf::empty(1);
        let map = mapped(space);
        let row = metra::data::Batch::new(items.rows().slice(7, 8));
        metra::model::Embedding::embed_items(&map, 0, &row, &mut own).unwrap();
        let signs: String = own
            .values()
            .iter()
            .map(|v| if *v > 0.0 { '1' } else { '0' })
            .collect();
        assert_eq!(stored, signs);

        let (truth, exact) = (in_file(model), in_table(model, &name, &["--exact"]));
        same_scores(&truth, &exact, &name);
        // With a condition, the parameter of the query of the second stage stands behind its value.
        let even: Vec<i64> = ids.iter().copied().filter(|id| id % 7 == 3).collect();
        let few = in_table(model, &name, &["--where", "label=3", "--rescore", "3000"]);
        assert!(
            few.iter()
                .flatten()
                .all(|(id, _)| even.contains(&id.parse().unwrap()))
        );
        assert!(few.iter().all(|hits| hits.len() == K));
        let by_index = in_table(model, &name, &["--rescore", "200", "--effort", "400"]);
        assert!(
            recall(&by_index, &truth) > 0.9,
            "{name}: {}",
            recall(&by_index, &truth)
        );
        // Hamming alone, without the query's numbers, finds fewer of them.
        if !queries {
            let few = in_table(model, &name, &["--rescore", "1"]);
            assert!(recall(&few, &truth) < recall(&by_index, &truth));
        }
        // Bits find candidates, and the vectors before their code put them in order.
        let fine = self::text(&fine);
        let rescored = [
            "--rescore",
            "1000",
            "--effort",
            "1000",
            "--rescore-vector",
            "fine",
            "--rescore-model",
            fine,
        ];
        let rescored = in_table(model, &name, &rescored);
        let whole = in_file(fine);
        let again = ["--rescore-vector", "fine", "--rescore-model", fine];
        let filtered = [&["--where", "label=3", "--rescore", "3000"], &again[..]].concat();
        let filtered = in_table(model, &name, &filtered);
        assert!(
            filtered
                .iter()
                .flatten()
                .all(|(id, _)| even.contains(&id.parse().unwrap()))
        );
        let past_index = in_table(model, &name, &[&["--exact"], &again[..]].concat());
        assert!(
            recall(&past_index, &whole) > 0.99,
            "{name}: halves keep three digits"
        );
        assert!(
            recall(&rescored, &whole) > 0.95,
            "{name}: {}",
            recall(&rescored, &whole)
        );
        let repeated = push(model, &name, "bit", &["--index", "hnsw"]);
        assert_eq!(
            (&repeated["written"], &repeated["indexed"]),
            (&0.into(), &false.into())
        );
    }
    // By inner product a cosine model stores signs at length 1.
    let code = Code::Bits {
        scale: 0.7,
        queries: false,
    };
    let chain = mapped(Space::Cosine).with_code(Some(code)).unwrap();
    let (_, unit) = save(folder.path(), "unit", chain);
    push(text(&unit), "unit", "bit", &["--distance", "ip"]);
    let unit = text(&unit);
    same_scores(
        &in_file(unit),
        &in_table(unit, "unit", &["--exact"]),
        "unit",
    );
    let fine = text(&fine);
    let to = |column: &'static str| ["--from", "embedding", "--to", column, "--type", "bit"];
    let push = ["push", fine, &url, "--table", "docs"];
    let message = refused(&[&push[..], &to("other")].concat());
    assert!(message.contains("--code bits"), "{message}");
    let from_bits = ["--from", "euclid_false", "--to", "other"];
    let message = refused(&[&push[..], &from_bits].concat());
    assert!(
        message.contains("expected vector or halfvec, but found bit(61)"),
        "{message}"
    );
    let pull = [
        "pull",
        &url,
        "--table",
        "docs",
        "--vector",
        "euclid_false",
        "-o",
        "x.parquet",
    ];
    let message = refused(&pull);
    assert!(message.contains("but found bit(61)"), "{message}");
    let other = [
        "search",
        fine,
        &url,
        "--table",
        "docs",
        "--table-vector",
        "euclid_false",
        "--query",
        query_file,
    ];
    let message = refused(&other);
    assert!(message.contains("it was written by"), "{message}");
    let none = [&other[..], &["--rescore", "0"]].concat();
    assert!(refused(&none).contains("at least 1"));
}
