//! What the golden table holds: kinds of supervision for every method, and lines of the other verbs.

/// The rows that models map.
pub(super) const ROWS: &str = "items.csv --vector v --camera camera";

/// Kinds of supervision with their arguments.
pub(super) const SUPERVISION: &[(&str, &str)] = &[
    ("labels", "items.csv --vector v --label class"),
    (
        "cameras",
        "items.csv --vector v --label class --camera camera --holdout identities --prepare sqrt+centre-groups",
    ),
    (
        "qrels",
        "--queries queries.csv --items items.csv --qrels qrels.txt --id id --vector v",
    ),
    ("within", "items.csv --vector v --id id --qrels within.txt"),
    ("pairs", "items.csv --vector v --id id --pairs pairs.tsv"),
    (
        "pairs-judged",
        "items.csv --vector v --id id --pairs pairs.tsv --label class",
    ),
    (
        "triplets",
        "items.csv --vector v --id id --triplets triplets.tsv",
    ),
    (
        "quadruplets",
        "items.csv --vector v --id id --quadruplets quadruplets.tsv",
    ),
    (
        "orderings",
        "items.csv --vector v --label class --orderings orders.txt",
    ),
    (
        "taxonomy",
        "items.csv --vector v --label class --taxonomy tree.tsv",
    ),
];

/// Settings under which a method ends soon, of those that it has.
pub(super) fn quick(method: &str, parameters: &[String]) -> String {
    // A metric on attribute scores has fewer dimensions than this rank.
    let settings = [
        ("steps", "30"),
        ("batch", "32"),
        ("pool", "32"),
        ("rank", "3"),
        ("cycles", "3"),
    ];
    let known = |name: &str| parameters.iter().any(|parameter| parameter == name);
    let lines = settings
        .iter()
        .filter(|(name, _)| known(name) && !(method == "mlr" && *name == "steps"));
    let lines = lines.map(|(name, value)| format!("--set {name}={value}"));
    lines.collect::<Vec<_>>().join(" ")
}

/// Name, line and files written, in an order in which each finds what it needs.
pub(super) const VERBS: &[(&str, &str, &[&str])] = &[
    ("methods", "methods", &[]),
    ("check", "check items.csv --vector v --label class", &[]),
    (
        "train/file",
        "train items.csv --vector v --label class --method lda --rank 4 --where part=train -o m.safetensors --report train.html",
        &["m.safetensors"],
    ),
    (
        "train/tuned",
        "train items.csv --vector v --label class --method lda --tune ridge=0.01,0.1,1 --tune prepare=none,sqrt --draws 2",
        &[],
    ),
    (
        "train/folds",
        "train --queries queries.csv --items items.csv --qrels qrels.txt --id id --vector v --method slr-adapter --folds 3",
        &[],
    ),
    (
        "train/splits",
        "train items.csv --vector v --label class --camera camera --protocol single-shot --repeats 2 --splits splits.json --method kissme --rank 4",
        &[],
    ),
    (
        "train/refit",
        "train items.csv --vector v --label class --method xqda --rank 4 --test-where part=test --refit -o refit.safetensors",
        &["refit.safetensors"],
    ),
    (
        "train/classifier",
        "train items.csv --vector v --label class --taxonomy tree.tsv --classifier knn:3 --method lda --rank 4",
        &[],
    ),
    (
        "compare",
        "compare items.csv --vector v --label class --methods euclid,cosine,lda,warca --trials 2 --draws 2 --no-cost --output out",
        &["out/results.json"],
    ),
    (
        "compare/file",
        "compare experiment.toml --no-cost --output experiment",
        &["experiment/results.json"],
    ),
    (
        "eval/labels",
        "eval m.safetensors items.csv --vector v --label class --where part=test --base euclid",
        &[],
    ),
    (
        "eval/gallery",
        "eval m.safetensors items.csv --vector v --label class --where part=test --gallery-where part=train",
        &[],
    ),
    (
        "eval/cross-camera",
        "eval m.safetensors items.csv --vector v --label class --camera camera --protocol cross-camera",
        &[],
    ),
    (
        "eval/qrels",
        "eval m.safetensors --queries queries.csv --items items.csv --qrels qrels.txt --id id --vector v --base cosine",
        &[],
    ),
    (
        "eval/pairs",
        "eval m.safetensors items.csv --vector v --id id --pairs pairs.tsv --triplets triplets.tsv --quadruplets quadruplets.tsv --base euclid",
        &[],
    ),
    (
        "gate/labels",
        "gate --base euclid --candidate m.safetensors --data items.csv --vector v --label class --where part=test",
        &[],
    ),
    (
        "gate/qrels",
        "gate --base cosine --candidate m.safetensors --queries queries.csv --items items.csv --qrels qrels.txt --id id --vector v",
        &[],
    ),
    (
        "budget",
        "budget items.csv --vector v --label class --method lda --rank 4 --halvings 2 --label-draws 2",
        &[],
    ),
    (
        "clicks",
        "clicks clicks.tsv -o clicked.txt",
        &["clicked.txt"],
    ),
    (
        "search",
        "search m.safetensors items.csv --vector v --id id -k 3",
        &[],
    ),
    (
        "search/queries",
        "search m.safetensors items.csv --query queries.csv --vector v --id id -k 3",
        &[],
    ),
    (
        "index",
        "index m.safetensors items.csv --vector v --id id --label class -o index",
        &[],
    ),
    (
        "search/index",
        "search m.safetensors index --query queries.csv --vector v -k 3",
        &[],
    ),
    (
        "plan",
        "plan m.safetensors --sample items.csv --vector v",
        &[],
    ),
    ("plan/pgvector", "plan m.safetensors --store pgvector", &[]),
    ("inspect", "inspect m.safetensors", &[]),
    (
        "calibrate",
        "calibrate m.safetensors items.csv --vector v --label class --where part=test --fmr 0.1 -o c.safetensors",
        &["c.safetensors"],
    ),
    (
        "decide",
        "decide c.safetensors items.csv --vector v --id id --pairs pairs.tsv",
        &[],
    ),
    (
        "export/npy",
        "export m.safetensors -o map.npy",
        &["map.npy"],
    ),
    (
        "export/onnx",
        "export m.safetensors -o map.onnx",
        &["map.onnx"],
    ),
    (
        "export/sql",
        "export m.safetensors -o map.sql",
        &["map.sql"],
    ),
    ("export/c", "export m.safetensors -o map.h", &["map.h"]),
    (
        "train/attributes",
        "train items.csv --vector v --label class --orderings orders.txt --method attributes -o a.safetensors",
        &["a.safetensors"],
    ),
    ("attributes/list", "attributes list a.safetensors", &[]),
    (
        "attributes/rank",
        "attributes rank a.safetensors items.csv --vector v --id id --by bright -k 5",
        &[],
    ),
    (
        "attributes/like",
        "attributes like a.safetensors items.csv --vector v --id id --row r3 --more bright -k 5",
        &[],
    ),
    (
        "attributes/eval",
        "attributes eval a.safetensors items.csv --vector v --label class --orderings orders.txt",
        &[],
    ),
    (
        "features/stripes",
        "features stripes images --pattern {person}_{camera} -o stripes.parquet",
        &[],
    ),
    ("features/gist", "features gist images -o gist.parquet", &[]),
    (
        "embed/stripes",
        "train stripes.parquet --label person --camera camera --method lda --rank 3 --holdout none -o stripes.safetensors",
        &["stripes.safetensors"],
    ),
];
