//! A data set, to train on or to evaluate on: vectors of items, vectors of queries if they are
//! separate, groups (cameras, sessions) and supervision.
//!
//! ```
//! use metra::Dataset;
//! use metra::linalg::RowBuf;
//! use metra::supervision::Labels;
//!
//! let vectors = RowBuf::from_values(vec![0.0, 1.0, 0.1, 0.9, 1.0, 0.0, 0.9, 0.2], 2)?;
//! let labels = Labels::from_names(&["cat", "cat", "dog", "dog"])?;
//! let data = Dataset::builder(vectors).labels(labels).build()?;
//! assert_eq!((data.items().len(), data.dim()), (4, 2));
//! # Ok::<(), metra::Error>(())
//! ```
//!
//! The units into which a data set can be split are its rows, or its queries where there are relevance
//! judgements.

mod builder;
mod select;

pub use builder::DatasetBuilder;

use crate::data::{Corpus, CorpusRef, Groups, IntoCorpus, Narrowing, Storage, fingerprint};
use crate::execute::digest;
use crate::supervision::{Labels, Orderings, Relevance, Supervision, SupervisionKind, Tree};
use crate::{Error, Result};
use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Vectors of items, of queries where they are others, their groups, and supervision.
pub struct Dataset<'a> {
    items: GroupedVectors<'a>,
    queries: Option<GroupedVectors<'a>>,
    supervision: Cow<'a, Supervision>,
    /// What is known of the rows' classes beside the supervision: to split and to evaluate by, and for methods
    /// that combine several kinds.
    class_supervision: Vec<Supervision>,
    narrowing: Option<Narrowing>,
    /// Whether queries and items are vectors of two models.
    two_spaces: bool,
    /// Dimensions of the vectors of a row, one behind the other; nothing where a row is one vector.
    vector_dims: Vec<usize>,
    /// Dimension of the queries where vectors of both sides are stacked: queries in the first coordinates, items in those
    /// behind them.
    stacked: Option<usize>,
    storage: Storage,
    stop: Option<&'a AtomicBool>,
    fingerprint: OnceLock<String>,
}

/// Vectors with the group of each, where known.
struct GroupedVectors<'a> {
    corpus: CorpusRef<'a>,
    groups: Option<Cow<'a, Groups>>,
}

impl<'a> Dataset<'a> {
    /// Items that are their own queries.
    pub fn new(items: impl IntoCorpus<'a>, supervision: &'a Supervision) -> Result<Self> {
        Self::assemble(items.into_corpus()?, None, Cow::Borrowed(supervision))
    }

    /// Items and queries in different corpora, which may be of different dimensions.
    pub fn between(
        queries: impl IntoCorpus<'a>,
        items: impl IntoCorpus<'a>,
        supervision: &'a Supervision,
    ) -> Result<Self> {
        let (items, queries) = (items.into_corpus()?, queries.into_corpus()?);
        Self::assemble(items, Some(queries), Cow::Borrowed(supervision))
    }

    fn assemble(
        items: CorpusRef<'a>,
        queries: Option<CorpusRef<'a>>,
        supervision: Cow<'a, Supervision>,
    ) -> Result<Self> {
        if supervision.items() != items.len() {
            return Err(Error::shape(
                "items the supervision speaks of",
                items.len(),
                supervision.items(),
            ));
        }
        let query_count = queries
            .as_ref()
            .map_or(items.len(), |queries| queries.len());
        if supervision.queries() != query_count {
            let found = supervision.queries();
            return Err(Error::shape(
                "queries the supervision speaks of",
                query_count,
                found,
            ));
        }
        if supervision.within() != queries.is_none() {
            let expected = match supervision.within() {
                true => "one (the supervision is within it)",
                false => "two",
            };
            let found = if queries.is_none() { "one" } else { "two" };
            return Err(Error::shape("corpora", expected, found));
        }
        if items.is_empty() || query_count == 0 {
            return Err(Error::shape("rows to learn from", "at least 1", 0));
        }
        // Preprocessing may bring both sides to one dimension, which makes no one space of them.
        let two_spaces = queries
            .as_ref()
            .is_some_and(|queries| queries.dim() != items.dim());
        let plain = |corpus| GroupedVectors {
            corpus,
            groups: None,
        };
        Ok(Dataset {
            items: plain(items),
            queries: queries.map(plain),
            supervision,
            class_supervision: Vec::new(),
            narrowing: None,
            two_spaces,
            vector_dims: Vec::new(),
            stacked: None,
            storage: Storage::default(),
            stop: None,
            fingerprint: OnceLock::new(),
        })
    }

