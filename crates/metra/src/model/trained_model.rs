//! The [`Model`] type: a metric with its input conversion, its origin, its measured gain and its
//! match threshold.

use super::{Chain, Embedding, SeenRows, TrainingRows};
use crate::data::{Corpus, Narrowing};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

/// A learned metric as it is saved.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// How f64 input becomes f32 before anything else, where that needs care. Rows given to the
    /// chain are narrowed already.
    pub narrowing: Option<Narrowing>,
    /// The metric.
    pub chain: Chain,
    /// How it came about.
    pub origin: Origin,
    /// Where same ends and not the same begins, if that was calibrated.
    pub decision: Option<MatchDecision>,
    /// Names of the numbers in a mapped vector, in their order, where they have a meaning of their
    /// own: a model of attributes has one number an attribute. Empty otherwise.
    pub outputs: Vec<String>,
    /// What tells whether a row was learned from. `None` in models that do not keep it.
    pub training: Option<TrainingRows>,
}

/// The dissimilarity up to which two vectors are taken for the same, with what that was worth on the
/// rows it was calibrated on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatchDecision {
    /// A pair is the same where its dissimilarity is not above this.
    pub threshold: f64,
    /// The rate of false matches asked for.
    pub asked: f64,
    /// Share of the pairs of two identities that matched.
    pub false_match_rate: f64,
    /// Share of the pairs of one identity that matched.
    pub true_match_rate: f64,
    /// Lower end of the 95 % interval of the true-match rate.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Pairs of one identity.
    pub same: u64,
    /// Pairs of two identities.
    pub different: u64,
    /// Digest over the values of the rows it was calibrated on.
    pub data: String,
}

impl MatchDecision {
    /// Whether two vectors this dissimilar are the same. What is not a number is not.
    pub fn is_same(&self, dissimilarity: f64) -> bool {
        dissimilarity <= self.threshold
    }
}

/// How a model came about. No dates, paths or thread counts: the same data, settings and seed give
/// the same bytes anywhere.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Name of the learner.
    pub method: String,
    /// Its parameters, all of them, as text.
    pub parameters: BTreeMap<String, String>,
    /// Recipe of the preprocessing.
    pub prepare: String,
    /// Seed of all random draws.
    pub seed: u64,
    /// Digest over the training vectors' decoded values.
    pub data: String,
    /// Digest over the supervision.
    pub supervision: String,
    /// Facts that the learner reports (steps done, scale of the data, …).
    pub facts: BTreeMap<String, f64>,
    /// What was measured on the held-out test part, if one was held out.
    pub held_out: Option<HeldOut>,
    /// Whether the model was fitted anew on all rows, the test part among them, after that was
    /// measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refit: bool,
    /// The model whose map training started from, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_from: Option<StartedFrom>,
}

/// A model that training started from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartedFrom {
    /// BLAKE3 hash of its file.
    pub file: String,
    /// Digest over the training vectors of the first model, from which all others started.
    pub first_data: String,
    /// Digest over its supervision.
    pub first_supervision: String,
}

/// What was measured once on the held-out test part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldOut {
    /// What was new in the test part: identities, rows or queries.
    pub kind: String,
    /// Queries in the test part.
    pub queries: u64,
    /// Base, learned, difference and 95 % interval of every measure.
    pub measures: BTreeMap<String, MeasuredGain>,
    /// The same for queries with a relevant item that training had seen as relevant, with judgements.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seen_items: BTreeMap<String, MeasuredGain>,
    /// The same for queries about new items.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unseen_items: BTreeMap<String, MeasuredGain>,
}

