//! The one way from any file to a table: filter rows, judge their values, narrow them to f32, and
//! keep them in memory or in a spool.
//!
//! Formats only say how to decode a chunk ([`Source`], [`Chunk`]). Types that f32 holds exactly
//! are read once and, in the rare case that the judgement asks for it, narrowed afterwards. Wider
//! types are read twice, because their ranges must be known before the first value is narrowed.

use crate::column::{Cell, Column, ColumnBuilder};
use crate::element::{ElementType, Vector};
use crate::error::{Error, Place, Result};
use crate::table::{MissingValues, NarrowingRule, ReadProgress, Table, TableOptions, place};
use metra::data::{Corpus, MappedCorpus, MemoryCorpus, Narrowing, RowId, SparseCorpus};
use metra::internal::{ColumnRanges, NarrowingJudgement, Spool};
use metra::linalg::{RowBuf, Rows};
use std::collections::BTreeSet;
use std::path::Path;

/// More distinct values than this are not listed when a filter keeps nothing.
const LISTED_VALUES: usize = 20;

/// A file that can be read from its start as often as needed.
pub(crate) trait Source {
    fn path(&self) -> &Path;
    fn element(&self) -> ElementType;
    /// Rows of the file, where its head says so.
    fn rows(&self) -> Option<u64>;
    /// Whether places are lines.
    fn text_file(&self) -> bool {
        false
    }
    /// Whether most numbers are 0, so that the others alone are kept.
    fn is_sparse(&self) -> bool {
        false
    }
    /// Name of the vector, for messages.
    fn vector_name(&self) -> String {
        "vector".into()
    }
    /// Name of one number of the vector, for messages.
    fn number_name(&self, index: usize) -> String;
    fn chunks(&self, visit: &mut dyn FnMut(&dyn Chunk) -> Result<()>) -> Result<()>;

    fn place(&self, number: u64) -> Place {
        place(self.text_file(), number)
    }

    /// What the library refused, with the names of the file.
    fn refused(&self, error: metra::Error) -> Error {
        match error {
            metra::Error::Cell {
                row,
                column,
                problem,
            } => {
                let name = self.number_name(column);
                Error::cell(self.path(), self.place(row), name, problem)
            }
            error => Error::metra(self.path(), error),
        }
    }
}

/// Some rows in a row, decoded on demand so that rows filtered away cost little.
pub(crate) trait Chunk {
    fn len(&self) -> usize;
    /// Row or line number in the file.
    fn number(&self, row: usize) -> u64;
    /// A cell of the wanted columns, followed by the columns of the filters.
    fn cell(&self, column: usize, row: usize) -> Cell<'_>;
    /// The vector of a row, with NaN for missing numbers; false where it is missing as a whole.
    fn vector(&self, row: usize, out: &mut Vector) -> Result<bool>;
    /// Dimensions of the vectors of a row that has all of them, where columns of several were named.
    fn vector_dims(&self, _row: usize) -> Vec<usize> {
        Vec::new()
    }
}

