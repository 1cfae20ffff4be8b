//! Which file of a crate imports which, and the circles among them.
//!
//! The compiler does not mind a circle, but none of its files can be understood, tested or moved
//! without the others. A file imports another if its code, outside tests, names a path to something
//! that the other defines. `mod` is no import, and neither is `pub use` at the head of a folder: both
//! only say what the folder holds. A module brought in by its own name is no import either, until
//! something in it is named.

use std::collections::{BTreeMap, BTreeSet};

use crate::Finding;
use crate::structure::modules::{Package, Target, join};
use crate::structure::outline::Visibility;
use crate::structure::sources::folder_of_children;

/// One name that a file takes from another of the same crate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Import<'a> {
    /// The path of the file that names it.
    pub(crate) from: &'a str,
    /// The path of the file that defines it.
    pub(crate) to: &'a str,
    /// What is named, from the root of the crate.
    pub(crate) name: String,
    /// Where it is named first.
    pub(crate) line: usize,
}

/// The imports of a crate, each name once a file.
pub(crate) fn imports<'a>(package: &Package<'a>) -> Vec<Import<'a>> {
    let mut lines: BTreeMap<(&str, &str, String), usize> = BTreeMap::new();
    for (file, (source, outline)) in package.files.iter().enumerate() {
        let mut add = |module: &str, name: &str, line: usize| {
            let to = package.file_of(module);
            if to != file {
                let key = (source.path, package.files[to].0.path, join(module, name));
                let first = lines.entry(key).or_insert(line);
                *first = line.min(*first);
            }
        };
        for found in &outline.uses {
            if source.is_head() && found.visibility != Visibility::Private {
                continue;
            }
            for target in package.resolve(&found.module, &found.leaf.segments) {
                match target {
                    Target::Item { module, name } => add(&module, &name, found.leaf.line),
                    // Which of its names a glob takes is unknown.
                    Target::Module(module) if found.leaf.name.is_none() => {
                        add(&module, "*", found.leaf.line);
                    }
                    Target::Module(_) => {}
                }
            }
        }
        for path in &outline.paths {
            for target in package.resolve(&path.module, &path.segments) {
                if let Target::Item { module, name } = target {
                    add(&module, &name, path.line);
                }
            }
        }
    }
    let imports = lines.into_iter();
    imports
        .map(|((from, to, name), line)| Import {
            from,
            to,
            name,
            line,
        })
        .collect()
}

/// Files that import each other, directly or through others, and the imports between them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Circle<'a> {
    pub(crate) files: BTreeSet<&'a str>,
    pub(crate) imports: Vec<Import<'a>>,
}

/// The circles among imports: the largest sets of files of which each leads to every other.
pub(crate) fn circles<'a>(imports: &[Import<'a>]) -> Vec<Circle<'a>> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for import in imports {
        next.entry(import.from).or_default().insert(import.to);
    }
    // A crate has a few hundred files, so that a walk from each of them is quick enough.
    let reached: BTreeMap<&str, BTreeSet<&str>> = next
        .keys()
        .map(|&file| (file, reach(file, &next)))
        .collect();
    let leads = |from: &str, to: &str| reached.get(from).is_some_and(|all| all.contains(to));
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut found = Vec::new();
    for (&file, all) in &reached {
        if seen.contains(file) || !all.contains(file) {
            continue;
        }
        let files: BTreeSet<&str> = all.iter().copied().filter(|to| leads(to, file)).collect();
        seen.extend(&files);
        let inside =
            |import: &&Import<'a>| files.contains(import.from) && files.contains(import.to);
        found.push(Circle {
            imports: imports.iter().filter(inside).cloned().collect(),
            files,
        });
    }
    found
}

/// The imports without those that the head of a folder makes from its own folder. A head that hands
/// work down while its files take types from it is the mildest circle, because it ends with the
/// folder; the circles that are left join files for no such reason.
pub(crate) fn apart_from_heads<'a>(imports: &[Import<'a>]) -> Vec<Import<'a>> {
    let is_below = |import: &&Import<'_>| {
        let rest = import.to.strip_prefix(folder_of_children(import.from));
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    let others = imports.iter().filter(|import| !is_below(import));
    others.cloned().collect()
}

fn reach<'a>(start: &str, next: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open = vec![start];
    while let Some(file) = open.pop() {
        for &to in next.get(file).into_iter().flatten() {
            if found.insert(to) {
                open.push(to);
            }
        }
    }
    found
}

