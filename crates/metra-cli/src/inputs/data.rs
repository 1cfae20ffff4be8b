//! What training and comparing work on: files of vectors with supervision, read once.

use super::args::{Columns, ComparisonArgs, QrelsArgs};
use super::files::{Files, Loaded, check_vectors, load, model_groups};
use super::supervision::SupervisionInput;
use crate::args::Common;
use crate::print;
use anyhow::{Result, bail};
use clap::Args;
use metra::Dataset;
use metra::model::Model;
use metra::supervision::{Labels, Relevance, Supervision};
use metra_files::{Filter, NarrowingRule};
use std::path::PathBuf;

/// Vectors and supervision.
#[derive(Args, Clone, Default)]
pub(crate) struct DataArgs {
    /// The vectors (.parquet, .npy, .csv, .jsonl, …); or give --queries, --items and --qrels
    #[arg(required_unless_present = "queries", conflicts_with = "queries")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) columns: Columns,
    #[command(flatten)]
    pub(crate) qrels: QrelsArgs,
    #[command(flatten)]
    pub(crate) comparisons: ComparisonArgs,
    /// Orderings of classes by attribute, one per line: `name: A<B~C` (B has more than A, as much
    /// as C)
    #[arg(long, value_name = "FILE", help_heading = "Supervision", hide_short_help = true, requires = "label",
          conflicts_with_all = ["queries", "qrels"])]
    pub(crate) orderings: Option<PathBuf>,
    /// Class tree, one edge per line: child, parent
    #[arg(long, value_name = "FILE", help_heading = "Supervision", hide_short_help = true, requires = "label",
          conflicts_with_all = ["queries", "qrels"])]
    pub(crate) taxonomy: Option<PathBuf>,
    /// Keep only rows with this value (column=value or column!=value; repeatable)
    #[arg(
        long = "where",
        value_name = "FILTER",
        help_heading = "Data",
        hide_short_help = true
    )]
    pub(crate) filters: Vec<Filter>,
}

/// A data set with the files that it was read from.
pub(crate) struct Input<'a> {
    pub(crate) data: Dataset<'a>,
    pub(crate) files: &'a Files,
    pub(crate) columns: &'a Columns,
}

impl DataArgs {
    /// Read everything and work on it; `extra` columns of the units are kept.
    pub(crate) fn with<R>(
        &self,
        extra: &[&str],
        common: &Common,
        work: impl FnOnce(&Input<'_>) -> Result<R>,
    ) -> Result<R> {
        self.read_as(None, extra, common, work)
    }

    /// The same, with f64 values narrowed and groups numbered as a model does it.
    pub(crate) fn read_as<R>(
        &self,
        model: Option<&Model>,
        extra: &[&str],
        common: &Common,
        work: impl FnOnce(&Input<'_>) -> Result<R>,
    ) -> Result<R> {
        self.comparisons.refuse_beside(&self.qrels)?;
        let columns = &self.columns;
        let rule = match model {
            Some(model) => NarrowingRule::of(model.narrowing.as_ref()),
            None => NarrowingRule::Judge,
        };
        let files = match Files::apart(&self.qrels, columns, extra, &rule, common)? {
            Some(files) => files,
            None => {
                let Some(path) = &self.data else {
                    bail!("name a file of vectors, or --queries, --items and --qrels");
                };
                Files::one(load(path, columns, extra, &self.filters, rule, common)?)
            }
        };
        let input = SupervisionInput {
            qrels: self.qrels.qrels.as_deref(),
            two_spaces: self.qrels.two_spaces,
            comparisons: &self.comparisons,
            orderings: self.orderings.as_deref(),
            taxonomy: self.taxonomy.as_deref(),
        };
        let numbered = |loaded: &Loaded| match model {
            Some(model) if model.chain.group_names().is_some() => model_groups(model, loaded),
            _ => Ok(loaded.groups.clone()),
        };
        if let Some(model) = model {
            for loaded in files.queries.iter().chain([&files.items]) {
                check_vectors(model, loaded)?;
            }
        }
        let query_groups = files.queries.as_ref().map(numbered).transpose()?;
        let groups = (numbered(&files.items)?, query_groups.flatten());
        let data = input.dataset(&files, columns, groups, common)?;
        let outcome = work(&Input {
            data,
            files: &files,
            columns,
        });
        outcome.map_err(|error| files.locate(error))
    }
}

impl Input<'_> {
    /// The data in words.
    pub(crate) fn describe(&self) -> String {
        let (data, items) = (&self.data, &self.files.items);
        let corpus = data.items();
        let several = match data.vector_dims() {
            [] => String::new(),
            dims => {
                let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
                format!(" ({})", dims.join(" + "))
            }
        };
        let shape = format!(
            "{} × {}{several} {}",
            print::count(corpus.len()),
            corpus.dim(),
            items.table.element_type
        );
        let labelled = |labels: &Labels| {
            let singles = match labels.singletons() {
                0 => String::new(),
                n => format!(", {} of them of one row", print::count(n as u64)),
            };
            let classes = print::count(labels.classes() as u64);
            format!("{shape}, {classes} classes{singles}")
        };
        match data.supervision() {
            Supervision::Labels(labels) => labelled(labels),
            Supervision::LabelSets(_) => format!("{shape}, {}", data.supervision().describe()),
            Supervision::Judgements(judgements) => {
                format!(
                    "{shape} items, {} queries, {} relevant pairs",
                    print::count(judgements.queries()),
                    print::count(judgements.pairs())
                )
            }
            Supervision::Comparisons(_) => {
                let judged = data.labels().map_or(String::new(), |labels| {
                    let classes = print::count(labels.classes() as u64);
                    format!(
                        "; {classes} classes{} to judge by",
                        relations(data.class_supervision())
                    )
                });
                format!("{shape}, {}{judged}", data.supervision().describe())
            }
            class_supervision @ (Supervision::Orderings(_) | Supervision::Taxonomy(_)) => {
                let all = std::iter::once(class_supervision).chain(data.class_supervision());
                let labels = data.labels().map_or(shape.clone(), labelled);
                format!("{labels}{}", relations(all))
            }
        }
    }
}

/// What is known of classes beyond their labels.
fn relations<'a>(supervision: impl IntoIterator<Item = &'a Supervision>) -> String {
    let words = supervision
        .into_iter()
        .filter_map(|supervision| match supervision {
            Supervision::Orderings(orderings) => {
                Some(format!(" ordered by {} attributes", orderings.attributes()))
            }
            Supervision::Taxonomy(_) => Some(" in a tree".to_owned()),
            _ => None,
        });
    words.collect::<Vec<_>>().join(",")
}
