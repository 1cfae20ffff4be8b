//! What users meet first: wrong passwords, absent things, hostile names; and that each is named.

use crate::server::Server;
use crate::tables::{answered, client, drawn, load, output, refused, save, shuffled_ids, text};
use metra::model::{Chain, Map, Space, Step};

fn chain(dim: usize) -> Chain {
    let mean = vec![0.25; dim];
    Chain::new(
        dim,
        vec![Step::Centre { mean }],
        Map::Diagonal(vec![2.0; dim]),
        Space::SquaredL2,
    )
    .unwrap()
}

#[test]
#[ignore = "slow: starts PostgreSQL"]
fn what_is_wrong_is_named() {
    let Some(server) = Server::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (_, model) = save(folder.path(), "model", chain(3));
    let (_, wide) = save(folder.path(), "wide", chain(5));
    let (model, wide, url) = (text(&model), text(&wide), server.url());
    let mut client = client!(server);
    client
        .batch_execute(
            "CREATE ROLE guarded LOGIN PASSWORD 'right'; \
             CREATE TABLE docs (id bigint PRIMARY KEY, other bigint, embedding vector(3), title text, \
             loose vector, half halfvec(3)); \
             INSERT INTO docs VALUES (1, 1, '[1,2,3]', 'a', '[1,2,3]', '[1,2,3]'), \
             (7, 1, '[2,2,3]', 'b', '[1,2]', NULL); \
             CREATE TABLE filled (id bigint PRIMARY KEY, embedding vector(3), other vector(3)); \
             INSERT INTO filled VALUES (1, '[1,2,3]', '[1,2,3]'); \
             CREATE VIEW shown AS SELECT * FROM docs",
        )
        .unwrap();
    client.batch_execute("CREATE DATABASE bare").unwrap();
    let push = |model: &str, url: &str, more: &[&str]| {
        refused(&[&["push", model, url, "--table", "docs", "--to", "v2"], more].concat())
    };
    let said = push(
        model,
        &server.url_of("guarded:hidden", "postgres"),
        &["--from", "embedding"],
    );
    assert!(
        said.contains("password authentication failed") && said.contains("PGPASSWORD"),
        "{said}"
    );
    assert!(!said.contains("hidden"), "{said}");
    let said = push(
        model,
        &server.url_of("postgres", "bare"),
        &["--from", "embedding"],
    );
    assert!(said.contains("CREATE EXTENSION vector"), "{said}");
    let said = push(
        model,
        &server.url_of("postgres", "nowhere"),
        &["--from", "embedding"],
    );
    assert!(said.contains("\"nowhere\" does not exist"), "{said}");
    let said = push(
        model,
        "postgres://x:hidden@127.0.0.1:1/y",
        &["--from", "embedding"],
    );
    assert!(
        said.contains("127.0.0.1:1/y") && !said.contains("hidden"),
        "{said}"
    );
    let said = push(
        model,
        &server.url_of("guarded:right", "postgres"),
        &["--from", "embedding"],
    );
    assert!(said.contains("permission denied"), "{said}");

    let said = push(model, &url, &["--from", "vectors"]);
    assert!(
        said.contains("columns are id, other, embedding, title, loose, half"),
        "{said}"
    );
    let said = push(model, &url, &["--from", "title"]);
    assert!(
        said.contains("expected vector or halfvec, but found text"),
        "{said}"
    );
    let said = push(wide, &url, &["--from", "embedding"]);
    assert!(
        said.contains("expected vectors of dimension 5") && said.contains("found 3"),
        "{said}"
    );
    let said = push(model, &url, &["--from", "loose"]);
    assert!(
        said.contains("row with id 7") && said.contains("found 2"),
        "{said}"
    );
    let said = push(model, &url, &["--from", "embedding", "--id", "other"]);
    assert!(said.contains("unique index"), "{said}");
    let said = push(model, &url, &["--from", "embedding", "--id", "loose"]);
    assert!(said.contains("expected ids of one of the types"), "{said}");
    let said = push(model, &url, &["--from", "embedding", "--way", "rescaled"]);
    assert!(
        said.contains("no plan") || said.contains("rescaled") || said.contains("way"),
        "{said}"
    );
    let said = refused(&[
        "push",
        model,
        &url,
        "--table",
        "dcos",
        "--from",
        "embedding",
        "--to",
        "x",
    ]);
    assert!(
        said.contains("tables with vectors are docs, filled"),
        "{said}"
    );
    let said = refused(&[
        "push",
        model,
        &url,
        "--table",
        "filled",
        "--from",
        "embedding",
        "--to",
        "other",
    ]);
    assert!(said.contains("holds vectors that no push wrote"), "{said}");
    let uneven = Map::Diagonal(vec![1.0, 2.0, 3.0]);
    let uneven = Chain::new(3, vec![], uneven, Space::SquaredL2).unwrap();
    let (_, uneven) = save(folder.path(), "uneven", uneven);
    let said = refused(&[
        "push",
        text(&uneven),
        &url,
        "--table",
        "docs",
        "--from",
        "embedding",
        "--keep-items",
    ]);
    assert!(said.contains("every item would be written again"), "{said}");
    let said = push(model, &url, &["--from", "embedding", "--swap"]);
    assert!(said.contains("push first"), "{said}");

    // Another model's column, and input that was mapped.
    let (_, second) = save(
        folder.path(),
        "second",
        Chain::identity(3, Space::InnerProduct),
    );
    let done = [
        "push",
        model,
        &url,
        "--table",
        "docs",
        "--from",
        "embedding",
        "--to",
        "v2",
    ];
    assert_eq!(answered(&done)["written"], 2);
    let (_, other) = save(
        folder.path(),
        "other",
        Chain::new(3, vec![], Map::Diagonal(vec![3.0; 3]), Space::SquaredL2).unwrap(),
    );
    let said = push(text(&other), &url, &["--from", "embedding"]);
    assert!(said.contains("was written by the model"), "{said}");
    let said = refused(&[
        "push", model, &url, "--table", "docs", "--from", "v2", "--to", "v3",
    ]);
    assert!(said.contains("expected the input vectors"), "{said}");

    // A model that leaves items alone writes nothing, registers, and is found by a search.
    let queries = folder.path().join("queries.csv");
    std::fs::write(&queries, "vector_0,vector_1,vector_2\n1,0,0\n").unwrap();
    let search = |model: &str, column: &str| {
        output(&[
            "search",
            model,
            &url,
            "--table",
            "docs",
            "--table-vector",
            column,
            "--query",
            text(&queries),
            "-k",
            "2",
            "--json",
        ])
    };
    let failed = search(text(&second), "embedding");
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(said.contains("--keep-items"), "{said}");
    let kept = answered(&[
        "push",
        text(&second),
        &url,
        "--table",
        "docs",
        "--from",
        "embedding",
        "--keep-items",
    ]);
    assert_eq!(
        (&kept["written"], &kept["column"]),
        (&0.into(), &"embedding".into())
    );
    let found = search(text(&second), "embedding");
    let answer: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    // Inner products with (1, 0, 0): 2 for id 7, 1 for id 1.
    assert_eq!(answer[0]["items"][0]["item"], "7");
    assert_eq!(answer[0]["items"][0]["dissimilarity"], -2.0);
    let rows = client
        .query("SELECT count(*) FROM metra_models", &[])
        .unwrap();
    assert_eq!(rows[0].get::<_, i64>(0), 2);
    let listed = answered(&["models", &url]);
    assert_eq!(listed[0]["column"], "v2");
    assert_eq!(listed[1]["way"], "mapped");
}

