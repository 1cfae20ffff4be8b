//! `metra cluster executor`.

use super::{counted, identity, warn_if_open};
use crate::args::{Common, size};
use crate::print;
use anyhow::Result;
use clap::Args;
use metra_engine::cluster::SchedulerAddress;
use metra_engine::cluster::executor::{ExecutorOptions, JoinedExecutor, run};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Run an executor: join a scheduler and run its tasks, until stopped.
#[derive(Args)]
pub(super) struct Executor {
    /// The scheduler to join
    #[arg(long, value_name = "HOST:PORT")]
    scheduler: SchedulerAddress,
    /// Where to listen: results on this port, tasks on the next; port 0 takes two free ones
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    bind: SocketAddr,
    /// Name or address under which the others reach this machine (default: the address of --bind,
    /// or with 0.0.0.0 the one that the scheduler sees)
    #[arg(long, value_name = "HOST")]
    advertise: Option<String>,
    /// Tasks at the same time (default: one per core)
    #[arg(long, value_name = "N")]
    slots: Option<usize>,
    /// Folder for the results of tasks; a subfolder is created there and removed at the end
    /// (default: the system's temporary folder)
    #[arg(long, value_name = "DIR")]
    work_dir: Option<PathBuf>,
    /// Memory for the engine's own operators (default: 70 % of the machine's)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pool_memory: Option<u64>,
    /// Seconds for which an absent scheduler is waited for
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    wait: u64,
    /// Seconds between signs of life; well below the scheduler's --executor-timeout
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    heartbeat: u64,
    /// The version it says it is, for tests
    #[arg(long, hide = true)]
    claim_version: Option<String>,
}

impl Executor {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        warn_if_open("the executor", self.bind.ip());
        let mut options = ExecutorOptions {
            bind: self.bind,
            advertise: self.advertise.clone(),
            work_dir: self.work_dir.clone(),
            memory: self.pool_memory,
            heartbeat: self.heartbeat,
            wait: self.wait,
            identity: identity(self.claim_version.as_deref()),
            ..ExecutorOptions::new(self.scheduler.clone())
        };
        if let Some(slots) = self.slots {
            options.slots = slots;
        }
        // Tasks run on threads of the engine, and what they do in parallel on the pool of the
        // process: no more threads than slots, or two executors on one machine fight.
        let threads = common.threads.unwrap_or(options.slots);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        if let Err(error) = pool.build_global() {
            tracing::debug!("the pool of threads stays as it is: {error}");
        }
        let joined = |joined: &JoinedExecutor| {
            let (results, slots) = (joined.results, options.slots);
            let scheduler = &options.scheduler;
            let printed = if common.json {
                let joined = serde_json::json!({
                    "joined": scheduler.to_string(),
                    "id": joined.id,
                    "results": results.to_string(),
                    "tasks": joined.tasks.to_string(),
                    "slots": slots,
                    "work_dir": joined.work_dir,
                });
                print::line(&joined.to_string())
            } else {
                let slots = counted(slots, "slot", "slots");
                print::line(&format!(
                    "metra executor {results} with {slots} joined {scheduler}"
                ))
            };
            if let Err(error) = printed {
                tracing::warn!("joined {scheduler}, but nobody reads it: {error}");
            }
        };
        match run(&options, &joined) {
            Err(error @ metra_engine::Error::SchedulerLost { .. }) => Err(join_again(error).into()),
            outcome => Ok(outcome?),
        }
    }
}

/// Begin anew, in place of this process: its tasks were given to others, and it waits for the scheduler as a
/// new one does. The error, where that cannot be done.
fn join_again(lost: metra_engine::Error) -> metra_engine::Error {
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        tracing::warn!("{lost}; joining again");
        // It comes back only where it fails.
        let failed = crate::command_line::again().exec();
        tracing::warn!("cannot begin anew: {failed}");
    }
    lost
}
