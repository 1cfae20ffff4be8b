//! How far a metric agrees with comparisons of rows: what `metra eval --triplets` prints.

use crate::evaluate::chain_of;
use crate::model::Model;
use crate::supervision::{SupervisionInput, numbered};
use crate::train::{comparison, read};
use crate::vectors::{Given, Rule, Vectors};
use crate::working::work;
use metra::data::Corpus;
use metra::evaluate::{Bootstrap, Comparison, agreement, separation};
use metra::internal::Interruptible;
use metra::model::{Chain, Space};
use metra::supervision::{Comparisons, Quadruplet, derive::as_quadruplet};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// One kind of comparison, before it becomes Python's.
struct Agreed {
    kind: &'static str,
    measure: &'static str,
    comparisons: usize,
    value: f64,
    interval: (f64, f64),
    gain: Option<Comparison>,
}

/// Measure a model, or the vectors as they are, by pairs, triplets and quadruplets of rows.
#[pyfunction]
#[pyo3(signature = (model, score, base, items, supervision, seed=1, threads=None))]
#[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
pub(crate) fn agree<'py>(
    py: Python<'py>,
    model: Option<Py<Model>>,
    score: Option<String>,
    base: Option<String>,
    items: Given<'py>,
    supervision: SupervisionInput,
    seed: u64,
    threads: Option<usize>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let items = items.numbers()?;
    let model = model.as_ref().map(|model| model.get());
    let found = work(py, threads, None, |channel| {
        let items = Vectors::read(items, &model.map_or(Rule::Judge, Model::rule))?;
        let items = items.corpus()?;
        let items = Interruptible::new(&items, channel.stop());
        let chain = chain_of(model, read(score.as_ref())?, items.dim())?;
        let base: Option<Space> = read(base.as_ref())?;
        let base = base.map(|space| Chain::identity(items.dim(), space));
        let groups = numbered(supervision.groups(), chain.group_names())?;
        let comparisons = supervision.comparisons(items.len())?;
        let judge = |chain: &Chain, quadruplets: &[Quadruplet]| {
            agreement(chain, &items, groups.as_ref(), quadruplets)
        };
        let mut found = Vec::new();
        if !(comparisons.similar().is_empty() && comparisons.dissimilar().is_empty()) {
            let judge = |chain: &Chain| {
                let (near, far) = (comparisons.similar(), comparisons.dissimilar());
                separation(chain, &items, groups.as_ref(), near, far)
            };
            let learned = judge(&chain)?;
            let gain = base.as_ref().map(|base| learned.against(&judge(base)?));
            found.push(Agreed {
                kind: "pairs",
                measure: "auc",
                comparisons: learned.pairs(),
                value: learned.auc(),
                interval: learned.interval(),
                gain: gain.transpose()?,
            });
        }
        for (kind, quadruplets) in ordered(&comparisons) {
            if quadruplets.is_empty() {
                continue;
            }
            let bootstrap = Bootstrap {
                seed,
                ..Bootstrap::default()
            };
            let learned = judge(&chain, &quadruplets)?;
            let gain = (base.as_ref())
                .map(|base| learned.against(&judge(base, &quadruplets)?, &bootstrap));
            found.push(Agreed {
                kind,
                measure: "right",
                comparisons: quadruplets.len(),
                value: learned.share(),
                interval: learned.interval(&bootstrap)?,
                gain: gain.transpose()?,
            });
        }
        Ok(found)
    })?;
    (found.iter())
        .map(|agreed| {
            let line = match &agreed.gain {
                Some(gain) => comparison(py, agreed.kind, gain)?,
                None => PyDict::new(py),
            };
            line.set_item("measure", format!("{} {}", agreed.kind, agreed.measure))?;
            line.set_item("comparisons", agreed.comparisons)?;
            line.set_item("value", agreed.value)?;
            line.set_item("value_low", agreed.interval.0)?;
            line.set_item("value_high", agreed.interval.1)?;
            Ok(line)
        })
        .collect()
}

/// Triplets and quadruplets, as quadruplets.
fn ordered(comparisons: &Comparisons) -> [(&'static str, Vec<Quadruplet>); 2] {
    let triplets = comparisons.triplets().iter().map(as_quadruplet).collect();
    [
        ("triplets", triplets),
        ("quadruplets", comparisons.quadruplets().to_vec()),
    ]
}
