//! The tables as texts, before they become HTML or Markdown.

use crate::leaderboard::{AgainstBest, Leaderboard, RankedLine, gain_of, mean, tone};
use crate::measures::heading;
use crate::numbers::{bytes, count, fact, gain, interval, score, seconds, signed};
use metra::experiment::compare::{ClaimOutcome, Costs, Evidence, Finding, Gain, Line, Results};
use serde::Serialize;
use std::collections::BTreeMap;

/// Sign of a line that cannot be told from the best.
pub(crate) const LEVEL: &str = "≈";
/// Sign of evidence that the adjusted interval does not support.
pub(crate) const FRAGILE: &str = "*";

/// A line with all its measures.
#[derive(Debug, Serialize)]
pub(crate) struct ScoreRow {
    pub(crate) place: String,
    pub(crate) name: String,
    /// The learner where the line has another name, and whether it is the base or the best.
    pub(crate) tags: Vec<String>,
    pub(crate) class: String,
    pub(crate) is_base: bool,
    pub(crate) is_best: bool,
    /// [`LEVEL`] where it cannot be told from the best, with [`FRAGILE`] where only the adjusted
    /// interval says so.
    pub(crate) level: String,
    /// How many splits failed, in words; empty where none did.
    pub(crate) failed: String,
    pub(crate) cells: Vec<ScoreCell>,
    /// Facts that the experiment asks for; empty where the learner reports none.
    pub(crate) facts: Vec<String>,
    pub(crate) trials: String,
    pub(crate) cpu: String,
    pub(crate) memory: String,
    pub(crate) total: String,
}

impl ScoreRow {
    /// Whether a value of another publication stands beside one of its means.
    pub(crate) fn has_published(&self) -> bool {
        self.cells.iter().any(|cell| !cell.published.is_empty())
    }
}

/// One measure of a line.
#[derive(Debug, Serialize)]
pub(crate) struct ScoreCell {
    pub(crate) mean: String,
    /// Empty with a single split.
    pub(crate) deviation: String,
    /// Empty where nothing was published.
    pub(crate) published: String,
    pub(crate) best: bool,
}

/// A line with its gains over the base.
#[derive(Debug, Serialize)]
pub(crate) struct GainRow {
    pub(crate) place: String,
    pub(crate) name: String,
    pub(crate) cells: Vec<GainCell>,
    /// In how many splits it is ahead by the criterion; empty with a single split.
    pub(crate) ahead: String,
}

/// One gain; all texts are empty where there is none.
#[derive(Debug, Default, Serialize)]
pub(crate) struct GainCell {
    pub(crate) difference: String,
    pub(crate) interval: String,
    pub(crate) words: &'static str,
    pub(crate) tone: &'static str,
    /// [`FRAGILE`] where the adjusted interval does not support it.
    pub(crate) fragile: &'static str,
}

/// Queries of one kind: with a relevant item that training had seen, or without.
#[derive(Debug, Serialize)]
pub(crate) struct PartTable {
    pub(crate) part: String,
    pub(crate) queries: String,
    pub(crate) rows: Vec<PartRow>,
}

/// A line on such queries.
#[derive(Debug, Serialize)]
pub(crate) struct PartRow {
    pub(crate) place: String,
    pub(crate) name: String,
    pub(crate) mean: String,
    pub(crate) gain: GainCell,
}

/// What failed, and why.
#[derive(Debug, Serialize)]
pub(crate) struct FailureRow {
    pub(crate) name: String,
    pub(crate) splits: String,
    pub(crate) reason: String,
}

/// A claim with what came of it.
#[derive(Debug, Serialize)]
pub(crate) struct ClaimRow {
    pub(crate) better: String,
    pub(crate) worse: String,
    pub(crate) measure: String,
    pub(crate) source: String,
    pub(crate) finding: &'static str,
    pub(crate) sign: &'static str,
    pub(crate) tone: &'static str,
    pub(crate) gain: String,
    pub(crate) remark: String,
}

/// What a line was given and what was chosen for it.
#[derive(Debug, Serialize)]
pub(crate) struct SettingsRow {
    pub(crate) name: String,
    pub(crate) method: String,
    pub(crate) fixed: String,
    pub(crate) tried: String,
    pub(crate) chosen: String,
    pub(crate) splits: Vec<SplitRow>,
}

/// One split of a line.
#[derive(Debug, Serialize)]
pub(crate) struct SplitRow {
    pub(crate) number: usize,
    pub(crate) chosen: String,
    pub(crate) prepare: String,
    pub(crate) score: String,
    pub(crate) steps: String,
    pub(crate) validation: String,
    pub(crate) test: String,
    pub(crate) queries: String,
    pub(crate) facts: String,
}

