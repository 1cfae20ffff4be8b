//! What keeps a server from starting. What a request is refused for is a `Refusal`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What starting and running a server returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a server does not start, or a new set of models is not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A model cannot be used.
    #[error("{path}: {source}")]
    Model {
        /// The model file.
        path: PathBuf,
        /// What is wrong with it.
        source: metra::Error,
    },
    /// An index cannot be used.
    #[error(transparent)]
    Store(#[from] metra_stores::Error),
    /// A file of queries or judgements cannot be used.
    #[error(transparent)]
    Data(#[from] metra_files::Error),
    /// A setting, or a file with settings, cannot be used.
    #[error("{place}: {problem}")]
    Setting {
        /// The option or the file.
        place: String,
        /// What was expected, and what was found.
        problem: String,
    },
    /// Nothing can listen at the address.
    #[error("{address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Reading or writing failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The runtime could not be started.
    #[error("the runtime cannot be started: {0}")]
    Runtime(std::io::Error),
}

impl Error {
    pub(crate) fn setting(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Error::Setting {
            place: place.into(),
            problem: problem.into(),
        }
    }

    pub(crate) fn file(path: &Path, problem: impl Into<String>) -> Self {
        Error::setting(path.display().to_string(), problem)
    }

    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Error::Io {
            path: path.to_owned(),
            source,
        }
    }
}
