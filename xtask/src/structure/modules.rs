//! The modules of one crate and what a path in them means: names are followed through `use` to the
//! module whose file defines them.

use std::collections::{BTreeMap, BTreeSet};

use crate::structure::outline::{Outline, outline};
use crate::structure::sources::Source;

/// A path may pass through this many `use` before it is given up as a circle of renames.
const LONGEST_WAY: usize = 16;

/// What a path names. Modules are written from the root of the crate, which is the empty text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// A module.
    Module(String),
    /// Something that a module defines.
    Item { module: String, name: String },
}

/// The modules of one crate.
pub(crate) struct Package<'a> {
    /// The files, in the order of their outlines.
    pub(crate) files: Vec<(&'a Source<'a>, Outline<'a>)>,
    modules: BTreeMap<String, Module>,
}

#[derive(Default)]
struct Module {
    /// The place of its file in the list.
    file: usize,
    items: BTreeSet<String>,
    /// Name → the paths that `use` binds it to; more than one where features decide.
    uses: BTreeMap<String, Vec<Vec<String>>>,
    globs: Vec<Vec<String>>,
}

/// The crates that the sources make, by their folders.
pub(crate) fn packages<'a>(sources: &'a [Source<'a>]) -> BTreeMap<&'a str, Package<'a>> {
    let mut grouped: BTreeMap<&str, Vec<&Source<'_>>> = BTreeMap::new();
    for source in sources {
        grouped.entry(source.package).or_default().push(source);
    }
    let packages = grouped.into_iter();
    packages
        .map(|(folder, sources)| (folder, Package::new(sources)))
        .collect()
}

impl<'a> Package<'a> {
    fn new(sources: Vec<&'a Source<'a>>) -> Self {
        let files: Vec<_> = sources
            .into_iter()
            .map(|source| (source, outline(source)))
            .collect();
        let mut modules: BTreeMap<String, Module> = BTreeMap::new();
        // Where a package has both, the root is the library: `lib.rs` comes before `main.rs`.
        for (file, (source, _)) in files.iter().enumerate() {
            entry(&mut modules, &source.module(), file);
        }
        for (file, (_, outline)) in files.iter().enumerate() {
            for item in &outline.items {
                let module = entry(&mut modules, &item.module, file);
                if item.kind != "mod" {
                    module.items.insert(item.name.to_owned());
                }
            }
            for found in &outline.uses {
                let module = entry(&mut modules, &found.module, file);
                let path = found.leaf.segments.iter().map(|&name| name.into());
                match found.leaf.name {
                    Some(name) => {
                        let paths = module.uses.entry(name.to_owned()).or_default();
                        paths.push(path.collect());
                    }
                    None => module.globs.push(path.collect()),
                }
            }
        }
        Package { files, modules }
    }

    /// The place in the list of the file that holds a module.
    pub(crate) fn file_of(&self, module: &str) -> usize {
        self.modules.get(module).map_or(0, |module| module.file)
    }

    /// What a path means in a module. Nothing for other crates and for what only the compiler knows;
    /// more than one meaning where a module and an item share the name.
    pub(crate) fn resolve(&self, from: &[&str], segments: &[&str]) -> Vec<Target> {
        self.walk(&from.join("::"), segments, LONGEST_WAY)
    }

    fn walk(&self, from: &str, segments: &[&str], way: usize) -> Vec<Target> {
        let Some(&first) = segments.first() else {
            return Vec::new();
        };
        let is_anchor = matches!(first, "crate" | "self" | "super");
        if way == 0 || (!is_anchor && !self.knows(from, first)) {
            return Vec::new();
        }
        let mut module = from.to_owned();
        for (at, &name) in segments.iter().enumerate() {
            match name {
                "crate" => module.clear(),
                "self" => {}
                "super" => module = parent(&module).to_owned(),
                _ => {
                    let mut found = self.named(&module, name, way - 1);
                    let child = join(&module, name);
                    if self.modules.contains_key(&child) {
                        found.insert(0, Target::Module(child));
                    }
                    let is_last = at + 1 == segments.len();
                    match found.first() {
                        // Behind a module, the path goes on; behind a type, its own names follow.
                        Some(Target::Module(next)) if !is_last => module = next.clone(),
                        _ => return found,
                    }
                }
            }
        }
        vec![Target::Module(module)]
    }

    /// Whether a path may begin with the name in the module; otherwise it names another crate.
    fn knows(&self, module: &str, name: &str) -> bool {
        let Some(found) = self.modules.get(module) else {
            return false;
        };
        self.modules.contains_key(&join(module, name))
            || found.items.contains(name)
            || found.uses.contains_key(name)
    }

    /// What a name in a module means, apart from a module below it.
    fn named(&self, module: &str, name: &str, way: usize) -> Vec<Target> {
        let item = || {
            vec![Target::Item {
                module: module.to_owned(),
                name: name.to_owned(),
            }]
        };
        let Some(found) = self.modules.get(module) else {
            return Vec::new();
        };
        if found.items.contains(name) {
            return item();
        }
        if let Some(paths) = found.uses.get(name) {
            let mut targets = Vec::new();
            for path in paths {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                targets.extend(self.walk(module, &path, way));
            }
            return targets;
        }
        for path in &found.globs {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            for target in self.walk(module, &path, way) {
                if let Target::Module(other) = target
                    && self.knows(&other, name)
                {
                    return self.walk(&other, &[name], way);
                }
            }
        }
        // A macro may have made it; a module below shows itself without this.
        match self.modules.contains_key(&join(module, name)) {
            true => Vec::new(),
            false => item(),
        }
    }
}

