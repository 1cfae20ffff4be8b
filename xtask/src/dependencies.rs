//! Licences and sources of every crate in the lock file, by the rules of `deny.toml`.
//!
//! `cargo deny` checks the same file and more, but takes five minutes to build; what a change of
//! dependencies can break is in the metadata that cargo has anyway.

use crate::Finding;
use crate::measuring::cargo_metadata;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::path::Path;

const RULES: &str = "deny.toml";

#[derive(Deserialize)]
struct Rules {
    licenses: AllowedLicences,
}

#[derive(Deserialize)]
struct AllowedLicences {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// None for a crate of this workspace.
    source: Option<String>,
    dependencies: Vec<Requirement>,
}

#[derive(Deserialize)]
struct Requirement {
    name: String,
    req: String,
    path: Option<String>,
}

/// Checks what `cargo metadata` says of the workspace below `root`.
pub(crate) fn check_workspace(root: &Path) -> Result<Vec<Finding>> {
    let rules = std::fs::read_to_string(root.join(RULES)).context(RULES)?;
    check(&rules, &cargo_metadata(root)?)
}

fn check(rules: &str, metadata: &str) -> Result<Vec<Finding>> {
    let rules: Rules = toml::from_str(rules).context(RULES)?;
    let metadata: Metadata = serde_json::from_str(metadata).context("cargo metadata")?;
    let mut findings = Vec::new();
    let mut registry: Option<&str> = None;
    for package in &metadata.packages {
        let mut find = |message: String| {
            let text = format!("{} {}: {message}", package.name, package.version);
            findings.push(Finding::new(RULES, 1, text));
        };
        let Some(source) = package.source.as_deref() else {
            for other in &package.dependencies {
                if other.req == "*" && other.path.is_none() {
                    find(format!(
                        "depends on any version of {}; expected one",
                        other.name
                    ));
                }
            }
            continue;
        };
        // Cargo writes the public registry first; anything that differs from the first is foreign.
        if source.starts_with("registry+") && registry.is_none_or(|known| known == source) {
            registry = Some(source);
        } else {
            find(format!("comes from {source}; expected the public registry"));
        }
        if let Err(message) = licence(package.license.as_deref(), &rules.licenses.allow) {
            find(message);
        }
    }
    Ok(findings)
}

/// Whether the licence of a package lets it be used under one of the allowed licences.
fn licence(stated: Option<&str>, allowed: &[String]) -> Result<(), String> {
    let Some(stated) = stated else {
        return Err("states no licence; expected one".to_owned());
    };
    // Crates of before 2018 write `MIT/Apache-2.0`.
    let expression =
        spdx::Expression::parse_mode(stated, spdx::ParseMode::LAX).map_err(|error| {
            format!("has the licence {stated:?}, which is no SPDX expression: {error}")
        })?;
    let allows = |required: &spdx::LicenseReq| {
        let required = required.to_string();
        allowed.contains(&required)
    };
    if expression.evaluate(allows) {
        Ok(())
    } else {
        Err(format!(
            "has the licence {stated:?}; expected {}",
            allowed.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "[licenses]\nallow = [\"MIT\", \"Apache-2.0 WITH LLVM-exception\"]\n";

    fn package(name: &str, licence: &str, source: &str) -> String {
        format!(
            r#"{{"name":"{name}","version":"1.0.0","license":{licence},"source":{source},"dependencies":[]}}"#
        )
    }

    fn messages(packages: &[String]) -> Vec<String> {
        let metadata = format!(r#"{{"packages":[{}]}}"#, packages.join(","));
        let findings = check(RULES, &metadata).unwrap();
        findings.into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn licences_are_held_against_the_list() {
        let of = |licence: &str| messages(&[package("a", licence, r#""registry+here""#)]);
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(of(&format!("{good:?}")).is_empty(), "{good}");
        }
        for bad in [
            "\"GPL-3.0-only\"",
            "\"MIT AND MPL-2.0\"",
            "\"Apache-2.0\"",
            "\"Mine\"",
            "null",
        ] {
            assert_eq!(of(bad).len(), 1, "{bad}");
        }
    }

    #[test]
    fn other_sources_are_found() {
        let from = |name: &str, source: &str| package(name, "\"MIT\"", &format!("{source:?}"));
        let found = messages(&[
            from("a", "registry+here"),
            from("b", "registry+there"),
            from("c", "git+there"),
            package("ours", "null", "null"),
        ]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("b 1.0.0: comes from registry+there"));
    }

    #[test]
    fn a_dependency_on_any_version_is_found() {
        let ours = r#"{"name":"ours","version":"0.1.0","license":null,"source":null,"dependencies":[
            {"name":"any","req":"*","path":null},{"name":"beside","req":"*","path":"/x"}]}"#;
        assert_eq!(messages(&[ours.to_owned()]).len(), 1);
    }
}
