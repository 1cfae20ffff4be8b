//! Results of a comparison, as they are stored in `results.json` and read by reports.
//!
//! Nothing here depends on the clock, on the number of threads or on the order in which trials
//! ended, so that a comparison that was interrupted gives the same bytes as one that was not. What
//! it cost is in [`Costs`], a file of its own.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the form below.
pub const FORMAT: u32 = 1;

/// A finished comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of the software that made it.
    pub version: String,
    /// [`CODE_DIGEST`](super::CODE_DIGEST) of the build that made it; empty in results of builds before it was noted.
    #[serde(default)]
    pub code_digest: String,
    /// Name of the experiment.
    pub name: String,
    /// What it is about, in a few sentences; may be empty.
    pub about: String,
    /// How to get it again: a command line.
    pub command: String,
    /// The data.
    pub data: DataFacts,
    /// How methods were chosen and judged.
    pub protocol: ProtocolFacts,
    /// Name of the line that every other is compared with.
    pub base: String,
    /// Name of the line with the highest mean of the criterion.
    pub best: String,
    /// One line a method, in the order of the experiment.
    pub lines: Vec<Line>,
    /// What was said beforehand about the order of methods, and what came of it.
    pub claims: Vec<ClaimOutcome>,
    /// Names of facts that learners report and that tables are to show.
    pub facts: Vec<String>,
}

/// What was compared on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataFacts {
    /// Shape and classes or judgements, in words.
    pub text: String,
    /// Digest of the vectors.
    pub fingerprint: String,
    /// Digest of the supervision.
    pub supervision: String,
}

/// How it was compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProtocolFacts {
    /// Who is searched for by whom.
    pub protocol: String,
    /// What is new in held-out parts.
    pub holdout: String,
    /// Units of each split's parts.
    pub splits: Vec<Sizes>,
    /// Whether the test parts together hold every unit once, so that their queries are pooled.
    pub folds: bool,
    /// Seed of all draws.
    pub seed: u64,
    /// Measure by which settings were chosen on validation parts, and by which lines are ordered.
    pub criterion: String,
    /// All measures, in the order of every list of values here.
    pub measures: Vec<String>,
    /// Most settings that a method may try on each split.
    pub budget: usize,
    /// Factor of successive halving; `None` where every trial runs to its end.
    pub halving: Option<u32>,
    /// Re-ranking of the test part, in words; `None` without.
    pub rerank: Option<String>,
    /// Comparisons made at once, by which the wider intervals are adjusted (Bonferroni).
    pub comparisons: usize,
    /// Resamples that the standard errors of intervals are made of.
    pub resamples: u32,
}

/// Sizes of one split's parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// Units learned from.
    pub train: usize,
    /// Units that settings were chosen on.
    pub validation: usize,
    /// Units that are judged.
    pub test: usize,
}

/// One method with what it reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Its name in this comparison.
    pub name: String,
    /// The learner.
    pub method: String,
    /// Settings that were fixed.
    pub settings: BTreeMap<String, String>,
    /// Values that were tried.
    pub grid: BTreeMap<String, Vec<String>>,
    /// Settings tried on each split.
    pub trials: usize,
    /// Mean and deviation over splits, one a measure; empty where every split failed.
    pub measures: Vec<MeasureLine>,
    /// One a split, in order.
    pub splits: Vec<SplitLine>,
    /// Gains over the base, one a measure; empty for the base itself and where a split failed.
    pub against_base: Vec<Gain>,
    /// Gains over the best line (never positive for the criterion's mean), one a measure.
    pub against_best: Vec<Gain>,
    /// Share of queries whose first relevant item has rank 1, at most 2, …; empty where classes
    /// are judged and not rankings.
    pub cmc: Vec<f64>,
    /// Mean precision at recall 0, 0.05, … 1 (the largest at that recall or a greater one).
    pub precision: Vec<f64>,
    /// The criterion query by query against the base; `None` as for `against_base`.
    pub queries: Option<QueryChanges>,
    /// With judgements: the criterion over queries with and without a relevant item that training
    /// had seen, those with one first. A gain on the former alone is memory.
    pub parts: Vec<PartLine>,
}