/// Read a whole file.
pub(crate) fn collect(
    source: &dyn Source,
    options: &TableOptions,
    progress: ReadProgress<'_>,
) -> Result<Table> {
    let mut pass = Pass::new(source, options);
    // A shift would fill sparse rows.
    let judging = options.narrowing == NarrowingRule::Judge && !source.is_sparse();
    let mut judged = None;
    if judging && !source.element().fits_f32() {
        let mut first = Pass::new(source, options);
        first.ranges = Some(ColumnRanges::new(0));
        first.passes = 2;
        first.run(progress)?;
        judged = first.ranges.map(|ranges| ranges.judge());
        pass.narrowing = judged.as_ref().and_then(|j| j.narrowing.clone());
        (pass.passes, pass.done) = (2, first.done);
    } else if let NarrowingRule::Apply(narrowing) = &options.narrowing {
        pass.narrowing = Some(narrowing.clone());
    } else if judging {
        pass.ranges = Some(ColumnRanges::new(0));
    }
    pass.store = Some(Store::Memory(Vec::new()));
    pass.run(progress)?;

    let dim = pass.dim;
    let mut store = pass.store.unwrap_or(Store::Memory(Vec::new()));
    if let Some(ranges) = pass.ranges {
        let judgement = ranges.judge();
        if let Some(narrowing) = &judgement.narrowing {
            store = store
                .narrowed(narrowing, dim, &options.cache_dir)
                .map_err(|e| Error::metra(source.path(), e))?;
        }
        pass.narrowing = judgement.narrowing.clone();
        judged = Some(judgement);
    }
    let mut notes = judged.as_ref().map_or(Vec::new(), notes);
    if pass.skipped > 0 {
        let all = pass.kept + pass.skipped;
        let skipped = pass.skipped;
        notes.push(format!(
            "{skipped} of {all} rows left out: a value is missing"
        ));
    }
    if matches!(store, Store::Spooled(_)) {
        let bytes = pass.kept as f64 * dim as f64 * 4.0;
        notes.push(format!(
            "spooled {} to {}",
            in_bytes(bytes),
            options.cache_dir.display()
        ));
    }
    let columns: Vec<Column> = pass.columns.into_iter().map(|c| c.finish()).collect();
    Ok(Table {
        corpus: store
            .finish(dim)
            .map_err(|e| Error::metra(source.path(), e))?,
        columns: options.columns.iter().cloned().zip(columns).collect(),
        rows: pass.rows,
        narrowing: pass.narrowing,
        notes,
        element_type: source.element(),
        vector_dims: pass.vector_dims,
        path: source.path().to_path_buf(),
        filtered: !options.filters.is_empty() || pass.skipped > 0,
        text_file: source.text_file(),
    })
}

/// What a judgement found, for the user.
pub(crate) fn notes(judgement: &NarrowingJudgement) -> Vec<String> {
    let columns = |count: usize| match count {
        1 => "1 column of the vectors is".to_owned(),
        n => format!("{n} columns of the vectors are"),
    };
    let mut notes = Vec::new();
    if judgement.constant_columns > 0 {
        notes.push(format!("{} constant", columns(judgement.constant_columns)));
    }
    if judgement.shifted_columns > 0 {
        notes.push(format!(
            "{} shifted to the middle of the range, because f32 would lose the \
             spread beside the offset",
            columns(judgement.shifted_columns)
        ));
    }
    if let Some(narrowing) = judgement.narrowing.as_ref().filter(|n| n.scale != 1.0) {
        notes.push(format!(
            "all values scaled by {:e} to suit f32",
            narrowing.scale
        ));
    }
    if judgement.lost_columns > 0 {
        notes.push(format!(
            "{} lost: the spread is too small beside the others for f32",
            columns(judgement.lost_columns)
        ));
    }
    notes
}

fn of_dims(dims: &[usize]) -> String {
    let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
    dims.join(", ")
}

fn in_bytes(bytes: f64) -> String {
    match bytes {
        b if b >= 1e9 => format!("{:.1} GB", b / 1e9),
        b if b >= 1e6 => format!("{:.1} MB", b / 1e6),
        b => format!("{b:.0} bytes"),
    }
}

/// One reading of a file. With `ranges` it judges, with `store` it keeps.
struct Pass<'a> {
    source: &'a dyn Source,
    options: &'a TableOptions,
    narrowing: Option<Narrowing>,
    ranges: Option<ColumnRanges>,
    store: Option<Store>,
    columns: Vec<ColumnBuilder>,
    rows: Option<Vec<u64>>,
    /// Distinct values of each filter's column, followed only until a row is kept.
    values: Vec<BTreeSet<String>>,
    dim: usize,
    vector_dims: Vec<usize>,
    kept: u64,
    /// Rows left out because something is missing in them.
    skipped: u64,
    done: u64,
    passes: u64,
}

impl<'a> Pass<'a> {
    fn new(source: &'a dyn Source, options: &'a TableOptions) -> Self {
        let skips = options.missing == MissingValues::Skip;
        let numbered = source.text_file() || skips || !options.filters.is_empty();
        Pass {
            source,
            options,
            narrowing: None,
            ranges: None,
            store: None,
            columns: options
                .columns
                .iter()
                .map(|_| ColumnBuilder::default())
                .collect(),
            rows: numbered.then(Vec::new),
            values: vec![BTreeSet::new(); options.filters.len()],
            dim: 0,
            vector_dims: Vec::new(),
            kept: 0,
            skipped: 0,
            done: 0,
            passes: 1,
        }
    }

