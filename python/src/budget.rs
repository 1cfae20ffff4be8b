//! Learning curves over the number of labels: what `metra budget` shows.

use crate::supervision::{Arrays, SupervisionInput};
use crate::train::{Order, comparison};
use crate::vectors::{Given, Rule};
use crate::working::{History, work};
use metra::experiment::{BudgetCurve, LabelBudget};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Learn from growing shares of the labels and judge on the same test part.
#[pyfunction]
#[pyo3(signature = (order, items, queries, supervision, halvings, draws, callback=None))]
#[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
pub(crate) fn label_budget<'py>(
    py: Python<'py>,
    order: Order,
    items: Given<'py>,
    queries: Option<Given<'py>>,
    supervision: SupervisionInput,
    halvings: u32,
    draws: u64,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let arrays = Arrays {
        items: items.numbers()?,
        queries: queries.as_ref().map(Given::numbers).transpose()?,
    };
    let budget = LabelBudget { halvings, draws };
    let curve = work(py, order.threads, callback.as_ref(), |channel| {
        let stop = channel.stop();
        arrays.with_dataset(&Rule::Judge, &supervision, None, stop, |data| {
            let mut history = History::new(channel);
            order
                .experiment(data)?
                .label_budget(0, &budget, &mut history)
        })
    })?;
    python(py, &curve)
}

fn python<'py>(py: Python<'py>, curve: &BudgetCurve) -> PyResult<Bound<'py, PyDict>> {
    let measure = curve.measure.to_string();
    let points = curve.points.iter().map(|point| {
        let line = PyDict::new(py);
        line.set_item("share", point.share)?;
        line.set_item("labelled", point.units)?;
        let found = point.found.as_ref().ok();
        line.set_item("value", found.map(|found| found.value))?;
        line.set_item("deviation", found.map(|found| found.deviation))?;
        let compared = |found| comparison(py, &measure, found);
        line.set_item(
            "gain",
            found.map(|found| compared(&found.gain)).transpose()?,
        )?;
        let doubling = found.and_then(|found| found.doubling.as_ref());
        line.set_item("doubling", doubling.map(compared).transpose()?)?;
        line.set_item("failure", point.found.as_ref().err())?;
        Ok(line)
    });
    let out = PyDict::new(py);
    out.set_item("points", points.collect::<PyResult<Vec<_>>>()?)?;
    out.set_item("base", curve.base.to_string())?;
    out.set_item("settings", &curve.chosen.settings)?;
    let words = curve.forecast.map(|found| found.words(curve.measure));
    let forecast = curve
        .forecast
        .map(|found| (found.gain, found.reach, found.flat));
    out.set_item("forecast", forecast)?;
    out.set_item("words", words)?;
    out.set_item("measure", measure)?;
    Ok(out)
}
