//! A push that writes: the column with its comment, its row in the registry, the fill (`fill.rs`) and the index
//! (`index.rs`).
//!
//! Nothing is written before [`Push::run`]; [`Push::statements`] says what would be.

use super::lock_retry::{SHORT_LOCK_WAIT, in_transaction};
use super::push::{Push, take_push_lock};
use super::registry::PushedModel;
use super::request::PushSummary;
use super::rows::RowStatements;
use super::table::place;
use super::target::PushTarget;
use super::{fill, index};
use crate::sql::{identifier, literal};
use crate::{Error, Result};
use std::sync::atomic::AtomicBool;

impl Push<'_> {
    /// What would run, in its order, without the parameters' values.
    pub fn statements(&self) -> Result<Vec<String>> {
        let mut all = vec![self.registry.create_statement()];
        all.extend(self.column_statements()?);
        if self.target != PushTarget::Stays {
            let rows = RowStatements::new(&self.table, self.what, self.model)?;
            let column = identifier(&self.column)?;
            let kind = self.table.extension.kind(self.kind);
            all.push(rows.select(true, Some(&column)));
            all.push(rows.update(&column, &kind));
            all.push(self.registry.progress_statement());
        }
        if self.what.index {
            all.push(index::create_statement(self)?);
        }
        Ok(all)
    }

    /// Create the column, fill it and build the index. `progress` is called with the stage, the work done and
    /// the total; where `stop` becomes true, the work ends between two transactions with
    /// [`metra::Error::Interrupted`], and the same push continues it.
    pub fn run(
        &mut self,
        progress: &mut dyn FnMut(&str, u64, Option<u64>),
        stop: &AtomicBool,
    ) -> Result<PushSummary> {
        take_push_lock(&mut self.client, &self.table, stop)?;
        let entry = self.prepare_column(stop)?;
        let mut done = PushSummary::default();
        if self.target != PushTarget::Stays {
            done = fill::fill(self, &entry, progress, stop)?;
        }
        if self.what.index {
            done.indexed = index::build(self, progress, stop)?;
        }
        Ok(done)
    }

    /// Column, comment and registry, in one short transaction.
    fn prepare_column(&mut self, stop: &AtomicBool) -> Result<PushedModel> {
        let statements = self.column_statements()?;
        let place = place(&self.table.name, &self.column);
        let creation = match self.registry.exists(&mut self.client)? {
            true => String::new(),
            false => self.registry.create_statement(),
        };
        // A transaction of long duration may hold the table: let it go on, and try again.
        in_transaction(&mut self.client, &place, stop, |transaction| {
            transaction.batch_execute(&creation)?;
            transaction.batch_execute(SHORT_LOCK_WAIT)?;
            for statement in &statements {
                transaction.batch_execute(statement)?;
            }
            Ok(())
        })?;
        // A kill between the two leaves a column with its record, for which this finds no row.
        let found = |push: &mut Self| {
            let Push {
                client,
                registry,
                table,
                record,
                column,
                ..
            } = push;
            registry.entry(client, table, column, &record.model)
        };
        if let Some(entry) = found(self)? {
            return Ok(entry);
        }
        let state = if self.target == PushTarget::Stays {
            "ready"
        } else {
            "filling"
        };
        let names = (self.column.as_str(), self.what.from.as_str(), state);
        let (table, model) = (&self.table, self.model);
        (self.registry).insert(
            &mut self.client,
            table,
            model,
            &self.what.name,
            &self.record,
            names,
        )?;
        found(self)?.ok_or_else(|| Error::found(place, "its row in the registry vanished"))
    }

    /// Statements that make the column and say who writes it.
    fn column_statements(&self) -> Result<Vec<String>> {
        let (table, column) = (&self.table.quoted, identifier(&self.column)?);
        let record = literal(&self.record.to_text()?);
        let comment = format!("COMMENT ON COLUMN {table}.{column} IS {record}");
        Ok(match self.target {
            PushTarget::Stays | PushTarget::Continued => Vec::new(),
            PushTarget::Adopted => vec![comment],
            PushTarget::New => {
                let kind = self.table.extension.kind(self.kind);
                let dim = self.plan.item_dim();
                vec![
                    format!("ALTER TABLE {table} ADD COLUMN {column} {kind}({dim})"),
                    comment,
                ]
            }
        })
    }
}
