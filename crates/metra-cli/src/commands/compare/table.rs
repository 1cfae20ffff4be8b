//! The comparison in words and columns.

use crate::print;
use anyhow::Result;
use metra::experiment::compare::{Costs, Evidence, Finding, Gain, Line, Results};

/// Print all of it, the best line first.
pub(super) fn print(results: &Results, costs: &Costs) -> Result<()> {
    let facts = &results.protocol;
    let splits = facts.splits.len();
    let kind = if facts.folds { "folds" } else { "splits" };
    let held = match facts.splits.as_slice() {
        [only] => format!(
            "{}: {} train, {} validation, {} test",
            facts.holdout,
            print::count(only.train as u64),
            print::count(only.validation as u64),
            print::count(only.test as u64)
        ),
        _ => format!("{}, {splits} {kind}", facts.holdout),
    };
    print::fact("held out", &held)?;
    let halving = facts
        .halving
        .map_or(String::new(), |n| format!(", halving by {n}"));
    print::fact(
        "settings",
        &format!(
            "chosen by {} on validation, at most {} trials a method{halving}",
            facts.criterion, facts.budget
        ),
    )?;
    print::line("")?;
    let criterion = results.criterion();
    let mut lines: Vec<&Line> = results.lines.iter().collect();
    let mean = |line: &Line| line.measures.get(criterion).map_or(f64::MIN, |m| m.mean);
    lines.sort_by(|a, b| mean(b).total_cmp(&mean(a)));
    measures(results, &lines, splits)?;
    gains(results, costs, &lines, criterion)?;
    parts(results, &lines)?;
    claims(results)?;
    chosen(&lines, splits)?;
    for line in lines {
        for (number, split) in line.splits.iter().enumerate() {
            if let Some(why) = &split.failure {
                print::fact(
                    "failed",
                    &format!("{} on split {}: {why}", line.name, number + 1),
                )?;
            }
        }
    }
    let product = match costs.product_seconds > 0.0 {
        true => format!("; a 2048³ product took {:.3} s", costs.product_seconds),
        false => String::new(),
    };
    let time = format!(
        "{:.0} s, {:.0} CPU s with {} at once{product}",
        costs.wall_seconds, costs.cpu_seconds, costs.threads
    );
    print::fact("time", &time)
}

/// Width of the column of names.
fn width(lines: &[&Line]) -> usize {
    let longest = lines.iter().map(|line| line.name.chars().count()).max();
    longest.unwrap_or(0).clamp(8, 24)
}

/// Columns of a terminal that tables keep to, unless a name is long.
const TERMINAL: usize = 100;

fn measures(results: &Results, lines: &[&Line], splits: usize) -> Result<()> {
    let width = width(lines);
    let cell = if splits > 1 { 17 } else { 9 };
    let names: Vec<&String> = (results.protocol.measures.iter())
        .chain(&results.facts)
        .collect();
    let cells = |line: &Line| -> Vec<String> {
        let measures = line.measures.iter().map(|measure| match splits > 1 {
            true => format!("{:.4} ± {:.4}", measure.mean, measure.deviation),
            false => format!("{:.4}", measure.mean),
        });
        let facts = results.facts.iter().map(|fact| {
            let value = line.fact(fact);
            value.map_or("–".into(), |value| format!("{value:.4}"))
        });
        measures.chain(facts).collect()
    };
    // What does not fit beside each other comes below.
    let fitting = ((TERMINAL - width) / (cell + 2)).max(1);
    for first in (0..names.len()).step_by(fitting) {
        let shown = first..names.len().min(first + fitting);
        let mut head = " ".repeat(width);
        for name in &names[shown.clone()] {
            head.push_str(&format!("  {name:>cell$}"));
        }
        print::line(&head)?;
        for line in lines {
            let mut row = format!("{:<width$}", line.name);
            match cells(line).get(shown.clone()) {
                Some(cells) if !line.measures.is_empty() => {
                    for text in cells {
                        row.push_str(&format!("  {text:>cell$}"));
                    }
                }
                _ => row.push_str("  failed"),
            }
            print::line(&row)?;
        }
        print::line("")?;
    }
    Ok(())
}

