//! Fits: what `metra train` does, on arrays.

use crate::errors::raised;
use crate::model::Model;
use crate::supervision::{Arrays, SupervisionInput};
use crate::vectors::{Given, Rule};
use crate::working::{History, ProgressChannel, work_until};
use metra::evaluate::{Comparison, Measure};
use metra::experiment::{
    ComparedMethod, EvaluationSettings, Experiment, HoldOut, Parts, Protocol, Verdicts,
};
use metra::internal::fingerprint;
use metra::model::Space;
use metra::pipeline::registry;
use metra::supervision::SupervisionKind;
use metra::{Dataset, Error, Result};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// Values to try, by parameter.
pub(crate) type Grid = Vec<(String, Vec<String>)>;

/// How to learn, as words that the library reads.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Order {
    method: String,
    settings: BTreeMap<String, String>,
    grid: Grid,
    prepare: String,
    scores: Vec<String>,
    base: Option<String>,
    holdout: Option<String>,
    validation: f64,
    test: f64,
    refit: bool,
    protocol: Option<String>,
    measures: Vec<String>,
    criterion: Option<String>,
    seed: u64,
    pub(crate) threads: Option<usize>,
    /// File, and seconds between two states in it.
    checkpoint: Option<(PathBuf, f64)>,
    /// Whether Ctrl-C ends a fit with what it has.
    keep: bool,
}

/// What a fit outcome, before it becomes Python's.
struct FitOutcome {
    model: metra::model::Model,
    chosen: BTreeMap<String, String>,
    value: Option<f64>,
    trials: Vec<metra::experiment::Trial>,
    base: String,
    verdicts: Option<Verdicts>,
    sizes: [usize; 3],
    cpu_seconds: f64,
    seconds: f64,
    phases: Vec<String>,
    steps_done: Vec<crate::working::HistoryStep>,
    ended_early: bool,
}

/// Learn a metric; `items` and `queries` are arrays of f32 or f64 with rows one after the other.
#[pyfunction]
#[pyo3(signature = (order, items, queries, supervision, callback=None, start=None))]
pub(crate) fn train<'py>(
    py: Python<'py>,
    order: Order,
    items: Given<'py>,
    queries: Option<Given<'py>>,
    supervision: SupervisionInput,
    callback: Option<Bound<'py, PyAny>>,
    start: Option<Py<Model>>,
) -> PyResult<Bound<'py, PyDict>> {
    let start = start.as_ref().map(Py::get);
    let arrays = Arrays {
        items: items.numbers()?,
        queries: queries.as_ref().map(Given::numbers).transpose()?,
    };
    let outcome = work_until(
        py,
        order.threads,
        callback.as_ref(),
        order.keep,
        |channel| {
            let rule = start.map_or(Rule::Judge, Model::rule);
            let groups = start.and_then(|model| model.chain().group_names());
            arrays.with_dataset(&rule, &supervision, groups, channel.stop(), |data| {
                order.fit(data, start.map(|model| &model.0), channel)
            })
        },
    )?;
    outcome.into_python(py)
}

/// How one split is drawn and evaluated, as words that the library reads.
pub(crate) struct Judging<'a> {
    pub(crate) protocol: Option<&'a String>,
    pub(crate) measures: &'a [String],
    pub(crate) criterion: Option<&'a String>,
    pub(crate) holdout: Option<&'a String>,
    /// Of validation and test part.
    pub(crate) shares: (f64, f64),
    pub(crate) seed: u64,
}

