//! What methods share: the trait that all of them implement, parameters, preprocessing, losses over
//! pairs and batches, optimisation loops and kernels.
//!
//! A method is a struct of parameters that implements [`Method`]; [`crate::methods`] has the published
//! ones, and [`crate::pipeline::Pipeline`] fits one after preprocessing.

pub(crate) mod alignment;
pub(crate) mod all_pairs;
pub(crate) mod checkpoint;
pub(crate) mod codes;
pub mod conformance;
pub(crate) mod descent;
pub(crate) mod differences;
pub(crate) mod discriminant;
pub(crate) mod full_batch;
pub(crate) mod fusion_weights;
pub(crate) mod in_batch;
pub(crate) mod irrelevant;
pub(crate) mod kernel;
pub(crate) mod local_sgd;
pub(crate) mod manifold;
pub(crate) mod method;
pub(crate) mod pair_lists;
pub(crate) mod paired_moments;
pub(crate) mod parameters;
pub(crate) mod prepared_corpus;
pub(crate) mod preprocessing;
pub(crate) mod principal_axes;
pub(crate) mod regulariser;
mod run;
pub(crate) mod training_space;
pub(crate) mod truncated_svd;
pub(crate) mod warp;

pub use alignment::{Alignment, AlignmentForm};
pub use checkpoint::FitCheckpoint;
pub use codes::{CODES, CodeSpec};
pub use descent::Schedule;
pub use fusion_weights::{JudgedLists, fit_fusion};
pub use in_batch::InBatchTraining;
pub use irrelevant::IrrelevantItems;
pub use kernel::{KernelKind, KernelSpec};
pub use method::{AnyMethod, Method, TwoModels};
pub use parameters::{Choice, Parameter, ParameterValue, Parameters};
pub use prepared_corpus::PreparedCorpus;
pub use preprocessing::{Recipe, WORDS as RECIPE_WORDS};
pub use regulariser::Regulariser;
pub use run::{Observer, Progress, Run, Validate};
pub use training_space::Start;
pub use warp::{RankWeights, Sampling, Violators};
