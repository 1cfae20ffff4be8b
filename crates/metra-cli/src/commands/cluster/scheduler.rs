//! `metra cluster scheduler`.

use super::{identity, warn_if_open};
use crate::args::Common;
use crate::print;
use anyhow::Result;
use clap::Args;
use metra_engine::cluster::scheduler::{SchedulerOptions, run};
use std::net::SocketAddr;

/// Run the scheduler: accept jobs and assign their tasks, until stopped.
#[derive(Args)]
pub(super) struct Scheduler {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:50050")]
    bind: SocketAddr,
    /// Name or address under which executors reach this machine (needed with --bind 0.0.0.0:…)
    #[arg(long, value_name = "HOST")]
    advertise: Option<String>,
    /// Seconds without a sign of life after which an executor's work is repeated elsewhere
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    executor_timeout: u64,
    /// Seconds for which jobs wait for a new executor when none is left
    #[arg(long, value_name = "SECONDS", default_value_t = 180)]
    without_executors: u64,
    /// Seconds between looks for lost executors
    #[arg(long, value_name = "SECONDS", default_value_t = 5, hide = true)]
    check_interval: u64,
    /// The version it says it is, for tests
    #[arg(long, hide = true)]
    claim_version: Option<String>,
}

impl Scheduler {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        warn_if_open("the scheduler", self.bind.ip());
        let options = SchedulerOptions {
            advertise: self.advertise.clone(),
            executor_timeout: self.executor_timeout,
            check_interval: self.check_interval,
            without_executors: self.without_executors,
            identity: identity(self.claim_version.as_deref()),
            ..SchedulerOptions::new(self.bind)
        };
        let ready = |address: SocketAddr| {
            let printed = if common.json {
                print::line(&serde_json::json!({ "listening": address.to_string() }).to_string())
            } else {
                print::line(&format!("metra scheduler listening on {address}"))
            };
            if let Err(error) = printed {
                tracing::warn!("listening on {address}, but nobody reads it: {error}");
            }
        };
        Ok(run(&options, &ready)?)
    }
}
