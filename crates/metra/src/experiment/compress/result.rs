//! What a search for codes found, and what to do about it.

use crate::evaluate::{Comparison, Measure, Verdict};
use crate::experiment::verdicts::Verdicts;
use crate::model::{Model, Space};
use std::collections::BTreeMap;

/// Quality by bytes.
pub struct CompressionResult {
    /// What is measured.
    pub measure: Measure,
    /// The baseline: vectors as they are, in f32.
    pub base: Space,
    /// Bytes of an item of the baseline.
    pub base_bytes: usize,
    /// The baseline on the test part.
    pub base_value: f64,
    /// By growing budget.
    pub points: Vec<CompressionPoint>,
    /// What was evaluated on the test part; points name some of it.
    pub found: Vec<Compressed>,
    /// All that was tried.
    pub trials: Vec<CodeTrial>,
    /// A loss that does not matter.
    pub(super) tolerance: f64,
}

/// What a budget gives.
pub struct CompressionPoint {
    /// Bytes of an item, at most.
    pub budget: usize,
    /// The best code searched alone, as a place in [`CompressionResult::found`].
    pub alone: Option<usize>,
    /// The best of those that learn nothing, where the best one learns.
    pub unlearned: Option<usize>,
    /// The best code whose first answers are ranked again from disk.
    pub rescored: Option<usize>,
}

/// A map with a code, chosen on the validation part and evaluated on the test part.
pub struct Compressed {
    /// Number of the trial that it was chosen by.
    pub trial: usize,
    /// Whether it learned from supervision.
    pub is_learned: bool,
    /// Dimension of a mapped vector.
    pub rank: usize,
    /// Bytes of an item in memory.
    pub item_bytes: usize,
    /// Bytes of an item on disk, where answers are ranked again.
    pub disk_bytes: Option<usize>,
    /// Against the baseline on the test part.
    pub verdicts: Verdicts,
    /// The model, with its code.
    pub model: Model,
}

/// A map with a code on the validation part.
#[derive(Debug, Clone, serde::Serialize)]
pub struct CodeTrial {
    /// The method.
    pub method: String,
    /// Its preprocessing.
    pub prepare: String,
    /// Its settings, the code among them.
    pub settings: BTreeMap<String, String>,
    /// Whether it learns from supervision.
    pub learned: bool,
    /// The code.
    pub code: String,
    /// How mapped vectors are compared.
    pub space: String,
    /// Bytes of an item; `None` where the fit failed.
    pub item_bytes: Option<usize>,
    /// Searched alone.
    pub alone: Option<ValidationValue>,
    /// With the first answers ranked again.
    pub rescored: Option<ValidationValue>,
    /// Why it failed.
    pub failure: Option<String>,
}

/// What a trial is worth on the validation part.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct ValidationValue {
    /// Mean of the measure.
    pub mean: f64,
    /// What trials are chosen by: the mean, or less than 0 where queries about known or new items fall behind
    /// the baseline (see [`super::NewItems`]).
    pub criterion: f64,
}

impl ValidationValue {
    pub(super) fn new(criterion: f64, values: &[f64]) -> Self {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        ValidationValue { mean, criterion }
    }
}

impl CompressionResult {
    /// The measure of something evaluated, against the baseline.
    pub fn gain(&self, found: &Compressed) -> Option<Comparison> {
        let rows = &found.verdicts.rows;
        let row = rows.iter().find(|(measure, _)| *measure == self.measure);
        row.map(|(_, gain)| *gain)
    }

    /// Whether the interval leaves no loss that matters, and queries about new items do not get worse.
    fn is_kept(&self, found: &Compressed) -> bool {
        let unseen = &found.verdicts.unseen;
        let unseen = unseen.iter().find(|(measure, _)| *measure == self.measure);
        let is_worse = unseen.is_some_and(|(_, gain)| gain.verdict() == Verdict::Worse);
        let is_near = (self.gain(found)).is_some_and(|gain| gain.low > -self.tolerance);
        is_near && !is_worse
    }

    /// All points with what they give, by growing budget, codes alone first.
    fn all(&self) -> impl Iterator<Item = &Compressed> {
        let places = (self.points.iter()).flat_map(|point| [point.alone, point.rescored]);
        places.flatten().map(|place| &self.found[place])
    }

    /// The fewest bytes that lose nothing that matters.
    pub fn recommended(&self) -> Option<&Compressed> {
        self.all().find(|found| self.is_kept(found))
    }

    /// What to do, in a sentence.
    pub fn recommendation(&self) -> String {
        let base = format!("{} on {} bytes", self.base, self.base_bytes);
        let text = |found: &Compressed| {
            let gain = self.gain(found).map_or(String::new(), |gain| {
                let (difference, low, high) = (gain.difference, gain.low, gain.high);
                format!("{difference:+.4} [{low:+.4}, {high:+.4}]")
            });
            let disk = found.disk_bytes.map_or(String::new(), |bytes| {
                format!(" in memory and {bytes} on disk")
            });
            let s = if found.item_bytes == 1 { "" } else { "s" };
            format!(
                "{} byte{s}{disk}: {gain} {}",
                found.item_bytes, self.measure
            )
        };
        let value = |found: &Compressed| self.gain(found).map_or(f64::MIN, |gain| gain.learned);
        let best = self.all().max_by(|a, b| value(a).total_cmp(&value(b)));
        match (self.recommended(), best) {
            (Some(kept), Some(best)) if value(best) > value(kept) + self.tolerance => {
                format!("{} over {base}; most with {}", text(kept), text(best))
            }
            (Some(kept), _) => format!("{} over {base}", text(kept)),
            (None, Some(best)) => format!(
                "keep {base}: no budget surely loses less than {}; nearest are {}",
                self.tolerance,
                text(best)
            ),
            (None, None) => format!("keep {base}: nothing fits the budgets"),
        }
    }
}
