//! The command as users call it: the real binary on real files.
//!
//! Every test makes its files in a folder of its own. Fits are of a few steps, so that the whole
//! takes seconds; what is learned well is the library's business.

mod codes;
mod compare;
#[cfg(unix)]
mod documents;
mod exports;
#[cfg(feature = "images")]
mod features;
mod folder;
mod folds;
mod fuse;
mod gate;
mod habits;
#[cfg(all(feature = "images", target_os = "linux"))]
mod hostile;
mod index;
mod label_sets;
mod leaks;
mod migrate;
#[cfg(feature = "images")]
mod people;
mod plans;
mod production;
mod safe_files;
#[cfg(all(feature = "serve", unix))]
mod serve;
mod several_vectors;
#[cfg(feature = "images")]
mod sheets;
mod sums;
mod supervision;
mod thresholds;
mod two_models;

use folder::{Folder, QUICK, SET, changed, digits, example, number, plain, rows, text, texts};
use metra::data::synthetic::Nuisance;
use metra::linalg::RowBuf;
use metra_files::Column;
use serde_json::Value;
use std::process::Command;

#[test]
fn the_same_seed_gives_the_same_model_on_any_number_of_threads() {
    let folder = Folder::new();
    let train = |threads: u32, seed: u32, name: &str| {
        let line = format!(
            "train --label label --method warca --rank 16 --seed {seed} --threads {threads} \
             -o {name}.safetensors"
        );
        folder.good(&line, &[&QUICK[..], &[&digits()]].concat());
        folder.bytes(&format!("{name}.safetensors"))
    };
    let first = train(1, 1, "first");
    assert!(first == train(1, 1, "again"), "run to run");
    assert!(first == train(2, 1, "two"), "two threads");
    assert!(first != train(1, 2, "other"), "another seed");
}

#[test]
fn train_embed_and_eval_as_the_documentation_has_them() {
    let folder = Folder::new();
    example(&folder);
    let (out, _) = folder.good(
        "train data.parquet --vector vector --label label --where train=true --method warca \
         --rank 64 --set lambda=1e-4 --seed 1 --threads 1 -o m.safetensors",
        &["--set", "steps=150"],
    );
    assert!(out.contains("480 × 70 f32, 12 classes"), "{out}");
    assert!(
        out.contains("verdict") && out.contains("m.safetensors"),
        "{out}"
    );

    folder.good(
        "embed m.safetensors data.parquet -o out.npy --side item",
        &[],
    );
    let embedded = folder.read("out.npy");
    assert_eq!((embedded.len(), embedded.dim()), (720, 64));
    folder.good(
        "embed m.safetensors data.parquet -o query.npy --side query",
        &[],
    );
    assert!(
        folder.read("query.npy") == embedded,
        "one map for both sides"
    );
    let line = "embed m.safetensors data.parquet -o kept.parquet --keep label --keep id";
    let done = folder.json(line, &["--where", "train=false"]);
    assert_eq!((&done["rows"], &done["dim"]), (&240.into(), &64.into()));
    let kept = folder.read("kept.parquet");
    assert_eq!(
        kept.row(12),
        embedded.row(36),
        "rows of the file in their order"
    );

    let eval = |model: &str| {
        let line = format!("eval {model} data.parquet --vector vector --label label");
        folder.json(&line, &["--where", "train=false"])
    };
    let (learned, base) = (eval("m.safetensors"), eval("euclid"));
    assert_eq!(learned["queries"], 240);
    let (learned, base) = (
        number(&learned, "/measures/map"),
        number(&base, "/measures/map"),
    );
    assert!(learned > base + 0.05 && learned <= 1.0, "{learned}, {base}");

    let line = "eval m.safetensors data.parquet --label label --where split=test \
                --gallery-where split=train --base euclid";
    let against = folder.json(line, &["--measures", "map,p@1"]);
    assert_eq!(against["queries"], 240);
    assert_eq!(against["comparison"][0]["measure"], "map");
    assert!(
        number(&against, "/comparison/0/difference") > 0.05,
        "{against:#}"
    );
    // The same in words.
    let (out, _) = folder.good(line, &["--measures", "map,p@1"]);
    assert!(
        out.contains("queries     240") && out.contains("95 % interval"),
        "{out}"
    );
}