/// One finding for each import inside a circle, because any of them may be the one to turn round.
pub(crate) fn findings(circles: &[Circle<'_>]) -> Vec<Finding> {
    let imports = circles.iter().flat_map(|circle| &circle.imports);
    let finding = |import: &Import<'_>| {
        let message = format!(
            "imports `{}` from {}, which leads back here; expected imports without a circle",
            import.name, import.to
        );
        Finding::new(import.from, import.line, message)
    };
    imports.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::modules::packages;
    use crate::structure::sources::sources;

    /// Each import as `from:line name`, with paths below `src`.
    fn read(files: &[(&str, &str)]) -> Vec<String> {
        with_imports(files, |imports| {
            let show = |import: &Import<'_>| {
                let from = import.from.rsplit_once("src/").unwrap().1;
                format!("{from}:{} {}", import.line, import.name)
            };
            imports.iter().map(show).collect()
        })
    }

    fn with_imports<T>(files: &[(&str, &str)], look: impl FnOnce(&[Import<'_>]) -> T) -> T {
        let files: Vec<(String, &str)> = files
            .iter()
            .map(|(path, text)| (format!("crates/metra/src/{path}"), *text))
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, *text)).collect();
        let sources = sources(&files);
        let packages = packages(&sources);
        look(&imports(&packages["crates/metra"]))
    }

    #[test]
    fn every_way_to_name_is_an_import() {
        let found = read(&[
            ("lib.rs", "mod a;\nmod b;\nfn f() { a::g() }"),
            (
                "a.rs",
                "use crate::{\n    b::{self, B},\n};\nfn g() { b::h(); super::b::i(); b::h() }",
            ),
            ("b.rs", "pub struct B;"),
        ]);
        assert_eq!(
            found,
            ["a.rs:2 b::B", "a.rs:4 b::h", "a.rs:4 b::i", "lib.rs:3 a::g"]
        );
    }

    #[test]
    fn a_name_that_the_head_only_passes_on_is_the_childs() {
        let files = [
            (
                "learn/mod.rs",
                "mod a;\nmod b;\npub use a::A;\npub(crate) use b::B;",
            ),
            ("learn/a.rs", "use super::B;\npub struct A;"),
            ("learn/b.rs", "use super::A;\npub struct B;"),
        ];
        assert_eq!(
            read(&files),
            ["learn/a.rs:1 learn::b::B", "learn/b.rs:1 learn::a::A"]
        );
        with_imports(&files, |imports| {
            let circles = circles(imports);
            assert_eq!(circles.len(), 1);
            let files: Vec<&str> = circles[0].files.iter().copied().collect();
            assert_eq!(
                files,
                ["crates/metra/src/learn/a.rs", "crates/metra/src/learn/b.rs"]
            );
            assert_eq!(findings(&circles).len(), 2);
        });
    }

    #[test]
    fn a_head_that_uses_its_child_for_itself_imports_it() {
        let files = [
            ("learn/mod.rs", "mod a;\nuse a::A;\npub struct Run(A);"),
            ("learn/a.rs", "use super::Run;\npub struct A;"),
        ];
        with_imports(&files, |imports| {
            assert_eq!(circles(imports).len(), 1);
            let others = apart_from_heads(imports);
            assert_eq!((imports.len(), others.len()), (2, 1));
            assert!(circles(&others).is_empty());
        });
    }

    #[test]
    fn outside_a_head_what_is_passed_on_is_imported() {
        let files = [
            ("a.rs", "pub use crate::b::B;\npub struct A;"),
            ("b.rs", "use crate::a::A;\npub struct B;"),
        ];
        assert_eq!(with_imports(&files, |imports| circles(imports).len()), 1);
    }

    #[test]
    fn tests_and_chains_make_no_circle() {
        let files = [
            (
                "a.rs",
                "use crate::b::B;\n#[cfg(test)]\nmod tests { use crate::c::C; }",
            ),
            ("b.rs", "use crate::c::C;"),
            (
                "c.rs",
                "use self::d::D;\nmod d { pub struct D; use super::C; }\npub struct C;",
            ),
            ("c/tests.rs", "use crate::a::x;"),
        ];
        assert_eq!(read(&files), ["a.rs:1 b::B", "b.rs:1 c::C"]);
        assert!(with_imports(&files, |imports| circles(imports).is_empty()));
    }

    #[test]
    fn circles_that_touch_are_one_and_others_are_apart() {
        let files = [
            ("a.rs", "use crate::b::B;\npub struct A;"),
            ("b.rs", "use crate::{a::A, c::C as Renamed};\npub struct B;"),
            ("c.rs", "use crate::b::*;\nuse crate::e::E;\npub struct C;"),
            ("e.rs", "use crate::f::F;\npub struct E;"),
            ("f.rs", "use crate::e::E;\npub struct F;"),
        ];
        let sizes = with_imports(&files, |imports| {
            let found = circles(imports);
            found
                .iter()
                .map(|circle| circle.files.len())
                .collect::<Vec<_>>()
        });
        assert_eq!(sizes, [3, 2]);
    }
}
