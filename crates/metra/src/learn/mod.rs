//! Learners: each a struct of parameters that, once checked, turns a [`Problem`] into a map.
//!
//! [`registry`] lists them by name for the command and other front ends; [`Recipe`] is the fitted
//! preprocessing that comes before any of them.

mod all_pairs;
mod baselines;
pub mod conformance;
mod descent;
mod differences;
mod discriminant;
mod edges;
mod field;
mod frml;
mod in_batch;
mod itml;
mod kernel;
mod kissme;
mod lfda;
mod lmnn;
mod loreta;
mod manifold;
mod mfa;
mod mlapg;
mod mlr;
mod nca;
mod oasis;
mod orthonormal;
mod parameters;
mod pcca;
mod prepare;
mod principal;
pub mod qwise;
mod reduce;
pub mod registry;
pub mod rounds;
pub mod slr;
mod svmml;
pub mod warca;
mod warp;
mod whole;
mod xqda;

pub use baselines::{Cosine, Euclid};
pub use discriminant::Lda;
pub use frml::{Frml, MetricRegulariser, RankLoss};
pub use in_batch::{MultiSimilarity, ProxyAnchor, SupCon};
pub use itml::{Itml, Prior, Projections};
pub use kissme::Kissme;
pub use lfda::{KernelLfda, Lfda, Scaling};
pub use lmnn::{Compared, Lmnn};
pub use loreta::Loreta;
pub use mfa::Mfa;
pub use mlapg::Mlapg;
pub use mlr::{Mlr, RankingLoss};
pub use nca::Nca;
pub use oasis::Oasis;
pub use parameters::{Checked, Choice, Parameter, ParameterValue, Parameters};
pub use pcca::{KernelPcca, Pcca};
pub use prepare::{Prepared, PreparedCorpus, Recipe, WORDS as RECIPE_WORDS};
pub use principal::{Pca, Whitening};
pub use svmml::Svmml;
pub use xqda::Xqda;

use crate::data::Corpus;
use crate::metric::{Map, Space};
use crate::supervision::{Labels, Relevance, Supervision};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is to be learned from: items, queries where they are another corpus, and supervision.
pub struct Problem<'a> {
    items: &'a dyn Corpus,
    queries: Option<&'a dyn Corpus>,
    supervision: &'a Supervision,
}

impl<'a> Problem<'a> {
    /// Items that are their own queries.
    pub fn new(items: &'a dyn Corpus, supervision: &'a Supervision) -> Result<Self> {
        Self::build(items, None, supervision)
    }

    /// Items and queries in different corpora of the same dimension.
    pub fn between(
        queries: &'a dyn Corpus,
        items: &'a dyn Corpus,
        supervision: &'a Supervision,
    ) -> Result<Self> {
        Self::build(items, Some(queries), supervision)
    }

    fn build(
        items: &'a dyn Corpus,
        queries: Option<&'a dyn Corpus>,
        supervision: &'a Supervision,
    ) -> Result<Self> {
        if supervision.items() != items.len() {
            return Err(Error::shape(
                "items the supervision speaks of",
                items.len(),
                supervision.items(),
            ));
        }
        let asking = queries.unwrap_or(items);
        if supervision.queries() != asking.len() {
            return Err(Error::shape(
                "queries the supervision speaks of",
                asking.len(),
                supervision.queries(),
            ));
        }
        if asking.dim() != items.dim() {
            return Err(Error::shape(
                "dimension of the queries",
                items.dim(),
                asking.dim(),
            ));
        }
        if supervision.within() != queries.is_none() {
            return Err(Error::shape(
                "corpora",
                if supervision.within() {
                    "one (the supervision is within it)"
                } else {
                    "two"
                },
                if queries.is_none() { "one" } else { "two" },
            ));
        }
        if items.is_empty() || asking.is_empty() {
            return Err(Error::shape("rows to learn from", "at least 1", 0));
        }
        Ok(Problem {
            items,
            queries,
            supervision,
        })
    }