#[test]
fn queries_items_and_judgements_in_files_of_their_own() {
    let folder = Folder::new();
    let (all, classes) = rows(SET, 360);
    let part = |range: std::ops::Range<usize>| {
        RowBuf::from_values(
            all.rows().slice(range.start, range.end).values().to_vec(),
            SET.dim(),
        )
    };
    let names = |kind: &str, len: usize| vec![("id", texts(len, |row| format!("{kind}{row}")))];
    folder.write_parquet("q.parquet", &part(0..120).unwrap(), &names("q", 120));
    folder.write_parquet("d.parquet", &part(120..360).unwrap(), &names("d", 240));
    let mut qrels = String::from("elsewhere 0 d1 1\nq1 0 nowhere 1\n");
    for query in 0..110 {
        for item in (120..360).filter(|item| classes[*item] == classes[query]) {
            qrels += &format!("q{query} 0 d{} 1\n", item - 120);
        }
    }
    folder.write("qrels.txt", &qrels);
    let files = [
        "--queries",
        "q.parquet",
        "--items",
        "d.parquet",
        "--qrels",
        "qrels.txt",
    ];
    let files = [&files[..], &["--id", "id"]].concat();
    let line = "train --method warca --rank 6 --set steps=300 -o m.safetensors";
    let (out, error) = folder.good(line, &[&QUICK[2..], &files].concat());
    let expected = "240 × 12 f32 items, 120 queries, 2,200 relevant pairs";
    assert!(out.contains(expected), "{out}");
    let left_out = "1 lines left out whose query was not read, 1 whose item was not read";
    assert!(error.contains(left_out), "{error}");
    let eval = |model: &str| folder.json(&format!("eval {model}"), &files);
    let (learned, base) = (eval("m.safetensors"), eval("euclid"));
    assert_eq!(learned["queries"], 110);
    let pointer = "/measures/ndcg@10";
    let (learned, base) = (number(&learned, pointer), number(&base, pointer));
    assert!(learned > base + 0.1, "{learned}, {base}");
    // The order of tied items by id, and queries without a relevant item as 0.
    let all = [&files[..], &["--ties", "trec", "--count-empty"]].concat();
    let counted = folder.json("eval m.safetensors", &all);
    assert_eq!(counted["queries"], 120);
    assert!(
        (number(&counted, pointer) - learned * 110.0 / 120.0).abs() < 1e-3,
        "{counted:#}"
    );
    let message = folder.refused("eval euclid", &files[..6]);
    assert!(message.contains("--id"), "{message}");
}

/// Persons seen once by each of two cameras.
fn persons(folder: &Folder) {
    let (rows, _) = rows(Nuisance { classes: 60, ..SET }, 120);
    let columns = [
        (
            "label",
            Column::Integers((0..120).map(|row| row % 60).collect()),
        ),
        (
            "camera",
            Column::Integers((0..120).map(|row| row / 60).collect()),
        ),
    ];
    folder.write_parquet("persons.parquet", &rows, &columns);
    let (even, odd): (Vec<i64>, Vec<i64>) = (0..60).partition(|person| person % 2 == 0);
    let content = serde_json::json!({
        "by": "label",
        "splits": [{"train": even, "test": odd}, {"train": odd, "test": even}],
    });
    folder.write("splits.json", &content.to_string());
}

