//! Names of types that are defined more than once: a reader who meets one must look at the imports to
//! know which is meant.
//!
//! `Error` and `Result` of each crate are the established convention of Rust and are not counted.

use std::collections::BTreeMap;

use crate::Finding;
use crate::structure::modules::Package;
use crate::structure::outline::{Item, Visibility};

const KINDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];
const CONVENTIONS: [&str; 2] = ["Error", "Result"];

/// A name and where it is defined: path and line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Repeated<'a> {
    pub(crate) name: &'a str,
    pub(crate) places: Vec<(&'a str, usize)>,
}

/// Names that are defined more than once with plain `pub`.
pub(crate) fn public<'a>(packages: &'a BTreeMap<&'a str, Package<'a>>) -> Vec<Repeated<'a>> {
    repeated(packages, |item| item.visibility == Visibility::Public)
}

/// Names that are defined more than once, whoever may see them.
pub(crate) fn all<'a>(packages: &'a BTreeMap<&'a str, Package<'a>>) -> Vec<Repeated<'a>> {
    repeated(packages, |_| true)
}

fn repeated<'a>(
    packages: &'a BTreeMap<&'a str, Package<'a>>,
    counts: impl Fn(&Item<'_>) -> bool,
) -> Vec<Repeated<'a>> {
    let mut places: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for (source, outline) in packages.values().flat_map(|package| &package.files) {
        for item in &outline.items {
            let is_type = KINDS.contains(&item.kind) && !CONVENTIONS.contains(&item.name);
            if is_type && counts(item) {
                let known = places.entry(item.name).or_default();
                known.push((source.path, item.line));
            }
        }
    }
    places.retain(|_, places| places.len() > 1);
    let places = places.into_iter();
    places
        .map(|(name, places)| Repeated { name, places })
        .collect()
}

/// One finding for each place of each name.
pub(crate) fn findings(repeated: &[Repeated<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Repeated { name, places } in repeated {
        for &(path, line) in places {
            let others = places.iter().filter(|&&place| place != (path, line));
            let others: Vec<String> = others
                .map(|(path, line)| format!("{path}:{line}"))
                .collect();
            let message = format!(
                "`{name}` is also defined at {}; expected one public type of a name",
                others.join(", ")
            );
            findings.push(Finding::new(path, line, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::modules::packages;
    use crate::structure::sources::sources;

    const FILES: [(&str, &str); 3] = [
        (
            "crates/metra/src/lib.rs",
            "pub struct Table;\npub enum Error {}\npub type Result = ();\npub struct Plan;\nstruct Row;\n\
             impl Iterator for Row { type Item = u8; }",
        ),
        (
            "crates/metra-files/src/lib.rs",
            "pub enum Error {}\npub type Result = ();\n\npub trait Table {}\n\
             #[cfg(test)]\nmod tests { pub struct Plan; }\n\
             impl Iterator for X { type Item = u8; }",
        ),
        (
            "python/src/lib.rs",
            "pub(crate) struct Plan;\nstruct Row;\nparameters! { pub struct Learner {} }",
        ),
    ];

    #[test]
    fn public_names_are_counted_over_the_workspace() {
        let sources = sources(&FILES);
        let packages = packages(&sources);
        let found = public(&packages);
        assert_eq!(
            found,
            [Repeated {
                name: "Table",
                places: vec![
                    ("crates/metra/src/lib.rs", 1),
                    ("crates/metra-files/src/lib.rs", 4)
                ],
            }]
        );
        let findings = findings(&found);
        assert_eq!(findings.len(), 2);
        assert!(
            findings[0]
                .message
                .contains("crates/metra-files/src/lib.rs:4")
        );
    }

    #[test]
    fn names_of_all_visibilities_are_counted_apart() {
        let sources = sources(&FILES);
        let packages = packages(&sources);
        let names: Vec<&str> = all(&packages).iter().map(|found| found.name).collect();
        assert_eq!(names, ["Plan", "Row", "Table"]);
    }
}
