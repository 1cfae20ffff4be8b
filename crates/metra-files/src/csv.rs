//! CSV and TSV with a header. Which columns make the vector is decided by their names alone (see
//! [`crate::read_table`]), never by whether they look like numbers: an id looks like one, too.

use crate::column::Cell;
use crate::element::{ElementType, Vector};
use crate::error::{Error, Place, Result};
use crate::sink::{Chunk, Source, collect};
use crate::table::{ReadProgress, Table, TableOptions, no_vector, positions};
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
    let prefix = options.vector.as_deref().unwrap_or("vector");
    let vector = if prefix == "*" {
        (0..names.len()).filter(|i| !columns.contains(i)).collect()
    } else {
        numbered(path, &names, prefix)?
    };
    if vector.is_empty() {
        let expected = match prefix {
            "*" => "columns beside those wanted and filtered on".into(),
            prefix => format!("columns {prefix}_0, {prefix}_1, … for the vectors"),
        };
        return Err(no_vector(path, &expected, &names));
    }
    let source = CsvSource {
        path: path.to_path_buf(),
        delimiter,
        names,
        vector,
        columns,
    };
    collect(&source, options, progress)
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

/// Columns named by a prefix and a number, in the order of the numbers, which must not repeat.
fn numbered(path: &Path, names: &[String], prefix: &str) -> Result<Vec<usize>> {
    let mut found: Vec<(u64, usize)> = Vec::new();
    for (position, name) in names.iter().enumerate() {
        let Some(rest) = name.strip_prefix(prefix) else {
            continue;
        };
        let digits = rest.strip_prefix('_').unwrap_or(rest);
        if digits.bytes().all(|b| b.is_ascii_digit())
            && let Ok(number) = digits.parse()
        {
            found.push((number, position));
        }
    }
    found.sort_unstable();
    if let Some(pair) = found.windows(2).find(|w| w[0].0 == w[1].0) {
        let problem = format!(
            "expected every number of the vector once, but found the columns {:?} and {:?}",
            names[pair[0].1], names[pair[1].1]
        );
        return Err(Error::file(path, problem));
    }
    // A gap is a lost column more often than a choice.
    if let Some(pair) = found.windows(2).find(|w| w[0].0 + 1 != w[1].0) {
        let problem = format!(
            "expected the numbers of the vector without gaps, but {:?} is followed by {:?}",
            names[pair[0].1], names[pair[1].1]
        );
        return Err(Error::file(path, problem));
    }
    Ok(found.into_iter().map(|(_, position)| position).collect())
}

struct CsvSource {
    path: PathBuf,
    delimiter: u8,
    names: Vec<String>,
    vector: Vec<usize>,
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
        self.names[self.vector[index]].clone()
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
                    return Err(Error::row(&self.path, Place::Line(line(record)), problem));
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

fn line(record: &StringRecord) -> u64 {
    record.position().map_or(0, |p| p.line())
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
        line(&self.records[row])
    }

    fn cell(&self, column: usize, row: usize) -> Cell<'_> {
        Cell::from_field(self.records[row][self.source.columns[column]].trim())
    }

    fn vector(&self, row: usize, out: &mut Vector) -> Result<()> {
        let record = &self.records[row];
        let mut values = Vec::with_capacity(self.source.vector.len());
        for position in &self.source.vector {
            let field = record[*position].trim();
            values.push(field.parse::<f64>().map_err(|_| {
                let place = Place::Line(line(record));
                let problem = format!("expected a number, but found {field:?}");
                Error::cell(
                    &self.source.path,
                    place,
                    &self.source.names[*position],
                    problem,
                )
            })?);
        }
        out.fill(values.into_iter());
        Ok(())
    }
}
