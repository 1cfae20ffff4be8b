//! The published methods: one file or folder each. A method is a struct of parameters; its page says what
//! it learns, what it costs and when to use it.
//!
//! ```
//! use metra::{Dataset, Pipeline, methods::Lda};
//! use metra::supervision::Labels;
//! # use metra::data::synthetic::Nuisance;
//! # let set = Nuisance { classes: 10, signal: 4, noise: 12, seed: 7 }.rows(200);
//! let labels = Labels::from_numbers(&set.classes)?;
//! let data = Dataset::builder(&set.corpus).labels(labels).build()?;
//! let model = Pipeline::new(Lda { rank: 4, ..Lda::default() }).fit(&data)?;
//! assert_eq!(model.output_dim(), 4);
//! # Ok::<(), metra::Error>(())
//! ```

mod adapter;
mod baselines;
mod cca;
mod frml;
mod itml;
mod kissme;
mod lda;
mod lfda;
mod lmnn;
mod loreta;
mod mfa;
mod mlapg;
mod mlr;
mod multi_similarity;
mod nca;
mod oasis;
mod pca;
mod pcca;
mod procrustes;
mod proxy_anchor;
pub mod qwise;
pub mod slr;
mod supcon;
mod svmml;
mod vector_weights;
pub mod warca;
mod xqda;

pub use adapter::{AdaptedSides, Adapter};
pub use baselines::{Cosine, Euclid};
pub use cca::Cca;
pub use frml::{Frml, MetricRegulariser, RankLoss};
pub use itml::{Itml, Prior, Projections};
pub use kissme::Kissme;
pub use lda::Lda;
pub use lfda::{KernelLfda, Lfda, Scaling};
pub use lmnn::{Compared, Lmnn};
pub use loreta::Loreta;
pub use mfa::Mfa;
pub use mlapg::Mlapg;
pub use mlr::{Mlr, RankingLoss};
pub use multi_similarity::MultiSimilarity;
pub use nca::Nca;
pub use oasis::Oasis;
pub use pca::{Pca, Whitening};
pub use pcca::{KernelPcca, Pcca};
pub use procrustes::{Procrustes, QueryMap};
pub use proxy_anchor::ProxyAnchor;
pub use qwise::{Attributes, Qwise, RankSvm};
pub use slr::{Slr, SlrAdapter};
pub use supcon::SupCon;
pub use svmml::Svmml;
pub use vector_weights::{VectorDims, VectorWeights};
pub use warca::{KernelWarca, Warca};
pub use xqda::Xqda;
