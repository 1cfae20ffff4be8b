//! Running the experiments again: every file in `experiments/` is a comparison whose page in
//! `docs/results/` is made by the command.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// Run one experiment by name, or all of them; what is in the log of an earlier run is not run
/// again. `profile` is cargo's.
pub fn reproduce(root: &Path, name: &str, profile: &str) -> Result<()> {
    let known = experiments(root)?;
    let chosen: Vec<&String> = known
        .iter()
        .filter(|k| name == "all" || *k == name)
        .collect();
    ensure!(
        !chosen.is_empty(),
        "expected all or the name of an experiment ({}), but found {name:?}",
        known.join(", ")
    );
    ensure!(
        std::env::var_os("METRA_DATA").is_some(),
        "the experiments read data sets from the folder that METRA_DATA names, and it is not set"
    );
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    for name in chosen {
        // The command is run as a user would, from the root, so that pages name paths below it.
        let status = Command::new(&cargo)
            .current_dir(root)
            .args([
                "run",
                "--quiet",
                "--package",
                "metra-cli",
                "--profile",
                profile,
                "--",
            ])
            .args(["compare", &format!("experiments/{name}.toml")])
            .args(["--output", &format!("target/experiments/{name}")])
            .args(["--page", &format!("docs/results/{name}.md")])
            .status()
            .with_context(|| format!("{name}: cargo could not be run"))?;
        // 3: finished, with a method that failed and is told so in the page.
        if !matches!(status.code(), Some(0 | 3)) {
            bail!("{name}: metra compare ended with {status}");
        }
    }
    Ok(())
}

/// Names of all experiment files.
fn experiments(root: &Path) -> Result<Vec<String>> {
    let folder = root.join("experiments");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "toml")
            && let Some(name) = path.file_stem().and_then(|name| name.to_str())
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        let root = crate::repository_root().unwrap();
        let error = reproduce(&root, "viperr", "dev").unwrap_err().to_string();
        assert!(error.contains("viper, "), "{error}");
    }
}
