//! Places that assemble a dataset: each front end that puts rows, classes and splits together itself
//! is one more place where the rules of doing so can differ.

use crate::source::{Token, tokens};
use crate::structure::sources::{Source, closing};

/// What assembles a dataset, as it is written in code: a struct in braces or a call.
const WAYS: [&str; 5] = [
    "Material {",
    "Problem {",
    "Dataset {",
    "Dataset::builder(",
    "DatasetBuilder::new(",
];

/// Where datasets are assembled by right.
const HOME: &str = "crates/metra/src/dataset";

/// The library; every other crate is a front end to it.
const LIBRARY: &str = "crates/metra";

/// One place that assembles a dataset.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub(crate) path: &'a str,
    pub(crate) line: usize,
    /// The way, as in the list.
    pub(crate) way: &'static str,
    pub(crate) in_front_end: bool,
}

/// All places, in the order of the sources.
pub(crate) fn places<'a>(sources: &[Source<'a>]) -> Vec<Place<'a>> {
    let ways = WAYS.map(|way| (way, tokens(way)));
    let mut found = Vec::new();
    for source in sources {
        if is_home(source.path) {
            continue;
        }
        let code = tokens(&source.code);
        for at in 0..code.len() {
            for (way, pattern) in &ways {
                if matches(&code[at..], pattern) && !(way.ends_with('{') && is_type(&code, at)) {
                    found.push(Place {
                        path: source.path,
                        line: code[at].line,
                        way,
                        in_front_end: source.package != LIBRARY,
                    });
                }
            }
        }
    }
    found
}

fn is_home(path: &str) -> bool {
    path.strip_prefix(HOME)
        .is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
}

fn matches(code: &[Token<'_>], pattern: &[Token<'_>]) -> bool {
    code.len() >= pattern.len() && code.iter().zip(pattern).all(|(a, b)| a.text == b.text)
}

/// Whether the name before a brace is a type or a pattern there, and no value is made.
fn is_type(code: &[Token<'_>], at: usize) -> bool {
    let text = |at: usize| code.get(at).map_or("", |token| token.text);
    let mut start = at;
    while start >= 2 && text(start - 1) == "::" {
        start -= 2;
    }
    let before = start.checked_sub(1).map_or("", text);
    // `impl<'a> Problem {` and `-> Problem {` both have the angle before the name.
    let declares = matches!(
        before,
        "struct" | "enum" | "union" | "trait" | "impl" | "for" | "dyn" | ">"
    );
    // Also the arm of a match, `Problem { items } => items`, ends in the sign of assignment.
    let behind = closing(code, at + 1) + 1;
    let is_equal = text(behind) == "=" && text(behind + 1) != "=";
    declares || is_equal || matches!(text(behind), ":" | "in" | "|") || before == "let"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::sources::sources;

    fn lines(text: &str) -> Vec<usize> {
        let sources = sources(&[("python/src/train.rs", text)]);
        places(&sources).iter().map(|place| place.line).collect()
    }

    #[test]
    fn structs_in_braces_and_calls_are_found() {
        assert_eq!(
            lines("let m = Material { rows };\nf(study::Material {\n})"),
            [1, 2]
        );
        assert_eq!(lines("\nOk(Problem {\n items })"), [2]);
        assert_eq!(lines("|| Dataset { a }"), [1]);
        assert_eq!(
            lines("metra::Dataset::builder(rows)\nDatasetBuilder::new()"),
            [1, 2]
        );
    }

    #[test]
    fn types_and_patterns_are_not() {
        assert!(
            lines("struct Material { a: u8 }\nimpl Material {}\nimpl A for Problem {}").is_empty()
        );
        assert!(lines("impl<'a> Problem {}\nfn f() -> Problem { g() }").is_empty());
        assert!(lines("let Material { a, .. } = m;\nfn f(Problem { b }: Problem) {}").is_empty());
        assert!(lines("match m { Material { a } => a }\nfor Problem { a } in b {}").is_empty());
        assert!(lines("list.map(|Problem { a }| a)").is_empty());
        assert!(lines("Dataset::open(path); RawMaterial { a }; // Material {").is_empty());
    }

    #[test]
    fn the_home_of_datasets_and_tests_are_left_out() {
        let sources = sources(&[
            ("crates/metra/src/dataset/builder.rs", "Dataset { a }"),
            ("crates/metra/src/dataset.rs", "Dataset { a }"),
            ("crates/metra/src/datasets.rs", "Dataset { a }"),
            (
                "crates/metra-cli/src/load.rs",
                "#[cfg(test)]\nmod tests { fn f() { Material { a } } }",
            ),
            ("crates/metra-cli/tests/load.rs", "Material { a }"),
            ("python/src/train.rs", "Material { a }"),
        ]);
        let found = places(&sources);
        let paths: Vec<_> = found
            .iter()
            .map(|place| (place.path, place.in_front_end))
            .collect();
        assert_eq!(
            paths,
            [
                ("crates/metra/src/datasets.rs", false),
                ("python/src/train.rs", true)
            ]
        );
    }
}
