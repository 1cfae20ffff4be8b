//! The fill: batches in the order of ids, each one transaction that reads rows, writes their vectors and says
//! in the registry how far it came. Whatever ends the program between two statements, a batch is there as a
//! whole or not at all, and the next push goes on behind the last one that is.
//!
//! Rows are locked while they are mapped, so that an input that changes at the same moment is not answered
//! with an old vector; rows that others hold are passed by and found again by the last passes, which look
//! for rows without a vector. So do rows that were inserted meanwhile. Readers wait for nothing.

use super::lock_retry::in_transaction;
use super::push::Push;
use super::registry::PushedModel;
use super::request::PushSummary;
use super::rows::RowStatements;
use super::table::place;
use super::vectors::VectorParameters;
use crate::sql::identifier;
use crate::{Error, Result};
use metra::linalg::RowBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Last passes that look for rows without a vector: others may add rows faster than we are.
const LAST_PASSES: usize = 20;
const BETWEEN_PASSES: Duration = Duration::from_millis(200);

/// Rows are looked up by their ids, a thousand at a time: the planner must not read a whole table for each
/// batch because it thinks that a thousand are many.
const LOOKUP_SETTINGS: &str = "SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; \
     SET LOCAL enable_mergejoin = off";

/// Fill the column of a push whose registry row is `entry`.
pub(super) fn fill(
    push: &mut Push<'_>,
    entry: &PushedModel,
    progress: &mut dyn FnMut(&str, u64, Option<u64>),
    stop: &AtomicBool,
) -> Result<PushSummary> {
    let place = place(&push.table.name, &push.column);
    let total = match push.table.estimate.filter(|rows| *rows > 0) {
        Some(estimate) => estimate,
        None => push.count()?.1,
    };
    let again = push.what.refill || entry.refill;
    let mut fill = FillState {
        statements: RowStatements::new(&push.table, push.what, push.model)?,
        target: identifier(&push.column)?,
        kind: push.table.extension.kind(push.kind),
        place,
        entry: entry.id,
        again,
        written: 0,
    };
    // What an earlier push of the same kind had done is not done again.
    let begun = entry.state == "filling" && (entry.refill || !push.what.refill);
    if entry.state == "filling" || again {
        let last = entry.last_id.clone().filter(|_| begun);
        let done = if begun { entry.rows.unsigned_abs() } else { 0 };
        let mut show = |written: u64| progress("fill", (done + written).min(total), Some(total));
        fill.pass(push, last, true, &mut show, stop)?;
    }
    fill.again = false;
    let mut show = |written: u64| progress("fill", written, None);
    let mut left = 0;
    for _ in 0..LAST_PASSES {
        let before = fill.written;
        fill.pass(push, None, false, &mut show, stop)?;
        let (table, from) = (&push.table, &push.what.from);
        left = table.missing(&mut push.client, from, &push.column, &fill.place)?;
        if left == 0 {
            break;
        }
        // Rows that others hold are free soon; where many have come meanwhile, there is no need to wait.
        if fill.written - before < push.what.batch as u64 {
            std::thread::sleep(BETWEEN_PASSES);
        }
    }
    push.registry.mark_filled(&mut push.client, entry)?;
    let (all, with) = push.count()?;
    Ok(PushSummary {
        written: fill.written,
        without_vector: all.saturating_sub(with),
        left,
        indexed: false,
    })
}

struct FillState {
    statements: RowStatements,
    /// The target column, quoted for SQL.
    target: String,
    kind: String,
    place: String,
    entry: i64,
    /// Whether rows that have a vector are written again.
    again: bool,
    written: u64,
}

impl FillState {
    /// All rows behind an id. A main pass says in the registry where it is; the others need not, because
    /// what they have filled is no longer missing.
    fn pass(
        &mut self,
        push: &mut Push<'_>,
        mut last: Option<String>,
        main: bool,
        show: &mut dyn FnMut(u64),
        stop: &AtomicBool,
    ) -> Result<()> {
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(metra::Error::Interrupted.into());
            }
            let Some((reached, count)) = self.batch(push, last.as_deref(), main, stop)? else {
                return Ok(());
            };
            self.written += count;
            show(self.written);
            if count < push.what.batch as u64 {
                return Ok(());
            }
            last = Some(reached);
        }
    }

    /// One transaction: the last id and how many rows; none where no row is left.
    fn batch(
        &self,
        push: &mut Push<'_>,
        last: Option<&str>,
        main: bool,
        stop: &AtomicBool,
    ) -> Result<Option<(String, u64)>> {
        let missing = (!self.again).then_some(self.target.as_str());
        let select = self.statements.select(last.is_some(), missing);
        let update = self.statements.update(&self.target, &self.kind);
        let progress = push.registry.progress_statement();
        let limit = push.what.batch as i64;
        let (plan, kind) = (&push.plan, push.kind);
        in_transaction(&mut push.client, &self.place, stop, |transaction| {
            let rows = match last {
                Some(last) => transaction.query(&select, &[&limit, &last])?,
                None => transaction.query(&select, &[&limit])?,
            };
            let chunk = self.statements.decode(&rows)?;
            drop(rows);
            let Some(reached) = chunk.ids.last().cloned() else {
                return Ok(None);
            };
            let of_row = |e: metra::Error| self.statements.of_row(e, &chunk.ids);
            let mut stored = RowBuf::empty(1);
            plan.map_items(0, &chunk.first(chunk.len()), &mut stored)
                .map_err(of_row)?;
            let parameters = VectorParameters::new(kind, stored.rows()).map_err(of_row)?;
            transaction.batch_execute(LOOKUP_SETTINGS)?;
            let updated = transaction.execute(&update, &[&chunk.ids, parameters.array()])?;
            if updated != chunk.len() as u64 {
                let expected = chunk.len();
                let problem = format!("expected to write {expected} rows, but wrote {updated}");
                return Err(Error::found(self.place.clone(), problem).into());
            }
            let count = chunk.len() as i64;
            let position = main.then_some(&reached);
            transaction.execute(&progress, &[&self.entry, &count, &position, &self.again])?;
            Ok(Some((reached, updated)))
        })
    }
}
