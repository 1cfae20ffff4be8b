//! Results in `docs/results/data`: what comparisons gave, with the code and the machine that gave it, and what other
//! programs wrote.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use metra::experiment::compare::{Costs, Results};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where the files are, from the root.
pub(crate) const FOLDER: &str = "docs/results/data";
/// Digits of a value that are kept. Pages show four.
const DIGITS: usize = 7;

/// A comparison as it is published: without single queries and curves, which may tell of data that must not be.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Comparison {
    /// The commit that it was run at; `-dirty` behind it where files had been changed.
    pub(crate) commit: String,
    /// The machine.
    pub(crate) cpu: String,
    pub(crate) costs: Costs,
    pub(crate) results: Results,
}

impl Comparison {
    /// From the files that the command wrote.
    pub(crate) fn new(
        commit: String,
        cpu: String,
        folder: &Path,
        published_command: String,
    ) -> Result<Self> {
        let text = |name: &str| {
            let path = folder.join(name);
            std::fs::read_to_string(&path).with_context(|| path.display().to_string())
        };
        let mut results = Results::from_json(&text("results.json")?)?.without_queries();
        results.command = published_command;
        let shown = results.facts.clone();
        for line in &mut results.lines {
            line.cmc.clear();
            line.precision.clear();
            for split in &mut line.splits {
                split.facts.retain(|name, _| shown.contains(name));
            }
        }
        Ok(Self {
            commit,
            cpu,
            costs: Costs::from_json(&text("costs.json")?)?,
            results,
        })
    }

    /// As text, a line for each method, so that changes can be read.
    pub(crate) fn to_json(&self) -> Result<String> {
        let mut value = serde_json::to_value(self)?;
        shorten(&mut value);
        let mut text = String::new();
        write_value(&value, 0, &mut text);
        Ok(text + "\n")
    }
}

fn shorten(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let short = number.as_f64().map(|v| format!("{v:.*e}", DIGITS - 1));
            if let Some(Ok(short)) = short.map(|text| text.parse::<f64>()) {
                *value = short.into();
            }
        }
        Value::Array(values) => values.iter_mut().for_each(shorten),
        Value::Object(values) => values.values_mut().for_each(shorten),
        _ => {}
    }
}

/// The first levels on lines of their own.
fn write_value(value: &Value, depth: usize, text: &mut String) {
    let begin = |text: &mut String, first: bool| {
        text.push_str(if first { "\n" } else { ",\n" });
        text.push_str(&" ".repeat(depth + 1));
    };
    match value {
        Value::Object(values) if depth < 2 && !values.is_empty() => {
            text.push('{');
            for (number, (key, value)) in values.iter().enumerate() {
                begin(text, number == 0);
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push_str(": ");
                write_value(value, depth + 1, text);
            }
            text.push('}');
        }
        Value::Array(values) if depth < 3 && values.iter().any(Value::is_object) => {
            text.push('[');
            for (number, value) in values.iter().enumerate() {
                begin(text, number == 0);
                text.push_str(&value.to_string());
            }
            text.push(']');
        }
        other => text.push_str(&other.to_string()),
    }
}

/// All results.
#[derive(Default)]
pub(crate) struct Data {
    pub(crate) comparisons: BTreeMap<String, Comparison>,
    /// What is no comparison.
    pub(crate) others: BTreeMap<String, Value>,
}

impl Data {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let folder = root.join(FOLDER);
        let mut data = Self::default();
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let Some(name) = path.file_stem().and_then(|name| name.to_str()) else {
                continue;
            };
            if path.extension().is_none_or(|ending| ending != "json") {
                continue;
            }
            let shown = || path.display().to_string();
            let text = std::fs::read_to_string(&path).with_context(shown)?;
            let value: Value = serde_json::from_str(&text).with_context(shown)?;
            let has = |key: &str| value.get(key).is_some();
            if has("results") && has("costs") {
                let comparison = serde_json::from_value(value).with_context(shown)?;
                data.comparisons.insert(name.to_owned(), comparison);
            } else {
                data.others.insert(name.to_owned(), value);
            }
        }
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_short_and_lists_are_lines() {
        let mut value = serde_json::json!({"a": [{"b": 0.123456789}, {"b": 1}], "c": [1, 2]});
        shorten(&mut value);
        let mut text = String::new();
        write_value(&value, 0, &mut text);
        let expected = "{\n \"a\": [\n  {\"b\":0.1234568},\n  {\"b\":1}],\n \"c\": [1,2]}";
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
