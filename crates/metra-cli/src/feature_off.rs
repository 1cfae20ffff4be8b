//! Features that this build may lack: their verbs and options say how to get a build that has them.

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
    pub(crate) fn run(&self, verb: &str, feature: &str) -> Result<()> {
        // What follows may be an address with a password: of it, only words are said.
        let asked = self.rest.first().map_or("", String::as_str);
        let asked = if asked.contains(':') { "" } else { asked };
        Err(without(format!("metra {verb} {asked}").trim(), feature))
    }
}

/// The error of a build without it.
pub(crate) fn without(what: &str, feature: &str) -> Error {
    anyhow!(
        "this build has no {feature} support, which `{what}` needs: expected one made with `cargo \
         install --path crates/metra-cli --features {feature}`"
    )
}

/// The verbs that run on a cluster, in a build without it: [`ClusterArgs::place`] has refused before.
#[cfg(not(feature = "cluster"))]
mod cluster {
    use crate::args::{ClusterArgs, Common, Place};
    use crate::commands::{embed::Embed, eval::Eval, train::Train};
    use anyhow::Result;

    impl ClusterArgs {
        /// Where passes run; an error where this build cannot run them there.
        pub(crate) fn place(&self) -> Result<Option<&Place>> {
            match self.cluster {
                Some(_) => Err(super::without("--cluster", "cluster")),
                None => Ok(None),
            }
        }
    }

    impl Train {
        pub(crate) fn on_cluster(&self, place: &Place, _: &Common) -> Result<()> {
            match *place {}
        }
    }

    impl Eval {
        pub(crate) fn on_cluster(&self, place: &Place, _: &Common) -> Result<()> {
            match *place {}
        }
    }

    impl Embed {
        pub(crate) fn on_cluster(&self, place: &Place, _: &Common) -> Result<()> {
            match *place {}
        }
    }
}
