//! What a scheduler tells of itself: its build, its executors and its jobs.

use super::connection::Connection;
use super::session::runtime;
use super::{Identity, SchedulerAddress};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// The page with everything.
pub(crate) const CLUSTER_PAGE: &str = "/metra/cluster";
/// The page of one job, with its id behind.
pub(crate) const JOB_PAGE: &str = "/metra/jobs/";

/// A cluster at one moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// The build of the scheduler.
    pub identity: Identity,
    /// Seconds since it started.
    pub uptime_seconds: u64,
    /// Those who work for it, by host and port.
    pub executors: Vec<ExecutorStatus>,
    /// Its jobs, the latest first; finished ones are forgotten after an hour.
    pub jobs: Vec<JobStatus>,
}

/// One executor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExecutorStatus {
    /// Its id; contains the build it runs.
    pub id: String,
    /// Where others reach it.
    pub host: String,
    /// The port of its results.
    pub port: u16,
    /// The port where it takes tasks.
    pub control_port: u16,
    /// Tasks it runs at the same time.
    pub slots: u32,
    /// Whether it is counted on: active, and heard of lately.
    pub alive: bool,
    /// Seconds since its last sign of life.
    pub seen_seconds_ago: Option<u64>,
    /// Bytes of memory its process holds.
    pub resident_bytes: Option<u64>,
}

/// One job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct JobStatus {
    /// Its id.
    pub id: String,
    /// The name its driver gave.
    pub name: String,
    /// Where it stands.
    pub state: JobState,
    /// Tasks that are done; one shard is one task.
    pub tasks_done: u64,
    /// All its tasks, as far as they are known.
    pub tasks: u64,
    /// Stages that are done.
    pub stages_done: u64,
    /// All its stages.
    pub stages: u64,
    /// Seconds it has run, or ran.
    pub seconds: f64,
    /// Why it failed.
    pub error: Option<String>,
}

/// Where a job stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Accepted, not yet planned.
    #[default]
    Queued,
    /// Its tasks run.
    Running,
    /// Its results can be fetched.
    Finished,
    /// It failed or was cancelled.
    Failed,
}

/// Ask a scheduler for its status.
pub fn of(address: &SchedulerAddress) -> Result<ClusterStatus> {
    runtime("metra-status")?.block_on(async { ask(&Connection::new(address)?).await })
}

pub(crate) async fn ask(connection: &Connection) -> Result<ClusterStatus> {
    connection
        .page(CLUSTER_PAGE)
        .await?
        .ok_or_else(|| Error::Mismatch {
            peer: format!("the program at {}", connection.address()),
            differences: vec![
                "it answers, but was not started by `metra cluster scheduler`".to_owned(),
            ],
        })
}
