//! Slots that Ballista 55.0 forgets: found and given back.
//!
//! When an executor is lost, the scheduler rolls a stage back and cancels its tasks on the other
//! executors. What these say afterwards of the cancelled tasks concerns a stage that is no more, and
//! their slots are not freed (`sum_vcores_for_statuses` finds no such task). An executor of one slot is
//! then never asked again, and a job stands still while everybody waits. So the scheduler is looked
//! at: an executor without a task while tasks wait is first offered again, and if that changes nothing
//! its slots are given back.

use super::status_api::Server;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpc;
use ballista_core::serde::protobuf::{UpdateTaskStatusParams, task_status};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// Looks at an idle executor before it is offered again, and before its slots are given back.
const OFFER: u32 = 2;
const GIVE_BACK: u32 = 4;

/// Look at the executors for as long as the scheduler runs.
pub(super) async fn watch(server: Server) {
    let mut idle: BTreeMap<String, u32> = BTreeMap::new();
    loop {
        tokio::time::sleep(BETWEEN_LOOKS).await;
        let (waiting, busy) = tasks(&server).await;
        let manager = &server.state.executor_manager;
        let executors = manager.get_executors_state().await.unwrap_or_default();
        if !waiting || executors.is_empty() {
            idle.clear();
            continue;
        }
        for (executor, _, _) in executors {
            if busy.contains(&executor.id) {
                idle.remove(&executor.id);
                continue;
            }
            let looks = idle.entry(executor.id.clone()).or_default();
            *looks += 1;
            if *looks == GIVE_BACK {
                let slots = executor.specification.vcores;
                let (host, port) = (&executor.host, executor.port);
                tracing::warn!("the executor at {host}:{port} had no free slot and no task: freed");
                if let Err(error) = manager
                    .unbind_tasks(vec![(executor.id.clone(), slots)])
                    .await
                {
                    tracing::warn!("its slots could not be given back: {error}");
                }
                *looks = 0;
            }
            if *looks == 0 || *looks == OFFER {
                offer(&server, &executor.id).await;
            }
        }
    }
}

/// Whether tasks wait for a slot, and the executors that have a task.
async fn tasks(server: &Server) -> (bool, BTreeSet<String>) {
    let (mut waiting, mut busy) = (false, BTreeSet::new());
    for job in server.state.task_manager.get_running_job_cache().values() {
        let graph = job.execution_graph.read().await;
        waiting |= graph.available_tasks() > 0;
        for stage in graph.stages().values() {
            for task in stage.task_infos().unwrap_or_default() {
                if let task_status::Status::Running(running) = &task.task_status {
                    busy.insert(running.executor_id.clone());
                }
            }
        }
    }
    (waiting, busy)
}

/// Have the scheduler offer its tasks: it does whenever an executor says something.
async fn offer(server: &Server, executor: &str) {
    let nothing = UpdateTaskStatusParams {
        executor_id: executor.to_owned(),
        task_status: Vec::new(),
    };
    let updated = SchedulerGrpc::update_task_status(server, tonic::Request::new(nothing)).await;
    if let Err(error) = updated {
        tracing::debug!("tasks could not be offered: {error}");
    }
}
