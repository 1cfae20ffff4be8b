//! How well a metric ranks arrays, and differences between two rankings.

use crate::errors::raised;
use crate::model::Model;
use crate::supervision::{Arrays, SupervisionInput, numbered};
use crate::train::{comparison, read, read_all};
use crate::vectors::{Given, Numbers, Rule, Vectors};
use crate::working::{briefly, work};
use metra::Dataset;
use metra::data::{Corpus, Groups, Storage};
use metra::evaluate::{
    Bootstrap, Empty, EvaluationOptions, GradeGain, Measure, ReIdentification, Ties, evaluate,
    evaluate_reranked, paired_bootstrap,
};
use metra::experiment::{Classifier, EvaluationSettings, Protocol, Scores};
use metra::internal::{Interruptible, JoinedCorpus};
use metra::model::{Chain, Embedding, Side, Space, embed_corpus};
use metra::search::Rerank;
use metra::supervision::{Labels, Supervision};
use metra::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::AtomicBool;

/// How to judge.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Question {
    protocol: Option<String>,
    classifier: Option<String>,
    repeats: u32,
    measures: Vec<String>,
    /// Whether the protocol's own measures are measured beside them.
    beside: bool,
    exponential_gain: bool,
    count_empty: bool,
    rerank: Option<String>,
    seed: u64,
    pub(crate) threads: Option<usize>,
}

/// What is ranked: rows, queries and items, or rows against a gallery with labels of its own.
pub(crate) struct Ranked<'a> {
    pub(crate) arrays: Arrays<'a>,
    pub(crate) supervision: SupervisionInput,
    pub(crate) gallery: Option<(Numbers<'a>, &'a SupervisionInput)>,
}

/// Vectors that are searched, with what is known of them.
pub(crate) type Gallery<'py> = (Given<'py>, SupervisionInput);

impl<'a> Ranked<'a> {
    pub(crate) fn new(
        items: &'a Given<'_>,
        queries: Option<&'a Given<'_>>,
        supervision: SupervisionInput,
        gallery: Option<&'a Gallery<'_>>,
    ) -> PyResult<Self> {
        let read = |(given, known): &'a Gallery<'_>| Ok::<_, PyErr>((given.numbers()?, known));
        Ok(Ranked {
            arrays: Arrays {
                items: items.numbers()?,
                queries: queries.map(Given::numbers).transpose()?,
            },
            supervision,
            gallery: gallery.map(read).transpose()?,
        })
    }
}

/// A model and a score: either or both, the vectors as they are where there is no model.
pub(crate) type Metric = (Option<Py<Model>>, Option<String>);

/// Judge a metric.
#[pyfunction]
#[pyo3(signature = (question, metric, items, queries, supervision, gallery=None, callback=None))]
#[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
pub(crate) fn judge<'py>(
    py: Python<'py>,
    question: Question,
    metric: Metric,
    items: Given<'py>,
    queries: Option<Given<'py>>,
    supervision: SupervisionInput,
    gallery: Option<Gallery<'py>>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let ranked = Ranked::new(&items, queries.as_ref(), supervision, gallery.as_ref())?;
    let scores = work(py, question.threads, callback.as_ref(), |channel| {
        ranked.scores(&question, &metric, None, channel.stop(), &mut |_, _| Ok(()))
    })?;
    let out = PyDict::new(py);
    let measures = scores.measures();
    let names: Vec<String> = measures.iter().map(Measure::to_string).collect();
    let values: Vec<&[f64]> = measures.iter().map(|m| scores.values(*m)).collect();
    out.set_item("measures", names)?;
    out.set_item("values", values)?;
    out.set_item("queries", scores.queries())?;
    out.set_item("clusters", scores.clusters())?;
    out.set_item("skipped", scores.skipped())?;
    out.set_item("cmc", scores.cmc())?;
    out.set_item("precision", scores.precision())?;
    Ok(out)
}