#[test]
fn splits_single_shot_and_cameras() {
    let folder = Folder::new();
    persons(&folder);
    let protocol = "--label label --camera camera --protocol single-shot --splits splits.json";
    let found = folder.json(&format!("eval euclid persons.parquet {protocol}"), &[]);
    assert_eq!(found["splits"].as_array().unwrap().len(), 2);
    // Thirty persons are searched for from both sides in each of two splits.
    assert_eq!(found["queries"], 120);
    let mean = (number(&found, "/splits/0/cmc@1") + number(&found, "/splits/1/cmc@1")) / 2.0;
    assert!((mean - number(&found, "/measures/cmc@1")).abs() < 1e-12);

    let line = format!("train persons.parquet {protocol} --method lda --rank 4 --base euclid");
    let report = folder.json(&line, &[]);
    assert_eq!(report["splits"].as_array().unwrap().len(), 2);
    assert_eq!(report["summary"][0]["splits"], 2);
    assert_eq!(
        (&report["holdout"], &report["protocol"]),
        (&"identities".into(), &"single-shot".into())
    );
    let report = folder.json(&line, &["--split", "1", "-o", "m.safetensors"]);
    assert_eq!(report["splits"].as_array().unwrap().len(), 1);
    assert_eq!(report["splits"][0]["test"], 60);
    let (out, _) = folder.good(
        &format!("eval m.safetensors persons.parquet {protocol} --allow-seen"),
        &[],
    );
    assert!(out.contains("over 2 splits"), "{out}");
    // The model was trained on the second one: on the first it has seen half of the persons.
    assert!(
        out.contains("WARNING") && out.contains("not a held-out result"),
        "{out}"
    );

    let message = folder.refused(&line, &["-o", "m.safetensors"]);
    assert!(message.contains("--split"), "{message}");
    let message = folder.refused(&line, &["--split", "2"]);
    assert!(
        message.contains("--split must be below 2, but is 2"),
        "{message}"
    );
    let message = folder.refused(
        "eval euclid persons.parquet --label label --protocol cross-camera",
        &[],
    );
    assert!(message.contains("camera"), "{message}");
    let line = "eval euclid persons.parquet --label label --camera camera --protocol cross-camera";
    assert_eq!(folder.json(line, &[])["queries"], 120);
}

#[test]
fn search_inspect_methods_and_check_in_words_and_in_json() {
    let folder = Folder::new();
    let digits = digits();
    let train = "train --label label --method lda --rank 8 --score euclid -o m.safetensors";
    let report = folder.json(train, &[&digits]);
    assert_eq!(report["method"], "lda");
    assert_eq!(report["model"], "m.safetensors");
    assert!(
        number(&report, "/splits/0/measures/0/learned") > 0.7,
        "{report:#}"
    );

    let search = "search m.safetensors --label label -k 3";
    let answers = folder.json(search, &[&digits]);
    let answers = answers.as_array().unwrap();
    assert_eq!(answers.len(), 1797);
    for (row, answer) in answers.iter().enumerate().take(50) {
        let items = answer["items"].as_array().unwrap();
        assert_eq!(
            (items.len(), &answer["query"]),
            (3, &row.to_string().into())
        );
        assert!(
            items.iter().all(|item| item["item"] != answer["query"]),
            "itself left out"
        );
        let far = |item: &Value| item["dissimilarity"].as_f64().unwrap();
        assert!(items.windows(2).all(|pair| far(&pair[0]) <= far(&pair[1])));
    }
    let (out, _) = folder.good(search, &[&digits]);
    assert!(out.starts_with("query 0\n    1  "), "{out}");
    let line = "search m.safetensors --label label --where label=7 -k 1";
    let asked = folder.json(line, &["--query", &digits, &digits]);
    let mut hits = asked
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| &answer["items"][0]);
    assert!(
        hits.all(|hit| hit["label"] == "7"),
        "only sevens can be found"
    );
    folder.good("search m.safetensors --run run.txt -k 5", &[&digits]);
    let run = text(&folder.bytes("run.txt"));
    assert_eq!(run.lines().count(), 5 * 1797);
    assert!(run.lines().all(|line| line.split(' ').count() == 6));

    let shown = folder.json("inspect m.safetensors", &[]);
    assert_eq!(
        (&shown["input_dim"], &shown["output_dim"]),
        (&64.into(), &8.into())
    );
    assert_eq!(shown["origin"]["method"], "lda");
    assert!(
        shown["origin"]["held_out"]["measures"]["map"].is_object(),
        "{shown:#}"
    );
    let (out, _) = folder.good("inspect m.safetensors", &[]);
    assert!(
        out.contains("64 → 8 dimensions") && out.contains("held out    rows"),
        "{out}"
    );

    let methods = folder.json("methods", &[]);
    let names: Vec<&str> = (methods.as_array().unwrap().iter())
        .map(|method| method["name"].as_str().unwrap())
        .collect();
    assert!(
        names.starts_with(&["euclid", "cosine"]) && names.contains(&"warca"),
        "{names:?}"
    );
    assert_eq!(
        folder.json("methods warca", &[])[0]["parameters"][0]["name"],
        "rank"
    );
    let (out, _) = folder.good("methods", &[]);
    assert!(
        out.contains("lambda=1e-4") && out.contains("centre-groups"),
        "{out}"
    );

    let report = folder.json("check --label label", &[&digits]);
    assert_eq!(
        (&report["rows"], &report["dim"]),
        (&1797.into(), &64.into())
    );
    assert_eq!(report["classes"]["count"], 10);
    assert!(number(&report, "/headroom/0/p1") > 0.9, "{report:#}");
    let (out, _) = folder.good("check --label label", &[&digits]);
    assert!(
        out.contains("1,797 × 64 u8") && out.contains("10 of 174 to 183 rows"),
        "{out}"
    );
}

