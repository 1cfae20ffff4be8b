//! The table `metra_models`, beside the tables that it speaks of: which model wrote which column, how far
//! it is, and which column applications search.
//!
//! The truth about a column's vectors is its comment, which moves with the column and is in every dump. The
//! registry adds what a comment cannot hold: how far a fill has come, names and versions for people, and
//! what a swap put aside. One row is one model in one column.

use super::connect::Address;
use super::failure::server_error;
use super::table::Table;
use crate::Result;
use crate::provenance::Provenance;
use crate::sql::identifier;
use metra::model::{Embedding, Model};
use postgres::{Client, GenericClient, Row, Transaction};
use serde::Serialize;

/// A row of the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PushedModel {
    #[serde(skip)]
    pub(super) id: i64,
    /// Schema of the table.
    pub schema: String,
    /// The table.
    pub table: String,
    /// The model's name.
    pub name: String,
    /// Counted for each name and table.
    pub version: i32,
    /// SHA-256 of the model file.
    pub checksum: String,
    /// The learner.
    pub method: String,
    /// What the metric compares by.
    pub space: String,
    /// The plan's way.
    pub way: String,
    /// What the store compares by.
    pub distance: String,
    /// Dimension of a stored vector.
    pub dimension: i32,
    /// Where the vectors are at present.
    pub column: String,
    /// Where the input vectors are at present.
    pub input: String,
    /// `filling`, `ready`, `serving`, `former` or `dropped`.
    pub state: String,
    /// Rows written so far.
    pub rows: i64,
    /// The name of the column before a swap.
    pub built_as: String,
    /// Where a swap put the column that was searched before.
    pub former: Option<String>,
    /// The id up to which all rows are done; only while filling.
    pub(super) last_id: Option<String>,
    /// Whether rows that have a vector are written again.
    pub(super) refill: bool,
    /// When it was made.
    pub created: String,
    /// When it was changed last.
    pub updated: String,
}

/// What the registries of a database say.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PushedModels {
    /// The models, by schema and table.
    pub models: Vec<PushedModel>,
    /// Schemas whose registry this user may not read.
    pub unreadable: Vec<String>,
}

const COLUMNS: &str = "id, table_name, name, version, checksum, method, space, way, distance, \
     dimension, column_name, input_column, state, rows_written, built_as, former_column, last_id, \
     refill, created::text, updated::text";

/// The registry of one schema.
#[derive(Debug, Clone)]
pub(super) struct Registry {
    schema: String,
    /// As it stands in SQL.
    pub(super) quoted: String,
}

impl Registry {
    /// Beside a table.
    pub(super) fn beside(table: &Table) -> Result<Self> {
        Registry::of(&table.schema)
    }

    fn of(schema: &str) -> Result<Self> {
        Ok(Registry {
            schema: schema.to_owned(),
            quoted: format!("{}.metra_models", identifier(schema)?),
        })
    }

    /// The statement that creates it.
    pub(super) fn create_statement(&self) -> String {
        format!(
            "CREATE TABLE IF NOT EXISTS {} (\
             id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, table_name text NOT NULL, \
             name text NOT NULL, version integer NOT NULL, checksum text NOT NULL, \
             method text NOT NULL, space text NOT NULL, way text NOT NULL, distance text NOT NULL, \
             dimension integer NOT NULL, column_name text NOT NULL, input_column text NOT NULL, \
             state text NOT NULL CHECK (state IN \
             ('filling', 'ready', 'serving', 'former', 'dropped')), \
             rows_written bigint NOT NULL DEFAULT 0, built_as text NOT NULL, former_column text, \
             last_id text, refill boolean NOT NULL DEFAULT false, \
             created timestamptz NOT NULL DEFAULT now(), \
             updated timestamptz NOT NULL DEFAULT now(), UNIQUE (table_name, name, version))",
            self.quoted
        )
    }

