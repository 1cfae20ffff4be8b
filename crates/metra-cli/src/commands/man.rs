//! `metra man`: manual pages of the command and of every verb.

use anyhow::{Context, Result};
use clap::Args;
use std::path::{Path, PathBuf};

/// Write manual pages into a folder: metra.1, and one for each verb and its parts.
#[derive(Args)]
pub(crate) struct Man {
    /// The folder; it is made if it is not there
    folder: PathBuf,
}

impl Man {
    pub(crate) fn run(&self, command: &clap::Command) -> Result<()> {
        std::fs::create_dir_all(&self.folder).context(self.folder.display().to_string())?;
        write(&self.folder, "metra", command)
    }
}

/// The page of a command, and those of its verbs.
fn write(folder: &Path, name: &str, command: &clap::Command) -> Result<()> {
    let page = clap_mangen::Man::new(command.clone()).title(name);
    let mut text = Vec::new();
    page.render(&mut text)?;
    let path = folder.join(format!("{name}.1"));
    std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    for verb in command.get_subcommands() {
        write(folder, &format!("{name}-{}", verb.get_name()), verb)?;
    }
    Ok(())
}
