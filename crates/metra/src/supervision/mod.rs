//! Supervision: labels, one or several per row, graded judgements between queries and items, pairs, triplets and
//! quadruplets, orderings of classes and class trees.
//!
//! Learners of ranking see [`Relevance`] only: uniform pairs without a list of pairs, and a test
//! whether an item is relevant to a query. It need be neither symmetric nor transitive, and queries
//! and items may be different corpora. [`mod@derive`] says what can be made from what.

pub mod clicks;
mod comparisons;
pub mod derive;
mod judgements;
mod label_sets;
mod labels;
mod orderings;
mod relevance;
mod taxonomy;

pub use comparisons::{Comparisons, Quadruplet};
pub use judgements::{Judgement, Judgements};
pub use label_sets::{LabelSets, SharedLabels};
pub use labels::Labels;
pub use orderings::{ClassOrdering, Orderings};
pub use relevance::{Pool, Relevance};
pub use taxonomy::{Taxonomy, Tree};

use crate::data::RowId;
use crate::{Error, Result};
use std::fmt;

/// What a method can learn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SupervisionKind {
    /// A class of every row.
    Labels,
    /// Several labels of every row.
    LabelSets,
    /// Relevance judgements of items for queries.
    Judgements,
    /// Pairs of similar rows.
    SimilarPairs,
    /// Rows of which one is nearer to an anchor than another.
    Triplets,
    /// Pairs of rows of which one is nearer than the other.
    Quadruplets,
    /// Orderings of the classes by attributes.
    Orderings,
    /// A tree of the classes.
    Taxonomy,
}

impl fmt::Display for SupervisionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SupervisionKind::Labels => "labels",
            SupervisionKind::LabelSets => "several labels per row",
            SupervisionKind::Judgements => "relevance judgements",
            SupervisionKind::SimilarPairs => "similar pairs",
            SupervisionKind::Triplets => "triplets",
            SupervisionKind::Quadruplets => "quadruplets",
            SupervisionKind::Orderings => "orderings of classes",
            SupervisionKind::Taxonomy => "a taxonomy",
        })
    }
}

impl SupervisionKind {
    /// What implies which items are relevant to which queries.
    pub(crate) const RELEVANCE: &'static [Self] = &[
        Self::Labels,
        Self::LabelSets,
        Self::Judgements,
        Self::SimilarPairs,
    ];

    /// Several in words: `labels, relevance judgements or similar pairs`, or `none (unsupervised)`.
    pub fn words(kinds: &[Self]) -> String {
        let words: Vec<String> = kinds.iter().map(ToString::to_string).collect();
        match words.split_last() {
            None => "none (unsupervised)".to_owned(),
            Some((last, [])) => last.clone(),
            Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        }
    }
}

/// What is known about similarity.
#[derive(Debug, Clone)]
pub enum Supervision {
    /// Rows of one corpus with a class each: same class is relevant.
    Labels(Labels),
    /// Rows of one corpus with several labels each: rows that share one are relevant to each other.
    LabelSets(LabelSets),
    /// Graded relevance of items to queries.
    Judgements(Judgements),
    /// Pairs, triplets and quadruplets of rows of one corpus.
    Comparisons(Comparisons),
    /// Rows with a class each and orderings of the classes by attributes.
    Orderings(Orderings),
    /// Rows with a class each and a tree of the classes.
    Taxonomy(Taxonomy),
}

impl Supervision {
    /// Supervision by class labels.
    pub fn labels(labels: Labels) -> Self {
        Supervision::Labels(labels)
    }

    /// Supervision by graded judgements.
    pub fn judgements(judgements: Judgements) -> Self {
        Supervision::Judgements(judgements)
    }

    /// The kinds that it holds.
    pub(crate) fn kinds(&self) -> Vec<SupervisionKind> {
        match self {
            Supervision::Labels(_) => vec![SupervisionKind::Labels],
            Supervision::LabelSets(_) => vec![SupervisionKind::LabelSets],
            Supervision::Judgements(_) => vec![SupervisionKind::Judgements],
            Supervision::Orderings(_) => vec![SupervisionKind::Labels, SupervisionKind::Orderings],
            Supervision::Taxonomy(_) => vec![SupervisionKind::Labels, SupervisionKind::Taxonomy],
            Supervision::Comparisons(given) => [
                (SupervisionKind::SimilarPairs, !given.similar().is_empty()),
                (SupervisionKind::Triplets, !given.triplets().is_empty()),
                (
                    SupervisionKind::Quadruplets,
                    !given.quadruplets().is_empty(),
                ),
            ]
            .into_iter()
            .filter_map(|(kind, has)| has.then_some(kind))
            .collect(),
        }
    }

