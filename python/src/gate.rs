//! The release gate on arrays: what `metra gate` decides of files.

use crate::evaluate::{Gallery, Metric, Question, Ranked};
use crate::supervision::SupervisionInput;
use crate::train::comparison;
use crate::vectors::{Given, Vectors};
use crate::working::work;
use metra::evaluate::Measure;
use metra::experiment::{Gate, Slicing, Terms};
use metra::model::SeenRows;
use metra::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeSet;

/// What is asked of a candidate.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Conditions {
    min_gain: f64,
    no_worse_slice: bool,
    allow_worse_measures: bool,
    worst: usize,
    seed: u64,
    /// What queries are cut by, and a value of every query.
    slices: Vec<(String, Vec<String>)>,
}

/// A decision, before it becomes Python's.
struct Decided {
    gate: Gate,
    measure: Measure,
    skipped: u64,
    seen: Option<SeenRows>,
}

/// Decide whether a candidate may replace the baseline.
#[pyfunction]
#[pyo3(signature = (question, conditions, base, candidate, items, queries, supervision, gallery=None))]
#[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
pub(crate) fn gate<'py>(
    py: Python<'py>,
    question: Question,
    conditions: Conditions,
    base: Metric,
    candidate: Metric,
    items: Given<'py>,
    queries: Option<Given<'py>>,
    supervision: SupervisionInput,
    gallery: Option<Gallery<'py>>,
) -> PyResult<Bound<'py, PyDict>> {
    let ranked = Ranked::new(&items, queries.as_ref(), supervision, gallery.as_ref())?;
    let found = work(py, question.threads, None, |channel| {
        let mut cuts = Vec::new();
        let mut seen = None;
        let model = candidate.0.as_ref().map(|model| &model.get().0);
        let new = ranked.scores(
            &question,
            &candidate,
            None,
            channel.stop(),
            &mut |data, scores| {
                let queries = scores.queries();
                if let Some(model) = model {
                    cuts.extend(Slicing::by_seen_items(model, data, queries)?);
                    // A protocol may ask a query several times.
                    let units: Vec<u64> =
                        BTreeSet::from_iter(queries).into_iter().copied().collect();
                    seen = model.seen_rows(&*data.unit_rows(&units)?)?;
                }
                cuts.extend(Slicing::by_relevant(data, queries));
                Ok(())
            },
        )?;
        if let Some((_, gallery)) = &ranked.gallery {
            if let Some(model) = &candidate.0 {
                let rows = Vectors::read(ranked.arrays.items, &model.get().rule())?;
                seen = model.get().0.seen_rows(&rows.corpus()?)?;
            }
            if let (Some(rows), Some(gallery)) = (ranked.supervision.labels()?, gallery.labels()?) {
                cuts.extend(Slicing::by_gallery(&rows, &gallery, new.queries()));
            }
        }
        // Vectors as they are are read as the candidate reads them.
        let read_as = candidate.0.as_ref().map(|model| model.get());
        let old = ranked.scores(
            &question,
            &base,
            read_as,
            channel.stop(),
            &mut |_, _| Ok(()),
        )?;
        let Some(measure) = new
            .measures()
            .first()
            .copied()
            .filter(|_| !new.queries().is_empty())
        else {
            let skipped = new.skipped();
            return Err(Error::Data(format!(
                "none of the {skipped} queries has anything relevant among what is searched"
            )));
        };
        for (by, values) in &conditions.slices {
            cuts.push(Slicing::by_value(by, &picked(by, values, new.queries())?));
        }
        let terms = Terms {
            measure,
            min_gain: conditions.min_gain,
            no_worse_slice: conditions.no_worse_slice,
            allow_worse_measures: conditions.allow_worse_measures,
            trained_on: seen.is_some_and(|seen| seen.is_leak()),
            listed: conditions.worst,
            seed: conditions.seed,
        };
        Ok(Decided {
            gate: Gate::new(&old, &new, &cuts, &terms)?,
            measure,
            skipped: new.skipped(),
            seen,
        })
    })?;
    found.python(py)
}

/// The values of the queries that were asked.
fn picked(by: &str, values: &[String], queries: &[u64]) -> Result<Vec<String>> {
    let value = |query: &u64| values.get(*query as usize).cloned();
    let picked: Option<Vec<String>> = queries.iter().map(value).collect();
    picked.ok_or_else(|| {
        let expected = "one for every row, or for every query where those are given apart";
        Error::shape(
            format!("values of the slice {by:?}"),
            expected,
            values.len(),
        )
    })
}

impl Decided {
    fn python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let gate = &self.gate;
        let measure = self.measure.to_string();
        let out = PyDict::new(py);
        out.set_item("decision", gate.decision.to_string())?;
        out.set_item("exit_code", gate.decision.exit_code())?;
        out.set_item("words", gate.decision.words())?;
        out.set_item("headroom", gate.headroom.words())?;
        out.set_item("gain", comparison(py, &measure, &gate.comparison)?)?;
        let beside = gate.others.iter();
        let beside = beside.map(|(other, found)| comparison(py, &other.to_string(), found));
        out.set_item("beside", beside.collect::<PyResult<Vec<_>>>()?)?;
        let slices = gate.slices.iter().map(|slice| {
            let line = comparison(py, &measure, &slice.comparison)?;
            line.set_item("by", &slice.by)?;
            line.set_item("value", &slice.value)?;
            Ok(line)
        });
        out.set_item("slices", slices.collect::<PyResult<Vec<_>>>()?)?;
        out.set_item("changed", gate.changed)?;
        let fallen = gate.regressions.iter();
        let fallen = fallen.map(|fallen| (fallen.query, fallen.base, fallen.candidate));
        out.set_item("regressions", fallen.collect::<Vec<_>>())?;
        out.set_item("skipped", self.skipped)?;
        let seen = self.seen.map(|seen| (seen.seen, seen.rows));
        out.set_item("seen_rows", seen)?;
        Ok(out)
    }
}