    pub(super) fn exists(&self, client: &mut impl GenericClient) -> Result<bool> {
        let found = client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&self.quoted]);
        Ok(found.map_err(|e| self.error(&e))?.get(0))
    }

    /// The row of a model in a column.
    pub(super) fn entry(
        &self,
        client: &mut impl GenericClient,
        table: &Table,
        column: &str,
        checksum: &str,
    ) -> Result<Option<PushedModel>> {
        if !self.exists(client)? {
            return Ok(None);
        }
        let text = format!(
            "SELECT {COLUMNS} FROM {} WHERE table_name = $1 AND column_name = $2 AND checksum = $3 \
             AND state <> 'dropped' ORDER BY id DESC LIMIT 1",
            self.quoted
        );
        let found = client
            .query_opt(&text, &[&table.name, &column, &checksum])
            .map_err(|e| self.error(&e))?;
        Ok(found.map(|row| self.entry_from_row(&row)))
    }

    /// A new row, after which rows of other models in the same column count as dropped.
    pub(super) fn insert(
        &self,
        client: &mut impl GenericClient,
        table: &Table,
        model: &Model,
        name: &str,
        record: &Provenance,
        (column, input, state): (&str, &str, &str),
    ) -> Result<i64> {
        let refused = |e: postgres::Error| self.error(&e);
        // Many models may serve a column that stays as it is; a column that is written has one.
        if !record.raw {
            let text = format!(
                "UPDATE {} SET state = 'dropped', updated = now() WHERE table_name = $1 \
                 AND column_name = $2",
                self.quoted
            );
            let parameters: [&(dyn postgres::types::ToSql + Sync); 2] = [&table.name, &column];
            client.execute(&text, &parameters).map_err(refused)?;
        }
        let text = format!(
            "INSERT INTO {0} (table_name, name, version, checksum, method, space, way, distance, \
             dimension, column_name, input_column, built_as, state) SELECT $1, $2, \
             1 + coalesce((SELECT max(version) FROM {0} WHERE table_name = $1 AND name = $2), 0), \
             $3, $4, $5, $6, $7, $8, $9, $10, $9, $11 RETURNING id",
            self.quoted
        );
        let dimension = i32::try_from(record.dimension).unwrap_or(i32::MAX);
        let row = client.query_one(
            &text,
            &[
                &table.name,
                &name,
                &record.model,
                &record.method,
                &model.chain.space().to_string(),
                &record.way.to_string(),
                &record.distance.to_string(),
                &dimension,
                &column,
                &input,
                &state,
            ],
        );
        Ok(row.map_err(refused)?.get(0))
    }

    /// The statement that records the progress of a fill: $1 the row, $2 rows more, $3 the last id (NULL keeps
    /// it), $4 whether rows that have a vector are written again.
    pub(super) fn progress_statement(&self) -> String {
        format!(
            "UPDATE {} SET rows_written = rows_written + $2, last_id = coalesce($3, last_id), \
             refill = $4, state = CASE WHEN $3 IS NULL THEN state ELSE 'filling' END, \
             updated = now() WHERE id = $1",
            self.quoted
        )
    }

    /// Record that every row has its vector.
    pub(super) fn mark_filled(&self, client: &mut Client, entry: &PushedModel) -> Result<()> {
        let state = match entry.state.as_str() {
            "former" => "former",
            _ if entry.former.is_some() => "serving",
            _ => "ready",
        };
        let text = format!(
            "UPDATE {} SET state = $2, last_id = NULL, refill = false, updated = now() WHERE id = $1",
            self.quoted
        );
        let done = client.execute(&text, &[&entry.id, &state]);
        done.map_err(|e| self.error(&e))?;
        Ok(())
    }

    /// Rows that name a column which gets another name, within the transaction that renames it; those in the
    /// first of two states get the second.
    pub(super) fn rename_column(
        &self,
        transaction: &mut Transaction<'_>,
        table: &Table,
        (before, after): (&str, &str),
        (state, new_state): (&str, &str),
    ) -> Result<(), postgres::Error> {
        let text = format!(
            "UPDATE {} SET column_name = CASE WHEN column_name = $2 THEN $3 ELSE column_name END, \
             input_column = CASE WHEN input_column = $2 THEN $3 ELSE input_column END, \
             state = CASE WHEN column_name = $2 AND state = '{state}' THEN '{new_state}' ELSE state END, \
             updated = now() WHERE table_name = $1 AND (column_name = $2 OR input_column = $2) \
             AND state <> 'dropped'",
            self.quoted
        );
        transaction.execute(&text, &[&table.name, &before, &after])?;
        Ok(())
    }

    /// A row of a query that selects [`COLUMNS`].
    fn entry_from_row(&self, row: &Row) -> PushedModel {
        PushedModel {
            id: row.get(0),
            schema: self.schema.clone(),
            table: row.get(1),
            name: row.get(2),
            version: row.get(3),
            checksum: row.get(4),
            method: row.get(5),
            space: row.get(6),
            way: row.get(7),
            distance: row.get(8),
            dimension: row.get(9),
            column: row.get(10),
            input: row.get(11),
            state: row.get(12),
            rows: row.get(13),
            built_as: row.get(14),
            former: row.get(15),
            last_id: row.get(16),
            refill: row.get(17),
            created: row.get(18),
            updated: row.get(19),
        }
    }

    pub(super) fn error(&self, error: &postgres::Error) -> crate::Error {
        server_error(&format!("the registry {}", self.quoted), error)
    }
}

/// Every model that the registries of a database know, table by table, the oldest first.
pub fn models(address: &Address) -> Result<PushedModels> {
    let mut client = address.connect()?;
    let schemas = client
        .query(
            "SELECT n.nspname::text, has_schema_privilege(n.oid, 'USAGE') AND \
             has_table_privilege(c.oid, 'SELECT') FROM pg_class c \
             JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relname = 'metra_models' AND c.relkind = 'r' ORDER BY 1",
            &[],
        )
        .map_err(|e| server_error(&address.to_string(), &e))?;
    let mut all = PushedModels::default();
    for row in schemas {
        let (schema, readable): (String, bool) = (row.get(0), row.get(1));
        if !readable {
            all.unreadable.push(schema);
            continue;
        }
        let registry = Registry::of(&schema)?;
        let text = format!(
            "SELECT {COLUMNS} FROM {} ORDER BY table_name, id",
            registry.quoted
        );
        let rows = client.query(&text, &[]).map_err(|e| registry.error(&e))?;
        all.models
            .extend(rows.iter().map(|row| registry.entry_from_row(row)));
    }
    Ok(all)
}