/// A line on some of the queries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartLine {
    /// Which: "seen items" or "unseen items", or the same with "classes".
    pub part: String,
    /// How many.
    pub queries: usize,
    /// Mean of the criterion.
    pub mean: f64,
    /// Gain over the base; `None` for the base itself.
    pub gain: Option<Gain>,
}

/// One measure of a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasureLine {
    /// Its name.
    pub measure: String,
    /// Mean over splits (of folds: over all queries).
    pub mean: f64,
    /// Standard deviation over splits with n − 1; 0 for a single one.
    pub deviation: f64,
    /// What a publication states for it, in the same unit (0 to 1).
    pub published: Option<f64>,
}

/// One split of a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitLine {
    /// Chosen values of what was tried.
    pub chosen: BTreeMap<String, String>,
    /// Preparation of the vectors.
    pub prepare: String,
    /// Chosen score after the map.
    pub score: String,
    /// Steps after which validation was best, for learners that work in steps.
    pub steps: Option<u64>,
    /// The criterion on the validation part.
    pub validation: Option<f64>,
    /// The measures on the test part; empty where it failed.
    pub values: Vec<f64>,
    /// Queries judged.
    pub queries: usize,
    /// Queries left out because nothing is relevant to them.
    pub skipped: u64,
    /// What the learner reported.
    pub facts: BTreeMap<String, f64>,
    /// Why there is nothing.
    pub failure: Option<String>,
}

/// What an interval says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// The interval is above 0.
    Better,
    /// The interval is below 0.
    Worse,
    /// It holds 0.
    None,
}

impl Evidence {
    /// Of an interval.
    pub fn of(low: f64, high: f64) -> Self {
        if low > 0.0 {
            Evidence::Better
        } else if high < 0.0 {
            Evidence::Worse
        } else {
            Evidence::None
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Evidence::Better => "better",
            Evidence::Worse => "worse",
            Evidence::None => "no evidence",
        }
    }
}

/// A difference of means with its paired intervals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gain {
    /// The measure.
    pub measure: String,
    /// This line less the other.
    pub difference: f64,
    /// Ends of the 95 % interval.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// Ends of the interval that allows for all comparisons made at once.
    pub wide_low: f64,
    /// See `wide_low`.
    pub wide_high: f64,
    /// What the 95 % interval says.
    pub evidence: Evidence,
    /// What the wide one says.
    pub adjusted: Evidence,
    /// Splits in which this line is ahead of the other.
    pub ahead: usize,
    /// Queries compared.
    pub queries: usize,
    /// What was resampled: identities, or the queries themselves.
    pub clusters: usize,
}

/// Queries that gained and lost against the base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryChanges {
    /// Queries that gained.
    pub better: usize,
    /// Queries that stayed as they were.
    pub equal: usize,
    /// Queries that lost.
    pub worse: usize,
    /// Numbers of queries by change, in 20 equal bins from −1 to 1; those that stayed as they were
    /// are left out.
    pub histogram: Vec<usize>,
    /// The largest gains, largest first.
    pub gains: Vec<QueryChange>,
    /// The largest losses, largest first.
    pub losses: Vec<QueryChange>,
}

/// One query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryChange {
    /// Its row, or its id where queries have ids.
    pub query: String,
    /// The split it was judged in, from 0.
    pub split: usize,
    /// The criterion for the base.
    pub base: f64,
    /// The criterion for this line.
    pub value: f64,
}

/// What came of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// The interval of the difference is above 0.
    Reproduced,
    /// The interval is below 0.
    NotReproduced,
    /// The interval holds 0, or a split failed.
    Undecided,
}

impl Finding {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Finding::Reproduced => "reproduced",
            Finding::NotReproduced => "not reproduced",
            Finding::Undecided => "undecided",
        }
    }
}