/// One measure before and after.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredGain {
    /// Of the base metric.
    pub base: f64,
    /// Of the learned metric.
    pub learned: f64,
    /// Lower end of the 95 % interval of the difference.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Model {
    /// Put together; the parts must fit.
    pub fn new(narrowing: Option<Narrowing>, chain: Chain, origin: Origin) -> Result<Self> {
        if let Some(narrowing) = &narrowing {
            if chain.query_preprocessing().is_some() {
                return Err(Error::Data(
                    "queries of another dimension than items: expected values that f32 can hold without being moved \
                     or scaled"
                        .into(),
                ));
            }
            if narrowing.shift.len() != chain.embed_dim() {
                return Err(Error::shape(
                    "columns of the narrowing",
                    chain.embed_dim(),
                    narrowing.shift.len(),
                ));
            }
            let usable = narrowing.scale.is_finite()
                && narrowing.scale > 0.0
                && narrowing.shift.iter().all(|s| s.is_finite());
            if !usable {
                return Err(Error::Data(
                    "the narrowing has values that are not finite".into(),
                ));
            }
        }
        Ok(Model {
            narrowing,
            chain,
            origin,
            decision: None,
            outputs: Vec::new(),
            training: None,
        })
    }

    /// The same model with names for the numbers of a mapped vector: none, or one each and no two
    /// the same.
    pub fn with_outputs(mut self, outputs: Vec<String>) -> Result<Self> {
        let numbers = self.chain.output_dim();
        if !outputs.is_empty() && outputs.len() != numbers {
            return Err(Error::shape("names of outputs", numbers, outputs.len()));
        }
        let mut known = HashSet::with_capacity(outputs.len());
        for (place, name) in outputs.iter().enumerate() {
            if name.is_empty() || !known.insert(name) {
                return Err(Error::Data(format!(
                    "names of outputs: expected different ones, but {name:?} stands for number \
                     {place} and is empty or stands for another too"
                )));
            }
        }
        self.outputs = outputs;
        Ok(self)
    }

    /// The same model with another decision, whose numbers must be finite.
    pub fn with_decision(mut self, decision: MatchDecision) -> Result<Self> {
        let numbers = [
            decision.threshold,
            decision.asked,
            decision.false_match_rate,
            decision.true_match_rate,
            decision.low,
            decision.high,
        ];
        if numbers.iter().any(|number| !number.is_finite()) {
            return Err(Error::Data(
                "the decision has numbers that are not finite".into(),
            ));
        }
        self.decision = Some(decision);
        Ok(self)
    }
}

impl Model {
    /// How many of these rows the model learned from; `None` where it does not keep that.
    pub fn seen_rows(&self, rows: &dyn Corpus) -> Result<Option<SeenRows>> {
        let seen = |training: &TrainingRows| training.seen(rows, &self.origin.row_key());
        self.training.as_ref().map(seen).transpose()
    }

    /// For every one of these rows whether the model learned from it; `None` for rows of which that cannot be told.
    pub fn knows_rows(&self, rows: &dyn Corpus) -> Result<Vec<Option<bool>>> {
        match &self.training {
            Some(training) => training.knows(rows, &self.origin.row_key()),
            None => Ok(vec![None; rows.len() as usize]),
        }
    }

    /// For every one of these items whether it was relevant to a training query; `None` where the
    /// model does not keep that, or not of all items.
    pub fn seen_items(&self, items: &dyn Corpus) -> Result<Option<Vec<bool>>> {
        match &self.training {
            Some(training) => training.seen_items(items, &self.origin.row_key()),
            None => Ok(None),
        }
    }
}

impl Origin {
    /// Digests over the vectors and the supervision of the first model, if training started from one, or its own.
    pub(crate) fn first_data(&self) -> (&str, &str) {
        match &self.started_from {
            Some(first) => (&first.first_data, &first.first_supervision),
            None => (&self.data, &self.supervision),
        }
    }

    /// The key of digests of training rows: another one for every training set, but the same for models that started
    /// from each other, so that the rows of all of them can be recognised.
    pub(crate) fn row_key(&self) -> [u8; 32] {
        let (data, supervision) = self.first_data();
        let data = [data.as_bytes(), b"/", supervision.as_bytes()].concat();
        blake3::derive_key("metra: digests of training rows", &data)
    }
}

impl Model {
    /// Dimension of the vectors that it takes: of items, where queries have another one.
    pub fn input_dim(&self) -> usize {
        Embedding::input_dim(&self.chain)
    }

    /// Dimension of the queries that it takes.
    pub fn query_input_dim(&self) -> usize {
        self.chain.query_input_dim()
    }

    /// Dimension of a mapped vector.
    pub fn output_dim(&self) -> usize {
        self.chain.output_dim()
    }
}

impl Chain {
    fn embed_dim(&self) -> usize {
        Embedding::input_dim(self)
    }
}
