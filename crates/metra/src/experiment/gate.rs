//! The release gate: decides from paired results on held-out queries whether a candidate may
//! replace the baseline, and lists the slices and queries that get worse.
//!
//! A candidate ships only where the whole interval of its gain lies above 0 and above the least
//! gain asked for, and where no other measure gets reliably worse: a map that orders whole rankings better may lose the
//! first answers, which is what most people see. Slices are many questions asked of the same queries, of which one in twenty
//! would look bad by chance; their intervals are widened so that all of them hold together at 95 %
//! (Bonferroni), and a slice is called worse only where its wide interval lies below 0.

use super::{Scores, Slicing};
use crate::evaluate::{Comparison, Measure, Resampled, Verdict, resample};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::fmt;

/// From this value of the base on there is nothing to gain that would be worth a model.
pub(crate) const CEILING: f64 = 0.98;
const LEVEL: f64 = 0.95;
const RESAMPLES: u32 = 2000;

/// What is asked of a candidate.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// What is measured.
    pub measure: Measure,
    /// The gain that must be shown; 0 for any.
    pub min_gain: f64,
    /// Whether a slice that gets reliably worse keeps the candidate from shipping.
    pub no_worse_slice: bool,
    /// Whether it may ship although another measure gets reliably worse.
    pub allow_worse_measures: bool,
    /// Whether the candidate learned from the queries.
    pub trained_on: bool,
    /// How many of the queries that fall most are listed.
    pub listed: usize,
    /// Seed of the bootstrap.
    pub seed: u64,
}

/// What to do with a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The interval of the gain lies above 0 and above the least gain asked for.
    Ship,
    /// The interval holds 0.
    NoEvidence,
    /// The interval lies below 0.
    Worse,
    /// There is a gain, but it is not shown to reach the least one asked for.
    BelowMinimum,
    /// The base is so good that no candidate could be shown to be better, or not by enough.
    NothingToGain,
    /// Better on the whole, but a slice gets worse and that was not allowed.
    WorseSlice,
    /// The candidate learned from the queries that it was to be evaluated on.
    TrainedOn,
    /// Better by the measure asked for, but another gets worse and that was not allowed.
    WorseMeasure,
}

impl Decision {
    /// What the interval of a gain says, for a least gain.
    pub fn of(found: &Comparison, min_gain: f64) -> Self {
        if found.high < 0.0 {
            Decision::Worse
        } else if found.low > 0.0 && found.low >= min_gain {
            Decision::Ship
        } else if 1.0 - found.base < min_gain || (found.low <= 0.0 && found.base >= CEILING) {
            Decision::NothingToGain
        } else if found.low > 0.0 {
            Decision::BelowMinimum
        } else {
            Decision::NoEvidence
        }
    }

    /// The exit code of a program that decides: 0 to ship; 1 and 2 are left to errors.
    pub fn exit_code(self) -> u8 {
        match self {
            Decision::Ship => 0,
            Decision::NoEvidence => 3,
            Decision::Worse => 4,
            Decision::BelowMinimum => 5,
            Decision::NothingToGain => 6,
            Decision::WorseSlice => 7,
            Decision::TrainedOn => 8,
            Decision::WorseMeasure => 9,
        }
    }

    /// The decision in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Decision::Ship => "ship: the gain is more than chance",
            Decision::NoEvidence => "no evidence of a gain: keep the base",
            Decision::Worse => "worse: keep the base",
            Decision::BelowMinimum => {
                "a gain, but not shown to reach the least one asked for: keep the base"
            }
            Decision::NothingToGain => "nothing to gain: the base is good enough, keep it",
            Decision::WorseSlice => "better on the whole, but a slice gets worse: keep the base",
            Decision::TrainedOn => {
                "not a test: the candidate learned from these rows; evaluate it on others"
            }
            Decision::WorseMeasure => {
                "better by the measure asked for, but worse by another: keep the base, unless only the former counts"
            }
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Decision::Ship => "ship",
            Decision::NoEvidence => "no evidence",
            Decision::Worse => "worse",
            Decision::BelowMinimum => "below minimum",
            Decision::NothingToGain => "nothing to gain",
            Decision::WorseSlice => "worse slice",
            Decision::TrainedOn => "trained on",
            Decision::WorseMeasure => "worse measure",
        })
    }
}