    fn run(&mut self, progress: ReadProgress<'_>) -> Result<()> {
        let source = self.source;
        let mut vector = Vector::of(source.element());
        let mut narrow = Vec::new();
        let start = self.done;
        source.chunks(&mut |chunk| {
            for row in 0..chunk.len() {
                if self.keeps(chunk, row) {
                    self.take(chunk, row, &mut vector, &mut narrow)?;
                }
            }
            self.done += chunk.len() as u64;
            progress(self.done, source.rows().map(|rows| rows * self.passes));
            Ok(())
        })?;
        if self.kept == 0 {
            return Err(self.nothing_kept(self.done - start));
        }
        Ok(())
    }

    fn keeps(&mut self, chunk: &dyn Chunk, row: usize) -> bool {
        let filters = &self.options.filters;
        let first = self.options.columns.len();
        if self.kept == 0 {
            for (index, values) in self.values.iter_mut().enumerate() {
                if values.len() <= LISTED_VALUES
                    && let Some(text) = chunk.cell(first + index, row).text()
                    && !values.contains(&*text)
                {
                    values.insert(text.into_owned());
                }
            }
        }
        let mut holds = filters.iter().enumerate();
        holds.all(|(index, filter)| filter.holds(&chunk.cell(first + index, row)))
    }

    fn take(
        &mut self,
        chunk: &dyn Chunk,
        row: usize,
        vector: &mut Vector,
        narrow: &mut Vec<f32>,
    ) -> Result<()> {
        let number = chunk.number(row);
        if let Some(name) = self.missing(chunk, row, vector)? {
            if self.options.missing == MissingValues::Skip {
                self.skipped += 1;
                return Ok(());
            }
            let problem = "expected a value, but it is missing (an empty field, NaN or null); rows with \
                           missing values can be left out (--missing skip)";
            let (path, place) = (self.source.path(), self.source.place(number));
            return Err(Error::cell(path, place, name, problem));
        }
        let length = vector.len();
        let vector_dims = chunk.vector_dims(row);
        if self.kept == 0 {
            self.start(number, length)?;
            if vector_dims.contains(&0) {
                let problem = format!(
                    "expected vectors of at least 1 number, but found {}",
                    of_dims(&vector_dims)
                );
                return Err(self.bad_row(number, problem));
            }
            self.vector_dims = vector_dims;
        } else if vector_dims != self.vector_dims {
            let problem = format!(
                "expected vectors of dimensions {} as in the rows before, but found {}",
                of_dims(&self.vector_dims),
                of_dims(&vector_dims)
            );
            return Err(self.bad_row(number, problem));
        } else if length != self.dim {
            let problem = format!(
                "expected a vector of dimension {} as in the rows before, but found {length}",
                self.dim
            );
            return Err(self.bad_row(number, problem));
        }
        self.kept += 1;
        if let Some(ranges) = &mut self.ranges {
            let seen = match vector {
                Vector::Exact(values) => check_finite(number, values).map(|()| {
                    ranges.update_f32(values);
                }),
                Vector::Wide(values) => ranges.update(number, values),
            };
            seen.map_err(|e| self.source.refused(e))?;
        }
        if self.store.is_none() {
            return Ok(());
        }
        narrow.resize(length, 0.0);
        let narrowed = match (&self.narrowing, vector) {
            (Some(narrowing), Vector::Wide(values)) => narrowing.apply(number, values, narrow),
            (Some(narrowing), Vector::Exact(values)) => {
                let wide: Vec<f64> = values.iter().map(|v| f64::from(*v)).collect();
                narrowing.apply(number, &wide, narrow)
            }
            (None, Vector::Exact(values)) => {
                narrow.copy_from_slice(values);
                check_finite(number, narrow)
            }
            (None, Vector::Wide(values)) => as_they_are(number, values, narrow),
        };
        narrowed.map_err(|e| self.source.refused(e))?;
        self.keep(narrow)?;
        if let Some(rows) = &mut self.rows {
            rows.push(number);
        }
        for (index, name) in self.options.columns.iter().enumerate() {
            let cell = chunk.cell(index, row);
            if let Err(expected) = self.columns[index].try_push(&cell) {
                let found = cell.text().unwrap_or_default();
                let problem = format!("expected {expected}, but found {found}");
                let (path, place) = (self.source.path(), self.source.place(number));
                return Err(Error::cell(path, place, name, problem));
            }
        }
        Ok(())
    }

