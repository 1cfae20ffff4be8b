//! Experiments: settings are chosen on validation parts, each test part is evaluated once, and
//! results have confidence intervals. Every front end runs one: training is an experiment with one
//! method, a comparison one with many; the gate and the label budget are built on it.

mod attributes;
mod budget;
mod classifier;
pub mod compare;
mod compress;
pub mod cost;
mod data_summary;
mod definition;
mod embedded_part;
mod evaluation;
mod folds;
mod fusion;
mod gate;
mod holdout;
mod migration;
mod model_evaluation;
mod new_items;
mod protocol;
mod ranked;
mod repeat;
mod retrieval_task;
mod scores;
mod slicing;
mod start;
mod study;
mod train;
mod verdicts;

pub use budget::{BudgetCurve, BudgetFound, BudgetPoint, Forecast, LabelBudget};
pub use classifier::Classifier;
pub use compress::{
    CodeTrial, CompressSettings, Compressed, CompressionPoint, CompressionResult, NEIGHBOURS,
    ValidationValue, neighbour_dataset,
};
pub use data_summary::{ClassSizes, DataSummary, Norms, RankedAsIs};
pub use definition::{Claim, ComparedMethod, Experiment};
pub use folds::{folds, pool};
pub use fusion::{FusionAdvice, FusionContender, FusionFound, FusionStudy, Unlearned};
pub use gate::{Decision, Gate, Headroom, Regression, Slice, Terms};
pub use holdout::{HoldOut, Parts, Portion, hold_out};
pub use migration::{
    MigrationAdvice, MigrationFound, MigrationQueries, MigrationStudy, MigrationWay, QueryTruth,
    TwoSpaces, WayFound,
};
pub use new_items::NewItems;
pub use protocol::{EvaluationSettings, Protocol, check_protocol};
pub use ranked::{Answer, Ranking};
pub use repeat::{MeanAndDeviation, Summary, summarise};
pub use scores::Scores;
pub use slicing::Slicing;
pub use study::{Chosen, Trial};
pub use train::SplitResult;
pub use verdicts::{SeenKind, Verdicts};
