//! The statements that read and write rows, and rows as the model's chain takes them: ids, vectors, groups.
//!
//! Ids are sent as text and are cast to the column's own type on the server, so that one way serves whole
//! numbers, texts and UUIDs. Rows are read in the order of ids, from the last one on: no offset is counted
//! and no cursor is held open between two transactions.

use super::failure::server_error;
use super::request::Pushing;
use super::table::{Table, place};
use super::vectors::{VectorType, decode_vector};
use crate::{Error, Result};
use metra::data::{Batch, Groups, Narrowing};
use metra::linalg::RowBuf;
use metra::model::{Embedding, Model};
use postgres::{Client, Row};

/// The statements that read input rows and write vectors.
pub(super) struct RowStatements {
    table: String,
    id: String,
    id_type: String,
    from: String,
    kind: VectorType,
    camera: Option<String>,
    place: String,
    dim: usize,
    narrowing: Option<Narrowing>,
    groups: Option<Vec<String>>,
}

/// A batch of rows.
pub(super) struct Chunk {
    pub(super) ids: Vec<String>,
    values: RowBuf,
    groups: Option<Vec<u32>>,
}

impl Chunk {
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The first rows, as the chain takes them.
    pub(super) fn first(&self, count: usize) -> Batch<'_> {
        let count = count.min(self.len());
        let rows = self.values.rows().slice(0, count);
        Batch {
            rows,
            groups: self.groups.as_ref().and_then(|all| all.get(..count)),
        }
    }
}

impl RowStatements {
    pub(super) fn new(table: &Table, what: &Pushing, model: &Model) -> Result<Self> {
        let (from, kind, dim) = table.numbers(&what.from)?;
        let place = place(&table.name, &what.from);
        let expected = model.chain.input_dim();
        if let Some(dim) = dim.filter(|dim| *dim != expected) {
            let problem = format!(
                "expected vectors of dimension {expected}, as the model takes, but found {dim}"
            );
            return Err(Error::found(place, problem));
        }
        let groups = model.chain.group_names().map(<[String]>::to_vec);
        let camera = match (&groups, &what.camera) {
            (None, _) => None,
            (Some(_), Some(camera)) => Some(table.column(camera)?.quoted.clone()),
            (Some(names), None) => {
                let names = names.join(", ");
                let problem = format!(
                    "the model subtracts the mean of each vector's group ({names}): name the column \
                     with --camera"
                );
                return Err(Error::found(table.place(), problem));
            }
        };
        let id = table.ids(&what.id)?;
        Ok(RowStatements {
            table: table.quoted.clone(),
            id: id.quoted.clone(),
            id_type: id.kind.clone(),
            from: from.quoted.clone(),
            kind,
            camera,
            place,
            dim: expected,
            narrowing: model.narrowing.clone(),
            groups,
        })
    }

    /// The next rows: $1 how many, and after which id ($2). With a target, those whose target is missing
    /// are locked, and rows that others hold are left for later; without one, all are, in turn.
    pub(super) fn select(&self, after: bool, missing: Option<&str>) -> String {
        let lock = match missing {
            Some(_) => " FOR NO KEY UPDATE SKIP LOCKED",
            None => " FOR NO KEY UPDATE",
        };
        self.plain_select(after, missing) + lock
    }

    fn plain_select(&self, after: bool, missing: Option<&str>) -> String {
        let RowStatements {
            table, id, from, ..
        } = self;
        let camera = match &self.camera {
            Some(camera) => format!(", {camera}::text"),
            None => String::new(),
        };
        let after = if after {
            format!("{id} > $2::text::{} AND ", self.id_type)
        } else {
            String::new()
        };
        // A bare name in ORDER BY would mean the text that is selected under it, in the order of texts.
        let missing = missing.map_or(String::new(), |target| format!(" AND {target} IS NULL"));
        format!(
            "SELECT {id}::text, {from}{camera} FROM {table} AS stored WHERE {after}{id} IS NOT NULL AND \
             {from} IS NOT NULL{missing} ORDER BY stored.{id} LIMIT $1"
        )
    }

    /// What writes vectors: $1 ids, $2 vectors.
    pub(super) fn update(&self, target: &str, kind: &str) -> String {
        let RowStatements {
            table, id, id_type, ..
        } = self;
        format!(
            "UPDATE {table} AS stored SET {target} = arriving.place FROM unnest($1::text[], \
             $2::{kind}[]) AS arriving (name, place) WHERE stored.{id} = arriving.name::{id_type}"
        )
    }

    /// The first rows of the table.
    pub(super) fn sample(&self, client: &mut Client, rows: usize) -> Result<Chunk> {
        let limit = rows as i64;
        let found = client.query(&self.plain_select(false, None), &[&limit]);
        self.decode(&found.map_err(|e| server_error(&self.place, &e))?)
    }

    /// Rows of `select` as the chain takes them; an error names the id.
    pub(super) fn decode(&self, rows: &[Row]) -> Result<Chunk> {
        let refused = |e: postgres::Error| server_error(&self.place, &e);
        let mut ids = Vec::with_capacity(rows.len());
        let mut values = Vec::with_capacity(rows.len() * self.dim);
        let mut cameras = Vec::new();
        for row in rows {
            let id: String = row.try_get(0).map_err(refused)?;
            let dim = decode_vector(row, 1, self.kind, &self.place, &mut values)?;
            if dim != self.dim {
                let expected = self.dim;
                let problem = format!("expected a vector of dimension {expected}, but found {dim}");
                return Err(self.wrong(&id, problem));
            }
            if self.camera.is_some() {
                let camera: Option<String> = row.try_get(2).map_err(refused)?;
                let camera = camera
                    .ok_or_else(|| self.wrong(&id, "expected a camera, but found NULL".into()))?;
                cameras.push(camera);
            }
            ids.push(id);
        }
        let groups = match &self.groups {
            Some(names) => Some(Groups::new(&cameras).renumbered(names)?.of().to_vec()),
            None => None,
        };
        let mut values = RowBuf::from_values(values, self.dim)?;
        if let Some(narrowing) = &self.narrowing {
            let narrowed = narrowing.apply_rows(0, &mut values);
            narrowed.map_err(|e| self.of_row(e, &ids))?;
        }
        Ok(Chunk {
            ids,
            values,
            groups,
        })
    }

    /// An error about a row of a chunk, with the row's id.
    pub(super) fn of_row(&self, error: metra::Error, ids: &[String]) -> Error {
        let (row, problem) = match error {
            metra::Error::Row { row, problem } => (row, problem),
            metra::Error::Cell {
                row,
                column,
                problem,
            } => (row, format!("number {column}: {problem}")),
            error => return error.into(),
        };
        let id = usize::try_from(row).ok().and_then(|row| ids.get(row));
        self.wrong(id.map_or("unknown", String::as_str), problem)
    }

    fn wrong(&self, id: &str, problem: String) -> Error {
        Error::found(format!("{}, the row with id {id}", self.place), problem)
    }
}