/// Lines × measures.
pub(crate) fn scores(leaderboard: &Leaderboard<'_>, costs: Option<&Costs>) -> Vec<ScoreRow> {
    let rows = leaderboard.lines.iter();
    rows.map(|ranked| score_row(leaderboard, ranked, costs))
        .collect()
}

fn score_row(
    leaderboard: &Leaderboard<'_>,
    ranked: &RankedLine<'_>,
    costs: Option<&Costs>,
) -> ScoreRow {
    let line = ranked.line;
    let results = leaderboard.results;
    let cost = costs.and_then(|costs| costs.lines.get(&line.name));
    let level = match leaderboard.rival(ranked) {
        AgainstBest::Same => LEVEL.to_owned(),
        AgainstBest::Nearly => format!("{LEVEL}{FRAGILE}"),
        AgainstBest::Behind | AgainstBest::Apart => String::new(),
    };
    let failures = line.splits.iter().filter(|split| split.failure.is_some());
    let failed = match failures.count() {
        0 => String::new(),
        failed => format!("{failed} of {} failed", count(line.splits.len(), "split")),
    };
    let measures = 0..results.protocol.measures.len();
    ScoreRow {
        place: ranked.badge(),
        name: line.name.clone(),
        tags: tags(ranked),
        class: ranked.style.class(),
        is_base: ranked.is_base,
        is_best: ranked.is_best,
        level,
        failed,
        cells: measures
            .map(|at| score_cell(leaderboard, line, at))
            .collect(),
        facts: (results.facts.iter())
            .map(|name| line.fact(name).map_or(String::new(), fact))
            .collect(),
        trials: line.trials.to_string(),
        cpu: cost.map_or(String::new(), |cost| seconds(cost.fit_cpu_seconds)),
        memory: cost
            .and_then(|cost| cost.fit_peak_bytes)
            .map_or(String::new(), bytes),
        total: cost.map_or(String::new(), |cost| seconds(cost.cpu_seconds)),
    }
}

fn tags(ranked: &RankedLine<'_>) -> Vec<String> {
    let line = ranked.line;
    let method = (line.method != line.name).then(|| line.method.clone());
    let roles = [(ranked.is_base, "base"), (ranked.is_best, "best")];
    let roles = roles.into_iter().filter(|(holds, _)| *holds);
    let roles = roles.map(|(_, role)| role.to_owned());
    method.into_iter().chain(roles).collect()
}

fn score_cell(leaderboard: &Leaderboard<'_>, line: &Line, at: usize) -> ScoreCell {
    let several = leaderboard.results.protocol.splits.len() > 1;
    let value = line.measures.get(at);
    let deviation = value.map(|value| value.deviation).filter(|_| several);
    let highest = leaderboard.highest(at);
    ScoreCell {
        mean: value.map_or(String::new(), |value| score(value.mean)),
        deviation: deviation.map_or(String::new(), score),
        published: value
            .and_then(|value| value.published)
            .map_or(String::new(), score),
        best: !line.failed() && highest.is_some() && mean(line, at) == highest,
    }
}

/// Gains over the base, of all lines that have some.
pub(crate) fn gains(leaderboard: &Leaderboard<'_>) -> Vec<GainRow> {
    let results = leaderboard.results;
    let compared = leaderboard.lines.iter();
    compared
        .filter(|ranked| !ranked.line.against_base.is_empty())
        .map(|ranked| GainRow {
            place: ranked.badge(),
            name: ranked.line.name.clone(),
            cells: results
                .protocol
                .measures
                .iter()
                .map(|measure| gain_of(&ranked.line.against_base, measure))
                .map(|gain| gain.map_or_else(GainCell::default, gain_cell))
                .collect(),
            ahead: ahead(leaderboard, ranked),
        })
        .collect()
}

fn ahead(leaderboard: &Leaderboard<'_>, ranked: &RankedLine<'_>) -> String {
    let splits = leaderboard.results.protocol.splits.len();
    match leaderboard.of_criterion(&ranked.line.against_base) {
        Some(gain) if splits > 1 => format!("{} of {splits}", gain.ahead),
        _ => String::new(),
    }
}

fn gain_cell(gain: &Gain) -> GainCell {
    let fragile = gain.evidence != Evidence::None && gain.adjusted == Evidence::None;
    GainCell {
        difference: signed(gain.difference),
        interval: interval(gain.low, gain.high),
        words: gain.evidence.words(),
        tone: tone(gain.evidence).class(),
        fragile: if fragile { FRAGILE } else { "" },
    }
}