#[test]
#[ignore = "slow: starts PostgreSQL"]
fn hostile_names_mean_themselves() {
    let Some(server) = Server::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (_, model) = save(folder.path(), "it's a \"model\"; --", chain(4));
    let (schema, table) = ("Größe \"%s\"", "docs\"; DROP TABLE kept; --");
    let (id, from, to) = ("the \"id\"", "v; DROP TABLE kept; --", "ünï $1 {} \\ '");
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let mut client = client!(server);
    client
        .batch_execute(&format!(
            "CREATE TABLE kept (id int); CREATE SCHEMA {0}; CREATE TABLE {0}.{1} ({2} text PRIMARY KEY, \
             {3} vector(4), \"a=b\" text); INSERT INTO {0}.{1} SELECT 'id ''' || n, \
             ARRAY[n, 1, 2, 3]::vector, 'x'' OR true --' FROM generate_series(1, 50) n",
            quoted(schema),
            quoted(table),
            quoted(id),
            quoted(from)
        ))
        .unwrap();
    let named = format!("{}.{}", quoted(schema), quoted(table));
    let (model, url) = (text(&model), server.url());
    let push = |more: &[&str]| {
        let base = [
            "push", model, &url, "--table", &named, "--id", id, "--from", from, "--to", to,
        ];
        answered(&[&base[..], more].concat())
    };
    let done = push(&["--index", "hnsw", "--batch", "7"]);
    assert_eq!(
        (&done["written"], &done["indexed"]),
        (&50.into(), &true.into())
    );
    assert_eq!(
        push(&["--index", "hnsw"])["indexed"],
        false,
        "one index is enough"
    );
    let queries = folder.path().join("queries.csv");
    std::fs::write(&queries, "vector_0,vector_1,vector_2,vector_3\n7.2,1,2,3\n").unwrap();
    let search = |column: &str, more: &[&str]| {
        let base = [
            "search",
            model,
            &url,
            "--table",
            &named,
            "--table-id",
            id,
            "--table-vector",
            column,
            "--query",
            text(&queries),
            "-k",
            "2",
        ];
        answered(&[&base[..], more].concat())
    };
    let found = search(to, &["--exact"]);
    assert_eq!(found[0]["items"][0]["item"], "id '7");
    // Twice 0.2, squared.
    let score = found[0]["items"][0]["dissimilarity"].as_f64().unwrap();
    assert!((score - 0.16).abs() < 1e-4, "{score}");
    let swapped = push(&["--swap", "--former", "old \"one\""]);
    assert_eq!(swapped["renamed"][1][1], from);
    assert_eq!(search(from, &[])[0]["items"][0]["item"], "id '7");
    assert_eq!(push(&["--rollback"])["renamed"][1][0], "old \"one\"");
    let file = folder.path().join("out.parquet");
    let pulled = answered(&[
        "pull",
        &url,
        "--table",
        &named,
        "--id",
        id,
        "--vector",
        from,
        "--label",
        "a=b",
        "--where",
        &format!("{id}!=id '1"),
        "-o",
        text(&file),
    ]);
    assert_eq!((&pulled["rows"], &pulled["dim"]), (&49.into(), &4.into()));
    let rows = client.query("SELECT count(*) FROM kept", &[]).unwrap();
    assert_eq!(
        rows[0].get::<_, i64>(0),
        0,
        "the other table is still there"
    );
}

