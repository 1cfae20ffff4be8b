//! What the command was told of similarity: from files to what studies learn from and judge by.

use crate::args::{Columns, Compared};
use crate::load::Loaded;
use anyhow::{Context, Result, bail, ensure};
use metra::data::RowId;
use metra::supervision::{Comparisons, Judgements, Labels, Orderings, Supervision, Taxonomy};
use metra_files::{
    RowNames, read_orderings, read_pairs, read_qrels, read_quadruplets, read_taxonomy,
    read_triplets,
};
use std::path::{Path, PathBuf};

/// What is said of the rows of one file.
pub(crate) struct Told {
    /// What is learned from.
    pub(crate) supervision: Supervision,
    /// Labels to judge by where the supervision has none.
    pub(crate) judged_by: Option<Labels>,
    /// The rows that can be split: all, or those with a relevant row where there are judgements.
    pub(crate) units: Vec<RowId>,
}

/// Files beside that of the vectors.
pub(crate) struct Sources<'a> {
    pub(crate) qrels: Option<&'a Path>,
    pub(crate) compared: &'a Compared,
    pub(crate) orderings: Option<&'a PathBuf>,
    pub(crate) taxonomy: Option<&'a PathBuf>,
}

/// Put together what labels and files say; exactly one thing can be learned from.
pub(crate) fn told(loaded: &Loaded, columns: &Columns, sources: &Sources<'_>) -> Result<Told> {
    let labels = || need_labels(loaded);
    let all = (0..loaded.table.corpus.len()).collect();
    let supervision = match sources {
        Sources {
            qrels: Some(qrels), ..
        } => {
            let judgements = judgements_within(qrels, loaded, columns)?;
            let asking = |row: &RowId| !judgements.of(*row).is_empty();
            let units = (0..loaded.table.corpus.len()).filter(asking).collect();
            return Ok(Told {
                supervision: Supervision::judgements(judgements),
                judged_by: None,
                units,
            });
        }
        Sources { compared, .. } if compared.any() => {
            return Ok(Told {
                supervision: Supervision::Comparisons(comparisons(compared, loaded, columns)?),
                judged_by: loaded.labels.clone(),
                units: all,
            });
        }
        Sources {
            orderings: Some(path),
            ..
        } => {
            let labels = labels()?;
            let found = read_orderings(path, &labels, loaded.table.filtered)?;
            left_out(path, found.unknown, "classes");
            Supervision::Orderings(
                Orderings::new(labels, found.orderings)
                    .with_context(|| path.display().to_string())?,
            )
        }
        Sources {
            taxonomy: Some(path),
            ..
        } => {
            let tree = read_taxonomy(path)?;
            Supervision::Taxonomy(
                Taxonomy::new(labels()?, tree).with_context(|| path.display().to_string())?,
            )
        }
        _ => Supervision::labels(labels()?),
    };
    Ok(Told {
        supervision,
        judged_by: None,
        units: all,
    })
}

/// The labels, or what could be given instead.
pub(crate) fn need_labels(loaded: &Loaded) -> Result<Labels> {
    match &loaded.labels {
        Some(labels) => Ok(labels.clone()),
        None => bail!(
            "what is similar? name the column of class labels with --label, give --queries, \
             --items and --qrels, or say what is near with --pairs, --triplets or --quadruplets"
        ),
    }
}

/// Pairs, triplets and quadruplets of a file's rows.
pub(crate) fn comparisons(
    compared: &Compared,
    loaded: &Loaded,
    columns: &Columns,
) -> Result<Comparisons> {
    let names = RowNames::new(&loaded.table, columns.id.as_deref())?;
    let mut said = Comparisons::new(loaded.table.corpus.len());
    if let Some(path) = &compared.pairs {
        let found = read_pairs(path, &names)?;
        left_out(path, found.unknown, "lines");
        said = said.with_pairs(&found.similar, &found.dissimilar)?;
    }
    if let Some(path) = &compared.triplets {
        let found = read_triplets(path, &names)?;
        left_out(path, found.unknown, "lines");
        said = said.with_triplets(&found.triplets)?;
    }
    if let Some(path) = &compared.quadruplets {
        let found = read_quadruplets(path, &names)?;
        left_out(path, found.unknown, "lines");
        said = said.with_quadruplets(&found.quadruplets)?;
    }
    Ok(said)
}

/// Judgements whose queries and items are rows of one file.
fn judgements_within(qrels: &Path, loaded: &Loaded, columns: &Columns) -> Result<Judgements> {
    let id = columns.id.as_deref();
    let id = id.context("--id must name the column of ids that the judgements speak of")?;
    ensure!(
        loaded.labels.is_none(),
        "--label and --qrels both say what is relevant: give one of them"
    );
    let ids = loaded.table.index(id)?;
    let found = read_qrels(qrels, &ids, &ids)?;
    left_out(
        qrels,
        found.unknown_queries + found.unknown_documents,
        "lines",
    );
    let rows = loaded.table.corpus.len();
    Judgements::within_one(rows, &found.judgements).with_context(|| qrels.display().to_string())
}

fn left_out(path: &Path, count: u64, what: &str) {
    if count > 0 {
        tracing::warn!(
            "{}: {count} {what} left out that speak of rows that were not read",
            path.display()
        );
    }
}
