//! Pages that the programs write about themselves: verbs and options of the command, methods and their parameters, and
//! what the Python package has.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::measuring::printed;
use crate::tree;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Method {
    name: String,
    summary: String,
    learns_from: String,
    tries: BTreeMap<String, Vec<String>>,
    parameters: Vec<Parameter>,
}

#[derive(Deserialize)]
struct Parameter {
    name: String,
    default: String,
    values: String,
    meaning: String,
}

/// Places of the pages in the site, with their titles.
const COMMAND: (&str, &str) = ("reference/command.md", "The command");
const METHODS: (&str, &str) = ("reference/methods.md", "Methods and their parameters");

/// Those of the Python package, which this script writes.
const PYTHON: [(&str, &str); 3] = [
    ("reference/python.md", "Python: functions and results"),
    ("reference/python-estimators.md", "Python: estimators"),
    (
        "reference/python-stores.md",
        "Python: vector stores and MLflow",
    ),
];
const SCRIPT: &str = "python/tools/reference.py";

/// Write the pages into the folder of the site's sources.
pub(super) fn write(root: &Path, metra: &Path, python: &Path, source: &Path) -> Result<()> {
    let methods = methods(&said(metra, &["methods", "--json"])?)?;
    tree::write(&source.join(COMMAND.0), verbs(metra)?.as_bytes())?;
    tree::write(&source.join(METHODS.0), methods.as_bytes())?;
    let mut script = Command::new(python);
    script.arg(root.join(SCRIPT)).arg(source.join("reference"));
    printed(&mut script)?;
    for (place, title) in PYTHON {
        let text = fs::read_to_string(source.join(place)).context(place)?;
        ensure!(
            text.starts_with(&format!("# {title}\n")),
            "{SCRIPT} calls {place} otherwise than {title:?}"
        );
    }
    Ok(())
}

/// Their lines in the list of chapters.
pub(super) fn chapters() -> String {
    let all = [COMMAND, METHODS].into_iter().chain(PYTHON);
    let lines: Vec<String> = all
        .map(|(place, title)| format!("- [{title}]({place})"))
        .collect();
    lines.join("\n")
}

fn said(metra: &Path, arguments: &[&str]) -> Result<String> {
    // As wide as a page shows without scrolling.
    let mut command = Command::new(metra);
    // Help shows the values that these have.
    for name in ["METRA_THREADS", "METRA_MEMORY", "METRA_CACHE_DIR"] {
        command.env_remove(name);
    }
    printed(command.args(arguments).env("COLUMNS", "90"))
}

fn verbs(metra: &Path) -> Result<String> {
    let all = said(metra, &["--help"])?;
    let mut page = format!(
        "# {}\n\nWhat `metra --help` and `metra VERB --help` print.\n\n```text\n{}\n```\n",
        COMMAND.1,
        all.trim()
    );
    let verbs: Vec<&str> = named(&all).collect();
    ensure!(
        !verbs.is_empty(),
        "metra --help lists no verb where one was expected"
    );
    for path in verbs {
        verb(metra, &[path], &mut page)?;
    }
    Ok(page)
}

/// A verb, and the verbs that it has.
fn verb(metra: &Path, path: &[&str], page: &mut String) -> Result<()> {
    let help = said(metra, &[path, &["--help"]].concat())?;
    let level = "#".repeat(path.len() + 1);
    writeln!(
        page,
        "\n{level} metra {}\n\n```text\n{}\n```",
        path.join(" "),
        help.trim()
    )?;
    let parts = help.split_once("Commands:\n").map_or("", |(_, rest)| rest);
    let parts = parts.split("\n\n").next().unwrap_or_default();
    for part in parts
        .lines()
        .filter_map(first_word)
        .filter(|part| *part != "help")
    {
        verb(metra, &[path, &[part]].concat(), page)?;
    }
    Ok(())
}

/// Verbs in the groups of the first help.
fn named(help: &str) -> impl Iterator<Item = &str> {
    let groups = help.split_once("Learn:").map_or("", |(_, rest)| rest);
    let groups = groups.split("Options:").next().unwrap_or_default();
    groups.lines().filter_map(first_word)
}

/// The first word of a line that is set in by two blanks.
fn first_word(line: &str) -> Option<&str> {
    let word = line.strip_prefix("  ")?.split(' ').next()?;
    (!word.is_empty()).then_some(word)
}

fn methods(json: &str) -> Result<String> {
    let methods: Vec<Method> = serde_json::from_str(json).context("metra methods --json")?;
    let mut page = format!("# {}\n\n", METHODS.1);
    page.push_str(
        "What `metra methods` prints. `--set NAME=VALUE` sets a parameter, `--tune \
         NAME=A,B,C` tries several values on the validation part. [Which method when](../guide/choosing.md) says which to \
         use.\n",
    );
    for method in methods {
        writeln!(page, "\n## {}\n\n{}\n", method.name, method.summary)?;
        writeln!(page, "Learns from: {}.", method.learns_from)?;
        if !method.tries.is_empty() {
            let tries = method
                .tries
                .iter()
                .map(|(name, values)| format!("`{name}={}`", values.join(",")));
            writeln!(
                page,
                "\n`metra compare` tries {}.",
                tries.collect::<Vec<_>>().join(" ")
            )?;
        }
        if !method.parameters.is_empty() {
            page.push_str(
                "\n| parameter | default | values | meaning |\n| --- | --- | --- | --- |\n",
            );
        }
        for one in method.parameters {
            let cells = [one.default, one.values, one.meaning].map(|cell| cell.replace('|', "\\|"));
            writeln!(page, "| `{}` | {} |", one.name, cells.join(" | "))?;
        }
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_found_in_the_help() {
        let help = "About\n\nLearn:\n  check        Look\n  train        Learn\n\nDeploy:\n  embed  Map\n\nOptions:\n  -h  Help\n";
        assert_eq!(named(help).collect::<Vec<_>>(), ["check", "train", "embed"]);
    }

    #[test]
    fn parameters_are_a_table() {
        let json = r#"[{"name": "pca", "summary": "S.", "learns_from": "none", "tries": {"rank": ["1", "2"]},
            "parameters": [{"name": "rank", "default": "64", "values": "a | b", "meaning": "M."}]}]"#;
        let page = methods(json).unwrap();
        assert!(page.contains("| `rank` | 64 | a \\| b | M. |"));
        assert!(page.contains("`rank=1,2`"));
    }
}
