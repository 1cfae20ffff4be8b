//! A table as a corpus: learners ask it for moments and sums, and it sends the passes to its rows.

use crate::columns::{Vectors, column as column_of, first_list_length, texts, vector_dim};
use crate::engine::{Engine, TableColumns};
use crate::operators::Position;
use crate::table::ShardedTable;
use crate::{Error, Result};
use datafusion::arrow::array::Array;
use metra::data::{Corpus, Groups, RowId};
use metra::internal::fetched;
use metra::internal::{PartialResult, PassExecutor, Task, scan_rows};
use metra::linalg::{RowBuf, Rows};
use metra::supervision::Labels;
use std::ops::{ControlFlow, Range};

/// A table of vectors outside of this process's memory.
pub struct TableCorpus<'a> {
    engine: &'a Engine,
    table: ShardedTable,
    columns: TableColumns,
}

impl<'a> TableCorpus<'a> {
    /// The vectors of a column; of the first column of vectors where none is named.
    pub fn new(engine: &'a Engine, table: ShardedTable, vectors: Option<&str>) -> Result<Self> {
        let column = match vectors {
            Some(name) => name.to_owned(),
            None => table.vector_column()?,
        };
        let dim = match vector_dim(&column, table.column(&column)?)? {
            Some(dim) => dim,
            None => first_length(engine, &table, &column)?,
        };
        Ok(TableCorpus {
            engine,
            table,
            columns: TableColumns {
                vectors: (column, dim),
                classes: None,
                groups: None,
            },
        })
    }

    /// Read a column of classes, which later passes are keyed by.
    pub fn labels(&mut self, column: &str) -> Result<Labels> {
        let labels = Labels::from_names(&self.names(column)?)?;
        self.columns.classes = Some((column.to_owned(), labels.names().to_vec()));
        Ok(labels)
    }

    /// Read a column of groups (camera, session), which later passes are keyed by.
    pub fn groups(&mut self, column: &str) -> Result<Groups> {
        let groups = Groups::new(&self.names(column)?);
        self.columns.groups = Some((column.to_owned(), groups.names().to_vec()));
        Ok(groups)
    }

    /// The values of a column as text, one per row.
    pub fn names(&self, column: &str) -> Result<Vec<String>> {
        Self::names_of(self.engine, &self.table, column)
    }

    pub(crate) fn names_of(
        engine: &Engine,
        table: &ShardedTable,
        column: &str,
    ) -> Result<Vec<String>> {
        table.column(column)?;
        let mut names = Vec::with_capacity(table.len() as usize);
        let all: Vec<usize> = (0..table.shards()).collect();
        engine.read(table, &[column], &all, &mut |batch| {
            for name in texts(column, column_of(batch, column)?)? {
                let row = names.len() as u64;
                names.push(name.ok_or_else(|| metra::Error::Row {
                    row,
                    problem: format!("column {column}: expected a value, but found null"),
                })?);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(names)
    }

    /// The table.
    pub fn table(&self) -> &ShardedTable {
        &self.table
    }

    /// The columns that passes read.
    pub fn columns(&self) -> &TableColumns {
        &self.columns
    }
}

impl Engine {
    /// Dimension of a table's vectors.
    pub fn dim(&self, table: &ShardedTable, vectors: Option<&str>) -> Result<usize> {
        Ok(TableCorpus::new(self, table.clone(), vectors)?
            .columns
            .vectors
            .1)
    }
}

fn first_length(engine: &Engine, table: &ShardedTable, column: &str) -> Result<usize> {
    let mut length = None;
    let first = table.shards_within(0..1);
    engine.read(table, &[column], &first, &mut |batch| {
        let lists = batch.column_by_name(column).filter(|list| !list.is_empty());
        length = lists.and_then(first_list_length);
        Ok(match length {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        })
    })?;
    length.ok_or_else(|| Error::table(table.address(), "there is no vector"))
}

impl Corpus for TableCorpus<'_> {
    fn len(&self) -> u64 {
        self.table.len()
    }

    fn dim(&self) -> usize {
        self.columns.vectors.1
    }

    fn gather(&self, rows: &[RowId], out: &mut RowBuf) -> metra::Result<()> {
        if let Some(row) = rows.iter().find(|row| **row >= self.len()) {
            return Err(metra::Error::Row {
                row: *row,
                problem: format!("there is no such row: the table has {} rows", self.len()),
            });
        }
        *out = fetched(self, rows)?;
        Ok(())
    }

    fn scan(
        &self,
        range: Range<RowId>,
        visit: &mut dyn FnMut(RowId, Rows<'_>) -> metra::Result<()>,
    ) -> metra::Result<()> {
        let shards = self.table.shards_within(range.clone());
        let (column, dim) = &self.columns.vectors;
        let mut vectors = Vectors::default();
        let mut position = Position::default();
        self.engine
            .read(&self.table, &[column], &shards, &mut |batch| {
                let first = position.row_of(batch)?;
                let rows = vectors.rows(column_of(batch, column)?, *dim, first)?;
                let start = range.start.saturating_sub(first).min(rows.len() as u64) as usize;
                let end = range.end.saturating_sub(first).min(rows.len() as u64) as usize;
                let block = scan_rows(*dim);
                for from in (start..end).step_by(block) {
                    let to = end.min(from + block);
                    visit(first + from as u64, rows.slice(from, to))?;
                }
                Ok(ControlFlow::Continue(()))
            })?;
        Ok(())
    }

    fn pass_executor(&self) -> Option<Box<dyn PassExecutor + '_>> {
        Some(Box::new(RemoteCorpus(self)))
    }
}

struct RemoteCorpus<'a>(&'a TableCorpus<'a>);

impl PassExecutor for RemoteCorpus<'_> {
    fn run(&self, task: Task) -> metra::Result<Vec<PartialResult>> {
        let corpus = self.0;
        Ok(corpus.engine.run(&corpus.table, &corpus.columns, &task)?)
    }
}
