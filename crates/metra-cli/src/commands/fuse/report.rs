//! What learned weights are worth, in words and as JSON.

use super::runs::{JudgedQueries, Runs};
use crate::args::Common;
use crate::print;
use anyhow::Result;
use metra::evaluate::{Comparison, Measure, Verdict};
use metra::experiment::{FusionAdvice, FusionContender, FusionFound, FusionStudy, Unlearned};
use metra::search::{Fusion, ScoreScale};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files that were written.
#[derive(Serialize)]
pub(super) struct Written {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) weights_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run_file: Option<PathBuf>,
}

#[derive(Serialize)]
pub(super) struct Report {
    queries: usize,
    /// Queries with a relevant item that no run has; they are not counted.
    queries_in_no_run: usize,
    /// Queries with an item that a query to learn from names as relevant.
    queries_about_known_items: usize,
    scale: ScoreScale,
    weights: BTreeMap<String, f64>,
    lines: Vec<print::Line>,
    /// The learned weights against each other line, by the measure that decides.
    gains: Vec<print::Row>,
    gains_on_known_items: Vec<print::Row>,
    gains_on_new_items: Vec<print::Row>,
    advice: String,
    #[serde(flatten)]
    written: Written,
    #[serde(skip)]
    measures: Vec<Measure>,
    #[serde(skip)]
    formula: String,
}

const LEARNED: &str = "learned weights";

impl Report {
    pub(super) fn new(
        runs: &Runs,
        judged: &JudgedQueries,
        study: &FusionStudy,
        found: &FusionFound,
        written: Written,
    ) -> Self {
        let criterion = study.measures[0];
        let name = |kind: Unlearned| match kind {
            Unlearned::Alone(run) => runs.names[run].clone(),
            Unlearned::ReciprocalRank => "reciprocal ranks".into(),
            Unlearned::Equal => "equal weights".into(),
        };
        let mut lines: Vec<print::Line> = (found.contenders.iter())
            .map(|contender| print::Line::new(name(contender.kind), &contender.against.base))
            .collect();
        lines.push(print::Line::new(LEARNED.into(), &found.learned));
        let gains = |rows: &dyn Fn(&metra::experiment::Verdicts) -> Vec<(Measure, Comparison)>| {
            let of = |contender: &FusionContender| {
                let rows = rows(&contender.against);
                let row = rows.into_iter().find(|(measure, _)| *measure == criterion);
                row.map(|(_, gain)| print::Row::new(name(contender.kind), &gain))
            };
            found.contenders.iter().filter_map(of).collect::<Vec<_>>()
        };
        let known = gains(&|against| against.seen.clone());
        Report {
            queries: judged.queries.len(),
            queries_in_no_run: judged.absent,
            queries_about_known_items: known.first().map_or(0, |row| row.queries),
            scale: found.fusion.scale(),
            weights: shares(&runs.names, &found.fusion),
            lines,
            gains: gains(&|against| against.rows.clone()),
            gains_on_known_items: known,
            gains_on_new_items: gains(&|against| against.unseen.clone()),
            advice: advice(found, criterion, &name),
            written,
            measures: study.measures.clone(),
            formula: formula(&runs.names, &found.fusion),
        }
    }

    pub(super) fn print(&self, common: &Common) -> Result<()> {
        if common.json {
            return print::json(self);
        }
        let absent = match self.queries_in_no_run {
            0 => String::new(),
            queries => format!("; {} more are in no run", print::count(queries as u64)),
        };
        let queries = print::count(self.queries as u64);
        print::fact(
            "queries",
            &format!("{queries} with a relevant item{absent}"),
        )?;
        print::lines(&self.measures, &self.lines)?;
        let criterion = self.measures[0];
        print::gains(&format!("{criterion}, {LEARNED} against"), &self.gains)?;
        let about = |what: &str| format!("the same, queries about {what} items");
        if !self.gains_on_known_items.is_empty() && !self.gains_on_new_items.is_empty() {
            print::gains(&about("known"), &self.gains_on_known_items)?;
            print::gains(&about("new"), &self.gains_on_new_items)?;
        }
        print::line("")?;
        print::fact("score", &self.formula)?;
        for path in [&self.written.weights_file, &self.written.run_file]
            .into_iter()
            .flatten()
        {
            print::fact("written", &path.display().to_string())?;
        }
        print::fact("advice", &self.advice)
    }
}