#[test]
fn values_beyond_f32_are_named_or_scaled_and_counted() {
    let folder = Folder::new();
    let good = plain(&folder);
    let train = |name: &str| format!("train {name}.npy --label y.txt --rank 4 -o {name}.model");

    folder.write_f64(
        "huge.npy",
        &changed(&good, |row, column, value| {
            if (row, column) == (17, 3) {
                1e200
            } else {
                value
            }
        }),
    );
    let message = folder.refused(&train("huge"), &QUICK);
    assert!(
        message.contains("huge.npy: row 17, column 3: expected a value within"),
        "{message}"
    );
    assert!(!folder.path("huge.model").exists());
    folder.write_f64("all.npy", &changed(&good, |_, _, value| value * 1e200));
    let message = folder.refused(&train("all"), &QUICK);
    assert!(
        message.contains("all.npy: row 0, column 0: expected a value within"),
        "{message}"
    );

    folder.write_f64("tiny.npy", &changed(&good, |_, _, value| value * 1e-200));
    let (_, error) = folder.good(&train("tiny"), &QUICK);
    assert!(
        error.contains("WARN tiny.npy: all values scaled by "),
        "{error}"
    );
    folder.write_f64(
        "mixed.npy",
        &changed(
            &good,
            |_, column, value| {
                if column < 3 { value * 1e-200 } else { value }
            },
        ),
    );
    let (_, error) = folder.good(&train("mixed"), &QUICK);
    assert!(
        error.contains("WARN mixed.npy: 3 columns of the vectors are lost"),
        "{error}"
    );
    // The model scales at use what it scaled in training.
    folder.good(&train("x"), &QUICK);
    folder.good("embed tiny.model tiny.npy -o tiny.out.npy", &[]);
    let map = |name: &str| {
        let line = format!("eval {name}.model {name}.npy --label y.txt --measures map");
        number(&folder.json(&line, &[]), "/measures/map")
    };
    assert!(
        (map("tiny") - map("x")).abs() < 0.02,
        "{}, {}",
        map("tiny"),
        map("x")
    );
}

