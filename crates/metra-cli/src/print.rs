//! How results look: tables on standard output, or one JSON document.

use anyhow::Result;
use metra::evaluate::{Comparison, Measure};
use serde::Serialize;
use std::io::Write;

/// Print one line to standard output.
pub(crate) fn line(text: &str) -> Result<()> {
    writeln!(std::io::stdout().lock(), "{text}")?;
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

/// Comparisons as JSON rows.
pub(crate) fn rows(comparisons: &[(Measure, Comparison)]) -> Vec<Row> {
    (comparisons.iter())
        .map(|(measure, c)| Row {
            measure: measure.to_string(),
            base: c.base,
            learned: c.learned,
            difference: c.difference,
            low: c.low,
            high: c.high,
            verdict: c.verdict().to_string(),
            queries: c.queries,
        })
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
    let queries = count(first.queries as u64);
    let clusters = if first.clusters == first.queries {
        String::new()
    } else {
        format!(" of {} identities", count(first.clusters as u64))
    };
    line(&format!(
        "{title:<12}{base:>9}{:>9}{:>10}   95 % interval ({queries} queries{clusters})",
        "learned", "gain"
    ))?;
    for (measure, c) in comparisons {
        line(&format!(
            "{:<12}{:>9.4}{:>9.4}{:>+10.4}   [{:+.4}, {:+.4}]  {}",
            measure.to_string(),
            c.base,
            c.learned,
            c.difference,
            c.low,
            c.high,
            c.verdict()
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_commas() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1797), "1,797");
        assert_eq!(count(1_000_000), "1,000,000");
    }
}
