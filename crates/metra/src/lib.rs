//! Metra learns what "similar" means for vectors that already exist, so that the right answers rank first,
//! and measures by how much, with a confidence interval.
//!
//! The data flow is one: a [`Dataset`] (vectors with supervision) and a [`Pipeline`] (preprocessing, a
//! method and a score) give a [`Model`], which embeds, searches, evaluates and saves itself. An
//! [`Experiment`] adds splits, tuning and the comparison with baselines.
//!
//! ```
//! use metra::{Dataset, Model, Pipeline, Protocol, methods::Warca, supervision::Labels};
//! # let set = metra::data::synthetic::Nuisance { classes: 10, signal: 4, noise: 12, seed: 7 };
//! # let (train, test) = (set.rows(300), set.rows(500));
//! # let (values, classes) = (train.corpus.rows().values().to_vec(), train.classes);
//! # let (new_values, new_classes) = (&test.corpus.rows().values()[300 * 16..], &test.classes[300..]);
//! # let folder = tempfile::tempdir().unwrap();
//! # let file = folder.path().join("m.safetensors");
//!
//! // `values` are vectors of dimension 16, one after the other; `classes` has one label for each.
//! let data = Dataset::builder((&values[..], 16)).labels(Labels::from_numbers(&classes)?).build()?;
//! let new = Dataset::builder((new_values, 16)).labels(Labels::from_numbers(new_classes)?).build()?;
//! let model = Pipeline::new(Warca { rank: 4, ..Warca::default() }).prepare("centre")?.fit(&data)?;
//! let nearest = model.search(data.items(), new.items(), 10)?.ids_of(0).to_vec();
//! let scores = model.evaluate(&new, Protocol::LeaveOneOut)?; // mAP and others, for each query
//! model.save(&file)?;
//! assert_eq!(Model::load(&file)?.output_dim(), 4);
//! # assert_eq!(nearest.len(), 10);
//! # assert!(scores.mean(metra::evaluate::Measure::AveragePrecision) > 0.8);
//! # Ok::<(), metra::Error>(())
//! ```
//!
//! Work is spread over the rayon pool of the caller; results do not depend on its size.

pub mod data;
pub mod dataset;
mod error;
pub mod evaluate;
mod execute;
pub mod experiment;
#[doc(hidden)]
pub mod internal;
pub mod linalg;
pub mod methods;
pub mod model;
mod optimize;
mod passes;
pub mod pipeline;
mod random;
pub mod search;
pub mod supervision;
pub mod training;

pub use dataset::Dataset;
pub use error::{Error, Result};
pub use experiment::{Experiment, Protocol};
pub use model::Model;
pub use pipeline::Pipeline;
