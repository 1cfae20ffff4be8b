//! Long work without the interpreter: on a thread of its own, while the caller's thread waits for
//! its end, looks for Ctrl-C and passes progress on.
//!
//! Threads of a pool live as long as the work: a pool that outlived it would hang in processes that
//! are forked later, as multiprocessing does.

use crate::errors::{InternalError, raised};
use metra::Result;
use metra::training::{Observer, Progress};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// How often the interpreter is asked whether to stop.
const PAUSE: Duration = Duration::from_millis(50);

/// Numbers from which work may last longer than one waits for Ctrl-C; a fraction of a second's worth.
const MANY_NUMBERS: usize = 1_000_000;

/// What work and the waiting thread share.
pub(crate) struct ProgressChannel {
    stop: AtomicBool,
    /// Whether a fit has taken a step and not ended.
    stepping: AtomicBool,
    /// Set when the fit under way is to end with what it has.
    enough: AtomicBool,
    /// Whether that ever was so.
    ended_early: AtomicBool,
    update: Mutex<Option<ProgressUpdate>>,
}

/// The latest thing worth telling.
#[derive(Clone)]
pub(crate) struct ProgressUpdate {
    pub(crate) phase: String,
    pub(crate) step: u64,
    pub(crate) steps: u64,
    pub(crate) loss: Option<f64>,
    pub(crate) validation: Option<f64>,
}

impl ProgressChannel {
    /// Set when the work is to stop.
    pub(crate) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Whether a fit ended with what it had.
    pub(crate) fn ended_early(&self) -> bool {
        self.ended_early.load(Ordering::Relaxed)
    }

    /// Put update on the channel in place of older ones.
    pub(crate) fn tell(&self, update: ProgressUpdate) {
        if let Ok(mut place) = self.update.lock() {
            *place = Some(update);
        }
    }

    /// Whether an error is the first Ctrl-C of all and the fit under way, which has something to keep, ends
    /// by it.
    fn is_ended_by(&self, error: &PyErr) -> bool {
        let interrupted = Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py));
        let ended = interrupted
            && self.stepping.load(Ordering::Relaxed)
            && !self.ended_early.swap(true, Ordering::Relaxed);
        self.enough.fetch_or(ended, Ordering::Relaxed);
        ended
    }

    fn take(&self) -> Option<ProgressUpdate> {
        self.update.lock().ok().and_then(|mut place| place.take())
    }
}

/// Do `job` on `threads` threads. `callback` is called with phase, step, steps, loss and validation
/// value, some twenty times a second at most; what it raises stops the work.
pub(crate) fn work<R: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    callback: Option<&Bound<'_, PyAny>>,
    job: impl FnOnce(&ProgressChannel) -> Result<R> + Send,
) -> PyResult<R> {
    work_until(py, threads, callback, false, job)
}

/// The same; with `keep` the first Ctrl-C ends the fit that takes steps with what it has, and the second all
/// work.
pub(crate) fn work_until<R: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    callback: Option<&Bound<'_, PyAny>>,
    keep: bool,
    job: impl FnOnce(&ProgressChannel) -> Result<R> + Send,
) -> PyResult<R> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0));
    let pool = (pool.build())
        .map_err(|e| InternalError::new_err(format!("no threads can be started: {e}")))?;
    let callback: Option<Py<PyAny>> = callback.map(|callback| callback.clone().unbind());
    let channel = ProgressChannel {
        stop: AtomicBool::new(false),
        stepping: AtomicBool::new(false),
        enough: AtomicBool::new(false),
        ended_early: AtomicBool::new(false),
        update: Mutex::new(None),
    };
    py.detach(|| {
        std::thread::scope(|scope| {
            let (ended, end) = mpsc::channel::<()>();
            let (pool, shared) = (&pool, &channel);
            let worker = scope.spawn(move || {
                // Dropped at the end, also by a panic, which wakes the waiting thread.
                let _ended = ended;
                pool.install(|| job(shared))
            });
            let mut refused = None;
            while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(PAUSE) {
                if refused.is_none()
                    && let Err(error) = attend(callback.as_ref(), &channel)
                    && !(keep && channel.is_ended_by(&error))
                {
                    channel.stop.store(true, Ordering::Relaxed);
                    refused = Some(error);
                }
            }
            let outcome = worker.join();
            // A callback sees the end too.
            if refused.is_none()
                && let Err(error) = attend(callback.as_ref(), &channel)
                && !(keep && channel.is_ended_by(&error))
            {
                refused = Some(error);
            }
            match (outcome, refused) {
                (_, Some(error)) => Err(error),
                (Ok(result), None) => result.map_err(raised),
                (Err(panic), None) => Err(panicked(panic.as_ref())),
            }
        })
    })
}

