//! The one error type of the engine: every variant names what was being done and with whom, because
//! the cause may lie on another machine.

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;

/// What the engine returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong between the caller and the machines that work for it.
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
    /// A table or another object in a store cannot be used as asked.
    #[error("{address}: {problem}")]
    ShardedTable {
        /// The file, folder or column.
        address: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An address of a cluster cannot be read.
    #[error("{found:?} is not the address of a cluster: expected df://host:port, {problem}")]
    SchedulerAddress {
        /// What was given.
        found: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Nobody answers where the scheduler should be.
    #[error(
        "no scheduler answers at {address}: {reason}; start one there with `metra cluster scheduler`"
    )]
    Unreachable {
        /// Where it was looked for.
        address: String,
        /// What happened instead.
        reason: String,
    },
    /// The scheduler was there and is gone.
    #[error("the scheduler at {address} stopped answering: {reason}")]
    SchedulerLost {
        /// Where it was.
        address: String,
        /// What happened instead of an answer.
        reason: String,
    },
    /// Two programs of the cluster are not of one build.
    #[error("{peer} does not fit: {}; run the same build of metra everywhere", .differences.join("; "))]
    Mismatch {
        /// The program on the other side, and where it runs.
        peer: String,
        /// What differs, both sides named.
        differences: Vec<String>,
    },
    /// A scheduler without anyone to do the work.
    #[error(
        "the scheduler at {address} has no executor (waited {waited} s): start one with \
         `metra cluster executor --scheduler {address}`"
    )]
    NoExecutors {
        /// Where the scheduler is.
        address: String,
        /// Seconds for which one was waited for.
        waited: u64,
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

    /// A table, or another object in a store, that cannot be used as asked.
    pub fn table(address: impl Into<String>, problem: impl ToString) -> Self {
        Error::ShardedTable {
            address: address.into(),
            problem: problem.to_string(),
        }
    }

    /// Whether the caller asked for the end.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Error::Library(metra::Error::Interrupted))
    }
}

/// An error of this crate, wrapped for an operator of the engine.
pub(crate) fn within(error: impl Into<Error>) -> DataFusionError {
    DataFusionError::External(Box::new(error.into()))
}

/// An error of the engine, or the error of this crate that it wraps.
pub(crate) fn from_engine(doing: &str, error: DataFusionError) -> Error {
    match error {
        DataFusionError::External(inner) => match inner.downcast::<Error>() {
            Ok(ours) => *ours,
            Err(other) => Error::engine(doing, other),
        },
        DataFusionError::ArrowError(inner, _) => match *inner {
            ArrowError::ExternalError(inner) => match inner.downcast::<DataFusionError>() {
                Ok(error) => from_engine(doing, *error),
                Err(other) => Error::engine(doing, other),
            },
            other => Error::engine(doing, other),
        },
        DataFusionError::Context(_, inner) => from_engine(doing, *inner),
        DataFusionError::Shared(inner) => match &*inner {
            DataFusionError::External(error) => Error::engine(doing, error),
            other => Error::engine(doing, other),
        },
        other => Error::engine(doing, other),
    }
}

impl From<Error> for metra::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Library(error) => error,
            other => metra::Error::PassExecutor(Box::new(other)),
        }
    }
}
