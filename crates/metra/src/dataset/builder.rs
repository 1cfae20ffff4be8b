//! The builder of a data set: the one place that decides which supervision takes precedence.
//!
//! Relevance judgements come before comparisons, comparisons before orderings and a taxonomy of the
//! classes, and these before plain labels. What is known of the classes beside comparisons, and a taxonomy beside
//! orderings, is what rows are split and evaluated by, and what `qwise` can learn from as well
//! (`class_weight`); beside judgements it would contradict them. Several labels per row stand alone.

use super::Dataset;
use crate::data::several_vectors::row_dim;
use crate::data::{CorpusRef, Groups, Interruptible, IntoCorpus, Narrowing, RowId, Storage};
use crate::supervision::{
    ClassOrdering, Comparisons, Judgement, Judgements, LabelSets, Labels, Orderings, Quadruplet,
    Supervision, Taxonomy, Tree,
};
use crate::{Error, Result};
use std::borrow::Cow;
use std::sync::atomic::AtomicBool;

/// Puts a [`Dataset`] together. Nothing fails before [`DatasetBuilder::build`].
pub struct DatasetBuilder<'a> {
    items: Result<CorpusRef<'a>>,
    groups: Option<Groups>,
    queries: Option<Result<CorpusRef<'a>>>,
    two_spaces: bool,
    vector_dims: Vec<usize>,
    query_groups: Option<Groups>,
    labels: Option<Labels>,
    label_sets: Option<LabelSets>,
    judgements: Option<Vec<Judgement>>,
    pairs: Option<[Vec<[RowId; 2]>; 2]>,
    triplets: Option<Vec<[RowId; 3]>>,
    quadruplets: Option<Vec<Quadruplet>>,
    orderings: Option<Vec<ClassOrdering>>,
    tree: Option<Tree>,
    narrowing: Option<Narrowing>,
    storage: Storage,
    stop: Option<&'a AtomicBool>,
}

impl<'a> Dataset<'a> {
    /// A builder that takes everything that users have.
    pub fn builder(items: impl IntoCorpus<'a>) -> DatasetBuilder<'a> {
        DatasetBuilder::new(items)
    }
}

impl<'a> DatasetBuilder<'a> {
    fn new(items: impl IntoCorpus<'a>) -> Self {
        DatasetBuilder {
            items: items.into_corpus(),
            groups: None,
            queries: None,
            two_spaces: false,
            vector_dims: Vec::new(),
            query_groups: None,
            labels: None,
            label_sets: None,
            judgements: None,
            pairs: None,
            triplets: None,
            quadruplets: None,
            orderings: None,
            tree: None,
            narrowing: None,
            storage: Storage::default(),
            stop: None,
        }
    }

    /// Queries that are not the items.
    pub fn queries(mut self, queries: impl IntoCorpus<'a>) -> Self {
        self.queries = Some(queries.into_corpus());
        self
    }

    /// Say that queries and items are vectors of two models. Where their dimensions differ, that is known.
    pub fn two_spaces(mut self, two_spaces: bool) -> Self {
        self.two_spaces = two_spaces;
        self
    }

    /// Say that a row is several vectors, one behind the other, of these dimensions: such as that of a title and that of a body.
    pub fn vector_dims(mut self, dims: &[usize]) -> Self {
        self.vector_dims = dims.to_vec();
        self
    }

    /// The group (camera, session) of every item.
    pub fn groups(mut self, groups: impl Into<Option<Groups>>) -> Self {
        self.groups = groups.into();
        self
    }

    /// The group of every query.
    pub fn query_groups(mut self, groups: impl Into<Option<Groups>>) -> Self {
        self.query_groups = groups.into();
        self
    }

    /// The class of every item: items of one class are relevant to each other.
    pub fn labels(mut self, labels: impl Into<Option<Labels>>) -> Self {
        self.labels = labels.into();
        self
    }

    /// The labels of every item, of which it has several: items that share one are relevant to each other.
    pub fn label_sets(mut self, sets: impl Into<Option<LabelSets>>) -> Self {
        self.label_sets = sets.into();
        self
    }

    /// Relevance judgements (TREC qrels) of items for queries.
    pub fn qrels(mut self, judgements: Vec<Judgement>) -> Self {
        self.judgements = Some(judgements);
        self
    }

    /// Pairs of similar and of dissimilar rows.
    pub fn pairs(mut self, similar: Vec<[RowId; 2]>, dissimilar: Vec<[RowId; 2]>) -> Self {
        self.pairs = Some([similar, dissimilar]);
        self
    }

    /// Triplets of rows: anchor, near, far.
    pub fn triplets(mut self, triplets: Vec<[RowId; 3]>) -> Self {
        self.triplets = Some(triplets);
        self
    }

    /// Quadruplets of rows: a near pair and a far pair.
    pub fn quadruplets(mut self, quadruplets: Vec<Quadruplet>) -> Self {
        self.quadruplets = Some(quadruplets);
        self
    }

    /// Orderings of the classes by attributes; labels name the classes.
    pub fn orderings(mut self, orderings: Vec<ClassOrdering>) -> Self {
        self.orderings = Some(orderings);
        self
    }

