//! Arguments that several verbs share.

use clap::{Args, ValueEnum};
use metra::metric::{Distance, Side, Way, Wish};
use metra_files::Filter;
use std::path::PathBuf;

/// For every verb.
#[derive(Args, Clone)]
pub(crate) struct Common {
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Threads to use (default: all cores); results do not depend on it
    #[arg(long, global = true, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Memory that one corpus may take; a larger one goes to a memory-mapped file (512M, 2G)
    #[arg(long, global = true, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub(crate) memory: u64,
    /// Folder for such files (default: the system's temporary folder)
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) cache_dir: Option<PathBuf>,
}

impl Common {
    pub(crate) fn cache_dir(&self) -> PathBuf {
        self.cache_dir.clone().unwrap_or_else(std::env::temp_dir)
    }

    pub(crate) fn storage(&self) -> metra::metric::Storage {
        metra::metric::Storage {
            memory: self.memory,
            folder: self.cache_dir(),
        }
    }
}

/// Which columns hold what.
#[derive(Args, Clone, Default)]
pub(crate) struct Columns {
    /// Column of vectors (default: `vector`, or the only list column; CSV: prefix of the columns)
    #[arg(long, value_name = "COLUMN")]
    pub(crate) vector: Option<String>,
    /// Column of class labels (with npy: a file of labels, .npy or one a line)
    #[arg(long, value_name = "COLUMN")]
    pub(crate) label: Option<String>,
    /// Column of the camera or session a vector comes from (with npy: a file)
    #[arg(long, value_name = "COLUMN")]
    pub(crate) camera: Option<String>,
    /// Column of ids (with npy: a file; default: row numbers)
    #[arg(long, value_name = "COLUMN")]
    pub(crate) id: Option<String>,
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

/// Work where the rows lie, for tables that are not read into this process.
#[derive(Args, Clone, Default)]
pub(crate) struct Away {
    /// Work where the rows lie: `here` (DataFusion in this process) or a cluster's scheduler
    /// (df://host:port). The data is then a Parquet file or a folder of them, local or s3://
    #[arg(long, value_name = "WHERE", help_heading = "Tables elsewhere")]
    pub(crate) cluster: Option<String>,
    /// Folder that all machines reach, for settings too large for a plan
    #[arg(long, value_name = "FOLDER", help_heading = "Tables elsewhere")]
    pub(crate) scratch: Option<String>,
    /// Rows of a shard, about (default: 262144; in training a file is a shard)
    #[arg(long, value_name = "N", help_heading = "Tables elsewhere")]
    pub(crate) shard_rows: Option<u64>,
}

impl Away {
    /// An error where this build cannot do what was asked.
    #[cfg(not(feature = "cluster"))]
    pub(crate) fn refuse(&self) -> anyhow::Result<()> {
        match self.cluster {
            Some(_) => Err(crate::commands::absent::without("--cluster", "cluster")),
            None => Ok(()),
        }
    }
}

/// What a plan for a vector store has to keep to.
#[derive(Args, Clone, Default)]
pub(crate) struct Wished {
    /// Leave the stored items as they are, to the last number: queries carry the metric
    #[arg(long, help_heading = "The plan")]
    pub(crate) keep_items: bool,
    /// Keep the items' own numbers in front of what is stored, so that another model changes one
    /// number of each
    #[arg(long, help_heading = "The plan")]
    pub(crate) keep_input: bool,
    /// Insist on a way: mapped, query-only, extra-coordinate, rescaled or candidates
    #[arg(long, value_name = "WAY", help_heading = "The plan")]
    pub(crate) way: Option<Way>,
    /// Insist on what the store compares by: l2, ip or cosine
    #[arg(long, value_name = "DISTANCE", help_heading = "The plan")]
    pub(crate) distance: Option<Distance>,
}

impl Wished {
    /// The wish towards a store that compares by these distances.
    pub(crate) fn wish(&self, offered: &[Distance]) -> anyhow::Result<Wish> {
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
        Ok(Wish {
            distances,
            keep_items: self.keep_items,
            keep_input: self.keep_input,
            way: self.way,
            candidates: self.way == Some(Way::Candidates),
            ..Wish::default()
        })
    }
}

/// Queries and items apart, with judgements between them.
#[derive(Args, Clone, Default)]
pub(crate) struct Judged {
    /// File of query vectors
    #[arg(long, value_name = "FILE", requires_all = ["items", "qrels"])]
    pub(crate) queries: Option<PathBuf>,
    /// File of item vectors
    #[arg(long, value_name = "FILE", requires = "queries")]
    pub(crate) items: Option<PathBuf>,
    /// TREC judgements: query, 0, item, grade a line; without --queries between rows of one file
    #[arg(long, value_name = "FILE")]
    pub(crate) qrels: Option<PathBuf>,
    /// Keep only queries with this value (column=value or column!=value; repeatable)
    #[arg(long, value_name = "FILTER", requires = "queries")]
    pub(crate) where_queries: Vec<Filter>,
    /// Keep only items with this value (repeatable)
    #[arg(long, value_name = "FILTER", requires = "items")]
    pub(crate) where_items: Vec<Filter>,
}

/// Comparisons of rows. The kinds may be combined.
#[derive(Args, Clone, Default)]
pub(crate) struct Compared {
    /// Pairs of rows, one a line: a, b, and 1 for similar or 0 for dissimilar
    #[arg(long, value_name = "FILE")]
    pub(crate) pairs: Option<PathBuf>,
    /// Triplets of rows, one a line: anchor, near, far
    #[arg(long, value_name = "FILE")]
    pub(crate) triplets: Option<PathBuf>,
    /// Quadruplets of rows, one a line: the near pair, the far pair, and strict or light
    #[arg(long, value_name = "FILE")]
    pub(crate) quadruplets: Option<PathBuf>,
}

impl Compared {
    /// Whether there are any.
    pub(crate) fn any(&self) -> bool {
        self.pairs.is_some() || self.triplets.is_some() || self.quadruplets.is_some()
    }

    /// An error where judgements say what is relevant, too. Not a rule of the arguments, because
    /// verbs have the one without the other.
    pub(crate) fn refuse_beside(&self, judged: &Judged) -> anyhow::Result<()> {
        anyhow::ensure!(
            judged.qrels.is_none() || !self.any(),
            "--qrels and --pairs, --triplets or --quadruplets both say what is near: give one of them"
        );
        Ok(())
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
