//! The error type of the crate: what [`metra::Error`] says, with the file and the place in it.
//!
//! Errors of the format libraries are kept as boxed sources, so that their types (Arrow's above
//! all) are no part of the public interface.

use std::fmt;
use std::path::{Path, PathBuf};

/// What this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Where in a file something was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A row of a binary file, counted from 0.
    Row(u64),
    /// A line of a text file, counted from 1.
    Line(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Row(row) => write!(f, "row {row}"),
            Place::Line(line) => write!(f, "line {line}"),
        }
    }
}

/// Everything that can be wrong with a file or with what was asked of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading or writing failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file is not what its extension says, or is damaged.
    #[error("{}: cannot be read as {format}: {source}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The format expected.
        format: &'static str,
        /// The decoder's reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file as a whole does not allow what was asked.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was expected and found.
        problem: String,
    },
    /// A column that was asked for is not there.
    #[error("{}: expected a column {column:?}, but found only {}", path.display(), list(found))]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The column asked for.
        column: String,
        /// The columns there are.
        found: Vec<String>,
    },
    /// One row or line cannot be used.
    #[error("{}: {place}: {problem}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The row or line.
        place: Place,
        /// What was expected and found.
        problem: String,
    },
    /// One cell cannot be used.
    #[error("{}: {place}, column {column}: {problem}", path.display())]
    Cell {
        /// The file.
        path: PathBuf,
        /// The row or line.
        place: Place,
        /// The column's name, with the index within the vector where it is a vector.
        column: String,
        /// What was expected and found.
        problem: String,
    },
    /// The library refused what the file holds.
    #[error("{}: {source}", path.display())]
    Metra {
        /// The file.
        path: PathBuf,
        /// The library's reason.
        source: metra::Error,
    },
    /// A filter is not written as `column=value` or `column!=value`.
    #[error("a filter must be column=value or column!=value, but is {0:?}")]
    Filter(String),
    /// The rule for missing values is unknown.
    #[error("missing must be error or skip, but is {0:?}")]
    Missing(String),
}

impl Error {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        let path = path.to_path_buf();
        Error::Io { path, source }
    }

    pub(crate) fn format(
        path: &Path,
        format: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Error::Format {
            path: path.to_path_buf(),
            format,
            source: source.into(),
        }
    }

    pub(crate) fn file(path: &Path, problem: impl Into<String>) -> Self {
        Error::File {
            path: path.to_path_buf(),
            problem: problem.into(),
        }
    }

    pub(crate) fn row(path: &Path, place: Place, problem: impl Into<String>) -> Self {
        Error::Row {
            path: path.to_path_buf(),
            place,
            problem: problem.into(),
        }
    }

    pub(crate) fn cell(
        path: &Path,
        place: Place,
        column: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        Error::Cell {
            path: path.to_path_buf(),
            place,
            column: column.into(),
            problem: problem.into(),
        }
    }

    /// The same error about the file that a user knows, where a copy of it was read.
    pub(crate) fn in_file(mut self, file: &Path) -> Self {
        match &mut self {
            Error::Io { path, .. }
            | Error::Format { path, .. }
            | Error::File { path, .. }
            | Error::MissingColumn { path, .. }
            | Error::Row { path, .. }
            | Error::Cell { path, .. }
            | Error::Metra { path, .. } => *path = file.to_path_buf(),
            Error::Filter(_) | Error::Missing(_) => {}
        }
        self
    }

    pub(crate) fn metra(path: &Path, source: metra::Error) -> Self {
        match source {
            // The library names its own file, such as the spool: that one failed, not ours.
            metra::Error::Io { path, source } => Error::Io { path, source },
            source => Error::Metra {
                path: path.to_path_buf(),
                source,
            },
        }
    }
}

/// Names for a message, shortened: a table of features can have thousands of columns.
pub(crate) fn list(names: &[String]) -> String {
    const SHOWN: usize = 30;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|n| format!("{n:?}")).collect();
    match names.len() {
        0 => "none".into(),
        n if n > SHOWN => format!("{} and {} more", shown.join(", "), n - SHOWN),
        _ => shown.join(", "),
    }
}
