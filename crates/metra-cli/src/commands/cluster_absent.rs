//! `metra cluster` in a build without it: says how to get one that has it.

use crate::args::Common;
use anyhow::{Result, bail};
use clap::Args;

/// Run on many machines: a scheduler, its executors, their status.
#[derive(Args)]
pub(crate) struct Cluster {
    /// Whatever was asked for
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<String>,
}

impl Cluster {
    /// Whether libraries' messages are wanted.
    pub(crate) fn verbose(&self) -> bool {
        false
    }

    pub(crate) fn run(&self, _: &Common) -> Result<()> {
        let asked = self.rest.first().map_or("", String::as_str);
        bail!(
            "this build has no cluster support, which `metra cluster {asked}` needs: expected one \
             made with `cargo install --path crates/metra-cli --features cluster`"
        )
    }
}
