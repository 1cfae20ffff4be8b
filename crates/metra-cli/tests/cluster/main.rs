//! A cluster of real processes on this machine: it starts, works, is looked at, loses parts and
//! stops. Every test starts its own programs on free ports.

#![cfg(feature = "cluster")]

mod faults;
mod network;
mod object_store;
mod processes;
mod same;
mod tables;

use metra_engine::Error;
use metra_engine::cluster::{Cluster, Identity, JobProgress};
use processes::{Executor, Program, Scheduler, metra, output, refused};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

fn executors(status: &Value) -> usize {
    let all = status["executors"].as_array().unwrap();
    all.iter().filter(|e| e["alive"] == true).count()
}

fn ignore(_: JobProgress) {}

#[test]
#[ignore = "slow: starts a cluster"]
fn a_cluster_starts_works_and_stops() {
    let mut scheduler = Scheduler::start("");
    let mut first = Executor::start(&scheduler, "");
    let second = Executor::start(&scheduler, "");
    assert!(first.work_dir.is_dir());

    let status = scheduler.until("two executors", |status| executors(status) == 2);
    assert_eq!(status["identity"]["metra"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status["executors"][0]["slots"], 1);
    assert_eq!(status["jobs"].as_array().unwrap().len(), 0);

    let cluster = scheduler.connect();
    assert_eq!(cluster.slots(), 2);
    let seen = RefCell::new(Vec::new());
    let answers = cluster
        .hello(6, SECOND / 2, &|p| seen.borrow_mut().push(p), None)
        .unwrap();
    let shards: Vec<u64> = answers.iter().map(|a| a.shard).collect();
    assert_eq!(shards, [0, 1, 2, 3, 4, 5]);
    let processes: BTreeSet<u32> = answers.iter().map(|a| a.process).collect();
    assert_eq!(
        processes,
        BTreeSet::from([first.program.id(), second.program.id()])
    );
    let seen = seen.into_inner();
    assert!(seen.iter().all(|p| p.tasks_done <= p.tasks && p.tasks <= 6));
    assert!(
        seen.iter().any(|p| p.tasks == 6 && p.tasks_done > 0),
        "{seen:?}"
    );

    let tried = output(&format!("cluster status {} --try", scheduler.url()));
    let text = String::from_utf8(tried.stdout).unwrap();
    assert!(tried.status.success(), "{text}");
    assert!(text.contains("4 tasks ran in 2 processes"), "{text}");
    assert!(text.contains("hello finished"), "{text}");

    drop(cluster);
    first.program.signal("TERM");
    assert_eq!(first.program.ended(10 * SECOND).code(), Some(0));
    assert!(!first.work_dir.exists(), "its results go with it");
    scheduler.until("one executor", |status| executors(status) == 1);
    scheduler.program.signal("TERM");
    assert_eq!(scheduler.program.ended(10 * SECOND).code(), Some(0));
}

#[test]
#[ignore = "slow: starts a cluster"]
fn another_build_is_refused_by_name() {
    let scheduler = Scheduler::start("--claim-version 9.9.9");
    let here = env!("CARGO_PKG_VERSION");
    let expected = format!(
        "the scheduler at {} does not fit: it runs metra 9.9.9, this is metra {here}",
        scheduler.address
    );
    let joining = format!("cluster executor --scheduler {}", scheduler.address);
    assert!(refused(&joining).contains(&expected));
    let error = Cluster::connect(&scheduler.url()).err().unwrap();
    assert!(error.to_string().contains(&expected), "{error}");

    // An executor that joined an earlier scheduler, and is still there when a driver comes.
    let _executor = Executor::start(&scheduler, "--claim-version 9.9.9");
    scheduler.until("an executor", |status| executors(status) == 1);
    let mut identity = Identity::here();
    identity.metra = "9.9.9".to_owned();
    assert!(Cluster::connect_as(&scheduler.url(), &identity).is_ok());
}

#[test]
#[ignore = "slow: waits for programs that are not there"]
fn what_is_not_there_is_named() {
    let said = refused("cluster status df://127.0.0.1:1");
    assert!(
        said.contains("no scheduler answers at 127.0.0.1:1"),
        "{said}"
    );
    let began = Instant::now();
    let said = refused("cluster executor --scheduler 127.0.0.1:1 --wait 2");
    assert!(
        said.contains("no scheduler answers at 127.0.0.1:1"),
        "{said}"
    );
    assert!(began.elapsed() >= 2 * SECOND && began.elapsed() < 10 * SECOND);

    let scheduler = Scheduler::start("");
    let said = refused(&format!("cluster status {} --try", scheduler.url()));
    assert!(said.contains("has no executor (waited 5 s)"), "{said}");
    assert!(
        said.contains("metra cluster executor --scheduler"),
        "{said}"
    );

    let said = refused("cluster scheduler --bind 0.0.0.0:0");
    assert!(said.contains("--advertise"), "{said}");
    assert!(said.contains("private network"), "{said}");
}

#[test]
#[ignore = "slow: starts a cluster and kills parts of it"]
fn a_killed_scheduler_is_a_named_error_and_no_hang() {
    let mut scheduler = Scheduler::start("");
    let mut executor = Executor::start(&scheduler, "");
    let cluster = scheduler.connect();
    let address = scheduler.address.clone();
    let killed = Cell::new(None);
    let kill = RefCell::new(|| scheduler.program.kill());
    let outcome = cluster.hello(
        4,
        30 * SECOND,
        &|progress| {
            if progress.tasks == 4 && killed.get().is_none() {
                (kill.borrow_mut())();
                killed.set(Some(Instant::now()));
            }
        },
        None,
    );
    let elapsed = killed.get().expect("the job ran").elapsed();
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::SchedulerLost { .. }), "{error}");
    let expected = format!("the scheduler at {address} stopped answering: ");
    assert!(error.to_string().starts_with(&expected), "{error}");
    assert!(elapsed < 10 * SECOND, "{elapsed:?}");
    let began = Instant::now();
    drop(cluster);
    assert!(began.elapsed() < 3 * SECOND, "leaving waits for nobody");

    // The executor tries five times, then says why it goes.
    assert_eq!(executor.program.ended(60 * SECOND).code(), Some(1));
    let said = executor.program.errors();
    assert!(said.contains(&expected), "{said}");
}

