//! How many labels are enough? The same settings learn from growing shares of the labelled units and
//! are judged on the same test part.
//!
//! Shares are nested: each holds the smaller ones of its draw, as labels that come in over time do.
//! Settings are chosen once, from everything, so that the curve shows the labels and not the luck of
//! tuning; with few labels other settings might do better, so its left end is a lower bound. What is
//! searched stays the same throughout.
//!
//! Quality as a − b · n^−c, which learning curves follow about (Hestness et al. 2017), gains by every
//! doubling a fixed fraction of what the doubling before gained. So the last gain times the ratio of
//! the last two is what twice the labels would bring.

use super::definition::Experiment;
use super::folds::split_groups;
use super::holdout::{HoldOut, Parts};
use super::scores::Scores;
use super::study::{Chosen, Study, only};
use crate::evaluate::{Bootstrap, Comparison, Measure, paired_bootstrap};
use crate::random::Stream;
use crate::training::Observer;
use crate::{Error, Result};

/// Which shares are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabelBudget {
    /// Everything, a half, a quarter, … halved so often.
    pub halvings: u32,
    /// How often each share is drawn.
    pub draws: u64,
}

impl Default for LabelBudget {
    fn default() -> Self {
        LabelBudget {
            halvings: 4,
            draws: 3,
        }
    }
}

/// One share.
#[derive(Debug, Clone)]
pub struct BudgetPoint {
    /// Share of the labelled units.
    pub share: f64,
    /// Rows or queries in it, on average over the draws.
    pub units: usize,
    /// What was found; or why nothing could be learned from so little.
    pub found: std::result::Result<BudgetFound, String>,
}

/// What a share gave.
#[derive(Debug, Clone)]
pub struct BudgetFound {
    /// Mean over queries and draws.
    pub value: f64,
    /// Deviation of the means over the draws; 0 for one.
    pub deviation: f64,
    /// Gain over the base.
    pub gain: Comparison,
    /// Gain over half as many labels, where that share could be learned from.
    pub doubling: Option<Comparison>,
}

/// What twice the labels would bring.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// The gain.
    pub gain: f64,
    /// Give or take.
    pub reach: f64,
    /// Whether even the last doubling showed no gain.
    pub flat: bool,
}

impl Forecast {
    /// The forecast in a sentence.
    pub fn words(&self, measure: Measure) -> String {
        let Forecast { gain, reach, flat } = self;
        let head = if *flat {
            "flat: no evidence that the last doubling helped; "
        } else {
            ""
        };
        format!("{head}twice the labels would bring about {gain:+.4} ± {reach:.4} {measure}")
    }
}

/// The curve.
#[derive(Debug, Clone)]
pub struct BudgetCurve {
    /// What is measured.
    pub measure: Measure,
    /// Settings of all fits.
    pub chosen: Chosen,
    /// The base.
    pub base: String,
    /// Points by growing share.
    pub points: Vec<BudgetPoint>,
    /// What more labels would bring; `None` where fewer than three shares could be learned from.
    pub forecast: Option<Forecast>,
}

impl Experiment<'_> {
    /// Let the first method learn from growing shares of training and validation part of a split, and
    /// evaluate all on its test part.
    pub fn label_budget(
        &self,
        split: usize,
        budget: &LabelBudget,
        observer: &mut dyn Observer,
    ) -> Result<BudgetCurve> {
        self.first_study(split)?
            .label_budget(&self.splits[split].0, self.holdout, budget, observer)
    }
}

