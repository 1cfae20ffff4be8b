//! Text files with a header: CSV, TSV and others with a separator.

use crate::column::Cell;
use crate::element::{ElementType, Vector};
use crate::error::{Error, Place, Result};
use crate::lines::first_line;
use crate::sink::{Chunk, Source, collect};
use crate::table::{ReadProgress, Table, TableOptions, positions};
use crate::vector_columns::VectorColumns;
use csv::{Reader, ReaderBuilder, StringRecord};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Records held at once.
const CHUNK_ROWS: usize = 1024;

pub(crate) fn read(
    path: &Path,
    delimiter: u8,
    options: &TableOptions,
    progress: ReadProgress<'_>,
) -> Result<Table> {
    let mut reader = open(path, delimiter)?;
    let header = reader.headers().map_err(|e| damaged(path, e))?;
    let mut names: Vec<String> = header.iter().map(|n| n.trim().to_owned()).collect();
    if let Some(first) = names.first_mut()
        && let Some(rest) = first.strip_prefix('\u{feff}')
    {
        *first = rest.to_owned();
    }
    let columns = positions(path, &names, options)?;
    let vector = VectorColumns::find(path, &names, &columns, &[], options)?;
    let source = CsvSource {
        crlf: ends_in_crlf(path)?,
        path: path.to_path_buf(),
        delimiter,
        names,
        vector,
        columns,
    };
    collect(&source, options, progress)
}

/// A number of a text file; a missing one is NaN.
fn number(field: &str) -> Option<f64> {
    match field {
        "" | "NA" | "N/A" | "null" | "NULL" | "None" => Some(f64::NAN),
        field => field.parse().ok(),
    }
}

/// The numbers of a list such as `[0.1, 0.2]`, or as numpy prints it: `[0.1 0.2]`. A single number is
/// a list, too.
fn numbers(field: &str) -> Option<Vec<f64>> {
    let inner = field.strip_prefix('[').and_then(|f| f.strip_suffix(']'));
    let inner = inner.unwrap_or(field).trim();
    match inner.contains(',') {
        true => inner.split(',').map(|part| number(part.trim())).collect(),
        false => inner.split_whitespace().map(number).collect(),
    }
}

fn open(path: &Path, delimiter: u8) -> Result<Reader<File>> {
    ReaderBuilder::new()
        .delimiter(delimiter)
        // The number of fields is checked here, so that the message can name the line.
        .flexible(true)
        .from_path(path)
        .map_err(|e| damaged(path, e))
}

fn damaged(path: &Path, error: csv::Error) -> Error {
    let line = error.position().map(|p| p.line());
    match (error.into_kind(), line) {
        (csv::ErrorKind::Io(error), _) => Error::io(path, error),
        (csv::ErrorKind::Utf8 { err, .. }, Some(line)) => Error::row(
            path,
            Place::Line(line),
            format!(
                "expected UTF-8, but found other bytes in field {}",
                err.field()
            ),
        ),
        (kind, _) => Error::format(path, "CSV", format!("{kind:?}")),
    }
}

struct CsvSource {
    path: PathBuf,
    /// Whether lines end in `\r\n`.
    crlf: bool,
    delimiter: u8,
    names: Vec<String>,
    vector: VectorColumns,
    columns: Vec<usize>,
}

impl Source for CsvSource {
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

    fn number_name(&self, index: usize) -> String {
        self.vector.number_name(&self.names, index)
    }

    fn chunks(&self, visit: &mut dyn FnMut(&dyn Chunk) -> Result<()>) -> Result<()> {
        let mut reader = open(&self.path, self.delimiter)?;
        let mut chunk = CsvChunk {
            source: self,
            records: vec![StringRecord::new(); CHUNK_ROWS],
            len: 0,
        };
        loop {
            let record = &mut chunk.records[chunk.len];
            let more = reader
                .read_record(record)
                .map_err(|e| damaged(&self.path, e))?;
            if more {
                if record.len() != self.names.len() {
                    let problem = format!(
                        "expected {} fields as in the header, but found {}",
                        self.names.len(),
                        record.len()
                    );
                    return Err(Error::row(
                        &self.path,
                        Place::Line(self.line(record)),
                        problem,
                    ));
                }
                chunk.len += 1;
            }
            if chunk.len == CHUNK_ROWS || (!more && chunk.len > 0) {
                visit(&chunk)?;
                chunk.len = 0;
            }
            if !more {
                return Ok(());
            }
        }
    }
}

impl CsvSource {
    fn line(&self, record: &StringRecord) -> u64 {
        // The reader ends a record at `\r` and counts the line at the `\n`, with the next one.
        record.position().map_or(0, |p| p.line()) + u64::from(self.crlf)
    }
}

fn ends_in_crlf(path: &Path) -> Result<bool> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    Ok(first_line(path, file)?.ends_with(b"\r\n"))
}

struct CsvChunk<'a> {
    source: &'a CsvSource,
    records: Vec<StringRecord>,
    len: usize,
}

impl Chunk for CsvChunk<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn number(&self, row: usize) -> u64 {
        self.source.line(&self.records[row])
    }

    fn cell(&self, column: usize, row: usize) -> Cell<'_> {
        Cell::from_field(self.records[row][self.source.columns[column]].trim())
    }

    fn vector(&self, row: usize, out: &mut Vector) -> Result<bool> {
        let (record, source) = (&self.records[row], self.source);
        let bad = |column: usize, expected: &str| {
            let place = Place::Line(source.line(record));
            let found = record[column].trim();
            let hint = match (found.contains(','), source.delimiter) {
                (true, b';') => " (numbers need a decimal point)",
                _ => "",
            };
            let problem = format!("expected {expected}, but found {found:?}{hint}");
            Error::cell(&source.path, place, &source.names[column], problem)
        };
        let values = match &source.vector {
            VectorColumns::Numbers(columns) => (columns.iter())
                .map(|column| {
                    number(record[*column].trim()).ok_or_else(|| bad(*column, "a number"))
                })
                .collect::<Result<Vec<f64>>>()?,
            VectorColumns::List(_) | VectorColumns::Lists(_) => {
                let mut values = Vec::new();
                for column in source.vector.all() {
                    let field = record[*column].trim();
                    if field.is_empty() {
                        return Ok(false);
                    }
                    values.extend(numbers(field).ok_or_else(|| bad(*column, "a list of numbers"))?);
                }
                values
            }
        };
        out.fill(values.into_iter());
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_in_a_field() {
        assert_eq!(numbers("[1, 2.5]"), Some(vec![1.0, 2.5]));
        assert_eq!(numbers("[1. -2e1\n 3]"), Some(vec![1.0, -20.0, 3.0]));
        assert_eq!(numbers("7"), Some(vec![7.0]));
        assert_eq!(numbers("[a]"), None);
        assert!(numbers("[1,,2]").unwrap()[1].is_nan());
    }
}
