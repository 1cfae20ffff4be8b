//! The native part of the Python package: arrays and words in, models and numbers out. All of the
//! work is the library's; estimators, conversions and plots are in Python.

mod agree;
mod budget;
mod calibrate;
mod check;
mod clicks;
mod compare;
mod compress;
mod errors;
mod evaluate;
mod export;
mod gate;
mod model;
mod plan;
mod supervision;
mod train;
mod vectors;
mod working;

use pyo3::prelude::*;
use std::ffi::OsString;

#[pymodule]
fn _metra(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<model::Model>()?;
    module.add_class::<plan::Plan>()?;
    module.add_function(wrap_pyfunction!(plan::plan, module)?)?;
    module.add_function(wrap_pyfunction!(plan::find_plan, module)?)?;
    module.add_function(wrap_pyfunction!(train::train, module)?)?;
    module.add_function(wrap_pyfunction!(train::methods, module)?)?;
    module.add_function(wrap_pyfunction!(train::check_settings, module)?)?;
    module.add_function(wrap_pyfunction!(agree::agree, module)?)?;
    module.add_function(wrap_pyfunction!(calibrate::calibrate, module)?)?;
    module.add_function(wrap_pyfunction!(calibrate::verification, module)?)?;
    module.add_function(wrap_pyfunction!(evaluate::judge, module)?)?;
    module.add_function(wrap_pyfunction!(evaluate::bootstrap, module)?)?;
    module.add_function(wrap_pyfunction!(evaluate::measure_name, module)?)?;
    module.add_function(wrap_pyfunction!(check::check, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare, module)?)?;
    module.add_function(wrap_pyfunction!(compare::report_html, module)?)?;
    module.add_function(wrap_pyfunction!(compress::compress, module)?)?;
    module.add_function(wrap_pyfunction!(gate::gate, module)?)?;
    module.add_function(wrap_pyfunction!(budget::label_budget, module)?)?;
    module.add_function(wrap_pyfunction!(clicks::clicks, module)?)?;
    module.add_function(wrap_pyfunction!(export::export, module)?)?;
    module.add_function(wrap_pyfunction!(command, module)?)?;
    errors::register(module)
}

/// The command `metra` with these arguments; its exit code. ``program`` starts it. Once in a process: it takes
/// over Ctrl-C and the log.
#[pyfunction]
fn command(py: Python<'_>, program: Vec<OsString>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| metra_cli::run(program, arguments))
}
