//! Summarises the outcomes of trials: means, paired confidence intervals against the baseline and
//! the best method, and whether claims hold.

use super::CODE_DIGEST;
use super::log::{Reached, Record};
use super::results::{
    ClaimOutcome, Evidence, FORMAT, Finding, Gain, Line, MeasureLine, PartLine, ProtocolFacts,
    QueryChange, QueryChanges, Results, Sizes, SplitLine,
};
use crate::evaluate::{Bootstrap, Resampled, resample};
use crate::experiment::definition::{Claim, ComparedMethod, Experiment};
use crate::experiment::repeat::MeanAndDeviation;
use crate::experiment::scores::Scores;
use crate::experiment::study::Chosen;
use crate::experiment::train::SplitResult;
use crate::experiment::verdicts::SeenKind;
use crate::model::Space;
use crate::training::Recipe;
use crate::{Error, Result};
use std::collections::BTreeMap;

/// Resamples of the bootstrap: enough for the far quantiles of some twenty comparisons at once.
pub(super) const RESAMPLES: u32 = 10_000;
/// Level of the plain intervals.
const LEVEL: f64 = 0.95;
/// Bins of changes from −1 to 1.
const BINS: usize = 20;
/// Queries listed that gained or lost most.
const LISTED: usize = 8;

/// One method on one split.
pub(super) struct Cell<'l> {
    pub(super) trials: usize,
    /// Values chosen of what was tried, and all that they mean.
    pub(super) chosen: Option<(BTreeMap<String, String>, Chosen)>,
    pub(super) judged: Option<&'l Record>,
    pub(super) failure: Option<String>,
}

impl<'l> Cell<'l> {
    fn reached(&self) -> Option<&'l Reached> {
        match self.judged {
            Some(Record::Judged { scores, .. }) => scores.as_ref(),
            _ => None,
        }
    }
}

impl Experiment<'_> {
    /// Results of splits that were trained one by one: a comparison of two, the baseline and the first
    /// method.
    pub fn results_of(&self, splits: &[SplitResult]) -> Result<Results> {
        let (Some(method), Some(first)) = (self.methods.first(), splits.first()) else {
            return Err(Error::shape("trained splits", "at least 1", 0));
        };
        let baseline = self.dataset.baseline_name(first.base);
        let tuned = |name: &String| method.grid.iter().any(|(tuned, _)| tuned == name);
        let mut learned = method.clone();
        learned.settings.retain(|name, _| !tuned(name));
        // A method called as its baseline is called would make two lines of one name.
        if learned.name == baseline {
            learned.name = format!("{} learned", learned.name);
        }
        let plain = match first.base {
            _ if self.dataset.has_two_spaces() => "procrustes",
            Space::Cosine => "cosine",
            _ => "euclid",
        };
        let base = ComparedMethod {
            grid: Vec::new(),
            ..ComparedMethod::usual(baseline.clone(), plain, Recipe::default())?
        };
        let experiment = Experiment {
            methods: vec![base, learned],
            base: Some(baseline),
            budget: (splits.iter().map(|split| split.chosen.trials.len()).max())
                .unwrap_or(1)
                .max(1),
            ..self.clone()
        };
        experiment.two_lines(splits)
    }

    /// Results of this experiment's two methods, baseline and learned.
    fn two_lines(&self, splits: &[SplitResult]) -> Result<Results> {
        let record = |scores: &Scores, facts: BTreeMap<String, f64>, line: usize, split: usize| {
            Record::Judged {
                key: String::new(),
                line: self.methods[line].name.clone(),
                split,
                scores: Some(Reached::new(scores)),
                facts,
                failure: None,
                seconds: 0.0,
                fit_seconds: 0.0,
            }
        };
        let mut records = Vec::new();
        for (split, result) in splits.iter().enumerate() {
            let verdicts = result.verdicts.as_ref().ok_or_else(|| {
                Error::Data("a report shows how a model was evaluated: hold something out".into())
            })?;
            let facts = result.model.origin.facts.clone();
            records.push([
                record(&verdicts.base, BTreeMap::new(), 0, split),
                record(&verdicts.learned, facts, 1, split),
            ]);
        }
        let tried = |chosen: &Chosen| -> BTreeMap<String, String> {
            let value = |name: &str| match name {
                "prepare" => Some(chosen.recipe.to_string()),
                name => chosen.settings.get(name).cloned(),
            };
            let names = self.methods[1].grid.iter().map(|(name, _)| name);
            names
                .filter_map(|name| Some((name.clone(), value(name)?)))
                .collect()
        };
        let base = |space: Space| Chosen {
            settings: BTreeMap::new(),
            recipe: self.methods[0].recipe.clone(),
            space,
            last_step: None,
            value: None,
            trials: Vec::new(),
            values: Vec::new(),
        };
        let cells = |line: usize| -> Vec<Cell<'_>> {
            (splits.iter().zip(&records))
                .map(|(result, records)| Cell {
                    trials: match line {
                        0 => 1,
                        _ => result.chosen.trials.len().max(1),
                    },
                    chosen: Some(match line {
                        0 => (BTreeMap::new(), base(result.base)),
                        _ => (tried(&result.chosen), result.chosen.clone()),
                    }),
                    judged: Some(&records[line]),
                    failure: None,
                })
                .collect()
        };
        // As many as a training's own tables use, so that a figure has one interval.
        sum_up(self, &[cells(0), cells(1)], Bootstrap::default().resamples)
    }
}

