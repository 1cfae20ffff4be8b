//! JSON lines: one object a line, whose keys are the columns.

use crate::column::Cell;
use crate::element::{ElementType, Vector};
use crate::error::{Error, Place, Result};
use crate::lines::visit_lines;
use crate::sink::{Chunk, Source, collect};
use crate::table::{ReadProgress, Table, TableOptions, no_vector, positions};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Objects held at once.
const CHUNK_ROWS: usize = 1024;

pub(crate) fn read(
    path: &Path,
    options: &TableOptions,
    progress: ReadProgress<'_>,
) -> Result<Table> {
    let first = first_object(path)?;
    let names: Vec<String> = first.keys().cloned().collect();
    positions(path, &names, options)?;
    let lists = first.iter().filter(|(_, value)| value.is_array());
    let lists: Vec<&String> = lists.map(|(name, _)| name).collect();
    let vector = match (&options.vector, &lists[..]) {
        (Some(name), _) if first.contains_key(name) => name.clone(),
        (Some(name), _) => {
            return Err(Error::MissingColumn {
                path: path.to_path_buf(),
                column: name.clone(),
                found: names,
            });
        }
        (None, lists) if lists.iter().any(|name| *name == "vector") => "vector".to_owned(),
        (None, [only]) => (*only).clone(),
        (None, _) => {
            let expected = "a key \"vector\" or exactly one key with a list of numbers";
            return Err(no_vector(path, expected, &names));
        }
    };
    let wanted = options.columns.iter().cloned();
    let filtered = options.filters.iter().map(|filter| filter.column.clone());
    let source = JsonSource {
        path: path.to_path_buf(),
        vector,
        columns: wanted.chain(filtered).collect(),
    };
    collect(&source, options, progress)
}

fn first_object(path: &Path) -> Result<Map<String, Value>> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    for (index, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(|e| Error::io(path, e))?;
        if let Some(object) = object(path, index as u64 + 1, &line)? {
            return Ok(object);
        }
    }
    let problem = "expected a JSON object on every line, but found none";
    Err(Error::file(path, problem))
}

/// The object of a line; `None` for a blank one.
fn object(path: &Path, number: u64, line: &str) -> Result<Option<Map<String, Value>>> {
    let line = line.trim_start_matches('\u{feff}').trim();
    if line.is_empty() {
        return Ok(None);
    }
    let parsed = serde_json::from_str(line);
    let parsed = match line.contains("NaN") && parsed.is_err() {
        true => serde_json::from_str(&without_nan(line)),
        false => parsed,
    };
    let object = parsed.map_err(|error| {
        let problem = format!("expected a JSON object, but {error}");
        Error::row(path, Place::Line(number), problem)
    })?;
    Ok(Some(object))
}

/// Python writes NaN for a missing number, which JSON does not have: null, where it stands for itself.
fn without_nan(line: &str) -> String {
    let (mut out, mut quoted, mut escaped) = (String::with_capacity(line.len()), false, false);
    for c in line.chars() {
        out.push(c);
        quoted ^= c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
        if !quoted && out.ends_with("NaN") {
            out.truncate(out.len() - 3);
            out.push_str("null");
        }
    }
    out
}

struct JsonSource {
    path: PathBuf,
    vector: String,
    columns: Vec<String>,
}

impl Source for JsonSource {
    fn path(&self) -> &Path {
        &self.path
    }

    fn element(&self) -> ElementType {
        ElementType::Text
    }

    fn rows(&self) -> Option<u64> {
        None
    }

    fn text_file(&self) -> bool {
        true
    }

    fn vector_name(&self) -> String {
        self.vector.clone()
    }

    fn number_name(&self, index: usize) -> String {
        format!("{}[{index}]", self.vector)
    }

    fn chunks(&self, visit: &mut dyn FnMut(&dyn Chunk) -> Result<()>) -> Result<()> {
        let mut chunk = JsonChunk {
            source: self,
            rows: Vec::new(),
        };
        visit_lines(&self.path, &mut |number, line| {
            if let Some(object) = object(&self.path, number, line)? {
                chunk.rows.push((number, object));
            }
            if chunk.rows.len() == CHUNK_ROWS {
                visit(&chunk)?;
                chunk.rows.clear();
            }
            Ok(())
        })?;
        match chunk.rows.is_empty() {
            true => Ok(()),
            false => visit(&chunk),
        }
    }
}

struct JsonChunk<'a> {
    source: &'a JsonSource,
    rows: Vec<(u64, Map<String, Value>)>,
}

impl Chunk for JsonChunk<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn number(&self, row: usize) -> u64 {
        self.rows[row].0
    }

    fn cell(&self, column: usize, row: usize) -> Cell<'_> {
        match self.rows[row].1.get(&self.source.columns[column]) {
            None | Some(Value::Null) => Cell::Null,
            Some(Value::Bool(value)) => Cell::Bool(*value),
            Some(Value::String(text)) => Cell::Text(text),
            Some(Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
                (Some(value), _) => Cell::Integer(value),
                (None, Some(value)) => Cell::from_float(value),
                (None, None) => Cell::Other(number.to_string()),
            },
            Some(other) => Cell::Other(other.to_string()),
        }
    }

    fn vector(&self, row: usize, out: &mut Vector) -> Result<bool> {
        let (number, object) = &self.rows[row];
        let source = self.source;
        let numbers = match object.get(&source.vector) {
            None | Some(Value::Null) => return Ok(false),
            Some(Value::Array(numbers)) => numbers,
            Some(other) => {
                let place = Place::Line(*number);
                let problem = format!("expected a list of numbers, but found {other}");
                return Err(Error::cell(&source.path, place, &source.vector, problem));
            }
        };
        let mut values = Vec::with_capacity(numbers.len());
        for (index, value) in numbers.iter().enumerate() {
            values.push(match value {
                Value::Null => f64::NAN,
                value => value.as_f64().ok_or_else(|| {
                    let (place, name) = (Place::Line(*number), source.number_name(index));
                    let problem = format!("expected a number, but found {value}");
                    Error::cell(&source.path, place, name, problem)
                })?,
            });
        }
        out.fill(values.into_iter());
        Ok(true)
    }
}
