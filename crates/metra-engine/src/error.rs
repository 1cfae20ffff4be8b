//! What can go wrong on the way to the rows and back, in words that name what was being done.

use datafusion::error::DataFusionError;

/// What this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can fail here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The library refused the data or the settings.
    #[error(transparent)]
    Library(#[from] metra::Error),
    /// The engine failed while it did something.
    #[error("{doing}: {problem}")]
    Engine {
        /// What was being done.
        doing: String,
        /// What the engine said.
        problem: String,
    },
    /// A table cannot be read as asked.
    #[error("{uri}: {problem}")]
    Table {
        /// The file or folder.
        uri: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl Error {
    /// A failure of the engine.
    pub fn engine(doing: impl Into<String>, problem: impl std::fmt::Display) -> Self {
        Error::Engine {
            doing: doing.into(),
            problem: problem.to_string(),
        }
    }

    /// A table that cannot be read as asked.
    pub fn table(uri: impl Into<String>, problem: impl std::fmt::Display) -> Self {
        Error::Table {
            uri: uri.into(),
            problem: problem.to_string(),
        }
    }
}

/// An error of ours on its way through an operator of the engine.
pub(crate) fn within(error: impl Into<Error>) -> DataFusionError {
    DataFusionError::External(Box::new(error.into()))
}

/// An error of the engine, or our own that travelled inside it.
pub(crate) fn from_engine(doing: &str, error: DataFusionError) -> Error {
    match error {
        DataFusionError::External(inner) => match inner.downcast::<Error>() {
            Ok(ours) => *ours,
            Err(other) => Error::engine(doing, other),
        },
        DataFusionError::ArrowError(inner, _) => match *inner {
            datafusion::arrow::error::ArrowError::ExternalError(inner) => {
                match inner.downcast::<DataFusionError>() {
                    Ok(error) => from_engine(doing, *error),
                    Err(other) => Error::engine(doing, other),
                }
            }
            other => Error::engine(doing, other),
        },
        DataFusionError::Context(_, inner) => from_engine(doing, *inner),
        DataFusionError::Shared(inner) => Error::engine(doing, inner),
        other => Error::engine(doing, other),
    }
}

impl From<Error> for metra::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Library(error) => error,
            other => metra::Error::Elsewhere(Box::new(other)),
        }
    }
}
