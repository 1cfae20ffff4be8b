//! Machines that die in the middle of work: the result has the bytes of an undisturbed run, and
//! every test asserts that its fault did happen.

use crate::processes::{Executor, Program, Scheduler, metra};
use crate::tables::Made;
use metra::internal::moments;
use metra_engine::{Cut, Engine, PassProgress, TableCorpus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A stage that lasts: 0.4 s a shard.
const SLOW_FOLD: (&str, &str) = ("METRA_TEST_PAUSE_FOLD", "400");

const FILES: usize = 12;

fn made() -> Made {
    Made::new(FILES, 300, 12)
}

fn covariance(engine: &Engine, made: &Made) -> metra_engine::Result<Vec<u64>> {
    let table = engine.open(&made.address(), Cut::Files)?;
    assert_eq!(table.shards(), FILES);
    let corpus = TableCorpus::new(engine, table, None)?;
    let found = moments(&corpus)?.covariance;
    let entries = found.entries();
    let rows = 0..found.dim();
    Ok(rows
        .flat_map(|i| (0..=i).map(move |j| entries[(i, j)].to_bits()))
        .collect())
}

/// An engine that tells how far the pass over all rows is.
fn watched(scheduler: &Scheduler) -> (Engine, Receiver<PassProgress>) {
    let (send, progress) = channel();
    let engine = Engine::cluster(&scheduler.url()).unwrap();
    let engine = engine.with_watch(move |progress| {
        if progress.doing.contains("moments") {
            // Nobody listens any more once the fault has happened.
            let _ = send.send(progress);
        }
    });
    (engine, progress)
}

/// Wait until so many tasks are done.
fn until(
    progress: &Receiver<PassProgress>,
    what: &str,
    wanted: impl Fn(&PassProgress) -> bool,
) -> PassProgress {
    let began = Instant::now();
    loop {
        let left = Duration::from_secs(60).saturating_sub(began.elapsed());
        let progress = progress.recv_timeout(left);
        let progress = progress.unwrap_or_else(|_| panic!("waited for {what}"));
        if wanted(&progress) {
            return progress;
        }
    }
}

#[test]
#[ignore = "slow: kills executors"]
fn an_executor_killed_in_the_middle_of_the_map_stage() {
    let made = made();
    let expected = covariance(&Engine::here(2).unwrap(), &made).unwrap();
    let scheduler = Scheduler::start("");
    let mut doomed = Executor::start_with(&scheduler, "", &[SLOW_FOLD]);
    let _other = Executor::start_with(&scheduler, "", &[SLOW_FOLD]);
    let (engine, progress) = watched(&scheduler);
    let found = std::thread::scope(|scope| {
        let job = scope.spawn(|| covariance(&engine, &made));
        let at = until(&progress, "some shards", |p| p.done >= 3);
        doomed.program.kill();
        // The fault: the map stage was not over.
        assert!(at.done < FILES as u64, "{at:?}");
        assert!(!job.is_finished());
        job.join().unwrap().unwrap()
    });
    assert!(found == expected);
    scheduler.until("one executor less", |status| crate::executors(status) == 1);
}

#[test]
#[ignore = "slow: kills executors"]
fn an_executor_killed_after_its_map_output_was_written() {
    let made = made();
    let expected = covariance(&Engine::here(2).unwrap(), &made).unwrap();
    let scheduler = Scheduler::start("");
    // No pass and no merge goes on while a file of its name is here, so that no step below depends
    // on time.
    let held = tempfile::tempdir().unwrap();
    let environment = [
        SLOW_FOLD,
        ("METRA_TEST_HOLD", held.path().to_str().unwrap()),
    ];
    let mut doomed = Executor::start_with(&scheduler, "", &environment);
    let _other = Executor::start_with(&scheduler, "", &environment);
    let (engine, progress) = watched(&scheduler);
    let found = std::thread::scope(|scope| {
        // Here, so that a failed assertion lets go of what the scope waits for.
        let held = held;
        let hold = |name: &str| std::fs::write(held.path().join(name), "").unwrap();
        let release = |name: &str| std::fs::remove_file(held.path().join(name)).unwrap();
        hold("moments");
        let job = scope.spawn(|| covariance(&engine, &made));
        until(&progress, "the pass", |_| true);
        hold("merge");
        release("moments");
        until(&progress, "all shards", |p| p.done >= FILES as u64);
        // The fault: its output is there, and nobody has read it.
        assert!(written(&doomed) > 0, "it had no part in the map stage");
        hold("moments");
        doomed.program.kill();
        release("merge");
        // The lost shards are folded again: what was done is taken back.
        until(&progress, "lost shards", |p| p.done < FILES as u64);
        release("moments");
        job.join().unwrap().unwrap()
    });
    assert!(found == expected);
}

/// Files of map output that an executor has written.
fn written(executor: &Executor) -> usize {
    fn files(folder: &std::path::Path) -> usize {
        let inside = std::fs::read_dir(folder).map(|entries| {
            let paths = entries.flatten().map(|entry| entry.path());
            paths
                .map(|path| if path.is_dir() { files(&path) } else { 1 })
                .sum()
        });
        inside.unwrap_or(0)
    }
    files(&executor.work_dir)
}

#[test]
#[ignore = "slow: kills executors"]
fn all_executors_killed_and_a_new_one_joins() {
    let made = made();
    let expected = covariance(&Engine::here(2).unwrap(), &made).unwrap();
    let scheduler = Scheduler::start("");
    let mut first = Executor::start_with(&scheduler, "", &[SLOW_FOLD]);
    let mut second = Executor::start_with(&scheduler, "", &[SLOW_FOLD]);
    let (engine, progress) = watched(&scheduler);
    let found = std::thread::scope(|scope| {
        let job = scope.spawn(|| covariance(&engine, &made));
        until(&progress, "some shards", |p| p.done >= 3);
        first.program.kill();
        second.program.kill();
        assert!(!job.is_finished());
        std::thread::sleep(Duration::from_secs(2));
        let _third = Executor::start(&scheduler, "");
        job.join().unwrap().unwrap()
    });
    assert!(found == expected);
}

#[test]
#[ignore = "slow: kills a scheduler"]
fn a_killed_scheduler_is_a_named_error_within_ten_seconds() {
    let made = made();
    let mut scheduler = Scheduler::start("");
    let _executor = Executor::start_with(&scheduler, "", &[SLOW_FOLD]);
    let (engine, progress) = watched(&scheduler);
    let address = scheduler.address.clone();
    std::thread::scope(|scope| {
        let job = scope.spawn(|| covariance(&engine, &made));
        until(&progress, "some shards", |p| p.done >= 1);
        assert!(!job.is_finished());
        scheduler.program.kill();
        let killed = Instant::now();
        let error = job.join().unwrap().unwrap_err();
        assert!(
            killed.elapsed() < Duration::from_secs(10),
            "{:?}",
            killed.elapsed()
        );
        let expected = format!("the scheduler at {address} stopped answering");
        assert!(error.to_string().contains(&expected), "{error}");
    });
}

#[test]
#[ignore = "slow: kills the driver of a training"]
fn a_killed_driver_resumes_from_its_last_round() {
    let made = Made::new(1, 3000, 16);
    let scheduler = Scheduler::start("");
    let _executors = [
        Executor::start(&scheduler, ""),
        Executor::start(&scheduler, ""),
    ];
    let (url, shards) = (scheduler.url(), made.beside("shards"));
    let run = |line: &str| {
        let done = metra(line).output().unwrap();
        let error = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{line}\n{error}");
        error
    };
    let (table, label) = (made.address(), "--label label");
    run(&format!("shard {table} {label} --shards 4 -o {shards}"));
    let line = |name: &str| {
        let (model, checkpoint) = (made.beside(name), made.beside(&format!("{name}.rounds")));
        format!(
            "train {shards} {label} --method warca --rank 4 --set steps=200 --set batch=64 \
             --rounds 10 --seed 3 --cluster {url} --checkpoint {checkpoint} -o {model}"
        )
    };
    run(&line("undisturbed"));
    let mut driver = Program::start(metra(&line("resumed")));
    let checkpoint = std::path::PathBuf::from(made.beside("resumed.rounds"));
    let began = Instant::now();
    while !driver.errors().contains("round 3 of 10") {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{}",
            driver.errors()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    driver.kill();
    // The fault: it was killed between its third and its last round.
    assert!(checkpoint.exists());
    assert!(!std::path::Path::new(&made.beside("resumed")).exists());
    let said = run(&line("resumed"));
    assert!(said.contains("going on after round"), "{said}");
    assert!(!said.contains("round 3 of 10"), "{said}");
    let read = |name| std::fs::read(made.beside(name)).unwrap();
    assert!(read("resumed") == read("undisturbed"));
    // A checkpoint of other settings is refused by name.
    let other = line("resumed").replace("--seed 3", "--seed 4");
    let refused = crate::processes::refused(&other);
    assert!(
        refused.contains("checkpoint of another training"),
        "{refused}"
    );
}

#[test]
#[ignore = "slow: starts a cluster"]
fn an_interrupted_pass_cancels_its_job() {
    let made = made();
    let scheduler = Scheduler::start("");
    let _executor = Executor::start_with(&scheduler, "", &[SLOW_FOLD]);
    let stop = std::sync::Arc::new(AtomicBool::new(false));
    let (engine, progress) = watched(&scheduler);
    let engine = engine.with_stop(stop.clone());
    std::thread::scope(|scope| {
        let job = scope.spawn(|| covariance(&engine, &made));
        until(&progress, "some shards", |p| p.done >= 1);
        stop.store(true, Ordering::Relaxed);
        assert!(job.join().unwrap().unwrap_err().is_interrupted());
    });
    let status = scheduler.until("no running job", |status| {
        let jobs = status["jobs"].as_array().unwrap();
        jobs.iter().all(|job| job["state"] != "running")
    });
    let jobs = status["jobs"].as_array().unwrap();
    let last = jobs.iter().filter(|job| {
        let name = job["name"].as_str().unwrap_or("");
        name.contains("moments")
    });
    assert!(last.count() >= 1, "{status:#}");
}
