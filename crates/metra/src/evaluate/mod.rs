//! Evaluation of rankings: exact measures over all items, with ties, exclusions and confidence
//! intervals.
//!
//! The way of a number: a [`Truth`] says which items are relevant to a query and which do not
//! count; `counts` counts in one pass of matrix products how many other items lie nearer than
//! each relevant one; `measures` turns counts into average precision, CMC and the rest;
//! `significance` says whether a difference is more than chance; `verification` finds the threshold
//! at which pairs are taken for the same. Where there are no right answers
//! but comparisons, `agreement` says how many of them a metric orders right, and `ordered` how many
//! pairs of rows a score orders as their classes are; `kin` counts a wrong class by a class tree.

mod agreement;
mod counts;
pub(crate) mod distributed;
mod evaluation;
mod gaussian;
mod hierarchical_accuracy;
mod knn;
mod measure;
mod measure_values;
mod pairwise_order;
mod radix;
mod ranking;
mod reranked;
mod significance;
mod single_shot;
mod student;
mod thresholds;
mod truth;
mod verification;

pub use agreement::{
    Agreement, GroupedRows, Separation, agreement, dissimilarities, dissimilarities_between,
    separation,
};
pub(crate) use distributed::{IrrelevantCounts, RelevantScores};
pub use evaluation::{Empty, Evaluation, EvaluationOptions, Ties, evaluate};
pub use gaussian::Gaussians;
pub use hierarchical_accuracy::HierarchicalAccuracy;
pub(crate) use knn::knn_classes;
pub use measure::{GradeGain, Measure};
pub use pairwise_order::PairwiseOrderAccuracy;
pub use ranking::{RankedItem, RankedQuery, evaluate_ranking};
pub use reranked::evaluate_reranked;
pub(crate) use reranked::evaluate_two_stages;
pub use significance::{
    Bootstrap, Comparison, INTERVALS, Resampled, Verdict, paired_bootstrap, resample,
};
pub use single_shot::Direction;
pub(crate) use single_shot::single_shot;
pub(crate) use truth::SharingLabels;
pub use truth::{
    AgainstGallery, Judged, LeaveOneOut, Qrels, QrelsOf, ReIdentification, Truth, matching_classes,
};
pub use verification::{RocPoint, Verification, verification};
