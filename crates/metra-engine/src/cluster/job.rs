//! The driver's side: connect, send a plan, follow it, fetch what came out.
//!
//! Over Ballista's protocol rather than its `execute_physical_plan`, which keeps the job's id to
//! itself (nothing could be cancelled or shown) and waits without limit.

use super::connection::Connection;
use super::session::{MESSAGE_SIZE, runtime, session_config};
use super::status::{self, ClusterStatus, JOB_PAGE, JobState, JobStatus};
use super::{Identity, SchedulerAddress};
use crate::{Error, Result};
use ballista_core::client::BallistaClient;
use ballista_core::config::BALLISTA_JOB_NAME;
use ballista_core::serde::protobuf::execute_query_params::Query;
use ballista_core::serde::protobuf::{
    CancelJobParams, CleanJobDataParams, ExecuteQueryParams, GetJobStatusParams, KeyValuePair,
    PartitionLocation, RemoveSessionParams, execute_query_result, job_status,
};
use ballista_core::version::insert_version_header;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::{StreamExt, TryStreamExt};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Runs of one job: results are lost when an executor dies between the end of the job and their
/// fetching, and Ballista repeats nothing then. Tasks are pure, so that all is run again.
const RUNS: usize = 3;
/// Waits for the first executor of a cluster that is just being started.
const FIRST_EXECUTOR: Duration = Duration::from_secs(5);
/// A job may be unknown while the scheduler plans others; one that it knew and knows no more is gone,
/// with an earlier scheduler.
const NOT_YET_KNOWN: Duration = Duration::from_secs(60);
const KNOWN_NO_MORE: Duration = Duration::from_secs(2);
/// Opening a connection to an executor, and waiting for its next batch.
const FETCH_BEGIN: Duration = Duration::from_secs(10);
const FETCH_NEXT: Duration = Duration::from_secs(60);
/// Calls that clean up and whose failure is not reported.
const TIDYING: Duration = Duration::from_secs(1);
/// Partitions fetched at the same time.
const FETCHES: usize = 8;
/// Pauses between questions: short ones for a job of milliseconds, longer ones later.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LAST_PAUSE: Duration = Duration::from_millis(100);

/// How far a job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobProgress {
    /// Its id at the scheduler.
    pub job: String,
    /// Where it stands.
    pub state: JobState,
    /// Tasks that are done; a lost executor takes some back.
    pub tasks_done: u64,
    /// All tasks, as far as they are known.
    pub tasks: u64,
    /// Stages that are done.
    pub stages_done: u64,
    /// All stages.
    pub stages: u64,
}

/// A connection to a cluster. Its methods block; they must not be called from inside a tokio
/// runtime.
pub struct Cluster {
    runtime: tokio::runtime::Runtime,
    connection: Connection,
    session: String,
    slots: usize,
}

impl Cluster {
    /// Connect to the scheduler at `df://host:port`, and check that it and its executors are of
    /// this build.
    pub fn connect(url: &str) -> Result<Cluster> {
        Self::connect_as(url, &Identity::here())
    }

    /// Connect as a program of a given identity.
    pub fn connect_as(url: &str, identity: &Identity) -> Result<Cluster> {
        let address: SchedulerAddress = url.parse()?;
        let runtime = runtime("metra-driver")?;
        let (connection, found) = runtime.block_on(async {
            let connection = Connection::new(&address)?;
            let found = with_executors(&connection, identity).await?;
            Ok::<_, Error>((connection, found))
        })?;
        let slots = (found.executors.iter().filter(|e| e.alive))
            .map(|e| e.slots as usize)
            .sum();
        Ok(Cluster {
            runtime,
            connection,
            session: uuid::Uuid::new_v4().to_string(),
            slots,
        })
    }

    /// Where its scheduler is.
    pub fn address(&self) -> &SchedulerAddress {
        self.connection.address()
    }

    /// Tasks that ran at the same time when it was connected to.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Its present state.
    pub fn status(&self) -> Result<ClusterStatus> {
        self.runtime.block_on(status::ask(&self.connection))
    }

