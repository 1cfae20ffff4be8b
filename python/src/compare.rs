//! Comparisons of methods on arrays, and their report.

use crate::errors::raised;
use crate::supervision::{Arrays, SupervisionInput};
use crate::train::{Grid, read, read_all};
use crate::vectors::{Given, Rule};
use crate::working::{ProgressChannel, ProgressUpdate, work};
use metra::experiment::compare::{Costs, Event, Log, Results};
use metra::experiment::{
    ComparedMethod, EvaluationSettings, Experiment, HoldOut, Parts, Protocol, folds,
};
use metra::pipeline::registry;
use metra::{Dataset, Result};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What to compare and how.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Contest {
    name: String,
    /// Names of methods, or none for all that fit.
    named: Vec<String>,
    /// Methods with settings of their own.
    lines: Vec<Line>,
    prepare: String,
    base: Option<String>,
    holdout: Option<String>,
    validation: f64,
    test: f64,
    draws: u64,
    folds: Option<usize>,
    protocol: Option<String>,
    repeats: u32,
    measures: Vec<String>,
    criterion: Option<String>,
    trials: usize,
    halving: Option<u32>,
    seed: u64,
    log: Option<PathBuf>,
    threads: Option<usize>,
}

/// One method of the caller's own.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Line {
    name: String,
    method: String,
    settings: BTreeMap<String, String>,
    grid: Option<Grid>,
    prepare: String,
    scores: Vec<String>,
}

impl Line {
    fn method(&self) -> Result<ComparedMethod> {
        let entry = registry::find(&self.method)?;
        let grid = match &self.grid {
            Some(grid) => grid.clone(),
            None => entry.open_grid(&self.settings),
        };
        Ok(ComparedMethod {
            settings: self.settings.clone(),
            grid,
            spaces: read_all(&self.scores)?,
            ..ComparedMethod::usual(self.name.clone(), &self.method, self.prepare.parse()?)?
        })
    }
}

/// Compare methods; gives results and costs as JSON.
#[pyfunction]
#[pyo3(signature = (contest, items, queries, supervision, callback=None))]
pub(crate) fn compare<'py>(
    py: Python<'py>,
    contest: Contest,
    items: Given<'py>,
    queries: Option<Given<'py>>,
    supervision: SupervisionInput,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<(String, String)> {
    let arrays = Arrays {
        items: items.numbers()?,
        queries: queries.as_ref().map(Given::numbers).transpose()?,
    };
    // Trials run on threads of their own, one thread each.
    let threads = contest.threads.unwrap_or_else(rayon::current_num_threads);
    let (results, costs) = work(py, Some(threads), callback.as_ref(), |channel| {
        arrays.with_dataset(&Rule::Judge, &supervision, None, channel.stop(), |data| {
            contest.run(data, threads, channel)
        })
    })?;
    let costs = costs.to_json().map_err(raised)?;
    Ok((results.to_json().map_err(raised)?, costs))
}

impl Contest {
    fn run(
        &self,
        data: &Dataset<'_>,
        threads: usize,
        channel: &ProgressChannel,
    ) -> Result<(Results, Costs)> {
        let names = |unit: u64| unit.to_string();
        let experiment = self.experiment(data, &names)?;
        let mut log = match &self.log {
            Some(path) => Log::open(path)?,
            None => Log::in_memory(),
        };
        let (mut done, mut total) = (0, 0);
        let mut follow = |event: Event| {
            let phase = match event {
                Event::Begin { total: all, known } => {
                    (done, total) = (known, all);
                    String::new()
                }
                Event::Done { what, .. } => {
                    done += 1;
                    what
                }
                _ => return,
            };
            channel.tell(ProgressUpdate {
                phase,
                step: done as u64,
                steps: total as u64,
                loss: None,
                validation: None,
            });
        };
        let results = experiment.run(&mut log, threads, &mut follow)?;
        let costs = experiment.costs(&log, threads)?;
        Ok((results, costs))
    }

    fn experiment<'m>(
        &self,
        data: &'m Dataset<'m>,
        names: &'m (dyn Fn(u64) -> String + Sync),
    ) -> Result<Experiment<'m>> {
        let holdout = match read(self.holdout.as_ref())? {
            Some(kind) => kind,
            None => HoldOut::default_for(data),
        };
        let protocol = match read(self.protocol.as_ref())? {
            Some(Protocol::SingleShot { .. }) => Protocol::SingleShot {
                repeats: self.repeats,
            },
            Some(protocol) => protocol,
            None => Protocol::default_for(data.supervision()),
        };
        let measures = read_all(&self.measures)?;
        let criterion = read(self.criterion.as_ref())?;
        let (settings, criterion) =
            EvaluationSettings::new(data, protocol, measures, criterion, self.seed)?;
        let prepare = self.prepare.parse()?;
        let mut methods = match self.named.is_empty() && !self.lines.is_empty() {
            // Nobody asked for all methods: only what learns nothing joins.
            true => {
                let bases = data.baselines().iter();
                let bases: Vec<String> = bases.map(|base| (*base).to_owned()).collect();
                ComparedMethod::contenders(&bases, data, &prepare)?
            }
            false => ComparedMethod::contenders(&self.named, data, &prepare)?,
        };
        for line in &self.lines {
            let method = line.method()?;
            methods.retain(|m| m.name != method.name);
            methods.push(method);
        }
        let splits = (self.splits(data, holdout)?, holdout);
        let settings = (settings, criterion);
        let mut experiment = Experiment::new(data, splits, settings, methods, self.seed)?;
        let (rows, dim) = (data.items().len(), data.dim());
        experiment.data.text = format!("{rows} × {dim}, {}", data.supervision().describe());
        Ok(Experiment {
            name: self.name.clone(),
            command: "metra.compare".into(),
            folds: self.folds.is_some(),
            base: self.base.clone(),
            budget: self.trials,
            halving: self.halving,
            names,
            ..experiment
        })
    }

    fn splits(&self, data: &Dataset<'_>, kind: HoldOut) -> Result<Vec<(Parts, u64)>> {
        let units = data.units();
        if let Some(count) = self.folds {
            let dealt = folds(data, &units, kind, count, self.seed)?.into_iter();
            let inner = |(rest, test)| {
                let parts = Parts::within(data, rest, test, kind, self.validation, self.seed)?;
                Ok((parts, self.seed))
            };
            return dealt.map(inner).collect();
        }
        (0..self.draws)
            .map(|draw| {
                let (seed, shares) = (self.seed + draw, (self.validation, self.test));
                let parts = Parts::draw(data, &units, kind, shares, seed)?;
                Ok((parts, seed))
            })
            .collect()
    }
}

/// The report of results as one HTML page.
#[pyfunction]
#[pyo3(signature = (results, costs=None))]
pub(crate) fn report_html(results: &str, costs: Option<&str>) -> PyResult<String> {
    let results = Results::from_json(results).map_err(raised)?;
    let costs = costs.map(Costs::from_json).transpose().map_err(raised)?;
    metra_report::html(&results, costs.as_ref())
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
