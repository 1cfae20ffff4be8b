//! From files to a data set: the one place in which the command puts vectors and supervision together.

use super::args::{Columns, ComparisonArgs};
use super::files::{Files, Loaded};
use crate::args::Common;
use crate::interrupt::STOP;
use crate::progress::warn_once;
use anyhow::{Context, Result, bail, ensure};
use metra::Dataset;
use metra::data::Groups;
use metra::supervision::{Comparisons, Judgement, Labels, Quadruplet};
use metra_files::{
    RowNames, read_orderings, read_pairs, read_qrels, read_quadruplets, read_taxonomy,
    read_triplets,
};
use std::path::Path;

/// Files beside those of the vectors that say what is similar.
#[derive(Clone, Copy)]
pub(crate) struct SupervisionInput<'a> {
    pub(crate) qrels: Option<&'a Path>,
    pub(crate) two_spaces: bool,
    pub(crate) comparisons: &'a ComparisonArgs,
    pub(crate) orderings: Option<&'a Path>,
    pub(crate) taxonomy: Option<&'a Path>,
}

impl SupervisionInput<'_> {
    /// The data set of these files. `groups` are those of items and queries, numbered as a model knows
    /// them where one is evaluated.
    pub(crate) fn dataset<'f>(
        &self,
        files: &'f Files,
        columns: &Columns,
        groups: (Option<Groups>, Option<Groups>),
        common: &Common,
    ) -> Result<Dataset<'f>> {
        let items = &files.items;
        let mut builder = Dataset::builder(items.table.corpus.as_ref())
            .labels(items.labels.clone())
            .label_sets(items.label_sets.clone())
            .groups(groups.0)
            .narrowing(items.table.narrowing.clone())
            .vector_dims(&items.table.vector_dims)
            .storage(common.storage())
            .stop(&STOP);
        if let Some(queries) = &files.queries {
            let corpus = queries.table.corpus.as_ref();
            builder = builder.queries(corpus).query_groups(groups.1);
            builder = builder.two_spaces(self.two_spaces);
        }
        if let Some(path) = self.qrels {
            builder = builder.qrels(judgements(path, files, columns)?);
        }
        if self.comparisons.any() {
            let lists = ComparisonLists::read(self.comparisons, items, columns)?;
            builder = builder
                .pairs(lists.similar, lists.dissimilar)
                .triplets(lists.triplets)
                .quadruplets(lists.quadruplets);
        }
        if let Some(path) = self.orderings {
            let found = read_orderings(path, need_labels(items)?, items.table.filtered)?;
            warn_left_out(path, found.unknown, "classes");
            builder = builder.orderings(found.orderings);
        }
        if let Some(path) = self.taxonomy {
            builder = builder.taxonomy(read_taxonomy(path)?);
        }
        let file = self.qrels.or(self.orderings).or(self.taxonomy);
        match (builder.build(), file) {
            (Ok(data), _) => Ok(data),
            (Err(metra::Error::Unsupervised), _) => Err(need_labels(items)
                .err()
                .unwrap_or_else(|| metra::Error::Unsupervised.into())),
            (Err(error), Some(path)) => Err(error).with_context(|| path.display().to_string()),
            (Err(error), None) => Err(error.into()),
        }
    }
}

/// The labels, or what could be given instead.
pub(crate) fn need_labels(loaded: &Loaded) -> Result<&Labels> {
    match loaded.one_label()? {
        Some(labels) => Ok(labels),
        None => bail!(
            "what is similar? name the column of class labels with --label, give --queries, \
             --items and --qrels, or say what is near with --pairs, --triplets or --quadruplets"
        ),
    }
}

/// Pairs, triplets and quadruplets as rows of a file.
#[derive(Default)]
struct ComparisonLists {
    similar: Vec<[u64; 2]>,
    dissimilar: Vec<[u64; 2]>,
    triplets: Vec<[u64; 3]>,
    quadruplets: Vec<Quadruplet>,
}

impl ComparisonLists {
    fn read(files: &ComparisonArgs, loaded: &Loaded, columns: &Columns) -> Result<Self> {
        let names = RowNames::new(&loaded.table, columns.id.as_deref())?;
        let mut lists = ComparisonLists::default();
        if let Some(path) = &files.pairs {
            let found = read_pairs(path, &names)?;
            warn_left_out(path, found.unknown, "lines");
            (lists.similar, lists.dissimilar) = (found.similar, found.dissimilar);
        }
        if let Some(path) = &files.triplets {
            let found = read_triplets(path, &names)?;
            warn_left_out(path, found.unknown, "lines");
            lists.triplets = found.triplets;
        }
        if let Some(path) = &files.quadruplets {
            let found = read_quadruplets(path, &names)?;
            warn_left_out(path, found.unknown, "lines");
            lists.quadruplets = found.quadruplets;
        }
        Ok(lists)
    }
}

/// Pairs, triplets and quadruplets of a file's rows, to evaluate by.
pub(crate) fn comparisons(
    files: &ComparisonArgs,
    loaded: &Loaded,
    columns: &Columns,
) -> Result<Comparisons> {
    let lists = ComparisonLists::read(files, loaded, columns)?;
    Ok(Comparisons::new(loaded.table.corpus.len())
        .with_pairs(&lists.similar, &lists.dissimilar)?
        .with_triplets(&lists.triplets)?
        .with_quadruplets(&lists.quadruplets)?)
}

/// Judgements of items for queries, or between the rows of one file.
fn judgements(path: &Path, files: &Files, columns: &Columns) -> Result<Vec<Judgement>> {
    let id = columns.id.as_deref();
    let id = id.context("--id must name the column of ids that the judgements speak of")?;
    ensure!(
        files.queries.is_some() || columns.label.is_none(),
        "--label and --qrels both say what is relevant: give one of them"
    );
    let items = files.items.table.index(id)?;
    let found = match &files.queries {
        Some(queries) => read_qrels(path, &queries.table.index(id)?, &items)?,
        None => read_qrels(path, &items, &items)?,
    };
    let (queries, documents) = (found.unknown_queries, found.unknown_documents);
    match &files.queries {
        None => warn_left_out(path, queries + documents, "lines"),
        Some(_) if queries + documents > 0 => warn_once(format!(
            "{}: {queries} lines left out whose query was not read, {documents} whose item was not read",
            path.display()
        )),
        Some(_) => {}
    }
    Ok(found.judgements)
}

fn warn_left_out(path: &Path, count: u64, what: &str) {
    if count > 0 {
        warn_once(format!(
            "{}: {count} {what} left out that speak of rows that were not read",
            path.display()
        ));
    }
}
