//! Arguments that several verbs share.

use clap::{Args, ValueEnum};
use metra::model::{Distance, PlanConstraints, Side, Strategy};
use std::path::PathBuf;

/// For every verb.
#[derive(Args, Clone)]
pub(crate) struct Common {
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say nothing but errors beside the answer: no progress, notes or warnings
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "verbose",
        hide_short_help = true
    )]
    pub(crate) quiet: bool,
    /// Show what libraries log, too, such as DataFusion and Ballista
    #[arg(short, long, global = true, hide_short_help = true)]
    pub(crate) verbose: bool,
    /// Threads to use (default: all cores); results do not depend on it
    #[arg(
        long,
        global = true,
        value_name = "N",
        env = "METRA_THREADS",
        hide_short_help = true
    )]
    pub(crate) threads: Option<usize>,
    /// Memory limit per set of vectors; a larger set is kept in a memory-mapped file (512M, 2G)
    #[arg(long, global = true, value_name = "SIZE", default_value = "1G", env = "METRA_MEMORY", value_parser = size, hide_short_help = true)]
    pub(crate) memory: u64,
    /// Folder for these memory-mapped files (default: the system's temporary folder)
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "METRA_CACHE_DIR",
        hide_short_help = true
    )]
    pub(crate) cache_dir: Option<PathBuf>,
    /// Replace output files of another kind, and files that are read by the same command
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) force: bool,
}

impl Common {
    pub(crate) fn cache_dir(&self) -> PathBuf {
        self.cache_dir.clone().unwrap_or_else(std::env::temp_dir)
    }

    pub(crate) fn storage(&self) -> metra::data::Storage {
        metra::data::Storage {
            memory: self.memory,
            folder: self.cache_dir(),
        }
    }
}

/// Which map of a model to use.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SideName {
    /// That of queries
    Query,
    /// That of items
    Item,
}

impl From<SideName> for Side {
    fn from(name: SideName) -> Side {
        match name {
            SideName::Query => Side::Query,
            SideName::Item => Side::Item,
        }
    }
}

/// Distributed execution, for tables that are not read into this process.
#[derive(Args, Clone, Default)]
pub(crate) struct ClusterArgs {
    /// Run distributed: `here` (DataFusion in this process) or a cluster's scheduler
    /// (df://host:port). The data is then a Parquet file or a folder of them, local or s3://
    #[arg(
        long,
        value_name = "WHERE",
        help_heading = "Cluster",
        hide_short_help = true
    )]
    pub(crate) cluster: Option<String>,
    /// Shared folder that all machines can access, for settings too large to send with a query plan
    #[arg(
        long,
        value_name = "FOLDER",
        help_heading = "Cluster",
        hide_short_help = true
    )]
    pub(crate) scratch: Option<String>,
    /// Approximate number of rows per shard (default: 262144; in training, each file is one shard)
    #[arg(
        long,
        value_name = "N",
        help_heading = "Cluster",
        hide_short_help = true
    )]
    pub(crate) shard_rows: Option<u64>,
}

/// Where passes run.
#[cfg(feature = "cluster")]
pub(crate) type Place = str;
/// Where passes run: nowhere in a build without the feature.
#[cfg(not(feature = "cluster"))]
pub(crate) enum Place {}

/// What a plan for a vector store has to keep to.
#[derive(Args, Clone, Default)]
pub(crate) struct PlanArgs {
    /// Leave the stored items unchanged: only queries are mapped
    #[arg(long, help_heading = "The plan")]
    pub(crate) keep_items: bool,
    /// Keep the items' own numbers in front of what is stored, so that another model changes one
    /// number of each
    #[arg(long, help_heading = "The plan")]
    pub(crate) keep_input: bool,
    /// Require this strategy: mapped, query-only, extra-coordinate, rescaled or candidates
    #[arg(long, value_name = "WAY", help_heading = "The plan")]
    pub(crate) way: Option<Strategy>,
    /// Require this distance of the store: l2, ip or cosine
    #[arg(long, value_name = "DISTANCE", help_heading = "The plan")]
    pub(crate) distance: Option<Distance>,
}

impl PlanArgs {
    /// The constraints on a plan for a store that compares by these distances.
    pub(crate) fn constraints(&self, offered: &[Distance]) -> anyhow::Result<PlanConstraints> {
        let distances = match self.distance {
            None => offered.to_vec(),
            Some(distance) if offered.contains(&distance) => vec![distance],
            Some(distance) => {
                let names: Vec<_> = offered.iter().map(Distance::to_string).collect();
                anyhow::bail!(
                    "--distance must be one of {} for this store, but is {distance}",
                    names.join(", ")
                );
            }
        };
        Ok(PlanConstraints {
            distances,
            keep_items: self.keep_items,
            keep_input: self.keep_input,
            way: self.way,
            candidates: self.way == Some(Strategy::Candidates),
            ..PlanConstraints::default()
        })
    }
}

/// Read `512M` or `2G` as bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 1_u64 << 10),
        Some((at, 'M' | 'm')) => (&text[..at], 1 << 20),
        Some((at, 'G' | 'g')) => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| "expected a size such as 512M or 2G".to_owned())?;
    number
        .checked_mul(factor)
        .ok_or_else(|| "the size is too large".into())
}

/// `name=value` of `--set` and `--tune`.
pub(crate) fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(format!("expected name=value, but found {text:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_assignments() {
        assert_eq!(size("512M"), Ok(512 << 20));
        assert_eq!(size("7"), Ok(7));
        assert!(size("G").is_err() && size("1T").is_err() && size("99999999999G").is_err());
        assert_eq!(assignment("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(assignment("a=").is_err() && assignment("a").is_err());
    }
}
