//! What figures are measured with: the command, the data, the commit and the machine.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The command at this path, or one that cargo builds as it is released; it runs in the root, so that pages name paths
/// below it.
pub(crate) fn metra(root: &Path, path: Option<&str>) -> Command {
    let mut command = match path {
        Some(path) => Command::new(path),
        None => {
            let mut command = cargo();
            let build = ["--quiet", "--release", "--package", "metra-cli", "--"];
            command.arg("run").args(build);
            command
        }
    };
    command.current_dir(root);
    command
}

/// The folder of the data sets.
pub(crate) fn data_folder() -> Result<String> {
    std::env::var("METRA_DATA").context(
        "the data sets are in the folder that the environment variable METRA_DATA names, and it is not set",
    )
}

/// What decides figures; documents do not.
const SOURCES: [&str; 6] = [
    "Cargo.lock",
    "Cargo.toml",
    "benches",
    "crates",
    "examples",
    "experiments",
];

/// The commit that is checked out; `-dirty` behind it where what decides figures has been changed.
pub(crate) fn commit(root: &Path) -> Result<String> {
    let commit = said(root, "git", &["rev-parse", "--short=12", "HEAD"])?;
    let status = ["status", "--porcelain", "--"];
    let changed = said(root, "git", &[&status[..], &SOURCES].concat())?;
    Ok(if changed.is_empty() {
        commit
    } else {
        format!("{commit}-dirty")
    })
}

/// What a program says, without the end of the line.
pub(crate) fn said(root: &Path, program: &str, arguments: &[&str]) -> Result<String> {
    let printed = printed(Command::new(program).current_dir(root).args(arguments))?;
    Ok(printed.trim().to_owned())
}

/// What a program prints; an error with what it says of it if it fails.
pub(crate) fn printed(command: &mut Command) -> Result<String> {
    let program = command.get_program().display().to_string();
    let output = command.output();
    let output = output.with_context(|| format!("{program} could not be run"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program}: {errors}");
    Ok(String::from_utf8(output.stdout)?)
}

/// What cargo knows of all crates in the lock file.
pub(crate) fn cargo_metadata(root: &Path) -> Result<String> {
    let arguments = ["--locked", "--all-features", "--format-version", "1"];
    printed(cargo().current_dir(root).arg("metadata").args(arguments))
}

/// The cargo that runs this, if one does.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The machine's processor, and how many threads it runs at once.
pub(crate) fn cpu() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "model name").then(|| value.trim().to_owned())
    });
    let threads = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{}, {threads} threads",
        model.unwrap_or_else(|| "unknown".into())
    )
}