/// What is left to gain over the base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Headroom {
    /// What is measured.
    pub measure: Measure,
    /// Mean of the base.
    pub base: f64,
    /// Share of queries whose value is 1 already.
    pub perfect: f64,
    /// Share of queries with something relevant among the first ten; `None` where classes were
    /// judged.
    pub found: Option<f64>,
}

impl Headroom {
    /// Headroom over these scores of the base.
    pub fn of(base: &Scores, measure: Measure) -> Self {
        let values = base.values(measure);
        let perfect = values.iter().filter(|value| **value >= 1.0).count();
        Headroom {
            measure,
            base: base.mean(measure),
            perfect: perfect as f64 / values.len().max(1) as f64,
            found: base.cmc().get(9).copied(),
        }
    }

    /// The headroom in a sentence.
    pub fn words(&self) -> String {
        let measure = self.measure;
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let found = self.found.map_or(String::new(), |found| {
            let found = percent(found);
            format!("; {found} find something relevant in the top 10")
        });
        let head = if self.base >= CEILING {
            format!(
                "next to none: your base already has {:.4} of 1 in {measure}",
                self.base
            )
        } else {
            format!("{:.4} of {measure} above the base", 1.0 - self.base)
        };
        format!(
            "{head} ({} of queries are perfect{found})",
            percent(self.perfect)
        )
    }
}

/// What one slice says.
#[derive(Debug, Clone)]
pub struct Slice {
    /// What queries were cut by.
    pub by: String,
    /// The value that they share.
    pub value: String,
    /// The gain, with an interval that holds together with those of all other slices.
    pub comparison: Comparison,
    /// Whether it may not get worse, whatever the terms say.
    not_worse: bool,
}

impl Slice {
    /// Whether the slice got reliably worse.
    pub(crate) fn is_worse(&self) -> bool {
        self.comparison.verdict() == Verdict::Worse
    }
}

/// A query that fell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regression {
    /// The query.
    pub query: u64,
    /// Value of the base.
    pub base: f64,
    /// Value of the candidate.
    pub candidate: f64,
}

/// What the gate says.
#[derive(Debug, Clone)]
pub struct Gate {
    /// What to do.
    pub decision: Decision,
    /// The gain over all queries.
    pub comparison: Comparison,
    /// What was left to gain.
    pub headroom: Headroom,
    /// All other measures that both have, each with an interval of its own.
    pub others: Vec<(Measure, Comparison)>,
    /// All slices, in the order of the ways to cut.
    pub slices: Vec<Slice>,
    /// Queries that rose, stayed and fell.
    pub changed: [usize; 3],
    /// Those that fell most, the worst first.
    pub regressions: Vec<Regression>,
}

