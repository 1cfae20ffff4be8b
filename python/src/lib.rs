//! The native part of the Python package: arrays and words in, models and numbers out. All of the
//! work is the library's; estimators, conversions and plots are in Python.

mod agree;
mod calibrate;
mod compare;
mod errors;
mod evaluate;
mod model;
mod plan;
mod supervision;
mod train;
mod vectors;
mod working;

use pyo3::prelude::*;

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
    module.add_function(wrap_pyfunction!(evaluate::judge, module)?)?;
    module.add_function(wrap_pyfunction!(evaluate::bootstrap, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare, module)?)?;
    module.add_function(wrap_pyfunction!(compare::report_html, module)?)?;
    errors::register(module)
}
