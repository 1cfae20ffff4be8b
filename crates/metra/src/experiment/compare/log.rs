//! The log of a comparison: one JSON object per line, written as each trial ends.
//!
//! Entries are found by a key made of what decides their outcome (learner, settings, preparation,
//! scores, split and steps), so a comparison that was interrupted goes on where it stopped, and one
//! whose grid grew runs only what is new. The first line names data, splits and protocol, and the code that runs; a log
//! of others is refused. A last line that was cut off is dropped.

use super::super::Scores;
use super::CODE_DIGEST;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Record {
    /// The first line.
    Comparison {
        /// Name of the experiment.
        name: String,
        /// Digest of data, splits and protocol.
        digest: String,
        /// [`CODE_DIGEST`](super::CODE_DIGEST) of the build that writes; empty in logs of builds before it was noted.
        #[serde(default)]
        code_digest: String,
    },
    /// A trial on a validation part.
    Trial {
        /// Key of what decides the outcome.
        key: String,
        /// Name of the method in the comparison.
        line: String,
        /// The split, from 0.
        split: usize,
        /// Values tried.
        settings: BTreeMap<String, String>,
        /// Steps at most, where trials are halved.
        last_step: Option<u64>,
        /// Value of the criterion.
        value: Option<f64>,
        /// Best score after the map.
        score: Option<String>,
        /// Best step.
        best_step: Option<u64>,
        /// Why there is no value.
        failure: Option<String>,
        /// CPU seconds.
        seconds: f64,
    },
    /// A fit with the chosen settings, judged on the test part.
    Judged {
        /// Key of what decides the outcome.
        key: String,
        /// Name of the method in the comparison.
        line: String,
        /// The split, from 0.
        split: usize,
        /// What it reached; `None` where it failed.
        scores: Option<Reached>,
        /// What the learner reported.
        facts: BTreeMap<String, f64>,
        /// Why there is nothing.
        failure: Option<String>,
        /// CPU seconds of the fit and of judging.
        seconds: f64,
        /// CPU seconds of the fit.
        fit_seconds: f64,
    },
    /// Cost of one fit that ran alone.
    Cost {
        /// Key of the fit.
        key: String,
        /// Name of the method in the comparison.
        line: String,
        /// CPU seconds on one thread.
        fit_cpu_seconds: f64,
        /// Memory beside the data, in bytes.
        fit_peak_bytes: Option<u64>,
        /// Seconds of one 2048 × 2048 × 2048 product in f32, measured right after.
        product_seconds: f64,
    },
    /// The end of a run, complete or not.
    Run {
        /// Seconds of the clock.
        wall_seconds: f64,
        /// Trials at once.
        threads: usize,
    },
}

/// Values on a test part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reached {
    /// Units that asked.
    pub queries: Vec<u64>,
    /// One list a measure, one value a query.
    pub values: Vec<Vec<f64>>,
    /// Queries with nothing relevant.
    pub skipped: u64,
    /// The CMC curve.
    pub cmc: Vec<f64>,
    /// Precision at recall levels.
    pub precision: Vec<f64>,
}

impl Reached {
    pub(super) fn new(scores: &Scores) -> Self {
        let values = |measure: &crate::evaluate::Measure| scores.values(*measure).to_vec();
        Reached {
            queries: scores.queries().to_vec(),
            values: scores.measures().iter().map(values).collect(),
            skipped: scores.skipped(),
            cmc: scores.cmc(),
            precision: scores.precision(),
        }
    }
}

/// Records of earlier runs and of this one, in a file or in memory.
#[derive(Debug, Default)]
pub struct Log {
    file: Option<(PathBuf, File)>,
    header: Option<Record>,
    known: BTreeMap<String, Record>,
    costs: BTreeMap<String, Record>,
    wall_seconds: f64,
}

impl Log {
    /// A log that ends with the process.
    pub fn in_memory() -> Self {
        Log::default()
    }