    /// Run a plan and return its rows, in the order of its partitions. `watch` is called with its progress
    /// several times per second; setting `stop` cancels the job. The job is also cancelled when
    /// this function ends in any other way than with its results.
    pub fn run(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        name: &str,
        watch: &dyn Fn(JobProgress),
        stop: Option<&AtomicBool>,
    ) -> Result<Vec<RecordBatch>> {
        let plan = encode(plan, name)?;
        let job = JobGuard {
            cluster: self,
            id: RefCell::new(None),
        };
        self.runtime.block_on(async {
            tokio::select! {
                outcome = self.run_until_fetched(plan, name, watch, &job) => outcome,
                () = stop_requested(stop) => Err(metra::Error::Interrupted.into()),
            }
        })
    }

    async fn run_until_fetched(
        &self,
        plan: Vec<u8>,
        name: &str,
        watch: &dyn Fn(JobProgress),
        job: &JobGuard<'_>,
    ) -> Result<Vec<RecordBatch>> {
        let mut run = 1;
        loop {
            let id = self.submit(plan.clone(), name).await?;
            job.begins(&id);
            let followed = self.follow(&id, name, watch).await;
            if followed.is_err() {
                // It failed, or its scheduler is gone: nobody is there to cancel it.
                job.ends();
            }
            let fetched = fetch_all(followed?).await;
            match fetched {
                Ok(batches) => {
                    job.ends();
                    self.forget(id);
                    return Ok(batches);
                }
                Err(error) if run < RUNS => {
                    tracing::warn!("{name}: {error}; run {run} of {RUNS} is repeated");
                    job.ends();
                    run += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn submit(&self, plan: Vec<u8>, name: &str) -> Result<String> {
        let config = session_config();
        let mut settings: Vec<KeyValuePair> = (config.options().entries().into_iter())
            .filter(|entry| entry.key != BALLISTA_JOB_NAME)
            .map(|entry| KeyValuePair {
                key: entry.key,
                value: entry.value,
            })
            .collect();
        settings.push(KeyValuePair {
            key: BALLISTA_JOB_NAME.to_owned(),
            value: Some(name.to_owned()),
        });
        let mut request = tonic::Request::new(ExecuteQueryParams {
            query: Some(Query::PhysicalPlan(plan)),
            settings,
            session_id: self.session.clone(),
            operation_id: uuid::Uuid::new_v4().to_string(),
        });
        insert_version_header(request.metadata_mut());
        let doing = format!("submitting {name}");
        let answer = self
            .connection
            .submit(&doing, async move |mut scheduler| {
                scheduler.execute_query(request).await
            })
            .await?;
        match answer.result {
            Some(execute_query_result::Result::Success(success)) => Ok(success.job_id),
            Some(execute_query_result::Result::Failure(failure)) => {
                Err(Error::engine(doing, format!("{failure:?}")))
            }
            None => Err(Error::engine(doing, "the scheduler's answer is empty")),
        }
    }

    /// Wait for a job's end; its results' places, or why it failed.
    async fn follow(
        &self,
        id: &str,
        name: &str,
        watch: &dyn Fn(JobProgress),
    ) -> Result<Vec<PartitionLocation>> {
        let doing = format!("job {id} ({name})");
        let (mut known, mut unknown) = (Instant::now(), NOT_YET_KNOWN);
        let mut pause = FIRST_PAUSE;
        loop {
            let answer = self
                .connection
                .call(&doing, async |mut scheduler| {
                    let job_id = id.to_owned();
                    scheduler
                        .get_job_status(GetJobStatusParams { job_id })
                        .await
                })
                .await?;
            match answer.status.and_then(|status| status.status) {
                Some(job_status::Status::Successful(done)) => return Ok(done.partition_location),
                Some(job_status::Status::Failed(failed)) => {
                    return Err(Error::engine(doing, failed.error));
                }
                Some(_) => {
                    (known, unknown) = (Instant::now(), KNOWN_NO_MORE);
                    // A page that fails is no reason to give up a job that runs.
                    let page: Result<Option<JobStatus>> =
                        self.connection.page(&format!("{JOB_PAGE}{id}")).await;
                    if let Ok(Some(job)) = page {
                        watch(progress(job));
                    }
                }
                None if known.elapsed() > unknown => {
                    let reason = format!("it does not know {doing}; was it started anew?");
                    return Err(self.connection.lost(reason));
                }
                None => {}
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 3 / 2).min(LAST_PAUSE);
        }
    }

    /// Let the executors delete a job's files; nobody waits for it.
    fn forget(&self, job_id: String) {
        let connection = self.connection.clone();
        self.runtime.spawn(async move {
            let tidying = connection.call("forgetting a job", async |mut scheduler| {
                let job = CleanJobDataParams {
                    job_id: job_id.clone(),
                    remove_stage_ids: Vec::new(),
                };
                scheduler.clean_job_data(job).await
            });
            tokio::time::timeout(TIDYING, tidying).await.map(drop)
        });
    }

    fn cancel(&self, id: &str) {
        tracing::info!("job {id} is cancelled");
        let outcome = self.runtime.block_on(async {
            let cancelling = self.connection.call("cancelling", async |mut scheduler| {
                let job_id = id.to_owned();
                scheduler.cancel_job(CancelJobParams { job_id }).await
            });
            tokio::time::timeout(TIDYING, cancelling).await
        });
        if !matches!(outcome, Ok(Ok(_))) {
            tracing::warn!("job {id} could not be cancelled: the scheduler does not answer");
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let session_id = self.session.clone();
        let connection = &self.connection;
        // A scheduler forgets sessions on request alone. Errors are no news: it may be gone.
        let outcome = self.runtime.block_on(async {
            let leaving = connection.call("leaving", async |mut scheduler| {
                let session_id = session_id.clone();
                scheduler
                    .remove_session(RemoveSessionParams { session_id })
                    .await
            });
            tokio::time::timeout(TIDYING, leaving).await
        });
        if outcome.is_err() {
            tracing::debug!("the scheduler was not told of the end");
        }
    }
}

/// Cancels its job when dropped before the end.
struct JobGuard<'a> {
    cluster: &'a Cluster,
    id: RefCell<Option<String>>,
}

impl JobGuard<'_> {
    fn begins(&self, id: &str) {
        *self.id.borrow_mut() = Some(id.to_owned());
    }

    fn ends(&self) {
        *self.id.borrow_mut() = None;
    }
}

impl Drop for JobGuard<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.cluster.cancel(&id);
        }
    }
}

