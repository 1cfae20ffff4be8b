//! Checks of the source tree that no compiler makes: which part may import which, where versions
//! and unsafe code may stand, and what text may be committed.
//!
//! Each check is a function from a path and a text to findings, so that its tests need no files.
//! Only `tree` reads the disk. The checks are a library so that `cargo test` and
//! `cargo xtask tidy` run the same code and cannot disagree.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub use bench::bench;
pub use codes::codes;
pub use dist::{DistPart, dist, notices, release_check};
pub use docs::docs;
pub use golden::{Golden, golden};
pub use reproduce::reproduce;
pub use site::site;

mod bench;
mod codes;
mod data_files;
mod dependencies;
mod dist;
mod docs;
mod golden;
mod layering;
mod links;
mod manifests;
mod markdown;
mod measuring;
mod reproduce;
mod rust_files;
mod site;
mod source;
pub mod structure;
mod text;
mod tree;

/// One breach of a rule: where it is, what is wrong and what is expected.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Path from the root of the repository, with forward slashes.
    pub path: String,
    /// Line, counted from 1.
    pub line: usize,
    /// What is wrong, and what is expected.
    pub message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// The folder that holds the workspace.
///
/// Cargo's variable is read when the program runs and not when it is compiled: a target folder
/// shared by two clones would otherwise make one clone check the other.
pub fn repository_root() -> Result<PathBuf> {
    let manifest_folder = std::env::var_os("CARGO_MANIFEST_DIR")
        .context("expected CARGO_MANIFEST_DIR in the environment: run this through cargo")?;
    let parent = Path::new(&manifest_folder).parent();
    Ok(parent
        .context("expected xtask to lie inside the workspace")?
        .to_path_buf())
}

/// A value that all crates of the workspace share, such as `version`.
fn workspace_package(root: &Path, key: &str) -> Result<String> {
    let manifest: toml::Table = toml::from_str(&std::fs::read_to_string(root.join("Cargo.toml"))?)?;
    let value = manifest["workspace"]["package"].get(key);
    let value = value.and_then(toml::Value::as_str);
    Ok(value
        .with_context(|| format!("Cargo.toml: {key}"))?
        .to_owned())
}

/// Checks licences and sources of all crates in the lock file.
pub fn dependencies(root: &Path) -> Result<Vec<Finding>> {
    dependencies::check_workspace(root)
}

/// Counts of the source tree below `root`, as text; see the module of the same name.
pub fn structure(root: &Path) -> Result<String> {
    let files = tree::read(root)?;
    Ok(structure::report(&tree::texts(&files)))
}

/// Runs every check on the tree below `root`; findings are sorted by path and line.
pub fn tidy(root: &Path) -> Result<Vec<Finding>> {
    let files = tree::read(root)?;
    let paths = files.iter().map(|file| file.path.clone()).collect();
    let mut findings = Vec::new();
    for file in &files {
        findings.extend(data_files::check(&file.path, file.bytes.len()));
        let Some(text) = file.text() else { continue };
        findings.extend(text::check(&file.path, text));
        if file.path.ends_with(".md") {
            findings.extend(links::check(&file.path, text, &paths));
        }
        if file.path.ends_with("Cargo.toml") {
            findings.extend(manifests::check(&file.path, text));
        }
        if file.path.ends_with(".rs") {
            findings.extend(rust_files::check(&file.path, text));
            findings.extend(layering::check(&file.path, text));
        }
    }
    findings.extend(structure::findings(&tree::texts(&files)));
    findings.sort();
    Ok(findings)
}
