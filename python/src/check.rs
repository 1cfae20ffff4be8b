//! A first look at arrays: what `metra check` says of a file.

use crate::supervision::SupervisionInput;
use crate::vectors::{Given, Rule, Vectors};
use crate::working::work;
use metra::experiment::DataSummary;
use metra::internal::Interruptible;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Shape, lengths, duplicates, classes and headroom of vectors.
#[pyfunction]
#[pyo3(signature = (items, supervision, seed=1, threads=None))]
pub(crate) fn check<'py>(
    py: Python<'py>,
    items: Given<'py>,
    supervision: SupervisionInput,
    seed: u64,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let numbers = items.numbers()?;
    let (found, shape) = work(py, threads, None, |channel| {
        let vectors = Vectors::read(numbers, &Rule::Judge)?;
        let corpus = vectors.corpus()?;
        let labels = supervision.one_label()?;
        let stoppable = Interruptible::new(&corpus, channel.stop());
        let found = DataSummary::new(&stoppable, labels.as_ref(), seed)?;
        let dim = numbers.dim();
        Ok((found, (numbers.count() / dim.max(1), dim)))
    })?;
    let out = PyDict::new(py);
    out.set_item("shape", shape)?;
    let norms = &found.norms;
    out.set_item("norms", (norms.smallest, norms.mean, norms.largest))?;
    out.set_item("zero_vectors", found.zero_vectors)?;
    out.set_item("negative_values", found.negative_values)?;
    out.set_item("spread_ratio", found.spread_ratio)?;
    out.set_item("duplicates", found.duplicates)?;
    let another = found.duplicates_of_another_class;
    out.set_item("duplicates_of_another_class", another)?;
    let classes = found.classes.as_ref().map(|sizes| {
        let line = PyDict::new(py);
        line.set_item("count", sizes.count)?;
        line.set_item("smallest", sizes.smallest)?;
        line.set_item("median", sizes.median)?;
        line.set_item("largest", sizes.largest)?;
        line.set_item("of_one_row", sizes.of_one_row)?;
        line.set_item("holdout", &sizes.holdout)?;
        Ok::<_, PyErr>(line)
    });
    out.set_item("classes", classes.transpose()?)?;
    let headroom = found.headroom.iter().map(|base| {
        let line = PyDict::new(py);
        line.set_item("score", &base.score)?;
        line.set_item("queries", base.queries)?;
        line.set_item("map", base.map)?;
        line.set_item("p@1", base.p1)?;
        Ok(line)
    });
    out.set_item("headroom", headroom.collect::<PyResult<Vec<_>>>()?)?;
    out.set_item("hints", found.hints())?;
    Ok(out)
}
