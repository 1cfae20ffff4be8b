//! What Python says of similarity, as the library's supervision.

use metra::data::{Groups, RowId};
use metra::supervision::{
    ClassOrdering, Comparisons, Judgement, Judgements, Labels, Orderings, Quadruplet, Supervision,
    Taxonomy, Tree,
};
use metra::{Error, Result};
use pyo3::prelude::*;

/// Four rows, and whether a margin must lie between the pairs.
type FourRows = (i64, i64, i64, i64, bool);

/// The parts of it, all optional; Python has made plain lists of them.
#[derive(FromPyObject, Default)]
#[pyo3(from_item_all)]
pub(crate) struct Told {
    /// A class of every row, by name.
    labels: Option<Vec<String>>,
    /// A class of every row, by number.
    numbers: Option<Vec<i64>>,
    /// Query, item and grade.
    qrels: Option<Vec<(i64, i64, f32)>>,
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

impl Told {
    /// The classes, where rows have some.
    pub(crate) fn labels(&self) -> Result<Option<Labels>> {
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
    pub(crate) fn joined(&self, other: &Told) -> Told {
        fn both<T: Clone>(a: Option<&Vec<T>>, b: Option<&Vec<T>>) -> Option<Vec<T>> {
            Some([&a?[..], b?].concat())
        }
        // Rows named by numbers and others named by words are compared by name.
        let names = |told: &Told| match (&told.numbers, &told.labels) {
            (Some(numbers), _) => Some(numbers.iter().map(i64::to_string).collect()),
            (None, labels) => labels.clone(),
        };
        let (own, others): (Option<Vec<String>>, Option<Vec<String>>) = (names(self), names(other));
        Told {
            labels: both(own.as_ref(), others.as_ref()),
            cameras: both(self.cameras.as_ref(), other.cameras.as_ref()),
            ..Told::default()
        }
    }

    /// What is learned from, with labels to judge by where it has none.
    pub(crate) fn supervision(
        &self,
        rows: u64,
        queries: Option<u64>,
    ) -> Result<(Supervision, Option<Labels>)> {
        let labels = self.labels()?;
        if let Some(labels) = &labels
            && labels.len() as u64 != rows
        {
            return Err(Error::shape("labels", rows, labels.len()));
        }
        if let Some(lines) = &self.qrels {
            let lines = lines
                .iter()
                .enumerate()
                .map(|(number, (query, item, grade))| {
                    let what = |what: &str| format!("judgement {number}: {what}");
                    Ok(Judgement {
                        query: row(&what("query"), *query)?,
                        item: row(&what("item"), *item)?,
                        grade: *grade,
                    })
                });
            let lines = lines.collect::<Result<Vec<_>>>()?;
            let judgements = match queries {
                Some(queries) => Judgements::new(queries, rows, &lines)?,
                None => Judgements::within_one(rows, &lines)?,
            };
            return Ok((Supervision::judgements(judgements), None));
        }
        if self.pairs.is_some() || self.triplets.is_some() || self.quadruplets.is_some() {
            return Ok((Supervision::Comparisons(self.comparisons(rows)?), labels));
        }
        let needed = |labels: Option<Labels>| {
            labels.ok_or_else(|| {
                Error::Data(
                    "what is similar? give y (a class of every row), pairs, triplets, \
                     quadruplets, or queries with qrels"
                        .into(),
                )
            })
        };
        let supervision = if let Some(orderings) = &self.orderings {
            let read =
                (orderings.iter()).map(|(attribute, order)| ClassOrdering::parse(attribute, order));
            let read = read.collect::<Result<Vec<_>>>()?;
            Supervision::Orderings(Orderings::new(needed(labels)?, read)?)
        } else if let Some(edges) = &self.taxonomy {
            Supervision::Taxonomy(Taxonomy::new(needed(labels)?, Tree::from_edges(edges)?)?)
        } else {
            Supervision::labels(needed(labels)?)
        };
        Ok((supervision, None))
    }

    /// Pairs, triplets and quadruplets.
    pub(crate) fn comparisons(&self, rows: u64) -> Result<Comparisons> {
        let mut said = Comparisons::new(rows);
        if let Some(pairs) = &self.pairs {
            let (mut similar, mut dissimilar) = (Vec::new(), Vec::new());
            for (number, (a, b, together)) in pairs.iter().enumerate() {
                let what = format!("pair {number}");
                let pair = [row(&what, *a)?, row(&what, *b)?];
                if *together {
                    similar.push(pair);
                } else {
                    dissimilar.push(pair);
                }
            }
            said = said.with_pairs(&similar, &dissimilar)?;
        }
        if let Some(triplets) = &self.triplets {
            let read = triplets.iter().enumerate().map(|(number, (a, b, c))| {
                let what = format!("triplet {number}");
                Ok([row(&what, *a)?, row(&what, *b)?, row(&what, *c)?])
            });
            said = said.with_triplets(&read.collect::<Result<Vec<_>>>()?)?;
        }
        if let Some(quadruplets) = &self.quadruplets {
            let read = quadruplets
                .iter()
                .enumerate()
                .map(|(number, (a, b, c, d, strict))| {
                    let what = format!("quadruplet {number}");
                    Ok(Quadruplet {
                        near: [row(&what, *a)?, row(&what, *b)?],
                        far: [row(&what, *c)?, row(&what, *d)?],
                        strict: *strict,
                    })
                });
            said = said.with_quadruplets(&read.collect::<Result<Vec<_>>>()?)?;
        }
        Ok(said)
    }
}

fn row(what: &str, number: i64) -> Result<RowId> {
    RowId::try_from(number).map_err(|_| Error::shape(what, "a row, counted from 0", number))
}
