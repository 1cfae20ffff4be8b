//! The cluster as a user meets it: one scheduler, executors that join it, and a driver that sends
//! plans and collects results. All three are this crate around Ballista 55.
//!
//! What Ballista leaves open is closed here:
//! - `scheduler` serves, beside Ballista's protocol, a page of its own (`board`): who is there,
//!   which build, how far each job is. Ballista's protocol tells none of it, and its REST interface
//!   is a heavy feature.
//! - `executor` asks that page first, so that a wrong address or another build is a named error at
//!   the start, not a vague one in the middle of a job.
//! - `job` sends physical plans, follows them and fetches results with a limit on every wait:
//!   nothing hangs when a machine dies.
//! - `slots` gives slots back that are lost with an executor.
//! - Adaptive planning is off everywhere: with it a job whose map output was lost hangs
//!   (apache/datafusion-ballista issue 1986).
//!
//! **What operators must know.** Before a task is sent, the scheduler cuts the plan's leaves
//! (`DataSourceExec` over files or memory, shuffle readers) down to the task's partitions and numbers
//! them from 0 again. So `execute(partition)` does not tell which shard it is: a shard's key must
//! travel with its rows or its file. A leaf of one's own is not cut: every task would run all of it.

pub mod address;
mod board;
mod connection;
pub mod executor;
pub mod handshake;
pub mod hello;
pub mod job;
pub mod scheduler;
mod slots;
pub mod status;

pub use address::Address;
pub use handshake::Identity;
pub use job::{Cluster, JobProgress};

use crate::{Error, Result};
use ballista_core::config::{
    BALLISTA_ADAPTIVE_PLANNER_ENABLED, BALLISTA_CLIENT_GRPC_MAX_MESSAGE_SIZE,
    BALLISTA_CLIENT_IO_RETRIES_TIMES, BALLISTA_CLIENT_IO_RETRY_WAIT_TIME_MS,
    BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK,
};
use ballista_core::extension::SessionConfigExt;
use datafusion::prelude::SessionConfig;

/// The largest message between two programs. Plans carry parameters and results carry matrices;
/// Ballista's own 16 MiB are less than one block of them.
pub const MESSAGE_SIZE: usize = 64 << 20;

/// The settings of every session, the same on scheduler, executors and driver.
pub(crate) fn session_config() -> SessionConfig {
    SessionConfig::new_with_ballista()
        // The scheduler looks at a stage again and would cut files anew for more tasks: shards are
        // cut already, and must stay as they are.
        .with_repartition_file_scans(false)
        .with_round_robin_repartition(false)
        .set_str(BALLISTA_ADAPTIVE_PLANNER_ENABLED, "false")
        .set_str(
            BALLISTA_CLIENT_GRPC_MAX_MESSAGE_SIZE,
            &MESSAGE_SIZE.to_string(),
        )
        // One shard, one task: a lost task costs one shard, and progress counts shards.
        .set_str(BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK, "1")
        // A lost executor is found out by its peers in a second rather than in nine.
        .set_str(BALLISTA_CLIENT_IO_RETRIES_TIMES, "3")
        .set_str(BALLISTA_CLIENT_IO_RETRY_WAIT_TIME_MS, "300")
}

/// The threads that serve a cluster's connections.
pub(crate) fn runtime(name: &str) -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name(name)
        // Decoding a plan recurses: Ballista's own programs take 32 MiB, of which only what is
        // touched is used.
        .thread_stack_size(32 << 20)
        .build()
        .map_err(|e| Error::engine("starting threads", e))
}

/// Wait for the signal to end: Ctrl-C or a service manager's.
pub(crate) async fn asked_to_end() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match (
            signal(SignalKind::terminate()),
            signal(SignalKind::interrupt()),
        ) {
            (Ok(mut terminate), Ok(mut interrupt)) => {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            }
            _ => std::future::pending().await,
        }
    }
    #[cfg(not(unix))]
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
