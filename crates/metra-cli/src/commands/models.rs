//! `metra models`: what the registries of a database know.

use crate::args::Common;
use crate::print;
use anyhow::Result;
use clap::Args;
use metra_stores::postgres::{Address, models};

/// List the models that were pushed to a database.
#[derive(Args)]
pub(crate) struct Models {
    /// The database: postgres://user@host/database (password: there, or in PGPASSWORD)
    database: String,
}

impl Models {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        let all = models(&Address::parse(&self.database)?)?;
        for schema in &all.unreadable {
            tracing::warn!(
                "schema {schema}: its models are not listed, because this user may not read them"
            );
        }
        let all = all.models;
        if common.json {
            return print::json(&all);
        }
        if all.is_empty() {
            return print::line("no model was pushed to this database");
        }
        print::line(&format!(
            "{:<20} {:<16} {:<20} {:<8} {:>11}  {:<16} {}",
            "table", "model", "column", "state", "rows", "way", "checksum"
        ))?;
        for entry in all {
            let short: String = entry.checksum.chars().take(12).collect();
            print::line(&format!(
                "{:<20} {:<16} {:<20} {:<8} {:>11}  {:<16} {short}",
                format!("{}.{}", entry.schema, entry.table),
                format!("{} {}", entry.name, entry.version),
                entry.column,
                entry.state,
                print::count(entry.rows.unsigned_abs()),
                entry.way,
            ))?;
        }
        Ok(())
    }
}
