//! Arguments that name files of vectors, their columns and what is similar in them.

use clap::Args;
use metra::supervision::SharedLabels;
use metra_files::{Filter, MissingValues};
use std::path::{Path, PathBuf};

/// Which columns hold what.
#[derive(Args, Clone, Default)]
pub(crate) struct Columns {
    /// Column of vectors, or several: title,body (default: `vector`, or the only one). In CSV also:
    /// numbers a,b,c, a pattern emb_*, or a prefix of numbers
    #[arg(help_heading = "Data", long, value_name = "COLUMN")]
    pub(crate) vector: Option<String>,
    /// Column of class labels (with npy: a file of labels, .npy or one per line). Several per row: a column of lists,
    /// or several columns, comma-separated
    #[arg(help_heading = "Data", long, value_name = "COLUMN")]
    pub(crate) label: Option<String>,
    /// What stands between the labels of a row, where --label names texts such as `red|wool`
    #[arg(
        help_heading = "Data",
        long,
        value_name = "TEXT",
        requires = "label",
        hide_short_help = true
    )]
    pub(crate) label_separator: Option<String>,
    /// How relevant rows with several labels are to each other: by the number of labels that they share, or by
    /// their share of all labels of both
    #[arg(
        help_heading = "Data",
        long,
        value_name = "RULE",
        requires = "label",
        default_value_t,
        hide_short_help = true
    )]
    pub(crate) label_grade: SharedLabels,
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

impl Columns {
    /// Those of a file of queries, whose vectors may be in another column.
    pub(crate) fn of_queries(&self, vector: Option<&str>) -> Self {
        Columns {
            vector: vector.map(str::to_owned).or_else(|| self.vector.clone()),
            ..self.clone()
        }
    }

    /// The columns of labels, or the one file of them.
    pub(crate) fn labels(&self) -> anyhow::Result<Vec<&str>> {
        anyhow::ensure!(
            self.label_separator.as_deref() != Some(""),
            "--label-separator must not be empty"
        );
        let Some(given) = self.label.as_deref() else {
            return Ok(Vec::new());
        };
        if Path::new(given).is_file() {
            return Ok(vec![given]);
        }
        let names: Vec<&str> = given.split(',').map(str::trim).collect();
        let is_twice = |at: usize| names[..at].contains(&names[at]);
        anyhow::ensure!(
            !names.contains(&"") && !(0..names.len()).any(is_twice),
            "--label {given}: expected different names of columns between the commas"
        );
        Ok(names)
    }

    /// An error where rows may have several labels, which a cluster does not read.
    #[cfg(feature = "cluster")]
    pub(crate) fn refuse_label_sets(&self) -> anyhow::Result<()> {
        let is_plain = self.label_separator.is_none()
            && self.label_grade == SharedLabels::default()
            && self.labels()?.len() < 2;
        anyhow::ensure!(
            is_plain,
            "--cluster reads one label per row: name one column"
        );
        Ok(())
    }
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
    /// Column of vectors in the file of queries, where it is not that of the items
    #[arg(
        help_heading = "Supervision",
        long,
        value_name = "COLUMN",
        requires = "queries",
        hide_short_help = true
    )]
    pub(crate) query_vector: Option<String>,
    /// Queries and items are vectors of two models: a map is learned for each (known where their dimensions
    /// differ)
    #[arg(
        help_heading = "Supervision",
        long,
        requires = "queries",
        hide_short_help = true
    )]
    pub(crate) two_spaces: bool,
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