/// Weights as shares of their sum.
fn shares(names: &[String], fusion: &Fusion) -> BTreeMap<String, f64> {
    let sum: f64 = fusion.weights().iter().sum();
    let share = |(name, weight): (&String, &f64)| (name.clone(), weight / sum);
    names.iter().zip(fusion.weights()).map(share).collect()
}

/// The sum as one would write it into another program.
fn formula(names: &[String], fusion: &Fusion) -> String {
    let weights = fusion.weights();
    let unit = match fusion.scale() {
        // As other programs have it: the list with the smallest weight counts once.
        ScoreScale::Raw => {
            let used = weights.iter().copied().filter(|weight| *weight > 0.0);
            used.fold(f64::INFINITY, f64::min)
        }
        _ => weights.iter().sum(),
    };
    let term = |(name, weight): (&String, &f64)| format!("{:.4} × {name}", weight / unit);
    let terms: Vec<String> = names.iter().zip(weights).map(term).collect();
    let scale = match fusion.scale() {
        ScoreScale::Raw => "scores as they are",
        ScoreScale::MinMax => "scores of each query from 0 to 1",
        ScoreScale::ZScore => "scores in standard deviations from the query's mean",
        ScoreScale::ReciprocalRank => "1 / (60 + rank)",
    };
    format!("{} ({scale})", terms.join(" + "))
}

fn advice(found: &FusionFound, criterion: Measure, name: &dyn Fn(Unlearned) -> String) -> String {
    let is_better = |contender: &FusionContender| {
        let rows = &contender.against.rows;
        let row = rows.iter().find(|(measure, _)| *measure == criterion);
        row.is_some_and(|(_, gain)| gain.verdict() == Verdict::Better)
    };
    let of = |wanted: bool| -> Vec<String> {
        let contenders = found.contenders.iter();
        let wanted = contenders.filter(|contender| is_better(contender) == wanted);
        wanted.map(|contender| name(contender.kind)).collect()
    };
    let (behind, level) = (of(true), of(false));
    // They were not taken although they are better on the whole.
    let reason = |others: &str, is_among: &dyn Fn(Unlearned) -> bool| {
        let mut among = (found.contenders.iter()).filter(|contender| is_among(contender.kind));
        match among.all(is_better) {
            true => "the learned weights lose on new items what they gain on known ones".to_owned(),
            false => format!("the learned weights were not shown to be better than {others}"),
        }
    };
    match found.advice {
        FusionAdvice::Learned if level.is_empty() => {
            format!("use the learned weights: better than {}", behind.join(", "))
        }
        FusionAdvice::Learned => format!(
            "use the learned weights: better than {}; no evidence of a difference to {}",
            behind.join(", "),
            level.join(", ")
        ),
        FusionAdvice::Unlearned(Unlearned::Alone(run)) => {
            let is_alone = |kind| matches!(kind, Unlearned::Alone(_));
            format!(
                "keep {} alone: no sum without learning was shown to be better than each ranking alone, and {}",
                name(Unlearned::Alone(run)),
                reason("each of them", &is_alone)
            )
        }
        FusionAdvice::Unlearned(kind) => {
            let scale = match kind {
                Unlearned::ReciprocalRank => ScoreScale::ReciprocalRank,
                _ => found.equal.scale(),
            };
            format!(
                "use --equal {scale}: better than each ranking alone, and {}",
                reason(&name(kind), &|other| other == kind)
            )
        }
    }
}

/// What was written without learning.
pub(super) fn applied(
    queries: usize,
    fusion: &Fusion,
    run: Option<&Path>,
    common: &Common,
) -> Result<()> {
    #[derive(Serialize)]
    struct Applied<'a> {
        queries: usize,
        scale: ScoreScale,
        run: Option<&'a Path>,
    }
    if common.json {
        let scale = fusion.scale();
        return print::json(&Applied {
            queries,
            scale,
            run,
        });
    }
    let written = run.map_or(String::new(), |run| run.display().to_string());
    print::fact(
        "written",
        &format!("{written}: {}", print::plural(queries as u64, "query")),
    )
}