/// A line's values over all splits: one list a measure, one value a query.
struct Pooled {
    values: Vec<Vec<f64>>,
}

/// Make results of all cells, one list a method.
pub(super) fn sum_up(
    experiment: &Experiment<'_>,
    cells: &[Vec<Cell<'_>>],
    resamples: u32,
) -> Result<Results> {
    let mut lines: Vec<Line> = (experiment.methods.iter().zip(cells))
        .map(|(method, cells)| line(experiment, method, cells))
        .collect();
    let pooled: Vec<Option<Pooled>> = cells.iter().map(|cells| pool(cells)).collect();
    let queries = queries(cells)?;
    let criterion = place(experiment, experiment.criterion);
    let complete = |number: &usize| pooled[*number].is_some();
    let mean = |number: usize| lines[number].measures.get(criterion).map(|m| m.mean);
    let best = (0..lines.len()).filter(complete).reduce(|best, other| {
        if mean(other) > mean(best) {
            other
        } else {
            best
        }
    });
    let Some(best) = best else {
        let why = lines.iter().flat_map(|line| &line.splits);
        let why = why.filter_map(|split| split.failure.clone()).next();
        return Err(Error::Data(format!(
            "no method could be judged on every split: {}",
            why.unwrap_or_default()
        )));
    };
    let base = base(experiment, &lines, &pooled)?;
    let family = pooled.iter().flatten().count().saturating_sub(1).max(1);
    let compared = Compared {
        experiment,
        pooled: &pooled,
        queries: &queries,
        family,
        resamples,
    };
    let names: Vec<String> = lines.iter().map(|line| line.name.clone()).collect();
    let against_base = compared.all_against(base, &lines)?;
    let against_best = compared.all_against(best, &lines)?;
    let claims = (experiment.claims.iter())
        .map(|claim| compared.claim(claim, &lines))
        .collect::<Result<_>>()?;
    for (number, (line, (over_base, over_best))) in (lines.iter_mut())
        .zip(against_base.into_iter().zip(against_best))
        .enumerate()
    {
        line.against_base = over_base;
        line.against_best = over_best;
        if number != base {
            line.queries = compared.changes(base, number, criterion);
        }
        line.parts = compared.parts(base, number, criterion)?;
    }
    Ok(Results {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").into(),
        code_digest: CODE_DIGEST.into(),
        name: experiment.name.clone(),
        about: experiment.about.clone(),
        command: experiment.command.clone(),
        data: experiment.data.clone(),
        protocol: protocol(experiment, family, resamples),
        base: names[base].clone(),
        best: names[best].clone(),
        lines,
        claims,
        facts: experiment.facts.clone(),
    })
}

fn protocol(experiment: &Experiment<'_>, family: usize, resamples: u32) -> ProtocolFacts {
    let sizes = experiment.splits.iter().map(|(parts, _)| Sizes {
        train: parts.train.len(),
        validation: parts.validation.len(),
        test: parts.test.len(),
    });
    let measures = experiment.judging.measures.iter();
    ProtocolFacts {
        protocol: experiment.judging.protocol.to_string(),
        holdout: experiment.holdout.to_string(),
        splits: sizes.collect(),
        folds: experiment.folds,
        seed: experiment.seed,
        criterion: experiment.criterion.to_string(),
        measures: measures.map(ToString::to_string).collect(),
        budget: experiment.budget,
        halving: experiment.halving,
        rerank: experiment.judging.rerank.map(|rerank| rerank.to_string()),
        comparisons: family,
        resamples,
    }
}

fn place(experiment: &Experiment<'_>, measure: crate::evaluate::Measure) -> usize {
    let measures = &experiment.judging.measures;
    measures.iter().position(|m| *m == measure).unwrap_or(0)
}

/// What one method reached, without comparisons.
fn line(experiment: &Experiment<'_>, method: &ComparedMethod, cells: &[Cell<'_>]) -> Line {
    let splits: Vec<SplitLine> = cells.iter().map(split_line).collect();
    let judged: Vec<&SplitLine> = splits.iter().filter(|s| !s.values.is_empty()).collect();
    let pooled = pool(cells);
    let measures = experiment.judging.measures.iter().enumerate();
    let measures = measures
        .filter(|_| !judged.is_empty())
        .map(|(at, measure)| {
            let values: Vec<f64> = judged.iter().map(|split| split.values[at]).collect();
            let over = MeanAndDeviation::over(&values);
            // Folds are parts of one set: each query counts once.
            let mean = match &pooled {
                Some(pooled) if experiment.folds => mean_of(&pooled.values[at]),
                _ => over.mean,
            };
            MeasureLine {
                measure: measure.to_string(),
                mean,
                deviation: over.deviation,
                published: method.published.get(measure).copied(),
            }
        });
    Line {
        name: method.name.clone(),
        method: method.method.clone(),
        settings: fixed(method),
        grid: method.grid.iter().cloned().collect(),
        trials: cells.first().map_or(0, |cell| cell.trials),
        measures: measures.collect(),
        cmc: curve(cells, |reached| &reached.cmc),
        precision: curve(cells, |reached| &reached.precision),
        splits,
        against_base: Vec::new(),
        against_best: Vec::new(),
        queries: None,
        parts: Vec::new(),
    }
}

