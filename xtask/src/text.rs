//! What no committed text may hold: paths of one machine, unfinished marks, stray white space.
//!
//! The searched words are written in two halves, because this file is searched too.

use crate::Finding;
use crate::source::is_word;

/// Roots under which only one machine has its files.
const MACHINE_ROOTS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
];

/// Marks of unfinished work: it is finished, or written down where open work is planned.
const UNFINISHED: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("dbg", "!("),
];

/// Runs the checks of this module on one text file.
pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = machine_paths(path, text);
    findings.extend(unfinished_marks(path, text));
    if !is_kept_byte_for_byte(path) {
        findings.extend(trailing_white_space(path, text));
        findings.extend(last_newline(path, text));
    }
    findings
}

/// Snapshots record output, and test data may hold the very irregularity that is tested.
fn is_kept_byte_for_byte(path: &str) -> bool {
    path.ends_with(".snap") || path.contains("/tests/data/") || path.starts_with("fuzz/corpus/")
}

fn machine_paths(path: &str, text: &str) -> Vec<Finding> {
    each_line(path, text, |line| {
        let root = MACHINE_ROOTS
            .iter()
            .find(|root| has_absolute_path(line, root))?;
        Some(format!(
            "the path `{root}…` exists on one machine only; expected a relative path"
        ))
    })
}

/// In an address or behind a variable the same characters are a part of a longer path.
fn has_absolute_path(line: &str, root: &str) -> bool {
    line.match_indices(root).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| is_word(c) || matches!(c, '.' | '-' | '~' | ')' | '}' | '*'))
    })
}

fn unfinished_marks(path: &str, text: &str) -> Vec<Finding> {
    each_line(path, text, |line| {
        let mark = UNFINISHED.iter().find(|mark| has_whole_word(line, mark))?;
        Some(format!(
            "`{mark}` marks unfinished work; expected the work done or the mark removed"
        ))
    })
}

fn has_whole_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        // A mark that ends in a bracket is followed by anything.
        let closed = word.ends_with('(') || !after.is_some_and(is_word);
        closed && !before.is_some_and(is_word)
    })
}

fn trailing_white_space(path: &str, text: &str) -> Vec<Finding> {
    // In a table by tabs, a tab at the end is an empty last field.
    let table = path.ends_with(".tsv");
    each_line(path, text, |line| {
        let line = if table {
            line.trim_end_matches('\t')
        } else {
            line
        };
        let message = "white space at the end of the line; expected none";
        (line.trim_end() != line).then(|| message.to_owned())
    })
}

fn last_newline(path: &str, text: &str) -> Option<Finding> {
    let message = "the last line has no end; expected a newline";
    let missing = !text.is_empty() && !text.ends_with('\n');
    missing.then(|| Finding::new(path, text.lines().count(), message))
}

fn each_line(path: &str, text: &str, wrong: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    // Split at `\n` and not with `lines()`, which would hide a carriage return.
    let numbered = (1..).zip(text.split('\n'));
    numbered
        .filter_map(|(line, content)| Some(Finding::new(path, line, wrong(content)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_one_machine_are_found() {
        for root in MACHINE_ROOTS {
            assert_eq!(
                machine_paths("a.md", &format!("\nread {root}data\n"))[0].line,
                2
            );
            assert_eq!(
                machine_paths("a.rs", &format!("let path = \"{root}data\";")).len(),
                1
            );
            assert_eq!(
                machine_paths("a.md", &format!("file://{root}data")).len(),
                1
            );
        }
    }

    #[test]
    fn parts_of_longer_paths_pass() {
        for root in MACHINE_ROOTS {
            for start in ["https://example.org", "$HOME", "${folder}", "..", "crates"] {
                assert!(machine_paths("a.md", &format!("see {start}{root}page")).is_empty());
            }
        }
        assert!(machine_paths("a.md", "a homework, a network/root cause").is_empty());
    }

    #[test]
    fn marks_of_unfinished_work_are_found() {
        for mark in UNFINISHED {
            assert_eq!(
                unfinished_marks("a.rs", &format!("a\n// {mark} this\n"))[0].line,
                2
            );
        }
    }

    #[test]
    fn longer_words_pass() {
        let template = format!("mktemp name.{}{}", UNFINISHED[2], UNFINISHED[2]);
        assert!(unfinished_marks("a.sh", &template).is_empty());
        assert!(unfinished_marks("a.toml", "todo = \"warn\"").is_empty());
    }

    #[test]
    fn white_space_at_the_end_of_a_line_is_found() {
        assert_eq!(trailing_white_space("a.md", "a\nb \n")[0].line, 2);
        assert_eq!(trailing_white_space("a.md", "a\r\nb\n")[0].line, 1);
        assert!(trailing_white_space("a.md", "a\n\n  b\n").is_empty());
    }

    #[test]
    fn the_last_line_needs_an_end() {
        assert_eq!(
            last_newline("a.md", "a\nb").map(|finding| finding.line),
            Some(2)
        );
        assert!(last_newline("a.md", "a\nb\n").is_none());
        assert!(last_newline("a.md", "").is_none());
    }

    #[test]
    fn snapshots_and_test_data_keep_their_bytes() {
        assert!(check("crates/metra-cli/tests/snapshots/a.snap", "a \nb").is_empty());
        assert!(check("crates/metra-files/tests/data/a.csv", "1,2 ").is_empty());
        assert!(check("fuzz/corpus/csv/a", "1,2 ").is_empty());
        assert_eq!(check("README.md", "a \nb").len(), 2);
    }
}
