//! `metra cluster status`.

use super::counted;
use crate::args::Common;
use crate::interrupt::STOP;
use crate::print;
use crate::progress::Reporter;
use anyhow::Result;
use clap::Args;
use metra_engine::cluster::hello::HandshakeAnswer;
use metra_engine::cluster::status::{ClusterStatus, ExecutorStatus, JobState, JobStatus, of};
use metra_engine::cluster::{Cluster, Identity, SchedulerAddress};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Jobs shown in text; JSON has all.
const JOBS: usize = 10;

/// List executors and running jobs.
#[derive(Args)]
pub(super) struct Status {
    /// The scheduler, as df://host:port
    cluster: SchedulerAddress,
    /// Check builds and run a small job: two tasks per slot that only answer
    #[arg(long = "try")]
    tried: bool,
    /// Milliseconds that each of these tasks lasts
    #[arg(
        long,
        value_name = "MS",
        default_value_t = 0,
        requires = "tried",
        hide = true
    )]
    pause: u64,
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    status: ClusterStatus,
    tried: Option<Tried>,
}

#[derive(Serialize)]
struct Tried {
    tasks: usize,
    processes: usize,
    seconds: f64,
}

impl Status {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        let tried = if self.tried {
            Some(self.try_it()?)
        } else {
            None
        };
        let status = of(&self.cluster)?;
        if common.json {
            return print::json(&Shown { status, tried });
        }
        let Identity {
            metra, ballista, ..
        } = &status.identity;
        print::fact(
            "scheduler",
            &format!(
                "{}, metra {metra}, Ballista {ballista}, {}, up {}",
                self.cluster,
                counted(status.identity.passes.len(), "pass", "passes"),
                seconds(status.uptime_seconds as f64)
            ),
        )?;
        if status.executors.is_empty() {
            let start = format!("metra cluster executor --scheduler {}", self.cluster);
            print::fact("executors", &format!("none; start one with `{start}`"))?;
        }
        for executor in &status.executors {
            print::fact("executor", &executor_line(executor))?;
        }
        for job in status.jobs.iter().take(JOBS) {
            print::fact("job", &job_line(job))?;
        }
        if status.jobs.len() > JOBS {
            let more = status.jobs.len() - JOBS;
            print::fact("", &format!("and {more} earlier ones (--json has all)"))?;
        }
        if let Some(tried) = &tried {
            print::fact(
                "tried",
                &format!(
                    "{} ran in {} in {:.2} s",
                    counted(tried.tasks, "task", "tasks"),
                    counted(tried.processes, "process", "processes"),
                    tried.seconds
                ),
            )?;
        }
        Ok(())
    }

    fn try_it(&self) -> Result<Tried> {
        let cluster = Cluster::connect(&self.cluster.to_string())?;
        let reporter = RefCell::new(Reporter::new());
        reporter.borrow_mut().start("try");
        let began = Instant::now();
        let answers = cluster.hello(
            2 * cluster.slots(),
            Duration::from_millis(self.pause),
            &|progress| {
                let (done, all) = (progress.tasks_done, progress.tasks);
                (reporter.borrow_mut()).advance(done, Some(all), || "tasks".into());
            },
            Some(&STOP),
        )?;
        reporter.borrow().finish();
        let processes: BTreeSet<u32> = answers
            .iter()
            .map(|a: &HandshakeAnswer| a.process)
            .collect();
        Ok(Tried {
            tasks: answers.len(),
            processes: processes.len(),
            seconds: began.elapsed().as_secs_f64(),
        })
    }
}

fn executor_line(executor: &ExecutorStatus) -> String {
    let seen = match executor.seen_seconds_ago {
        Some(ago) => format!("seen {ago} s ago"),
        None => "never seen".to_owned(),
    };
    let memory = executor
        .resident_bytes
        .map_or(String::new(), |bytes| format!(", {} MB", bytes >> 20));
    let state = if executor.alive {
        ""
    } else {
        ", not counted on"
    };
    format!(
        "{}:{}, {}, {seen}{memory}{state}",
        executor.host,
        executor.port,
        counted(executor.slots as usize, "slot", "slots")
    )
}

fn job_line(job: &JobStatus) -> String {
    let state = match (job.state, &job.error) {
        (JobState::Queued, _) => "queued".to_owned(),
        (JobState::Running, _) => format!("{} of {} tasks", job.tasks_done, job.tasks),
        (JobState::Finished, _) => "finished".to_owned(),
        (JobState::Failed, None) => "failed".to_owned(),
        (JobState::Failed, Some(error)) => {
            format!("failed: {}", error.lines().next().unwrap_or_default())
        }
    };
    format!("{} {} {state}, {}", job.id, job.name, seconds(job.seconds))
}

/// 3700 as 1 h 1 min.
fn seconds(all: f64) -> String {
    let whole = all as u64;
    match (whole / 3600, whole / 60 % 60) {
        (0, 0) if all < 10.0 => format!("{all:.1} s"),
        (0, 0) => format!("{whole} s"),
        (0, minutes) => format!("{minutes} min {} s", whole % 60),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!(seconds(0.24), "0.2 s");
        assert_eq!(seconds(59.9), "59 s");
        assert_eq!(seconds(61.0), "1 min 1 s");
        assert_eq!(seconds(3700.0), "1 h 1 min");
    }
}