fn gains(results: &Results, costs: &Costs, lines: &[&Line], criterion: usize) -> Result<()> {
    let width = width(lines);
    let (base, best) = (&results.base, &results.best);
    let head = format!("{} against {base}", results.protocol.criterion);
    print::line(&format!(
        "{:<width$}  {head:<40}  {:<11}  {:>9}  {:>6}",
        "", "to the best", "CPU s/fit", "MB/fit"
    ))?;
    let mut unsure = false;
    for line in lines {
        let over_base = match line.against_base.get(criterion) {
            Some(gain) => {
                unsure |= gain.evidence != gain.adjusted;
                interval(gain)
            }
            None if line.name == *base => "the base".into(),
            None => "not compared".into(),
        };
        let to_best = match line.against_best.get(criterion).map(|gain| gain.adjusted) {
            Some(Evidence::Worse) => "behind",
            Some(_) => "no evidence",
            None if line.name == *best => "the best",
            None => "–",
        };
        let cost = costs.lines.get(&line.name).copied().unwrap_or_default();
        let memory = cost.fit_peak_bytes.map_or("–".into(), |bytes| {
            format!("{:.0}", bytes as f64 / f64::from(1 << 20))
        });
        print::line(&format!(
            "{:<width$}  {over_base:<40}  {to_best:<11}  {:>9.2}  {memory:>6}",
            line.name, cost.fit_cpu_seconds
        ))?;
    }
    let family = results.protocol.comparisons;
    print::line(&format!(
        "\nIntervals are paired 95 % intervals over queries. {family} comparisons are made at once:\n\
         \"to the best\" allows for that (Bonferroni){}.",
        if unsure {
            ", and * marks evidence over the base that does not outlast it"
        } else {
            ""
        }
    ))
}

fn interval(gain: &Gain) -> String {
    let mark = if gain.evidence == gain.adjusted {
        ""
    } else {
        "*"
    };
    format!(
        "{:+.4} [{:+.4}, {:+.4}] {}{mark}",
        gain.difference,
        gain.low,
        gain.high,
        gain.evidence.words()
    )
}

/// Queries whose relevant items training had seen, and the others.
fn parts(results: &Results, lines: &[&Line]) -> Result<()> {
    let width = width(lines);
    let base = &results.base;
    for place in 0..2 {
        let Some(first) = lines.iter().find_map(|line| line.parts.get(place)) else {
            continue;
        };
        let queries = print::count(first.queries as u64);
        print::line(&format!(
            "\n{} on the {queries} queries with {} against {base}",
            results.protocol.criterion, first.part
        ))?;
        for line in lines {
            if let Some(part) = line.parts.get(place) {
                let gain = part.gain.as_ref().map_or("the base".into(), interval);
                print::line(&format!("{:<width$}  {:.4}  {gain}", line.name, part.mean))?;
            }
        }
    }
    Ok(())
}

fn claims(results: &Results) -> Result<()> {
    if results.claims.is_empty() {
        return Ok(());
    }
    print::line("")?;
    for claim in &results.claims {
        let gain = claim.gain.as_ref().map_or(String::new(), |gain| {
            format!(
                " ({:+.4} [{:+.4}, {:+.4}])",
                gain.difference, gain.low, gain.high
            )
        });
        let mark = match claim.finding {
            Finding::Reproduced => "reproduced",
            Finding::NotReproduced => "not reproduced",
            Finding::Undecided => "undecided",
        };
        print::line(&format!(
            "{} > {} in {}: {mark}{gain}",
            claim.better, claim.worse, claim.measure
        ))?;
    }
    Ok(())
}

fn chosen(lines: &[&Line], splits: usize) -> Result<()> {
    print::line("")?;
    for line in lines {
        let usual: Vec<String> = (line.usual().into_iter())
            .map(|(name, (value, count))| match count == splits {
                true => format!("{name}={value}"),
                false => format!("{name}={value} ({count} of {splits})"),
            })
            .collect();
        if !usual.is_empty() {
            let trials = match line.trials {
                1 => "1 trial".into(),
                n => format!("{n} trials"),
            };
            let width = width(lines);
            print::line(&format!(
                "{:<width$}  {}; {trials}",
                line.name,
                usual.join(" ")
            ))?;
        }
    }
    print::line("")
}
