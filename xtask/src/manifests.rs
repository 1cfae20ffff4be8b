//! Dependencies between the crates point one way, and versions stand in the workspace table only.
//!
//! Manifests are read line by line: the few forms in which a dependency can be written are all
//! recognised, and reading them needs no TOML parser.

use crate::Finding;

/// The crates that people run; they may use every other crate.
const FRONT_ENDS: &[&str] = &["metra-cli", "metra-python"];

/// What the service is made of; it is a verb of the command.
const SERVICE: &[&str] = &["metra", "metra-files", "metra-stores"];

/// Checks the manifest of a crate; the workspace's own and those of separate workspaces (fuzzing)
/// have no findings.
pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    let folder = match path.split('/').collect::<Vec<_>>()[..] {
        ["crates", folder, "Cargo.toml"] => folder,
        ["xtask", "Cargo.toml"] => "xtask",
        _ => return Vec::new(),
    };
    let dependencies = dependencies(text);
    let mut findings = directions(path, folder, &dependencies);
    findings.extend(versions(path, &dependencies));
    findings
}

struct Dependency {
    name: String,
    line: usize,
    inherits: bool,
}

fn directions(path: &str, package: &str, dependencies: &[Dependency]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Dependency { name, line, .. } in dependencies {
        // Every crate's tests may use what tests share.
        if (*name != "metra" && !name.starts_with("metra-")) || name == "metra-testing" {
            continue;
        }
        let (allowed, expected) = if package == "metra" {
            (false, "no dependency on a crate of this workspace")
        } else if package == "xtask" {
            let makes_pages = ["metra", "metra-report"].contains(&name.as_str());
            (
                makes_pages,
                "metra and metra-report, which make pages of results",
            )
        } else if package == "metra-server" {
            (
                SERVICE.contains(&name.as_str()),
                "metra, metra-files and metra-stores",
            )
        } else if FRONT_ENDS.contains(&package) {
            (
                !FRONT_ENDS.contains(&name.as_str()),
                "metra and the crates between it and this one",
            )
        } else {
            (name == "metra", "metra alone")
        };
        if !allowed {
            let message = format!("`{package}` depends on `{name}`; expected {expected}");
            findings.push(Finding::new(path, *line, message));
        }
    }
    findings
}

fn versions(path: &str, dependencies: &[Dependency]) -> Vec<Finding> {
    let foreign = dependencies
        .iter()
        .filter(|dependency| !dependency.inherits);
    foreign
        .map(|Dependency { name, line, .. }| {
            let message = format!(
                "`{name}` does not take its version from the workspace; expected `{name}.workspace \
                 = true` here and the version in the root Cargo.toml"
            );
            Finding::new(path, *line, message)
        })
        .collect()
}

fn dependencies(text: &str) -> Vec<Dependency> {
    let mut found: Vec<Dependency> = Vec::new();
    let mut section = Section::Other;
    let mut open_brackets = 0;
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.split('#').next().unwrap_or_default().trim();
        // Lines inside an unfinished array or table belong to the entry that opened it.
        let continued = open_brackets > 0;
        let is_header = !continued && content.starts_with('[');
        if is_header {
            section = Section::of(content);
            if let Section::One(name) = &section {
                found.push(Dependency {
                    name: name.clone(),
                    line,
                    inherits: false,
                });
            }
            continue;
        }
        open_brackets += balance(content);
        if content.is_empty() {
            continue;
        }
        match &section {
            Section::Other => {}
            _ if continued => {
                if let Some(last) = found.last_mut() {
                    last.inherits |= says_workspace(content);
                }
            }
            Section::One(_) => {
                if let Some(last) = found.last_mut() {
                    last.inherits |= says_workspace(content);
                }
            }
            Section::Many => {
                let key = content.split('=').next().unwrap_or_default().trim();
                let name = key
                    .split('.')
                    .next()
                    .unwrap_or_default()
                    .trim_matches('"')
                    .to_owned();
                let inherits = says_workspace(content);
                // `name.workspace = true` and `name.features = […]` are one dependency.
                match found
                    .iter_mut()
                    .find(|other| key.contains('.') && other.name == name)
                {
                    Some(other) => other.inherits |= inherits,
                    None => found.push(Dependency {
                        name,
                        line,
                        inherits,
                    }),
                }
            }
        }
    }
    found
}

