//! A push that writes: the column with its comment, its row in the registry, the fill (`fill.rs`) and the index
//! (`index.rs`).
//!
//! Nothing is written before [`Push::run`]; [`Push::statements`] says what would be.

use super::patience::{BRIEFLY, in_transaction};
use super::push::{Push, lock_out_others};
use super::registry::Entry;
use super::request::Done;
use super::rows::Reading;
use super::table::place;
use super::target::Target;
use super::{fill, index};
use crate::sql::{identifier, literal};
use crate::{Error, Result};
use std::sync::atomic::AtomicBool;

impl Push<'_> {
    /// What would run, in its order, without the parameters' values.
    pub fn statements(&self) -> Result<Vec<String>> {
        let mut all = vec![self.registry.creation()];
        all.extend(self.preparation()?);
        if self.target != Target::Stays {
            let reading = Reading::new(&self.table, self.what, self.model)?;
            let column = identifier(&self.column)?;
            let kind = self.table.extension.kind(self.kind);
            all.push(reading.select(true, Some(&column)));
            all.push(reading.update(&column, &kind));
            all.push(self.registry.progress());
        }
        if self.what.index {
            all.push(index::creation(self)?);
        }
        Ok(all)
    }

    /// Make the column, fill it and make the index. `progress` is told what is done, how far it is and how
    /// much there is; where `stop` becomes true, the work ends between two transactions with
    /// [`metra::Error::Interrupted`], and the same push continues it.
    pub fn run(
        &mut self,
        progress: &mut dyn FnMut(&str, u64, Option<u64>),
        stop: &AtomicBool,
    ) -> Result<Done> {
        lock_out_others(&mut self.client, &self.table, stop)?;
        let entry = self.begin(stop)?;
        let mut done = Done::default();
        if self.target != Target::Stays {
            done = fill::fill(self, &entry, progress, stop)?;
        }
        if self.what.index {
            done.indexed = index::build(self, progress, stop)?;
        }
        Ok(done)
    }

    /// Column, comment and registry, in one short transaction.
    fn begin(&mut self, stop: &AtomicBool) -> Result<Entry> {
        let statements = self.preparation()?;
        let place = place(&self.table.name, &self.column);
        let creation = match self.registry.is_there(&mut self.client)? {
            true => String::new(),
            false => self.registry.creation(),
        };
        // A transaction of long duration may hold the table: let it go on, and try again.
        in_transaction(&mut self.client, &place, stop, |transaction| {
            transaction.batch_execute(&creation)?;
            transaction.batch_execute(BRIEFLY)?;
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
        let state = if self.target == Target::Stays {
            "ready"
        } else {
            "filling"
        };
        let names = (self.column.as_str(), self.what.from.as_str(), state);
        let (table, model) = (&self.table, self.model);
        (self.registry).begin(
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
    fn preparation(&self) -> Result<Vec<String>> {
        let (table, column) = (&self.table.quoted, identifier(&self.column)?);
        let record = literal(&self.record.to_text()?);
        let comment = format!("COMMENT ON COLUMN {table}.{column} IS {record}");
        Ok(match self.target {
            Target::Stays | Target::Continued => Vec::new(),
            Target::Adopted => vec![comment],
            Target::New => {
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
