//! Same or not the same: the threshold at a rate of false matches, as `metra calibrate` finds it.

use crate::model::Model;
use crate::supervision::SupervisionInput;
use crate::vectors::{Given, Vectors};
use crate::working::work;
use metra::Error;
use metra::data::Storage;
use metra::evaluate::{Bootstrap, verification};
use metra::internal::{Interruptible, fingerprint};
use metra::model::{Embedding, MatchDecision, Side, embed_corpus};
use pyo3::prelude::*;

/// The same model with a threshold at which at most this share of pairs of two identities match,
/// measured on all pairs of these rows.
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
) -> PyResult<Model> {
    let (given, model) = (items.numbers()?, model.get());
    let calibrated = work(py, threads, None, |channel| {
        let vectors = Vectors::read(given, &model.rule())?;
        let corpus = vectors.corpus()?;
        let corpus = Interruptible::new(&corpus, channel.stop());
        let labels = supervision.labels()?.ok_or_else(|| {
            Error::Data("which rows are the same? give y, an identity of every row".into())
        })?;
        let groups = model.numbered(supervision.groups())?;
        let storage = Storage::default();
        let embed = |side| embed_corpus(model.chain(), side, &corpus, groups.as_ref(), &storage);
        let items = embed(Side::Item)?;
        let two_sides = model.chain().map().has_two_sides();
        let queries = two_sides.then(|| embed(Side::Query)).transpose()?;
        let bootstrap = Bootstrap {
            seed,
            ..Bootstrap::default()
        };
        let found = verification(
            Embedding::space(model.chain()),
            queries.as_ref().map(|queries| queries.corpus()),
            items.corpus(),
            &labels,
            &[rate],
            &bootstrap,
        )?;
        let Some(point) = found.points.first() else {
            return Err(Error::Data("no threshold was found".into()));
        };
        model.0.clone().with_decision(MatchDecision {
            threshold: f64::from(point.threshold),
            asked: point.asked,
            false_match_rate: point.false_match_rate,
            true_match_rate: point.true_match_rate,
            low: point.low,
            high: point.high,
            same: found.same,
            different: found.different,
            data: fingerprint(&corpus)?,
        })
    })?;
    Ok(Model::new(calibrated))
}
