//! Running the experiments again: every file in `experiments/` is a comparison, of whose results in
//! `docs/results/data` its page is made.

use std::path::Path;

use crate::docs::{Comparison, FOLDER};
use crate::measuring::{commit, cpu, data_folder, metra};

use anyhow::{Context, Result, bail, ensure};

/// Run one experiment by name, or all of them, by the command at this path or one that is built, and write what came of
/// it; what is in the log of an earlier run is not run again.
pub fn reproduce(root: &Path, name: &str, command: Option<&str>) -> Result<()> {
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
    data_folder()?;
    for name in chosen {
        let folder = format!("target/experiments/{name}");
        let commit = commit(root)?;
        let status = metra(root, command)
            .args(["compare", &format!("experiments/{name}.toml")])
            .args(["--output", &folder])
            .status()
            .with_context(|| format!("{name}: the command could not be run"))?;
        // 3: finished, with a method that failed and is told so in the page.
        if !matches!(status.code(), Some(0 | 3)) {
            bail!("{name}: metra compare ended with {status}");
        }
        let comparison = Comparison::new(
            commit,
            cpu(),
            &root.join(folder),
            format!("cargo xtask reproduce {name}"),
        )?;
        let path = root.join(FOLDER).join(format!("{name}.json"));
        std::fs::write(&path, comparison.to_json()?).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Names of all experiment files.
pub(crate) fn experiments(root: &Path) -> Result<Vec<String>> {
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
        let error = reproduce(&root, "viperr", None).unwrap_err().to_string();
        assert!(error.contains("viper, "), "{error}");
    }
}