/// The criterion on queries with and without a relevant item that training had seen, where there
/// are judgements.
pub(crate) fn parts(leaderboard: &Leaderboard<'_>) -> Vec<PartTable> {
    let mut tables: Vec<PartTable> = Vec::new();
    for ranked in &leaderboard.lines {
        for part in &ranked.line.parts {
            let row = PartRow {
                place: ranked.badge(),
                name: ranked.line.name.clone(),
                mean: score(part.mean),
                gain: part.gain.as_ref().map_or_else(GainCell::default, gain_cell),
            };
            match tables.iter_mut().find(|table| table.part == part.part) {
                Some(table) => table.rows.push(row),
                None => tables.push(PartTable {
                    part: part.part.clone(),
                    queries: count(part.queries, "query"),
                    rows: vec![row],
                }),
            }
        }
    }
    tables
}

/// Failures, those of one line for one reason together.
pub(crate) fn failures(leaderboard: &Leaderboard<'_>) -> Vec<FailureRow> {
    let mut rows = Vec::new();
    for ranked in &leaderboard.lines {
        let mut reasons: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (number, split) in (1..).zip(&ranked.line.splits) {
            if let Some(reason) = &split.failure {
                reasons.entry(reason).or_default().push(number);
            }
        }
        rows.extend(reasons.into_iter().map(|(reason, numbers)| FailureRow {
            name: ranked.line.name.clone(),
            splits: if numbers.len() == ranked.line.splits.len() {
                "all".to_owned()
            } else {
                let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
                numbers.join(", ")
            },
            reason: reason.to_owned(),
        }));
    }
    rows
}

/// Claims, in the order of the experiment.
pub(crate) fn claims(results: &Results) -> Vec<ClaimRow> {
    results.claims.iter().map(claim).collect()
}

fn claim(claim: &ClaimOutcome) -> ClaimRow {
    let (sign, tone) = match claim.finding {
        Finding::Reproduced => ("✓", "better"),
        Finding::NotReproduced => ("✗", "worse"),
        Finding::Undecided => ("?", "neither"),
    };
    ClaimRow {
        better: claim.better.clone(),
        worse: claim.worse.clone(),
        measure: heading(&claim.measure),
        source: claim.source.clone(),
        finding: claim.finding.words(),
        sign,
        tone,
        gain: claim.gain.as_ref().map_or(String::new(), gain),
        remark: claim.remark.clone(),
    }
}

/// Settings of all lines.
pub(crate) fn settings(leaderboard: &Leaderboard<'_>) -> Vec<SettingsRow> {
    let criterion = leaderboard.results.criterion();
    let rows = leaderboard.lines.iter();
    rows.map(|ranked| settings_row(ranked.line, criterion))
        .collect()
}

fn settings_row(line: &Line, criterion: usize) -> SettingsRow {
    let tried = line.grid.iter();
    let tried: Vec<String> = tried
        .map(|(name, values)| format!("{name} = {}", values.join(" | ")))
        .collect();
    let done = line.splits.iter().filter(|split| split.failure.is_none());
    let done = done.count();
    let chosen: Vec<String> = line
        .usual()
        .into_iter()
        .map(|(name, (value, times))| match done {
            0 | 1 => format!("{name} = {value}"),
            _ => format!("{name} = {value} ({times} of {done})"),
        })
        .collect();
    SettingsRow {
        name: line.name.clone(),
        method: line.method.clone(),
        fixed: pairs(&line.settings),
        tried: tried.join("; "),
        chosen: chosen.join("; "),
        splits: (1..)
            .zip(&line.splits)
            .filter(|(_, split)| split.failure.is_none())
            .map(|(number, split)| SplitRow {
                number,
                chosen: pairs(&split.chosen),
                prepare: split.prepare.clone(),
                score: split.score.clone(),
                steps: split.steps.map_or(String::new(), |steps| steps.to_string()),
                validation: split.validation.map_or(String::new(), score),
                test: split
                    .values
                    .get(criterion)
                    .map_or(String::new(), |value| score(*value)),
                queries: match split.skipped {
                    0 => split.queries.to_string(),
                    skipped => format!("{} ({skipped} left out)", split.queries),
                },
                facts: split
                    .facts
                    .iter()
                    .map(|(name, value)| format!("{name} {}", fact(*value)))
                    .collect::<Vec<_>>()
                    .join(", "),
            })
            .collect(),
    }
}

fn pairs(values: &BTreeMap<String, String>) -> String {
    let pairs = values
        .iter()
        .map(|(name, value)| format!("{name} = {value}"));
    pairs.collect::<Vec<_>>().join("; ")
}