enum Section {
    /// `[dependencies]`: one dependency a line.
    Many,
    /// `[dependencies.name]`: one dependency, with its properties as lines.
    One(String),
    Other,
}

impl Section {
    fn of(header: &str) -> Self {
        const KINDS: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];
        let inner = header.trim_matches(['[', ']']).trim();
        // A target's table is `target.'cfg(…)'.dependencies`; only its end matters here.
        for kind in KINDS {
            if inner == *kind
                || inner.starts_with("target.") && inner.ends_with(&format!(".{kind}"))
            {
                return Self::Many;
            }
        }
        match inner.rsplit_once('.') {
            Some((table, name)) if KINDS.iter().any(|kind| table.ends_with(kind)) => {
                Self::One(name.trim_matches('"').to_owned())
            }
            _ => Self::Other,
        }
    }
}

fn balance(content: &str) -> i32 {
    content.chars().fold(0, |sum, c| match c {
        '[' | '{' => sum + 1,
        ']' | '}' => sum - 1,
        _ => sum,
    })
}

fn says_workspace(content: &str) -> bool {
    let dense: String = content.chars().filter(|c| !c.is_whitespace()).collect();
    dense.contains("workspace=true")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(path, text)
            .iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn a_dependency_against_the_arrow_is_found() {
        let text = "[package]\nname = \"x\"\n[dependencies]\nmetra-cli.workspace = true\n";
        assert_eq!(lines("crates/metra/Cargo.toml", text), [4]);
        assert_eq!(lines("crates/metra-files/Cargo.toml", text), [4]);
        assert_eq!(lines("crates/metra-server/Cargo.toml", text), [4]);
        assert_eq!(lines("xtask/Cargo.toml", text), [4]);
        let text = "[dev-dependencies]\nmetra-files = { workspace = true }\n";
        assert_eq!(lines("crates/metra-images/Cargo.toml", text), [2]);
    }

    #[test]
    fn a_dependency_along_the_arrow_passes() {
        let text = "[dependencies]\nmetra.workspace = true\n";
        assert!(lines("crates/metra-files/Cargo.toml", text).is_empty());
        let text = "[dependencies]\nmetra.workspace = true\nmetra-files.workspace = true\n";
        assert!(lines("crates/metra-server/Cargo.toml", text).is_empty());
        let text = "[dependencies]\nmetra-server.workspace = true\n";
        assert!(lines("crates/metra-cli/Cargo.toml", text).is_empty());
    }

    #[test]
    fn a_version_outside_the_workspace_table_is_found() {
        for text in [
            "[dependencies]\nserde = \"1\"\n",
            "[dependencies]\nserde = { version = \"1\", features = [\n  \"derive\",\n] }\n",
            "\n[dependencies.serde]\nversion = \"1\"\n",
            "[target.'cfg(unix)'.dependencies]\nserde.version = \"1\"\n",
        ] {
            assert_eq!(lines("crates/metra/Cargo.toml", text), [2], "{text}");
        }
    }

    #[test]
    fn a_version_from_the_workspace_passes() {
        for text in [
            "[dependencies]\nserde.workspace = true # a reason\n\n[features]\nfull = []\n",
            "[dependencies]\nserde = { workspace = true, features = [\n  \"derive\",\n] }\n",
            "[dependencies]\nserde = { features = [\n  \"derive\",\n], workspace = true }\n",
            "[dependencies.serde]\nworkspace = true\noptional = true\n",
            "[package]\nname = \"x\"\nversion = \"1\"\n",
        ] {
            assert!(lines("crates/metra/Cargo.toml", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn the_workspace_table_itself_is_left_alone() {
        assert!(lines("Cargo.toml", "[dependencies]\nserde = \"1\"\n").is_empty());
    }
}