impl Gate {
    /// Hold a candidate against the base. Both must have answered the same queries.
    pub fn new(base: &Scores, candidate: &Scores, cuts: &[Slicing], terms: &Terms) -> Result<Self> {
        if !(terms.min_gain >= 0.0 && terms.min_gain <= 1.0) {
            let expected = "between 0 and 1";
            return Err(Error::parameter("min-gain", expected, terms.min_gain));
        }
        let queries = candidate.queries();
        if base.queries() != queries {
            return Err(Error::Data(format!(
                "a paired comparison needs the same queries, but the base has {} and the candidate \
                 {} (or other ones)",
                base.queries().len(),
                queries.len()
            )));
        }
        let comparison = candidate.against(base, terms.measure, terms.seed)?;
        let pairs = Pairs {
            base: base.values(terms.measure),
            candidate: candidate.values(terms.measure),
            clusters: candidate.clusters(),
            seed: terms.seed,
        };
        let slices = pairs.slices(cuts)?;
        let measures = candidate.measures().iter().copied();
        let others = (measures.filter(|other| *other != terms.measure))
            .map(|other| Ok((other, candidate.against(base, other, terms.seed)?)))
            .collect::<Result<Vec<_>>>()?;
        let mut decision = Decision::of(&comparison, terms.min_gain);
        if terms.trained_on {
            decision = Decision::TrainedOn;
        }
        let worse = |slice: &Slice| slice.is_worse() && (terms.no_worse_slice || slice.not_worse);
        if decision == Decision::Ship && slices.iter().any(worse) {
            decision = Decision::WorseSlice;
        }
        // Their intervals are not widened: a candidate that is kept back by luck costs less than one that ships a loss.
        let worse = |(_, found): &(Measure, Comparison)| found.verdict() == Verdict::Worse;
        if decision == Decision::Ship && !terms.allow_worse_measures && others.iter().any(worse) {
            decision = Decision::WorseMeasure;
        }
        let (changed, regressions) = pairs.changes(queries, terms.listed);
        Ok(Gate {
            decision,
            comparison,
            headroom: Headroom::of(base, terms.measure),
            others,
            slices,
            changed,
            regressions,
        })
    }
}

struct Pairs<'a> {
    base: &'a [f64],
    candidate: &'a [f64],
    clusters: &'a [u64],
    seed: u64,
}