    /// Read the vector of a row; the name of what is missing in the row, if something is.
    fn missing(
        &self,
        chunk: &dyn Chunk,
        row: usize,
        vector: &mut Vector,
    ) -> Result<Option<String>> {
        if !chunk.vector(row, vector)? {
            return Ok(Some(self.source.vector_name()));
        }
        if let Some(index) = vector.first_missing() {
            return Ok(Some(self.source.number_name(index)));
        }
        let mut columns = self.options.columns.iter().enumerate();
        let missing = columns.find(|(index, _)| chunk.cell(*index, row) == Cell::Null);
        Ok(missing.map(|(_, name)| name.clone()))
    }

    /// With the first row kept the dimension is known, and with it where the rows should go.
    fn start(&mut self, number: u64, dim: usize) -> Result<()> {
        if dim == 0 {
            let problem = "expected a vector of at least 1 number, but found 0".to_owned();
            return Err(self.bad_row(number, problem));
        }
        if let Some(narrowing) = &self.narrowing
            && narrowing.shift.len() != dim
        {
            let problem = format!(
                "expected vectors of dimension {}, as the narrowing prescribes, but found {dim}",
                narrowing.shift.len()
            );
            return Err(Error::file(self.source.path(), problem));
        }
        self.dim = dim;
        if self.ranges.is_some() {
            self.ranges = Some(ColumnRanges::new(dim));
        }
        let Some(Store::Memory(values)) = &mut self.store else {
            return Ok(());
        };
        if self.source.is_sparse() {
            self.store = Some(Store::Sparse(SparseCorpus::new(dim)));
            return Ok(());
        }
        // Filters may leave little of a large file: then the limit is watched as rows come.
        if let Some(rows) = self
            .source
            .rows()
            .filter(|_| self.options.filters.is_empty())
        {
            let count = rows.saturating_mul(dim as u64);
            if count.saturating_mul(4) > self.options.memory {
                return self.spool();
            }
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            // A limit above what the machine has: the system refuses here, before it is too late.
            if values.try_reserve_exact(count).is_err() {
                return self.spool();
            }
        }
        Ok(())
    }

    fn keep(&mut self, row: &[f32]) -> Result<()> {
        if let Some(Store::Memory(values)) = &mut self.store {
            if (values.len() + row.len()) as u64 * 4 <= self.options.memory {
                values.extend_from_slice(row);
                return Ok(());
            }
            self.spool()?;
        }
        if let Some(Store::Sparse(corpus)) = &mut self.store {
            let entries = row.iter().enumerate().filter(|(_, value)| **value != 0.0);
            (corpus.push(entries.map(|(column, value)| (column as u32, *value))))
                .map_err(|e| Error::metra(self.source.path(), e))?;
            let (memory, rows) = (self.options.memory, corpus.len());
            let taken = 8 * (corpus.entries() as u64 + rows);
            if taken > memory {
                let problem = format!(
                    "its sparse vectors take more than the {memory} bytes that --memory allows: if that is \
                     meant, allow for more"
                );
                return Err(Error::file(self.source.path(), problem));
            }
        }
        if let Some(Store::Spooled(spool)) = &mut self.store {
            Rows::new(row, self.dim)
                .and_then(|rows| spool.push(rows))
                .map_err(|e| Error::metra(self.source.path(), e))?;
        }
        Ok(())
    }

