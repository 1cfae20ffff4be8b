//! Rankings added up: weights that are learned, written and used again, and the run that is evaluated.

use crate::folder::{Folder, number, text};
use metra::internal::Stream;
use std::fmt::Write;

/// Three runs of 60 queries over 40 documents, and judgements of one document each: `good` ranks it well, `fair` less so,
/// `noise` not at all.
fn runs(folder: &Folder) {
    let mut stream = Stream::new(7, "fuse test", 0);
    let mut texts = [String::new(), String::new(), String::new()];
    let mut qrels = String::new();
    for query in 0..60 {
        let relevant = (query * 7) % 40;
        writeln!(qrels, "q{query} 0 d{relevant} 1").unwrap();
        for (text, signal) in texts.iter_mut().zip([0.5, 0.2, 0.0]) {
            for document in 0..40 {
                let score = stream.unit() + if document == relevant { signal } else { 0.0 };
                writeln!(text, "q{query} Q0 d{document} 1 {score:.6} t").unwrap();
            }
        }
    }
    for (name, text) in ["good", "fair", "noise"].iter().zip(texts) {
        folder.write(&format!("{name}.run"), &text);
    }
    folder.write("qrels.txt", &qrels);
}

#[test]
fn weights_are_learned_written_and_used_again() {
    let folder = Folder::new();
    runs(&folder);
    let line = "fuse good.run fair.run noise.run --qrels qrels.txt -o weights.json --run unseen.run --measures mrr,p@1";
    let found = folder.json(line, &[]);
    assert_eq!(found["queries"], 60);
    let weight = |name: &str| number(&found, &format!("/weights/{name}"));
    assert!(
        weight("good") > 2.0 * weight("fair") && weight("fair") > weight("noise"),
        "{found}"
    );
    let learned = number(&found, "/lines/5/measures/mrr");
    assert!(
        learned > number(&found, "/lines/2/measures/mrr") + 0.3,
        "{found}"
    );
    // The run was ranked by weights that had not seen its queries: evaluating it gives what was reported.
    let again = folder.json(
        "eval --run unseen.run --qrels qrels.txt --measures mrr,p@1",
        &[],
    );
    assert!(
        (number(&again, "/measures/mrr") - learned).abs() < 1e-9,
        "{again}"
    );

    // In any order of the runs, and the same bytes every time.
    let fuse = |order: &str, run: &str| {
        folder.good(
            &format!("fuse {order} --weights weights.json --run {run} -k 5"),
            &[],
        );
        text(&folder.bytes(run))
    };
    let fused = fuse("good.run fair.run noise.run", "one.run");
    assert_eq!(fused, fuse("noise.run good.run fair.run", "two.run"));
    assert_eq!(fused.lines().count(), 60 * 5);
    folder.good(
        "fuse good.run fair.run noise.run --qrels qrels.txt -o second.json --measures mrr,p@1 --threads 1",
        &[],
    );
    assert_eq!(folder.bytes("weights.json"), folder.bytes("second.json"));

    let (out, _) = folder.good("fuse good.run noise.run --qrels qrels.txt", &[]);
    assert!(
        out.contains("reciprocal ranks") && out.contains("\nadvice      "),
        "{out}"
    );
    folder.good("fuse good.run fair.run --equal rrf --run equal.run", &[]);
    let sum = text(&folder.bytes("equal.run"));
    let best: Vec<&str> = sum.lines().next().unwrap().split(' ').collect();
    let place = |run: &str| {
        let run = text(&folder.bytes(run));
        let score = |line: &str| line.split(' ').nth(4).unwrap().parse::<f64>().unwrap();
        let mut of_query: Vec<&str> = run.lines().filter(|line| line.starts_with("q0 ")).collect();
        of_query.sort_by(|a, b| score(b).total_cmp(&score(a)));
        let of_best = |line: &&str| line.split(' ').nth(2) == Some(best[2]);
        1 + of_query.iter().position(of_best).unwrap()
    };
    assert_eq!(best[0], "q0");
    let expected = 1.0 / (60 + place("good.run")) as f64 + 1.0 / (60 + place("fair.run")) as f64;
    let found: f64 = best[4].parse().unwrap();
    assert!((found - expected).abs() < 1e-6, "{found} {expected}");
}

#[test]
fn what_cannot_be_fused_says_why() {
    let folder = Folder::new();
    runs(&folder);
    folder.write("other.run", "x Q0 d1 1 0.5 t\n");
    folder.write("other.qrels", "x 0 d1 1\n");
    folder.write(
        "weights.json",
        r#"{"format": 1, "scale": "raw", "lists": [{"name": "a", "weight": 1}]}"#,
    );
    std::fs::create_dir(folder.path("sub")).unwrap();
    folder.write("sub/good.run", "q1 Q0 d1 1 0.5 t\n");
    for (line, expected) in [
        (
            "fuse good.run other.run --equal rrf --run x.run",
            "no query is in two of them",
        ),
        (
            "fuse good.run sub/good.run --equal rrf --run x.run",
            "another run is called \"good\"",
        ),
        (
            "fuse good.run fair.run --qrels other.qrels",
            "are the ids the same?",
        ),
        (
            "fuse good.run fair.run --qrels qrels.txt --folds 61",
            "folds must be between 2 and 60",
        ),
        (
            "fuse good.run fair.run --qrels qrels.txt --measures accuracy",
            "measure must be one of a ranking",
        ),
        (
            "fuse good.run fair.run --weights weights.json --run x.run",
            "weights are for a, but the runs are called good, fair",
        ),
        (
            "fuse good.run fair.run --equal rrf --run fair.run",
            "read by this command",
        ),
        (
            "fuse good.run fair.run --equal rrf --run x.run -k 0",
            "-k must be at least 1",
        ),
    ] {
        let error = folder.refused(line, &[]);
        assert!(error.contains(expected), "{line}: {error}");
    }
    assert!(!folder.path("x.run").exists());
}
