//! Work where the rows lie: tables that DataFusion or a cluster reads, and this process does not.

use crate::args::{ClusterArgs, Common, Place};
use crate::interrupt;
use crate::print;
use crate::progress::Reporter;
use anyhow::{Result, ensure};
use metra_engine::{Cut, Engine, PassProgress, ShardedTable};
use metra_files::Filter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

impl ClusterArgs {
    /// Where passes run, if not on files read by this process.
    pub(crate) fn place(&self) -> Result<Option<&Place>> {
        Ok(self.cluster.as_deref())
    }

    /// The engine that was asked for.
    pub(crate) fn engine(&self, place: &str, common: &Common) -> Result<Engine> {
        let threads = match common.threads {
            Some(threads) => threads,
            None => std::thread::available_parallelism()?.get(),
        };
        let engine = match place {
            "here" => Engine::here(threads)?,
            address => Engine::cluster(address)?,
        };
        let engine = match &self.scratch {
            Some(folder) => engine.with_scratch(folder)?,
            None => engine,
        };
        let reporter = Mutex::new(Reporter::new());
        Ok(engine.with_stop(stop()).with_watch(move |progress| {
            if let Ok(mut reporter) = reporter.lock() {
                show(&mut reporter, &progress);
            }
        }))
    }

    pub(crate) fn cut(&self) -> Cut {
        self.shard_rows.map_or(Cut::Rows(1 << 18), Cut::Rows)
    }

    /// A table, of which filters leave some rows.
    pub(crate) fn open(
        &self,
        engine: &Engine,
        address: &str,
        cut: Cut,
        filters: &[Filter],
    ) -> Result<ShardedTable> {
        let mut table = engine.open(address, cut)?;
        for filter in filters {
            ensure!(
                filter.equal,
                "--where: expected column=value where the rows lie elsewhere, but found {}!={}",
                filter.column,
                filter.value
            );
            table = engine.filter(&table, &filter.column, &filter.value)?;
        }
        Ok(table)
    }
}

fn show(reporter: &mut Reporter, progress: &PassProgress) {
    if reporter.what() != progress.doing {
        reporter.start(&progress.doing);
    }
    reporter.advance(progress.done, Some(progress.tasks), || "tasks".into());
}

/// Ctrl-C as the engine wants it: a flag that it may keep.
fn stop() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let shared = flag.clone();
    std::thread::spawn(move || {
        while !interrupt::is_stopped() {
            std::thread::sleep(Duration::from_millis(50));
        }
        shared.store(true, Ordering::Relaxed);
    });
    flag
}

/// What a table is, for the first line of an answer.
pub(crate) fn describe(table: &ShardedTable) -> String {
    let (rows, shards) = (table.len(), table.shards());
    format!("{} ({rows} rows in {shards} shards)", table.address())
}

pub(crate) fn say(common: &Common, what: &str, fact: &str) -> Result<()> {
    match common.json {
        true => Ok(()),
        false => print::fact(what, fact),
    }
}