#[test]
fn an_offset_is_kept_by_the_model() {
    let folder = Folder::new();
    let good = plain(&folder);
    folder.write_f64("far.npy", &changed(&good, |_, _, value| value + 1e8));
    for name in ["x", "far"] {
        let line = format!("train {name}.npy --label y.txt --rank 4 -o {name}.model");
        let (_, error) = folder.good(&line, &QUICK);
        let warned = error.contains("12 columns of the vectors are shifted");
        assert_eq!(warned, name == "far", "{error}");
        folder.good(
            &format!("embed {name}.model {name}.npy -o {name}.out.npy"),
            &[],
        );
    }
    let (near, far) = (folder.read("x.out.npy"), folder.read("far.out.npy"));
    assert_eq!((far.len(), far.dim()), (240, 4));
    // The offset takes 8 of the 16 digits of f64; the rest must come through.
    let apart = |rows: &RowBuf, row: usize| -> f32 {
        let pairs = rows.row(row).iter().zip(rows.row(row + 1));
        pairs.map(|(a, b)| (a - b).powi(2)).sum::<f32>().sqrt()
    };
    for row in 0..239 {
        let (near, far) = (apart(&near, row), apart(&far, row));
        assert!(
            (near - far).abs() < 0.01 * near.max(0.1),
            "row {row}: {near}, {far}"
        );
    }
    assert_eq!(folder.json("inspect far.model", &[])["narrowed"], true);
}

#[test]
fn files_without_enough_rows_are_refused() {
    let folder = Folder::new();
    plain(&folder);
    folder.write("none.npy", "");
    folder.write("none.parquet", "");
    folder.write("none.csv", "");
    folder.write("head.csv", "vector_0,vector_1,label\n");
    for name in ["none.npy", "none.parquet", "none.csv"] {
        let message = folder.refused(&format!("train {name} --label label"), &[]);
        assert!(
            message.contains(&format!("{name}: expected vectors")),
            "{message}"
        );
    }
    let message = folder.refused("train head.csv --label label", &[]);
    assert!(message.contains("head.csv: expected rows"), "{message}");
    folder.write("one.csv", "vector_0,vector_1,label\n1,2,a\n");
    let message = folder.refused("train one.csv --label label", &[]);
    assert!(
        message.contains("1 of 1 to learn from and 0 to judge by"),
        "{message}"
    );
    for method in ["lda", "warca"] {
        let line = format!("train one.csv --label label --holdout none --method {method}");
        let message = folder.refused(&line, &[]);
        assert!(message.contains("expected at least "), "{message}");
    }
    let report = folder.json("check one.csv --label label", &[]);
    assert_eq!(
        (&report["rows"], &report["classes"]["of_one_row"]),
        (&1.into(), &1.into())
    );
    let message = folder.refused("train missing.npy --label y.txt", &[]);
    assert!(message.contains("missing.npy: "), "{message}");
    folder.write("short.txt", "1\n2\n");
    let message = folder.refused("train x.npy --label short.txt", &[]);
    assert!(
        message.contains("short.txt: expected 240 values"),
        "{message}"
    );
}

#[test]
fn what_is_not_known_is_answered_with_what_is() {
    let folder = Folder::new();
    example(&folder);
    let refused = |line: &str, parts: &[&str]| {
        let message = folder.refused(&format!("{line} -o m.safetensors"), &[]);
        assert!(
            parts.iter().all(|part| message.contains(part)),
            "{line}: {message}"
        );
        assert!(!folder.path("m.safetensors").exists());
    };
    let columns = [
        "\"vector\"",
        "\"label\"",
        "\"train\"",
        "\"split\"",
        "\"id\"",
    ];
    refused("train data.parquet --label lable", &columns);
    refused("train data.parquet --label label --vector vec", &columns);
    refused(
        "train data.parquet --label label --where trian=true",
        &columns,
    );
    refused(
        "train data.parquet --label label --where train=yes",
        &["no row of 720 passes the filter train=yes", "false, true"],
    );
    refused(
        "train data.parquet --label label --set lamda=1",
        &["\"lamda\"", "lambda", "margin", "patience"],
    );
    refused(
        "train data.parquet --label label --method nearest",
        &["\"nearest\"", "lda, kissme", "warca"],
    );
    refused(
        "train data.parquet --label label --rank 71",
        &["rank must be between 1 and 70 (the input dimension), but is 71"],
    );
    refused("train data.parquet", &["--label", "--qrels"]);
}

