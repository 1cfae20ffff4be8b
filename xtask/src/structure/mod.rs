//! Counts of the source tree that tell how well it is cut: circles of imports, imports against the
//! arrow, names used twice, places that do the same work, lines, public items, private words.
//!
//! Everything is computed from the text of the sources. That is an approximation of what the compiler
//! knows, but it needs no build, sees all features at once, and is the same on every machine.

mod command;
mod datasets;
mod imports;
mod lines;
mod modules;
mod outline;
mod public_items;
mod sources;
mod types;
mod use_trees;
mod vocabulary;

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::Finding;
use imports::{Circle, Import};
use modules::Package;
use sources::{CHECKS, Source};

/// What breaks a rule of the tree's structure, in files given as path and text: circles of imports (but for
/// the head of a folder, which may use the files of its own folder), imports against the arrow in the
/// command, public types that share a name.
///
/// The other counts have no right value, so that nothing can be found by them.
pub fn findings(files: &[(&str, &str)]) -> Vec<Finding> {
    let sources = checked(files);
    let packages = modules::packages(&sources);
    let imports = all_imports(&packages);
    let mut findings = Vec::new();
    for imports in imports.values() {
        let circles = imports::circles(&imports::apart_from_heads(imports));
        findings.extend(imports::findings(&circles));
        findings.extend(command::findings(imports));
    }
    findings.extend(types::findings(&types::public(&packages)));
    findings.sort();
    findings
}

/// All counts of files given as path and text: first a line for each, then what is behind it.
pub fn report(files: &[(&str, &str)]) -> String {
    let sources = checked(files);
    let packages = modules::packages(&sources);
    let imports = all_imports(&packages);
    let circles = all_circles(&imports);
    let others: Vec<_> = imports
        .values()
        .flat_map(|imports| imports::circles(&imports::apart_from_heads(imports)))
        .collect();
    let against: Vec<Finding> = imports
        .values()
        .flat_map(|imports| command::findings(imports))
        .collect();
    let places = datasets::places(&sources);
    let lines = lines::lines(&sources::sources(files));
    let items = packages.get(public_items::LIBRARY);
    let items = items.map(public_items::count).unwrap_or_default();
    let words = vocabulary::counts(&sources);
    show(&[
        Count {
            name: "import circles",
            number: circles.len(),
            list: circles.iter().flat_map(show_circle).collect(),
        },
        Count {
            name: "import circles apart from heads that import from their own folder",
            number: others.len(),
            // Their imports are listed above.
            list: others.iter().map(show_files).collect(),
        },
        Count {
            name: "imports against the arrow in the command",
            number: against.len(),
            list: against.iter().map(ToString::to_string).collect(),
        },
        repeated("duplicate public type names", &types::public(&packages)),
        repeated("type names defined more than once", &types::all(&packages)),
        Count {
            name: "places that assemble a dataset",
            number: places.len(),
            list: places.iter().map(show_place).collect(),
        },
        Count {
            name: "lines of non-test Rust",
            number: lines.values().sum(),
            list: show_parts(&lines),
        },
        Count {
            name: "public items of metra",
            number: public_items::promised(&items),
            list: show_parts(&items),
        },
        Count {
            name: "private vocabulary",
            number: words.values().sum(),
            list: show_parts(&words),
        },
    ])
}

/// One number with the list behind it.
struct Count {
    name: &'static str,
    number: usize,
    list: Vec<String>,
}

fn show(counts: &[Count]) -> String {
    let mut out = String::new();
    // Writing to a text cannot fail.
    for count in counts {
        let _ = writeln!(out, "{}: {}", count.name, count.number);
    }
    for count in counts.iter().filter(|count| count.number > 0) {
        let _ = writeln!(out, "\n{}:", count.name);
        for line in &count.list {
            let _ = writeln!(out, "  {line}");
        }
    }
    out
}

/// The sources to which all counts but that of lines apply.
fn checked<'a>(files: &[(&'a str, &'a str)]) -> Vec<Source<'a>> {
    let mut sources = sources::sources(files);
    sources.retain(|source| source.package != CHECKS);
    sources
}

fn all_imports<'a>(
    packages: &'a BTreeMap<&'a str, Package<'a>>,
) -> BTreeMap<&'a str, Vec<Import<'a>>> {
    let packages = packages.iter();
    packages
        .map(|(&folder, package)| (folder, imports::imports(package)))
        .collect()
}

fn all_circles<'a>(imports: &BTreeMap<&'a str, Vec<Import<'a>>>) -> Vec<Circle<'a>> {
    let packages = imports.values();
    packages
        .flat_map(|imports| imports::circles(imports))
        .collect()
}

/// The files of a circle on one line, then each import between two of them.
fn show_circle(circle: &Circle<'_>) -> Vec<String> {
    let short = |path: &'_ str| path[common_folder(circle).len()..].to_owned();
    let mut lines = vec![show_files(circle)];
    lines.extend(circle.imports.iter().map(|import| {
        let (from, to) = (short(import.from), short(import.to));
        format!("  {from}:{} → {to} ({})", import.line, import.name)
    }));
    lines
}

