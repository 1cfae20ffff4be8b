//! An executor in the foreground: it joins a scheduler, runs tasks and keeps their results until
//! they are fetched.
//!
//! Around Ballista's `start_executor_process` because that one (55.0) waits for its scheduler
//! without end, registers whatever build it is, takes no free ports and leaves its work folder
//! behind.

use super::connection::Connection;
use super::session::{MESSAGE_SIZE, end_signal, runtime, session_config};
use super::{Identity, SchedulerAddress, status};
use crate::{Error, Result};
use ballista_core::RuntimeProducer;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_executor::health::ExecutorHealth;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time to tell the scheduler before leaving. Running tasks are not waited for: they are repeated
/// elsewhere, because this executor's results go with it.
const LEAVING: Duration = Duration::from_secs(3);
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(300);

/// How an executor is run.
#[derive(Clone, Debug)]
pub struct ExecutorOptions {
    /// The scheduler to join.
    pub scheduler: SchedulerAddress,
    /// Where to listen: results on this port, tasks on the next one; 0 takes two free ones.
    pub bind: SocketAddr,
    /// The name or address under which the others reach it. Without it, and with `bind` at 0.0.0.0,
    /// the address that the scheduler sees.
    pub advertise: Option<String>,
    /// Tasks at the same time.
    pub slots: usize,
    /// Folder in which a temporary one for results is made (default: the system's).
    pub work_dir: Option<PathBuf>,
    /// Bytes that the engine's own operators may hold for all tasks together (default: 70 % of the
    /// machine's memory).
    pub memory: Option<u64>,
    /// Seconds between signs of life.
    pub heartbeat: u64,
    /// Seconds for which an absent scheduler is waited for.
    pub wait: u64,
    /// What it says it is.
    pub identity: Identity,
}

impl ExecutorOptions {
    /// The usual settings for a scheduler: all cores, free ports on this machine alone.
    pub fn new(scheduler: SchedulerAddress) -> Self {
        ExecutorOptions {
            scheduler,
            bind: SocketAddr::from(([127, 0, 0, 1], 0)),
            advertise: None,
            slots: std::thread::available_parallelism().map_or(1, usize::from),
            work_dir: None,
            memory: None,
            heartbeat: 10,
            wait: 30,
            identity: Identity::here(),
        }
    }
}

/// What the caller learns when an executor has joined.
#[derive(Clone, Debug)]
pub struct JoinedExecutor {
    /// Its id.
    pub id: String,
    /// Where it listens for those who fetch results.
    pub results: SocketAddr,
    /// Where it takes tasks.
    pub tasks: SocketAddr,
    /// Where its results lie.
    pub work_dir: PathBuf,
}

/// Run an executor until a signal ends it or its scheduler is lost. `joined` is called once the
/// scheduler counts on it. After [`Error::SchedulerLost`] it can join again in a new process only: parts of
/// Ballista outlive the runtime that they were started on.
pub fn run(options: &ExecutorOptions, joined: &dyn Fn(&JoinedExecutor)) -> Result<()> {
    if options.slots == 0 {
        return Err(metra::Error::parameter("slots", "at least 1", 0).into());
    }
    let folder = work_folder(options.work_dir.as_deref())?;
    let runtime = runtime("metra-executor")?;
    let outcome = runtime.block_on(serve(options, folder.path(), joined));
    runtime.shutdown_timeout(Duration::from_millis(500));
    if let Err(error) = folder.close() {
        tracing::warn!("the work folder stays: {error}");
    }
    outcome
}

async fn serve(
    options: &ExecutorOptions,
    folder: &Path,
    joined: &dyn Fn(&JoinedExecutor),
) -> Result<()> {
    tokio::select! {
        checked = check_scheduler(options) => checked?,
        () = end_signal() => return Ok(()),
    }
    let (results, tasks) = ports(options.bind)?;
    let health = ExecutorHealth::new();
    let config = config(
        options,
        folder,
        results.port(),
        tasks.port(),
        health.clone(),
    )?;
    let joined_executor = JoinedExecutor {
        id: config.executor_id.clone(),
        results,
        tasks,
        work_dir: folder.to_owned(),
    };
    let joining = format!("joining the scheduler at {}", options.scheduler);
    let mut process = tokio::spawn(start_executor_process(Arc::new(config)));
    // Ballista gives up after five heartbeats in vain, too, but waits for running tasks then, whose
    // end nobody wants to hear of. Where a network swallows packets its heartbeat waits for ever, and a
    // scheduler that has given this executor up does not take it back: so the scheduler is asked whether it
    // counts on this executor.
    let heartbeat = Duration::from_secs(options.heartbeat);
    let patience = 5 * heartbeat;
    let connection = Connection::new(&options.scheduler)?;
    let scheduler_lost = async {
        while !health.is_ready() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        joined(&joined_executor);
        let mut last_contact = Instant::now();
        while last_contact.elapsed() < patience {
            tokio::time::sleep(heartbeat).await;
            if let Ok(found) = status::ask(&connection).await
                && (found.executors.iter())
                    .any(|other| other.id == joined_executor.id && other.alive)
            {
                last_contact = Instant::now();
            }
        }
    };
    let lost = |reason: String| Error::SchedulerLost {
        address: options.scheduler.to_string(),
        reason,
    };
    let silent = format!(
        "it has not counted on this executor for {} s",
        patience.as_secs()
    );
    tokio::select! {
        biased;
        () = end_signal() => {
            tracing::info!("the executor leaves");
            // Ballista hears the same signal and tells the scheduler.
            if tokio::time::timeout(LEAVING, &mut process).await.is_err() {
                tracing::debug!("left with tasks running");
            }
            Ok(())
        }
        ended = &mut process => match ended {
            // It does so to executors that were cut off for too long.
            Ok(Ok(())) if health.is_ready() => Err(lost("it told this executor to stop".into())),
            Ok(Ok(())) => Err(lost(silent)),
            Ok(Err(error)) => Err(Error::engine(joining, error)),
            Err(error) => Err(Error::engine(joining, error)),
        },
        () = scheduler_lost => Err(lost(silent)),
    }
}

