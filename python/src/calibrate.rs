//! Same or not the same: what thresholds do on all pairs of rows, as `metra calibrate` finds them.

use crate::evaluate::{Metric, chain_of};
use crate::model::Model;
use crate::supervision::SupervisionInput;
use crate::train::read;
use crate::vectors::{Given, Numbers, Rule, Vectors};
use crate::working::work;
use metra::data::{Corpus, Storage};
use metra::evaluate::{Bootstrap, Verification};
use metra::internal::{Interruptible, fingerprint};
use metra::model::{Chain, Embedding, MatchDecision, SeenRows, Side, embed_corpus};
use metra::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::AtomicBool;

/// The same model with a threshold at which at most this share of pairs of two identities match,
/// measured on all pairs of these rows; and how many of how many rows it learned from, if that is a leak.
#[pyfunction]
#[pyo3(signature = (model, items, supervision, rate, seed=0, threads=None))]
pub(crate) fn calibrate<'py>(
    py: Python<'py>,
    model: Py<Model>,
    items: Given<'py>,
    supervision: SupervisionInput,
    rate: f64,
    seed: u64,
    threads: Option<usize>,
) -> PyResult<(Model, Option<(u64, u64)>)> {
    let (numbers, model) = (items.numbers()?, model.get());
    let calibrated = work(py, threads, None, |channel| {
        let metric = (Some(model), model.chain());
        let rates = (&[rate][..], seed);
        let (found, data, seen) = measure(metric, numbers, &supervision, rates, channel.stop())?;
        let Some(point) = found.points.first() else {
            return Err(Error::Data("no threshold was found".into()));
        };
        let calibrated = model.0.clone().with_decision(MatchDecision {
            threshold: f64::from(point.threshold),
            asked: point.asked,
            false_match_rate: point.false_match_rate,
            true_match_rate: point.true_match_rate,
            low: point.low,
            high: point.high,
            same: found.same,
            different: found.different,
            data,
        })?;
        Ok((calibrated, leaked(seen)))
    })?;
    Ok((Model::new(calibrated.0), calibrated.1))
}

/// Rows that were learned from and rows looked at, where these are more than chance.
fn leaked(seen: Option<SeenRows>) -> Option<(u64, u64)> {
    seen.filter(SeenRows::is_leak)
        .map(|seen| (seen.seen, seen.rows))
}

/// What thresholds at these rates of false matches do, measured on all pairs of these rows.
#[pyfunction]
#[pyo3(signature = (metric, items, supervision, rates, seed=0, threads=None))]
pub(crate) fn verification<'py>(
    py: Python<'py>,
    metric: Metric,
    items: Given<'py>,
    supervision: SupervisionInput,
    rates: Vec<f64>,
    seed: u64,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let numbers = items.numbers()?;
    let (model, score) = &metric;
    let model = model.as_ref().map(|model| model.get());
    let (found, _, seen) = work(py, threads, None, |channel| {
        let chain = chain_of(model, read(score.as_ref())?, numbers.dim())?;
        let rates = (&rates[..], seed);
        measure(
            (model, &chain),
            numbers,
            &supervision,
            rates,
            channel.stop(),
        )
    })?;
    let out = PyDict::new(py);
    let points = found.points.iter().map(|point| {
        let line = PyDict::new(py);
        line.set_item("asked", point.asked)?;
        line.set_item("threshold", point.threshold)?;
        line.set_item("false_match_rate", point.false_match_rate)?;
        line.set_item("true_match_rate", point.true_match_rate)?;
        line.set_item("low", point.low)?;
        line.set_item("high", point.high)?;
        Ok(line)
    });
    out.set_item("points", points.collect::<PyResult<Vec<_>>>()?)?;
    out.set_item("same", found.same)?;
    out.set_item("different", found.different)?;
    out.set_item("identities", found.identities)?;
    out.set_item("seen_rows", seen.map(|seen| (seen.seen, seen.rows)))?;
    out.set_item("leak", leaked(seen))?;
    Ok(out)
}

/// What thresholds at some rates do, the digest of the rows and how many of them the model learned from, until
/// `stop` is set.
fn measure(
    (model, chain): (Option<&Model>, &Chain),
    numbers: Numbers<'_>,
    supervision: &SupervisionInput,
    (rates, seed): (&[f64], u64),
    stop: &AtomicBool,
) -> Result<(Verification, String, Option<SeenRows>)> {
    let vectors = Vectors::read(numbers, &model.map_or(Rule::Judge, Model::rule))?;
    let corpus = vectors.corpus()?;
    let corpus = Interruptible::new(&corpus, stop);
    let labels = supervision.labels()?.ok_or_else(|| {
        Error::Data("which rows are the same? give y, an identity of every row".into())
    })?;
    let groups = match model {
        Some(model) => model.numbered(supervision.groups())?,
        None => None,
    };
    let storage = Storage::default();
    let embed = |side| embed_corpus(chain, side, &corpus, groups.as_ref(), &storage);
    let items = embed(Side::Item)?;
    let two_sides = chain.has_two_sides();
    let queries = two_sides.then(|| embed(Side::Query)).transpose()?;
    let bootstrap = Bootstrap {
        seed,
        ..Bootstrap::default()
    };
    let stoppable = |corpus| Interruptible::new(corpus, stop);
    let queries = (queries.as_ref()).map(|queries| stoppable(queries.corpus()));
    let found = metra::evaluate::verification(
        Embedding::space(chain),
        queries.as_ref().map(|queries| queries as &dyn Corpus),
        &stoppable(items.corpus()),
        &labels,
        rates,
        &bootstrap,
    )?;
    let seen = model.map(|model| model.0.seen_rows(&corpus)).transpose()?;
    Ok((found, fingerprint(&corpus)?, seen.flatten()))
}