impl Pairs<'_> {
    fn slices(&self, cuts: &[Slicing]) -> Result<Vec<Slice>> {
        let mut found: Vec<(Slice, Resampled)> = Vec::new();
        for cut in cuts {
            if cut.of.len() != self.base.len() {
                let what = format!("values of {} for the queries", cut.by);
                return Err(Error::shape(&what, self.base.len(), cut.of.len()));
            }
            for (number, value) in cut.names.iter().enumerate() {
                let places: Vec<usize> = (0..cut.of.len())
                    .filter(|at| cut.of[*at] == number)
                    .collect();
                let pick = |values: &[f64]| places.iter().map(|p| values[*p]).collect::<Vec<_>>();
                let (base, candidate) = (pick(self.base), pick(self.candidate));
                let gains: Vec<f64> = candidate.iter().zip(&base).map(|(c, b)| c - b).collect();
                let clusters: Vec<u64> = places.iter().map(|p| self.clusters[*p]).collect();
                let resampled = resample(&[&gains], &clusters, RESAMPLES, self.seed)?;
                let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
                let comparison = Comparison {
                    base: mean(&base),
                    learned: mean(&candidate),
                    difference: mean(&gains),
                    low: 0.0,
                    high: 0.0,
                    queries: places.len(),
                    clusters: resampled.clusters,
                };
                let slice = Slice {
                    by: cut.by.clone(),
                    value: value.clone(),
                    comparison,
                    not_worse: cut.not_worse,
                };
                found.push((slice, resampled));
            }
        }
        let level = 1.0 - (1.0 - LEVEL) / found.len().max(1) as f64;
        let widened = found.into_iter().map(|(mut slice, resampled)| {
            (slice.comparison.low, slice.comparison.high) = resampled.interval(0, level);
            slice
        });
        Ok(widened.collect())
    }

    /// Numbers of queries that rose, stayed and fell, and those that fell most. A query that a
    /// protocol asked several times is listed by its mean.
    fn changes(&self, queries: &[u64], listed: usize) -> ([usize; 3], Vec<Regression>) {
        let mut sums: BTreeMap<u64, [f64; 3]> = BTreeMap::new();
        for ((query, base), candidate) in queries.iter().zip(self.base).zip(self.candidate) {
            let sum = sums.entry(*query).or_default();
            for (total, value) in sum.iter_mut().zip([*base, *candidate, 1.0]) {
                *total += value;
            }
        }
        let mut changed = [0; 3];
        let mut fallen = Vec::new();
        for (query, [base, candidate, times]) in sums {
            let (base, candidate) = (base / times, candidate / times);
            let place = if candidate > base {
                0
            } else if candidate == base {
                1
            } else {
                fallen.push(Regression {
                    query,
                    base,
                    candidate,
                });
                2
            };
            changed[place] += 1;
        }
        let fall = |fallen: &Regression| fallen.candidate - fallen.base;
        fallen.sort_by(|a, b| fall(a).total_cmp(&fall(b)).then(a.query.cmp(&b.query)));
        fallen.truncate(listed);
        (changed, fallen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::Evaluation;
    use crate::random::Stream;

    const MEASURE: Measure = Measure::AveragePrecision;

    fn scores(values: &[f64]) -> Scores {
        scored(&evaluation(values))
    }

    fn evaluation(values: &[f64]) -> Evaluation {
        Evaluation {
            queries: (0..values.len() as u32).collect(),
            clusters: (0..values.len() as u64).collect(),
            values: vec![(MEASURE, values.to_vec())],
            skipped: 0,
            curve: vec![1.0; 10],
            precision: Vec::new(),
        }
    }

    fn scored(found: &Evaluation) -> Scores {
        let ids: Vec<u64> = (0..found.queries.len() as u64).map(|id| 100 + id).collect();
        Scores::of(&ids, |id| id, found)
    }

    fn terms(min_gain: f64) -> Terms {
        Terms {
            measure: MEASURE,
            min_gain,
            no_worse_slice: false,
            allow_worse_measures: false,
            trained_on: false,
            listed: 2,
            seed: 1,
        }
    }

    /// `count` values about `mean`.
    fn about(mean: f64, count: usize, counter: u64) -> Vec<f64> {
        let mut stream = Stream::new(1, "test", counter);
        (0..count).map(|_| mean + 0.02 * stream.normal()).collect()
    }

    #[test]
    fn decisions_follow_interval_minimum_and_headroom() {
        // 100 differences of deviation 0.028: the interval reaches 0.0056 to both sides.
        let decide = |base: f64, candidate: f64, least: f64| {
            let base = scores(&about(base, 100, 1));
            let candidate = scores(&about(candidate, 100, 2));
            Gate::new(&base, &candidate, &[], &terms(least))
                .unwrap()
                .decision
        };
        assert_eq!(decide(0.5, 0.6, 0.0), Decision::Ship);
        assert_eq!(decide(0.5, 0.6, 0.05), Decision::Ship);
        assert_eq!(decide(0.5, 0.6, 0.2), Decision::BelowMinimum);
        assert_eq!(decide(0.5, 0.501, 0.0), Decision::NoEvidence);
        assert_eq!(decide(0.5, 0.4, 0.0), Decision::Worse);
        assert_eq!(decide(0.985, 0.986, 0.0), Decision::NothingToGain);
        // A gain that is shown ships even near the ceiling, unless it cannot be large enough.
        assert_eq!(decide(0.98, 0.999, 0.0), Decision::Ship);
        assert_eq!(decide(0.97, 0.99, 0.05), Decision::NothingToGain);
        assert_eq!(decide(0.985, 0.95, 0.0), Decision::Worse);
    }

    #[test]
    fn a_worse_measure_blocks_unless_it_is_allowed() {
        let of = |map: f64, first: f64, counter: u64| {
            let (map, first) = (about(map, 100, counter), about(first, 100, counter + 2));
            let mut found = evaluation(&map);
            found.values.push((Measure::PrecisionAt(1), first));
            scored(&found)
        };
        let decide = |first: f64, allow_worse_measures| {
            let terms = Terms {
                allow_worse_measures,
                ..terms(0.0)
            };
            let gate = Gate::new(&of(0.5, 0.9, 1), &of(0.6, first, 2), &[], &terms).unwrap();
            assert_eq!(gate.others.len(), 1);
            gate.decision
        };
        assert_eq!(decide(0.8, false), Decision::WorseMeasure);
        assert_eq!(decide(0.8, true), Decision::Ship);
        assert_eq!(decide(0.9, false), Decision::Ship);
    }

    #[test]
    fn a_worse_slice_is_named_and_may_block() {
        let base = scores(&about(0.5, 200, 1));
        let mut values = about(0.6, 200, 2);
        let mut colours = Vec::new();
        for (place, value) in values.iter_mut().enumerate() {
            let colour = ["blue", "green", "red", "red"][place % 4];
            if colour == "green" {
                *value -= 0.2;
            }
            colours.push(colour.to_owned());
        }
        let candidate = scores(&values);
        let cuts = [Slicing::by_value("colour", &colours)];
        let gate = |no_worse_slice| {
            let terms = Terms {
                no_worse_slice,
                ..terms(0.0)
            };
            Gate::new(&base, &candidate, &cuts, &terms).unwrap()
        };
        let found = gate(false);
        assert_eq!(found.decision, Decision::Ship);
        let worse: Vec<&str> = (found.slices.iter())
            .filter(|slice| slice.is_worse())
            .map(|slice| slice.value.as_str())
            .collect();
        assert_eq!(worse, ["green"]);
        assert_eq!(gate(true).decision, Decision::WorseSlice);
        // Means weigh by size, and three slices make the interval of each wider.
        let queries: Vec<usize> = found.slices.iter().map(|s| s.comparison.queries).collect();
        assert_eq!(queries, [50, 50, 100]);
        let alone = candidate.filter(|q| colours[q as usize - 100] == "red");
        let alone = alone
            .against(
                &base.filter(|q| colours[q as usize - 100] == "red"),
                MEASURE,
                1,
            )
            .unwrap();
        let red = found.slices[2].comparison;
        assert!((red.difference - alone.difference).abs() < 1e-12);
        assert!(red.low < alone.low && red.high > alone.high);
    }

    #[test]
    fn slices_without_a_difference_are_rarely_called_worse() {
        // 20 slices of nothing: without the wider intervals two runs of three would name one.
        let named = (0..100_u64).filter(|run| {
            let base = scores(&about(0.5, 400, 10 + 2 * run));
            let candidate = scores(&about(0.5, 400, 11 + 2 * run));
            let slice: Vec<String> = (0..400).map(|query| (query % 20).to_string()).collect();
            let cuts = [Slicing::by_value("slice", &slice)];
            let found = Gate::new(&base, &candidate, &cuts, &terms(0.0)).unwrap();
            found.slices.iter().any(Slice::is_worse)
        });
        let named = named.count();
        assert!(named <= 8, "{named}");
    }

    #[test]
    fn regressions_are_sorted_and_counted() {
        let base = scores(&[0.9, 0.5, 0.5, 0.5, 0.7]);
        let candidate = scores(&[0.1, 0.5, 0.8, 0.4, 0.2]);
        let found = Gate::new(&base, &candidate, &[], &terms(0.0)).unwrap();
        assert_eq!(found.changed, [1, 1, 3]);
        let listed: Vec<u64> = found.regressions.iter().map(|r| r.query).collect();
        assert_eq!(listed, [100, 104]);
        assert_eq!(
            (found.regressions[0].base, found.regressions[0].candidate),
            (0.9, 0.1)
        );
        let text = found.headroom.words();
        assert!(text.starts_with("0.3800 of map above the base"), "{text}");
        assert!(
            text.contains("100.0 % find something relevant in the top 10"),
            "{text}"
        );
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let (base, candidate) = (scores(&[0.1, 0.2]), scores(&[0.1, 0.2, 0.3]));
        let refused = Gate::new(&base, &candidate, &[], &terms(0.0)).unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("the base has 2 and the candidate 3")
        );
        assert!(Gate::new(&base, &base, &[], &terms(-0.1)).is_err());
        assert!(Gate::new(&base, &base, &[], &terms(f64::NAN)).is_err());
        let short = [Slicing::by_value("size", &["1".to_owned()])];
        assert!(Gate::new(&base, &base, &short, &terms(0.0)).is_err());
    }
}
