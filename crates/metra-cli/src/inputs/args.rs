//! Arguments that name files of vectors, their columns and what is similar in them.

use clap::Args;
use metra_files::{Filter, MissingValues};
use std::path::PathBuf;

/// Which columns hold what.
#[derive(Args, Clone, Default)]
pub(crate) struct Columns {
    /// Column of vectors (default: `vector`, or the only list column). In CSV also: columns a,b,c, a
    /// pattern emb_*, or the prefix of numbered columns
    #[arg(help_heading = "Data", long, value_name = "COLUMN")]
    pub(crate) vector: Option<String>,
    /// Column of class labels (with npy: a file of labels, .npy or one per line)
    #[arg(help_heading = "Data", long, value_name = "COLUMN")]
    pub(crate) label: Option<String>,
    /// Column of the camera or session a vector comes from (with npy: a file)
    #[arg(
        help_heading = "Data",
        long,
        value_name = "COLUMN",
        hide_short_help = true
    )]
    pub(crate) camera: Option<String>,
    /// Column of ids (with npy: a file; default: row numbers)
    #[arg(help_heading = "Data", long, value_name = "COLUMN")]
    pub(crate) id: Option<String>,
    /// Rows with a missing value (empty, NaN or null): error, or skip to leave them out
    #[arg(
        help_heading = "Data",
        long,
        value_name = "RULE",
        default_value_t,
        hide_short_help = true
    )]
    pub(crate) missing: MissingValues,
}

/// Queries and items apart, with judgements between them.
#[derive(Args, Clone, Default)]
pub(crate) struct QrelsArgs {
    /// File of query vectors
    #[arg(help_heading = "Supervision", long, value_name = "FILE", requires_all = ["items", "qrels"])]
    pub(crate) queries: Option<PathBuf>,
    /// File of item vectors
    #[arg(
        help_heading = "Supervision",
        long,
        value_name = "FILE",
        requires = "queries"
    )]
    pub(crate) items: Option<PathBuf>,
    /// TREC qrels file (query 0 item grade per line); without --queries, both ids are rows of DATA
    #[arg(help_heading = "Supervision", long, value_name = "FILE")]
    pub(crate) qrels: Option<PathBuf>,
    /// Keep only queries with this value (column=value or column!=value; repeatable)
    #[arg(
        help_heading = "Supervision",
        long,
        value_name = "FILTER",
        requires = "queries",
        hide_short_help = true
    )]
    pub(crate) where_queries: Vec<Filter>,
    /// Keep only items with this value (repeatable)
    #[arg(
        help_heading = "Supervision",
        long,
        value_name = "FILTER",
        requires = "items",
        hide_short_help = true
    )]
    pub(crate) where_items: Vec<Filter>,
}

/// Comparisons of rows. The kinds may be combined.
#[derive(Args, Clone, Default)]
pub(crate) struct ComparisonArgs {
    /// Pairs of rows, one per line: a, b, and 1 for similar or 0 for dissimilar
    #[arg(help_heading = "Supervision", long, value_name = "FILE")]
    pub(crate) pairs: Option<PathBuf>,
    /// Triplets of rows, one per line: anchor, near, far
    #[arg(
        help_heading = "Supervision",
        long,
        value_name = "FILE",
        hide_short_help = true
    )]
    pub(crate) triplets: Option<PathBuf>,
    /// Quadruplets a b c d, one per line: a-b is nearer than c-d, `strict` (by a margin, default)
    /// or `light` (not farther)
    #[arg(
        help_heading = "Supervision",
        long,
        value_name = "FILE",
        hide_short_help = true
    )]
    pub(crate) quadruplets: Option<PathBuf>,
}

impl ComparisonArgs {
    /// Whether there are any.
    pub(crate) fn any(&self) -> bool {
        self.pairs.is_some() || self.triplets.is_some() || self.quadruplets.is_some()
    }

    /// An error where judgements say what is relevant, too. Not a rule of the arguments, because
    /// verbs have the one without the other.
    pub(crate) fn refuse_beside(&self, qrels: &QrelsArgs) -> anyhow::Result<()> {
        anyhow::ensure!(
            qrels.qrels.is_none() || !self.any(),
            "--qrels and --pairs, --triplets or --quadruplets both say what is near: give one of them"
        );
        Ok(())
    }
}