impl Judging<'_> {
    /// The experiment of some methods.
    pub(crate) fn experiment<'d>(
        &self,
        data: &'d Dataset<'d>,
        methods: Vec<ComparedMethod>,
    ) -> Result<Experiment<'d>> {
        let protocol = read(self.protocol)?;
        let protocol = protocol.unwrap_or_else(|| Protocol::default_for(data.supervision()));
        let (measures, criterion) = (read_all(self.measures)?, read(self.criterion)?);
        let settings = EvaluationSettings::new(data, protocol, measures, criterion, self.seed)?;
        let kind = match read(self.holdout)? {
            Some(kind) => kind,
            None => HoldOut::default_for(data),
        };
        let parts = Parts::draw(data, &data.units(), kind, self.shares, self.seed)?;
        let splits = (vec![(parts, self.seed)], kind);
        Experiment::new(data, splits, settings, methods, self.seed)
    }
}

impl Order {
    /// The experiment of one method on one split.
    pub(crate) fn experiment<'d>(&self, data: &'d Dataset<'d>) -> Result<Experiment<'d>> {
        let method = ComparedMethod {
            name: self.method.clone(),
            method: self.method.clone(),
            settings: self.settings.clone(),
            recipe: self.prepare.parse()?,
            grid: self.grid.clone(),
            spaces: read_all(&self.scores)?,
            published: BTreeMap::new(),
        };
        let judging = Judging {
            protocol: self.protocol.as_ref(),
            measures: &self.measures,
            criterion: self.criterion.as_ref(),
            holdout: self.holdout.as_ref(),
            shares: (self.validation, self.test),
            seed: self.seed,
        };
        let mut experiment = judging.experiment(data, vec![method])?;
        registry::find(&self.method)?.build(&experiment.methods[0].settings)?;
        experiment.base = self.base.clone();
        read::<Space>(self.base.as_ref())?;
        Ok(experiment)
    }

    fn fit<'d>(
        &self,
        data: &'d Dataset<'d>,
        start: Option<&'d metra::model::Model>,
        channel: &ProgressChannel,
    ) -> Result<FitOutcome> {
        let mut experiment = self.experiment(data)?;
        if let Some(model) = start {
            experiment.start_from(model)?;
        }
        let parts = &experiment.splits[0].0;
        let sizes = [&parts.train, &parts.validation, &parts.test].map(Vec::len);
        if let Some((path, every)) = &self.checkpoint {
            experiment.checkpoint = Some(experiment.checkpoint_at(path, *every, self.refit)?);
        }
        let mut history = History::new(channel);
        let began = Instant::now();
        data.fingerprint()?;
        let result = experiment.train(0, &mut history)?;
        let model = match self.refit && sizes[2] > 0 {
            true => experiment.refit(0, &result, &mut history)?,
            false => result.model,
        };
        if fingerprint(data.items())? != data.fingerprint()? {
            return Err(Error::Data(
                "the vectors were written to during the fit, so that the model is of no one state of \
                 them; copy=True makes a copy first"
                    .into(),
            ));
        }
        // What was ended early can go on from there.
        if let Some(checkpoint) = experiment
            .checkpoint
            .as_ref()
            .filter(|_| !channel.ended_early())
        {
            checkpoint.remove()?;
        }
        Ok(FitOutcome {
            model,
            chosen: result.chosen.settings,
            value: result.chosen.value,
            trials: result.chosen.trials,
            base: data.baseline_name(result.base),
            verdicts: result.verdicts,
            sizes,
            cpu_seconds: result.cpu_seconds,
            seconds: began.elapsed().as_secs_f64(),
            phases: history.phases,
            steps_done: history.steps_done,
            ended_early: channel.ended_early(),
        })
    }
}

