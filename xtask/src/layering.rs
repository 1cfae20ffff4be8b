//! Imports inside the library point one way: a folder may use only the folders below it.
//!
//! The compiler accepts cycles between modules, so nothing else would notice when, for example,
//! the metric began to know its learners.

use crate::Finding;
use crate::source::{Token, module_path, tokens, without_comments_and_literals, without_tests};

const LIBRARY: &str = "crates/metra/src/";

/// What every folder may use. The two names are those that the root re-exports from `error`.
const BASE: &[&str] = &["error", "random", "Error", "Result"];

/// Folder → the folders that it may use besides itself and the base.
const ALLOWED: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("random", &[]),
    ("linalg", &[]),
    ("optimize", &["linalg"]),
    ("data", &["linalg"]),
    ("execute", &["linalg", "data"]),
    ("supervision", &["linalg", "data"]),
    ("dataset", &["linalg", "data", "execute", "supervision"]),
    ("model", &["linalg", "data"]),
    (
        "search",
        &["linalg", "data", "execute", "model", "supervision"],
    ),
    (
        "evaluate",
        &[
            "linalg",
            "data",
            "execute",
            "model",
            "supervision",
            "search",
        ],
    ),
    ("training", BELOW_TRAINING),
    ("methods", BELOW_METHODS),
    ("pipeline", BELOW_PIPELINE),
    ("passes", BELOW_EXPERIMENT),
    ("experiment", BELOW_EXPERIMENT),
    // Re-exports for the other crates; nothing in the library uses it.
    (
        "internal",
        &[
            "linalg", "data", "execute", "search", "evaluate", "training", "pipeline", "passes",
        ],
    ),
];

const BELOW_TRAINING: &[&str] = &[
    "linalg",
    "optimize",
    "data",
    "execute",
    "supervision",
    "dataset",
    "model",
    "search",
    "evaluate",
];

/// The lists below add one folder each, in the order of the data flow.
const BELOW_METHODS: &[&str] = &[
    "linalg",
    "optimize",
    "data",
    "execute",
    "supervision",
    "dataset",
    "model",
    "search",
    "evaluate",
    "training",
];

const BELOW_PIPELINE: &[&str] = &[
    "linalg",
    "data",
    "execute",
    "supervision",
    "dataset",
    "model",
    "training",
    "methods",
];

const BELOW_EXPERIMENT: &[&str] = &[
    "linalg",
    "data",
    "execute",
    "supervision",
    "dataset",
    "model",
    "search",
    "evaluate",
    "training",
    "methods",
    "pipeline",
];

/// Checks one file of the library; files elsewhere have no findings.
pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    let Some(inside) = path.strip_prefix(LIBRARY) else {
        return Vec::new();
    };
    let modules = module_path(inside);
    // The root of the crate names every folder; a file of tests may look at all of them.
    let Some(&folder) = modules.first() else {
        return Vec::new();
    };
    if (modules.last()).is_some_and(|last| *last == "tests" || last.ends_with("_tests")) {
        return Vec::new();
    }
    let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == folder) else {
        let message = format!(
            "`{folder}` has no place in the order of imports; expected a line for it in the table \
             of xtask/src/layering.rs"
        );
        return vec![Finding::new(path, 1, message)];
    };
    let code = without_tests(&without_comments_and_literals(text));
    let mut findings = Vec::new();
    for import in imports(&tokens(&code), modules.len()) {
        let name = import.text;
        if name != folder && !BASE.contains(&name) && !allowed.contains(&name) {
            let message = format!(
                "`{folder}` imports `crate::{name}`, which is not below it; expected one of: {}",
                [BASE, allowed].concat().join(", ")
            );
            findings.push(Finding::new(path, import.line, message));
        }
    }
    findings
}

/// The first name after each `crate::`, also in groups; `super::` repeated `depth` times is the
/// same root.
fn imports<'a>(tokens: &[Token<'a>], depth: usize) -> Vec<Token<'a>> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let mut supers = 0;
        while text(at + 2 * supers) == "super" && text(at + 2 * supers + 1) == "::" {
            supers += 1;
        }
        let name = if text(at) == "crate" && text(at + 1) == "::" {
            at + 2
        } else if supers == depth {
            at + 2 * supers
        } else {
            at += 1 + 2 * supers.saturating_sub(1);
            continue;
        };
        if text(name) == "{" {
            found.extend(first_names_of_group(&tokens[name..]));
        } else {
            found.extend(tokens.get(name));
        }
        at = name + 1;
    }
    found
}

/// `tokens` begins with the opening brace: `{a::b, c::{d, e}}` gives a and c.
fn first_names_of_group<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut found = Vec::new();
    let mut depth = 0;
    let mut previous = "";
    for token in tokens {
        match token.text {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," | "self" => {}
            _ if depth == 1 && matches!(previous, "{" | ",") => found.push(*token),
            _ => {}
        }
        if depth == 0 {
            break;
        }
        previous = token.text;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&format!("{LIBRARY}{path}"), text)
            .iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn an_import_against_the_arrow_is_found() {
        assert_eq!(
            lines("model/mod.rs", "//! Head.\nuse crate::methods::Warca;\n"),
            [2]
        );
        assert_eq!(
            lines("data/mod.rs", "\nfn f() { crate::execute::run() }"),
            [2]
        );
        assert_eq!(lines("linalg.rs", "use crate::data::Corpus;"), [1]);
        assert_eq!(lines("error.rs", "use crate::linalg::Rows;"), [1]);
    }

    #[test]
    fn an_import_along_the_arrow_passes() {
        let text = "use crate::data::Corpus;\nuse crate::error::Result;\nuse crate::model::x;\n";
        assert!(lines("model/low_rank.rs", text).is_empty());
        assert!(lines("experiment/mod.rs", "use crate::methods::Warca;").is_empty());
        assert!(lines("lib.rs", "pub use crate::experiment::compare;").is_empty());
    }

    #[test]
    fn groups_are_looked_into() {
        let text =
            "use crate::{\n    data::{Corpus, methods},\n    methods::Run,\n    search,\n};\n";
        assert_eq!(lines("supervision/mod.rs", text), [3, 4]);
        assert!(lines("methods/warca.rs", text).is_empty());
    }

    #[test]
    fn the_way_over_super_is_the_same_import() {
        assert_eq!(
            lines("model/low_rank.rs", "use super::super::methods::Run;"),
            [1]
        );
        assert_eq!(
            lines("model/mod.rs", "use super::{data::Corpus, methods};"),
            [1]
        );
        assert!(lines("model/low_rank.rs", "use super::methods_rate;").is_empty());
    }

    #[test]
    fn comments_strings_and_tests_do_not_import() {
        let text = "//! See crate::methods.\n// crate::methods\nlet s = \"crate::methods\";\n\
                    #[cfg(test)]\nmod tests {\n    use crate::methods::Warca;\n}\n";
        assert!(lines("model/mod.rs", text).is_empty());
        assert!(lines("model/tests.rs", "use crate::methods::Warca;").is_empty());
        assert_eq!(
            lines("model/mod.rs", &format!("{text}use crate::methods::x;")),
            [8]
        );
    }

    #[test]
    fn a_glob_and_an_unknown_folder_are_found() {
        assert_eq!(lines("model/mod.rs", "use crate::*;"), [1]);
        assert_eq!(lines("plots/mod.rs", "//! Head.\n"), [1]);
    }

    #[test]
    fn other_crates_are_left_alone() {
        assert!(check("crates/metra-files/src/lib.rs", "use crate::experiment::x;").is_empty());
    }
}