impl Study<'_> {
    fn label_budget(
        &self,
        parts: &Parts,
        kind: HoldOut,
        budget: &LabelBudget,
        observer: &mut dyn Observer,
    ) -> Result<BudgetCurve> {
        if parts.test.is_empty() {
            return Err(Error::Data(
                "a label budget is judged on a test part: hold one out".into(),
            ));
        }
        if budget.halvings == 0 || budget.halvings > 20 || budget.draws == 0 {
            return Err(Error::parameter(
                "halvings and label-draws",
                "1 to 20 halvings and at least 1 draw",
                format!("{} and {}", budget.halvings, budget.draws),
            ));
        }
        let chosen = self.choose(&parts.train, &parts.validation, observer)?;
        let base = self.choose_base(&parts.train, &parts.validation)?;
        let all = parts.learned_from();
        let base_scores = only(self.judge_base(&[base], &parts.test, &all, &self.judging)?)?;
        let mut orders = Vec::new();
        for draw in 0..budget.draws {
            let mut stream = Stream::new(self.seed, "label budget", draw);
            let mut order = split_groups(self.data, &all, kind, &mut stream)?;
            stream.shuffle(&mut order);
            orders.push(order);
        }
        let mut points: Vec<BudgetPoint> = Vec::new();
        let mut before: Option<Vec<f64>> = None;
        for halving in (0..=budget.halvings).rev() {
            let share = 0.5_f64.powi(halving as i32);
            // Everything is the same in every draw.
            let drawn = if halving == 0 {
                &orders[..1]
            } else {
                &orders[..]
            };
            let parts_of = drawn.iter().map(|order| {
                let count = ((order.len() as f64 * share).round() as usize).max(1);
                let mut units = order[..count].concat();
                units.sort_unstable();
                units
            });
            let parts_of: Vec<Vec<u64>> = parts_of.collect();
            let units = parts_of.iter().map(Vec::len).sum::<usize>() / parts_of.len();
            let fits = self.fit_all(&parts_of, &chosen, (&parts.test, &all), observer);
            let found = match fits {
                Ok(fits) => {
                    let (found, values) = self.point(&fits, &base_scores, before.as_deref())?;
                    before = Some(values);
                    Ok(found)
                }
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(error) if halving > 0 => {
                    before = None;
                    Err(error.to_string())
                }
                Err(error) => return Err(error),
            };
            points.push(BudgetPoint {
                share,
                units,
                found,
            });
        }
        let forecast = forecast(&points, budget.draws);
        Ok(BudgetCurve {
            measure: self.criterion,
            chosen,
            base: self.data.baseline_name(base),
            points,
            forecast,
        })
    }

    fn fit_all(
        &self,
        parts: &[Vec<u64>],
        chosen: &Chosen,
        (test, gallery): (&[u64], &[u64]),
        observer: &mut dyn Observer,
    ) -> Result<Vec<Scores>> {
        let mut all = Vec::new();
        for (draw, units) in parts.iter().enumerate() {
            observer.begin(&format!(
                "{} labelled units, draw {} of {}",
                units.len(),
                draw + 1,
                parts.len()
            ));
            let fitted = self.fit(units, chosen, observer)?;
            all.push(self.scores(&fitted.chain, test, gallery)?);
        }
        Ok(all)
    }

    /// A point of the curve, and its value of every query on average over the draws.
    fn point(
        &self,
        fits: &[Scores],
        base: &Scores,
        before: Option<&[f64]>,
    ) -> Result<(BudgetFound, Vec<f64>)> {
        let mut values = vec![0.0; base.queries().len()];
        for scores in fits {
            for (sum, value) in values.iter_mut().zip(scores.values(self.criterion)) {
                *sum += value / fits.len() as f64;
            }
        }
        let means: Vec<f64> = fits.iter().map(|f| f.mean(self.criterion)).collect();
        let options = Bootstrap {
            seed: self.seed,
            ..Bootstrap::default()
        };
        let against = |other: &[f64]| paired_bootstrap(other, &values, base.clusters(), &options);
        let found = BudgetFound {
            value: means.iter().sum::<f64>() / means.len() as f64,
            deviation: super::repeat::MeanAndDeviation::over(&means).deviation,
            gain: against(base.values(self.criterion))?,
            doubling: before.map(against).transpose()?,
        };
        Ok((found, values))
    }
}