#[test]
#[ignore = "slow: starts a cluster"]
fn an_interrupted_driver_cancels_its_job() {
    let scheduler = Scheduler::start("");
    let _executor = Executor::start(&scheduler, "");
    let line = format!("cluster status {} --try --pause 60000", scheduler.url());
    let mut driver = Program::start(metra(&line));
    let running = |status: &Value| status["jobs"][0]["state"] == "running";
    scheduler.until("a running job", running);
    driver.signal("INT");
    assert_eq!(driver.ended(10 * SECOND).code(), Some(130));
    assert!(driver.errors().contains("interrupted"));
    let status = scheduler.until("a cancelled job", |s| s["jobs"][0]["state"] == "failed");
    assert_eq!(status["jobs"][0]["error"], "Cancelled");

    // The slot is free again: a task that was not stopped would hold it for a minute.
    let cluster = scheduler.connect();
    let began = Instant::now();
    cluster.hello(2, Duration::ZERO, &ignore, None).unwrap();
    assert!(began.elapsed() < 20 * SECOND, "{:?}", began.elapsed());

    // The same from inside a program.
    let stop = AtomicBool::new(false);
    let watch = |_| stop.store(true, Ordering::Relaxed);
    let error = cluster.hello(2, 60 * SECOND, &watch, Some(&stop));
    assert!(error.unwrap_err().is_interrupted());
    scheduler.until("no running job", |s| s["jobs"][0]["state"] == "failed");
}

#[test]
#[ignore = "slow: starts a cluster and kills parts of it"]
fn a_killed_executor_costs_its_tasks_alone() {
    let scheduler = Scheduler::start("");
    let mut lost = Executor::start(&scheduler, "");
    let kept = Executor::start(&scheduler, "");
    scheduler.until("two executors", |status| executors(status) == 2);
    let cluster = scheduler.connect();
    let (process, kept) = (lost.program.id(), kept.program.id());
    let (done, jobs) = (Cell::new(0), RefCell::new(BTreeSet::new()));
    let kill = RefCell::new(|| lost.program.kill());
    let watch = |progress: JobProgress| {
        jobs.borrow_mut().insert(progress.job.clone());
        // Tasks of both are done when two of eight are, or soon after.
        if progress.tasks_done >= 2 && done.get() == 0 {
            (kill.borrow_mut())();
            done.set(progress.tasks_done);
        }
    };
    let answers = cluster.hello(8, 2 * SECOND, &watch, None).unwrap();
    assert!(
        (2..8).contains(&done.get()),
        "the fault fired in the middle"
    );
    let shards: Vec<u64> = answers.iter().map(|a| a.shard).collect();
    assert_eq!(shards, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(
        answers.iter().all(|a| a.process == kept),
        "{process}: {answers:?}"
    );
    assert_eq!(jobs.borrow().len(), 1, "nothing but its tasks is run again");
}

#[test]
#[ignore = "slow: starts a cluster and kills parts of it"]
fn results_lost_after_the_end_are_made_again() {
    let scheduler = Scheduler::start("");
    let mut lost = Executor::start(&scheduler, "");
    let kept = Executor::start(&scheduler, "");
    scheduler.until("two executors", |status| executors(status) == 2);
    let cluster = scheduler.connect();
    let (jobs, kept) = (RefCell::new(BTreeSet::new()), kept.program.id());
    let fired = Cell::new(false);
    let kill = RefCell::new(|| lost.program.kill());
    let watch = |progress: JobProgress| {
        jobs.borrow_mut().insert(progress.job.clone());
        if progress.tasks_done >= 1 && !fired.get() {
            fired.set(true);
            // The driver sleeps here while the job ends, and sees its results only when one half
            // of them is gone.
            scheduler.until("the end", |s| s["jobs"][0]["state"] == "finished");
            (kill.borrow_mut())();
        }
    };
    let answers = cluster.hello(4, SECOND, &watch, None).unwrap();
    assert!(fired.get(), "the fault fired");
    assert_eq!(answers.len(), 4);
    assert!(answers.iter().all(|a| a.process == kept), "{answers:?}");
    assert_eq!(jobs.borrow().len(), 2, "one job and its repetition");
}