/// Wait until the scheduler answers, and check that it is of our build.
async fn check_scheduler(options: &ExecutorOptions) -> Result<()> {
    let connection = Connection::new(&options.scheduler)?;
    let begin = Instant::now();
    let peer = format!("the scheduler at {}", options.scheduler);
    loop {
        match status::ask(&connection).await {
            Ok(found) => return options.identity.check(&peer, &found.identity),
            Err(error @ Error::Unreachable { .. }) => {
                if begin.elapsed() >= Duration::from_secs(options.wait) {
                    return Err(error);
                }
                tracing::debug!("{error}");
            }
            Err(error) => return Err(error),
        }
        tokio::time::sleep(BETWEEN_ATTEMPTS).await;
    }
}

fn config(
    options: &ExecutorOptions,
    folder: &Path,
    port: u16,
    grpc_port: u16,
    health: ExecutorHealth,
) -> Result<ExecutorProcessConfig> {
    let folder = folder.to_str().ok_or_else(|| {
        let found = folder.display();
        metra::Error::parameter("work-dir", "a path in UTF-8", found)
    })?;
    let host = match (&options.advertise, options.bind.ip()) {
        (Some(host), _) => Some(host.clone()),
        (None, ip) if ip.is_unspecified() => None,
        (None, ip) => Some(ip.to_string()),
    };
    let spill = folder.to_owned();
    let environment: RuntimeProducer = Arc::new(move |_| {
        RuntimeEnvBuilder::new()
            .with_temp_file_path(spill.clone())
            .with_object_store_registry(crate::stores::registry())
            .build_arc()
    });
    Ok(ExecutorProcessConfig {
        executor_id: options.identity.executor_id(),
        bind_host: options.bind.ip().to_string(),
        external_host: host,
        port,
        grpc_port,
        scheduler_host: options.scheduler.host.clone(),
        scheduler_port: options.scheduler.port,
        // The scheduler was there a moment ago. With a number here Ballista 55.0 tries for ever: it
        // measures the time since now.
        scheduler_connect_timeout_seconds: 0,
        vcores: options.slots,
        work_dir: Some(folder.to_owned()),
        grpc_max_decoding_message_size: MESSAGE_SIZE as u32,
        grpc_max_encoding_message_size: MESSAGE_SIZE as u32,
        executor_heartbeat_interval_seconds: options.heartbeat,
        memory_pool_size: options.memory,
        override_runtime_producer: Some(environment),
        override_config_producer: Some(Arc::new(session_config)),
        override_physical_codec: Some(crate::operators::codec()),
        health,
        ..ExecutorProcessConfig::default()
    })
}

/// A folder of our own, also inside a given one: two executors may share that.
fn work_folder(parent: Option<&Path>) -> Result<TempDir> {
    let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
    let made = std::fs::create_dir_all(&parent).and_then(|()| {
        tempfile::Builder::new()
            .prefix("metra-executor-")
            .tempdir_in(&parent)
    });
    made.map_err(|e| metra::Error::io(parent, e).into())
}

/// The ports of results and tasks. Ballista registers the numbers it is given, so that 0 must be
/// made a number first.
fn ports(bind: SocketAddr) -> Result<(SocketAddr, SocketAddr)> {
    let listening = |e| Error::engine(format!("listening on {bind}"), e);
    if bind.port() != 0 {
        let next = bind.port().checked_add(1).ok_or_else(|| {
            let found = bind.port();
            metra::Error::parameter(
                "bind",
                "a port below 65535: the next one is taken too",
                found,
            )
        })?;
        return Ok((bind, SocketAddr::new(bind.ip(), next)));
    }
    // Both are held before either is let go, or they might be the same.
    let first = TcpListener::bind(bind).map_err(listening)?;
    let second = TcpListener::bind(bind).map_err(listening)?;
    Ok((
        first.local_addr().map_err(listening)?,
        second.local_addr().map_err(listening)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_differ_and_given_ones_follow_each_other() {
        let (results, tasks) = ports(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        assert!(results.port() != 0 && tasks.port() != 0 && results != tasks);
        let (results, tasks) = ports(SocketAddr::from(([127, 0, 0, 1], 7000))).unwrap();
        assert_eq!((results.port(), tasks.port()), (7000, 7001));
        assert!(ports(SocketAddr::from(([127, 0, 0, 1], 65535))).is_err());
    }

    #[test]
    fn a_work_folder_is_made_inside_and_goes_with_the_executor() {
        let parent = tempfile::tempdir().unwrap();
        let folder = work_folder(Some(&parent.path().join("new"))).unwrap();
        let path = folder.path().to_owned();
        assert!(path.is_dir() && path.starts_with(parent.path()));
        folder.close().unwrap();
        assert!(!path.exists());
    }
}
