//! What is relevant to what: labels, or graded judgements between queries and items.
//!
//! Learners see [`Relevance`] only: uniform pairs without a list of pairs, and a test whether an
//! item is relevant to a query. It need be neither symmetric nor transitive, and queries and items
//! may be different corpora.

mod judgements;
mod labels;
mod relevance;

pub use judgements::{Judgement, Judgements};
pub use labels::Labels;
pub use relevance::{Pool, Relevance};

/// What a learner is told about similarity.
#[derive(Debug, Clone)]
pub enum Supervision {
    /// Rows of one corpus with a class each: same class is relevant.
    Labels(Labels),
    /// Graded relevance of items to queries.
    Judgements(Judgements),
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

    /// The relevance it implies.
    pub fn relevance(&self) -> &dyn Relevance {
        match self {
            Supervision::Labels(labels) => labels,
            Supervision::Judgements(judgements) => judgements,
        }
    }

    /// The labels, if this is what was given.
    pub fn as_labels(&self) -> Option<&Labels> {
        match self {
            Supervision::Labels(labels) => Some(labels),
            Supervision::Judgements(_) => None,
        }
    }

    /// What it is, for messages.
    pub fn describe(&self) -> String {
        match self {
            Supervision::Labels(labels) => {
                format!(
                    "labels of {} rows in {} classes",
                    labels.len(),
                    labels.classes()
                )
            }
            Supervision::Judgements(judgements) => format!(
                "relevance judgements: {} pairs of {} queries",
                judgements.pairs(),
                judgements.queries()
            ),
        }
    }

    /// A digest over its content.
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        match self {
            Supervision::Labels(labels) => labels.hash(&mut hasher),
            Supervision::Judgements(judgements) => judgements.hash(&mut hasher),
        }
        hasher.finalize().to_hex().to_string()
    }
}