/// Fixed settings, preparation among them.
fn fixed(method: &ComparedMethod) -> BTreeMap<String, String> {
    let mut settings = method.settings.clone();
    let recipe = method.recipe.to_string();
    if recipe != "none" && !method.grid.iter().any(|(name, _)| name == "prepare") {
        settings.insert("prepare".into(), recipe);
    }
    settings
}

fn split_line(cell: &Cell<'_>) -> SplitLine {
    let reached = cell.reached();
    let (facts, failure) = match cell.judged {
        Some(Record::Judged { facts, failure, .. }) => (facts.clone(), failure.clone()),
        _ => (BTreeMap::new(), cell.failure.clone()),
    };
    let chosen = cell.chosen.as_ref();
    SplitLine {
        chosen: chosen.map(|(tried, _)| tried.clone()).unwrap_or_default(),
        prepare: chosen.map_or(String::new(), |(_, c)| c.recipe.to_string()),
        score: chosen.map_or(String::new(), |(_, c)| c.space.to_string()),
        steps: chosen.and_then(|(_, c)| c.last_step),
        validation: chosen.and_then(|(_, c)| c.value),
        values: reached.map_or_else(Vec::new, |r| r.values.iter().map(|v| mean_of(v)).collect()),
        queries: reached.map_or(0, |r| r.queries.len()),
        skipped: reached.map_or(0, |r| r.skipped),
        facts,
        failure,
    }
}

fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// A curve over all queries of all splits; empty where a split has none.
fn curve(cells: &[Cell<'_>], pick: fn(&Reached) -> &Vec<f64>) -> Vec<f64> {
    let Some(reached) = cells.iter().map(Cell::reached).collect::<Option<Vec<_>>>() else {
        return Vec::new();
    };
    let length = reached.iter().map(|r| pick(r).len()).min().unwrap_or(0);
    let queries: usize = reached.iter().map(|r| r.queries.len()).sum();
    let at = |place: usize| {
        let sum: f64 = (reached.iter())
            .map(|r| pick(r)[place] * r.queries.len() as f64)
            .sum();
        sum / queries.max(1) as f64
    };
    (0..length).map(at).collect()
}

/// All values of a line; `None` where a split failed.
fn pool(cells: &[Cell<'_>]) -> Option<Pooled> {
    let reached = cells
        .iter()
        .map(Cell::reached)
        .collect::<Option<Vec<_>>>()?;
    let measures = reached.first()?.values.len();
    let values = |at: usize| {
        reached
            .iter()
            .flat_map(|r| r.values[at].iter().copied())
            .collect()
    };
    Some(Pooled {
        values: (0..measures).map(values).collect(),
    })
}

/// (split, unit) of every query, which must be the same for all methods that were judged.
fn queries(cells: &[Vec<Cell<'_>>]) -> Result<Vec<(usize, u64)>> {
    let splits = cells.first().map_or(0, Vec::len);
    let mut queries = Vec::new();
    for split in 0..splits {
        let mut judged = cells.iter().filter_map(|cells| cells[split].reached());
        let Some(first) = judged.next() else {
            continue;
        };
        if judged.any(|other| other.queries != first.queries) {
            return Err(Error::Data(format!(
                "split {split}: the methods were judged on different queries"
            )));
        }
        queries.extend(first.queries.iter().map(|query| (split, *query)));
    }
    Ok(queries)
}

/// The line to compare with: the one named, or the better on validation of those that learn nothing.
fn base(experiment: &Experiment<'_>, lines: &[Line], pooled: &[Option<Pooled>]) -> Result<usize> {
    let failed = |name: &str| {
        Error::Data(format!(
            "the base {name} failed and cannot be compared with"
        ))
    };
    if let Some(name) = &experiment.base {
        let found = lines.iter().position(|line| line.name == *name);
        return found
            .filter(|at| pooled[*at].is_some())
            .ok_or_else(|| failed(name));
    }
    let validation = |at: usize| {
        let values = lines[at].splits.iter().filter_map(|split| split.validation);
        mean_of(&values.collect::<Vec<_>>())
    };
    (0..lines.len())
        .filter(|at| experiment.is_base(&lines[*at].method) && pooled[*at].is_some())
        .reduce(|best, other| {
            if validation(other) > validation(best) {
                other
            } else {
                best
            }
        })
        .ok_or_else(|| {
            failed(&format!(
                "({})",
                experiment.dataset.baselines().join(" or ")
            ))
        })
}

/// Lines that can be compared query by query.
struct Compared<'a, 'e> {
    experiment: &'a Experiment<'e>,
    pooled: &'a [Option<Pooled>],
    queries: &'a [(usize, u64)],
    family: usize,
    resamples: u32,
}

impl Compared<'_, '_> {
    /// Gains of every line over one, for all measures; empty for itself and where a split failed.
    fn all_against(&self, other: usize, lines: &[Line]) -> Result<Vec<Vec<Gain>>> {
        let mut columns = Vec::new();
        let mut owners = Vec::new();
        for line in (0..lines.len()).filter(|line| *line != other) {
            for measure in 0..self.experiment.judging.measures.len() {
                if let Some(differences) = self.differences(other, line, measure) {
                    columns.push(differences);
                    owners.push((line, measure));
                }
            }
        }
        let mut gains = vec![Vec::new(); lines.len()];
        if columns.is_empty() {
            return Ok(gains);
        }
        let resampled = self.resample(&columns)?;
        for (column, (line, measure)) in owners.into_iter().enumerate() {
            let ahead = ahead(&lines[other], &lines[line], measure);
            gains[line].push(self.gain(&resampled, column, &columns[column], measure, ahead));
        }
        Ok(gains)
    }

    fn claim(&self, claim: &Claim, lines: &[Line]) -> Result<ClaimOutcome> {
        let find = |name: &str| lines.iter().position(|line| line.name == name);
        let measure = place(self.experiment, claim.measure);
        let pair = find(&claim.worse).zip(find(&claim.better));
        let gain = match pair.and_then(|(worse, better)| {
            Some((self.differences(worse, better, measure)?, worse, better))
        }) {
            None => None,
            Some((differences, worse, better)) => {
                let columns = [differences];
                let ahead = ahead(&lines[worse], &lines[better], measure);
                let resampled = self.resample(&columns)?;
                Some(self.gain(&resampled, 0, &columns[0], measure, ahead))
            }
        };
        let finding = match gain.as_ref().map(|gain| gain.evidence) {
            Some(Evidence::Better) => Finding::Reproduced,
            Some(Evidence::Worse) => Finding::NotReproduced,
            _ => Finding::Undecided,
        };
        Ok(ClaimOutcome {
            better: claim.better.clone(),
            worse: claim.worse.clone(),
            measure: claim.measure.to_string(),
            source: claim.source.clone(),
            finding,
            gain,
            remark: claim.remark.clone(),
        })
    }

    /// Queries with and without a relevant item, or a class, that training had seen; nothing where none can be told
    /// apart or where a split failed.
    fn parts(&self, base: usize, line: usize, measure: usize) -> Result<Vec<PartLine>> {
        let experiment = self.experiment;
        let Some(pooled) = &self.pooled[line] else {
            return Ok(Vec::new());
        };
        let mut seen = Vec::new();
        for (parts, _) in &experiment.splits {
            let trained = parts.learned_from();
            match experiment.dataset.seen_queries(&parts.test, &trained) {
                Some(queries) => seen.push(queries),
                None => return Ok(Vec::new()),
            }
        }
        let mut found = Vec::new();
        let kind = experiment.dataset.seen_kind();
        for (part, which) in [("seen", true), ("unseen", false)] {
            let places: Vec<usize> = (0..self.queries.len())
                .filter(|at| seen[self.queries[*at].0].contains(&self.queries[*at].1) == which)
                .collect();
            if places.is_empty() {
                continue;
            }
            let pick = |values: &[f64]| places.iter().map(|at| values[*at]).collect::<Vec<_>>();
            let gain = match self.differences(base, line, measure) {
                Some(differences) if line != base => {
                    let columns = [pick(&differences)];
                    let queries: Vec<_> = places.iter().map(|at| self.queries[*at]).collect();
                    let part = Compared {
                        queries: &queries,
                        ..*self
                    };
                    let resampled = part.resample(&columns)?;
                    Some(self.gain(&resampled, 0, &columns[0], measure, 0))
                }
                _ => None,
            };
            found.push(PartLine {
                part: format!("{part} {kind}"),
                queries: places.len(),
                mean: mean_of(&pick(&pooled.values[measure])),
                gain,
            });
        }
        if kind == SeenKind::Classes && found.len() < 2 {
            found.clear();
        }
        Ok(found)
    }

    fn differences(&self, other: usize, line: usize, measure: usize) -> Option<Vec<f64>> {
        let (other, line) = (self.pooled[other].as_ref()?, self.pooled[line].as_ref()?);
        let pairs = line.values[measure].iter().zip(&other.values[measure]);
        Some(pairs.map(|(line, other)| line - other).collect())
    }

    fn resample(&self, columns: &[Vec<f64>]) -> Result<Resampled> {
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let dataset = self.experiment.dataset;
        let clusters = self.queries.iter().map(|(_, unit)| dataset.cluster(*unit));
        let clusters: Vec<u64> = clusters.collect();
        resample(&columns, &clusters, self.resamples, self.experiment.seed)
    }

    fn gain(
        &self,
        resampled: &Resampled,
        column: usize,
        differences: &[f64],
        measure: usize,
        ahead: usize,
    ) -> Gain {
        let (low, high) = resampled.interval(column, LEVEL);
        let wide = 1.0 - (1.0 - LEVEL) / self.family as f64;
        let (wide_low, wide_high) = resampled.interval(column, wide);
        Gain {
            measure: self.experiment.judging.measures[measure].to_string(),
            difference: mean_of(differences),
            low,
            high,
            wide_low,
            wide_high,
            evidence: Evidence::of(low, high),
            adjusted: Evidence::of(wide_low, wide_high),
            ahead,
            queries: differences.len(),
            clusters: resampled.clusters,
        }
    }

    /// Which queries gained and lost.
    fn changes(&self, base: usize, line: usize, measure: usize) -> Option<QueryChanges> {
        let differences = self.differences(base, line, measure)?;
        let values = &self.pooled[line].as_ref()?.values[measure];
        let mut histogram = vec![0; BINS];
        for difference in differences.iter().filter(|d| **d != 0.0) {
            let bin = ((difference + 1.0) * BINS as f64 / 2.0).floor();
            histogram[(bin.max(0.0) as usize).min(BINS - 1)] += 1;
        }
        let mut order: Vec<usize> = (0..differences.len()).collect();
        order.sort_by(|a, b| differences[*b].total_cmp(&differences[*a]));
        let change = |at: &usize| QueryChange {
            query: (self.experiment.names)(self.queries[*at].1),
            split: self.queries[*at].0,
            base: values[*at] - differences[*at],
            value: values[*at],
        };
        let gained = order.iter().filter(|at| differences[**at] > 0.0);
        let lost = order.iter().rev().filter(|at| differences[**at] < 0.0);
        Some(QueryChanges {
            better: gained.clone().count(),
            equal: differences.iter().filter(|d| **d == 0.0).count(),
            worse: lost.clone().count(),
            histogram,
            gains: gained.take(LISTED).map(change).collect(),
            losses: lost.take(LISTED).map(change).collect(),
        })
    }
}

/// Splits in which `line` is ahead of `other`.
fn ahead(other: &Line, line: &Line, measure: usize) -> usize {
    let pairs = line.splits.iter().zip(&other.splits);
    pairs
        .filter(|(line, other)| line.values.get(measure) > other.values.get(measure))
        .count()
}