/// A claim with what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimOutcome {
    /// The line said to be better.
    pub better: String,
    /// The line said to be worse.
    pub worse: String,
    /// By this measure.
    pub measure: String,
    /// Who says so.
    pub source: String,
    /// What came of it.
    pub finding: Finding,
    /// Better less worse, with its 95 % interval; `None` where a split failed.
    pub gain: Option<Gain>,
    /// A sentence on why, where it was not reproduced; may be empty.
    pub remark: String,
}

/// What a comparison cost: measured, so never the same twice.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// One a line, by its name.
    pub lines: BTreeMap<String, Cost>,
    /// Seconds of one 2048 × 2048 × 2048 product in f32 on one thread, measured beside the fits.
    pub product_seconds: f64,
    /// Trials that ran at once.
    pub threads: usize,
    /// Seconds from start to end, all runs of an interrupted comparison together.
    pub wall_seconds: f64,
    /// CPU seconds of all trials and fits.
    pub cpu_seconds: f64,
}

impl Costs {
    /// As text.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string_pretty(self)
            .map(|text| text + "\n")
            .map_err(|error| Error::Data(format!("the costs cannot be written: {error}")))
    }

    /// From text.
    pub fn from_json(text: &str) -> Result<Self> {
        serde_json::from_str(text)
            .map_err(|error| Error::Data(format!("these are not costs of compare: {error}")))
    }
}

/// What one line cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// CPU seconds of one fit with the chosen settings on the first split, alone on one thread.
    pub fit_cpu_seconds: f64,
    /// Most memory that this fit held beside the data, in bytes; `None` where the system does not
    /// tell.
    pub fit_peak_bytes: Option<u64>,
    /// CPU seconds of all its trials and fits, on all splits.
    pub cpu_seconds: f64,
}

impl Results {
    /// The line of this name.
    #[cfg(test)]
    pub(crate) fn line(&self, name: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.name == name)
    }

    /// The place of the criterion among the measures.
    pub fn criterion(&self) -> usize {
        let wanted = &self.protocol.criterion;
        let place = self.protocol.measures.iter().position(|m| m == wanted);
        place.unwrap_or(0)
    }

    /// The same without what tells of single queries, for publishing where the data may not be published.
    pub fn without_queries(mut self) -> Self {
        for queries in self.lines.iter_mut().flat_map(|line| &mut line.queries) {
            queries.gains.clear();
            queries.losses.clear();
        }
        self
    }

    /// As text, the same for the same comparison.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string_pretty(self)
            .map(|text| text + "\n")
            .map_err(|error| Error::Data(format!("the results cannot be written: {error}")))
    }

    /// From text.
    pub fn from_json(text: &str) -> Result<Self> {
        let results: Results = serde_json::from_str(text)
            .map_err(|error| Error::Data(format!("these are not results of compare: {error}")))?;
        if results.format != FORMAT {
            let found = results.format;
            let expected = FORMAT.to_string();
            return Err(Error::parameter("format of the results", expected, found));
        }
        Ok(results)
    }
}

impl Line {
    /// Whether some split failed.
    pub fn failed(&self) -> bool {
        self.splits.iter().any(|split| split.failure.is_some())
    }

    /// Mean over splits of a fact that the learner reported; `None` where it reported none.
    pub fn fact(&self, name: &str) -> Option<f64> {
        let values: Option<Vec<f64>> = (self.splits.iter())
            .map(|split| split.facts.get(name).copied())
            .collect();
        let values = values.filter(|values| !values.is_empty())?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Values chosen most often over the splits, each with how often.
    pub fn usual(&self) -> BTreeMap<String, (String, usize)> {
        let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        for split in self.splits.iter().filter(|s| s.failure.is_none()) {
            let mut add = |name, value| {
                *counts.entry(name).or_default().entry(value).or_default() += 1;
            };
            for (name, value) in &split.chosen {
                add(name.as_str(), value.as_str());
            }
            add("score", split.score.as_str());
        }
        let most = counts.into_iter().map(|(name, values)| {
            let best = values.into_iter().max_by_key(|(_, count)| *count);
            let (value, count) = best.unwrap_or_default();
            (name.to_owned(), (value.to_owned(), count))
        });
        most.collect()
    }
}
