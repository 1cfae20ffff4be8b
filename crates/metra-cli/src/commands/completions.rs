//! `metra completions`: a script that lets a shell complete verbs and options.

use anyhow::Result;
use clap::Args;
use clap_complete::Shell;

/// Print a completion script for a shell.
///
/// For bash: metra completions bash > ~/.local/share/bash-completion/completions/metra
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, mut command: clap::Command) -> Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "metra", &mut script);
        crate::print::text(&String::from_utf8(script)?)
    }
}
