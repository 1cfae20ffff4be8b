//! The public items of the library: what a caller can name, and what a release promises to keep.
//!
//! Counted are functions, structs, enums, traits, types, unions, constants, statics and exported
//! macros with plain `pub` that can be reached from the root through `pub mod` and `pub use`, and the
//! public functions and constants in the `impl` blocks of the types among them. Fields, variants and
//! what belongs to a trait are not counted: they come and go with their type. An item with several
//! public paths counts once, at the shortest; what only [`INTERNAL`] offers is listed apart; a function
//! that several `impl` blocks of a type share by name counts once. What macros make is unknown.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::structure::modules::{Package, Target, join};
use crate::structure::outline::Visibility;

/// The library.
pub(crate) const LIBRARY: &str = "crates/metra";

/// The part that holds what the root itself offers.
pub(crate) const ROOT: &str = "(root)";

/// The module whose items are public for the other crates of the workspace only: it is left out of the
/// documentation and promises nothing.
const INTERNAL: &str = "internal";

/// How many of the counted items are promised to users.
pub(crate) fn promised(counts: &BTreeMap<String, usize>) -> usize {
    let parts = counts.iter().filter(|(part, _)| *part != INTERNAL);
    parts.map(|(_, count)| count).sum()
}

/// The number of public items below each public module of the root.
pub(crate) fn count(package: &Package<'_>) -> BTreeMap<String, usize> {
    let parts = reachable(package);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for part in parts.values() {
        *counts.entry(part.clone()).or_default() += 1;
    }
    let mut members = BTreeSet::new();
    let outlines = package.files.iter().map(|(_, outline)| outline);
    for member in outlines.flat_map(|outline| &outline.members) {
        for target in package.resolve(&member.module, &member.of) {
            if let Some(part) = parts.get(&target)
                && members.insert((target, member.name))
            {
                *counts.entry(part.clone()).or_default() += 1;
            }
        }
    }
    counts
}

/// Every item that can be reached, with the part in which it was reached first.
fn reachable(package: &Package<'_>) -> BTreeMap<Target, String> {
    let outlines: Vec<_> = package.files.iter().map(|(_, outline)| outline).collect();
    let mut found = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut open = VecDeque::from([(String::new(), ROOT.to_owned())]);
    while let Some((module, part)) = open.pop_front() {
        if !seen.insert(module.clone()) {
            continue;
        }
        let items = outlines.iter().flat_map(|outline| &outline.items);
        for item in items.filter(|item| item.module.join("::") == module) {
            if item.visibility != Visibility::Public {
                continue;
            }
            let name = item.name.to_owned();
            if item.kind == "mod" {
                let below = if module.is_empty() { &name } else { &part };
                open.push_back((join(&module, &name), below.clone()));
            } else {
                let module = module.clone();
                let item = Target::Item { module, name };
                found.entry(item).or_insert_with(|| part.clone());
            }
        }
        let uses = outlines.iter().flat_map(|outline| &outline.uses);
        for used in uses.filter(|used| used.module.join("::") == module) {
            if used.visibility != Visibility::Public {
                continue;
            }
            for target in package.resolve(&used.module, &used.leaf.segments) {
                match target {
                    // A name stands for all that it means, but a private module stays private.
                    Target::Module(other) if is_offered(package, &other, used.leaf.name) => {
                        open.push_back((other, part.clone()));
                    }
                    Target::Module(_) => {}
                    item => {
                        found.entry(item).or_insert_with(|| part.clone());
                    }
                }
            }
        }
    }
    found
}

/// Whether `pub use` of a module offers what is in it: a glob does, and so does a name, unless the
/// module is private and the name means something else that shares it.
fn is_offered(package: &Package<'_>, module: &str, name: Option<&str>) -> bool {
    let items = package.files.iter().flat_map(|(_, outline)| &outline.items);
    let mut declarations = items.filter(|item| item.kind == "mod");
    name.is_none()
        || declarations.any(|item| {
            join(&item.module.join("::"), item.name) == module
                && item.visibility == Visibility::Public
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::modules::packages;
    use crate::structure::sources::sources;

    fn counts(files: &[(&str, &str)]) -> Vec<(String, usize)> {
        let files: Vec<(String, &str)> = files
            .iter()
            .map(|(path, text)| (format!("{LIBRARY}/src/{path}"), *text))
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, *text)).collect();
        let sources = sources(&files);
        let packages = packages(&sources);
        count(&packages[LIBRARY]).into_iter().collect()
    }

    #[test]
    fn what_the_root_reaches_counts() {
        let found = counts(&[
            (
                "lib.rs",
                "pub mod learn;\nmod error;\nmod hidden;\npub use error::Error;\npub const A: u8 = 1;",
            ),
            ("error.rs", "pub enum Error { A, B }\npub struct Unreached;"),
            ("hidden.rs", "pub fn unreached() {}"),
            (
                "learn/mod.rs",
                "mod warca;\npub mod rounds;\npub use warca::Warca;\nfn own() {}\npub(crate) fn near() {}",
            ),
            (
                "learn/warca.rs",
                "parameters! { pub struct Warca { rank: usize = 1, } }",
            ),
            (
                "learn/rounds.rs",
                "pub trait ByRounds { fn a(); }\npub fn run() {}",
            ),
        ]);
        assert_eq!(found, [("(root)".into(), 2), ("learn".into(), 3)]);
    }

    #[test]
    fn members_of_reached_types_count_once() {
        let found = counts(&[
            ("lib.rs", "pub mod data;\nmod more;"),
            (
                "data.rs",
                "pub struct Rows { pub a: u8 }\nstruct Own;\nimpl Rows {\n    pub fn len() {}\n    \
                 pub const MOST: u8 = 1;\n    fn own() {}\n    pub(crate) fn near() {}\n}\n\
                 impl Own { pub fn f() {} }\nimpl Iterator for Rows { fn next() {} }",
            ),
            (
                "more.rs",
                "use crate::data::Rows;\nimpl<T> Rows<T> { pub fn len() {} pub fn more() {} }",
            ),
        ]);
        assert_eq!(found, [("data".into(), 4)]);
    }

    #[test]
    fn an_item_with_two_paths_counts_once() {
        let found = counts(&[
            ("lib.rs", "pub mod data;\npub use data::Rows;"),
            (
                "data.rs",
                "pub struct Rows;\npub struct Part;\n#[macro_export]\nmacro_rules! rows { () => {} }",
            ),
        ]);
        assert_eq!(found, [("(root)".into(), 2), ("data".into(), 1)]);
    }

    #[test]
    fn a_private_module_that_shares_a_name_stays_private() {
        let found = counts(&[
            (
                "lib.rs",
                "mod digest;\nmod all;\npub use digest::digest;\npub use all::*;",
            ),
            ("digest.rs", "pub fn digest() {}\npub struct Unreached;"),
            ("all.rs", "pub struct A;\npub struct B;"),
        ]);
        assert_eq!(found, [("(root)".into(), 3)]);
    }
}
