//! Documents that people write: their quotes are brought up to date, and figures that are no quotes are found.

use super::data::Data;
use super::quotes;
use crate::Finding;
use crate::markdown::{prose_lines, without_code_spans};
use std::collections::BTreeSet;

/// Documents in which every figure must be a quote. Elsewhere (decisions, formats) figures are part of an argument or of
/// a definition.
const QUOTING: [&str; 3] = ["README.md", "docs/guide/", "docs/methods/"];

/// The document with its quotes up to date, and what is wrong in it.
pub(super) fn updated(path: &str, text: &str, data: &Data) -> (String, Vec<Finding>) {
    let prose: BTreeSet<usize> = prose_lines(text).map(|(number, _)| number).collect();
    let must_quote = QUOTING
        .iter()
        .any(|part| path == *part || (part.ends_with('/') && path.starts_with(part)));
    let mut findings = Vec::new();
    let mut out = String::with_capacity(text.len());
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        if !prose.contains(&number) {
            out.push_str(line);
            continue;
        }
        match quotes::updated(line, data) {
            Ok(line) => out.push_str(&line),
            Err(error) => {
                findings.push(Finding::new(path, number, format!("{error:#}")));
                out.push_str(line);
            }
        }
        if must_quote {
            let figures = figures(&without_code_spans(&quotes::removed(line)));
            findings.extend(figures.into_iter().map(|figure| {
                let message = format!(
                    "the figure {figure} is from nowhere; expected a quote of {}, or, where it is no result, code: `{figure}`",
                    super::FOLDER
                );
                Finding::new(path, number, message)
            }));
        }
    }
    (out, findings)
}

/// Units of time, memory and speed: a whole number of them is a figure too.
const UNITS: [&str; 14] = [
    "s", "ms", "µs", "min", "CPU", "kB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "GFLOP", "TFLOP",
];

/// Numbers with decimals, per cents, and whole numbers of seconds, bytes and the like.
pub(super) fn figures(prose: &str) -> Vec<String> {
    let prose = without_targets(prose);
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | '-');
    let mut found = Vec::new();
    let mut rest = prose.as_str();
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        // A word around the digits, such as a version or a file name, is no figure.
        let start = rest[..at].rfind(|c| !is_part(c)).map_or(0, |end| {
            end + rest[end..].chars().next().map_or(0, char::len_utf8)
        });
        let length = rest[start..].find(|c| !is_part(c));
        let end = length.map_or(rest.len(), |length| start + length);
        let word = rest[start..end].trim_end_matches(['.', '-', '/']);
        let after = rest[end..].trim_start_matches(['\u{a0}', ' ']);
        let is_percent = after.starts_with('%') || after.starts_with("per cent");
        let unit = after.split(|c: char| !c.is_alphabetic()).next();
        let has_unit = unit.is_some_and(|unit| UNITS.contains(&unit));
        // A range is two figures; a date or a version is none.
        let numbers: Vec<&str> = word.split(['-', '/']).filter(|n| !n.is_empty()).collect();
        let are_numbers = numbers.iter().all(|number| number.parse::<f64>().is_ok());
        // The level of all intervals is no result.
        let is_level = word == "95" && is_percent;
        if are_numbers && !is_level {
            let figures = numbers
                .into_iter()
                .filter(|n| n.contains('.') || is_percent || has_unit);
            found.extend(figures.map(str::to_owned));
        }
        rest = &rest[end.max(at + 1)..];
    }
    found
}

/// Prose without the targets of its links, which may hold digits.
fn without_targets(prose: &str) -> String {
    let mut out = String::new();
    let mut rest = prose;
    while let Some((before, target)) = rest.split_once("](") {
        out.push_str(before);
        rest = target.split_once(')').map_or("", |(_, rest)| rest);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_told_from_other_numbers() {
        let none: [&str; 0] = [];
        assert_eq!(
            figures("gains .5 and 0.25, 98 % of 10, −.3."),
            [".5", "0.25", "98", ".3"]
        );
        assert_eq!(
            figures("0.5-0.7, 97-98 %, 12 per cent"),
            ["0.5", "0.7", "97", "98", "12"]
        );
        assert_eq!(
            figures("12 s, 40-50 MB and 3 CPU seconds, 7\u{a0}µs"),
            ["12", "40", "50", "3", "7"]
        );
        assert_eq!(figures("4 splits, 3 MBits, 2 sets, 12 × 12"), none);
        assert_eq!(figures("2026-11-18, 3/4, v0.5-rc"), none);
        assert_eq!(figures("Apache-2.0, v1.2.3, 1,797 × 64, 2.5.1, a.1"), none);
        assert_eq!(figures("[x](a_0.5.md) and 3 of 4, a 95 % interval"), none);
        let (_, findings) = updated(
            "docs/guide/a.md",
            "a `.5`\n\n```\n.5\n```\n.7\n",
            &Data::default(),
        );
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 6);
        let (_, findings) = updated("docs/decisions/a.md", ".7\n", &Data::default());
        assert!(findings.is_empty());
    }
}