/// The status of a cluster of our build that has at least one executor.
async fn with_executors(connection: &Connection, identity: &Identity) -> Result<ClusterStatus> {
    let begin = Instant::now();
    let peer = format!("the scheduler at {}", connection.address());
    loop {
        let found = status::ask(connection).await?;
        identity.check(&peer, &found.identity)?;
        let mut alive = found.executors.iter().filter(|e| e.alive).peekable();
        if alive.peek().is_some() {
            for executor in alive {
                let peer = format!("the executor at {}:{}", executor.host, executor.port);
                identity.check_executor(&peer, &executor.id)?;
            }
            return Ok(found);
        }
        if begin.elapsed() >= FIRST_EXECUTOR {
            return Err(Error::NoExecutors {
                address: connection.address().to_string(),
                waited: FIRST_EXECUTOR.as_secs(),
            });
        }
        tokio::time::sleep(LAST_PAUSE).await;
    }
}

/// The encoded plan.
fn encode(plan: Arc<dyn ExecutionPlan>, name: &str) -> Result<Vec<u8>> {
    let failed = |e| Error::engine(format!("writing the plan of {name}"), e);
    let node = PhysicalPlanNode::try_from_physical_plan(plan, crate::operators::codec().as_ref());
    let mut bytes = Vec::new();
    node.map_err(failed)?
        .try_encode(&mut bytes)
        .map_err(failed)?;
    if bytes.len() > MESSAGE_SIZE {
        return Err(Error::engine(
            format!("writing the plan of {name}"),
            format!(
                "expected at most {MESSAGE_SIZE} bytes, but found {}: large parameters travel by \
                 address",
                bytes.len()
            ),
        ));
    }
    Ok(bytes)
}

