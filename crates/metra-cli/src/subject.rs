//! What training and comparing work on: files of vectors with what is said of them, read once.

use crate::STOP;
use crate::args::{Columns, Common, Compared, Judged};
use crate::load::{Loaded, in_file, load, load_judged};
use crate::told::{Sources, told};
use anyhow::{Result, bail};
use clap::Args;
use metra::data::{Interruptible, RowId};
use metra::study::{Collection, Material};
use metra::supervision::Supervision;
use metra_files::{Filter, NarrowingRule};
use std::path::PathBuf;

/// Vectors and supervision.
#[derive(Args, Clone, Default)]
pub(crate) struct Subject {
    /// The vectors (.parquet, .npy, .csv, .tsv); or give --queries, --items and --qrels
    #[arg(required_unless_present = "queries", conflicts_with = "queries")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) columns: Columns,
    #[command(flatten)]
    pub(crate) judged: Judged,
    #[command(flatten)]
    pub(crate) compared: Compared,
    /// Orderings of classes by attributes, one a line: attribute: A<B~C<D
    #[arg(long, value_name = "FILE", requires = "label",
          conflicts_with_all = ["queries", "qrels", "pairs", "triplets", "quadruplets", "taxonomy"])]
    pub(crate) orderings: Option<PathBuf>,
    /// A tree of classes, one edge a line: child, parent
    #[arg(long, value_name = "FILE", requires = "label",
          conflicts_with_all = ["queries", "qrels", "pairs", "triplets", "quadruplets"])]
    pub(crate) taxonomy: Option<PathBuf>,
    /// Keep only rows with this value (column=value or column!=value; repeatable)
    #[arg(long = "where", value_name = "FILTER")]
    pub(crate) filters: Vec<Filter>,
}

/// A subject that was read.
pub(crate) struct Read<'a> {
    pub(crate) material: Material<'a>,
    /// The table whose rows are split: that of queries where they are apart.
    pub(crate) unit_table: &'a Loaded,
    pub(crate) items: &'a Loaded,
    /// The units that can be split.
    pub(crate) units: &'a [RowId],
    pub(crate) columns: &'a Columns,
}

impl Subject {
    /// Read everything and work on it; `extra` columns of the units are kept.
    pub(crate) fn with<R>(
        &self,
        extra: &[&str],
        common: &Common,
        work: impl FnOnce(&Read<'_>) -> Result<R>,
    ) -> Result<R> {
        self.compared.refuse_beside(&self.judged)?;
        let judged = load_judged(
            &self.judged,
            &self.columns,
            extra,
            &NarrowingRule::Judge,
            common,
        )?;
        if let Some(judged) = &judged {
            let (items, queries) = (stoppable(&judged.items), stoppable(&judged.queries));
            let material = Material {
                items: collection(&items, &judged.items),
                queries: Some(collection(&queries, &judged.queries)),
                supervision: Supervision::judgements(judged.judgements.clone()),
                judged_by: None,
                storage: common.storage(),
            };
            return work(&Read {
                material,
                unit_table: &judged.queries,
                items: &judged.items,
                units: &judged.judged,
                columns: &self.columns,
            });
        }
        let Some(data) = &self.data else {
            bail!("name a file of vectors, or --queries, --items and --qrels");
        };
        let loaded = load(
            data,
            &self.columns,
            extra,
            &self.filters,
            NarrowingRule::Judge,
            common,
        )?;
        let sources = Sources {
            qrels: self.judged.qrels.as_deref(),
            compared: &self.compared,
            orderings: self.orderings.as_ref(),
            taxonomy: self.taxonomy.as_ref(),
        };
        let told = told(&loaded, &self.columns, &sources)?;
        let items = stoppable(&loaded);
        let material = Material {
            items: collection(&items, &loaded),
            queries: None,
            supervision: told.supervision,
            judged_by: told.judged_by,
            storage: common.storage(),
        };
        let outcome = work(&Read {
            material,
            unit_table: &loaded,
            items: &loaded,
            units: &told.units,
            columns: &self.columns,
        });
        outcome.map_err(|error| match error.downcast::<metra::Error>() {
            Ok(error) => in_file(error, &loaded),
            Err(error) => error,
        })
    }
}

/// The vectors, until somebody stops the command.
fn stoppable(loaded: &Loaded) -> Interruptible<'_> {
    Interruptible::new(loaded.table.corpus.as_ref(), &STOP)
}

fn collection<'a>(corpus: &'a Interruptible<'a>, loaded: &'a Loaded) -> Collection<'a> {
    Collection {
        corpus,
        groups: loaded.groups.as_ref(),
    }
}
