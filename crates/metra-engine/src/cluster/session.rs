//! What the programs of a cluster have in common: settings of a session, threads, and the signal to end.

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
pub(crate) async fn end_signal() {
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
