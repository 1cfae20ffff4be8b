//! Click logs as graded judgements: what `metra clicks` makes of a file.

use crate::errors::from_files;
use crate::working::work;
use metra::supervision::clicks::{ClickCounts, ClickOptions, Source};
use metra::{Error, Result};
use metra_files::read_clicks;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// One session: the query, what was shown in its order, and what was clicked.
type Session = (String, Vec<String>, Vec<String>);

/// A log: a file, or sessions.
#[derive(FromPyObject)]
pub(crate) enum Log {
    Sessions(Vec<Session>),
    File(PathBuf),
}

impl Log {
    fn counts(&self, stop: &AtomicBool) -> Result<ClickCounts> {
        match self {
            Log::File(path) => read_clicks(path, &mut |_| match stop.load(Ordering::Relaxed) {
                true => Err(metra_files::Error::Metra {
                    path: path.clone(),
                    source: Error::Interrupted,
                }),
                false => Ok(()),
            })
            .map_err(from_files),
            Log::Sessions(sessions) => counted(sessions),
        }
    }
}

fn counted(sessions: &[Session]) -> Result<ClickCounts> {
    let mut counts = ClickCounts::default();
    for (number, (query, shown, clicked)) in sessions.iter().enumerate() {
        let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
        let clicked: Vec<&str> = clicked.iter().map(String::as_str).collect();
        (counts.add(query, &shown, &clicked))
            .map_err(|error| Error::Data(format!("session {number}: {error}")))?;
    }
    Ok(counts)
}

/// Grade what was clicked, corrected for the positions at which it stood.
#[pyfunction]
pub(crate) fn clicks<'py>(
    py: Python<'py>,
    log: Log,
    min_sessions: u64,
    smoothing: f64,
    grades: Vec<f64>,
    eta: Option<f64>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = ClickOptions {
        min_sessions,
        smoothing,
        thresholds: grades,
        eta,
    };
    let found = work(py, None, None, |channel| {
        log.counts(channel.stop())?.relevance(&options)
    })?;
    let out = PyDict::new(py);
    let pairs = found.pairs.iter();
    let pairs = pairs.map(|p| {
        (
            &p.query,
            &p.item,
            p.shown,
            p.clicks,
            p.relevance,
            p.at_least,
            p.grade,
        )
    });
    out.set_item("pairs", pairs.collect::<Vec<_>>())?;
    out.set_item("looks", found.examination.looks())?;
    out.set_item("assumed", found.examination.source == Source::Assumed)?;
    out.set_item("sessions", found.sessions)?;
    out.set_item("queries", found.queries)?;
    out.set_item("queries_left_out", found.queries_left_out)?;
    Ok(out)
}
