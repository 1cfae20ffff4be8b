//! From arrays and lists to a data set: the one place in which the binding puts them together.

use crate::vectors::{Numbers, Rule, Vectors};
use metra::data::{Groups, RowId};
use metra::dataset::DatasetBuilder;
use metra::supervision::{
    ClassOrdering, Comparisons, Judgement, LabelSets, Labels, Quadruplet, SharedLabels, Tree,
};
use metra::{Dataset, Error, Result};
use pyo3::prelude::*;
use std::sync::atomic::AtomicBool;

/// Four rows, and whether a margin must lie between the pairs.
type FourRows = (i64, i64, i64, i64, bool);

/// The parts of it, all optional; Python has made plain lists of them.
#[derive(FromPyObject, Default)]
#[pyo3(from_item_all)]
pub(crate) struct SupervisionInput {
    /// A class of every row, by name.
    labels: Option<Vec<String>>,
    /// A class of every row, by number.
    numbers: Option<Vec<i64>>,
    /// Distinct lists of labels, and which of them each row has.
    label_lists: Option<Vec<Vec<String>>>,
    label_list_of: Option<Vec<u32>>,
    /// Query, item and grade.
    qrels: Option<Vec<(i64, i64, f32)>>,
    /// Whether queries and items are vectors of two models.
    two_spaces: bool,
    /// Dimensions of the vectors of a row, where it is several.
    vector_dims: Option<Vec<usize>>,
    /// Two rows, and whether they are similar.
    pairs: Option<Vec<(i64, i64, bool)>>,
    /// Anchor, near, far.
    triplets: Option<Vec<(i64, i64, i64)>>,
    /// The near pair, the far pair, and whether a margin lies between them.
    quadruplets: Option<Vec<FourRows>>,
    /// Attribute and order of classes, as in a file of orderings.
    orderings: Option<Vec<(String, String)>>,
    /// Child and parent.
    taxonomy: Option<Vec<(String, String)>>,
    /// Camera or session of every row, and of every query.
    cameras: Option<Vec<String>>,
    query_cameras: Option<Vec<String>>,
}

impl SupervisionInput {
    /// The classes, where rows have some; an error where a row has several.
    pub(crate) fn labels(&self) -> Result<Option<Labels>> {
        if self.label_lists.is_some() {
            return Err(Error::Data(
                "y gives several labels per row: expected one class per row here".into(),
            ));
        }
        self.one_label()
    }

    /// The classes, where every row has one.
    pub(crate) fn one_label(&self) -> Result<Option<Labels>> {
        match (&self.numbers, &self.labels) {
            (Some(numbers), _) => Labels::from_numbers(numbers).map(Some),
            (None, Some(names)) => Labels::from_names(names).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Groups of the rows.
    pub(crate) fn groups(&self) -> Option<Groups> {
        self.cameras.as_ref().map(|names| Groups::new(names))
    }

    /// Groups of the queries.
    pub(crate) fn query_groups(&self) -> Option<Groups> {
        self.query_cameras.as_ref().map(|names| Groups::new(names))
    }

    /// Labels and groups of these rows followed by those of others.
    pub(crate) fn joined(&self, other: &SupervisionInput) -> SupervisionInput {
        fn both<T: Clone>(a: Option<&Vec<T>>, b: Option<&Vec<T>>) -> Option<Vec<T>> {
            Some([&a?[..], b?].concat())
        }
        // Rows named by numbers and others named by words are compared by name.
        let names = |input: &SupervisionInput| match (&input.numbers, &input.labels) {
            (Some(numbers), _) => Some(numbers.iter().map(i64::to_string).collect()),
            (None, labels) => labels.clone(),
        };
        let (own, others): (Option<Vec<String>>, Option<Vec<String>>) = (names(self), names(other));
        // Lists of the others follow those of these rows.
        let first = self.label_lists.as_ref().map_or(0, Vec::len) as u32;
        let following = other.label_list_of.as_ref();
        let following = following.map(|of| of.iter().map(|list| first + list).collect());
        SupervisionInput {
            labels: both(own.as_ref(), others.as_ref()),
            label_lists: both(self.label_lists.as_ref(), other.label_lists.as_ref()),
            label_list_of: both(self.label_list_of.as_ref(), following.as_ref()),
            cameras: both(self.cameras.as_ref(), other.cameras.as_ref()),
            ..SupervisionInput::default()
        }
    }

    /// Add what is known of the rows to a data set, and build it.
    pub(crate) fn build<'a>(&self, builder: DatasetBuilder<'a>) -> Result<Dataset<'a>> {
        let mut builder = builder.labels(self.one_label()?);
        if let (Some(lists), Some(of)) = (&self.label_lists, &self.label_list_of) {
            builder = builder.label_sets(LabelSets::new(lists, of, SharedLabels::Number)?);
        }
        if let Some(lines) = &self.qrels {
            let lines = lines.iter().enumerate();
            let read = lines.map(|(number, (query, item, grade))| {
                let what = |what: &str| format!("judgement {number}: {what}");
                Ok(Judgement {
                    query: row(&what("query"), *query)?,
                    item: row(&what("item"), *item)?,
                    grade: *grade,
                })
            });
            builder = builder.qrels(read.collect::<Result<Vec<_>>>()?);
        }
        builder = builder.two_spaces(self.two_spaces);
        builder = builder.vector_dims(self.vector_dims.as_deref().unwrap_or_default());
        if self.pairs.is_some() {
            let [similar, dissimilar] = self.pairs()?;
            builder = builder.pairs(similar, dissimilar);
        }
        if self.triplets.is_some() {
            builder = builder.triplets(self.triplets()?);
        }
        if self.quadruplets.is_some() {
            builder = builder.quadruplets(self.quadruplets()?);
        }
        if let Some(orderings) = &self.orderings {
            let read =
                (orderings.iter()).map(|(attribute, order)| ClassOrdering::parse(attribute, order));
            builder = builder.orderings(read.collect::<Result<Vec<_>>>()?);
        }
        if let Some(edges) = &self.taxonomy {
            builder = builder.taxonomy(Tree::from_edges(edges)?);
        }
        builder.build().map_err(|error| match error {
            Error::Unsupervised => Error::Data(
                "what is similar? give y (a class of every row), pairs, triplets, quadruplets, or \
                 queries with qrels"
                    .into(),
            ),
            error => error,
        })
    }