/// The entry of a module; one in braces lies in the file of the module around it.
fn entry<'m>(
    modules: &'m mut BTreeMap<String, Module>,
    path: &[&str],
    file: usize,
) -> &'m mut Module {
    let new = Module {
        file,
        ..Module::default()
    };
    modules.entry(path.join("::")).or_insert(new)
}

/// A module's name below another.
pub(crate) fn join(module: &str, name: &str) -> String {
    match module {
        "" => name.to_owned(),
        _ => format!("{module}::{name}"),
    }
}

fn parent(module: &str) -> &str {
    module.rsplit_once("::").map_or("", |(parent, _)| parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::sources::sources;

    const FILES: [(&str, &str); 5] = [
        (
            "crates/metra/src/lib.rs",
            "pub mod learn;\nmod error;\npub use error::{Error, Result as Outcome};\nuse std::fmt;",
        ),
        (
            "crates/metra/src/error.rs",
            "pub enum Error { Bad }\npub type Result = ();",
        ),
        (
            "crates/metra/src/learn/mod.rs",
            "mod rounds;\nmod warca;\npub use warca::Warca;\npub use rounds::rounds;\npub struct Run;\n\
             mod inner { pub struct Deep; }\nuse inner::*;",
        ),
        (
            "crates/metra/src/learn/rounds.rs",
            "pub fn rounds() {}\npub struct Round;\nmacro_rules! m { () => {} }\npub(super) use m;",
        ),
        (
            "crates/metra/src/learn/warca.rs",
            "pub struct Warca;\nuse super::rounds as turns;\nuse rayon::prelude::*;",
        ),
    ];

    /// Each meaning as `module.item` or `module::`.
    fn resolve(from: &str, path: &str) -> Vec<String> {
        let sources = sources(&FILES);
        let packages = packages(&sources);
        let from: Vec<&str> = from.split("::").filter(|name| !name.is_empty()).collect();
        let path: Vec<&str> = path.split("::").collect();
        let show = |target: &Target| match target {
            Target::Module(module) => format!("{module}::"),
            Target::Item { module, name } => format!("{module}.{name}"),
        };
        let found = packages["crates/metra"].resolve(&from, &path);
        found.iter().map(show).collect()
    }

    #[test]
    fn the_deepest_module_has_the_item() {
        assert_eq!(resolve("error", "crate::learn::Run"), ["learn.Run"]);
        assert_eq!(resolve("learn::warca", "super::Run::new"), ["learn.Run"]);
        assert_eq!(resolve("learn", "rounds::Round"), ["learn::rounds.Round"]);
        assert_eq!(
            resolve("learn", "self::rounds::Round"),
            ["learn::rounds.Round"]
        );
        assert_eq!(resolve("learn", "crate::learn"), ["learn::"]);
        assert_eq!(resolve("learn::warca", "super::super::learn"), ["learn::"]);
    }

    #[test]
    fn exports_are_followed_to_the_definition() {
        assert_eq!(
            resolve("learn::rounds", "super::Warca"),
            ["learn::warca.Warca"]
        );
        assert_eq!(resolve("learn", "crate::Error::Bad"), ["error.Error"]);
        assert_eq!(resolve("learn", "crate::Outcome"), ["error.Result"]);
        assert_eq!(
            resolve("learn::warca", "turns::Round"),
            ["learn::rounds.Round"]
        );
        assert_eq!(
            resolve("learn::warca", "super::Deep"),
            ["learn::inner.Deep"]
        );
    }

    #[test]
    fn a_name_may_be_a_module_and_an_item() {
        let expected = ["learn::rounds::", "learn::rounds.rounds"];
        assert_eq!(resolve("learn::warca", "super::rounds"), expected);
        assert_eq!(
            resolve("learn::warca", "super::rounds::m"),
            ["learn::rounds.m"]
        );
    }

    #[test]
    fn other_crates_mean_nothing() {
        assert!(resolve("learn", "std::fmt").is_empty());
        assert!(resolve("learn", "crate::fmt::Debug").is_empty());
        assert!(resolve("learn", "Vec::new").is_empty());
        assert!(resolve("learn", "::learn::Run").is_empty());
    }

    #[test]
    fn the_library_is_the_root_also_of_what_macros_export() {
        let sources = sources(&[
            (
                "crates/metra/src/data.rs",
                "#[macro_export]\nmacro_rules! a { () => {} }",
            ),
            ("crates/metra/src/lib.rs", "mod data;"),
            ("crates/metra/src/main.rs", "fn main() {}"),
        ]);
        let packages = packages(&sources);
        assert_eq!(packages["crates/metra"].file_of(""), 1);
    }

    #[test]
    fn a_module_in_braces_lies_in_the_file_around_it() {
        let sources = sources(&FILES);
        let packages = packages(&sources);
        let package = &packages["crates/metra"];
        assert_eq!(package.file_of("learn::inner"), package.file_of("learn"));
        assert_eq!(resolve("learn::inner", "super::Run"), ["learn.Run"]);
    }
}
