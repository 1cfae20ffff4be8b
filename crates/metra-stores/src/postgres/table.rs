//! The table in the catalogue: its columns with their types and comments, and the extension.
//!
//! Everything is read from the catalogue at once. Types come from there as SQL text that the server itself
//! quoted; names of the user never do.

use super::failure::server_error;
use super::vectors::VectorType;
use crate::provenance::Provenance;
use crate::sql::{TableName, identifier};
use crate::{Error, Result};
use postgres::{Client, GenericClient};
use std::collections::BTreeMap;

/// Tables that a message lists at most.
const LISTED: i64 = 12;

/// Types of identifiers: what is the same again after a way through text, in one order.
const ID_TYPES: [&str; 6] = [
    "smallint",
    "integer",
    "bigint",
    "text",
    "character varying",
    "uuid",
];

/// A table as it was found.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) oid: u32,
    pub(super) schema: String,
    pub(super) name: String,
    /// Schema and name, quoted for SQL.
    pub(super) quoted: String,
    /// Rows as the server last counted; none where it never did.
    pub(super) estimate: Option<u64>,
    pub(super) columns: BTreeMap<String, Column>,
    /// In the order of the table.
    order: Vec<String>,
    pub(super) extension: Extension,
}

/// A column as it was found.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// Its name, quoted for SQL.
    pub(super) quoted: String,
    /// The type as SQL text.
    pub(super) kind: String,
    /// Type and dimension of the vectors, where it holds vectors.
    pub(super) vectors: Option<(VectorType, Option<usize>)>,
    pub(super) comment: Option<String>,
    /// Whether a whole index on this column alone says that values differ.
    pub(super) unique: bool,
}

/// pgvector.
#[derive(Debug, Clone)]
pub(super) struct Extension {
    /// Its schema, quoted for SQL: types and operators are named with it.
    pub(super) schema: String,
    pub(super) version: (u32, u32),
}

impl Table {
    /// Read the table from the catalogue; an error names what is absent and what exists instead.
    pub(super) fn inspect(client: &mut impl GenericClient, wanted: &TableName) -> Result<Self> {
        let place = format!("the table {wanted}");
        let refused = |e: postgres::Error| server_error(&place, &e);
        let extension = Extension::inspect(client)?;
        let quoted = wanted.quoted()?;
        let found = client
            .query_opt(
                "SELECT c.oid, n.nspname::text, c.relname::text, c.relkind::text, \
                 c.reltuples::float8 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                 WHERE c.oid = to_regclass($1)",
                &[&quoted],
            )
            .map_err(refused)?;
        let Some(found) = found else {
            return Err(absent(client, &place)?);
        };
        let oid: u32 = found.get(0);
        let (schema, name): (String, String) = (found.get(1), found.get(2));
        let (kind, tuples): (String, f64) = (found.get(3), found.get(4));
        if !["r", "p", "v", "m", "f"].contains(&kind.as_str()) {
            return Err(Error::found(place, "expected a table, but it is none"));
        }
        let mut columns = BTreeMap::new();
        let mut order = Vec::new();
        let rows = client
            .query(
                "SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), t.typname::text, \
                 a.atttypmod, col_description(a.attrelid, a.attnum), \
                 t.typnamespace = (SELECT extnamespace FROM pg_extension WHERE extname = 'vector'), \
                 EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisunique \
                 AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = 1 \
                 AND i.indkey[0] = a.attnum) \
                 FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid \
                 WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
                &[&oid],
            )
            .map_err(refused)?;
        for row in rows {
            let (name, typename, modifier): (String, String, i32) =
                (row.get(0), row.get(2), row.get(3));
            let of_extension: bool = row.get(5);
            // Bits are a type of PostgreSQL itself, whatever the extension's schema.
            let vectors = (typename.parse::<VectorType>().ok())
                .filter(|kind| of_extension || *kind == VectorType::Bit);
            let column = Column {
                quoted: identifier(&name)?,
                kind: row.get(1),
                // The modifier of a vector type is its dimension, or −1.
                vectors: vectors.map(|kind| (kind, usize::try_from(modifier).ok())),
                comment: row.get(4),
                unique: row.get(6),
            };
            order.push(name.clone());
            columns.insert(name, column);
        }
        Ok(Table {
            oid,
            quoted: format!("{}.{}", identifier(&schema)?, identifier(&name)?),
            schema,
            name,
            estimate: (tuples >= 0.0).then_some(tuples as u64),
            columns,
            order,
            extension,
        })
    }

    /// For messages.
    pub(super) fn place(&self) -> String {
        format!("the table {}", self.name)
    }