    /// A tree of the classes; labels name the classes.
    pub fn taxonomy(mut self, tree: Tree) -> Self {
        self.tree = Some(tree);
        self
    }

    /// How f64 input became f32, to be recorded in models.
    pub fn narrowing(mut self, narrowing: Option<Narrowing>) -> Self {
        self.narrowing = narrowing;
        self
    }

    /// How much memory derived vectors may take, and where they go beyond it.
    pub fn storage(mut self, storage: Storage) -> Self {
        self.storage = storage;
        self
    }

    /// Set by another thread to end every pass over the data, and every fit, with
    /// [`Error::Interrupted`].
    pub fn stop(mut self, stop: &'a AtomicBool) -> Self {
        self.stop = Some(stop);
        self
    }

    /// The data set, or an error that says what is missing or does not fit.
    pub fn build(self) -> Result<Dataset<'a>> {
        let items = self.items?;
        let queries = self.queries.transpose()?;
        let rows = items.len();
        if let Some(labels) = &self.labels
            && labels.len() as u64 != rows
        {
            return Err(Error::shape("labels", rows, labels.len()));
        }
        let is_compared =
            self.pairs.is_some() || self.triplets.is_some() || self.quadruplets.is_some();
        let is_told_otherwise = is_compared
            || queries.is_some()
            || self.labels.is_some()
            || self.judgements.is_some()
            || self.orderings.is_some()
            || self.tree.is_some();
        if self.label_sets.is_some() && is_told_otherwise {
            return Err(Error::Data(
                "several labels per row say which rows are relevant to each other: expected no queries and no \
                 other supervision beside them"
                    .into(),
            ));
        }
        let needed = |labels: &Option<Labels>| match labels {
            Some(labels) => Ok(labels.clone()),
            None if is_compared => Err(Error::Data(
                "orderings and a taxonomy speak of classes: expected labels beside them".into(),
            )),
            None => Err(Error::Unsupervised),
        };
        let mut classes = Vec::new();
        if let Some(orderings) = self.orderings {
            let orderings = Orderings::new(needed(&self.labels)?, orderings)?;
            classes.push(Supervision::Orderings(orderings));
        }
        if let Some(tree) = self.tree {
            let taxonomy = Taxonomy::new(needed(&self.labels)?, tree)?;
            classes.push(Supervision::Taxonomy(taxonomy));
        }
        if let (Some(labels), true) = (self.labels, classes.is_empty()) {
            classes.push(Supervision::Labels(labels));
        }
        let mut class_supervision = Vec::new();
        let supervision = if let Some(sets) = self.label_sets {
            Supervision::LabelSets(sets)
        } else if let Some(lines) = self.judgements {
            let told_twice = match classes.first() {
                Some(Supervision::Labels(_)) => queries.is_none(),
                found => found.is_some(),
            };
            if told_twice {
                return Err(Error::Data(
                    "classes and relevance judgements both say what is relevant: expected one of them"
                        .into(),
                ));
            }
            Supervision::Judgements(match &queries {
                Some(queries) => Judgements::new(queries.len(), rows, &lines)?,
                None => Judgements::within_one(rows, &lines)?,
            })
        } else if is_compared {
            class_supervision = classes;
            let [similar, dissimilar] = self.pairs.unwrap_or_default();
            let comparisons = Comparisons::new(rows)
                .with_pairs(&similar, &dissimilar)?
                .with_triplets(&self.triplets.unwrap_or_default())?
                .with_quadruplets(&self.quadruplets.unwrap_or_default())?;
            Supervision::Comparisons(comparisons)
        } else if classes.is_empty() {
            return Err(Error::Unsupervised);
        } else {
            class_supervision = classes.split_off(1);
            classes.remove(0)
        };
        let stop = self.stop;
        let (items, queries) = (stoppable(items, stop), queries.map(|q| stoppable(q, stop)));
        let mut data = Dataset::assemble(items, queries, Cow::Owned(supervision))?;
        data.items.groups = self.groups.map(Cow::Owned);
        if let Some(queries) = &mut data.queries {
            queries.groups = self.query_groups.map(Cow::Owned);
        }
        if self.two_spaces && !data.has_separate_queries() {
            return Err(Error::Data(
                "two models are of queries and of items: expected separate queries".into(),
            ));
        }
        data.two_spaces |= self.two_spaces;
        // One vector a row is what there is without a list of them.
        if self.vector_dims.len() > 1 {
            let dim = row_dim(&self.vector_dims)?;
            if dim != data.one_space("a row of several vectors")? {
                return Err(Error::shape(
                    "dimension of the vectors of a row, added up",
                    data.dim(),
                    dim,
                ));
            }
            data.vector_dims = self.vector_dims;
        }
        data.class_supervision = class_supervision;
        data.narrowing = self.narrowing;
        data.storage = self.storage;
        data.stop = self.stop;
        Ok(data)
    }
}

/// A corpus that gives no row any more once the flag is set.
pub(super) fn stoppable<'a>(corpus: CorpusRef<'a>, stop: Option<&'a AtomicBool>) -> CorpusRef<'a> {
    match stop {
        Some(stop) => CorpusRef::Owned(Box::new(Interruptible::new(corpus, stop))),
        None => corpus,
    }
}
