//! Vectors with their columns out of a table: one snapshot, in the order of ids, in constant memory but for the
//! columns. Rows without a vector, a label or a camera are left out and counted.

use super::conditions::{Condition, conditions};
use super::connect::Address;
use super::failure::server_error;
use super::table::{Table, place};
use super::vectors::{VectorType, decode_vector};
use crate::sql::TableName;
use crate::{Error, Result};
use metra::linalg::RowBuf;
use postgres::types::ToSql;
use postgres::{IsolationLevel, Portal, Transaction};

/// Rows that are fetched at once.
const BATCH: i32 = 2_000;

/// The request of a pull.
#[derive(Debug, Clone)]
pub struct Pulling {
    /// The table, or a view.
    pub table: TableName,
    /// Its column of identifiers.
    pub id: String,
    /// Its column of vectors.
    pub vector: String,
    /// Further columns: label, camera, others.
    pub columns: Vec<String>,
    /// Which rows.
    pub conditions: Vec<Condition>,
}

/// The values of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values {
    /// Of a column of whole numbers.
    Integers(Vec<i64>),
    /// Of any other, as the server prints them.
    Texts(Vec<String>),
}

/// What was found, before any vector is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    /// Dimension of the vectors; `None` where there is no row.
    pub dim: Option<usize>,
    /// The ids and the further columns, in the order asked for.
    pub columns: Vec<(String, Values)>,
    /// Rows that are given.
    pub rows: u64,
    /// Rows that the conditions allow and that have no vector.
    pub without_vector: u64,
    /// Rows with a vector in which one of the further columns is NULL.
    pub without_value: u64,
}

/// The vectors, in the order of the columns' values.
pub struct Vectors<'a, 'b> {
    transaction: &'a mut Transaction<'b>,
    portal: Portal,
    kind: VectorType,
    place: String,
    dim: usize,
}

/// Read columns, then vectors: `take` is called with both.
pub fn pull<T, E: From<Error>>(
    address: &Address,
    what: &Pulling,
    take: impl FnOnce(&Pulled, Vectors<'_, '_>) -> Result<T, E>,
) -> Result<T, E> {
    let mut client = address.connect()?;
    let table = Table::inspect(&mut client, &what.table)?;
    let place = place(&table.name, &what.vector);
    let refused = |e: postgres::Error| server_error(&place, &e);
    // One snapshot: both passes see the same rows, whatever is written meanwhile.
    let mut transaction = client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .map_err(refused)?;
    let statements = PullStatements::new(&table, what)?;
    let parameters: Vec<&(dyn ToSql + Sync)> =
        (what.conditions.iter()).map(|c| &c.value as _).collect();
    let mut pulled = statements.count(&mut transaction, &parameters)?;
    let names = std::iter::once(&what.id).chain(&what.columns);
    for (at, name) in names.enumerate() {
        let values = statements.values(&mut transaction, &table, name, &parameters)?;
        // An id and a label may be one column.
        if at == 0 || !pulled.columns.iter().any(|(known, _)| known == name) {
            pulled.columns.push((name.clone(), values));
        }
    }
    let text = statements.vectors();
    let portal = transaction.bind(&text, &parameters).map_err(refused)?;
    let vectors = Vectors {
        transaction: &mut transaction,
        portal,
        kind: statements.kind,
        place: place.clone(),
        dim: pulled.dim.unwrap_or(1),
    };
    take(&pulled, vectors)
}

impl Vectors<'_, '_> {
    /// The next rows; false where there is none left.
    pub fn next(&mut self, out: &mut RowBuf) -> Result<bool> {
        let rows = self.transaction.query_portal(&self.portal, BATCH);
        let rows = rows.map_err(|e| server_error(&self.place, &e))?;
        let mut values = Vec::with_capacity(rows.len() * self.dim);
        for row in &rows {
            let dim = decode_vector(row, 1, self.kind, &self.place, &mut values)?;
            if dim != self.dim {
                let id: String = row.try_get(0).map_err(|e| server_error(&self.place, &e))?;
                let (place, expected) = (&self.place, self.dim);
                let problem = format!(
                    "expected a vector of dimension {expected} as in the rows before, but found {dim}"
                );
                return Err(Error::found(
                    format!("{place}, the row with id {id}"),
                    problem,
                ));
            }
        }
        *out = RowBuf::from_values(values, self.dim)?;
        Ok(!rows.is_empty())
    }
}

