//! Figures of single commands, tests and benches that guides quote, as a page.

use super::data::Data;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The file of them.
const NAME: &str = "recorded";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    command: String,
    commit: String,
    page: String,
    values: BTreeMap<String, Value>,
}

/// The page.
pub(super) fn page(data: &Data) -> Result<String> {
    let value = data.others.get(NAME).context("recorded.json is missing")?;
    let records: BTreeMap<String, Record> = serde_json::from_value(value.clone()).context(NAME)?;
    let mut page = String::from(
        "# Figures of single commands\n\n\
         What guides quote beside the [comparisons](README.md): figures of one command, one test or one bench, with the \
         commit that brought them into the documents. They are recorded by hand in [recorded.json](data/recorded.json), and \
         not all are of one build.\n",
    );
    for (name, record) in &records {
        let Record {
            command,
            commit,
            page: guide,
            ..
        } = record;
        let is_hash = commit.len() >= 7 && commit.chars().all(|c| c.is_ascii_hexdigit());
        ensure!(
            is_hash,
            "{NAME}: {name}: expected a commit, but found {commit:?}"
        );
        let guide = guide
            .strip_prefix("docs/")
            .map_or(format!("../../{guide}"), |path| format!("../{path}"));
        writeln!(
            page,
            "\n## {name}\n\nQuoted in [{guide}]({guide}), commit {commit}.\n\n```\n{command}\n```\n\n| | |\n| --- | --- |"
        )?;
        for (what, value) in &record.values {
            let text = match value.as_array() {
                Some(values) => values
                    .iter()
                    .map(Value::to_string)
                    .collect::<Vec<_>>()
                    .join(", "),
                None => value.to_string(),
            };
            writeln!(page, "| {what} | {text} |")?;
        }
    }
    Ok(page)
}
