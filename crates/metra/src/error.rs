//! The one error type of the library: every variant says what was expected, what was found and
//! where, so that a caller can mend the input without reading our code.

use std::path::PathBuf;

/// What the library returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can be wrong with what a caller gave.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number of dimensions, rows or entries does not fit.
    #[error("{what}: expected {expected}, but found {found}")]
    Shape {
        /// What was measured.
        what: String,
        /// What it should have been.
        expected: String,
        /// What it was.
        found: String,
    },
    /// A parameter is outside its range or unknown.
    #[error("{name} must be {expected}, but is {found}")]
    Parameter {
        /// The parameter's name, as the caller writes it.
        name: String,
        /// The allowed values.
        expected: String,
        /// The value given.
        found: String,
    },
    /// One cell of the data cannot be used.
    #[error("row {row}, column {column}: {problem}")]
    Cell {
        /// Row number, counted from 0.
        row: u64,
        /// Column number within the vector, counted from 0.
        column: usize,
        /// What is wrong, with the value.
        problem: String,
    },
    /// One row of the data cannot be used.
    #[error("row {row}: {problem}")]
    Row {
        /// Row number, counted from 0.
        row: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// The data as a whole does not allow what was asked.
    #[error("{0}")]
    Data(String),
    /// Nothing says what is similar to what.
    #[error(
        "what is similar? expected class labels, relevance judgements, pairs, triplets or \
         quadruplets"
    )]
    Unsupervised,
    /// The method cannot use this supervision.
    #[error("{learner} needs {needs}, but was given {found}")]
    Supervision {
        /// Name of the method.
        learner: String,
        /// What it can learn from.
        needs: String,
        /// What it was given.
        found: String,
    },
    /// A class's rows determine no Gaussian.
    #[error(
        "class {class:?}: its covariance is singular ({rows} rows of dimension {dim}): expected more \
         rows than numbers that differ, or a share of the pooled covariance"
    )]
    Covariance {
        /// The class's name.
        class: String,
        /// Its rows.
        rows: usize,
        /// Numbers in a row.
        dim: usize,
    },
    /// A score is NaN or infinite, so no ranking exists.
    #[error(
        "the score of query {query} and item {item} is {score}: a ranking needs finite scores \
         (did training diverge?)"
    )]
    Score {
        /// Position of the query.
        query: u64,
        /// Position of the item.
        item: u64,
        /// The score found.
        score: f32,
    },
    /// Training left the finite numbers, or what it minimises.
    #[error("training diverged at step {step}: {problem}; try a smaller rate or margin")]
    Diverged {
        /// The step at which it was seen.
        step: u64,
        /// What was seen.
        problem: String,
    },
    /// No way of asking a vector store gives the metric's order.
    #[error("no exact plan for {wanted}: {}", .refusals.join("; "))]
    Plan {
        /// The metric and what was wished for.
        wanted: String,
        /// Every way that was looked at, with the reason why it does not serve.
        refusals: Vec<String>,
    },
    /// A model file is damaged, of another kind or made to harm.
    #[error("model file: {0}")]
    Model(String),
    /// A pass that was sent to where the rows are failed there.
    #[error(transparent)]
    PassExecutor(Box<dyn std::error::Error + Send + Sync>),
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
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
    /// A shape that does not fit.
    pub fn shape(what: impl Into<String>, expected: impl ToString, found: impl ToString) -> Self {
        Error::Shape {
            what: what.into(),
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }

    /// A parameter outside its range.
    pub fn parameter(
        name: impl Into<String>,
        expected: impl Into<String>,
        found: impl ToString,
    ) -> Self {
        Error::Parameter {
            name: name.into(),
            expected: expected.into(),
            found: found.to_string(),
        }
    }

    /// The same error with the row it names, if it names one, counted as the caller counts.
    pub(crate) fn renumbered(mut self, number: impl Fn(u64) -> u64) -> Self {
        if let Error::Cell { row, .. } | Error::Row { row, .. } = &mut self {
            *row = number(*row);
        }
        self
    }

    /// A system error with the file it concerns.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Error::Io {
            path: path.into(),
            source,
        }
    }
}