impl FitOutcome {
    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let outcome = self;
        let out = PyDict::new(py);
        let history: Vec<Bound<'_, PyDict>> = (outcome.steps_done.iter())
            .map(|moment| {
                let line = PyDict::new(py);
                let phase = outcome.phases.get(moment.phase as usize);
                line.set_item("phase", phase.map_or("", String::as_str))?;
                line.set_item("step", moment.step)?;
                line.set_item("loss", moment.loss)?;
                line.set_item("validation", moment.validation)?;
                Ok(line)
            })
            .collect::<PyResult<_>>()?;
        let trials: Vec<Bound<'_, PyDict>> = (outcome.trials.into_iter())
            .map(|trial| {
                let line = PyDict::new(py);
                line.set_item("settings", trial.settings)?;
                line.set_item("score", trial.space)?;
                line.set_item("value", trial.value)?;
                line.set_item("failure", trial.failure)?;
                Ok(line)
            })
            .collect::<PyResult<_>>()?;
        let rows = |pick: fn(&Verdicts) -> &Vec<(Measure, Comparison)>| -> PyResult<Vec<_>> {
            (outcome.verdicts.iter().flat_map(pick))
                .map(|(measure, found)| comparison(py, &measure.to_string(), found))
                .collect()
        };
        out.set_item("model", Py::new(py, Model::new(outcome.model))?)?;
        out.set_item("settings", outcome.chosen)?;
        out.set_item("validation", outcome.value)?;
        out.set_item("trials", trials)?;
        out.set_item("base", outcome.base)?;
        out.set_item("test", rows(|v| &v.rows)?)?;
        out.set_item("seen", rows(|v| &v.seen)?)?;
        out.set_item("unseen", rows(|v| &v.unseen)?)?;
        out.set_item("sizes", outcome.sizes.to_vec())?;
        out.set_item("cpu_seconds", outcome.cpu_seconds)?;
        out.set_item("seconds", outcome.seconds)?;
        out.set_item("history", history)?;
        out.set_item("ended_early", outcome.ended_early)?;
        Ok(out)
    }
}

/// One comparison of base and learned as a dictionary.
pub(crate) fn comparison<'py>(
    py: Python<'py>,
    measure: &str,
    found: &Comparison,
) -> PyResult<Bound<'py, PyDict>> {
    let line = PyDict::new(py);
    line.set_item("measure", measure)?;
    line.set_item("base", found.base)?;
    line.set_item("learned", found.learned)?;
    line.set_item("difference", found.difference)?;
    line.set_item("low", found.low)?;
    line.set_item("high", found.high)?;
    line.set_item("queries", found.queries)?;
    line.set_item("clusters", found.clusters)?;
    line.set_item("verdict", found.verdict().to_string())?;
    Ok(line)
}

/// Read a word, where there is one.
pub(crate) fn read<T>(text: Option<&String>) -> Result<Option<T>>
where
    T: std::str::FromStr<Err = metra::Error>,
{
    text.map(|text| text.parse()).transpose()
}

/// Read all words.
pub(crate) fn read_all<T>(texts: &[String]) -> Result<Vec<T>>
where
    T: std::str::FromStr<Err = metra::Error>,
{
    texts.iter().map(|text| text.parse()).collect()
}

/// All learners: name, summary, what they need, parameters (name, default, values, meaning) and the
/// values worth trying.
#[pyfunction]
pub(crate) fn methods(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    (registry::ENTRIES.iter())
        .map(|entry| {
            let line = PyDict::new(py);
            line.set_item("name", entry.name)?;
            line.set_item("summary", entry.summary)?;
            line.set_item("needs", SupervisionKind::words(entry.needs))?;
            line.set_item("supervised", !entry.needs.is_empty())?;
            line.set_item("starts_from_model", entry.starts_from_model)?;
            line.set_item("several_vectors", entry.several_vectors)?;
            let parameters: Vec<_> = (entry.parameters)()
                .into_iter()
                .map(|p| (p.name, p.default, p.values, p.meaning))
                .collect();
            line.set_item("parameters", parameters)?;
            line.set_item("grid", entry.open_grid(&BTreeMap::new()))?;
            line.set_item("paper", entry.paper.to_vec())?;
            Ok(line)
        })
        .collect()
}

/// An error if these parameters cannot be used.
#[pyfunction]
pub(crate) fn check_settings(method: &str, settings: BTreeMap<String, String>) -> PyResult<()> {
    (registry::find(method).and_then(|entry| entry.build(&settings)))
        .map(|_| ())
        .map_err(raised)
}