    /// Pairs, triplets and quadruplets, to evaluate by.
    pub(crate) fn comparisons(&self, rows: u64) -> Result<Comparisons> {
        let [similar, dissimilar] = self.pairs()?;
        Comparisons::new(rows)
            .with_pairs(&similar, &dissimilar)?
            .with_triplets(&self.triplets()?)?
            .with_quadruplets(&self.quadruplets()?)
    }

    fn pairs(&self) -> Result<[Vec<[RowId; 2]>; 2]> {
        let [mut similar, mut dissimilar] = [Vec::new(), Vec::new()];
        for (number, (a, b, together)) in self.pairs.iter().flatten().enumerate() {
            let what = format!("pair {number}");
            let pair = [row(&what, *a)?, row(&what, *b)?];
            match together {
                true => similar.push(pair),
                false => dissimilar.push(pair),
            }
        }
        Ok([similar, dissimilar])
    }

    fn triplets(&self) -> Result<Vec<[RowId; 3]>> {
        let all = self.triplets.iter().flatten().enumerate();
        let read = all.map(|(number, (a, b, c))| {
            let what = format!("triplet {number}");
            Ok([row(&what, *a)?, row(&what, *b)?, row(&what, *c)?])
        });
        read.collect()
    }

    fn quadruplets(&self) -> Result<Vec<Quadruplet>> {
        let all = self.quadruplets.iter().flatten().enumerate();
        let read = all.map(|(number, (a, b, c, d, strict))| {
            let what = format!("quadruplet {number}");
            Ok(Quadruplet {
                near: [row(&what, *a)?, row(&what, *b)?],
                far: [row(&what, *c)?, row(&what, *d)?],
                strict: *strict,
            })
        });
        read.collect()
    }
}

/// Vectors as the caller has them: items, and queries where they are others.
pub(crate) struct Arrays<'a> {
    pub(crate) items: Numbers<'a>,
    pub(crate) queries: Option<Numbers<'a>>,
}

impl Arrays<'_> {
    /// Read vectors by a rule and work on them, until `stop` is set. `names` are the groups of a model that
    /// is evaluated.
    pub(crate) fn with_dataset<R>(
        &self,
        rule: &Rule<'_>,
        input: &SupervisionInput,
        names: Option<&[String]>,
        stop: &AtomicBool,
        work: impl FnOnce(&Dataset<'_>) -> Result<R>,
    ) -> Result<R> {
        let items = Vectors::read(self.items, rule)?;
        // Queries become f32 as items do, or distances between them would mean nothing.
        let same = Rule::Apply(items.narrowing.as_ref());
        let queries = (self.queries.map(|queries| Vectors::read(queries, &same))).transpose()?;
        let corpus = items.corpus()?;
        let query_corpus = queries.as_ref().map(Vectors::corpus).transpose()?;
        let groups = numbered(input.groups(), names)?;
        let query_names = groups.as_ref().map_or(names, |groups| Some(groups.names()));
        let query_groups = numbered(input.query_groups(), query_names)?;
        let mut builder = Dataset::builder(&corpus)
            .groups(groups)
            .narrowing(items.narrowing.clone())
            .stop(stop);
        if let Some(queries) = &query_corpus {
            builder = builder.queries(queries).query_groups(query_groups);
        }
        work(&input.build(builder)?)
    }
}

/// Groups numbered as `names` has them, where there are both.
pub(crate) fn numbered(groups: Option<Groups>, names: Option<&[String]>) -> Result<Option<Groups>> {
    match (groups, names) {
        (Some(groups), Some(names)) => groups.renumbered(names).map(Some),
        (groups, _) => Ok(groups),
    }
}

fn row(what: &str, number: i64) -> Result<RowId> {
    RowId::try_from(number).map_err(|_| Error::shape(what, "a row, counted from 0", number))
}
