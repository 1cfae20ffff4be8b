//! What people expect of any command: to be quiet when asked, defaults from the environment, pages and completions to
//! install, and a summary of the machine for a report.

use crate::folder::{Folder, digits, text};
use std::process::Stdio;

#[test]
fn quiet_leaves_the_answer_alone() {
    let folder = Folder::new();
    let train = |extra: &[&str]| {
        let line = "train --label label --method lda -o m.safetensors";
        folder.good(line, &[&[digits().as_str()], extra].concat())
    };
    // Pixels that never change are worth a warning.
    let (answer, notes) = train(&[]);
    assert!(!notes.is_empty());
    let (quiet, nothing) = train(&["--quiet"]);
    assert_eq!(nothing, "");
    assert_eq!(quiet, answer);
    // Errors are told all the same.
    let error = folder.refused("check nothing.parquet -q", &[]);
    assert!(error.contains("nothing.parquet"), "{error}");
}

#[test]
fn the_environment_gives_defaults() {
    let folder = Folder::new();
    let doctor = |threads: &str, arguments: &[&str]| {
        let mut command = folder.command("doctor", arguments);
        let output = command.env("METRA_THREADS", threads).output().unwrap();
        (
            output.status.success(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };
    let (_, out, _) = doctor("3", &[]);
    assert!(out.contains("threads     3\n"), "{out}");
    assert!(out.contains("variables   METRA_THREADS"), "{out}");
    let (_, out, _) = doctor("3", &["--threads", "2"]);
    assert!(
        out.contains("threads     2\n"),
        "an option is nearer: {out}"
    );
    let (good, _, error) = doctor("many", &[]);
    assert!(!good && error.contains("many"), "{error}");
}

#[test]
fn a_summary_for_reports_names_versions_and_parts() {
    let folder = Folder::new();
    let found = folder.json("doctor", &[]);
    assert_eq!(found["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(found["features"]["images"], cfg!(feature = "images"));
    assert!(found["threads"].as_u64().unwrap() > 0);
    assert!(found["cache_dir_problem"].is_null());
    let found = folder.json("doctor --cache-dir nowhere", &[]);
    assert!(found["cache_dir_problem"].is_string());
}

#[test]
fn every_verb_and_part_of_one_has_a_manual_page() {
    let folder = Folder::new();
    folder.good("man pages", &[]);
    for page in ["metra.1", "metra-train.1", "metra-attributes-rank.1"] {
        let page = text(&folder.bytes(&format!("pages/{page}")));
        assert!(page.contains(".SH NAME"), "{page}");
    }
}

#[test]
fn examples_are_written_and_nothing_else_is_lost() {
    let folder = Folder::new();
    let (printed, _) = folder.good("examples", &[]);
    let command = printed.lines().last().unwrap().trim_start_matches("try");
    assert!(
        folder
            .path(command.split_whitespace().nth(2).unwrap())
            .is_file()
    );
    folder.good("examples", &[]);
    let mine = folder.path("examples/data/clicks.csv");
    std::fs::write(&mine, "mine").unwrap();
    std::fs::remove_file(folder.path("examples/data/README.md")).unwrap();
    let error = folder.refused("examples", &[]);
    assert!(error.contains("clicks.csv"), "{error}");
    assert!(!folder.path("examples/data/README.md").exists());
    assert_eq!(std::fs::read(&mine).unwrap(), b"mine");
    folder.good("examples --force", &[]);
    assert_ne!(std::fs::read(&mine).unwrap(), b"mine");
    std::fs::write(folder.path("file"), "").unwrap();
    assert!(folder.refused("examples file", &[]).contains("file"));
}

#[test]
fn what_cannot_be_is_told_before_any_work() {
    let folder = Folder::new();
    let train = |more: &[&str]| {
        let line = "train --label label --method warca -o m.safetensors --set steps=2";
        folder.refused(line, &[&[digits().as_str()], more].concat())
    };
    let error = train(&["--tune", "start=pca,foo"]);
    assert!(error.contains("start") && error.contains("foo"), "{error}");
    std::fs::create_dir(folder.path("taken.safetensors")).unwrap();
    let error = folder.refused("train x.parquet --label label -o taken.safetensors", &[]);
    assert!(error.contains("it is a folder"), "{error}");
}

#[test]
fn whoever_reads_the_notes_may_leave() {
    let folder = Folder::new();
    let digits = digits();
    let line = "train --label label --method lda -o m.safetensors";
    let mut command = folder.command(line, &[&digits]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stderr.take());
    assert!(child.wait().unwrap().success());
    assert!(folder.path("m.safetensors").is_file());
}

#[test]
fn the_gate_says_what_it_cannot_know() {
    let folder = Folder::new();
    let digits = digits();
    let gate = |option: &str| {
        let line =
            format!("train --label label --method lda --holdout none {option} -o m.safetensors");
        folder.good(&line, &[&digits]);
        let line = "gate --base euclid --candidate m.safetensors --label label --data";
        text(&folder.run(line, &[&digits]).stdout)
    };
    let out = gate("--no-row-digests");
    assert!(
        out.contains("is not known") && !out.contains(" held out"),
        "{out}"
    );
    let out = gate("");
    assert!(!out.contains("is not known"), "{out}");
}
