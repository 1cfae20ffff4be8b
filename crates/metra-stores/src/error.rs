//! The one error type of stores: every variant names the store or file, and what was found there.

use std::path::{Path, PathBuf};

/// What stores return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong between a metric and where it is served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The library refused the data, the model or the wish.
    #[error(transparent)]
    Library(#[from] metra::Error),
    /// A store or a file does not hold what was expected.
    #[error("{place}: {problem}")]
    Found {
        /// The table, column, index or file.
        place: String,
        /// What was expected and what was found.
        problem: String,
    },
    /// A server cannot be reached, or refused what was asked of it.
    #[cfg(feature = "postgres")]
    #[error("{place}: {problem}")]
    Refused {
        /// The server, table or column.
        place: String,
        /// What it said, and what can be done.
        problem: String,
    },
    /// A format has no place for something that a model does.
    #[error("{format} cannot hold {what}: {instead}")]
    Unsupported {
        /// The format.
        format: String,
        /// The step or number.
        what: String,
        /// What to do instead.
        instead: String,
    },
    /// Reading or writing failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl Error {
    pub(crate) fn found(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Error::Found {
            place: place.into(),
            problem: problem.into(),
        }
    }

    pub(crate) fn file(path: &Path, problem: impl Into<String>) -> Self {
        Error::found(path.display().to_string(), problem)
    }

    pub(crate) fn unsupported(
        format: impl Into<String>,
        what: impl Into<String>,
        instead: impl Into<String>,
    ) -> Self {
        Error::Unsupported {
            format: format.into(),
            what: what.into(),
            instead: instead.into(),
        }
    }

    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Error::Io {
            path: path.to_owned(),
            source,
        }
    }
}