impl Ranked<'_> {
    /// What a metric's ranking scores, until `stop` is set. Vectors as they are are read as `read_as` reads
    /// them, where that is given. `look` sees the data set with the scores, where there is no gallery.
    pub(crate) fn scores(
        &self,
        question: &Question,
        (model, score): &Metric,
        read_as: Option<&Model>,
        stop: &AtomicBool,
        look: &mut dyn FnMut(&Dataset<'_>, &Scores) -> Result<()>,
    ) -> Result<Scores> {
        let model = model.as_ref().map(|model| model.get());
        let rule = model.or(read_as).map_or(Rule::Judge, Model::rule);
        let chain = chain_of(model, read(score.as_ref())?, self.arrays.items.dim())?;
        if let Some((gallery, gallery_supervision)) = &self.gallery {
            let items = Vectors::read(self.arrays.items, &rule)?;
            let same = Rule::Apply(items.narrowing.as_ref());
            let gallery = Vectors::read(*gallery, &same)?;
            let (items, gallery) = (items.corpus()?, gallery.corpus()?);
            let items = Interruptible::new(&items, stop);
            let gallery = Interruptible::new(&gallery, stop);
            let rows = (&items as &dyn Corpus, &self.supervision);
            let gallery = (&gallery as &dyn Corpus, *gallery_supervision);
            return against(question, &chain, rows, gallery, stop);
        }
        let (arrays, names) = (&self.arrays, chain.group_names());
        arrays.with_dataset(&rule, &self.supervision, names, stop, |data| {
            let protocol = protocol(question, data.supervision())?;
            if matches!(protocol, Protocol::AgainstTraining | Protocol::Classify(_)) {
                let expected = "another, or a gallery given to search in";
                return Err(Error::parameter("protocol", expected, protocol));
            }
            let units = match question.count_empty {
                true => (0..data.supervision().queries()).collect(),
                false => data.units(),
            };
            let scores = by_protocol(question, &chain, data, protocol, (&units, &[]))?;
            look(data, &scores)?;
            Ok(scores)
        })
    }
}

/// A model's way of a vector, compared by another score where one is named; without a model the
/// vectors as they are.
pub(crate) fn chain_of(model: Option<&Model>, space: Option<Space>, dim: usize) -> Result<Chain> {
    match (model, space) {
        (Some(model), None) => Ok(model.chain().clone()),
        (Some(model), Some(space)) => model.chain().in_space(space),
        (None, space) => Ok(Chain::identity(dim, space.unwrap_or(Space::SquaredL2))),
    }
}

fn first(scores: Vec<Result<Scores>>) -> Result<Scores> {
    (scores.into_iter().next()).unwrap_or_else(|| Err(Error::Data("there are no scores".into())))
}

fn protocol(question: &Question, supervision: &Supervision) -> Result<Protocol> {
    if let Some(classifier) = read::<Classifier>(question.classifier.as_ref())? {
        return Ok(Protocol::Classify(classifier));
    }
    Ok(match read(question.protocol.as_ref())? {
        Some(Protocol::SingleShot { .. }) => Protocol::SingleShot {
            repeats: question.repeats,
        },
        Some(protocol) => protocol,
        None => Protocol::default_for(supervision),
    })
}

fn gain(question: &Question) -> GradeGain {
    if question.exponential_gain {
        GradeGain::Exponential
    } else {
        GradeGain::Linear
    }
}

fn empty(question: &Question) -> Empty {
    if question.count_empty {
        Empty::Zero
    } else {
        Empty::Skip
    }
}

/// The measures asked for, and where they are wanted or there are none the protocol's own.
fn measures(question: &Question, protocol: Protocol) -> Result<Vec<Measure>> {
    let mut measures: Vec<Measure> = read_all(&question.measures)?;
    if question.beside || (measures.is_empty() && protocol == Protocol::CrossCamera) {
        let usual = protocol.measures().into_iter();
        measures.extend(usual.filter(|m| !measures.contains(m)).collect::<Vec<_>>());
    }
    Ok(measures)
}

/// Judge some units by a protocol; `trained` are those that are searched in place of them.
fn by_protocol(
    question: &Question,
    chain: &Chain,
    data: &Dataset<'_>,
    protocol: Protocol,
    (units, trained): (&[u64], &[u64]),
) -> Result<Scores> {
    let measures = measures(question, protocol)?;
    let criterion = measures.first().copied();
    let (judging, _) = EvaluationSettings::new(data, protocol, measures, criterion, question.seed)?;
    let judging = EvaluationSettings {
        gain: gain(question),
        empty: empty(question),
        rerank: read(question.rerank.as_ref())?,
        ..judging
    };
    let space = [Embedding::space(chain)];
    first(data.evaluate_part(chain, &space, units, trained, &judging)?)
}

