//! The scheduler's page: JSON over plain HTTP on the scheduler's own port, read by drivers,
//! executors and `metra cluster status`, and by people with `curl`. `/healthz` and `/readyz` answer
//! the probes of service managers, as Ballista's own program does.

use super::Identity;
use super::status::{CLUSTER_PAGE, ClusterStatus, ExecutorStatus, JOB_PAGE, JobState, JobStatus};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use ballista_core::serde::protobuf::executor_metric::Metric;
use ballista_core::serde::protobuf::{executor_status, job_status, task_status};
use ballista_scheduler::scheduler_server::{SchedulerServer, timestamp_millis, timestamp_secs};
use ballista_scheduler::state::execution_graph::ExecutionGraphBox;
use ballista_scheduler::state::execution_stage::ExecutionStage;
use ballista_scheduler::state::task_manager::JobOverview;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use std::sync::Arc;

/// The scheduler as this crate runs it.
pub(super) type Server = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;

/// What the pages are made from.
#[derive(Clone)]
pub(super) struct StatusApi {
    pub(super) server: Server,
    pub(super) identity: Arc<Identity>,
    /// Seconds without a sign of life after which an executor is not counted on.
    pub(super) executor_timeout: u64,
}

/// The pages.
pub(super) fn routes(api: StatusApi) -> Router {
    Router::new()
        .route(CLUSTER_PAGE, get(cluster))
        .route(&format!("{JOB_PAGE}{{id}}"), get(job))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .with_state(api)
}

type Failure = (StatusCode, String);

async fn cluster(State(api): State<StatusApi>) -> Result<Json<ClusterStatus>, Failure> {
    let executors = api.executors().await?;
    let jobs = api.jobs().await?;
    let started = api.server.start_time as u64;
    Ok(Json(ClusterStatus {
        identity: api.identity.as_ref().clone(),
        uptime_seconds: timestamp_millis().saturating_sub(started) / 1000,
        executors,
        jobs,
    }))
}

async fn job(
    State(api): State<StatusApi>,
    Path(id): Path<String>,
) -> Result<Json<JobStatus>, Failure> {
    let tasks = &api.server.state.task_manager;
    // Drivers ask this many times a second: running jobs are found without listing the others.
    if let Some(running) = tasks.get_running_job_cache().get(id.as_str()) {
        let graph = running.execution_graph.read().await;
        return Ok(Json(with_tasks(
            overall(JobOverview::from(&*graph)),
            &graph,
        )));
    }
    let mut all = tasks.get_all_jobs().await.map_err(failure)?.into_iter();
    match all.find(|job| job.job_id.as_str() == id) {
        Some(overview) => Ok(Json(overall(overview))),
        None => Err((StatusCode::NOT_FOUND, format!("no job {id}\n"))),
    }
}

async fn ready(State(api): State<StatusApi>) -> Result<&'static str, Failure> {
    if api.server.is_ready() {
        Ok("ready\n")
    } else {
        Err((StatusCode::SERVICE_UNAVAILABLE, "no executor\n".to_owned()))
    }
}

impl StatusApi {
    async fn executors(&self) -> Result<Vec<ExecutorStatus>, Failure> {
        let manager = &self.server.state.executor_manager;
        let now = timestamp_secs();
        let mut found = Vec::new();
        for (executor, seen, metrics) in manager.get_executors_state().await.map_err(failure)? {
            let seen_seconds_ago = seen.map(|seen| now.saturating_sub(seen.as_secs()));
            let status = manager
                .get_executor_hearbeat(&executor.id)
                .and_then(|heartbeat| heartbeat.status?.status);
            let active = matches!(status, Some(executor_status::Status::Active(_)));
            let resident = metrics.iter().find_map(|metric| match metric.metric {
                Some(Metric::ProcPhysicalMemory(bytes)) => Some(bytes),
                _ => None,
            });
            found.push(ExecutorStatus {
                alive: active && seen_seconds_ago.is_some_and(|s| s < self.executor_timeout),
                id: executor.id,
                host: executor.host,
                port: executor.port,
                control_port: executor.grpc_port,
                slots: executor.specification.vcores,
                seen_seconds_ago,
                resident_bytes: resident,
            });
        }
        found.sort_by(|a, b| (&a.host, a.port, &a.id).cmp(&(&b.host, b.port, &b.id)));
        Ok(found)
    }

    async fn jobs(&self) -> Result<Vec<JobStatus>, Failure> {
        let tasks = &self.server.state.task_manager;
        let running = tasks.get_running_job_cache();
        let mut jobs = Vec::new();
        for overview in tasks.get_all_jobs().await.map_err(failure)? {
            let running = running.get(&overview.job_id);
            let mut job = overall(overview);
            if let Some(running) = running {
                job = with_tasks(job, &*running.execution_graph.read().await);
            }
            jobs.push(job);
        }
        // Ids grow with time.
        jobs.sort_by(|a, b| b.id.cmp(&a.id));
        Ok(jobs)
    }
}

/// A job but for its tasks.
fn overall(overview: JobOverview) -> JobStatus {
    let (state, error) = match overview.status.status {
        None | Some(job_status::Status::Queued(_)) => (JobState::Queued, None),
        Some(job_status::Status::Running(_)) => (JobState::Running, None),
        Some(job_status::Status::Successful(_)) => (JobState::Finished, None),
        Some(job_status::Status::Failed(failed)) => (JobState::Failed, Some(failed.error)),
    };
    let end = match overview.end_time {
        0 => timestamp_millis(),
        end => end,
    };
    let milliseconds = match overview.start_time {
        0 => 0,
        start => end.saturating_sub(start),
    };
    JobStatus {
        id: overview.job_id.into_inner(),
        name: overview.job_name,
        state,
        stages_done: overview.completed_stages as u64,
        stages: overview.num_stages as u64,
        seconds: milliseconds as f64 / 1000.0,
        error,
        ..JobStatus::default()
    }
}

fn with_tasks(mut job: JobStatus, graph: &ExecutionGraphBox) -> JobStatus {
    for stage in graph.stages().values() {
        let (done, all) = tasks(stage);
        job.tasks_done += done;
        job.tasks += all;
    }
    job
}

/// Shards of a stage that are done, and all. Tasks are counted by the partitions they cover, since
/// a lost one is listed again when it is repeated.
fn tasks(stage: &ExecutionStage) -> (u64, u64) {
    match stage {
        ExecutionStage::Successful(stage) => (stage.partitions as u64, stage.partitions as u64),
        ExecutionStage::Running(stage) => {
            let done: usize = (stage.task_infos.iter())
                .filter(|task| matches!(task.task_status, task_status::Status::Successful(_)))
                .map(|task| task.global_input_partition_ids.len())
                .sum();
            (done.min(stage.partitions) as u64, stage.partitions as u64)
        }
        ExecutionStage::Resolved(stage) => (0, stage.partitions as u64),
        ExecutionStage::Failed(stage) => (0, stage.partitions as u64),
        ExecutionStage::UnResolved(stage) => {
            let input = stage.plan.children();
            let partitions = input.first().map_or(1, |input| {
                input.properties().output_partitioning().partition_count()
            });
            (0, partitions as u64)
        }
    }
}

fn failure(error: ballista_core::error::BallistaError) -> Failure {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n"))
}
