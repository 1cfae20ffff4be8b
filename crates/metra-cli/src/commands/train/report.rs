//! What training found, as JSON and in words.

use crate::attribute_order::OrderedRow;
use crate::print;
use anyhow::Result;
use metra::evaluate::{Comparison, Measure};
use metra::experiment::cost::Timing;
use metra::experiment::{Headroom, HoldOut, Parts, SplitResult, Summary, Trial, Verdicts};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Serialize)]
pub(super) struct Report {
    pub(super) data: String,
    pub(super) method: String,
    pub(super) holdout: String,
    pub(super) protocol: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<PathBuf>,
    pub(super) splits: Vec<SplitReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) summary: Vec<Summary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pooled: Option<PooledReport>,
    pub(super) model: Option<PathBuf>,
}

/// All folds' test queries together.
#[derive(Serialize)]
pub(super) struct PooledReport {
    measures: Vec<print::Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    seen_items: Vec<print::Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unseen_items: Vec<print::Row>,
    skipped_queries: u64,
    #[serde(flatten)]
    conclusion: Conclusion,
}

/// What to do, as one word and in words.
#[derive(Serialize)]
pub(super) struct Conclusion {
    decision: String,
    verdict: String,
}

impl Conclusion {
    fn new(verdicts: &Verdicts, criterion: Measure) -> Self {
        Conclusion {
            decision: verdicts.decision(criterion).to_string(),
            verdict: verdicts.conclusion(criterion),
        }
    }
}

