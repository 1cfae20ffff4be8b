//! JSON lines: one object a line, whose keys are the columns.

use crate::column::Cell;
use crate::element::{ElementType, Vector};
use crate::error::{Error, Place, Result};
use crate::lines::visit_lines;
use crate::sink::{Chunk, Source, collect};
use crate::table::{ReadProgress, Table, TableOptions, positions};
use crate::vector_columns::VectorColumns;
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
    // An object's keys have no order of their own.
    let mut names: Vec<String> = first.keys().cloned().collect();
    names.sort_unstable();
    let taken = positions(path, &names, options)?;
    let is_free = |column: &usize| !taken.contains(column);
    // A vector that is named may be missing in the first object.
    let is_named = |column: &usize| {
        let named = options.vector.iter().flat_map(|vector| vector.split(','));
        named.map(str::trim).any(|name| name == names[*column])
    };
    let is_list = |column: &usize| {
        let value = &first[&names[*column]];
        value.is_array() || (value.is_null() && is_named(column))
    };
    let lists = (0..names.len()).filter(|column| is_free(column) && is_list(column));
    let lists: Vec<usize> = lists.collect();
    let vector = VectorColumns::find(path, &names, &taken, &lists, options)?;
    if let VectorColumns::List(_) | VectorColumns::Lists(_) = vector
        && let Some(column) = vector.all().iter().find(|column| taken.contains(column))
    {
        let problem = format!(
            "{:?} is the vector: expected another column of names",
            names[*column]
        );
        return Err(Error::file(path, problem));
    }
    let wanted = options.columns.iter().cloned();
    let filtered = options.filters.iter().map(|filter| filter.column.clone());
    let source = JsonSource {
        path: path.to_path_buf(),
        names,
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
    /// The keys of the first object.
    names: Vec<String>,
    vector: VectorColumns,
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
        self.vector.name(&self.names)
    }

    fn number_name(&self, index: usize) -> String {
        self.vector.number_name(&self.names, index)
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
        let value = self.rows[row].1.get(&self.source.columns[column]);
        value.map_or(Cell::Null, cell)
    }

    fn vector(&self, row: usize, out: &mut Vector) -> Result<bool> {
        let (number, object) = &self.rows[row];
        let source = self.source;
        let bad = |name: String, expected: &str, found: &Value| {
            let problem = format!("expected {expected}, but found {found}");
            Error::cell(&source.path, Place::Line(*number), name, problem)
        };
        let key = |column: &usize| object.get(&source.names[*column]).unwrap_or(&Value::Null);
        let mut numbers: Vec<&Value> = Vec::new();
        for column in source.vector.all() {
            match (&source.vector, key(column)) {
                (VectorColumns::Numbers(_), number) => numbers.push(number),
                (_, Value::Null) => return Ok(false),
                (_, Value::Array(list)) => numbers.extend(list),
                (_, other) => {
                    let name = source.names[*column].clone();
                    return Err(bad(name, "a list of numbers", other));
                }
            }
        }
        let mut values = Vec::with_capacity(numbers.len());
        for (index, value) in numbers.into_iter().enumerate() {
            values.push(match value {
                Value::Null => f64::NAN,
                value => (value.as_f64())
                    .ok_or_else(|| bad(source.number_name(index), "a number", value))?,
            });
        }
        out.fill(values.into_iter());
        Ok(true)
    }

    fn vector_dims(&self, row: usize) -> Vec<usize> {
        let VectorColumns::Lists(columns) = &self.source.vector else {
            return Vec::new();
        };
        let lists = columns.iter().map(|column| &self.source.names[*column]);
        let list = |name: &String| self.rows[row].1.get(name).and_then(Value::as_array);
        lists.map(|name| list(name).map_or(0, Vec::len)).collect()
    }
}

/// A value as a cell of a column.
fn cell(value: &Value) -> Cell<'_> {
    match value {
        Value::Null => Cell::Null,
        Value::Bool(value) => Cell::Bool(*value),
        Value::String(text) => Cell::Text(text),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(value), _) => Cell::Integer(value),
            (None, Some(value)) => Cell::from_float(value),
            (None, None) => Cell::Other(number.to_string()),
        },
        Value::Array(values) => Cell::list(values.iter().map(cell)),
        Value::Object(_) => Cell::Other(value.to_string()),
    }
}