/// Ends when the caller wants to stop.
async fn stop_requested(stop: Option<&AtomicBool>) {
    let Some(stop) = stop else {
        return std::future::pending().await;
    };
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(FIRST_PAUSE * 2).await;
    }
}

fn progress(job: JobStatus) -> JobProgress {
    JobProgress {
        job: job.id,
        state: job.state,
        tasks_done: job.tasks_done,
        tasks: job.tasks,
        stages_done: job.stages_done,
        stages: job.stages,
    }
}

fn incomplete() -> Error {
    Error::engine("fetching results", "the scheduler does not say from where")
}

/// Where each partition of a result lies, in their order. Ballista 55.0 lists a partition of the last
/// stage again when it was made again, and keeps the place on the lost executor: the latest counts,
/// or rows would be missing or, worse, come twice.
fn latest(locations: Vec<PartitionLocation>) -> Result<Vec<PartitionLocation>> {
    let mut latest = BTreeMap::new();
    for location in locations {
        let id = location.partition_id.as_ref().ok_or_else(incomplete)?;
        latest.insert(id.partition_id, location);
    }
    Ok(latest.into_values().collect())
}

/// All rows of a job, in the order of partitions.
async fn fetch_all(locations: Vec<PartitionLocation>) -> Result<Vec<RecordBatch>> {
    let locations = latest(locations)?;
    let fetches = locations.into_iter().map(fetch);
    let partitions: Vec<Vec<RecordBatch>> = futures::stream::iter(fetches)
        .buffered(FETCHES)
        .try_collect()
        .await?;
    Ok(partitions.into_iter().flatten().collect())
}

async fn fetch(location: PartitionLocation) -> Result<Vec<RecordBatch>> {
    let layout = location.layout();
    let executor = location.executor_meta.ok_or_else(incomplete)?;
    let partition = location.partition_id.ok_or_else(incomplete)?.into();
    let port = u16::try_from(executor.port).map_err(|_| incomplete())?;
    let doing = format!(
        "fetching results from the executor at {}:{port}",
        executor.host
    );
    let silent = || Error::engine(&doing, "it does not answer");
    let opening = async {
        let mut client = BallistaClient::try_new(
            &executor.host,
            port,
            MESSAGE_SIZE,
            false,
            None,
            1,
            0,
            MESSAGE_SIZE as u32,
            MESSAGE_SIZE as u32 / 4,
        )
        .await?;
        client
            .fetch_partition(&executor.id, &partition, location.file_id, layout, true)
            .await
    };
    let opened = tokio::time::timeout(FETCH_BEGIN, opening).await;
    let mut stream = opened
        .map_err(|_| silent())?
        .map_err(|e| Error::engine(&doing, e))?;
    let mut batches = Vec::new();
    loop {
        match tokio::time::timeout(FETCH_NEXT, stream.next()).await {
            Ok(Some(Ok(batch))) => batches.push(batch),
            Ok(Some(Err(error))) => return Err(Error::engine(&doing, error)),
            Ok(None) => return Ok(batches),
            Err(_) => return Err(silent()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ballista_core::serde::protobuf::{ExecutorMetadata, PartitionId};

    #[test]
    fn a_partition_made_again_is_fetched_from_its_latest_place() {
        let place = |partition_id: u32, port: u32| PartitionLocation {
            partition_id: Some(PartitionId {
                partition_id,
                ..PartitionId::default()
            }),
            executor_meta: Some(ExecutorMetadata {
                port,
                ..ExecutorMetadata::default()
            }),
            ..PartitionLocation::default()
        };
        let found = latest(vec![place(1, 7), place(0, 7), place(2, 8), place(1, 8)]).unwrap();
        let port = |l: &PartitionLocation| l.executor_meta.as_ref().unwrap().port;
        assert_eq!(found.iter().map(port).collect::<Vec<_>>(), [7, 8, 8]);
        assert!(latest(vec![PartitionLocation::default()]).is_err());
    }
}
