//! EvaluationSettings a metric on arrays, and differences between two judgements.

use crate::model::Model;
use crate::supervision::{Arrays, SupervisionInput, numbered};
use crate::train::{comparison, read, read_all};
use crate::vectors::{Given, Rule, Vectors};
use crate::working::{briefly, work};
use metra::Dataset;
use metra::data::{Corpus, Groups, Storage};
use metra::evaluate::{
    Bootstrap, Empty, Evaluation, EvaluationOptions, GradeGain, Measure, ReIdentification, Ties,
    evaluate, paired_bootstrap,
};
use metra::experiment::{Classifier, EvaluationSettings, Protocol, Scores};
use metra::internal::{Interruptible, JoinedCorpus};
use metra::model::{Chain, Embedding, Side, Space, embed_corpus};
use metra::supervision::{Labels, Supervision};
use metra::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// How to judge.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Question {
    score: Option<String>,
    protocol: Option<String>,
    classifier: Option<String>,
    repeats: u32,
    measures: Vec<String>,
    exponential_gain: bool,
    count_empty: bool,
    rerank: Option<String>,
    seed: u64,
    threads: Option<usize>,
}

/// One value a query and measure, before it becomes Python's.
struct Answer {
    measures: Vec<Measure>,
    values: Vec<Vec<f64>>,
    queries: Vec<u64>,
    clusters: Vec<u64>,
    skipped: u64,
    cmc: Vec<f64>,
    precision: Vec<f64>,
}

impl Answer {
    fn of_scores(scores: &Scores, cluster: impl Fn(u64) -> u64) -> Self {
        let measures = scores.measures().to_vec();
        Answer {
            values: measures
                .iter()
                .map(|m| scores.values(*m).to_vec())
                .collect(),
            measures,
            queries: scores.queries().to_vec(),
            clusters: scores.queries().iter().map(|q| cluster(*q)).collect(),
            skipped: scores.skipped(),
            cmc: scores.cmc(),
            precision: scores.precision(),
        }
    }

    fn of_evaluation(found: &Evaluation, measures: Vec<Measure>, labels: &Labels) -> Self {
        let values = |m: &Measure| found.of(*m).unwrap_or(&[]).to_vec();
        Answer {
            values: measures.iter().map(values).collect(),
            measures,
            queries: found.queries.iter().map(|q| u64::from(*q)).collect(),
            clusters: (found.queries.iter())
                .map(|q| u64::from(labels.of()[*q as usize]))
                .collect(),
            skipped: found.skipped,
            cmc: found.curve.clone(),
            precision: found.precision.clone(),
        }
    }
}

/// Judge a model, or the vectors as they are. A gallery, with labels of its own, is searched in
/// place of the rows themselves.
#[pyfunction]
#[pyo3(signature = (question, model, items, queries, supervision, gallery=None, gallery_supervision=None, callback=None))]
#[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
pub(crate) fn judge<'py>(
    py: Python<'py>,
    question: Question,
    model: Option<Py<Model>>,
    items: Given<'py>,
    queries: Option<Given<'py>>,
    supervision: SupervisionInput,
    gallery: Option<Given<'py>>,
    gallery_supervision: Option<SupervisionInput>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let arrays = Arrays {
        items: items.numbers()?,
        queries: queries.as_ref().map(Given::numbers).transpose()?,
    };
    let gallery = gallery.as_ref().map(Given::numbers).transpose()?;
    let model = model.as_ref().map(|model| model.get());
    let answer = work(py, question.threads, callback.as_ref(), |channel| {
        let rule = model.map_or(Rule::Judge, Model::rule);
        let chain = chain_of(model, read(question.score.as_ref())?, arrays.items.dim())?;
        if let (Some(gallery), Some(gallery_supervision)) = (gallery, gallery_supervision) {
            let items = Vectors::read(arrays.items, &rule)?;
            let same = Rule::Apply(items.narrowing.as_ref());
            let gallery = Vectors::read(gallery, &same)?;
            let (items, gallery) = (items.corpus()?, gallery.corpus()?);
            let items = Interruptible::new(&items, channel.stop());
            return against(
                &question,
                &chain,
                (&items, &supervision),
                (&gallery, &gallery_supervision),
            );
        }
        let names = chain.group_names();
        arrays.with_dataset(&rule, &supervision, names, channel.stop(), |data| {
            let protocol = protocol(&question, data.supervision())?;
            if matches!(protocol, Protocol::AgainstTraining | Protocol::Classify(_)) {
                let expected = "another, or a gallery given to search in";
                return Err(Error::parameter("protocol", expected, protocol));
            }
            let units = match question.count_empty {
                true => (0..data.supervision().queries()).collect(),
                false => data.units(),
            };
            by_protocol(&question, &chain, data, protocol, (&units, &[]))
        })
    })?;
    let out = PyDict::new(py);
    let measures: Vec<String> = answer.measures.iter().map(Measure::to_string).collect();
    out.set_item("measures", measures)?;
    out.set_item("values", answer.values)?;
    out.set_item("queries", answer.queries)?;
    out.set_item("clusters", answer.clusters)?;
    out.set_item("skipped", answer.skipped)?;
    out.set_item("cmc", answer.cmc)?;
    out.set_item("precision", answer.precision)?;
    Ok(out)
}