    /// Number of queries: rows, where queries and items are one corpus.
    pub fn queries(&self) -> u64 {
        match self {
            Supervision::Judgements(judgements) => judgements.queries(),
            _ => self.items(),
        }
    }

    /// Number of items.
    pub(crate) fn items(&self) -> u64 {
        match self {
            Supervision::Judgements(judgements) => judgements.items(),
            Supervision::Comparisons(comparisons) => comparisons.rows(),
            Supervision::Labels(labels) => labels.len() as u64,
            Supervision::LabelSets(sets) => Relevance::items(sets),
            Supervision::Orderings(orderings) => orderings.labels().len() as u64,
            Supervision::Taxonomy(taxonomy) => taxonomy.labels().len() as u64,
        }
    }

    /// Whether queries and items are the same corpus.
    pub(crate) fn within(&self) -> bool {
        match self {
            Supervision::Judgements(judgements) => judgements.within(),
            _ => true,
        }
    }

    /// The relevance it implies, where it implies one: triplets and quadruplets alone do not.
    pub(crate) fn relevance(&self) -> Option<&dyn Relevance> {
        match self {
            Supervision::Judgements(judgements) => Some(judgements),
            Supervision::LabelSets(sets) => Some(sets),
            Supervision::Comparisons(comparisons) => comparisons.relevance(),
            _ => self.as_labels().map(|labels| labels as &dyn Relevance),
        }
    }

    /// The labels, where every row has one.
    pub(crate) fn as_labels(&self) -> Option<&Labels> {
        match self {
            Supervision::Labels(labels) => Some(labels),
            Supervision::Orderings(orderings) => Some(orderings.labels()),
            Supervision::Taxonomy(taxonomy) => Some(taxonomy.labels()),
            Supervision::LabelSets(_)
            | Supervision::Judgements(_)
            | Supervision::Comparisons(_) => None,
        }
    }

    /// What it says of some rows alone, renumbered 0, 1, …; for one corpus only.
    pub(crate) fn select(&self, rows: &[RowId]) -> Result<Self> {
        Ok(match self {
            Supervision::Labels(labels) => Supervision::Labels(labels.select(rows)?),
            Supervision::LabelSets(sets) => Supervision::LabelSets(sets.select(rows)?),
            Supervision::Comparisons(comparisons) => {
                Supervision::Comparisons(comparisons.select(rows)?)
            }
            Supervision::Orderings(orderings) => Supervision::Orderings(orderings.select(rows)?),
            Supervision::Taxonomy(taxonomy) => Supervision::Taxonomy(taxonomy.select(rows)?),
            Supervision::Judgements(_) => {
                return Err(Error::Data(
                    "rows cannot be selected from judgements: select queries".into(),
                ));
            }
        })
    }

    /// What it is, for messages.
    pub fn describe(&self) -> String {
        let labelled = |labels: &Labels| {
            let (rows, classes) = (labels.len(), labels.classes());
            format!("labels of {rows} rows in {classes} classes")
        };
        match self {
            Supervision::Labels(labels) => labelled(labels),
            Supervision::LabelSets(sets) => format!(
                "{:.1} labels per row of {} rows, {} labels in all",
                sets.mean_size(),
                sets.queries(),
                sets.names().len()
            ),
            Supervision::Judgements(judgements) => format!(
                "relevance judgements: {} pairs of {} queries",
                judgements.pairs(),
                judgements.queries()
            ),
            Supervision::Comparisons(comparisons) => comparisons.describe(),
            Supervision::Orderings(orderings) => format!(
                "orderings of classes by {} attributes with {}",
                orderings.attributes(),
                labelled(orderings.labels())
            ),
            Supervision::Taxonomy(taxonomy) => {
                format!("a taxonomy with {}", labelled(taxonomy.labels()))
            }
        }
    }

    /// A digest over its content.
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        match self {
            Supervision::Labels(labels) => labels.hash(&mut hasher),
            Supervision::LabelSets(sets) => sets.hash(&mut hasher),
            Supervision::Judgements(judgements) => judgements.hash(&mut hasher),
            Supervision::Comparisons(comparisons) => comparisons.hash(&mut hasher),
            Supervision::Orderings(orderings) => orderings.hash(&mut hasher),
            Supervision::Taxonomy(taxonomy) => taxonomy.hash(&mut hasher),
        }
        hasher.finalize().to_hex().to_string()
    }
}
