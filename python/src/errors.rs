//! Errors of the library as exceptions, with its own words.

use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::{PyErr, create_exception};

create_exception!(
    metra,
    MetraError,
    PyValueError,
    "Something given to metra cannot be used; the message says what was expected and found."
);
create_exception!(
    metra,
    ParameterError,
    MetraError,
    "A parameter is outside its range or unknown."
);
create_exception!(
    metra,
    DataError,
    MetraError,
    "Vectors cannot be used: the message names row and column where it can."
);
create_exception!(
    metra,
    SupervisionError,
    MetraError,
    "A learner cannot learn from what it was told."
);
create_exception!(
    metra,
    DivergedError,
    MetraError,
    "Training left the finite numbers."
);
create_exception!(
    metra,
    ModelFileError,
    MetraError,
    "A model file is damaged, of another kind or made to harm."
);
create_exception!(
    metra,
    PlanError,
    MetraError,
    "No vector store of this kind can serve the metric's order; the message says why."
);
create_exception!(
    metra,
    InternalError,
    PyRuntimeError,
    "A mistake of metra itself; please report it."
);

/// The exception for an error.
pub(crate) fn raised(error: metra::Error) -> PyErr {
    use metra::Error;
    let text = error.to_string();
    match error {
        Error::Parameter { .. } => ParameterError::new_err(text),
        Error::Supervision { .. } => SupervisionError::new_err(text),
        Error::Diverged { .. } => DivergedError::new_err(text),
        Error::Plan { .. } => PlanError::new_err(text),
        Error::Model(_) => ModelFileError::new_err(text),
        Error::Interrupted => PyKeyboardInterrupt::new_err(text),
        // With the system's number, Python makes FileNotFoundError and its like of it.
        Error::Io { path, source } => match source.raw_os_error() {
            Some(number) => {
                PyOSError::new_err((number, source.to_string(), path.display().to_string()))
            }
            None => PyOSError::new_err(text),
        },
        _ => DataError::new_err(text),
    }
}

/// An error of reading a file as one of the library, which names the file.
pub(crate) fn from_files(error: metra_files::Error) -> metra::Error {
    use metra_files::Error;
    match error {
        Error::Metra {
            source: metra::Error::Interrupted,
            ..
        } => metra::Error::Interrupted,
        Error::Io { path, source } => metra::Error::Io { path, source },
        other => metra::Error::Data(other.to_string()),
    }
}

/// An error of a store or its file as one of the library.
pub(crate) fn from_stores(error: metra_stores::Error) -> metra::Error {
    use metra_stores::Error;
    match error {
        Error::Library(error) => error,
        Error::Io { path, source } => metra::Error::Io { path, source },
        other => metra::Error::Data(other.to_string()),
    }
}

/// Add the classes to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("MetraError", py.get_type::<MetraError>())?;
    module.add("ParameterError", py.get_type::<ParameterError>())?;
    module.add("DataError", py.get_type::<DataError>())?;
    module.add("SupervisionError", py.get_type::<SupervisionError>())?;
    module.add("DivergedError", py.get_type::<DivergedError>())?;
    module.add("ModelFileError", py.get_type::<ModelFileError>())?;
    module.add("PlanError", py.get_type::<PlanError>())?;
    module.add("InternalError", py.get_type::<InternalError>())
}