/// Look for signals and pass update on.
fn attend(callback: Option<&Py<PyAny>>, channel: &ProgressChannel) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        if let (Some(callback), Some(update)) = (callback, channel.take()) {
            let update = (
                update.phase,
                update.step,
                update.steps,
                update.loss,
                update.validation,
            );
            callback.call1(py, update)?;
        }
        Ok(())
    })
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> PyErr {
    let text = (panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    InternalError::new_err(format!(
        "this is a mistake of metra, please report it: {text}"
    ))
}

/// Short work without the interpreter, on this thread.
pub(crate) fn briefly<R: Send>(
    py: Python<'_>,
    job: impl FnOnce() -> Result<R> + Send,
) -> PyResult<R> {
    let outcome = py.detach(|| std::panic::catch_unwind(std::panic::AssertUnwindSafe(job)));
    match outcome {
        Ok(result) => result.map_err(raised),
        Err(panic) => Err(panicked(panic.as_ref())),
    }
}

/// Work that is short on few numbers and long on many, which alone starts threads and hears Ctrl-C by
/// the flag that it is given.
pub(crate) fn work_on<R: Send>(
    py: Python<'_>,
    numbers: usize,
    job: impl FnOnce(&AtomicBool) -> Result<R> + Send,
) -> PyResult<R> {
    static NEVER: AtomicBool = AtomicBool::new(false);
    match numbers < MANY_NUMBERS {
        true => briefly(py, || job(&NEVER)),
        false => work(py, None, None, |channel| job(channel.stop())),
    }
}

/// One step of a fit, for the history.
pub(crate) struct HistoryStep {
    pub(crate) phase: u32,
    pub(crate) step: u64,
    pub(crate) loss: f64,
    pub(crate) validation: Option<f64>,
}

/// Watches a study: keeps its history and puts the latest on the channel.
pub(crate) struct History<'a> {
    channel: &'a ProgressChannel,
    pub(crate) phases: Vec<String>,
    pub(crate) steps_done: Vec<HistoryStep>,
}

impl<'a> History<'a> {
    pub(crate) fn new(channel: &'a ProgressChannel) -> Self {
        History {
            channel,
            phases: Vec::new(),
            steps_done: Vec::new(),
        }
    }
}

impl Observer for History<'_> {
    fn progress(&mut self, progress: &Progress) {
        self.channel.stepping.store(true, Ordering::Relaxed);
        self.steps_done.push(HistoryStep {
            phase: self.phases.len().saturating_sub(1) as u32,
            step: progress.step,
            loss: progress.loss,
            validation: progress.validation,
        });
        self.channel.tell(ProgressUpdate {
            phase: self.phases.last().cloned().unwrap_or_default(),
            step: progress.step,
            steps: progress.steps,
            loss: Some(progress.loss),
            validation: progress.validation,
        });
    }

    fn begin(&mut self, what: &str) {
        // What was enough of one fit says nothing of the next.
        self.channel.enough.store(false, Ordering::Relaxed);
        self.channel.stepping.store(false, Ordering::Relaxed);
        self.phases.push(what.to_owned());
    }

    fn is_enough(&self) -> bool {
        self.channel.enough.load(Ordering::Relaxed)
    }
}