    /// Move what is in memory to a spool.
    fn spool(&mut self) -> Result<()> {
        let path = self.source.path();
        let mut spool =
            Spool::new(&self.options.cache_dir, self.dim).map_err(|e| Error::metra(path, e))?;
        if let Some(Store::Memory(values)) = &self.store {
            Rows::new(values, self.dim)
                .and_then(|rows| spool.push(rows))
                .map_err(|e| Error::metra(path, e))?;
        }
        self.store = Some(Store::Spooled(spool));
        Ok(())
    }

    fn bad_row(&self, number: u64, problem: String) -> Error {
        Error::row(self.source.path(), self.source.place(number), problem)
    }

    fn nothing_kept(&self, seen: u64) -> Error {
        if seen == 0 {
            return Error::file(
                self.source.path(),
                "expected rows, but the file has none below its head",
            );
        }
        if self.skipped > 0 && self.options.filters.is_empty() {
            let problem = format!("a value is missing in each of the {seen} rows");
            return Error::file(self.source.path(), problem);
        }
        let filters: Vec<String> = self.options.filters.iter().map(|f| f.to_string()).collect();
        let mut problem = format!("no row of {seen} passes the filter {}", filters.join(", "));
        for (filter, values) in self.options.filters.iter().zip(&self.values) {
            if values.len() <= LISTED_VALUES {
                let values: Vec<&str> = values.iter().map(String::as_str).collect();
                problem += &format!("; {} has the values {}", filter.column, values.join(", "));
            }
        }
        Error::file(self.source.path(), problem)
    }
}

/// Where kept rows are.
enum Store {
    /// Sparse vectors, which are not spooled.
    Sparse(SparseCorpus),
    Memory(Vec<f32>),
    Spooled(Spool),
}

impl Store {
    /// The same rows, narrowed. A spool is written anew: that is rare, and reading the file again
    /// would cost more than the disk does.
    fn narrowed(self, narrowing: &Narrowing, dim: usize, folder: &Path) -> metra::Result<Store> {
        match self {
            Store::Sparse(corpus) => Ok(Store::Sparse(corpus)),
            Store::Memory(values) => {
                let mut rows = RowBuf::from_values(values, dim)?;
                narrowing.apply_rows(0, &mut rows)?;
                Ok(Store::Memory(rows.into_values()))
            }
            Store::Spooled(spool) => {
                let corpus: MappedCorpus = spool.finish()?;
                Ok(Store::Spooled(respooled(&corpus, narrowing, folder)?))
            }
        }
    }

    fn finish(self, dim: usize) -> metra::Result<Box<dyn Corpus>> {
        Ok(match self {
            Store::Sparse(corpus) => Box::new(corpus),
            Store::Memory(values) => {
                Box::new(MemoryCorpus::new(RowBuf::from_values(values, dim)?)?)
            }
            Store::Spooled(spool) => Box::new(spool.finish()?),
        })
    }
}

fn respooled(corpus: &dyn Corpus, narrowing: &Narrowing, folder: &Path) -> metra::Result<Spool> {
    let mut spool = Spool::new(folder, corpus.dim())?;
    let mut buffer = RowBuf::empty(corpus.dim());
    corpus.scan(0..corpus.len(), &mut |first: RowId, rows| {
        buffer.clear(rows.dim());
        buffer.extend(rows);
        narrowing.apply_rows(first, &mut buffer)?;
        spool.push(buffer.rows())
    })?;
    Ok(spool)
}

/// Refuse values that are not finite, naming the first.
pub(crate) fn check_finite(row: u64, values: &[f32]) -> metra::Result<()> {
    match values.iter().position(|v| !v.is_finite()) {
        None => Ok(()),
        Some(column) => Err(metra::Error::Cell {
            row,
            column,
            problem: format!("expected a finite number, but found {}", values[column]),
        }),
    }
}

/// Narrow without shift and scale; the library words the refusal of what f32 cannot hold.
fn as_they_are(row: u64, values: &[f64], out: &mut [f32]) -> metra::Result<()> {
    for (out, value) in out.iter_mut().zip(values) {
        *out = *value as f32;
    }
    if out.iter().all(|v| v.is_finite()) {
        return Ok(());
    }
    ColumnRanges::new(values.len()).update(row, values)
}