fn show_files(circle: &Circle<'_>) -> String {
    let folder = common_folder(circle);
    let files: Vec<&str> = circle
        .files
        .iter()
        .map(|path| &path[folder.len()..])
        .collect();
    format!("{folder} {}", files.join(", "))
}

/// The deepest folder that holds all files of a circle, with its slash.
fn common_folder<'a>(circle: &Circle<'a>) -> &'a str {
    let Some(first) = circle.files.first() else {
        return "";
    };
    let folders = first.rmatch_indices('/').map(|(at, _)| &first[..=at]);
    let mut shared =
        folders.filter(|folder| circle.files.iter().all(|path| path.starts_with(folder)));
    shared.next().unwrap_or_default()
}

fn repeated(name: &'static str, found: &[types::Repeated<'_>]) -> Count {
    let show = |found: &types::Repeated<'_>| {
        let places = found.places.iter();
        let places: Vec<String> = places
            .map(|(path, line)| format!("{path}:{line}"))
            .collect();
        format!("{}: {}", found.name, places.join(", "))
    };
    Count {
        name,
        number: found.len(),
        list: found.iter().map(show).collect(),
    }
}

fn show_place(place: &datasets::Place<'_>) -> String {
    let whose = match place.in_front_end {
        true => "front end",
        false => "library",
    };
    format!("{}:{}: {} ({whose})", place.path, place.line, place.way)
}

fn show_parts(parts: &BTreeMap<impl AsRef<str>, usize>) -> Vec<String> {
    let parts = parts.iter();
    parts
        .map(|(name, number)| format!("{}: {number}", name.as_ref()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [(&str, &str); 6] = [
        ("crates/metra/src/lib.rs", "pub mod learn;\npub mod data;\n"),
        (
            "crates/metra/src/learn.rs",
            "use crate::data::Table;\npub struct Problem;\n",
        ),
        (
            "crates/metra/src/data.rs",
            "use crate::learn::Problem;\npub struct Table;\n",
        ),
        (
            "crates/metra-cli/src/main.rs",
            "mod load;\nstatic STOP: bool = true;\n",
        ),
        (
            "crates/metra-cli/src/load.rs",
            "use crate::STOP;\npub struct Table;\nfn told() { Material { a } }\n",
        ),
        ("xtask/src/lib.rs", "fn told() {}\npub struct Table;\n"),
    ];

    #[test]
    fn the_report_has_all_counts_and_lists() {
        let expected = "\
import circles: 1
import circles apart from heads that import from their own folder: 1
imports against the arrow in the command: 1
duplicate public type names: 1
type names defined more than once: 1
places that assemble a dataset: 1
lines of non-test Rust: 13
public items of metra: 2
private vocabulary: 1

import circles:
  crates/metra/src/ data.rs, learn.rs
    data.rs:1 → learn.rs (learn::Problem)
    learn.rs:1 → data.rs (data::Table)

import circles apart from heads that import from their own folder:
  crates/metra/src/ data.rs, learn.rs

imports against the arrow in the command:
  crates/metra-cli/src/load.rs:1: imports `STOP`, which is at the root; expected it in a part that verbs share

duplicate public type names:
  Table: crates/metra/src/data.rs:2, crates/metra-cli/src/load.rs:2

type names defined more than once:
  Table: crates/metra/src/data.rs:2, crates/metra-cli/src/load.rs:2

places that assemble a dataset:
  crates/metra-cli/src/load.rs:3: Material { (front end)

lines of non-test Rust:
  crates/metra: 6
  crates/metra-cli: 5
  xtask: 2

public items of metra:
  data: 1
  learn: 1

private vocabulary:
  asked: 0
  away: 0
  desk: 0
  elsewhere: 0
  gave: 0
  ground: 0
  heaps: 0
  heard: 0
  kept: 0
  kin: 0
  mood: 0
  news: 0
  said: 0
  stretch: 0
  told: 1
  wish: 0
";
        assert_eq!(report(&FILES), expected);
    }

    #[test]
    fn the_findings_are_those_of_the_rules() {
        let found: Vec<_> = findings(&FILES)
            .into_iter()
            .map(|finding| (finding.path, finding.line))
            .collect();
        let expected = [
            ("crates/metra-cli/src/load.rs", 1),
            ("crates/metra-cli/src/load.rs", 2),
            ("crates/metra/src/data.rs", 1),
            ("crates/metra/src/data.rs", 2),
            ("crates/metra/src/learn.rs", 1),
        ];
        assert_eq!(found, expected.map(|(path, line)| (path.to_owned(), line)));
    }

    #[test]
    fn a_tree_without_anything_has_no_lists() {
        let shown = report(&[]);
        assert_eq!(shown.lines().count(), 9);
        assert!(shown.lines().all(|line| line.ends_with(": 0")));
        assert!(findings(&[]).is_empty());
    }
}
