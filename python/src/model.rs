//! A learned metric: mapping, distances, search, and its file.

use crate::errors::{from_stores, raised};
use crate::vectors::{Given, Names, Numbers, Rule, Vectors};
use crate::working::{work, work_on};
use metra::data::{Batch, Corpus, Groups, Storage};
use metra::evaluate::dissimilarities_between;
use metra::internal::Interruptible;
use metra::linalg::RowBuf;
use metra::model::{Chain, Embedding, Map, Side, embed_corpus, for_each_embedded};
use metra::search::top_k;
use metra::{Error, Result};
use metra_stores::export::Export;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Queries and items whose dissimilarities are worked out at once: a fraction of a second's worth.
const QUERIES: usize = 16;
const ITEMS: usize = 4096;

/// A learned metric with how it came about. Models are what files hold and what estimators learn.
#[pyclass(frozen, module = "metra")]
pub(crate) struct Model(pub(crate) metra::model::Model);

impl Model {
    pub(crate) fn new(model: metra::model::Model) -> Self {
        Model(model)
    }

    pub(crate) fn chain(&self) -> &Chain {
        &self.0.chain
    }

    pub(crate) fn rule(&self) -> Rule<'_> {
        Rule::Apply(self.0.narrowing.as_ref())
    }

    /// Groups numbered as the model knows them, where it needs them.
    pub(crate) fn groups(&self, cameras: Option<&Names>) -> Result<Option<Groups>> {
        self.numbered(cameras.map(|cameras| Groups::new(&cameras.0)))
    }

    /// The same of groups.
    pub(crate) fn numbered(&self, groups: Option<Groups>) -> Result<Option<Groups>> {
        match (self.0.chain.group_names(), groups) {
            (None, _) => Ok(None),
            (Some(names), Some(groups)) => groups.renumbered(names).map(Some),
            (Some(names), None) => {
                let names = names.join(", ");
                let expected = format!("given: the model subtracts the mean of each ({names})");
                Err(Error::parameter("cameras", expected, "absent"))
            }
        }
    }

    /// Rows as an embedding maps them, until `stop` is set.
    fn embedded(
        &self,
        embedding: &dyn Embedding,
        numbers: Numbers<'_>,
        (side, cameras): (Side, Option<&Names>),
        stop: &AtomicBool,
    ) -> Result<RowBuf> {
        let vectors = Vectors::read(numbers, &self.rule())?;
        let (corpus, groups) = (vectors.corpus()?, self.groups(cameras)?);
        let corpus = Interruptible::new(&corpus, stop);
        let mut all = RowBuf::empty(embedding.output_dim());
        for_each_embedded(embedding, side, &corpus, groups.as_ref(), &mut |rows| {
            all.extend(rows.rows());
            Ok(())
        })?;
        Ok(all)
    }

    /// Map rows by this model's map, or by a plan's.
    pub(crate) fn mapped_by<'py>(
        &self,
        py: Python<'py>,
        embedding: &dyn Embedding,
        given: &Given<'py>,
        side: Side,
        cameras: Option<&Names>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let numbers = given.numbers()?;
        let out = work_on(py, numbers.count(), |stop| {
            self.embedded(embedding, numbers, (side, cameras), stop)
        })?;
        let shape = [out.len(), out.dim()];
        PyArray1::from_vec(py, out.into_values()).reshape(shape)
    }
}

#[pymethods]
impl Model {
    /// Read a model file.
    #[classmethod]
    fn load(_: &Bound<'_, PyType>, path: PathBuf) -> PyResult<Self> {
        metra::model::Model::load(&path).map(Model).map_err(raised)
    }

    /// Read a model from the bytes of its file.
    #[classmethod]
    fn from_bytes(_: &Bound<'_, PyType>, data: &[u8]) -> PyResult<Self> {
        metra::model::Model::from_bytes(data)
            .map(Model)
            .map_err(raised)
    }

