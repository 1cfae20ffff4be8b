//! `metra budget`: how many labels are enough, by learning from growing shares of them.

use crate::args::Common;
use crate::evaluation_args::EvaluationArgs;
use crate::inputs::{DataArgs, Input};
use crate::method_args::MethodArgs;
use crate::print;
use crate::progress::Reporter;
use crate::split_args::SplitArgs;
use anyhow::{Result, ensure};
use clap::Args;
use metra::experiment::{BudgetCurve, BudgetPoint, Experiment, HoldOut, LabelBudget};
use serde::Serialize;

/// See how quality grows with the number of labels, and what twice as many would bring.
///
/// Settings are chosen once, from everything. Then the method learns from a half, a quarter, … of
/// the labelled rows (whole classes where identities are held out, queries with qrels), several
/// random draws each, and every fit is judged on the same test part.
#[derive(Args)]
pub(crate) struct Budget {
    #[command(flatten)]
    subject: DataArgs,
    #[command(flatten)]
    method: MethodArgs,
    #[command(flatten)]
    splitting: SplitArgs,
    #[command(flatten)]
    evaluation: EvaluationArgs,
    /// How often the labels are halved: 4 goes down to a sixteenth
    #[arg(long, value_name = "N", default_value_t = LabelBudget::default().halvings)]
    halvings: u32,
    /// How many random draws of each share
    #[arg(long, value_name = "N", default_value_t = LabelBudget::default().draws)]
    label_draws: u64,
}

#[derive(Serialize)]
struct Report {
    data: String,
    method: String,
    holdout: String,
    measure: String,
    base: String,
    settings: std::collections::BTreeMap<String, String>,
    points: Vec<Point>,
    forecast: Option<Next>,
}

#[derive(Serialize)]
struct Point {
    share: f64,
    units: usize,
    value: Option<f64>,
    /// Over the draws.
    deviation: Option<f64>,
    gain: Option<print::Row>,
    doubling: Option<print::Row>,
    failure: Option<String>,
}

#[derive(Serialize)]
struct Next {
    gain: f64,
    reach: f64,
    flat: bool,
    words: String,
}

impl Point {
    fn new(point: &BudgetPoint, measure: &str) -> Self {
        let found = point.found.as_ref().ok();
        let row = |comparison| print::Row::new(measure.to_owned(), comparison);
        Point {
            share: point.share,
            units: point.units,
            value: found.map(|found| found.value),
            deviation: found.map(|found| found.deviation),
            gain: found.map(|found| row(&found.gain)),
            doubling: found.and_then(|found| found.doubling.as_ref().map(row)),
            failure: point.found.as_ref().err().cloned(),
        }
    }
}

impl Budget {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        ensure!(
            self.splitting.is_single(),
            "a label budget is judged on one test part: name one of several splits with --split"
        );
        self.method.check()?;
        let extra = self.splitting.columns();
        (self.subject).with(&extra, common, |read| self.curve(read, common))
    }

    fn curve(&self, read: &Input<'_>, common: &Common) -> Result<()> {
        let experiment = (self.method).experiment(read, None, &self.evaluation, &self.splitting)?;
        let kind = experiment.holdout;
        ensure!(
            kind != HoldOut::None,
            "a label budget is judged on a test part: nothing is held out"
        );
        let Some((parts, _)) = experiment.splits.first() else {
            anyhow::bail!("there is no split");
        };
        let budget = LabelBudget {
            halvings: self.halvings,
            draws: self.label_draws,
        };
        let mut reporter = Reporter::new();
        let curve = experiment.label_budget(0, &budget, &mut reporter)?;
        reporter.finish();
        let report = self.report(&curve, &experiment, kind);
        if common.json {
            return print::json(&report);
        }
        report.print(parts.test.len())
    }

    fn report(&self, curve: &BudgetCurve, experiment: &Experiment<'_>, kind: HoldOut) -> Report {
        let measure = curve.measure.to_string();
        Report {
            data: experiment.data.text.clone(),
            method: experiment.methods[0].method.clone(),
            holdout: kind.to_string(),
            base: curve.base.to_string(),
            settings: curve.chosen.settings.clone(),
            points: (curve.points.iter())
                .map(|point| Point::new(point, &measure))
                .collect(),
            forecast: curve.forecast.map(|forecast| Next {
                gain: forecast.gain,
                reach: forecast.reach,
                flat: forecast.flat,
                words: forecast.words(curve.measure),
            }),
            measure,
        }
    }
}

impl Report {
    fn print(&self, test: usize) -> Result<()> {
        print::fact("data", &self.data)?;
        let test = print::count(test as u64);
        print::fact("held out", &format!("{}: {test} test", self.holdout))?;
        print::line(&format!(
            "{:>9}{:>9}{:>19}{:>12}   {:<24}gain by doubling",
            "share", "labelled", self.measure, "over base", "95 % interval"
        ))?;
        for point in &self.points {
            let share = format!("1/{:.0}", 1.0 / point.share);
            let units = print::count(point.units as u64);
            let head = format!("{share:>9}{units:>9}");
            let (Some(value), Some(deviation), Some(gain)) =
                (point.value, point.deviation, &point.gain)
            else {
                let failure = point.failure.as_deref().unwrap_or("nothing was found");
                print::line(&format!("{head}   {failure}"))?;
                continue;
            };
            let value = match deviation > 0.0 {
                true => format!("{value:.4} ± {deviation:.4}"),
                false => format!("{value:.4}         "),
            };
            let doubling = point.doubling.as_ref().map_or(String::new(), |step| {
                format!(
                    "{:+.4} [{:+.4}, {:+.4}]",
                    step.difference, step.low, step.high
                )
            });
            let interval = format!("[{:+.4}, {:+.4}]", gain.low, gain.high);
            let gain = gain.difference;
            print::line(&format!(
                "{head}{value:>19}{gain:>+12.4}   {interval:<24}{doubling}"
            ))?;
        }
        match &self.forecast {
            Some(forecast) => print::fact("more labels", &format!(" {}", forecast.words)),
            None => print::fact(
                "more labels",
                " too few shares could be learned from to say",
            ),
        }
    }
}
