//! `metra pull`: vectors and labels from a table of PostgreSQL to a Parquet file, for training.

use crate::args::Common;
use crate::interrupt;
use crate::postgres_filters::conditions;
use crate::print;
use crate::progress::Reporter;
use anyhow::{Result, bail, ensure};
use clap::Args;
use metra::linalg::RowBuf;
use metra_files::{Column, Filter, ParquetVectorWriter};
use metra_stores::postgres::{Address, Pulled, Pulling, Values, Vectors, pull};
use serde::Serialize;
use std::path::PathBuf;

/// Fetch vectors and labels from a table of PostgreSQL.
///
/// All rows are of one moment, in the order of their ids. Rows without a vector, a label or a camera are
/// left out and counted.
#[derive(Args)]
pub(crate) struct Pull {
    /// The database: postgres://user@host/database (password: there, or in PGPASSWORD)
    database: String,
    /// The table (`docs` or `schema.docs`)
    #[arg(long, value_name = "TABLE")]
    table: String,
    /// Column of ids
    #[arg(long, value_name = "COLUMN", default_value = "id")]
    id: String,
    /// Column of vectors
    #[arg(long, value_name = "COLUMN", default_value = "embedding")]
    vector: String,
    /// Column of class labels
    #[arg(long, value_name = "COLUMN")]
    label: Option<String>,
    /// Column of the camera or session a vector comes from
    #[arg(long, value_name = "COLUMN")]
    camera: Option<String>,
    /// Further columns (repeatable)
    #[arg(long, value_name = "COLUMN")]
    keep: Vec<String>,
    /// Keep only rows with this value (column=value or column!=value; repeatable)
    #[arg(long = "where", value_name = "FILTER")]
    filters: Vec<Filter>,
    /// Where to write: .parquet, with the vectors in the column `vector`
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Serialize)]
struct Done {
    rows: u64,
    dim: usize,
    without_vector: u64,
    without_value: u64,
    output: PathBuf,
}

impl Pull {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        let parquet = self.output.extension().is_some_and(|e| e == "parquet");
        ensure!(parquet, "{}: expected .parquet", self.output.display());
        let address = Address::parse(&self.database)?;
        let mut columns: Vec<String> = Vec::new();
        for name in [&self.label, &self.camera]
            .into_iter()
            .flatten()
            .chain(&self.keep)
        {
            if !columns.contains(name) && *name != self.id {
                columns.push(name.clone());
            }
        }
        let what = Pulling {
            table: self.table.parse()?,
            id: self.id.clone(),
            vector: self.vector.clone(),
            columns,
            conditions: conditions(&self.filters),
        };
        let done = pull(&address, &what, |found, vectors| self.write(found, vectors))?;
        if common.json {
            return print::json(&done);
        }
        for (count, why) in [
            (done.without_vector, "without a vector"),
            (done.without_value, "in which a column is NULL"),
        ] {
            if count > 0 {
                print::fact("left out", &format!("{} rows {why}", print::count(count)))?;
            }
        }
        print::line(&format!(
            "{} vectors of dimension {} in {}",
            print::count(done.rows),
            done.dim,
            done.output.display()
        ))
    }

    fn write(&self, found: &Pulled, mut vectors: Vectors<'_, '_>) -> Result<Done> {
        let Some(dim) = found.dim else {
            bail!(
                "the table {}: expected rows with vectors, but none is left ({} have no vector, in {} a \
                 column is NULL)",
                self.table,
                found.without_vector,
                found.without_value
            );
        };
        let columns: Vec<(&str, Column)> = (found.columns.iter())
            .map(|(name, values)| {
                let values = match values {
                    Values::Integers(values) => Column::Integers(values.clone()),
                    Values::Texts(values) => Column::from_texts(values),
                };
                (name.as_str(), values)
            })
            .collect();
        let named: Vec<(&str, &Column)> = columns.iter().map(|(n, c)| (*n, c)).collect();
        let mut writer = ParquetVectorWriter::create(&self.output, "vector", dim, &named)?;
        let mut reporter = Reporter::new();
        reporter.start("pull");
        let (mut rows, mut done) = (RowBuf::empty(dim), 0);
        while vectors.next(&mut rows)? {
            interrupt::check()?;
            writer.push(rows.rows())?;
            done += rows.len() as u64;
            reporter.advance(done, Some(found.rows), || "rows".into());
        }
        writer.finish()?;
        reporter.finish();
        Ok(Done {
            rows: done,
            dim,
            without_vector: found.without_vector,
            without_value: found.without_value,
            output: self.output.clone(),
        })
    }
}