#[test]
#[ignore = "slow: starts PostgreSQL"]
fn every_kind_of_id_and_what_is_pulled() {
    let Some(server) = Server::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (_, model) = save(folder.path(), "model", chain(3));
    let (model, url) = (text(&model), server.url());
    let mut client = client!(server);
    for (kind, value) in [
        ("smallint", "n"),
        ("integer", "n * 1000"),
        ("bigint", "n * 10000000000"),
        ("text", "'no ' || n"),
        ("varchar(9)", "'no ' || n"),
        ("uuid", "md5(n::text)::uuid"),
    ] {
        client
            .batch_execute(&format!(
                "DROP TABLE IF EXISTS t; CREATE TABLE t (id {kind} PRIMARY KEY, embedding halfvec(3), \
                 label text, n int); INSERT INTO t SELECT {value}, CASE WHEN n % 10 <> 0 THEN \
                 ARRAY[n, n % 7, 1]::real[]::vector::halfvec END, nullif('c' || n % 4, 'c3'), n \
                 FROM generate_series(1, 100) n"
            ))
            .unwrap();
        let push = [
            "push",
            model,
            &url,
            "--table",
            "t",
            "--from",
            "embedding",
            "--to",
            "v2",
            "--batch",
            "9",
        ];
        let done = answered(&push);
        assert_eq!(
            (&done["written"], &done["without_vector"]),
            (&90.into(), &10.into()),
            "{kind}"
        );
        // Twice (n − 1/4), from the plan's centre on: differences are twice those of n.
        let row = client
            .query_one(
                "SELECT bool_and(abs(v2.x[1] - first.x[1] - 2 * (v2.n - first.n)) < 1e-3) FROM \
                 (SELECT v2::real[] AS x, n FROM t WHERE v2 IS NOT NULL) v2, \
                 (SELECT v2::real[] AS x, n FROM t WHERE n = 1) first",
                &[],
            )
            .unwrap();
        assert!(row.get::<_, bool>(0), "{kind}");
        let file = folder.path().join("pulled.parquet");
        let pulled = answered(&[
            "pull",
            &url,
            "--table",
            "t",
            "--vector",
            "v2",
            "--label",
            "label",
            "--keep",
            "n",
            "--where",
            "n!=5",
            "-o",
            text(&file),
        ]);
        // Of 100: 10 have no vector, 1 is not wanted, and 25 others (3, 7, … 99) have no label.
        assert_eq!(pulled["without_vector"], 10, "{kind}");
        assert_eq!(pulled["without_value"], 25, "{kind}");
        assert_eq!(pulled["rows"], 64, "{kind}");
        let options = metra_files::TableOptions {
            columns: vec!["id".into(), "label".into(), "n".into()],
            ..Default::default()
        };
        let table = metra_files::read_table(&file, &options, &mut |_, _| {}).unwrap();
        let mut firsts = Vec::new();
        let all = 0..table.corpus.len();
        let mut take = |_, block: metra::linalg::Rows<'_>| {
            firsts.extend(block.iter().map(|row| row[0]));
            Ok(())
        };
        table.corpus.scan(all, &mut take).unwrap();
        let number = |row: usize| -> i64 { table.column("n").unwrap().get(row).parse().unwrap() };
        for (row, value) in firsts.iter().enumerate() {
            let expected = 2.0 * (number(row) - number(0)) as f32;
            assert!(
                (value - firsts[0] - expected).abs() < 1e-3,
                "{kind}: vectors and columns are of one row"
            );
        }
        let ids = table.column("id").unwrap();
        for row in 0..ids.len() {
            let n = number(row);
            let same = client
                .query_one(
                    "SELECT id::text = $1 AND label = $2 FROM t WHERE n = $3::bigint",
                    &[
                        &ids.get(row).as_ref(),
                        &table.column("label").unwrap().get(row).as_ref(),
                        &n,
                    ],
                )
                .unwrap();
            assert!(same.get::<_, bool>(0), "{kind} {n}");
        }
        client.batch_execute("DROP TABLE metra_models").unwrap();
    }
    // Limits of pgvector's index are the plan's to refuse.
    let rows = drawn("wide", 4, 2_100, 0.0);
    load(&server, "wide", rows.rows(), &shuffled_ids(4), 0);
    let (_, wide) = save(folder.path(), "wide", chain(2_100));
    let push = [
        "push",
        text(&wide),
        &url,
        "--table",
        "wide",
        "--from",
        "embedding",
        "--to",
        "v2",
    ];
    let said = refused(&[&push[..], &["--index", "hnsw"]].concat());
    assert!(said.contains("more than 2000"), "{said}");
    let done = answered(&[&push[..], &["--index", "hnsw", "--type", "halfvec"]].concat());
    assert_eq!(done["indexed"], true);
    let (_, wider) = save(
        folder.path(),
        "wider",
        Chain::identity(4_100, Space::SquaredL2),
    );
    let rows = drawn("wider", 4, 4_100, 0.0);
    load(&server, "wider", rows.rows(), &shuffled_ids(4), 0);
    let push = [
        "push",
        text(&wider),
        &url,
        "--table",
        "wider",
        "--from",
        "embedding",
        "--to",
        "v2",
    ];
    let said = refused(&[&push[..], &["--index", "hnsw", "--type", "halfvec"]].concat());
    assert!(said.contains("more than 4000"), "{said}");
}
