//! Features that this build may lack: their verbs and options say how to get a build that has them.

#[cfg(not(feature = "cluster"))]
use anyhow::Result;
use anyhow::{Error, anyhow};

/// Declares verbs that this build does not have, as `module Type, verb, feature, outcome`.
macro_rules! absent {
    ($($module:ident $type:ident, $verb:literal, $feature:literal, $done:ty;)*) => {$(
        pub(crate) mod $module {
            /// A verb that this build does not have.
            #[derive(clap::Args)]
            #[command(after_help = concat!("This build lacks it: make one with --features ", $feature))]
            pub(crate) struct $type {
                /// Whatever was asked for
                #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
                rest: Vec<String>,
            }

            impl $type {
                pub(crate) fn run(&self, _: &crate::args::Common) -> anyhow::Result<$done> {
                    // What follows may be a file, or an address with a password: only a verb's part is said.
                    let first = self.rest.first().map_or("", String::as_str);
                    let is_word = first.chars().all(|c| c.is_ascii_lowercase());
                    let first = if is_word { first } else { "" };
                    let verb = format!("metra {} {first}", $verb);
                    Err(crate::feature_off::without(verb.trim(), $feature))
                }
            }
        }
    )*};
}
pub(crate) use absent;

/// The error of a build without it.
pub(crate) fn without(what: &str, feature: &str) -> Error {
    anyhow!(
        "this build has no {feature} support, which `{what}` needs: expected one made with `cargo \
         install --path crates/metra-cli --features {feature}`"
    )
}

#[cfg(not(feature = "cluster"))]
impl crate::args::ClusterArgs {
    /// Where passes run; an error where this build cannot run them there.
    pub(crate) fn place(&self) -> Result<Option<&crate::args::Place>> {
        match self.cluster {
            Some(_) => Err(without("--cluster", "cluster")),
            None => Ok(None),
        }
    }
}

/// What a verb does on a cluster, in a build without it: nothing, as there is no place.
#[cfg(not(feature = "cluster"))]
pub(crate) trait OnCluster {
    /// There is no place to work at.
    fn on_cluster(&self, place: &crate::args::Place, _: &crate::args::Common) -> Result<()> {
        match *place {}
    }
}

#[cfg(not(feature = "cluster"))]
impl<T> OnCluster for T {}
