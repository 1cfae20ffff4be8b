//! The Rust files that the counts are about: sources of the workspace's packages without files of
//! tests, each with its comments, literals and tests blanked once for all counts.

use crate::source::{Token, module_path, tokens, without_comments_and_literals, without_tests};

/// The package whose own sources hold the checks. It is counted in lines and in nothing else: its
/// names are those of Rust's grammar and not of the domain.
pub(crate) const CHECKS: &str = "xtask";

/// One source file that is not a file of tests.
pub(crate) struct Source<'a> {
    /// Path from the root of the repository.
    pub(crate) path: &'a str,
    /// The folder of its package, such as `crates/metra` or `python`.
    pub(crate) package: &'a str,
    /// Path below the `src` of its package.
    pub(crate) inside: &'a str,
    /// The text as it stands in the file.
    pub(crate) text: &'a str,
    /// The text without comments, literals and tests; lines stay where they were.
    pub(crate) code: String,
}

impl<'a> Source<'a> {
    /// The module that this file is, from the root of its crate.
    pub(crate) fn module(&self) -> Vec<&'a str> {
        module_path(self.inside)
    }

    /// Whether the file is the head of a folder, where `pub use` says what the folder offers.
    pub(crate) fn is_head(&self) -> bool {
        let name = self.inside.rsplit('/').next().unwrap_or_default();
        name == "mod.rs" || self.module().is_empty()
    }
}

/// The sources among files given as path and text, in the order given.
pub(crate) fn sources<'a>(files: &[(&'a str, &'a str)]) -> Vec<Source<'a>> {
    let mut found = Vec::new();
    let mut tests = Vec::new();
    for &(path, text) in files {
        let Some((package, inside)) = place(path) else {
            continue;
        };
        let blanked = without_comments_and_literals(text);
        tests.extend(test_modules(path, text, &tokens(&blanked)));
        if !is_named_as_test(inside) {
            found.push(Source {
                path,
                package,
                inside,
                text,
                code: without_tests(&blanked),
            });
        }
    }
    found.retain(|source| !tests.iter().any(|test| belongs(source.path, test)));
    found
}

/// `crates/metra/src/learn/mod.rs` → `crates/metra` and `learn/mod.rs`.
fn place(path: &str) -> Option<(&str, &str)> {
    let (package, inside) = path.split_once("/src/")?;
    let known = match package.split_once('/') {
        Some((folder, name)) => folder == "crates" && !name.contains('/'),
        None => package == "python" || package == CHECKS,
    };
    (known && inside.ends_with(".rs")).then_some((package, inside))
}

/// Files of tests by their names, wherever they are declared.
fn is_named_as_test(inside: &str) -> bool {
    let mut parts = inside.split('/').rev();
    let name = parts.next().unwrap_or_default();
    name == "tests.rs" || name.ends_with("_tests.rs") || parts.any(|folder| folder == "tests")
}

/// The paths, without extension, of the modules in other files that `path` declares for tests only.
fn test_modules(path: &str, text: &str, tokens: &[Token<'_>]) -> Vec<String> {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let mut found = Vec::new();
    let mut is_test = false;
    let mut path_line = None;
    let mut at = 0;
    while at < tokens.len() {
        match word(at) {
            "#" if word(at + 1) == "[" => {
                is_test |= word(at + 2) == "cfg"
                    && (word(at + 4) == "test" || (word(at + 4), word(at + 6)) == ("all", "test"));
                if word(at + 2) == "path" {
                    path_line = Some(tokens[at].line);
                }
                at = closing(tokens, at + 1) + 1;
                continue;
            }
            "pub" => {
                at += 1;
                if word(at) == "(" {
                    at = closing(tokens, at) + 1;
                }
                continue;
            }
            "mod" if is_test && word(at + 2) == ";" => {
                // The value of the attribute is a literal and blank in the tokens.
                let value = path_line
                    .and_then(|line| text.lines().nth(line - 1)?.split('"').nth(1))
                    .and_then(|value| value.strip_suffix(".rs"));
                found.push(match value {
                    Some(value) => format!("{}/{value}", folder_of(path)),
                    None => format!("{}/{}", folder_of_children(path), word(at + 1)),
                });
            }
            _ => {}
        }
        is_test = false;
        path_line = None;
        at += 1;
    }
    found
}

/// The place of the bracket that closes the one at `open`, or the last place.
pub(crate) fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    tokens.len().saturating_sub(1)
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Where the modules lie that the file declares.
pub(crate) fn folder_of_children(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some((folder, "mod.rs" | "lib.rs" | "main.rs")) => folder,
        _ => path.strip_suffix(".rs").unwrap_or(path),
    }
}

/// Whether a file is the module at `module` (a path without extension) or lies below it.
fn belongs(path: &str, module: &str) -> bool {
    path.strip_prefix(module)
        .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(files: &[(&'static str, &'static str)]) -> Vec<&'static str> {
        sources(files).iter().map(|source| source.path).collect()
    }

    #[test]
    fn sources_of_packages_are_found() {
        let files = [
            ("crates/metra/src/lib.rs", ""),
            ("crates/metra/src/learn/mod.rs", ""),
            ("crates/metra/src/page.html", ""),
            ("crates/metra/tests/laws.rs", ""),
            ("crates/metra/benches/src/main.rs", ""),
            ("examples/src/main.rs", ""),
            ("python/src/model.rs", ""),
            ("xtask/src/main.rs", ""),
        ];
        let expected = [files[0].0, files[1].0, files[6].0, files[7].0];
        assert_eq!(paths(&files), expected);
        let found = sources(&files);
        assert_eq!(found[1].package, "crates/metra");
        assert_eq!(found[1].module(), ["learn"]);
        assert_eq!(
            (found[1].is_head(), found[2].is_head(), found[3].is_head()),
            (true, false, true)
        );
    }

    #[test]
    fn files_named_as_tests_are_left_out() {
        assert!(
            paths(&[
                ("crates/metra/src/tests.rs", ""),
                ("crates/metra/src/learn/oracle_tests.rs", ""),
                ("crates/metra/src/plan/tests/by_hand.rs", ""),
            ])
            .is_empty()
        );
    }

    #[test]
    fn files_declared_as_tests_are_left_out() {
        let found = paths(&[
            (
                "crates/metra/src/learn/mod.rs",
                "#[cfg(test)]\nmod oracle;\n#[cfg(all(test, unix))]\npub(crate) mod law;\nmod warca;",
            ),
            ("crates/metra/src/learn/oracle.rs", ""),
            ("crates/metra/src/learn/oracle/deep.rs", ""),
            ("crates/metra/src/learn/oracles.rs", ""),
            ("crates/metra/src/learn/law.rs", ""),
            (
                "crates/metra/src/learn/warca.rs",
                "#[cfg(test)]\n#[path = \"law_of_warca.rs\"]\nmod tests;\n#[cfg(test)]\nmod slow;",
            ),
            ("crates/metra/src/learn/law_of_warca.rs", ""),
            ("crates/metra/src/learn/warca/slow.rs", ""),
        ]);
        assert_eq!(
            found,
            [
                "crates/metra/src/learn/mod.rs",
                "crates/metra/src/learn/oracles.rs",
                "crates/metra/src/learn/warca.rs",
            ]
        );
    }
}
