//! How far a metric agrees with comparisons of rows, for `eval` and `check`.

use crate::print;
use anyhow::Result;
use metra::data::{Corpus, Groups};
use metra::evaluate::{Bootstrap, Comparison, agreement, separation};
use metra::model::Chain;
use metra::supervision::{Comparisons, Quadruplet, derive::as_quadruplet};
use serde::Serialize;

/// What was measured by one kind of comparison.
#[derive(Serialize)]
pub(crate) struct Agreement {
    /// pairs, triplets or quadruplets.
    pub(crate) kind: &'static str,
    /// auc with pairs, and the share ordered right otherwise.
    pub(crate) measure: &'static str,
    /// Number of comparisons.
    pub(crate) comparisons: usize,
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Gain over the base, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gain: Option<print::Row>,
}

/// Rows with their groups, and what was said of them.
pub(crate) struct Judge<'a> {
    pub(crate) corpus: &'a dyn Corpus,
    pub(crate) comparisons: &'a Comparisons,
    pub(crate) seed: u64,
}

impl Judge<'_> {
    /// Measure a metric, and its gain over a base, by every kind of comparison there is.
    pub(crate) fn judge(
        &self,
        metric: &Chain,
        groups: Option<&Groups>,
        base: Option<&Chain>,
    ) -> Result<Vec<Agreement>> {
        let triplets: Vec<Quadruplet> = self
            .comparisons
            .triplets()
            .iter()
            .map(as_quadruplet)
            .collect();
        let kinds = [
            ("triplets", &triplets[..]),
            ("quadruplets", self.comparisons.quadruplets()),
        ];
        let mut found = Vec::new();
        found.extend(self.pairs(metric, groups, base)?);
        for (kind, quadruplets) in kinds {
            if !quadruplets.is_empty() {
                found.push(self.ordered(kind, quadruplets, metric, groups, base)?);
            }
        }
        Ok(found)
    }

    fn pairs(
        &self,
        metric: &Chain,
        groups: Option<&Groups>,
        base: Option<&Chain>,
    ) -> Result<Option<Agreement>> {
        let (similar, dissimilar) = (self.comparisons.similar(), self.comparisons.dissimilar());
        if similar.is_empty() && dissimilar.is_empty() {
            return Ok(None);
        }
        let learned = separation(metric, self.corpus, groups, similar, dissimilar)?;
        let gain = match base {
            None => None,
            Some(base) => {
                let base = separation(base, self.corpus, None, similar, dissimilar)?;
                Some(learned.against(&base)?)
            }
        };
        Ok(Some(Agreement {
            kind: "pairs",
            measure: "auc",
            comparisons: learned.pairs(),
            value: learned.auc(),
            low: learned.interval().0,
            high: learned.interval().1,
            gain: gain.map(|gain| row("pairs auc", &gain)),
        }))
    }

    fn ordered(
        &self,
        kind: &'static str,
        quadruplets: &[Quadruplet],
        metric: &Chain,
        groups: Option<&Groups>,
        base: Option<&Chain>,
    ) -> Result<Agreement> {
        let bootstrap = Bootstrap {
            seed: self.seed,
            ..Bootstrap::default()
        };
        let learned = agreement(metric, self.corpus, groups, quadruplets)?;
        let gain = match base {
            None => None,
            Some(base) => {
                let base = agreement(base, self.corpus, None, quadruplets)?;
                Some(learned.against(&base, &bootstrap)?)
            }
        };
        let (low, high) = learned.interval(&bootstrap)?;
        Ok(Agreement {
            kind,
            measure: "right",
            comparisons: quadruplets.len(),
            value: learned.share(),
            low,
            high,
            gain: gain.map(|gain| row(kind, &gain)),
        })
    }
}

fn row(name: &str, gain: &Comparison) -> print::Row {
    print::Row::new(name.into(), gain)
}

impl Agreement {
    /// In words: how many are ordered right, or the area under the curve.
    pub(crate) fn words(&self) -> String {
        let (count, interval) = (
            print::count(self.comparisons as u64),
            format!("95 % interval [{:.4}, {:.4}]", self.low, self.high),
        );
        match self.measure {
            "auc" => format!(
                "auc {:.4} of {count} similar and dissimilar pairs, {interval}",
                self.value
            ),
            _ => format!("{:.4} of {count} ordered right, {interval}", self.value),
        }
    }
}
