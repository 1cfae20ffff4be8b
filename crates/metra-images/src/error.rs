//! The one error type of images: every variant names the file and what was found there.

use std::path::{Path, PathBuf};

/// What this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong between an image and its features.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The library refused the data or the wish.
    #[error(transparent)]
    Library(#[from] metra::Error),
    /// A file is no image that can be read: another format, cut off, damaged, or above a limit.
    #[error("{path}: {problem}")]
    Image {
        /// The file.
        path: PathBuf,
        /// What was expected and what was found.
        problem: String,
    },
    /// A list of images, a pattern of names or a set of images does not fit what is asked of it.
    #[error("{place}: {problem}")]
    Found {
        /// The list, pattern or folder.
        place: String,
        /// What was expected and what was found.
        problem: String,
    },
    /// No screenshot could be taken.
    #[error("{problem}")]
    Browser {
        /// The browser or the address, what was expected and what was found.
        problem: String,
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
    pub(crate) fn image(path: &Path, problem: impl Into<String>) -> Self {
        Error::Image {
            path: path.to_owned(),
            problem: problem.into(),
        }
    }

    pub(crate) fn found(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Error::Found {
            place: place.into(),
            problem: problem.into(),
        }
    }

    pub(crate) fn file(path: &Path, problem: impl Into<String>) -> Self {
        Error::found(path.display().to_string(), problem)
    }

    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Error::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// What is wrong, without where.
    pub fn problem(&self) -> String {
        match self {
            Error::Library(error) => error.to_string(),
            Error::Image { problem, .. }
            | Error::Found { problem, .. }
            | Error::Browser { problem } => problem.clone(),
            Error::Io { source, .. } => source.to_string(),
        }
    }

    /// Whether only this image cannot be used, so that the others can go on without it.
    pub fn is_of_one_image(&self) -> bool {
        matches!(self, Error::Image { .. } | Error::Io { .. })
    }
}
