//! The exchange of columns: what applications search gets its new vectors at one moment, and gets the old ones
//! back at one moment. Both are renames in one transaction that holds the table for an instant.
//!
//! The column that was searched keeps its vectors and its index under another name, so that going back is
//! another rename and nothing is computed. Comments, and with them the records, move with their columns.

use super::connect::Address;
use super::lock_retry::{SHORT_LOCK_WAIT, TransactionError, in_transaction};
use super::registry::{PushedModel, Registry};
use super::table::{Table, place};
use crate::sql::{TableName, identifier};
use crate::{Error, Result, digest};
use metra::model::Model;
use postgres::Transaction;
use std::sync::atomic::AtomicBool;

/// The request of a swap.
#[derive(Debug, Clone)]
pub struct Swapping {
    /// The table.
    pub table: TableName,
    /// The column that applications search.
    pub live: String,
    /// The column that the model filled.
    pub to: String,
    /// What the replaced column is called from then on.
    pub former: String,
}

/// The result of a swap or a rollback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swapped {
    /// Nothing: it was so already.
    Already,
    /// Columns have new names: each before and after. `missing` rows have an input vector and none in the
    /// column that is searched now.
    Renamed {
        /// Old and new name.
        names: Vec<(String, String)>,
        /// Rows without a vector.
        missing: u64,
    },
}

/// Give applications the column that the model filled.
pub fn swap(
    address: &Address,
    model: &Model,
    what: &Swapping,
    stop: &AtomicBool,
) -> Result<Swapped> {
    let mut client = address.connect()?;
    let checksum = digest(model)?;
    let table = Table::inspect(&mut client, &what.table)?;
    let registry = Registry::beside(&table)?;
    if serving_entry(&mut client, &registry, &table, &what.live, &checksum)?.is_some() {
        return Ok(Swapped::Already);
    }
    let entry = filled_entry(&mut client, &registry, &table, what, &checksum)?;
    // Rows whose vector a swap would lose sight of.
    let missing = table.missing(&mut client, &entry.input, &entry.column, &table.place())?;
    let place = table.place();
    in_transaction(&mut client, &place, stop, |transaction| {
        lock_table(transaction, &table)?;
        // Others may have exchanged columns between the look and the lock.
        let table = Table::inspect(transaction, &what.table)?;
        let entry = filled_entry(transaction, &registry, &table, what, &checksum)?;
        rename_column(transaction, &table, &what.live, &what.former)?;
        rename_column(transaction, &table, &what.to, &what.live)?;
        let states = ("serving", "former");
        registry.rename_column(transaction, &table, (&what.live, &what.former), states)?;
        let own = format!(
            "UPDATE {} SET column_name = $2, former_column = $3, state = 'serving', \
             updated = now() WHERE id = $1",
            registry.quoted
        );
        transaction.execute(&own, &[&entry.id, &what.live, &what.former])?;
        Ok(())
    })?;
    Ok(Swapped::Renamed {
        names: vec![
            (what.live.clone(), what.former.clone()),
            (what.to.clone(), what.live.clone()),
        ],
        missing,
    })
}

/// Give applications back what a swap of this model put aside.
pub fn rollback(
    address: &Address,
    model: &Model,
    table: &TableName,
    live: &str,
    stop: &AtomicBool,
) -> Result<Swapped> {
    let mut client = address.connect()?;
    let checksum = digest(model)?;
    let table = Table::inspect(&mut client, table)?;
    let registry = Registry::beside(&table)?;
    if serving_entry(&mut client, &registry, &table, live, &checksum)?.is_none() {
        return Ok(Swapped::Already);
    }
    let place = table.place();
    let names = in_transaction(&mut client, &place, stop, |transaction| {
        lock_table(transaction, &table)?;
        let found = serving_entry(transaction, &registry, &table, live, &checksum)?;
        let entry = found.ok_or_else(|| concurrent_swap(&table))?;
        let former = entry
            .former
            .clone()
            .ok_or_else(|| concurrent_swap(&table))?;
        rename_column(transaction, &table, live, &entry.built_as)?;
        rename_column(transaction, &table, &former, live)?;
        let own = format!(
            "UPDATE {} SET column_name = built_as, former_column = NULL, state = 'ready', \
             updated = now() WHERE id = $1",
            registry.quoted
        );
        transaction.execute(&own, &[&entry.id])?;
        let states = ("former", "serving");
        registry.rename_column(transaction, &table, (&former, live), states)?;
        Ok(vec![
            (live.to_owned(), entry.built_as),
            (former, live.to_owned()),
        ])
    })?;
    Ok(Swapped::Renamed { names, missing: 0 })
}

/// The registry's row, where a swap made this model the one that is searched.
fn serving_entry(
    client: &mut impl postgres::GenericClient,
    registry: &Registry,
    table: &Table,
    live: &str,
    checksum: &str,
) -> Result<Option<PushedModel>> {
    let entry = registry.entry(client, table, live, checksum)?;
    Ok(entry.filter(|entry| entry.former.is_some()))
}

/// The registry's row of a column that is whole.
fn filled_entry(
    client: &mut impl postgres::GenericClient,
    registry: &Registry,
    table: &Table,
    what: &Swapping,
    checksum: &str,
) -> Result<PushedModel> {
    table.column(&what.live)?;
    let problem = match registry.entry(client, table, &what.to, checksum)? {
        None => "expected a column that this model filled, but the registry has none: push first",
        Some(entry) if entry.state == "filling" => {
            "it is not whole yet: repeat the push, which continues where it was"
        }
        Some(_) if !table.columns.contains_key(&what.to) => {
            "it is not there any more: push to it again"
        }
        Some(_) if table.columns.contains_key(&what.former) => {
            let problem = "it is there already, and the replaced column would get its name: drop it, or \
                           name another with --former";
            return Err(Error::found(place(&table.name, &what.former), problem));
        }
        Some(entry) => return Ok(entry),
    };
    Err(Error::found(place(&table.name, &what.to), problem))
}

fn lock_table(transaction: &mut Transaction<'_>, table: &Table) -> Result<(), TransactionError> {
    let text = format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", table.quoted);
    transaction.batch_execute(SHORT_LOCK_WAIT)?;
    Ok(transaction.batch_execute(&text)?)
}

fn rename_column(
    transaction: &mut Transaction<'_>,
    table: &Table,
    before: &str,
    after: &str,
) -> Result<(), TransactionError> {
    let text = format!(
        "ALTER TABLE {} RENAME COLUMN {} TO {}",
        table.quoted,
        identifier(before)?,
        identifier(after)?
    );
    Ok(transaction.batch_execute(&text)?)
}

fn concurrent_swap(table: &Table) -> Error {
    let problem = "its columns were exchanged by another at the same moment: look, and repeat";
    Error::found(table.place(), problem)
}