    /// The items.
    pub fn items(&self) -> &(dyn Corpus + 'a) {
        &*self.items.corpus
    }

    /// The queries: another corpus, or the items themselves.
    pub fn queries(&self) -> &(dyn Corpus + 'a) {
        &*self.queries.as_ref().unwrap_or(&self.items).corpus
    }

    /// Whether queries are another corpus than items.
    pub fn has_separate_queries(&self) -> bool {
        self.queries.is_some()
    }

    /// Groups of the items, where known.
    pub(crate) fn item_groups(&self) -> Option<&Groups> {
        self.items.groups.as_deref()
    }

    /// Groups of the queries, where known.
    pub fn query_groups(&self) -> Option<&Groups> {
        let queries = self.queries.as_ref().unwrap_or(&self.items);
        queries.groups.as_deref()
    }

    /// The supervision.
    pub fn supervision(&self) -> &Supervision {
        &self.supervision
    }

    /// Dimension of the vectors: of the items, where queries have another one.
    pub fn dim(&self) -> usize {
        self.items.corpus.dim()
    }

    /// Whether queries and items are vectors of two models, which nothing can compare before it has learned how: where
    /// their dimensions differ, or where that was said.
    pub fn has_two_spaces(&self) -> bool {
        self.two_spaces
    }

    /// Dimensions of the vectors of a row, where it is several of them; nothing where it is one.
    pub fn vector_dims(&self) -> &[usize] {
        &self.vector_dims
    }

    /// The same data as rows of vectors of these dimensions.
    pub(crate) fn with_vector_dims(mut self, vector_dims: &[usize]) -> Self {
        self.vector_dims = vector_dims.to_vec();
        self
    }

    /// The dimension of queries and items, or an error where they are vectors of two models; `needed_by` says what
    /// compares them as they are.
    pub fn one_space(&self, needed_by: &str) -> Result<usize> {
        match self.has_two_spaces() {
            false => Ok(self.dim()),
            true => Err(Error::Data(format!(
                "{needed_by} compares vectors as they are, but queries ({} dimensions) and items ({} dimensions) are of \
                 two models",
                self.queries().dim(),
                self.dim()
            ))),
        }
    }

    /// How f64 input became f32, where that needed care.
    pub fn narrowing(&self) -> Option<&Narrowing> {
        self.narrowing.as_ref()
    }

    /// A digest over the values of the items, worked out once.
    pub fn fingerprint(&self) -> Result<&str> {
        if let Some(known) = self.fingerprint.get() {
            return Ok(known);
        }
        let items = self.items();
        let found = match items.pass_executor() {
            Some(_) => digest(items)?,
            None => fingerprint(items)?,
        };
        Ok(self.fingerprint.get_or_init(|| found))
    }

    /// A digest over all vectors and how they are meant: what a result that is kept for later depends on beside the
    /// supervision.
    pub(crate) fn vectors_key(&self) -> Result<String> {
        let items = self.fingerprint()?;
        let Some(queries) = &self.queries else {
            return Ok(format!("{items} {:?}", self.vector_dims));
        };
        let queries = fingerprint(&*queries.corpus)?;
        Ok(format!(
            "{items} {queries} {} {:?}",
            self.two_spaces, self.vector_dims
        ))
    }