impl PooledReport {
    pub(super) fn new(pooled: &Verdicts, criterion: Measure) -> Self {
        PooledReport {
            conclusion: Conclusion::new(pooled, criterion),
            measures: print::rows(&pooled.rows),
            seen_items: print::rows(&pooled.seen),
            unseen_items: print::rows(&pooled.unseen),
            skipped_queries: pooled.base.skipped(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct SplitReport {
    /// Comparisons that lay within what was learned from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) comparisons: Option<usize>,
    pub(super) train: usize,
    pub(super) validation: usize,
    pub(super) test: usize,
    /// Identities in each of these parts, where whole identities are held out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) identities: Option<[usize; 3]>,
    pub(super) settings: BTreeMap<String, String>,
    pub(super) prepare: String,
    pub(super) score: String,
    pub(super) steps: Option<u64>,
    pub(super) validation_value: Option<f64>,
    pub(super) trials: Vec<Trial>,
    pub(super) base: String,
    pub(super) measures: Vec<print::Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) seen_items: Vec<print::Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) unseen_items: Vec<print::Row>,
    /// Pairs of test rows that each attribute orders right.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) ordered: Vec<OrderedRow>,
    pub(super) skipped_queries: u64,
    pub(super) steps_per_second: Option<f64>,
    pub(super) timing: Option<Timing>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) conclusion: Option<Conclusion>,
}

impl SplitReport {
    pub(super) fn new(
        parts: &Parts,
        result: &SplitResult,
        comparisons: Option<usize>,
        ordered: Vec<OrderedRow>,
        criterion: Measure,
    ) -> Self {
        let (chosen, verdicts) = (&result.chosen, result.verdicts.as_ref());
        let rows = |pick: fn(&Verdicts) -> &Vec<(Measure, Comparison)>| {
            verdicts.map_or_else(Vec::new, |verdicts| print::rows(pick(verdicts)))
        };
        SplitReport {
            comparisons,
            train: parts.train.len(),
            validation: parts.validation.len(),
            test: parts.test.len(),
            identities: None,
            settings: chosen.settings.clone(),
            prepare: chosen.recipe.to_string(),
            score: chosen.space.to_string(),
            steps: chosen.last_step,
            validation_value: chosen.value,
            trials: chosen.trials.clone(),
            base: result.base.to_string(),
            measures: rows(|v| &v.rows),
            seen_items: rows(|v| &v.seen),
            unseen_items: rows(|v| &v.unseen),
            ordered,
            skipped_queries: verdicts.map_or(0, |verdicts| verdicts.base.skipped()),
            steps_per_second: None,
            timing: None,
            conclusion: verdicts.map(|verdicts| Conclusion::new(verdicts, criterion)),
        }
    }
}

/// One of several splits in a line.
pub(super) fn print_split_line(
    place: &str,
    report: &SplitReport,
    verdicts: Option<&Verdicts>,
    criterion: Measure,
) -> Result<()> {
    let rows = verdicts.map_or(&[][..], |verdicts| &verdicts.rows);
    let found = rows.iter().find(|(measure, _)| *measure == criterion);
    let text = match found {
        None => "not evaluated".to_owned(),
        Some((measure, gain)) => format!(
            "{measure} {:.4} → {:.4}  {:+.4} [{:+.4}, {:+.4}]  {}",
            gain.base,
            gain.learned,
            gain.difference,
            gain.low,
            gain.high,
            gain.verdict()
        ),
    };
    print::line(&format!("{place:<16}{text}"))?;
    print::line(&format!("{:<16}{}", "", chosen(report)))
}

/// The chosen settings in words.
fn chosen(report: &SplitReport) -> String {
    let settings = report.settings.iter();
    let mut chosen: Vec<String> = settings.map(|(name, v)| format!("{name}={v}")).collect();
    if report.prepare != "none" {
        chosen.push(format!("prepare={}", report.prepare));
    }
    chosen.push(format!("score={}", report.score));
    chosen.extend(report.steps.map(|steps| format!("{steps} steps")));
    let value = report
        .validation_value
        .map_or(String::new(), |v| format!(" (validation {v:.4})"));
    format!("{}{value}", chosen.join(" "))
}

/// The only split in words; `criterion` is the measure that settings were chosen by.
pub(super) fn print_split(
    report: &SplitReport,
    verdicts: Option<&Verdicts>,
    kind: HoldOut,
    criterion: Measure,
) -> Result<()> {
    if kind == HoldOut::None {
        let hint = match report.comparisons {
            Some(_) => " (judge it on other comparisons with `metra eval`, or give --label)",
            None => "",
        };
        print::fact(
            "held out",
            &format!("nothing: this model is not judged{hint}"),
        )?;
    } else {
        let rows = [report.train, report.validation, report.test].map(|n| print::count(n as u64));
        let sizes = match report.identities {
            None => rows,
            Some(identities) => std::array::from_fn(|part| {
                let identities = print::count(identities[part] as u64);
                format!("{identities} ({} rows)", rows[part])
            }),
        };
        let [train, validation, test] = sizes;
        let text = format!("{kind}: {train} train, {validation} validation, {test} test");
        print::fact("held out", &text)?;
    }
    if let Some(comparisons) = report.comparisons {
        let count = print::count(comparisons as u64);
        print::fact("learned from", &format!(" {count} comparisons"))?;
    }
    print::fact("chosen", &chosen(report))?;
    if let Some(timing) = &report.timing {
        let text = format!(
            "{:.2} CPU s for one fit; a 2048³ product took {:.3} s",
            timing.fit_cpu_seconds, timing.product_seconds
        );
        print::fact("cost", &text)?;
    }
    let Some(verdicts) = verdicts else {
        return Ok(());
    };
    print::comparison_table("test", &report.base, &verdicts.rows)?;
    print::comparison_table(
        &format!("seen {}", verdicts.kind),
        &report.base,
        &verdicts.seen,
    )?;
    print::comparison_table(
        &format!("unseen {}", verdicts.kind),
        &report.base,
        &verdicts.unseen,
    )?;
    if report.skipped_queries > 0 {
        let skipped = print::count(report.skipped_queries);
        print::fact(
            "skipped",
            &format!("{skipped} queries with nothing relevant"),
        )?;
    }
    print_verdict(verdicts, criterion)
}

/// Two lines as `metra gate` says it: what was left to gain, and what to do.
fn print_verdict(verdicts: &Verdicts, criterion: Measure) -> Result<()> {
    let headroom = Headroom::of(&verdicts.base, criterion);
    print::fact("headroom", &headroom.words())?;
    print::fact("verdict", &verdicts.conclusion(criterion))
}

/// The verdict over all folds' test queries.
pub(super) fn print_pooled(pooled: &Verdicts, base: &str, criterion: Measure) -> Result<()> {
    print::line("")?;
    print::comparison_table("pooled", base, &pooled.rows)?;
    print::comparison_table(&format!("seen {}", pooled.kind), base, &pooled.seen)?;
    print::comparison_table(&format!("unseen {}", pooled.kind), base, &pooled.unseen)?;
    print_verdict(pooled, criterion)
}

pub(super) fn print_summary(summary: &[Summary], name: &str) -> Result<()> {
    let Some(first) = summary.first() else {
        return Ok(());
    };
    print::line(&format!(
        "\n{:<12}{:>18}{:>20}   mean ± deviation over {} {name}s",
        "summary", "base", "learned", first.splits
    ))?;
    for row in summary {
        print::line(&format!(
            "{:<12}{:>9.4} ± {:.4}{:>11.4} ± {:.4}   ahead in {} of {}",
            row.measure,
            row.base.mean,
            row.base.deviation,
            row.learned.mean,
            row.learned.deviation,
            row.ahead,
            row.splits
        ))?;
    }
    Ok(())
}