    /// The items.
    pub fn items(&self) -> &'a dyn Corpus {
        self.items
    }

    /// The queries: another corpus, or the items themselves.
    pub fn queries(&self) -> &'a dyn Corpus {
        self.queries.unwrap_or(self.items)
    }

    /// The supervision.
    pub fn supervision(&self) -> &'a Supervision {
        self.supervision
    }

    /// The relevance that the supervision implies, or an error that says what the learner needs.
    pub fn relevance(&self, learner: &str) -> Result<&'a dyn Relevance> {
        let needs = "labels, relevance judgements or similar pairs";
        (self.supervision.relevance()).ok_or_else(|| self.unusable(learner, needs))
    }

    /// The labels, or an error that says what the learner needs.
    pub fn labels(&self, learner: &str) -> Result<&'a Labels> {
        (self.supervision.as_labels()).ok_or_else(|| self.unusable(learner, "class labels"))
    }

    /// The error of a learner that cannot use this supervision.
    pub fn unusable(&self, learner: &str, needs: &str) -> Error {
        Error::Supervision {
            learner: learner.into(),
            needs: needs.into(),
            found: self.supervision.describe(),
        }
    }

    /// Numbers in a vector.
    pub fn dim(&self) -> usize {
        self.items.dim()
    }
}

/// What a learner tells while it works.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Steps done.
    pub step: u64,
    /// Steps planned.
    pub steps: u64,
    /// Mean loss of the latest minibatch, without the regulariser.
    pub loss: f64,
    /// Of learners of ranking: share of the pairs in it that some irrelevant item violates, and mean
    /// estimated rank of the relevant item.
    pub ranking: Option<(f64, f64)>,
    /// Steps a second so far.
    pub speed: f64,
    /// Value of the validation measure, where this step was validated.
    pub validation: Option<f64>,
}

/// Receives progress.
pub trait Observer {
    /// Called after every step.
    fn progress(&mut self, progress: &Progress);
}

/// Judges a map on a validation part; larger is better.
pub type Validate<'a> = dyn FnMut(&Map) -> Result<f64> + 'a;

/// Circumstances of one fit: seed, who watches, who validates, who may stop it.
#[derive(Default)]
pub struct Run<'a> {
    /// Seed of all random draws.
    pub seed: u64,
    /// Who watches.
    pub observer: Option<&'a mut dyn Observer>,
    /// Judges a map on a validation part (larger is better); used for early stopping.
    pub validate: Option<&'a mut Validate<'a>>,
    /// Stop after this many steps of the schedule, as an earlier run's best step showed.
    pub last_step: Option<u64>,
    /// Set by another thread to stop the fit with [`Error::Interrupted`].
    pub stop: Option<&'a AtomicBool>,
    /// What the learner found worth recording in the model.
    pub facts: BTreeMap<String, f64>,
    /// Names of the numbers in a mapped vector, from learners whose numbers have a meaning.
    pub outputs: Vec<String>,
}

impl Run<'_> {
    /// A run that nobody watches.
    pub fn new(seed: u64) -> Self {
        Run {
            seed,
            ..Run::default()
        }
    }

    /// An error if somebody asked to stop.
    pub fn check_stop(&self) -> Result<()> {
        match self.stop {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(Error::Interrupted),
            _ => Ok(()),
        }
    }
}

/// A learner with checked parameters.
pub trait Learner: Send + Sync {
    /// Its name in the registry.
    fn name(&self) -> &'static str;

    /// All its parameters as text.
    fn parameters(&self) -> BTreeMap<String, String>;

    /// The spaces in which its result may be compared; which serves best is a choice to validate.
    fn spaces(&self) -> &'static [Space] {
        &Space::ALL
    }

    /// Whether it learns from classes by passes over the corpus alone, so that rows may lie
    /// elsewhere.
    fn by_passes(&self) -> bool {
        false
    }

    /// How it works by rounds, each shard of a corpus on its own; `None` where it cannot.
    fn by_rounds(&self) -> Option<&dyn rounds::ByRounds> {
        None
    }

    /// Learn.
    fn fit(&self, problem: &Problem<'_>, run: &mut Run<'_>) -> Result<Map>;
}
