//! Fits: what `metra train` does, on arrays.

use crate::errors::raised;
use crate::material::{Arrays, with_material};
use crate::model::Model;
use crate::told::Told;
use crate::vectors::{Given, Rule};
use crate::working::{Chronicle, Desk, work};
use metra::Result;
use metra::data::Narrowing;
use metra::evaluate::{Comparison, Measure};
use metra::learn::{Recipe, registry};
use metra::study::{HoldOut, Judging, Material, Parts, Protocol, Study, Verdicts};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
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
    threads: Option<usize>,
}

/// What a fit gave, before it becomes Python's.
struct Gave {
    model: metra::metric::Model,
    chosen: BTreeMap<String, String>,
    value: Option<f64>,
    trials: Vec<metra::study::Trial>,
    base: String,
    verdicts: Option<Verdicts>,
    sizes: [usize; 3],
    cpu_seconds: f64,
    seconds: f64,
    phases: Vec<String>,
    moments: Vec<crate::working::Moment>,
}

/// Learn a metric; `items` and `queries` are arrays of f32 or f64 with rows one after the other.
#[pyfunction]
#[pyo3(signature = (order, items, queries, told, callback=None))]
pub(crate) fn train<'py>(
    py: Python<'py>,
    order: Order,
    items: Given<'py>,
    queries: Option<Given<'py>>,
    told: Told,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let arrays = Arrays {
        items: items.numbers()?,
        queries: queries.as_ref().map(Given::numbers).transpose()?,
    };
    let gave = work(py, order.threads, callback.as_ref(), |desk| {
        with_material(
            &arrays,
            &Rule::Judge,
            &told,
            None,
            desk.stop(),
            |material, narrowing| order.fit(material, narrowing, desk),
        )
    })?;
    gave.into_python(py)
}

impl Order {
    fn fit(
        &self,
        material: &Material<'_>,
        narrowing: Option<&Narrowing>,
        desk: &Desk,
    ) -> Result<Gave> {
        let mut settings = self.settings.clone();
        let entry = registry::find(&self.method)?;
        let recipe: Recipe = self.prepare.parse()?;
        entry.limit_rank(
            &mut settings,
            &self.grid,
            recipe.most_dim(material.items.corpus.dim()),
        );
        entry.build(&settings)?;
        let (protocol, measures, criterion) = (
            read(self.protocol.as_ref())?,
            read_all(&self.measures)?,
            read(self.criterion.as_ref())?,
        );
        let protocol = protocol.unwrap_or_else(|| Protocol::default_for(&material.supervision));
        let (judging, criterion) =
            Judging::new(material, protocol, measures, criterion, self.seed)?;
        let kind = match read(self.holdout.as_ref())? {
            Some(kind) => kind,
            None => HoldOut::default_for(material),
        };
        let shares = (self.validation, self.test);
        let parts = Parts::draw(material, &material.askable(), kind, shares, self.seed)?;
        let study = Study {
            material,
            method: self.method.clone(),
            settings,
            recipe,
            grid: self.grid.clone(),
            spaces: read_all(&self.scores)?,
            base: read(self.base.as_ref())?,
            judging,
            criterion,
            seed: self.seed,
        };
        let mut watch = Chronicle::new(desk);
        let stop = Some(desk.stop());
        let began = Instant::now();
        let training = study.train(&parts, &mut watch, stop)?;
        let fitted = match self.refit && !parts.test.is_empty() {
            true => study.refit(&parts, &training.chosen, &mut watch, stop)?,
            false => training.fitted,
        };
        let judged = training.verdicts.as_ref().map(|verdicts| (verdicts, kind));
        let model = study.model(&training.chosen, fitted, judged, narrowing.cloned())?;
        Ok(Gave {
            model,
            chosen: training.chosen.settings,
            value: training.chosen.value,
            trials: training.chosen.trials,
            base: training.base.to_string(),
            verdicts: training.verdicts,
            sizes: [&parts.train, &parts.validation, &parts.test].map(Vec::len),
            cpu_seconds: training.cpu_seconds,
            seconds: began.elapsed().as_secs_f64(),
            phases: watch.phases,
            moments: watch.moments,
        })
    }
}

impl Gave {
    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let gave = self;
        let out = PyDict::new(py);
        let history: Vec<Bound<'_, PyDict>> = (gave.moments.iter())
            .map(|moment| {
                let line = PyDict::new(py);
                let phase = gave.phases.get(moment.phase as usize);
                line.set_item("phase", phase.map_or("", String::as_str))?;
                line.set_item("step", moment.step)?;
                line.set_item("loss", moment.loss)?;
                line.set_item("validation", moment.validation)?;
                Ok(line)
            })
            .collect::<PyResult<_>>()?;
        let trials: Vec<Bound<'_, PyDict>> = (gave.trials.into_iter())
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
            (gave.verdicts.iter().flat_map(pick))
                .map(|(measure, found)| comparison(py, &measure.to_string(), found))
                .collect()
        };
        out.set_item("model", Py::new(py, Model::new(gave.model))?)?;
        out.set_item("settings", gave.chosen)?;
        out.set_item("validation", gave.value)?;
        out.set_item("trials", trials)?;
        out.set_item("base", gave.base)?;
        out.set_item("test", rows(|v| &v.rows)?)?;
        out.set_item("seen", rows(|v| &v.seen)?)?;
        out.set_item("unseen", rows(|v| &v.unseen)?)?;
        out.set_item("sizes", gave.sizes.to_vec())?;
        out.set_item("cpu_seconds", gave.cpu_seconds)?;
        out.set_item("seconds", gave.seconds)?;
        out.set_item("history", history)?;
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
            line.set_item("needs", entry.needs)?;
            let parameters: Vec<_> = (entry.parameters)()
                .into_iter()
                .map(|p| (p.name, p.default, p.values, p.meaning))
                .collect();
            line.set_item("parameters", parameters)?;
            line.set_item("grid", entry.open_grid(&BTreeMap::new()))?;
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
