//! How far a comparison is: a bar with what runs on a terminal, log lines elsewhere.

use crate::progress;
use indicatif::ProgressBar;
use metra::evaluate::Measure;
use metra::experiment::compare::Event;
use std::time::{Duration, Instant};

const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// Tells what happens.
pub(super) struct Follower {
    bar: Option<ProgressBar>,
    criterion: Measure,
    /// What each thread does, and its step.
    running: Vec<Option<(String, String)>>,
    done: usize,
    total: usize,
    began: Instant,
    /// Done in this run, for the time that is left.
    since: usize,
    last_line: Instant,
}

impl Follower {
    pub(super) fn new(criterion: Measure, threads: usize) -> Self {
        Follower {
            bar: progress::bar("[{bar:20}] {pos}/{len} trials {elapsed}"),
            criterion,
            running: vec![None; threads],
            done: 0,
            total: 0,
            began: Instant::now(),
            since: 0,
            last_line: Instant::now(),
        }
    }

    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::Begin { total, known } => {
                (self.total, self.done) = (*total, *known);
                if *known > 0 {
                    tracing::info!("{known} of {total} trials are known from the log");
                }
            }
            Event::Started { worker, what } => {
                if let Some(slot) = self.running.get_mut(*worker) {
                    *slot = Some((what.clone(), String::new()));
                }
            }
            Event::Step {
                worker,
                step,
                steps,
            } => {
                if let Some(Some((_, shown))) = self.running.get_mut(*worker) {
                    *shown = format!(" (step {step}/{steps})");
                }
            }
            Event::Done {
                worker,
                what,
                outcome,
                judged,
            } => {
                if let Some(slot) = self.running.get_mut(*worker) {
                    *slot = None;
                }
                self.done += 1;
                self.since += 1;
                self.tell(what, outcome, *judged);
            }
        }
        self.show();
    }

    /// Tests are told, and what failed; single trials would be too many lines.
    fn tell(&self, what: &str, outcome: &Result<f64, String>, judged: bool) {
        let text = match outcome {
            Ok(value) if judged => format!("{what}: {} {value:.4}", self.criterion),
            Ok(_) => return,
            Err(why) => format!("{what} failed: {why}"),
        };
        match (&self.bar, outcome) {
            (Some(bar), Ok(_)) => bar.suspend(|| tracing::info!("{text}")),
            (Some(bar), Err(_)) => bar.suspend(|| tracing::warn!("{text}")),
            (None, Ok(_)) => tracing::info!("{text}"),
            (None, Err(_)) => tracing::warn!("{text}"),
        }
    }

    fn show(&mut self) {
        let running: Vec<String> = (self.running.iter().flatten())
            .map(|(what, step)| format!("{what}{step}"))
            .collect();
        let running = running.join(" | ");
        if let Some(bar) = &self.bar {
            let message = format!("{}{running}", self.left());
            progress::show(bar, self.done as u64, self.total as u64, message);
        } else if self.last_line.elapsed() >= BETWEEN_LINES {
            self.last_line = Instant::now();
            let (done, total, left) = (self.done, self.total, self.left());
            tracing::info!("{done}/{total} trials, {left}{running}");
        }
    }

    /// About how long it still takes, once some trials have shown it.
    fn left(&self) -> String {
        if self.since < 5 {
            return String::new();
        }
        let each = self.began.elapsed().as_secs_f64() / self.since as f64;
        let seconds = each * self.total.saturating_sub(self.done) as f64;
        match seconds as u64 {
            0..=90 => format!("about {seconds:.0} s left: "),
            _ => format!("about {:.0} min left: ", seconds / 60.0),
        }
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// What to say after an interruption.
    pub(super) fn interrupted(&self) -> String {
        format!(
            "{} of {} trials are done and kept in the log: the same command goes on from there",
            self.done, self.total
        )
    }
}