/// The parts of the statements.
struct PullStatements {
    table: String,
    id: String,
    vector: String,
    kind: VectorType,
    dim: Option<usize>,
    /// Conditions of the caller.
    filter: String,
    /// That no further column is NULL.
    whole: String,
    extension: String,
    place: String,
}

impl PullStatements {
    fn new(table: &Table, what: &Pulling) -> Result<Self> {
        let (vector, kind, dim) = table.numbers(&what.vector)?;
        let mut whole = format!(" AND {} IS NOT NULL", table.ids(&what.id)?.quoted);
        for name in &what.columns {
            whole += &format!(" AND {} IS NOT NULL", table.column(name)?.quoted);
        }
        Ok(PullStatements {
            table: table.quoted.clone(),
            id: table.ids(&what.id)?.quoted.clone(),
            vector: vector.quoted.clone(),
            kind,
            dim,
            filter: conditions(table, &what.conditions, 1)?,
            whole,
            extension: table.extension.schema.clone(),
            place: place(&table.name, &what.vector),
        })
    }

    fn count(
        &self,
        transaction: &mut Transaction<'_>,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Pulled> {
        let PullStatements {
            table,
            vector,
            filter,
            whole,
            ..
        } = self;
        let refused = |e: postgres::Error| server_error(&self.place, &e);
        let text = format!(
            "SELECT count(*), count({vector}), count(*) FILTER (WHERE {vector} IS NOT NULL{whole}) \
             FROM {table} WHERE true{filter}"
        );
        let row = transaction.query_one(&text, parameters).map_err(refused)?;
        let (all, with, given): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
        let mut dim = self.dim;
        if dim.is_none() {
            let text = format!(
                "SELECT {}.vector_dims({vector}) FROM {table} WHERE {vector} IS NOT \
                 NULL{whole}{filter} ORDER BY {} LIMIT 1",
                self.extension, self.id
            );
            let row = transaction.query_opt(&text, parameters).map_err(refused)?;
            dim = row.and_then(|row| usize::try_from(row.get::<_, i32>(0)).ok());
        }
        Ok(Pulled {
            dim: dim.filter(|_| given > 0),
            columns: Vec::new(),
            rows: given.unsigned_abs(),
            without_vector: (all - with).unsigned_abs(),
            without_value: (with - given).unsigned_abs(),
        })
    }

    /// One column, all rows.
    fn values(
        &self,
        transaction: &mut Transaction<'_>,
        table: &Table,
        name: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Values> {
        let column = table.column(name)?;
        let refused = |e: postgres::Error| server_error(&place(&table.name, name), &e);
        let (mut integers, mut texts) = (Vec::new(), Vec::new());
        let kind = if column.is_whole() { "bigint" } else { "text" };
        let text = self.select(&format!("{}::{kind}", column.quoted));
        let portal = transaction.bind(&text, parameters).map_err(refused)?;
        loop {
            let rows = transaction.query_portal(&portal, 10 * BATCH);
            let rows = rows.map_err(refused)?;
            if rows.is_empty() {
                return Ok(match column.is_whole() {
                    true => Values::Integers(integers),
                    false => Values::Texts(texts),
                });
            }
            for row in &rows {
                match column.is_whole() {
                    true => integers.push(row.try_get(0).map_err(refused)?),
                    false => texts.push(row.try_get(0).map_err(refused)?),
                }
            }
        }
    }

    fn vectors(&self) -> String {
        self.select(&format!("{}::text, {}", self.id, self.vector))
    }

    fn select(&self, what: &str) -> String {
        let PullStatements {
            table,
            id,
            vector,
            filter,
            whole,
            ..
        } = self;
        // A bare name in ORDER BY would mean the text that is selected under it, in the order of texts.
        format!(
            "SELECT {what} FROM {table} AS stored WHERE {vector} IS NOT NULL{whole}{filter} ORDER BY \
             stored.{id}"
        )
    }
}