    /// A column, or an error that lists those that are there.
    pub(super) fn column(&self, name: &str) -> Result<&Column> {
        self.columns.get(name).ok_or_else(|| {
            let columns = self.order.join(", ");
            let problem = format!("expected the column {name:?}, but the columns are {columns}");
            Error::found(self.place(), problem)
        })
    }

    /// A column of vectors, or of their signs.
    pub(super) fn vectors(&self, name: &str) -> Result<(&Column, VectorType, Option<usize>)> {
        let column = self.column(name)?;
        match column.vectors {
            Some((kind, dim)) => Ok((column, kind, dim)),
            None => Err(self.no_vectors(name, column)),
        }
    }

    /// A column of vectors that can be read as numbers.
    pub(super) fn numbers(&self, name: &str) -> Result<(&Column, VectorType, Option<usize>)> {
        match self.vectors(name)? {
            (column, VectorType::Bit, _) => Err(self.no_vectors(name, column)),
            found => Ok(found),
        }
    }

    fn no_vectors(&self, name: &str, column: &Column) -> Error {
        let problem = format!("expected vector or halfvec, but found {}", column.kind);
        Error::found(place(&self.name, name), problem)
    }

    /// Rows that have an input vector and none in another column.
    pub(super) fn missing(
        &self,
        client: &mut Client,
        input: &str,
        column: &str,
        place: &str,
    ) -> Result<u64> {
        let text = format!(
            "SELECT count(*) FROM {} WHERE {} IS NOT NULL AND {} IS NULL",
            self.quoted,
            identifier(input)?,
            identifier(column)?
        );
        let row = client.query_one(&text, &[]);
        let count: i64 = row.map_err(|e| server_error(place, &e))?.get(0);
        Ok(count.unsigned_abs())
    }

    /// The column of identifiers: of a type that survives a way through text.
    pub(super) fn ids(&self, name: &str) -> Result<&Column> {
        let column = self.column(name)?;
        let kind = column.kind.split('(').next().unwrap_or_default();
        if !ID_TYPES.contains(&kind) {
            let (types, found) = (ID_TYPES.join(", "), &column.kind);
            let problem = format!("expected ids of one of the types {types}, but found {found}");
            return Err(Error::found(place(&self.name, name), problem));
        }
        Ok(column)
    }
}

impl Column {
    /// Whether values are whole numbers.
    pub(super) fn is_whole(&self) -> bool {
        ["smallint", "integer", "bigint"].contains(&self.kind.as_str())
    }

    /// The record in the comment; comments that people wrote are none.
    pub(super) fn record(&self, place: &str) -> Result<Option<Provenance>> {
        let text = self.comment.as_deref().filter(|text| text.starts_with('{'));
        text.map(|text| Provenance::from_text(text, place))
            .transpose()
    }
}

impl Extension {
    fn inspect(client: &mut impl GenericClient) -> Result<Self> {
        let place = "the database";
        let found = client
            .query_opt(
                "SELECT n.nspname::text, e.extversion FROM pg_extension e \
                 JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'",
                &[],
            )
            .map_err(|e| server_error(place, &e))?;
        let Some(found) = found else {
            let problem = "expected the extension of pgvector, but it is absent: run CREATE EXTENSION \
                           vector (on a server that has pgvector installed)";
            return Err(Error::found(place, problem));
        };
        let (schema, version): (String, String) = (found.get(0), found.get(1));
        let mut numbers = version.split('.').map(|part| part.parse().unwrap_or(0));
        Ok(Extension {
            schema: identifier(&schema)?,
            version: (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)),
        })
    }

    /// A type, with its schema. Without quotes `bit` would mean `bit(1)`.
    pub(super) fn kind(&self, kind: VectorType) -> String {
        match kind {
            VectorType::Bit => r#"pg_catalog."bit""#.into(),
            _ => format!("{}.{kind}", self.schema),
        }
    }

    /// An operator, with its schema.
    pub(super) fn operator(&self, operator: &str) -> String {
        format!("OPERATOR({}.{operator})", self.schema)
    }
}

/// A column for messages.
pub(super) fn place(table: &str, column: &str) -> String {
    format!("the column {column:?} of the table {table}")
}

fn absent(client: &mut impl GenericClient, place: &str) -> Result<Error> {
    let rows = client
        .query(
            "SELECT DISTINCT c.oid::regclass::text FROM pg_class c \
             JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid \
             WHERE c.relkind IN ('r', 'p') AND t.typname IN ('vector', 'halfvec') \
             ORDER BY 1 LIMIT $1",
            &[&LISTED],
        )
        .map_err(|e| server_error(place, &e))?;
    let names: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let there = if names.is_empty() {
        "no table here has vectors".to_owned()
    } else {
        format!("tables with vectors are {}", names.join(", "))
    };
    Ok(Error::found(place, format!("it is not there; {there}")))
}
