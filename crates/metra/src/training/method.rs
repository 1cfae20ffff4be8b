//! The [`Method`] trait: named parameters, and `fit`, which learns a map from a data set.

use super::local_sgd::LocalSgd;
use super::parameters::Parameters;
use super::run::Run;
use crate::Result;
use crate::dataset::Dataset;
use crate::model::{Map, Space};
use crate::supervision::SupervisionKind;
use std::collections::BTreeMap;

/// What a method makes of queries and items that are vectors of two models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TwoModels {
    /// It needs vectors that can be compared before anything is learned.
    Refuse,
    /// It learns a map for each side.
    MapEach,
    /// It learns one map, of vectors of both sides beside each other, which is a map for each side.
    Stack,
}

/// A method that learns a map from a data set: a struct of parameters.
pub trait Method: Parameters + Send + Sync + 'static {
    /// Its name, as the command and files write it.
    const NAME: &'static str;
    /// One sentence on what it learns.
    const SUMMARY: &'static str;
    /// The kinds of supervision that it learns from; none for a method that uses vectors alone.
    const NEEDS: &'static [SupervisionKind];
    /// Values worth trying of some parameters, for comparisons in which nobody names any.
    const GRID: &'static [(&'static str, &'static [&'static str])] = &[];
    /// Whether these are tried in training too where nobody names settings: for parameters whose best
    /// value depends so much on the data that no default serves.
    const TRIES_GRID: bool = false;

    /// What the publication states that it follows, for the preset `paper`; nothing where it states no settings.
    const PAPER: &'static [(&'static str, &'static str)] = &[];

    /// Whether it can be trained for codes of items, by the straight-through estimator.
    const TRAINS_FOR_CODES: bool = false;

    /// Whether it can start from the map of an earlier model ([`Run::start`]).
    const STARTS_FROM_MODEL: bool = false;

    /// What it makes of queries and items that are vectors of two models.
    const TWO_MODELS: TwoModels = TwoModels::Refuse;

    /// Whether it learns only from rows of several vectors ([`Dataset::vector_dims`]).
    const SEVERAL_VECTORS: bool = false;

    /// An error where parameters contradict each other. Bounds of single ones are checked before.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// The parameters, if they can be used.
    fn checked(self) -> Result<Self> {
        self.check_bounds()?;
        self.check()?;
        Ok(self)
    }

    /// The spaces in which its result may be compared.
    fn spaces(&self) -> &'static [Space] {
        &Space::ALL
    }

    /// Of these, those that validation chooses among where nobody names any: what the objective is about.
    /// Distances say nothing of inner products, which favour long vectors whatever lies near.
    fn own_spaces(&self) -> &'static [Space] {
        match self.spaces() {
            all if all == Space::ALL => &[Space::SquaredL2, Space::Cosine],
            some => some,
        }
    }

    /// Whether it learns from classes by passes over the corpus alone, so that rows may be on other
    /// machines.
    fn runs_by_passes(&self) -> bool {
        false
    }

    /// How it learns by local SGD, each shard of a corpus on its own; `None` where it cannot.
    fn local_sgd(&self) -> Option<&dyn LocalSgd> {
        None
    }

    /// Learn.
    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map>;
}

/// A method of any type, with checked parameters.
pub trait AnyMethod: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// All its parameters as text.
    fn parameters(&self) -> BTreeMap<String, String>;

    /// See [`Method::spaces`].
    fn spaces(&self) -> &'static [Space];

    /// See [`Method::own_spaces`].
    fn own_spaces(&self) -> &'static [Space];

    /// See [`Method::TRAINS_FOR_CODES`].
    fn trains_for_codes(&self) -> bool;

    /// See [`Method::STARTS_FROM_MODEL`].
    fn starts_from_model(&self) -> bool;

    /// See [`Method::TWO_MODELS`].
    fn two_models(&self) -> TwoModels;

    /// See [`Method::runs_by_passes`].
    fn runs_by_passes(&self) -> bool;

    /// See [`Method::local_sgd`].
    fn local_sgd(&self) -> Option<&dyn LocalSgd>;

    /// Learn.
    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map>;
}

impl<M: Method> AnyMethod for M {
    fn name(&self) -> &'static str {
        M::NAME
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        self.values()
    }

    fn spaces(&self) -> &'static [Space] {
        Method::spaces(self)
    }

    fn own_spaces(&self) -> &'static [Space] {
        Method::own_spaces(self)
    }

    fn trains_for_codes(&self) -> bool {
        M::TRAINS_FOR_CODES
    }

    fn starts_from_model(&self) -> bool {
        M::STARTS_FROM_MODEL
    }

    fn two_models(&self) -> TwoModels {
        M::TWO_MODELS
    }

    fn runs_by_passes(&self) -> bool {
        Method::runs_by_passes(self)
    }

    fn local_sgd(&self) -> Option<&dyn LocalSgd> {
        Method::local_sgd(self)
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        Method::fit(self, data, run)
    }
}
