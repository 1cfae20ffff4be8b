//! Click logs: for every session the query, what was shown in its order and what was clicked.
//!
//! JSON lines (`{"query": …, "shown": […], "clicked": […]}`, ids as text or whole numbers, other
//! keys ignored) or text of three fields separated by tabs or commas, lists by blanks or `|`. A log
//! is counted on the way and never held.

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
        let first = form.is_none();
        let form = *form.get_or_insert_with(|| Form::of(line));
        match form {
            Form::Json => {
                let session: Session = serde_json::from_str(line).map_err(|error| {
                    bad(format!(
                        "expected {{\"query\": …, \"shown\": […], \"clicked\": […]}}, but found {error}"
                    ))
                })?;
                let names = |ids: &[Id]| ids.iter().map(Id::text).collect::<Vec<String>>();
                let (shown, clicked) = (names(&session.shown), names(&session.clicked));
                let (shown, clicked) = (borrowed(&shown), borrowed(&clicked));
                counts.add(&session.query.text(), &shown, &clicked)
            }
            Form::Fields(separator) => {
                let fields: Vec<&str> = line.split(separator).map(str::trim).collect();
                let [query, shown, clicked] = fields[..] else {
                    return Err(bad(format!(
                        "expected query, shown and clicked separated by {}, but found {} fields",
                        if separator == ',' { "commas" } else { "tabs" },
                        fields.len()
                    )));
                };
                if first && query == "query" && shown == "shown" {
                    return Ok(());
                }
                if line.contains('"') {
                    return Err(bad(
                        "expected ids without quotes (use JSON lines for ids with commas, tabs, \
                         blanks or |)"
                            .into(),
                    ));
                }
                if query.is_empty() {
                    return Err(bad("expected the id of a query, but found none".into()));
                }
                counts.add(query, &list(shown), &list(clicked))
            }
        }
        .map_err(|error| bad(error.to_string()))
    })?;
    if counts.sessions() == 0 {
        return Err(Error::file(path, "expected sessions, but found none"));
    }
    Ok(counts)
}

#[derive(Clone, Copy)]
enum Form {
    Json,
    Fields(char),
}

impl Form {
    /// The first line decides for all.
    fn of(line: &str) -> Self {
        if line.trim_start().starts_with('{') {
            Form::Json
        } else if line.contains('\t') {
            Form::Fields('\t')
        } else {
            Form::Fields(',')
        }
    }
}

#[derive(Deserialize)]
struct Session {
    query: Id,
    shown: Vec<Id>,
    #[serde(default)]
    clicked: Vec<Id>,
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
