//! The shape of a Rust file: its head, its length, its name, and where `unsafe` may stand.

use crate::Finding;
use crate::source::{tokens, without_comments_and_literals};

/// Past this length a file has taken in a second idea.
const LONGEST: usize = 800;

/// Names that say where code was put and not what it is about.
const FORBIDDEN_NAMES: &[&str] = &["utils", "common", "helpers", "helper", "manager", "misc"];

/// The files that may hold `unsafe`, each for a reason given in its own SAFETY comments.
const UNSAFE_FILES: &[&str] = &["crates/metra/src/data/mapped.rs"];

/// Runs the checks of this module on one Rust file.
pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if is_source(path) {
        findings.extend(head(path, text));
        findings.extend(length(path, text));
    }
    findings.extend(names(path, text));
    findings.extend(unsafe_code(path, text));
    findings
}

fn is_source(path: &str) -> bool {
    matches!(
        path.split('/').collect::<Vec<_>>()[..],
        ["crates", _, "src", ..] | ["xtask", "src", ..]
    )
}

fn head(path: &str, text: &str) -> Option<Finding> {
    let message = "the file has no head; expected a first line that begins with `//!` and says \
                   what the file holds and why";
    (!text.starts_with("//!")).then(|| Finding::new(path, 1, message))
}

fn length(path: &str, text: &str) -> Option<Finding> {
    let lines = text.lines().count();
    (lines > LONGEST).then(|| {
        let message = format!("the file has {lines} lines; expected at most {LONGEST}");
        Finding::new(path, LONGEST + 1, message)
    })
}

fn names(path: &str, text: &str) -> Vec<Finding> {
    let finding = |line, name: &str| {
        let message =
            format!("the module is called `{name}`; expected a name that says what is in it");
        Finding::new(path, line, message)
    };
    let parts = path.strip_suffix(".rs").unwrap_or(path).split('/');
    let in_path = parts
        .filter(|part| FORBIDDEN_NAMES.contains(part))
        .map(|part| finding(1, part));
    let mut findings: Vec<Finding> = in_path.collect();
    let code = without_comments_and_literals(text);
    for pair in tokens(&code).windows(2) {
        if pair[0].text == "mod" && FORBIDDEN_NAMES.contains(&pair[1].text) {
            findings.push(finding(pair[1].line, pair[1].text));
        }
    }
    findings
}

fn unsafe_code(path: &str, text: &str) -> Vec<Finding> {
    if UNSAFE_FILES.contains(&path) {
        return Vec::new();
    }
    let code = without_comments_and_literals(text);
    let uses = tokens(&code)
        .into_iter()
        .filter(|token| token.text == "unsafe");
    let message = format!("`unsafe` outside its files; expected it only in {UNSAFE_FILES:?}");
    uses.map(|token| Finding::new(path, token.line, message.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/metra/src/learn/warca.rs";

    #[test]
    fn a_file_needs_a_head() {
        assert!(head(PATH, "use std::fmt;\n").is_some());
        assert!(head(PATH, "// Not a head.\n").is_some());
        assert!(head(PATH, "//! WARCA.\n").is_none());
    }

    #[test]
    fn a_file_has_at_most_800_lines() {
        assert!(length(PATH, &"\n".repeat(801)).is_some());
        assert!(length(PATH, &"\n".repeat(800)).is_none());
    }

    #[test]
    fn heads_and_lengths_are_asked_of_sources_only() {
        assert_eq!(check("crates/metra/tests/laws.rs", "fn f() {}\n"), []);
        assert_eq!(check("xtask/src/lib.rs", "fn f() {}\n").len(), 1);
    }

    #[test]
    fn names_that_say_nothing_are_found() {
        assert_eq!(names("crates/metra/src/utils.rs", "").len(), 1);
        assert_eq!(names("crates/metra/tests/common/mod.rs", "").len(), 1);
        assert_eq!(names(PATH, "\npub mod helpers {}\n")[0].line, 2);
        assert!(names(PATH, "// mod misc\nmod margin;\n").is_empty());
    }

    #[test]
    fn unsafe_stands_in_its_files_only() {
        assert_eq!(unsafe_code(PATH, "\nlet x = unsafe { f() };\n")[0].line, 2);
        assert!(unsafe_code(PATH, "#![forbid(unsafe_code)] // no unsafe\n").is_empty());
        assert!(unsafe_code(UNSAFE_FILES[0], "unsafe { f() }").is_empty());
    }
}
