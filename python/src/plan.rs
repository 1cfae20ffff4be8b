//! What a vector store must hold and be asked, for the store functions in Python.

use crate::model::Model;
use crate::train::read_all;
use crate::vectors::{Given, Names, Vectors};
use crate::working::briefly;
use metra::data::{Batch, Corpus};
use metra::model::{PlanConstraints, Side};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;

/// How a store serves a model's order: what it holds, what it is asked, what it compares by.
#[pyclass(frozen, module = "metra")]
pub(crate) struct Plan {
    pub(crate) plan: metra::model::Plan,
    pub(crate) model: Py<Model>,
}

/// The best exact plan for a store that compares by these distances (l2, ip, cosine).
#[pyfunction]
#[pyo3(signature = (model, distances, keep_items=false, most_dimensions=None, way=None))]
pub(crate) fn plan(
    py: Python<'_>,
    model: Py<Model>,
    distances: Vec<String>,
    keep_items: bool,
    most_dimensions: Option<usize>,
    way: Option<&str>,
) -> PyResult<Plan> {
    let learned = &model.get().0;
    let plan = briefly(py, || {
        let constraints = PlanConstraints {
            distances: read_all(&distances)?,
            keep_items,
            most_dimensions,
            way: way.map(str::parse).transpose()?,
            ..PlanConstraints::default()
        };
        metra::model::Plan::choose_for_model(learned, &constraints)
    })?;
    Ok(Plan { plan, model })
}

/// The plan of a model that a record names.
#[pyfunction]
pub(crate) fn find_plan(
    py: Python<'_>,
    model: Py<Model>,
    way: &str,
    distance: &str,
    dimension: usize,
) -> PyResult<Plan> {
    let learned = &model.get().0;
    let plan = briefly(py, || {
        metra::model::Plan::find(learned, way.parse()?, distance.parse()?, dimension)
    })?;
    Ok(Plan { plan, model })
}

#[pymethods]
impl Plan {
    /// How it is served: mapped, query-only, extra-coordinate or rescaled.
    #[getter]
    fn way(&self) -> String {
        self.plan.way().to_string()
    }

    /// What the store compares by: l2, ip or cosine.
    #[getter]
    fn distance(&self) -> String {
        self.plan.distance().to_string()
    }

    /// Numbers in a stored vector and in what the store is asked.
    #[getter]
    fn dimension(&self) -> usize {
        self.plan.item_dim()
    }

    /// Whether the store keeps its vectors as they are.
    #[getter]
    fn items_stay(&self) -> bool {
        self.plan.items_stay()
    }

    /// Where stored vectors are signs alone, what a sign stands for: plus or minus this in every dimension; None
    /// otherwise.
    #[getter]
    fn sign_scale(&self) -> Option<f32> {
        self.plan.sign_scale()
    }

    /// What was taken from mapped vectors to keep their digits; to be kept beside what is stored.
    #[getter]
    fn centre<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f32>>> {
        self.plan
            .centre()
            .map(|centre| PyArray1::from_slice(py, centre))
    }

    /// The same plan with mapped vectors centred on the mean of these items, where that is free.
    fn centred_on(&self, py: Python<'_>, items: Given<'_>) -> PyResult<Plan> {
        let (model, numbers) = (self.model.get(), items.numbers()?);
        let plan = briefly(py, || {
            let vectors = Vectors::read(numbers, &model.rule())?;
            // What is not finite is named by the corpus.
            vectors.corpus()?.len();
            self.plan.clone().centred_on(&Batch::new(vectors.rows()?))
        })?;
        Ok(Plan {
            plan,
            model: self.model.clone_ref(py),
        })
    }

    /// The same plan with this centre, as an earlier plan had it.
    fn with_centre(&self, py: Python<'_>, centre: Vec<f32>) -> PyResult<Plan> {
        let plan = briefly(py, || self.plan.clone().with_centre(centre))?;
        Ok(Plan {
            plan,
            model: self.model.clone_ref(py),
        })
    }

    /// What to store.
    #[pyo3(signature = (x, cameras=None))]
    fn map_items<'py>(
        &self,
        py: Python<'py>,
        x: Given<'py>,
        cameras: Option<Names>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let cameras = cameras.as_ref();
        (self.model.get()).mapped_by(py, &self.plan, &x, Side::Item, cameras)
    }

    /// What to ask.
    #[pyo3(signature = (x, cameras=None))]
    fn map_queries<'py>(
        &self,
        py: Python<'py>,
        x: Given<'py>,
        cameras: Option<Names>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let cameras = cameras.as_ref();
        (self.model.get()).mapped_by(py, &self.plan, &x, Side::Query, cameras)
    }

    /// In words: what to store, what to ask, what it costs.
    fn describe(&self) -> String {
        self.plan.describe()
    }

    fn __repr__(&self) -> String {
        let (way, distance, dim) = (self.way(), self.distance(), self.dimension());
        format!("Plan(way={way:?}, distance={distance:?}, dimension={dim})")
    }
}
