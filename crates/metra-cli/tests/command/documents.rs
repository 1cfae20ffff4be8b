//! What documents show of the command is what it prints: lines that begin with `$ ` in blocks of code are run one after the
//! other, in a folder with what `metra examples` writes, and the lines below each are its standard output. A line `…` stands for any
//! others. Times and memory in a table of `metra compare` are the machine's own.

use crate::folder::Folder;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[test]
#[ignore = "trains a dozen models, which takes a minute"]
fn documents_show_what_is_printed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap();
    let mut count = 0;
    let mut wrong = Vec::new();
    for name in ["README.md", "docs/tutorial.md", "docs/guide/gate.md"] {
        let folder = Folder::new();
        folder.good("examples", &[]);
        let text = std::fs::read_to_string(root.join(name)).unwrap();
        for (command, expected) in transcript(&text) {
            count += 1;
            let found = printed(&folder, &command);
            if let Some(difference) = difference(&expected, &found) {
                wrong.push(format!(
                    "{name}: {command}: {difference}; it prints\n{found}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 15, "{count}");
}

/// Commands of guides and methods' pages that need nothing but the examples, and what those before them wrote.
#[test]
#[ignore = "runs the commands of a dozen pages, which takes minutes"]
fn documented_commands_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = Vec::new();
    for folder in ["docs", "docs/guide", "docs/methods", "docs/formats"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        pages.extend(entries.map(|entry| entry.unwrap().path()));
    }
    pages.retain(|page| page.extension().is_some_and(|ending| ending == "md"));
    // Its commands compare thirty methods.
    pages.retain(|page| !page.ends_with("guide/compare.md"));
    pages.sort();
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        if !text.contains("examples/data") {
            continue;
        }
        let folder = Folder::new();
        folder.good("examples", &[]);
        let lines = text.replace("\\\n", " ");
        for line in lines.lines().filter(|line| line.starts_with("metra ")) {
            if is_runnable(line, |name| folder.path(name).exists()) {
                count += 1;
                let output = shell(&folder, line);
                if !output.status.success() {
                    let error = String::from_utf8_lossy(&output.stderr);
                    wrong.push(format!("{}: {line}\n{error}", page.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 40, "{count}");
}

/// Whether all files that a command reads are there; a table of a database is not.
fn is_runnable(command: &str, exists: impl Fn(&str) -> bool) -> bool {
    const ENDINGS: [&str; 8] = [
        "parquet",
        "safetensors",
        "npy",
        "tsv",
        "txt",
        "csv",
        "json",
        "index",
    ];
    const OUTPUTS: [&str; 3] = ["-o", "--report", "--run"];
    let words: Vec<&str> = command.split_whitespace().collect();
    let is_file = |word: &str| {
        word.rsplit_once('.')
            .is_some_and(|(_, e)| ENDINGS.contains(&e))
    };
    let mut read = (0..words.len())
        .filter(|&place| !OUTPUTS.contains(&words[place.saturating_sub(1)]))
        .map(|place| words[place])
        .filter(|word| is_file(word))
        .peekable();
    // A server goes on until it is stopped; the tests of the package run its page.
    let ends = words.get(1) != Some(&"serve");
    ends && !command.contains('$') && read.peek().is_some() && read.all(exists)
}

#[test]
fn what_a_reader_must_have_is_not_run() {
    let exists = |name: &str| name.starts_with("examples/");
    assert!(is_runnable(
        "metra train examples/a.parquet -o m.safetensors",
        exists
    ));
    assert!(!is_runnable(
        "metra train mine.parquet -o m.safetensors",
        exists
    ));
    assert!(!is_runnable(
        "metra push examples/m.safetensors $DB",
        exists
    ));
    assert!(!is_runnable("metra methods", exists));
    assert!(!is_runnable("metra serve examples/m.safetensors", exists));
}

#[test]
fn a_line_that_differs_is_found() {
    let text = "a\n```\n$ metra x\none 1\n…\nthree\n$ y\n```\n```sh\n$ not this\n```\n";
    let found = transcript(text);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].0, "metra x");
    let expected = &found[0].1;
    assert_eq!(difference(expected, "one 1\ntwo\nother\nthree\n"), None);
    assert_eq!(difference(expected, "one 1\nthree\n"), None);
    assert!(difference(expected, "one 2\nthree\n").is_some());
    assert!(difference(expected, "one 1\ntwo\n").is_some());
    assert!(difference(expected, "one 1\nthree\nfour\n").is_some());
    let costs = |time: &str| format!("x  CPU s/fit  MB/fit\nlda  0.5  better  {time}\n\n{time}\n");
    let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(
        difference(
            &lines(costs("0.1 3")),
            &costs("0.2 4")
                .replace("\n0.2", "\n0.1")
                .replace(" 4\n", " 3\n")
        ),
        None
    );
    assert!(
        difference(
            &lines(costs("0.1 3")),
            &costs("0.1 3").replace("0.5", "0.6")
        )
        .is_some()
    );
}

/// Commands with the lines that are shown below them.
fn transcript(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    let (mut fence, mut is_shown) = (None, false);
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            fence = match fence {
                Some(_) => None,
                None => Some(language.is_empty()),
            };
            is_shown = false;
        } else if fence == Some(true) {
            if let Some(command) = line.strip_prefix("$ ") {
                found.push((command.to_owned(), Vec::new()));
                is_shown = true;
            } else if let Some((_, lines)) = found.last_mut().filter(|_| is_shown) {
                lines.push(line.trim_end().to_owned());
            }
        }
    }
    found
}

fn printed(folder: &Folder, command: &str) -> String {
    String::from_utf8(shell(folder, command).stdout).unwrap()
}

fn shell(folder: &Folder, command: &str) -> Output {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_metra"));
    let mut paths = vec![program.parent().unwrap().to_path_buf()];
    paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    Command::new("bash")
        .args(["-c", command])
        .current_dir(folder.path("."))
        .env("PATH", std::env::join_paths(paths).unwrap())
        .output()
        .unwrap()
}

/// The first shown line that is not printed where it should be, or a printed one that is not shown.
fn difference(expected: &[String], found: &str) -> Option<String> {
    let expected: Vec<String> = without_costs(expected.iter().map(String::as_str));
    let found = without_costs(found.lines().map(str::trim_end));
    let mut rest = found.iter();
    let mut is_gap = false;
    for line in &expected {
        if line == "…" {
            is_gap = true;
            continue;
        }
        let next = match is_gap {
            true => rest.find(|found| *found == line),
            false => rest.next().filter(|found| *found == line),
        };
        if next.is_none() {
            return Some(format!("expected {line:?}"));
        }
        is_gap = false;
    }
    match rest.next() {
        Some(line) if !is_gap => Some(format!("not shown: {line:?}")),
        _ => None,
    }
}

/// Lines without the last two columns of tables that end in costs.
fn without_costs<'l>(lines: impl Iterator<Item = &'l str>) -> Vec<String> {
    let mut has_costs = false;
    lines
        .map(|line| {
            has_costs =
                line.contains("CPU s/fit") || (has_costs && !line.is_empty() && line != "…");
            let words: Vec<&str> = line.split_whitespace().collect();
            match has_costs && words.len() > 2 {
                true => words[..words.len() - 2].join(" "),
                false => line.to_owned(),
            }
        })
        .collect()
}
