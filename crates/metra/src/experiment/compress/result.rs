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
    /// Largest acceptable loss.
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
    /// The best code whose first answers are rescored from disk.
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
    /// What first answers are rescored by, where they are: items as they lie on disk.
    pub rescoring: Option<Model>,
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
    /// With the first answers rescored.
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

    /// Why something evaluated is not recommended: its interval leaves too large a loss, or queries about new
    /// items get worse by more.
    fn refusal(&self, found: &Compressed) -> Option<String> {
        let unseen = &found.verdicts.unseen;
        let unseen = unseen.iter().find(|(measure, _)| *measure == self.measure);
        if !(self.gain(found)).is_some_and(|gain| gain.low > -self.tolerance) {
            return Some(format!(
                "no code is certain to lose less than {}",
                self.tolerance
            ));
        }
        let is_worse = |gain: &Comparison| {
            gain.verdict() == Verdict::Worse && gain.difference < -self.tolerance
        };
        unseen
            .filter(|(_, gain)| is_worse(gain))
            .map(|_| "on new items it loses".to_owned())
    }

    /// Everything that stands for a budget, by growing bytes in memory and then on disk.
    fn all(&self) -> Vec<&Compressed> {
        let places = self.points.iter().flat_map(CompressionPoint::places);
        let mut all: Vec<&Compressed> = places.map(|place| &self.found[place]).collect();
        all.sort_by_key(|found| (found.item_bytes, found.disk_bytes()));
        all
    }

    /// Method, rank and code of something evaluated, in words.
    pub fn words(&self, found: &Compressed) -> String {
        let trial = &self.trials[found.trial];
        let prepare = match trial.prepare.as_str() {
            "none" => String::new(),
            steps => format!("{steps}, "),
        };
        let code = match trial.code.as_str() {
            "none" => "f32",
            code => code,
        };
        let note = match (&found.rescoring, found.is_learned) {
            (Some(_), _) => " + rescoring",
            (None, true) => "",
            (None, false) => ", not learned",
        };
        format!("{prepare}{} {}, {code}{note}", trial.method, found.rank)
    }

    /// The fewest bytes with an acceptable loss. Of equally many, what is best on the test part; rescoring has to
    /// gain more than the tolerance, because it needs a second copy of the items.
    pub fn recommended(&self) -> Option<&Compressed> {
        let kept: Vec<&Compressed> = (self.all().into_iter())
            .filter(|found| self.refusal(found).is_none())
            .collect();
        let fewest = kept.first()?.item_bytes;
        let best = |is_rescored: bool| {
            let equal = kept.iter().copied().filter(|found| {
                found.item_bytes == fewest && found.rescoring.is_some() == is_rescored
            });
            equal.max_by(|a, b| self.value(a).total_cmp(&self.value(b)))
        };
        match (best(false), best(true)) {
            (Some(alone), Some(rescored))
                if self.value(rescored) <= self.value(alone) + self.tolerance =>
            {
                Some(alone)
            }
            (alone, rescored) => rescored.or(alone),
        }
    }

    /// The measure on the test part.
    fn value(&self, found: &Compressed) -> f64 {
        self.gain(found).map_or(f64::MIN, |gain| gain.learned)
    }

    /// Other measures that get worse, for people who look at the first answer alone.
    fn losses(&self, found: &Compressed) -> String {
        let rows = &found.verdicts.rows;
        let worse = rows.iter().filter(|(measure, gain)| {
            *measure != self.measure
                && gain.verdict() == Verdict::Worse
                && gain.difference < -self.tolerance
        });
        let words: Vec<String> = worse
            .map(|(measure, gain)| format!("{measure} {}", difference(gain)))
            .collect();
        match words.is_empty() {
            true => String::new(),
            false => format!(", but {}", words.join(" and ")),
        }
    }

    /// What to do, in a sentence.
    pub fn recommendation(&self) -> String {
        let base = format!("{} on {} bytes", self.base, self.base_bytes);
        let text = |found: &Compressed| {
            let gain = self.gain(found).as_ref().map_or(String::new(), difference);
            let disk = found.disk_bytes().map_or(String::new(), |bytes| {
                format!(" in memory and {bytes} on disk")
            });
            let s = if found.item_bytes == 1 { "" } else { "s" };
            let (bytes, words) = (found.item_bytes, self.words(found));
            format!("{bytes} byte{s}{disk} ({words}): {gain} {}", self.measure)
        };
        let value = |found: &Compressed| self.value(found);
        let best = (self.all().into_iter()).max_by(|a, b| value(a).total_cmp(&value(b)));
        match (self.recommended(), best) {
            (Some(kept), Some(best)) if value(best) > value(kept) + self.tolerance => {
                let losses = self.losses(kept);
                format!(
                    "{} over {base}{losses}; the most with {}",
                    text(kept),
                    text(best)
                )
            }
            (Some(kept), _) => format!("{} over {base}{}", text(kept), self.losses(kept)),
            (None, Some(best)) => {
                let reason = self.refusal(best).unwrap_or_default();
                format!("keep {base}: {reason}; the closest is {}", text(best))
            }
            (None, None) => format!("keep {base}: no code fits the budgets"),
        }
    }
}

impl CompressionPoint {
    /// What stands for the budget, as places in [`CompressionResult::found`].
    pub fn places(&self) -> impl Iterator<Item = usize> {
        let ways = [self.unlearned, self.alone, self.rescored];
        ways.into_iter().flatten()
    }
}

impl Compressed {
    /// Bytes of an item on disk, where answers are rescored.
    pub fn disk_bytes(&self) -> Option<usize> {
        self.rescoring
            .as_ref()
            .map(|model| model.chain.item_bytes())
    }
}

fn difference(gain: &Comparison) -> String {
    let (difference, low, high) = (gain.difference, gain.low, gain.high);
    format!("{difference:+.4} [{low:+.4}, {high:+.4}]")
}