    /// Write the model to a file.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        self.0.save(&path).map_err(raised)
    }

    /// The bytes of the model's file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.0.to_bytes().map_err(raised)?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let maker = py.get_type::<Model>().getattr("from_bytes")?;
        Ok((maker, (self.to_bytes(py)?,)))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        (other.cast::<Model>()).is_ok_and(|other| other.get().0 == self.0)
    }

    fn __repr__(&self) -> String {
        format!(
            "Model(method={:?}, input_dim={}, output_dim={}, score={:?})",
            self.0.origin.method,
            self.input_dim(),
            self.output_dim(),
            self.score()
        )
    }

    /// Name of the learner.
    #[getter]
    fn method(&self) -> &str {
        &self.0.origin.method
    }

    /// All parameters of the learner, as text.
    #[getter]
    fn parameters(&self) -> BTreeMap<String, String> {
        self.0.origin.parameters.clone()
    }

    /// Preparation before the map.
    #[getter]
    fn prepare(&self) -> &str {
        &self.0.origin.prepare
    }

    /// Seed of all draws.
    #[getter]
    fn seed(&self) -> u64 {
        self.0.origin.seed
    }

    /// What the learner reported.
    #[getter]
    fn facts(&self) -> BTreeMap<String, f64> {
        self.0.origin.facts.clone()
    }

    /// How mapped vectors are compared: euclid, cosine, dot or blocks:SIZE.
    #[getter]
    fn score(&self) -> String {
        Embedding::space(&self.0.chain).to_string()
    }

    /// Numbers in a vector: in an item, where queries are vectors of another model.
    #[getter]
    fn input_dim(&self) -> usize {
        Embedding::input_dim(&self.0.chain)
    }

    /// Numbers in a query.
    #[getter]
    fn query_input_dim(&self) -> usize {
        self.0.query_input_dim()
    }

    /// Whether queries are vectors of another model than items.
    #[getter]
    fn two_spaces(&self) -> bool {
        self.0.chain.query_preprocessing().is_some()
    }

    /// Numbers in a mapped vector.
    #[getter]
    fn output_dim(&self) -> usize {
        self.0.chain.output_dim()
    }

    /// How items are held in fewer bytes than f32 takes: f16, int8, int8-columns, bits, hamming or pq; None as f32.
    #[getter]
    fn code(&self) -> Option<&'static str> {
        self.0.chain.code().map(|code| code.name())
    }

    /// Bytes of an item: of its code, or of its mapped vector in f32.
    #[getter]
    fn item_bytes(&self) -> usize {
        self.0.chain.item_bytes()
    }

    /// Names of the numbers in a mapped vector, where they have some: the attributes.
    #[getter]
    fn outputs(&self) -> Vec<String> {
        self.0.outputs.clone()
    }

    /// Digests over training vectors and supervision.
    #[getter]
    fn fingerprints(&self) -> (String, String) {
        let origin = &self.0.origin;
        (origin.data.clone(), origin.supervision.clone())
    }

    /// Groups (cameras) whose means the preparation subtracts, or None.
    #[getter]
    fn cameras(&self) -> Option<Vec<String>> {
        self.0.chain.group_names().map(<[String]>::to_vec)
    }

    /// What the held-out test part said: measure to base, learned, low and high; None without one.
    #[getter]
    fn held_out<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(held_out) = &self.0.origin.held_out else {
            return Ok(None);
        };
        let out = PyDict::new(py);
        out.set_item("kind", &held_out.kind)?;
        out.set_item("queries", held_out.queries)?;
        for (name, gains) in [
            ("measures", &held_out.measures),
            ("seen_items", &held_out.seen_items),
            ("unseen_items", &held_out.unseen_items),
        ] {
            let measures = PyDict::new(py);
            for (measure, gain) in gains {
                let line = PyDict::new(py);
                line.set_item("base", gain.base)?;
                line.set_item("learned", gain.learned)?;
                line.set_item("low", gain.low)?;
                line.set_item("high", gain.high)?;
                measures.set_item(measure, line)?;
            }
            if name == "measures" || !gains.is_empty() {
                out.set_item(name, measures)?;
            }
        }
        Ok(Some(out))
    }

    /// Where same ends: threshold, rates with an interval, and pairs it was measured on; None
    /// before it was calibrated.
    #[getter]
    fn decision<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(decision) = &self.0.decision else {
            return Ok(None);
        };
        let out = PyDict::new(py);
        out.set_item("threshold", decision.threshold)?;
        out.set_item("asked", decision.asked)?;
        out.set_item("false_match_rate", decision.false_match_rate)?;
        out.set_item("true_match_rate", decision.true_match_rate)?;
        out.set_item("low", decision.low)?;
        out.set_item("high", decision.high)?;
        out.set_item("same", decision.same)?;
        out.set_item("different", decision.different)?;
        Ok(Some(out))
    }

    /// The matrix of the whole map, a linear preparation included, and what is subtracted after it: of items,
    /// and of queries where they have a map of their own. None where one matrix does not say all: without a
    /// map, for kernels, and after a preparation that is not linear.
    #[pyo3(signature = (queries=false))]
    fn components<'py>(&self, py: Python<'py>, queries: bool) -> PyResult<Option<Matrix<'py>>> {
        let chain = self.chain();
        let side = match queries {
            true => Side::Query,
            false => Side::Item,
        };
        let map = match chain.map() {
            Map::Identity if chain.steps().is_empty() => None,
            // Its vectors hold squares beside what the matrix gives.
            Map::Indefinite(map) if chain.steps().is_empty() => Some(map.map().clone()),
            _ => (Export::embedding(&self.0, side))
                .and_then(|e| e.matrix("an array"))
                .ok(),
        };
        let Some(map) = map else { return Ok(None) };
        let weights = map.weights();
        let shape = [weights.len(), weights.dim()];
        let offset = map.offset().map(|b| PyArray1::from_slice(py, b));
        let values = PyArray1::from_slice(py, weights.values());
        Ok(Some((values.reshape(shape)?, offset)))
    }

    /// What the differences of two vectors are multiplied by, the factor of their narrowing included; an error
    /// that says why where that is no matrix.
    fn linear_part<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        // A shift of all vectors changes no difference.
        let scale = self
            .0
            .narrowing
            .as_ref()
            .map_or(1.0, |narrowing| narrowing.scale);
        let mut unshifted = self.0.clone();
        unshifted.narrowing = None;
        let export = Export::embedding(&unshifted, Side::Item);
        let map = export.and_then(|export| export.matrix("a Mahalanobis matrix"));
        let map = map.map_err(|error| raised(from_stores(error)))?;
        let weights = map.weights();
        let shape = [weights.len(), weights.dim()];
        let values = weights
            .values()
            .iter()
            .map(|w| (f64::from(*w) * scale) as f32);
        PyArray1::from_vec(py, values.collect()).reshape(shape)
    }

    /// Whether queries and items have a map each.
    #[getter]
    fn two_sided(&self) -> bool {
        self.0.chain.has_two_sides()
    }

    /// Map vectors, where queries and items have the same map.
    #[pyo3(signature = (x, cameras=None))]
    fn transform<'py>(
        &self,
        py: Python<'py>,
        x: Given<'py>,
        cameras: Option<Names>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        if self.two_sided() {
            let problem = "queries and items are mapped differently: call transform_queries or transform_items";
            return Err(raised(Error::Data(problem.into())));
        }
        self.transform_items(py, x, cameras)
    }

    /// Map items.
    #[pyo3(signature = (x, cameras=None))]
    fn transform_items<'py>(
        &self,
        py: Python<'py>,
        x: Given<'py>,
        cameras: Option<Names>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        self.mapped_by(py, self.chain(), &x, Side::Item, cameras.as_ref())
    }

    /// The codes of items, of a model that holds them so: ``item_bytes`` bytes a row. Bits are packed as
    /// ``numpy.packbits`` packs them; bytes of ``int8`` are signed (``.view("int8")``), followed by the scale of the
    /// row as a little-endian float32 where rows have one; ``f16`` are little-endian halves.
    #[pyo3(signature = (x, cameras=None))]
    fn encode_items<'py>(
        &self,
        py: Python<'py>,
        x: Given<'py>,
        cameras: Option<Names>,
    ) -> PyResult<Bound<'py, PyArray2<u8>>> {
        let numbers = x.numbers()?;
        let codes = work_on(py, numbers.count(), |stop| {
            let Some(code) = self.chain().code() else {
                let expected = "one that items are held in (code=... of the estimator)";
                return Err(Error::parameter("the model's code", expected, "none"));
            };
            let uncoded = self.chain().clone().with_code(None)?;
            let items = (Side::Item, cameras.as_ref());
            let mapped = self.embedded(&uncoded, numbers, items, stop)?;
            let mut codes = Vec::new();
            code.encode(0, Embedding::space(&uncoded), mapped.rows(), &mut codes)?;
            Ok(codes)
        })?;
        let bytes = self.item_bytes();
        let shape = [codes.len() / bytes.max(1), bytes];
        PyArray1::from_vec(py, codes).reshape(shape)
    }

    /// The same model over the first dimensions of mapped vectors alone, for maps whose first dimensions serve by
    /// themselves (principal directions, ``nested`` training). What was measured of the whole is left out.
    fn shortened(&self, dimensions: usize) -> PyResult<Self> {
        let short = self.0.shortened(dimensions).map_err(raised)?;
        Ok(Model(short))
    }

    /// Map queries.
    #[pyo3(signature = (x, cameras=None))]
    fn transform_queries<'py>(
        &self,
        py: Python<'py>,
        x: Given<'py>,
        cameras: Option<Names>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        self.mapped_by(py, self.chain(), &x, Side::Query, cameras.as_ref())
    }

    /// Dissimilarity of every query to every item; smaller is nearer.
    #[pyo3(signature = (queries, items, cameras=None, item_cameras=None))]
    fn dissimilarity<'py>(
        &self,
        py: Python<'py>,
        queries: Given<'py>,
        items: Given<'py>,
        cameras: Option<Names>,
        item_cameras: Option<Names>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let (left, right) = (queries.numbers()?, items.numbers()?);
        let products = (left.count() / left.dim().max(1)).saturating_mul(right.count());
        let (values, shape) = work_on(py, products, |stop| {
            let (asked, searched) = (
                (Side::Query, cameras.as_ref()),
                (Side::Item, item_cameras.as_ref()),
            );
            let left = self.embedded(self.chain(), left, asked, stop)?;
            let right = self.embedded(self.chain(), right, searched, stop)?;
            let (left, right) = (left.rows(), right.rows());
            let mut values = vec![0.0; left.len() * right.len()];
            if right.is_empty() {
                return Ok((values, [left.len(), right.len()]));
            }
            // What is mapped already is compared as it is.
            let compare = Chain::identity(right.dim(), Embedding::space(self.chain()));
            let some = values.par_chunks_mut(right.len() * QUERIES).enumerate();
            some.try_for_each_init(Vec::new, |found, (place, out)| {
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                let first = place * QUERIES;
                let queries = Batch::new(left.slice(first, (first + QUERIES).min(left.len())));
                for begin in (0..right.len()).step_by(ITEMS) {
                    let end = (begin + ITEMS).min(right.len());
                    let items = Batch::new(right.slice(begin, end));
                    compare.dissimilarity(&queries, &items, found)?;
                    let rows = out.chunks_exact_mut(right.len());
                    for (row, values) in rows.zip(found.chunks_exact(end - begin)) {
                        row[begin..end].copy_from_slice(values);
                    }
                }
                Ok(())
            })?;
            Ok((values, [left.len(), right.len()]))
        })?;
        PyArray1::from_vec(py, values).reshape(shape)
    }

    /// Dissimilarity of the first row of `a` to the first of `b`, of the second to the second, ….
    #[pyo3(signature = (a, b, cameras=None, item_cameras=None))]
    fn pair_dissimilarity<'py>(
        &self,
        py: Python<'py>,
        a: Given<'py>,
        b: Given<'py>,
        cameras: Option<Names>,
        item_cameras: Option<Names>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (left, right) = (a.numbers()?, b.numbers()?);
        let values = work_on(py, left.count(), |stop| {
            let left = Vectors::read(left, &self.rule())?;
            let right = Vectors::read(right, &self.rule())?;
            let (left, right) = (left.corpus()?, right.corpus()?);
            let (left, right) = (
                Interruptible::new(&left, stop),
                Interruptible::new(&right, stop),
            );
            let rows = left.len();
            if right.len() != rows {
                return Err(Error::shape("rows of the second array", rows, right.len()));
            }
            let (groups, item_groups) = (
                self.groups(cameras.as_ref())?,
                self.groups(item_cameras.as_ref())?,
            );
            let pairs: Vec<[u64; 2]> = (0..rows).map(|row| [row, row]).collect();
            let queries = (&left as &dyn Corpus, groups.as_ref());
            let items = (&right as &dyn Corpus, item_groups.as_ref());
            dissimilarities_between(self.chain(), queries, items, &pairs)
        })?;
        Ok(PyArray1::from_vec(py, values))
    }

    /// The nearest items of every query: their row numbers and dissimilarities, nearest first.
    #[pyo3(signature = (queries, items, k, cameras=None, item_cameras=None, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of a Python method")]
    fn search<'py>(
        &self,
        py: Python<'py>,
        queries: Given<'py>,
        items: Given<'py>,
        k: usize,
        cameras: Option<Names>,
        item_cameras: Option<Names>,
        threads: Option<usize>,
    ) -> PyResult<Found<'py>> {
        let (left, right) = (queries.numbers()?, items.numbers()?);
        let (found, query_count) = work(py, threads, None, |channel| {
            let stop = channel.stop();
            let storage = Storage::default();
            let embed = |numbers, side, cameras: Option<&Names>| {
                let vectors = Vectors::read(numbers, &self.rule())?;
                let (corpus, groups) = (vectors.corpus()?, self.groups(cameras)?);
                let corpus = Interruptible::new(&corpus, stop);
                embed_corpus(self.chain(), side, &corpus, groups.as_ref(), &storage)
            };
            let queries = embed(left, Side::Query, cameras.as_ref())?;
            let items = embed(right, Side::Item, item_cameras.as_ref())?;
            let space = Embedding::space(self.chain());
            let asked = Interruptible::new(queries.corpus(), stop);
            let searched = Interruptible::new(items.corpus(), stop);
            let found = top_k(space, &asked, &searched, k, false)?;
            Ok((found, queries.corpus().len() as usize))
        })?;
        let width = found.k;
        let ids = found.ids.iter().map(|id| *id as i64).collect();
        Ok((
            PyArray1::from_vec(py, ids).reshape([query_count, width])?,
            PyArray1::from_vec(py, found.scores).reshape([query_count, width])?,
        ))
    }
}

/// Row numbers of items and their dissimilarities, one row a query.
type Found<'py> = (Bound<'py, PyArray2<i64>>, Bound<'py, PyArray2<f32>>);

/// A matrix with what is subtracted after it.
type Matrix<'py> = (Bound<'py, PyArray2<f32>>, Option<Bound<'py, PyArray1<f32>>>);