/// A model's way of a vector, compared by another score where one is named; without a model the
/// vectors as they are.
pub(crate) fn chain_of(model: Option<&Model>, space: Option<Space>, dim: usize) -> Result<Chain> {
    match (model, space) {
        (Some(model), None) => Ok(model.chain().clone()),
        (Some(model), Some(space)) => {
            let chain = model.chain();
            Chain::new(dim, chain.steps().to_vec(), chain.map().clone(), space)
        }
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

/// Judge some units by a protocol; `trained` are those that are searched in place of them.
fn by_protocol(
    question: &Question,
    chain: &Chain,
    data: &Dataset<'_>,
    protocol: Protocol,
    (units, trained): (&[u64], &[u64]),
) -> Result<Answer> {
    let measures: Vec<Measure> = read_all(&question.measures)?;
    let criterion = measures.first().copied();
    let (judging, _) = EvaluationSettings::new(data, protocol, measures, criterion, question.seed)?;
    let judging = EvaluationSettings {
        gain: gain(question),
        empty: empty(question),
        rerank: read(question.rerank.as_ref())?,
        ..judging
    };
    let space = [Embedding::space(chain)];
    let scores = first(data.evaluate_part(chain, &space, units, trained, &judging)?)?;
    let labels = data.labels();
    Ok(Answer::of_scores(&scores, |unit| {
        labels.map_or(unit, |labels| u64::from(labels.of()[unit as usize]))
    }))
}

/// Rows with what was told of them.
type Rows<'a> = (&'a dyn Corpus, &'a SupervisionInput);

/// Rows against a gallery.
fn against(
    question: &Question,
    chain: &Chain,
    (rows, supervision): Rows<'_>,
    (gallery, gallery_supervision): Rows<'_>,
) -> Result<Answer> {
    if read(question.protocol.as_ref())? == Some(Protocol::CrossCamera) {
        return across_cameras(
            question,
            chain,
            (rows, supervision),
            (gallery, gallery_supervision),
        );
    }
    // One corpus of both, with the gallery in the place of what was learned from.
    let both = JoinedCorpus::new(rows, gallery)?;
    let supervision = supervision.joined(gallery_supervision);
    let groups = numbered(supervision.groups(), chain.group_names())?;
    let data = supervision.build(Dataset::builder(&both).groups(groups))?;
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
) -> Result<Answer> {
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
    let measures = match question.measures.is_empty() {
        true => Protocol::CrossCamera.measures(),
        false => read_all(&question.measures)?,
    };
    let options = EvaluationOptions {
        measures: measures.clone(),
        ties: Ties::Expected,
        gain: gain(question),
        empty: empty(question),
        ..EvaluationOptions::default()
    };
    let truth = ReIdentification::new(&labels, &groups, &searched, &gallery_groups)?;
    let space = Embedding::space(chain);
    let found = evaluate(space, left.corpus(), right.corpus(), &truth, &options)?;
    Ok(Answer::of_evaluation(&found, measures, &labels))
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