#[test]
fn rows_that_cannot_be_prepared_are_named_as_the_file_counts_them() {
    let folder = Folder::new();
    let good = changed(&plain(&folder), |_, _, value| value.abs());
    folder.write_f64(
        "negative.npy",
        &changed(&good, |row, column, value| {
            if (row, column) == (150, 2) {
                -1.0
            } else {
                value
            }
        }),
    );
    for method in ["euclid", "pca", "lda", "warca"] {
        let line = format!("train negative.npy --label y.txt --method {method} --prepare sqrt");
        let message = folder.refused(&line, &[]);
        let expected = "negative.npy: row 150, column 2: expected a value at least 0 for the \
                        square root, but found -1";
        assert!(message.contains(expected), "{method}: {message}");
    }
    // Half of the rows are filtered away, and lines count the header.
    let mut lines = String::from("vector_0,vector_1,label,use\n");
    for (row, values) in good.iter().enumerate().take(200) {
        let value = if row == 150 { -1.0 } else { values[0] };
        lines += &format!("{},{value},{},{}\n", values[1], row % 10 / 2, row % 2);
    }
    folder.write("negative.csv", &lines);
    let line = "train negative.csv --label label --where use=0 --method pca --prepare sqrt";
    let message = folder.refused(line, &[]);
    assert!(
        message.contains("negative.csv: line 152, column 1: "),
        "{message}"
    );
    // A model that was trained elsewhere meets the same row at use.
    let train = "train x.npy --label y.txt --method pca --rank 4 --prepare l2 -o l2.model";
    folder.good(train, &[]);
    let zero = changed(&good, |row, _, value| if row == 77 { 0.0 } else { value });
    folder.write_f64("zero.npy", &zero);
    let expected = "zero.npy: row 77: expected a vector of non-zero length";
    for line in [
        "embed l2.model zero.npy -o out.npy",
        "search l2.model zero.npy",
        "eval l2.model zero.npy --label y.txt",
        "eval cosine zero.npy --label y.txt",
    ] {
        let message = folder.refused(line, &[]);
        assert!(message.contains(expected), "{line}: {message}");
    }
    assert!(!folder.path("out.npy").exists());
    // Inside a study the part that is judged has numbers of its own: at most 48 of them here.
    let zeros = changed(&good, |row, _, value| if row >= 120 { 0.0 } else { value });
    folder.write_f64("zeros.npy", &zeros);
    let message = folder.refused("train zeros.npy --label y.txt --method cosine", &[]);
    let row = message.split("zeros.npy: row ").nth(1);
    let row = row.and_then(|rest| rest.split(':').next()?.parse::<u64>().ok());
    assert!(
        row.is_some_and(|row| (120..240).contains(&row)),
        "{message}"
    );
}

#[test]
fn vectors_of_another_dimension_are_refused_at_use() {
    let folder = Folder::new();
    let good = plain(&folder);
    folder.good(
        "train x.npy --label y.txt --method pca --rank 4 -o m.model",
        &[],
    );
    let narrow: Vec<Vec<f64>> = good.iter().map(|row| row[..11].to_vec()).collect();
    folder.write_f64("narrow.npy", &narrow);
    for line in [
        "embed m.model narrow.npy -o out.npy",
        "search m.model narrow.npy",
        "search m.model x.npy --query narrow.npy",
        "eval m.model narrow.npy --label y.txt",
    ] {
        let message = folder.refused(line, &[]);
        assert!(
            message.contains("expected 12") && message.contains("found 11"),
            "{message}"
        );
    }
    assert!(!folder.path("out.npy").exists());
}

