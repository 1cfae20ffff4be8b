//! Rows of several vectors: a title's and a body's.

use super::folder::{Folder, number};
use metra::internal::Stream;
use std::fmt::Write;

/// Items whose title tells their class and whose body does not, and queries of one vector.
fn items(folder: &Folder) {
    let mut stream = Stream::new(4, "several vectors", 0);
    let centres: Vec<f64> = (0..12 * 3).map(|_| stream.normal()).collect();
    let mut lines = [String::new(), String::new()];
    for row in 0..240 {
        let class = row % 12;
        let title: Vec<f64> = (0..3)
            .map(|at| centres[3 * class + at] + 0.2 * stream.normal())
            .collect();
        let body: Vec<f64> = (0..3).map(|_| 20.0 * stream.normal()).collect();
        let number = row / 200;
        let name = ["d", "q"][number];
        match number {
            0 => writeln!(
                lines[0],
                r#"{{"id": "{name}{row}", "y": {class}, "title": {title:?}, "body": {body:?}}}"#
            ),
            _ => writeln!(
                lines[1],
                r#"{{"id": "{name}{row}", "y": {class}, "text": {title:?}}}"#
            ),
        }
        .unwrap();
    }
    folder.write("d.jsonl", &lines[0]);
    folder.write("q.jsonl", &lines[1]);
}

#[test]
fn weights_are_learned_planned_and_searched_by() {
    let folder = Folder::new();
    items(&folder);
    let data = "d.jsonl --vector title,body --id id --label y";
    let line =
        format!("train {data} --method vector-weights --prepare l2-each --test 0.3 -o m.model");
    let (out, _) = folder.good(&line, &[]);
    assert!(out.contains("200 × 6 (3 + 3) text, 12 classes"), "{out}");
    let shown = folder.json("inspect m.model", &[]);
    assert!(number(&shown, "/origin/facts/weight_1") > 0.9, "{shown:#}");
    let plan = "plan m.model --store pgvector --sample d.jsonl --vector title,body";
    assert!(number(&folder.json(plan, &[]), "/agreement/share") > 0.9999);
    // A query has one vector, which asks titles and bodies.
    let search = "search m.model d.jsonl --vector title,body --id id --label y --query q.jsonl";
    let found = folder.json(&format!("{search} --query-vector text,text -k 1"), &[]);
    let classes = (200..240).map(|row: usize| (row % 12).to_string());
    let right = found.as_array().unwrap().iter().zip(classes);
    let right = right.filter(|(answer, class)| answer["items"][0]["label"] == class.as_str());
    assert!(right.count() >= 30, "{found:#}");
    let text = folder.refused(&format!("{search} --query-vector text"), &[]);
    assert!(
        text.contains("expected vectors of dimensions 3 and 3 as of the items, but found 3"),
        "{text}"
    );
    // The same rows, with the vectors in one column each.
    let listed = folder.json(
        &format!("compare {data} --prepare l2-each --no-cost --methods lda"),
        &[],
    );
    assert!(listed["results"]["lines"].as_array().is_some());
}

#[test]
fn what_does_not_fit_is_named() {
    let folder = Folder::new();
    items(&folder);
    for (line, expected) in [
        (
            "train d.jsonl --vector title --label y --method vector-weights",
            "needs rows of several vectors",
        ),
        (
            "train d.jsonl --vector title --label y --prepare l2-each",
            "a row is one vector",
        ),
        (
            "train d.jsonl --vector title,y --label y",
            "\"y\" is none, or is read for something else",
        ),
        (
            "train d.jsonl --vector title,body --label y --method vector-weights --prepare pca:4",
            "does not mix them",
        ),
        (
            "train d.jsonl --vector title,body --label y --method vector-weights --set dims=4:3",
            "at most 6 in all",
        ),
        (
            "train d.jsonl --vector title,body --label y --method vector-weights --set dims=6:0",
            "dimensions such as 384:256",
        ),
    ] {
        let text = folder.refused(line, &[]);
        assert!(text.contains(expected), "{line}: {text}");
    }
}
