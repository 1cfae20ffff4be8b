//! What a test part says of a method against the baseline, over all queries and apart for known and new
//! items, and what to conclude from it.

use super::gate::Decision;
use super::scores::Scores;
use crate::Result;
use crate::evaluate::{Comparison, Measure, Verdict};
use std::collections::BTreeSet;
use std::fmt;

/// What of a query training may have seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenKind {
    /// Its relevant items.
    Items,
    /// Its class.
    Classes,
}

impl fmt::Display for SeenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SeenKind::Items => "items",
            SeenKind::Classes => "classes",
        })
    }
}

/// Base and learned on the test part.
pub struct Verdicts {
    /// Scores of the base.
    pub base: Scores,
    /// Scores of the learned metric.
    pub learned: Scores,
    /// One comparison a measure.
    pub rows: Vec<(Measure, Comparison)>,
    /// The same for queries some of whose relevant items training had seen as relevant, and for
    /// those with none (of orderings, rows whose class training had rows of, and others); where there are such queries.
    pub seen: Vec<(Measure, Comparison)>,
    /// See `seen`.
    pub unseen: Vec<(Measure, Comparison)>,
    /// The queries of `seen`; `None` without such.
    pub(super) seen_queries: Option<BTreeSet<u64>>,
    /// What training had seen of them.
    pub kind: SeenKind,
}

impl Verdicts {
    pub(super) fn new(
        base: Scores,
        learned: Scores,
        (seen_queries, kind): (Option<BTreeSet<u64>>, SeenKind),
        seed: u64,
    ) -> Result<Self> {
        let compare = |base: &Scores, learned: &Scores| -> Result<Vec<(Measure, Comparison)>> {
            (base.measures().iter())
                .map(|measure| Ok((*measure, learned.against(base, *measure, seed)?)))
                .collect()
        };
        let (mut seen, mut unseen) = (Vec::new(), Vec::new());
        if let Some(known) = &seen_queries {
            for (which, target) in [(true, &mut seen), (false, &mut unseen)] {
                let base = base.filter(|q| known.contains(&q) == which);
                if !base.queries().is_empty() {
                    let learned = learned.filter(|q| known.contains(&q) == which);
                    *target = compare(&base, &learned)?;
                }
            }
        }
        // Rows of seen classes alone, or of unseen ones, are all rows.
        if kind == SeenKind::Classes && (seen.is_empty() || unseen.is_empty()) {
            (seen, unseen) = (Vec::new(), Vec::new());
        }
        Ok(Verdicts {
            rows: compare(&base, &learned)?,
            base,
            learned,
            seen,
            unseen,
            seen_queries,
            kind,
        })
    }

    /// What to do by a measure: ship if the whole gains more than chance and queries about items that
    /// training had not seen do not get worse.
    pub fn decision(&self, criterion: Measure) -> Decision {
        let whole = row(&self.rows, criterion);
        let whole = whole.map_or(Decision::NoEvidence, |found| Decision::of(found, 0.0));
        match row(&self.unseen, criterion) {
            Some(unseen) if whole == Decision::Ship && unseen.verdict() == Verdict::Worse => {
                Decision::WorseSlice
            }
            _ => whole,
        }
    }

    /// The decision in words, with the measures that gained and lost and what it says of new items.
    pub fn conclusion(&self, criterion: Measure) -> String {
        let of = |wanted: Verdict| -> Vec<String> {
            (self.rows.iter())
                .filter(|(_, found)| found.verdict() == wanted)
                .map(|(measure, _)| measure.to_string())
                .collect()
        };
        let (better, worse) = (of(Verdict::Better), of(Verdict::Worse));
        let decision = self.decision(criterion);
        let kind = self.kind;
        let mut text = match decision {
            Decision::Ship if !worse.is_empty() => {
                "better on the whole, but look at what it loses".to_owned()
            }
            Decision::WorseSlice => {
                format!("better on known {kind}, but worse on new ones: keep the base")
            }
            decision => decision.words().to_owned(),
        };
        for (word, measures) in [("better", better), ("WORSE", worse)] {
            if !measures.is_empty() {
                text.push_str(&format!("; {word} in {}", measures.join(", ")));
            }
        }
        // A gain on known items alone is memory: it says nothing about items that come later.
        if let Some(unseen) = row(&self.unseen, criterion) {
            let found = match unseen.verdict() {
                Verdict::Better => "better",
                Verdict::Worse => "WORSE",
                Verdict::NoEvidence => "no evidence of a change",
            };
            let (difference, low, high) = (unseen.difference, unseen.low, unseen.high);
            text.push_str(&format!(
                "; {found} on {kind} that training had not seen ({criterion} {difference:+.3} \
                 [{low:+.3}, {high:+.3}])"
            ));
        }
        text
    }
}

fn row(rows: &[(Measure, Comparison)], wanted: Measure) -> Option<&Comparison> {
    let found = rows.iter().find(|(measure, _)| *measure == wanted);
    found.map(|(_, comparison)| comparison)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEASURE: Measure = Measure::NdcgAt(10);

    fn gain(low: f64, high: f64) -> Vec<(Measure, Comparison)> {
        let difference = (low + high) / 2.0;
        let found = Comparison {
            base: 0.6,
            learned: 0.6 + difference,
            difference,
            low,
            high,
            queries: 50,
            clusters: 50,
        };
        vec![(MEASURE, found)]
    }

    fn found(whole: (f64, f64), unseen: (f64, f64)) -> (Decision, String) {
        let verdicts = Verdicts {
            base: Scores::new(&[MEASURE]),
            learned: Scores::new(&[MEASURE]),
            rows: gain(whole.0, whole.1),
            seen: Vec::new(),
            unseen: gain(unseen.0, unseen.1),
            seen_queries: None,
            kind: SeenKind::Items,
        };
        (verdicts.decision(MEASURE), verdicts.conclusion(MEASURE))
    }

    #[test]
    fn a_gain_that_costs_new_items_is_not_shipped() {
        // What SciFact says of WARCA.
        let (decision, text) = found((0.1, 0.2), (-0.152, -0.042));
        assert_eq!(decision, Decision::WorseSlice);
        assert!(text.contains("worse on new ones"), "{text}");
        assert!(text.contains("WORSE on items that training had not seen"));
        assert!(text.contains("-0.097 [-0.152, -0.042]"), "{text}");
    }

    #[test]
    fn no_evidence_and_worse_are_told_apart() {
        let (decision, text) = found((0.1, 0.2), (-0.01, 0.05));
        assert_eq!(decision, Decision::Ship);
        assert!(text.contains("no evidence of a change on items"), "{text}");
        let (decision, text) = found((0.1, 0.2), (0.01, 0.05));
        assert_eq!(decision, Decision::Ship);
        assert!(text.contains("; better on items"), "{text}");
        assert_eq!(found((-0.2, -0.1), (-0.2, -0.1)).0, Decision::Worse);
    }
}
