//! Comparisons by the command: experiment files, interruption, and what it says.

use crate::folder::{Folder, example, number, text};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const EXPERIMENT: &str = r#"
name = "small"
about = "What is learned from labels against what is not."
trials = 4

[data]
vectors = "data.parquet"
label = "label"
id = "id"

[split]
test-where = "split=test"

[judge]
measures = ["map", "p@1"]

[[method]]
name = "Euclid"
method = "euclid"

[[method]]
name = "LDA"
method = "lda"
set = { rank = 11 }
grid = { ridge = [0.001, 0.1, 10] }
published = { map = 0.5 }

[[method]]
name = "WARCA"
method = "warca"
set = { rank = 12, steps = 60, batch = 64, pool = 64 }
grid = { margin = [0.1, 0.3], start = ["pca", "lda"] }

[[claim]]
better = "LDA"
worse = "Euclid"
measure = "map"
source = "a textbook"
"#;

#[test]
fn an_experiment_file_says_all_of_it() {
    let folder = Folder::new();
    example(&folder);
    folder.write("small.toml", EXPERIMENT);
    let (out, _) = folder.good("compare small.toml", &[]);
    assert!(out.contains("LDA > Euclid in map: reproduced"), "{out}");
    assert!(
        out.contains("the base") && out.contains("the best"),
        "{out}"
    );
    let read = |name: &str| -> Value {
        serde_json::from_slice(&folder.bytes(&format!("small-comparison/{name}"))).unwrap()
    };
    let results = read("results.json");
    assert_eq!(results["command"], "metra compare small.toml");
    assert_eq!(results["lines"].as_array().unwrap().len(), 3);
    // The split of the column: 240 rows of 720 are for testing.
    assert_eq!(results["protocol"]["splits"][0]["test"], 240);
    assert_eq!(results["lines"][1]["measures"][0]["published"], 0.5);
    assert_eq!(results["lines"][2]["trials"], 4);
    let gain = &results["lines"][1]["queries"]["gains"][0]["query"];
    assert!(gain.as_str().unwrap().starts_with("row-"), "{gain}");
    let costs = read("costs.json");
    assert!(number(&costs, "/product_seconds") > 0.0);
    assert!(number(&costs, "/lines/WARCA/fit_cpu_seconds") > 0.0);
    // All of it is in the log: nothing is done again, and nothing changes.
    let log = folder.bytes("small-comparison/log.jsonl");
    let before = folder.bytes("small-comparison/results.json");
    let (_, error) = folder.good("compare small.toml", &[]);
    assert!(error.contains("11 of 11 trials are known"), "{error}");
    assert!(folder.bytes("small-comparison/log.jsonl") == log);
    assert!(folder.bytes("small-comparison/results.json") == before);
}

#[cfg(unix)]
#[test]
fn an_interrupted_comparison_resumed_gives_the_same_bytes() {
    let finished = |interrupt: bool| {
        let folder = Folder::new();
        example(&folder);
        // Long enough to be caught on the way.
        folder.write(
            "small.toml",
            &EXPERIMENT.replace("steps = 60", "steps = 400"),
        );
        if interrupt {
            let mut child = folder
                .command("compare small.toml --no-cost", &[])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let log = folder.path("small-comparison/log.jsonl");
            let began = Instant::now();
            let lines = || std::fs::read_to_string(&log).map_or(0, |text| text.lines().count());
            while lines() < 6 && child.try_wait().unwrap().is_none() {
                assert!(began.elapsed() < Duration::from_secs(120));
                std::thread::sleep(Duration::from_millis(5));
            }
            let pid = child.id().to_string();
            assert!(
                Command::new("kill")
                    .args(["-INT", &pid])
                    .status()
                    .unwrap()
                    .success()
            );
            assert_eq!(child.wait().unwrap().code(), Some(130));
            assert!(!folder.path("small-comparison/results.json").exists());
            let (_, error) = folder.good("compare small.toml --no-cost", &[]);
            assert!(error.contains("trials are known from the log"), "{error}");
        } else {
            folder.good("compare small.toml --no-cost --threads 1", &[]);
        }
        let text = String::from_utf8(folder.bytes("small-comparison/results.json")).unwrap();
        // The command is told as it was called.
        text.replace(" --threads 1", "")
    };
    assert!(finished(true) == finished(false));
}

#[test]
fn flags_compare_what_fits_the_data() {
    let folder = Folder::new();
    example(&folder);
    let line = "compare data.parquet --label label --methods lda,pca --draws 2 --no-cost -o out";
    let answer = folder.json(line, &["--prepare", "l2", "--measures", "map"]);
    let names: Vec<&str> = (answer["results"]["lines"].as_array().unwrap().iter())
        .map(|line| line["name"].as_str().unwrap())
        .collect();
    let expected = [
        "euclid",
        "euclid after l2",
        "cosine",
        "cosine after l2",
        "lda",
        "pca",
    ];
    assert_eq!(names, expected);
    let base = answer["results"]["base"].as_str().unwrap();
    assert!(
        base.starts_with("euclid") || base.starts_with("cosine"),
        "{base}"
    );
    assert_eq!(
        answer["results"]["protocol"]["splits"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn a_method_that_fails_is_told_by_name_and_exit_code() {
    let folder = Folder::new();
    example(&folder);
    let broken = "[[method]]\nname = \"Broken\"\nmethod = \"pca\"\nset = { rank = 500 }\n";
    folder.write("small.toml", &format!("{EXPERIMENT}\n{broken}"));
    let output = folder.run(
        "compare small.toml --no-cost",
        &["--methods", "Euclid,LDA,Broken"],
    );
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3), "{out}");
    assert!(out.contains("Broken on split 1: rank"), "{out}");
}

#[test]
fn mistakes_in_experiments_are_named() {
    let folder = Folder::new();
    example(&folder);
    let refused = |change: &str, with: &str, more: &[&str]| {
        folder.write("small.toml", &EXPERIMENT.replace(change, with));
        // The place in the file is shown below the first line of the message.
        let output = folder.run("compare small.toml", more);
        assert_eq!(output.status.code(), Some(1), "{change} → {with}");
        text(&output.stderr)
    };
    let error = refused("ridge =", "rigde =", &[]);
    assert!(
        error.contains("rigde") && error.contains("ridge"),
        "{error}"
    );
    let error = refused("[judge]", "[jugde]", &[]);
    assert!(error.contains("jugde"), "{error}");
    let error = refused("split=test", "split=tset", &[]);
    assert!(error.contains("leaves 720 to learn from and 0"), "{error}");
    let error = refused("worse = \"Euclid\"", "worse = \"Euklid\"", &[]);
    assert!(error.contains("Euklid"), "{error}");
    let error = refused("", "", &["--label", "label"]);
    assert!(error.contains("write --label there"), "{error}");
    let error = refused("", "", &["--methods", "LDA,KISSME"]);
    assert!(error.contains("Euclid, LDA, WARCA"), "{error}");
    let error = refused("data.parquet", "${NO_SUCH_VARIABLE}/data.parquet", &[]);
    assert!(error.contains("NO_SUCH_VARIABLE is not set"), "{error}");
}
