//! Progress: a bar on a terminal, a log line every few seconds elsewhere.

use crate::args::Common;
use crate::interrupt;
use crate::print::visible;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use metra::training::{Observer, Progress};
use metra_stores::index::Stage;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// Whether no progress is to be shown.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Messages go to standard error, so that standard output is the answer alone. Of what libraries
/// log, warnings are shown, and the rest where --verbose asks for it.
pub(crate) fn start_log(common: &Common, format: LogFormat) {
    let (ours, theirs) = match (common.quiet, common.verbose) {
        (true, _) => (LevelFilter::ERROR, LevelFilter::ERROR),
        (_, true) => (LevelFilter::INFO, LevelFilter::INFO),
        // A service goes on, and its log with it.
        _ if common.json && format == LogFormat::Command => (LevelFilter::WARN, LevelFilter::WARN),
        _ => (LevelFilter::INFO, LevelFilter::WARN),
    };
    IS_QUIET.store(common.quiet, Ordering::Relaxed);
    let shown = Targets::new()
        .with_default(theirs)
        .with_target("metra", ours);
    let log = tracing_subscriber::fmt()
        .with_max_level(ours.max(theirs))
        .with_writer(std::io::stderr)
        // A reader of standard error who is gone loses messages, and nothing else.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal() && !no_color())
        .with_target(false);
    match format {
        LogFormat::Command => log.without_time().finish().with(shown).init(),
        #[cfg(feature = "serve")]
        LogFormat::Service => log.finish().with(shown).init(),
        #[cfg(feature = "serve")]
        LogFormat::Json => log.json().flatten_event(true).finish().with(shown).init(),
    }
}

/// What a line of the log looks like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For whoever called the command.
    Command,
    /// With the time, for a program that goes on.
    #[cfg(feature = "serve")]
    Service,
    /// A JSON object.
    #[cfg(feature = "serve")]
    Json,
}

/// Whether the user asked for plain text (no-color.org).
fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Warn, unless the same was said before: a file may be read several times.
pub(crate) fn warn_once(text: String) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if !said.contains(&text) {
        tracing::warn!("{text}");
        said.insert(text);
    }
}

/// A bar on a terminal, with this before its message, which is cut where the line ends. It is not
/// drawn before something is known to be done.
pub(crate) fn bar(head: &str) -> Option<ProgressBar> {
    let is_shown = std::io::stderr().is_terminal() && !IS_QUIET.load(Ordering::Relaxed);
    is_shown.then(|| {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(&format!("{head} {{wide_msg}}")) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar
    })
}

/// Show how far something is.
pub(crate) fn show(bar: &ProgressBar, done: u64, total: u64, message: String) {
    bar.set_length(total);
    bar.set_position(done);
    bar.set_message(visible(&message).into_owned());
    if bar.is_hidden() {
        bar.set_draw_target(ProgressDrawTarget::stderr());
    }
}

/// Tells how far long work is.
pub(crate) struct Reporter {
    bar: Option<ProgressBar>,
    what: String,
    last_line: Instant,
    /// Steps a second of the latest fit.
    pub(crate) speed: Option<f64>,
}

impl Reporter {
    pub(crate) fn new() -> Self {
        Reporter {
            bar: bar("{prefix} [{bar:20}] {pos}/{len} {elapsed}"),
            what: String::new(),
            last_line: Instant::now(),
            speed: None,
        }
    }

    /// Work of a kind begins.
    pub(crate) fn start(&mut self, what: &str) {
        self.what = visible(what).into_owned();
        self.last_line = Instant::now();
        if let Some(bar) = &self.bar {
            bar.set_draw_target(ProgressDrawTarget::hidden());
            bar.reset();
            bar.set_prefix(self.what.clone());
        }
    }

    /// The work that was begun last.
    #[cfg(feature = "cluster")]
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// Some of it is done.
    pub(crate) fn advance(&mut self, done: u64, total: Option<u64>, message: impl Fn() -> String) {
        if let Some(bar) = &self.bar {
            show(bar, done, total.unwrap_or(done), message());
        } else if self.last_line.elapsed() >= BETWEEN_LINES {
            self.last_line = Instant::now();
            let total = total.map_or(String::new(), |t| format!("/{t}"));
            tracing::info!("{} {done}{total} {}", self.what, message());
        }
    }

    /// Rows of a file were read.
    pub(crate) fn rows(&mut self) -> impl FnMut(u64, Option<u64>) {
        |done, total| self.advance(done, total, || "rows".into())
    }

    /// All work is done.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Observer for Reporter {
    fn progress(&mut self, progress: &Progress) {
        self.speed = Some(progress.speed);
        self.advance(progress.step, Some(progress.steps), || {
            let ranking = progress.ranking.map_or(String::new(), |(violated, rank)| {
                format!(", violated {:.0} %, rank {rank:.0}", 100.0 * violated)
            });
            let (loss, speed) = (progress.loss, progress.speed);
            format!("loss {loss:.4}{ranking}, {speed:.1} steps/s")
        });
    }

    fn begin(&mut self, what: &str) {
        self.start(what);
    }

    fn note(&mut self, what: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| tracing::info!("{what}")),
            None => tracing::info!("{what}"),
        }
    }
}

/// Tells a reporter about work on an index, and ends it at Ctrl-C.
pub(crate) fn index_progress(
    reporter: &mut Reporter,
) -> impl FnMut(Stage, u64, u64) -> metra::Result<()> + '_ {
    let mut begun = None;
    move |stage, done, total| {
        interrupt::check()?;
        let (what, unit) = match stage {
            Stage::Link => ("link", "items"),
            Stage::Digest => ("digest", "bytes"),
        };
        if begun != Some(stage) {
            reporter.start(what);
            begun = Some(stage);
        }
        reporter.advance(done, Some(total), || unit.into());
        Ok(())
    }
}
