//! Quality by bytes of an item: what `metra compress` does, on arrays.

use crate::model::Model;
use crate::supervision::{Arrays, SupervisionInput};
use crate::train::{Judging, read, read_all};
use crate::vectors::{Given, Rule, Vectors};
use crate::working::{History, ProgressChannel, work};
use metra::data::Storage;
use metra::experiment::{
    CompressSettings, Compressed, CompressionResult, Experiment, NEIGHBOURS, neighbour_dataset,
};
use metra::model::Space;
use metra::{Dataset, Error, Result};
use metra_report::CompressionReport;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// What to try and how.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct CompressionOrder {
    bytes: Vec<usize>,
    rescore: usize,
    tolerance: f64,
    /// Names of methods; none for those that suit the supervision.
    methods: Option<Vec<String>>,
    prepare: String,
    base: Option<String>,
    holdout: Option<String>,
    validation: f64,
    test: f64,
    protocol: Option<String>,
    measures: Vec<String>,
    criterion: Option<String>,
    seed: u64,
    threads: Option<usize>,
    /// Whether anything says what is similar.
    supervised: bool,
}

/// A budget, the model of its best code, and of the best with rescoring both models.
type BudgetModels = (usize, Option<Model>, Option<(Model, Model)>);

/// The table as JSON and as a page, models by budget, and those that are recommended.
type Answer = (
    String,
    String,
    Vec<BudgetModels>,
    Option<(Model, Option<Model>)>,
);

/// Find the best map and code for every budget.
#[pyfunction]
#[pyo3(signature = (order, items, queries, supervision, callback=None))]
pub(crate) fn compress<'py>(
    py: Python<'py>,
    order: CompressionOrder,
    items: Given<'py>,
    queries: Option<Given<'py>>,
    supervision: SupervisionInput,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Answer> {
    let arrays = Arrays {
        items: items.numbers()?,
        queries: queries.as_ref().map(Given::numbers).transpose()?,
    };
    let (report, found) = work(py, order.threads, callback.as_ref(), |channel| {
        if order.supervised {
            let rule = Rule::Judge;
            return arrays.with_dataset(&rule, &supervision, None, channel.stop(), |data| {
                order.by_supervision(data, channel)
            });
        }
        let vectors = Vectors::read(arrays.items, &Rule::Judge)?;
        order.by_neighbours(&vectors, channel)
    })?;
    let failed = |error: String| PyRuntimeError::new_err(error);
    let json = serde_json::to_string(&report).map_err(|e| failed(e.to_string()))?;
    let page = report.html().map_err(|e| failed(e.to_string()))?;
    let own = |place: Option<usize>| place.map(|place| &found.found[place]);
    let alone = |one: &Compressed| Model::new(one.model.clone());
    let both = |one: &Compressed| Some((alone(one), Model::new(one.rescoring.clone()?)));
    let budgets = found.points.iter().map(|point| {
        let rescored = own(point.rescored).and_then(both);
        (point.budget, own(point.alone).map(alone), rescored)
    });
    let recommended = found.recommended();
    let recommended = recommended.map(|one| (alone(one), one.rescoring.clone().map(Model::new)));
    Ok((json, page, budgets.collect(), recommended))
}

impl CompressionOrder {
    fn by_supervision(
        &self,
        data: &Dataset<'_>,
        channel: &ProgressChannel,
    ) -> Result<(CompressionReport, CompressionResult)> {
        let judging = Judging {
            protocol: self.protocol.as_ref(),
            measures: &self.measures,
            criterion: self.criterion.as_ref(),
            holdout: self.holdout.as_ref(),
            shares: (self.validation, self.test),
            seed: self.seed,
        };
        let names = (self.methods.as_ref())
            .map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
        let recipe = self.prepare.parse()?;
        let methods = CompressSettings::methods(names.as_deref(), data.supervision(), &recipe)?;
        let mut experiment = judging.experiment(data, methods)?;
        experiment.base = self.base.clone();
        let (rows, dim) = (data.items().len(), data.dim());
        let words = format!("{rows} × {dim}, {}", data.supervision().describe());
        self.run(experiment, &words, channel)
    }

    fn by_neighbours(
        &self,
        vectors: &Vectors<'_>,
        channel: &ProgressChannel,
    ) -> Result<(CompressionReport, CompressionResult)> {
        if self.methods.as_ref().is_some_and(|names| !names.is_empty()) {
            return Err(Error::Unsupervised);
        }
        let corpus = vectors.corpus()?;
        let base = read::<Space>(self.base.as_ref())?.unwrap_or(Space::Cosine);
        let kept = (Storage::default(), channel.stop());
        let data = neighbour_dataset(&corpus, base, self.seed, kept)?;
        let (measures, shares) = (read_all(&self.measures)?, (self.validation, self.test));
        let experiment = Experiment::of_neighbours(&data, base, measures, shares, self.seed)?;
        let (rows, dim) = (vectors.rows()?.len(), data.dim());
        let words = format!(
            "{rows} × {dim}, no supervision: the {NEIGHBOURS} nearest of {} rows by {base} are to be found",
            data.items().len()
        );
        self.run(experiment, &words, channel)
    }

    fn run(
        &self,
        mut experiment: Experiment<'_>,
        words: &str,
        channel: &ProgressChannel,
    ) -> Result<(CompressionReport, CompressionResult)> {
        experiment.command = "metra.compress".into();
        let settings = CompressSettings {
            bytes: self.bytes.clone(),
            rescore: self.rescore,
            tolerance: self.tolerance,
        };
        let found = experiment.compress(0, &settings, &mut History::new(channel))?;
        let report = CompressionReport::new(&found, &experiment, words, self.rescore);
        Ok((report, found))
    }
}
