//! `metra cluster`: the programs of a cluster, and a look at one.

mod executor;
mod scheduler;
mod status;

use crate::args::Common;
use anyhow::Result;
use clap::{Args, Subcommand};
use metra_engine::cluster::Identity;
use std::net::IpAddr;

/// Run on many machines: a scheduler, its executors, their status.
#[derive(Args)]
pub(crate) struct Cluster {
    #[command(subcommand)]
    part: Part,
}

#[derive(Subcommand)]
enum Part {
    /// Run the scheduler: accept jobs and assign their tasks, until stopped
    Scheduler(scheduler::Scheduler),
    /// Run an executor: join a scheduler and run its tasks, until stopped
    Executor(executor::Executor),
    /// List executors and running jobs
    Status(status::Status),
}

impl Cluster {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        match &self.part {
            Part::Scheduler(part) => part.run(common),
            Part::Executor(part) => part.run(common),
            Part::Status(part) => part.run(common),
        }
    }
}

/// Said wherever a program can be reached from other machines.
fn warn_if_open(what: &str, ip: IpAddr) {
    if !ip.is_loopback() {
        tracing::warn!(
            "{what} listens on {ip}: whoever reaches it can run jobs and read their results, \
             because Ballista 55 knows no users and its traffic is not encrypted; keep it in a \
             private network"
        );
    }
}

/// This build, or another version of it for a test of what happens then.
fn identity(claimed: Option<&str>) -> Identity {
    let mut identity = Identity::here();
    if let Some(version) = claimed {
        version.clone_into(&mut identity.metra);
    }
    identity
}

/// `1 slot`, `2 slots`.
fn counted(number: usize, what: &str, many: &str) -> String {
    let what = if number == 1 { what } else { many };
    format!("{number} {what}")
}