/// Rows with what was told of them.
type Rows<'a> = (&'a dyn Corpus, &'a SupervisionInput);

/// Rows against a gallery.
fn against(
    question: &Question,
    chain: &Chain,
    (rows, supervision): Rows<'_>,
    (gallery, gallery_supervision): Rows<'_>,
    stop: &AtomicBool,
) -> Result<Scores> {
    if read(question.protocol.as_ref())? == Some(Protocol::CrossCamera) {
        return across_cameras(
            question,
            chain,
            (rows, supervision),
            (gallery, gallery_supervision),
            stop,
        );
    }
    // One corpus of both, with the gallery in the place of what was learned from.
    let both = JoinedCorpus::new(rows, gallery)?;
    let supervision = supervision.joined(gallery_supervision);
    let groups = numbered(supervision.groups(), chain.group_names())?;
    let data = supervision.build(Dataset::builder(&both).groups(groups).stop(stop))?;
    let protocol = match protocol(question, data.supervision())? {
        Protocol::Classify(classifier) => Protocol::Classify(classifier),
        Protocol::LeaveOneOut | Protocol::AgainstTraining => Protocol::AgainstTraining,
        other => {
            let expected = "against-training or cross-camera where there is a gallery";
            return Err(Error::parameter("protocol", expected, other));
        }
    };
    let units: Vec<u64> = (0..rows.len()).collect();
    let trained: Vec<u64> = (rows.len()..both.len()).collect();
    by_protocol(question, chain, &data, protocol, (&units, &trained))
}

/// Rows against a gallery, those of the same identity and camera left out.
fn across_cameras(
    question: &Question,
    chain: &Chain,
    (rows, supervision): Rows<'_>,
    (gallery, gallery_supervision): Rows<'_>,
    stop: &AtomicBool,
) -> Result<Scores> {
    let needed = |labels: Option<Labels>| {
        labels.ok_or_else(|| Error::Data("a gallery is judged by classes: give y".into()))
    };
    let (labels, searched) = (
        needed(supervision.labels()?)?,
        needed(gallery_supervision.labels()?)?,
    );
    let (Some(groups), Some(gallery_groups)) = (supervision.groups(), gallery_supervision.groups())
    else {
        let expected = "given, for rows and gallery: the protocol leaves out those of one camera";
        return Err(Error::parameter("cameras", expected, "absent"));
    };
    let storage = Storage::default();
    let embed = |side, rows, groups: &Groups| {
        let groups = numbered(Some(groups.clone()), chain.group_names())?;
        embed_corpus(chain, side, rows, groups.as_ref(), &storage)
    };
    let left = embed(Side::Query, rows, &groups)?;
    let right = embed(Side::Item, gallery, &gallery_groups)?;
    let options = EvaluationOptions {
        measures: measures(question, Protocol::CrossCamera)?,
        ties: Ties::Expected,
        gain: gain(question),
        empty: empty(question),
        ..EvaluationOptions::default()
    };
    let truth = ReIdentification::new(&labels, &groups, &searched, &gallery_groups)?;
    let space = Embedding::space(chain);
    let left = Interruptible::new(left.corpus(), stop);
    let right = Interruptible::new(right.corpus(), stop);
    let found = match read::<Rerank>(question.rerank.as_ref())? {
        None => evaluate(space, &left, &right, &truth, &options)?,
        Some(rerank) => evaluate_reranked(&rerank, space, &left, &right, None, &truth, &options)?,
    };
    let ids: Vec<u64> = (0..rows.len()).collect();
    let class = |row: u64| u64::from(labels.of()[row as usize]);
    Ok(Scores::of(&ids, class, &found))
}

/// The library's own name of a measure, which has others too.
#[pyfunction]
pub(crate) fn measure_name(name: &str) -> PyResult<String> {
    let measure: Measure = name.parse().map_err(raised)?;
    Ok(measure.to_string())
}

/// Paired bootstrap of the difference between two lists of values, one a query.
#[pyfunction]
pub(crate) fn bootstrap<'py>(
    py: Python<'py>,
    base: Vec<f64>,
    learned: Vec<f64>,
    clusters: Vec<u64>,
    resamples: u32,
    level: f64,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let options = Bootstrap {
        resamples,
        level,
        seed,
    };
    let found = briefly(py, || {
        paired_bootstrap(&base, &learned, &clusters, &options)
    })?;
    comparison(py, "", &found)
}
