//! Click logs: for every session the query, what was shown in its order and what was clicked; or every
//! item that was shown, with its position and whether it was clicked.
//!
//! JSON lines (`{"query": …, "shown": […], "clicked": […]}`, or `{"query": …, "item": …,
//! "position": 1, "clicked": true}`, ids as text or whole numbers, other keys ignored) or text with
//! fields separated by tabs or commas: three (query, shown, clicked; lists separated by blanks or
//! `|`), or those that a header names (query, item, position, clicked and any others). A log is
//! counted on the way and never held.

use crate::error::{Error, Place, Result};
use crate::lines::visit_lines;
use metra::supervision::clicks::ClickCounts;
use serde::Deserialize;
use std::path::Path;

/// Count a click log. `progress` is called with the number of lines read so far, and may end the reading
/// by an error.
pub fn read_clicks(
    path: &Path,
    progress: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<ClickCounts> {
    let mut counts = ClickCounts::default();
    let mut form = None;
    visit_lines(path, &mut |number, line| {
        progress(number)?;
        let line = line.trim_end_matches('\r');
        if line.trim().is_empty() {
            return Ok(());
        }
        let bad = |problem: String| Error::row(path, Place::Line(number), problem);
        let is_first = form.is_none();
        let form = form.get_or_insert_with(|| Form::of(line));
        if is_first && form.is_header(line) {
            return Ok(());
        }
        form.count(line, &mut counts).map_err(bad)
    })?;
    if counts.sessions() == 0 {
        return Err(Error::file(path, "expected sessions, but found none"));
    }
    Ok(counts)
}

/// How the lines of a log are written. The first line decides for all.
enum Form {
    Json,
    /// Query, shown and clicked.
    Sessions(char),
    /// Places of query, item, position and clicked among the fields of a line.
    Impressions(char, [usize; 4]),
}

/// Names of the fields of an impression.
const IMPRESSION: [&[&str]; 4] = [
    &["query", "query_id", "qid"],
    &["item", "item_id", "doc", "document", "docid", "doc_id"],
    &["position", "rank"],
    &["clicked", "click"],
];

impl Form {
    fn of(line: &str) -> Self {
        if line.trim_start().starts_with('{') {
            return Form::Json;
        }
        let separator = if line.contains('\t') { '\t' } else { ',' };
        let fields = split(line, separator);
        let place = |names: &[&str]| fields.iter().position(|field| names.contains(field));
        match IMPRESSION.map(place) {
            [Some(query), Some(item), Some(position), Some(clicked)] => {
                Form::Impressions(separator, [query, item, position, clicked])
            }
            _ => Form::Sessions(separator),
        }
    }

    fn is_header(&self, line: &str) -> bool {
        match self {
            Form::Json => false,
            Form::Sessions(separator) => split(line, *separator).starts_with(&["query", "shown"]),
            Form::Impressions(..) => true,
        }
    }

    /// Take in one line, or say what is wrong with it.
    fn count(&self, line: &str, counts: &mut ClickCounts) -> Result<(), String> {
        match self {
            Form::Json => count_json(line, counts),
            Form::Sessions(separator) => {
                let fields = split(line, *separator);
                let [query, shown, clicked] = fields[..] else {
                    return Err(format!(
                        "expected query, shown and clicked separated by {}, but found {} fields (or a \
                         header with query, item, position and clicked)",
                        if *separator == ',' { "commas" } else { "tabs" },
                        fields.len()
                    ));
                };
                check_plain(line, query)?;
                (counts.add(query, &list(shown), &list(clicked))).map_err(|e| e.to_string())
            }
            Form::Impressions(separator, places) => {
                let fields = split(line, *separator);
                let field = |place: &usize| fields.get(*place).copied().unwrap_or_default();
                let [query, item, position, clicked] = places.each_ref().map(field);
                check_plain(line, query)?;
                if item.is_empty() {
                    return Err("expected the id of an item, but found none".into());
                }
                let position = (position.parse())
                    .map_err(|_| format!("expected a position, but found {position:?}"))?;
                let clicked = match clicked {
                    "1" | "true" | "True" => true,
                    "0" | "false" | "False" => false,
                    other => {
                        return Err(format!(
                            "expected clicked to be 0 or 1, but found {other:?}"
                        ));
                    }
                };
                (counts.add_impression(query, item, position, clicked)).map_err(|e| e.to_string())
            }
        }
    }
}

fn split(line: &str, separator: char) -> Vec<&str> {
    line.split(separator).map(str::trim).collect()
}

fn check_plain(line: &str, query: &str) -> Result<(), String> {
    if line.contains('"') {
        return Err(
            "expected ids without quotes (use JSON lines for ids with commas, tabs, blanks or |)"
                .into(),
        );
    }
    if query.is_empty() {
        return Err("expected the id of a query, but found none".into());
    }
    Ok(())
}

fn count_json(line: &str, counts: &mut ClickCounts) -> Result<(), String> {
    let line: JsonLine = serde_json::from_str(line).map_err(|error| {
        format!(
            "expected {{\"query\": …, \"shown\": […], \"clicked\": […]}} or {{\"query\": …, \"item\": …, \
             \"position\": …, \"clicked\": …}}, but found {error}"
        )
    })?;
    let counted = match line {
        JsonLine::Session {
            query,
            shown,
            clicked,
        } => {
            let names = |ids: &[Id]| ids.iter().map(Id::text).collect::<Vec<String>>();
            let (shown, clicked) = (names(&shown), names(&clicked));
            counts.add(&query.text(), &borrowed(&shown), &borrowed(&clicked))
        }
        JsonLine::Impression {
            query,
            item,
            position,
            clicked,
        } => {
            let clicked = match clicked {
                Clicked::Said(clicked) => clicked,
                Clicked::Counted(clicks) => clicks > 0,
            };
            counts.add_impression(&query.text(), &item.text(), position, clicked)
        }
    };
    counted.map_err(|error| error.to_string())
}

#[derive(Deserialize)]
#[serde(untagged)]
enum JsonLine {
    Session {
        query: Id,
        shown: Vec<Id>,
        #[serde(default)]
        clicked: Vec<Id>,
    },
    Impression {
        query: Id,
        item: Id,
        position: u64,
        clicked: Clicked,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Clicked {
    Said(bool),
    Counted(u64),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Text(String),
    Number(i64),
}

impl Id {
    fn text(&self) -> String {
        match self {
            Id::Text(text) => text.clone(),
            Id::Number(number) => number.to_string(),
        }
    }
}

fn borrowed(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

fn list(text: &str) -> Vec<&str> {
    let separated = text.split(|c: char| c == '|' || c.is_whitespace());
    separated.filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use metra::supervision::clicks::ClickOptions;

    fn read(text: &str) -> Result<ClickCounts> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read_clicks(file.path(), &mut |_| Ok(()))
    }

    #[test]
    fn all_forms_say_the_same() {
        let forms = [
            "{\"query\": 7, \"shown\": [\"a\", 5], \"clicked\": [5], \"when\": 1}\n\n{\"query\": \"7\", \"shown\": [\"a\"]}\n",
            "query\tshown\tclicked\r\n7\ta 5\t5\r\n7\ta\t\r\n",
            "7,a|5,5\n7,a,\n",
        ];
        let options = ClickOptions {
            min_sessions: 1,
            eta: Some(0.0),
            ..ClickOptions::default()
        };
        for form in forms {
            let counts = read(form).unwrap();
            assert_eq!((counts.sessions(), counts.clicks()), (2, 1), "{form}");
            let pairs = counts.relevance(&options).unwrap().pairs;
            let found: Vec<(&str, &str, u64, u64)> = (pairs.iter())
                .map(|pair| (&*pair.query, &*pair.item, pair.shown, pair.clicks))
                .collect();
            assert_eq!(found, [("7", "a", 2, 0), ("7", "5", 1, 1)], "{form}");
        }
    }

    #[test]
    fn bad_lines_are_named() {
        for (text, expected) in [
            ("", "expected sessions, but found none"),
            ("q\ta b\tc\n", "line 1: \"c\" was clicked"),
            (
                "q\ta\t\nq\ta\n",
                "line 2: expected query, shown and clicked separated by tabs",
            ),
            ("q,\"a\",\n", "line 1: expected ids without quotes"),
            ("\ta\ta\n", "line 1: expected the id of a query"),
            ("{\"query\": 1}\n", "line 1: expected {\"query\""),
            (
                "{\"query\": 1.5, \"shown\": [1]}\n",
                "line 1: expected {\"query\"",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