#[test]
fn a_damaged_model_is_refused() {
    let folder = Folder::new();
    plain(&folder);
    folder.good(
        "train x.npy --label y.txt --method pca --rank 4 -o m.model",
        &[],
    );
    let mut bytes = folder.bytes("m.model");
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(folder.path("damaged.model"), &bytes).unwrap();
    bytes.truncate(bytes.len() / 2);
    std::fs::write(folder.path("cut.model"), &bytes).unwrap();
    for (name, part) in [
        ("damaged", "digest"),
        ("cut", ""),
        ("x.npy", ""),
        ("y.txt", ""),
    ] {
        let name = if name.contains('.') {
            name.to_owned()
        } else {
            format!("{name}.model")
        };
        for verb in [
            "inspect NAME",
            "embed NAME x.npy -o out.npy",
            "eval NAME x.npy --label y.txt",
        ] {
            let message = folder.refused(&verb.replace("NAME", &name), &[]);
            assert!(
                message.contains("model file: ") && message.contains(part),
                "{message}"
            );
        }
    }
}

/// Ctrl-C during a long training: the code that shells know, and no file, not even a partial one.
#[cfg(unix)]
#[test]
fn an_interrupted_training_leaves_nothing_behind() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    let folder = Folder::new();
    plain(&folder);
    let before = folder.names();
    let line = "train x.npy --label y.txt --rank 4 --set steps=100000000 -o m.safetensors";
    let mut command = folder.command(line, &[]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut messages = BufReader::new(child.stderr.take().unwrap()).lines();
    // The parts are announced right before the first fit.
    let announced = |line: &std::io::Result<String>| line.as_ref().unwrap().contains("held out by");
    assert!(
        messages.any(|line| announced(&line)),
        "training did not begin"
    );
    std::thread::sleep(Duration::from_millis(200));
    assert!(
        child.try_wait().unwrap().is_none(),
        "training ended too early"
    );
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    let asked = Instant::now();
    let rest: Vec<String> = messages.map(Result::unwrap).collect();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130), "{rest:?}");
    assert!(asked.elapsed() < Duration::from_secs(10));
    assert!(
        rest.iter()
            .any(|line| line.contains("no file was left half-written")),
        "{rest:?}"
    );
    assert_eq!(folder.names(), before);
}

#[test]
fn re_ranking_changes_the_ranking_and_says_so() {
    let folder = Folder::new();
    example(&folder);
    let eval = |more: &str| {
        let line = format!("eval euclid data.parquet --vector vector --label label {more}");
        folder.json(&line, &["--where", "train=false"])
    };
    let plain = eval("");
    assert_eq!(plain.get("rerank"), None);
    let found = eval("--rerank default");
    assert_eq!(found["rerank"], "k1=20,k2=6,lambda=0.3");
    assert_eq!(found["queries"], plain["queries"]);
    let map = |found: &Value| number(found, "/measures/map");
    assert!((map(&found) - map(&plain)).abs() > 1e-6);
    // The distance alone is the ranking as it was, but for rounding.
    assert!((map(&eval("--rerank lambda=1")) - map(&plain)).abs() < 1e-4);
    // Single-shot: queries and gallery are different rows, joined to be re-ranked.
    let shots = eval("--protocol single-shot --rerank k1=5,k2=2");
    assert_eq!(shots["queries"], 12);
    let line = "eval euclid data.parquet --vector vector --label label --rerank k2=50";
    let error = text(&folder.run(line, &[]).stderr);
    assert!(error.contains("k2 must be between 1 and 20"), "{error}");
}

#[test]
#[cfg(not(feature = "cluster"))]
fn a_build_without_clusters_says_how_to_get_one() {
    let message = Folder::new().refused("cluster executor --scheduler node1:50050", &[]);
    assert!(message.contains("no cluster support"), "{message}");
    assert!(message.contains("--features cluster"), "{message}");
}

#[test]
fn a_file_that_is_not_there_is_said_once() {
    let message = Folder::new().refused("check absent.parquet", &[]);
    assert!(message.contains("absent.parquet"), "{message}");
    assert_eq!(message.matches("No such file").count(), 1, "{message}");
    let message = Folder::new().refused("attributes list absent.safetensors", &[]);
    assert_eq!(message.matches("absent").count(), 1, "{message}");
}
