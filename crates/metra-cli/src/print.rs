//! How results look: tables on standard output, or one JSON document.

use anyhow::Result;
use metra::evaluate::{Comparison, Measure};
use metra::model::{MatchDecision, SeenRows};
use serde::Serialize;
use std::io::Write;

/// Print one line to standard output.
pub(crate) fn line(text: &str) -> Result<()> {
    writeln!(std::io::stdout().lock(), "{text}")?;
    Ok(())
}

/// Print a text as it is.
pub(crate) fn text(text: &str) -> Result<()> {
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// Print a JSON document.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Print `name  value` in columns.
pub(crate) fn fact(name: &str, value: &str) -> Result<()> {
    line(&format!("{name:<12}{value}"))
}

/// 1797 as 1,797.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 query`, `1,797 queries`.
pub(crate) fn plural(number: u64, noun: &str) -> String {
    let ending = match (number, noun.strip_suffix('y')) {
        (1, _) => return format!("1 {noun}"),
        (_, Some(stem)) => format!("{stem}ies"),
        (_, None) => format!("{noun}s"),
    };
    format!("{} {ending}", count(number))
}

/// A comparison as JSON.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) measure: String,
    pub(crate) base: f64,
    pub(crate) learned: f64,
    pub(crate) difference: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) verdict: String,
    pub(crate) queries: usize,
}

impl Row {
    pub(crate) fn new(measure: String, c: &Comparison) -> Self {
        Row {
            measure,
            base: c.base,
            learned: c.learned,
            difference: c.difference,
            low: c.low,
            high: c.high,
            verdict: c.verdict().to_string(),
            queries: c.queries,
        }
    }

    fn print(&self) -> Result<()> {
        line(&format!(
            "{:<12}{:>9.4}{:>9.4}{:>+10.4}   [{:+.4}, {:+.4}]  {}",
            self.measure,
            self.base,
            self.learned,
            self.difference,
            self.low,
            self.high,
            self.verdict
        ))
    }
}

/// Comparisons as JSON rows.
pub(crate) fn rows(comparisons: &[(Measure, Comparison)]) -> Vec<Row> {
    (comparisons.iter())
        .map(|(measure, c)| Row::new(measure.to_string(), c))
        .collect()
}

/// The table of base and learned.
pub(crate) fn comparison_table(
    title: &str,
    base: &str,
    comparisons: &[(Measure, Comparison)],
) -> Result<()> {
    let Some((_, first)) = comparisons.first() else {
        return Ok(());
    };
    let queries = plural(first.queries as u64, "query");
    let clusters = if first.clusters == first.queries {
        String::new()
    } else {
        format!(" of {}", plural(first.clusters as u64, "identity"))
    };
    let note = format!(" ({queries}{clusters})");
    table(title, base, &note, &rows(comparisons))
}

/// Rows under a head.
pub(crate) fn table(title: &str, base: &str, note: &str, rows: &[Row]) -> Result<()> {
    line(&format!(
        "{title:<12}{base:>9}{:>9}{:>10}   95 % interval{note}",
        "learned", "gain"
    ))?;
    rows.iter().try_for_each(Row::print)
}

/// How many rows were learned from, in words.
pub(crate) fn seen_rows(seen: &SeenRows) -> String {
    let rows = plural(seen.rows, "evaluated row");
    let found = match seen.seen {
        0 => "none".to_owned(),
        seen => count(seen),
    };
    let were = if seen.seen == 1 { "was" } else { "were" };
    match seen.recognisable == seen.rows {
        true => format!("{found} of {rows} {were} learned from"),
        false => format!(
            "about {:.0} % of {rows} were learned from ({found} of the {} that can be recognised)",
            100.0 * seen.share(),
            count(seen.recognisable)
        ),
    }
}

/// A decision in words.
pub(crate) fn decision(decision: &MatchDecision) -> [String; 3] {
    [
        format!(
            "same where the dissimilarity is at most {}",
            decision.threshold
        ),
        format!(
            "false matches {:.3e} (asked for at most {:.3e}) of {} pairs of two identities",
            decision.false_match_rate,
            decision.asked,
            count(decision.different)
        ),
        format!(
            "true matches {:.4} [{:.4}, {:.4}] of {} pairs of one identity",
            decision.true_match_rate,
            decision.low,
            decision.high,
            count(decision.same)
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_commas() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1797), "1,797");
        assert_eq!(count(1_000_000), "1,000,000");
        assert_eq!(plural(1, "query"), "1 query");
        assert_eq!(plural(1797, "identity"), "1,797 identities");
        assert_eq!(plural(0, "row"), "0 rows");
    }
}