    /// The log in this file, which is made if it is not there, and which nobody else may write
    /// meanwhile.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_locked(path, false)
    }

    /// The same without what is in it. A log that somebody else writes is left as it is.
    pub fn open_empty(path: &Path) -> Result<Self> {
        Self::open_locked(path, true)
    }

    fn open_locked(path: &Path, empty: bool) -> Result<Self> {
        let failed = |error: std::io::Error| Error::Data(format!("{}: {error}", path.display()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let path = path.display();
                return Err(Error::Data(format!(
                    "{path}: another comparison is writing to it"
                )));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        if empty {
            file.set_len(0).map_err(failed)?;
        }
        let (mut log, whole) = Log::parse(path, &mut file)?;
        // A crash can leave half a line behind the last whole one.
        file.set_len(whole).map_err(failed)?;
        file.seek(SeekFrom::Start(whole)).map_err(failed)?;
        log.file = Some((path.to_owned(), file));
        Ok(log)
    }

    /// What the log in this file says by now; nothing can be written to it.
    pub fn read(path: &Path) -> Result<Self> {
        let failed = |error: std::io::Error| Error::Data(format!("{}: {error}", path.display()));
        let mut file = File::open(path).map_err(failed)?;
        Ok(Log::parse(path, &mut file)?.0)
    }

    /// All whole lines, and how many bytes they take.
    fn parse(path: &Path, file: &mut File) -> Result<(Self, u64)> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(|error| Error::Data(format!("{}: {error}", path.display())))?;
        let whole = bytes
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        let mut log = Log::default();
        for (number, line) in bytes[..whole].split(|b| *b == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            let record = serde_json::from_slice(line).map_err(|error| {
                let (path, number) = (path.display(), number + 1);
                Error::Data(format!("{path}, line {number}: not of this log: {error}"))
            })?;
            log.take_in(record);
        }
        Ok((log, whole as u64))
    }

    /// Begin, or make sure that what is in it belongs to this comparison and to this code.
    pub(super) fn begin(&mut self, name: &str, digest: String) -> Result<()> {
        let Some(Record::Comparison {
            digest: found,
            code_digest,
            ..
        }) = &self.header
        else {
            return self.write(Record::Comparison {
                name: name.to_owned(),
                digest,
                code_digest: CODE_DIGEST.to_owned(),
            });
        };
        let of = if *found != digest {
            "of another comparison: its data, splits, protocol, measures or seed differ"
        } else if code_digest != CODE_DIGEST {
            "of another build of metra, whose results must not be mixed with those of this one"
        } else {
            return Ok(());
        };
        let path = (self.file.as_ref()).map(|(path, _)| path.display().to_string());
        Err(Error::Data(format!(
            "{} is the log {of}. Name another folder, or start afresh (--fresh)",
            path.unwrap_or_else(|| "this".into())
        )))
    }

    /// Write a record.
    pub fn write(&mut self, record: Record) -> Result<()> {
        if let Some((path, file)) = &mut self.file {
            let line = serde_json::to_string(&record)
                .map_err(|error| Error::Data(format!("{}: {error}", path.display())))?;
            file.write_all(format!("{line}\n").as_bytes())
                .map_err(|error| Error::Data(format!("{}: {error}", path.display())))?;
        }
        self.take_in(record);
        Ok(())
    }

    fn take_in(&mut self, record: Record) {
        match &record {
            Record::Comparison { .. } => self.header = Some(record),
            Record::Trial { key, .. } | Record::Judged { key, .. } => {
                self.known.insert(key.clone(), record);
            }
            Record::Cost { key, .. } => {
                self.costs.insert(key.clone(), record);
            }
            Record::Run { wall_seconds, .. } => self.wall_seconds += wall_seconds,
        }
    }

    /// The outcome with this key.
    pub(super) fn find(&self, key: &str) -> Option<&Record> {
        self.known.get(key)
    }

    /// The cost of the fit with this key.
    pub(super) fn cost(&self, key: &str) -> Option<&Record> {
        self.costs.get(key)
    }

    /// Seconds of the clock of all runs so far.
    pub(super) fn wall_seconds(&self) -> f64 {
        self.wall_seconds
    }

    /// CPU seconds of everything in the log, by name of the method.
    pub(super) fn cpu_seconds(&self) -> BTreeMap<&str, f64> {
        let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
        for record in self.known.values() {
            if let Record::Trial { line, seconds, .. } | Record::Judged { line, seconds, .. } =
                record
            {
                *sums.entry(line).or_default() += seconds;
            }
        }
        sums
    }
}