    /// Dimension of the queries where vectors of both sides are stacked.
    pub(crate) fn stacked(&self) -> Option<usize> {
        self.stacked
    }

    /// The same data, whose vectors are stacked behind those of queries of this dimension.
    pub(crate) fn with_stacked(mut self, queries: usize) -> Self {
        self.stacked = Some(queries);
        self
    }

    /// How much memory derived vectors may take.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The relevance that the supervision implies, or an error that says what a method needs.
    pub fn relevance(&self, method: &str) -> Result<&dyn Relevance> {
        let needs = || SupervisionKind::words(SupervisionKind::RELEVANCE);
        (self.supervision.relevance()).ok_or_else(|| self.unusable(method, &needs()))
    }

    /// The labels that a method learns from, or an error that says that it needs them.
    pub(crate) fn training_labels(&self, method: &str) -> Result<&Labels> {
        (self.supervision.as_labels()).ok_or_else(|| self.unusable(method, "class labels"))
    }

    /// The error of a method that cannot use this supervision.
    pub(crate) fn unusable(&self, method: &str, needs: &str) -> Error {
        Error::Supervision {
            learner: method.into(),
            needs: needs.into(),
            found: self.supervision.describe(),
        }
    }

    /// The labels that rows are split and evaluated by.
    pub fn labels(&self) -> Option<&Labels> {
        match &*self.supervision {
            // The units are queries then, and labels would be those of rows.
            Supervision::Judgements(_) => None,
            supervision => {
                let beside = self.class_supervision.first();
                supervision
                    .as_labels()
                    .or(beside.and_then(Supervision::as_labels))
            }
        }
    }

    /// What is known of the rows' classes beside the supervision: orderings, a taxonomy or labels beside
    /// comparisons, a taxonomy beside orderings.
    pub fn class_supervision(&self) -> &[Supervision] {
        &self.class_supervision
    }

    /// The tree of the classes, where there is one.
    pub(crate) fn tree(&self) -> Option<&Tree> {
        let mut all = std::iter::once(&*self.supervision).chain(&self.class_supervision);
        all.find_map(|supervision| match supervision {
            Supervision::Taxonomy(taxonomy) => Some(taxonomy.tree()),
            _ => None,
        })
    }

    /// Orderings of the classes, where there are some.
    pub(crate) fn orderings(&self) -> Option<&Orderings> {
        let mut all = std::iter::once(&*self.supervision).chain(&self.class_supervision);
        all.find_map(|supervision| match supervision {
            Supervision::Orderings(orderings) => Some(orderings),
            _ => None,
        })
    }

    /// A digest over all that is known of similarity.
    pub fn supervision_fingerprint(&self) -> String {
        let own = self.supervision.fingerprint();
        (self.class_supervision.iter()).fold(own, |all, supervision| {
            let both = format!("{all} {}", supervision.fingerprint());
            blake3::hash(both.as_bytes()).to_hex().to_string()
        })
    }

    /// The units that can be split: rows, or those queries that have something relevant.
    pub fn units(&self) -> Vec<u64> {
        let all = 0..self.supervision.queries();
        match &*self.supervision {
            Supervision::Judgements(judgements) => all
                .filter(|query| !judgements.of(*query).is_empty())
                .collect(),
            _ => all.collect(),
        }
    }

    /// What the bootstrap resamples: the class of a row, its combination of labels where it has several, or the
    /// query itself.
    pub(crate) fn cluster(&self, unit: u64) -> u64 {
        let classes = match &*self.supervision {
            Supervision::LabelSets(sets) => Some(sets.combinations()),
            _ => self.labels(),
        };
        match classes {
            Some(classes) => u64::from(classes.of()[unit as usize]),
            None => unit,
        }
    }

    pub(crate) fn stop(&self) -> Option<&'a AtomicBool> {
        self.stop
    }

    /// Whether somebody asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}
