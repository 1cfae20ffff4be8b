//! The index of a column, made while the table is read and written (CREATE INDEX CONCURRENTLY).
//!
//! Where such a statement was interrupted, an index that serves nothing but is kept up to date is left: it is
//! dropped and made again.

use super::failure::server_error;
use super::push::Push;
use super::table::place;
use crate::Result;
use crate::sql::{LONGEST, identifier};
use postgres::error::SqlState;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(100);

/// Looks between two questions about progress.
const LOOKS: u32 = 10;

/// The statement.
pub(super) fn create_statement(push: &Push<'_>) -> Result<String> {
    Ok(format!(
        "CREATE INDEX CONCURRENTLY {} ON {} USING hnsw ({} {}.{})",
        identifier(&name(push))?,
        push.table.quoted,
        identifier(&push.column)?,
        push.table.extension.schema,
        push.kind.operators(push.plan.distance())
    ))
}

/// Make the index if there is none; whether it was made.
pub(super) fn build(
    push: &mut Push<'_>,
    progress: &mut dyn FnMut(&str, u64, Option<u64>),
    stop: &AtomicBool,
) -> Result<bool> {
    let place = place(&push.table.name, &push.column);
    let refused = |e: postgres::Error| server_error(&place, &e);
    let operators = push.kind.operators(push.plan.distance());
    let found = push
        .client
        .query(
            "SELECT i.indexrelid::regclass::text, i.indisvalid FROM pg_index i \
             JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam \
             JOIN pg_opclass o ON o.oid = i.indclass[0] JOIN pg_attribute a \
             ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] \
             WHERE i.indrelid = $1 AND a.attname = $2 AND o.opcname = $3 AND m.amname = 'hnsw' \
             AND i.indpred IS NULL",
            &[&push.table.oid, &push.column, &operators],
        )
        .map_err(refused)?;
    if found.iter().any(|row| row.get(1)) {
        return Ok(false);
    }
    // No lock that is taken here makes readers or writers wait, so that there is no hurry.
    push.client
        .batch_execute("SET lock_timeout = 0")
        .map_err(refused)?;
    for row in &found {
        // The server's own text of the name, quoted by it.
        let leftover: String = row.get(0);
        let drop = format!("DROP INDEX CONCURRENTLY IF EXISTS {leftover}");
        push.client.batch_execute(&drop).map_err(refused)?;
    }
    if let Some(bytes) = push.what.index_memory {
        let memory = format!("SET maintenance_work_mem = '{}kB'", bytes / 1024);
        push.client.batch_execute(&memory).map_err(refused)?;
    }
    let statement = create_statement(push)?;
    let process: i32 = push
        .client
        .query_one("SELECT pg_backend_pid()", &[])
        .map_err(refused)?
        .get(0);
    let mut watching = push.address.connect()?;
    let (token, address, client) = (push.client.cancel_token(), push.address, &mut push.client);
    progress("index", 0, None);
    let outcome = std::thread::scope(|scope| {
        let work = scope.spawn(move || client.batch_execute(&statement));
        let (mut looks, mut cancelled) = (0_u32, false);
        while !work.is_finished() {
            std::thread::sleep(LOOK);
            looks = looks.wrapping_add(1);
            if stop.load(Ordering::Relaxed) && !cancelled {
                cancelled = address.cancel(&token).is_ok();
            }
            if looks.is_multiple_of(LOOKS) {
                // What cannot be seen is not worth an error.
                let seen = watching.query_opt(
                    "SELECT blocks_done, blocks_total FROM pg_stat_progress_create_index \
                     WHERE pid = $1",
                    &[&process],
                );
                if let Ok(Some(row)) = seen {
                    let (done, total): (i64, i64) = (row.get(0), row.get(1));
                    progress("index", done.unsigned_abs(), Some(total.unsigned_abs()));
                }
            }
        }
        work.join()
    });
    match outcome {
        Ok(Ok(())) => Ok(true),
        Ok(Err(error)) if error.code() == Some(&SqlState::QUERY_CANCELED) => {
            let drop = format!(
                "DROP INDEX CONCURRENTLY IF EXISTS {}.{}",
                identifier(&push.table.schema)?,
                identifier(&name(push))?
            );
            // Where this fails too, the next push does it.
            let _ = push.client.batch_execute(&drop);
            Err(metra::Error::Interrupted.into())
        }
        Ok(Err(error)) => Err(refused(error)),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Table, column, distance and the beginning of the model's digest, within what a name can hold.
fn name(push: &Push<'_>) -> String {
    let digest: String = push.record.model.chars().take(8).collect();
    let tail = format!("_{}_{digest}", push.plan.distance());
    let mut stem = format!("{}_{}", push.table.name, push.column);
    let mut most = LONGEST - tail.len();
    while !stem.is_char_boundary(most.min(stem.len())) {
        most -= 1;
    }
    stem.truncate(most);
    stem + &tail
}
