//! Judging a metric on arrays, and differences between two judgements.

use crate::model::Model;
use crate::told::{Told, material};
use crate::train::{comparison, read, read_all};
use crate::vectors::{Given, Rule, Vectors};
use crate::working::{briefly, work};
use metra::data::{Corpus, Groups, Interruptible, Joined};
use metra::evaluate::{
    Bootstrap, Empty, Evaluation, Gain, Measure, Options, ReIdentification, Ties, evaluate,
    paired_bootstrap,
};
use metra::metric::{Chain, Embedding, Side, Space, Storage, embed_corpus};
use metra::study::{Classifier, Collection, Judging, Protocol, Scores};
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
#[pyo3(signature = (question, model, items, queries, told, gallery=None, gallery_told=None, callback=None))]
#[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
pub(crate) fn judge<'py>(
    py: Python<'py>,
    question: Question,
    model: Option<Py<Model>>,
    items: Given<'py>,
    queries: Option<Given<'py>>,
    told: Told,
    gallery: Option<Given<'py>>,
    gallery_told: Option<Told>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let items = items.numbers()?;
    let queries = queries.as_ref().map(Given::numbers).transpose()?;
    let gallery = gallery.as_ref().map(Given::numbers).transpose()?;
    let model = model.as_ref().map(|model| model.get());
    let answer = work(py, question.threads, callback.as_ref(), |desk| {
        let rule = model.map_or(Rule::Judge, Model::rule);
        let items = Vectors::read(items, &rule)?;
        let same = Rule::Apply(items.narrowing.as_ref());
        let other = match model {
            Some(_) => &rule,
            None => &same,
        };
        let queries = queries.map(|q| Vectors::read(q, other)).transpose()?;
        let gallery = gallery.map(|g| Vectors::read(g, other)).transpose()?;
        let items = items.corpus()?;
        let items = Interruptible::new(&items, desk.stop());
        let space: Option<Space> = read(question.score.as_ref())?;
        let chain = chain_of(model, space, items.dim())?;
        let groups = |told: Option<Groups>| -> Result<Option<Groups>> {
            match (chain.group_names(), told) {
                (Some(names), Some(groups)) => groups.renumbered(names).map(Some),
                (_, groups) => Ok(groups),
            }
        };
        if let (Some(gallery), Some(gallery_told)) = (gallery, gallery_told) {
            let gallery = gallery.corpus()?;
            let rows = (&items as &dyn Corpus, &told, groups(told.groups())?);
            let searched = (
                &gallery as &dyn Corpus,
                &gallery_told,
                groups(gallery_told.groups())?,
            );
            return against(&question, &chain, rows, searched);
        }
        let asking = queries.as_ref().map(Vectors::corpus).transpose()?;
        let (groups, query_groups) = (groups(told.groups())?, groups(told.query_groups())?);
        let said = told.supervision(items.len(), asking.as_ref().map(Corpus::len))?;
        let collection = Collection {
            corpus: &items,
            groups: groups.as_ref(),
        };
        let asking = asking.as_ref().map(|corpus| Collection {
            corpus,
            groups: query_groups.as_ref(),
        });
        let material = material(collection, asking, said);
        let protocol = protocol(&question, &material.supervision)?;
        if matches!(protocol, Protocol::AgainstTraining | Protocol::Classify(_)) {
            let expected = "another, or a gallery given to search in";
            return Err(Error::parameter("protocol", expected, protocol));
        }
        let measures = read_all(&question.measures)?;
        let criterion = measures.first().copied();
        let (judging, _) = Judging::new(&material, protocol, measures, criterion, question.seed)?;
        let judging = judging_as(judging, &question)?;
        let units = match question.count_empty {
            true => (0..material.units()).collect(),
            false => material.askable(),
        };
        let space = [Embedding::space(&chain)];
        let scores = material.judge(&chain, &space, &units, &[], &judging)?;
        let scores = first(scores)?;
        let labels = material.labels();
        Ok(Answer::of_scores(&scores, |unit| {
            labels.map_or(unit, |labels| u64::from(labels.of()[unit as usize]))
        }))
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

fn judging_as(judging: Judging, question: &Question) -> Result<Judging> {
    Ok(Judging {
        gain: gain(question),
        empty: empty(question),
        rerank: read(question.rerank.as_ref())?,
        ..judging
    })
}

fn gain(question: &Question) -> Gain {
    if question.exponential_gain {
        Gain::Exponential
    } else {
        Gain::Linear
    }
}

fn empty(question: &Question) -> Empty {
    if question.count_empty {
        Empty::Zero
    } else {
        Empty::Skip
    }
}

/// Rows with what was told of them and their groups.
type Side3<'a> = (&'a dyn Corpus, &'a Told, Option<Groups>);

/// Rows against a gallery.
fn against(
    question: &Question,
    chain: &Chain,
    (rows, told, groups): Side3<'_>,
    (gallery, gallery_told, gallery_groups): Side3<'_>,
) -> Result<Answer> {
    let needed = |labels: Option<Labels>| {
        labels.ok_or_else(|| Error::Data("a gallery is judged by classes: give y".into()))
    };
    let asked: Option<Protocol> = read(question.protocol.as_ref())?;
    if asked == Some(Protocol::CrossCamera) {
        let (labels, searched) = (needed(told.labels()?)?, needed(gallery_told.labels()?)?);
        let (Some(groups), Some(gallery_groups)) = (groups, gallery_groups) else {
            let expected =
                "given, for rows and gallery: the protocol leaves out those of one camera";
            return Err(Error::parameter("cameras", expected, "absent"));
        };
        let storage = Storage::default();
        let left = embed_corpus(chain, Side::Query, rows, Some(&groups), &storage)?;
        let right = embed_corpus(chain, Side::Item, gallery, Some(&gallery_groups), &storage)?;
        let measures = match question.measures.is_empty() {
            true => Protocol::CrossCamera.measures(),
            false => read_all(&question.measures)?,
        };
        let options = Options {
            measures: measures.clone(),
            ties: Ties::Expected,
            gain: gain(question),
            empty: empty(question),
            ..Options::default()
        };
        let truth = ReIdentification::new(&labels, &groups, &searched, &gallery_groups)?;
        let space = Embedding::space(chain);
        let found = evaluate(space, left.corpus(), right.corpus(), &truth, &options)?;
        return Ok(Answer::of_evaluation(&found, measures, &labels));
    }
    // One corpus of both, with the gallery in the place of what was learned from.
    let both = Joined::new(rows, gallery)?;
    let told = told.joined(gallery_told);
    let groups = told.groups();
    let groups = match (chain.group_names(), groups) {
        (Some(names), Some(groups)) => Some(groups.renumbered(names)?),
        (_, groups) => groups,
    };
    let said = told.supervision(both.len(), None)?;
    let collection = Collection {
        corpus: &both,
        groups: groups.as_ref(),
    };
    let material = material(collection, None, said);
    let protocol = match protocol(question, &material.supervision)? {
        Protocol::Classify(classifier) => Protocol::Classify(classifier),
        Protocol::LeaveOneOut | Protocol::AgainstTraining => Protocol::AgainstTraining,
        other => {
            let expected = "against-training or cross-camera where there is a gallery";
            return Err(Error::parameter("protocol", expected, other));
        }
    };
    let measures = read_all(&question.measures)?;
    let criterion = measures.first().copied();
    let (judging, _) = Judging::new(&material, protocol, measures, criterion, question.seed)?;
    let judging = judging_as(judging, question)?;
    let units: Vec<u64> = (0..rows.len()).collect();
    let trained: Vec<u64> = (rows.len()..both.len()).collect();
    let space = [Embedding::space(chain)];
    let scores = first(material.judge(chain, &space, &units, &trained, &judging)?)?;
    let labels = material.labels();
    Ok(Answer::of_scores(&scores, |unit| {
        labels.map_or(unit, |labels| u64::from(labels.of()[unit as usize]))
    }))
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
