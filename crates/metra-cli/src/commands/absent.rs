//! Verbs of `--features cluster` in a build without it: they say how to get one that has them.

use anyhow::{Error, Result, anyhow};
use clap::Args;

/// A verb that this build does not have.
#[derive(Args)]
pub(crate) struct Absent {
    /// Whatever was asked for
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<String>,
}

impl Absent {
    pub(crate) fn run(&self, verb: &str) -> Result<()> {
        let asked = self.rest.first().map_or("", String::as_str);
        Err(without(format!("metra {verb} {asked}").trim()))
    }
}

/// The error of a build without it.
pub(crate) fn without(what: &str) -> Error {
    anyhow!(
        "this build has no cluster support, which `{what}` needs: expected one made with `cargo \
         install --path crates/metra-cli --features cluster`"
    )
}