fn forecast(points: &[BudgetPoint], draws: u64) -> Option<Forecast> {
    let [.., half, all] = points else {
        return None;
    };
    let (half, all) = (half.found.as_ref().ok()?, all.found.as_ref().ok()?);
    let (earlier, last) = (half.doubling?, all.doubling?);
    let ratio = if earlier.difference > 0.0 {
        (last.difference / earlier.difference).clamp(0.0, 1.0)
    } else {
        1.0
    };
    // Two sources of chance: the queries asked and the labels drawn.
    let queries = (last.high - last.low) / 2.0;
    let labels = 2.0 * half.deviation / (draws as f64).sqrt();
    let reach = (queries * queries + labels * labels).sqrt();
    Some(Forecast {
        gain: last.difference.max(0.0) * ratio,
        reach,
        flat: last.difference <= reach,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::synthetic::Nuisance;
    use crate::dataset::Dataset;
    use crate::experiment::{EvaluationSettings, Protocol};
    use crate::supervision::Labels;
    use crate::training::{Progress, Recipe};
    use std::collections::BTreeMap;

    struct Silent;
    impl Observer for Silent {
        fn progress(&mut self, _: &Progress) {}
    }

    fn curve(halvings: u32, rank: &str) -> Result<BudgetCurve> {
        let set = Nuisance {
            classes: 10,
            signal: 4,
            noise: 12,
            seed: 3,
        }
        .rows(1000);
        let labels = Labels::from_numbers(&set.classes).unwrap();
        let data = Dataset::builder(&set.corpus).labels(labels).build()?;
        let (judging, criterion) =
            EvaluationSettings::new(&data, Protocol::LeaveOneOut, Vec::new(), None, 1)?;
        let study = Study {
            data: &data,
            method: "lda".into(),
            settings: BTreeMap::from([("rank".to_owned(), rank.to_owned())]),
            recipe: Recipe::default(),
            grid: Vec::new(),
            prefer_defaults: false,
            spaces: Vec::new(),
            base: None,
            judging,
            criterion,
            seed: 1,
            start: None,
            checkpoint: None,
        };
        let units: Vec<u64> = (0..1000).collect();
        let parts = Parts::draw(&data, &units, HoldOut::Rows, (0.2, 0.3), 1)?;
        let budget = LabelBudget { halvings, draws: 2 };
        study.label_budget(&parts, HoldOut::Rows, &budget, &mut Silent)
    }

    #[test]
    fn the_curve_rises_and_flattens() {
        let found = curve(4, "4").unwrap();
        let units: Vec<usize> = found.points.iter().map(|point| point.units).collect();
        // 700 rows are learned from; a sixteenth of them is 44.
        assert_eq!(units, [44, 88, 175, 350, 700]);
        let values: Vec<f64> = (found.points.iter())
            .map(|point| point.found.as_ref().unwrap().value)
            .collect();
        assert!(values[4] > values[0] + 0.05, "{values:?}");
        // The best metric is known and 700 rows are plenty for 16 columns: little is left.
        let forecast = found.forecast.unwrap();
        assert!(forecast.gain < 0.02, "{forecast:?}, {values:?}");
        let last = found.points[4].found.as_ref().unwrap();
        assert_eq!(last.deviation, 0.0);
        assert!(last.gain.low > 0.0);
        let steps: f64 = (found.points.iter())
            .filter_map(|point| Some(point.found.as_ref().ok()?.doubling?.difference))
            .sum();
        assert!((steps - (values[4] - values[0])).abs() < 1e-9);
    }

    #[test]
    fn shares_too_small_to_learn_from_are_said() {
        // 700 / 2^10 is a single row: no class has two of them.
        let found = curve(10, "4").unwrap();
        assert!(found.points[0].found.is_err());
        assert!(found.points[10].found.is_ok());
        assert!(curve(0, "4").is_err());
    }
}
