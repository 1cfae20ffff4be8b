//! The crates that a program is made of, with what has to be said of each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::measuring::{cargo, cargo_metadata, printed};

/// A crate of a program.
#[derive(Debug, Clone)]
pub(super) struct Crate {
    pub(super) name: String,
    pub(super) version: String,
    /// As its manifest states it.
    pub(super) licence: String,
    pub(super) repository: Option<String>,
    /// SHA-256 of its package; none for a crate of this workspace.
    pub(super) checksum: Option<String>,
    /// Where its sources lie.
    pub(super) folder: PathBuf,
    /// Names with versions of those it is made with.
    pub(super) uses: Vec<String>,
}

impl Crate {
    pub(super) fn id(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    pub(super) fn is_ours(&self) -> bool {
        self.checksum.is_none()
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    repository: Option<String>,
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    dependencies: Vec<String>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// All crates whose code is in a program of this package with these features for this target, by name. Build scripts and
/// macros leave no code in it.
pub(super) fn crates(
    root: &Path,
    package: &str,
    features: &str,
    target: &str,
) -> Result<Vec<Crate>> {
    let arguments = [
        "tree",
        "--locked",
        "--package",
        package,
        "--features",
        features,
        "--target",
        target,
        "--edges",
        "normal,no-proc-macro",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ];
    let linked: BTreeSet<String> = (printed(cargo().current_dir(root).args(arguments))?.lines())
        .filter_map(|line| {
            let (name, rest) = line.split_once(" v")?;
            let version = rest.split_whitespace().next()?;
            Some(format!("{name} {version}"))
        })
        .collect();
    let metadata = cargo_metadata(root)?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).context("Cargo.lock")?;
    chosen(&linked, &metadata, &lock)
}

fn chosen(linked: &BTreeSet<String>, metadata: &str, lock: &str) -> Result<Vec<Crate>> {
    let metadata: Metadata = serde_json::from_str(metadata).context("cargo metadata")?;
    let lock: Lock = toml::from_str(lock).context("Cargo.lock")?;
    let named = |name: &str, version: &str| format!("{name} {version}");
    let checksums: BTreeMap<String, String> = (lock.package.into_iter())
        .filter_map(|locked| Some((named(&locked.name, &locked.version), locked.checksum?)))
        .collect();
    let ids: BTreeMap<&str, String> = (metadata.packages.iter())
        .map(|package| (package.id.as_str(), named(&package.name, &package.version)))
        .collect();
    let uses: BTreeMap<&str, Vec<String>> = (metadata.resolve.nodes.iter())
        .map(|node| {
            let used = node.dependencies.iter();
            let used = used.filter_map(|id| ids.get(id.as_str())).cloned();
            (
                node.id.as_str(),
                used.filter(|id| linked.contains(id)).collect(),
            )
        })
        .collect();
    let mut found = Vec::new();
    for package in &metadata.packages {
        let id = named(&package.name, &package.version);
        if !linked.contains(&id) {
            continue;
        }
        let licence = package.license.clone();
        let mut uses = uses.get(package.id.as_str()).cloned().unwrap_or_default();
        uses.sort();
        found.push(Crate {
            licence: licence.with_context(|| format!("{id} states no licence"))?,
            repository: package.repository.clone(),
            checksum: checksums.get(&id).cloned(),
            folder: (package.manifest_path.parent())
                .context("a manifest lies in a folder")?
                .to_path_buf(),
            name: package.name.clone(),
            version: package.version.clone(),
            uses,
        });
    }
    found.sort_by_key(Crate::id);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_made_of_known_crates() {
        let root = crate::repository_root().unwrap();
        let found = crates(&root, "metra-cli", "postgres", "x86_64-unknown-linux-gnu").unwrap();
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        for name in ["metra", "metra-cli", "parquet", "postgres", "usearch"] {
            assert!(names.contains(&name), "{name}");
        }
        // The engine is not in it, nor are macros, nor what other systems need.
        for name in ["datafusion", "serde_derive", "windows-sys", "xtask"] {
            assert!(!names.contains(&name), "{name}");
        }
        let metra = found.iter().find(|one| one.name == "metra").unwrap();
        assert!(metra.is_ours());
        assert!(metra.uses.iter().any(|used| used.starts_with("faer ")));
        let parquet = found.iter().find(|one| one.name == "parquet").unwrap();
        assert_eq!(parquet.checksum.as_ref().unwrap().len(), 64);
    }
}
