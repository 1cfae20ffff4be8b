//! How results look: tables on standard output, or one JSON document.
//!
//! A verb's work and its exit code do not depend on who reads: where standard output cannot be written
//! any more, the rest is dropped, the work goes on, and [`ending`] tells it at the end.

use anyhow::Result;
use metra::evaluate::{Comparison, Measure};
use metra::experiment::Scores;
use metra::model::{Chain, Embedding, MatchDecision, SeenRows};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write};
use std::sync::{Mutex, PoisonError};

/// Why standard output was given up.
static FAILURE: Mutex<Option<io::Error>> = Mutex::new(None);

/// Print one line to standard output.
pub(crate) fn line(text: &str) -> Result<()> {
    print(&visible(text), "\n");
    Ok(())
}

/// Print a text as it is.
pub(crate) fn text(text: &str) -> Result<()> {
    print(text, "");
    Ok(())
}

fn print(text: &str, end: &str) {
    let mut failure = FAILURE.lock().unwrap_or_else(PoisonError::into_inner);
    if failure.is_none() {
        let mut out = io::stdout().lock();
        let written = (out.write_all(text.as_bytes())).and_then(|()| out.write_all(end.as_bytes()));
        *failure = written.err();
    }
}

/// Whether nobody reads any more, so that a verb that only prints may end early.
pub(crate) fn is_given_up() -> bool {
    let failure = FAILURE.lock().unwrap_or_else(PoisonError::into_inner);
    failure.is_some()
}

/// The exit code of a verb that ended well: its own, unless what it printed was lost. A reader who has
/// seen enough, as `head` has, loses nothing.
pub(crate) fn ending(code: u8) -> u8 {
    let mut failure = FAILURE.lock().unwrap_or_else(PoisonError::into_inner);
    let failure = failure.take().or_else(|| io::stdout().flush().err());
    match failure {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            tracing::error!("standard output: {error}; files were written as asked for");
            code.max(1)
        }
        _ => code,
    }
}

/// A text whose control characters are written out: an id in a file must not steer the terminal.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && c != '\t' && c != '\n';
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match steers(c) {
            // As JSON has it, so that a document stays one: there they stand in texts only.
            true => _ = write!(out, "\\u{:04x}", u32::from(c)),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Print a JSON document.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Print `name  value` in columns.
pub(crate) fn fact(name: &str, value: &str) -> Result<()> {
    line(&format!("{name:<12}{value}"))
}

/// The dimension of the vectors that a metric takes, or of queries and of items.
pub(crate) fn input_dimensions(chain: &Chain) -> String {
    let (queries, items) = (chain.query_input_dim(), chain.input_dim());
    match chain.query_preprocessing() {
        None => items.to_string(),
        Some(_) => format!("queries of {queries} and items of {items}"),
    }
}

/// Dimensions of the vectors that a metric takes and gives.
pub(crate) fn dimensions(chain: &Chain) -> String {
    let (input, output) = (input_dimensions(chain), chain.output_dim());
    format!("{input} → {output} dimensions")
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
        format!(" of {} classes", count(first.clusters as u64))
    };
    let note = format!(" ({queries}{clusters})");
    table(title, base, &note, &rows(comparisons))
}

/// Rows under a head.
pub(crate) fn table(title: &str, base: &str, note: &str, rows: &[Row]) -> Result<()> {
    // A name that is wider than its column stands behind the others.
    let (base, note) = match base.len() > 9 {
        true => ("baseline", format!("{note}, baseline {base}")),
        false => (base, note.to_owned()),
    };
    line(&format!(
        "{title:<12}{base:>9}{:>9}{:>10}   95 % interval{note}",
        "learned", "gain"
    ))?;
    rows.iter().try_for_each(Row::print)
}

/// What is measured of one way to rank.
#[derive(Serialize)]
pub(crate) struct Line {
    pub(crate) name: String,
    measures: BTreeMap<String, f64>,
}

impl Line {
    pub(crate) fn new(name: String, scores: &Scores) -> Self {
        let means =
            (scores.measures().iter()).map(|measure| (measure.to_string(), scores.mean(*measure)));
        Line {
            name,
            measures: means.collect(),
        }
    }
}

/// One line a way to rank, one column a measure.
pub(crate) fn lines(measures: &[Measure], lines: &[Line]) -> Result<()> {
    let mut head = format!("\n{:<20}", "");
    for measure in measures {
        head.push_str(&format!("{:>9}", measure.to_string()));
    }
    line(&head)?;
    for way in lines {
        let mut text = format!("{:<20}", way.name);
        for measure in measures {
            text.push_str(&format!("{:>9.4}", way.measures[&measure.to_string()]));
        }
        line(&text)?;
    }
    Ok(())
}

/// Differences by one measure, each with the name of what it is about.
pub(crate) fn gains(title: &str, rows: &[Row]) -> Result<()> {
    let queries = plural(rows.first().map_or(0, |row| row.queries as u64), "query");
    line(&format!("\n{title} ({queries}):"))?;
    for row in rows {
        line(&format!(
            "{:<20}{:>+9.4}   95 % interval [{:+.4}, {:+.4}]  {}",
            row.measure, row.difference, row.low, row.high, row.verdict
        ))?;
    }
    Ok(())
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
    fn control_characters_are_written_out() {
        assert_eq!(visible("a\tb\nc"), "a\tb\nc");
        assert_eq!(
            visible("\u{1b}[2J\u{7f}\u{9b}x\r"),
            "\\u001b[2J\\u007f\\u009bx\\u000d"
        );
        let text = serde_json::to_string("\u{9b}\u{7f}").unwrap();
        let back: String = serde_json::from_str(&visible(&text)).unwrap();
        assert_eq!(back, "\u{9b}\u{7f}");
    }

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
