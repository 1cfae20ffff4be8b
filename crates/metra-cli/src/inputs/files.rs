//! From files to what studies work on.

use super::args::{Columns, QrelsArgs};
use crate::args::Common;
use crate::interrupt;
use crate::progress::{Reporter, warn_once};
use anyhow::{Context, Result, anyhow, bail, ensure};
use metra::Dataset;
use metra::data::{Groups, RowId, SplitKind};
use metra::experiment::Protocol;
use metra::model::{Embedded, Model, Side, Step, embed_corpus};
use metra::supervision::{LabelSets, Labels, SharedLabels, Supervision};
use metra_files::{Column, Filter, NarrowingRule, Table, TableOptions, label_sets, read_table};
use std::path::Path;

/// One file of vectors with the columns asked for.
pub(crate) struct Loaded {
    pub(crate) table: Table,
    /// The label of every row.
    pub(crate) labels: Option<Labels>,
    /// The labels of every row, where it has several.
    pub(crate) label_sets: Option<LabelSets>,
    pub(crate) groups: Option<Groups>,
}

impl Loaded {
    /// An error where items are several vectors each, and these queries are not the same.
    pub(crate) fn check_vectors_of(&self, items: &Loaded) -> Result<()> {
        let (own, theirs) = (&self.table, &items.table);
        // Vectors that stand one behind the other in one column are as good as columns of their own.
        let is_one = own.vector_dims.is_empty() != theirs.vector_dims.is_empty();
        ensure!(
            own.vector_dims == theirs.vector_dims
                || (is_one && own.corpus.dim() == theirs.corpus.dim()),
            "{}: expected vectors of dimensions {} as of the items, but found {}: name a column for each with \
             --query-vector, the same one twice where it asks two (--query-vector vector,vector)",
            self.table.path.display(),
            dimensions(&items.table),
            dimensions(&self.table)
        );
        Ok(())
    }

    /// The label of every row, where labels were read; an error where a row has several.
    pub(crate) fn one_label(&self) -> Result<Option<&Labels>> {
        ensure!(
            self.label_sets.is_none(),
            "{}: --label gives several labels per row, but one is needed here",
            self.table.path.display()
        );
        Ok(self.labels.as_ref())
    }
}

/// Read a file with its label and camera columns.
pub(crate) fn load(
    path: &Path,
    columns: &Columns,
    extra: &[&str],
    filters: &[Filter],
    narrowing: NarrowingRule,
    common: &Common,
) -> Result<Loaded> {
    let mut wanted: Vec<String> = Vec::new();
    let label_columns = columns.labels()?;
    let named = [&columns.camera, &columns.id].into_iter().flatten();
    for name in (label_columns.iter().copied())
        .chain(named.map(String::as_str))
        .chain(extra.iter().copied())
    {
        if !wanted.iter().any(|w| w == name) {
            wanted.push(name.to_owned());
        }
    }
    let options = TableOptions {
        vector: columns.vector.clone(),
        columns: wanted,
        filters: filters.to_vec(),
        memory: common.memory,
        cache_dir: common.cache_dir(),
        narrowing,
        missing: columns.missing,
    };
    let mut reporter = Reporter::new();
    let name = path.file_name().unwrap_or(path.as_os_str());
    reporter.start(&format!("read {}", name.to_string_lossy()));
    let mut table = read_table(path, &options, &mut reporter.rows())?;
    reporter.finish();
    for note in &table.notes {
        warn_once(format!("{}: {note}", path.display()));
    }
    let (mut labels, mut several) = (None, None);
    if !label_columns.is_empty() {
        let found: Vec<(&str, &Column)> = (label_columns.iter())
            .map(|name| Ok((*name, table.column(name)?)))
            .collect::<Result<_>>()?;
        several = label_sets(
            &found,
            columns.label_separator.as_deref(),
            columns.label_grade,
        )?;
        if several.is_none() {
            ensure!(
                columns.label_grade == SharedLabels::default(),
                "{}: --label-grade is for several labels per row, but --label gives one",
                path.display()
            );
            labels = Some(found[0].1.to_labels()?);
        }
    }
    if let (Some(name), Some(labels)) = (&columns.label, &labels)
        && labels.len() >= 20
        && 3 * labels.singletons() > labels.len()
    {
        warn_once(format!(
            "{}: column {name}: {} different values in {} rows: an id or a measured quantity? Labels are \
             classes, of several rows each",
            path.display(),
            labels.classes(),
            labels.len()
        ));
    }
    if let Some(id) = &columns.id {
        table.check_unique(id)?;
    }
    let groups = match &columns.camera {
        Some(name) => Some(table.column(name)?.to_groups()),
        None => None,
    };
    // The labels hold all that their column said; of millions of rows one copy is enough.
    for name in label_columns {
        if columns.id.as_deref() != Some(name) && !extra.contains(&name) {
            table.columns.remove(name);
        }
    }
    Ok(Loaded {
        table,
        labels,
        label_sets: several,
        groups,
    })
}

/// Dimensions of the vectors of a row.
fn dimensions(table: &Table) -> String {
    match table.vector_dims.as_slice() {
        [] => table.corpus.dim().to_string(),
        several => listed(several),
    }
}

fn listed(dims: &[usize]) -> String {
    let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
    dims.join(" and ")
}

/// The files of a data set: items, and queries where they are apart.
pub(crate) struct Files {
    pub(crate) items: Loaded,
    pub(crate) queries: Option<Loaded>,
}

impl Files {
    /// One file, whose rows are queries and items.
    pub(crate) fn one(items: Loaded) -> Self {
        Files {
            items,
            queries: None,
        }
    }

    /// Queries and items that the arguments name; `None` where they name none. `extra` columns of the
    /// queries are kept.
    pub(crate) fn apart(
        qrels: &QrelsArgs,
        columns: &Columns,
        extra: &[&str],
        narrowing: &NarrowingRule,
        common: &Common,
    ) -> Result<Option<Self>> {
        let (Some(path), Some(items)) = (&qrels.queries, &qrels.items) else {
            return Ok(None);
        };
        if columns.id.is_none() {
            bail!("--id must name the column of ids that the judgements speak of");
        }
        let rule = narrowing.clone();
        let items = load(items, columns, &[], &qrels.where_items, rule, common)?;
        // Queries are narrowed as the items were, so that both lie in one space.
        let same = match (&items.table.narrowing, narrowing) {
            (Some(found), _) => NarrowingRule::Apply(found.clone()),
            // Vectors of another model are judged by themselves.
            (None, NarrowingRule::Judge) if qrels.two_spaces => NarrowingRule::Judge,
            (None, NarrowingRule::Judge) => NarrowingRule::None,
            (None, given) => given.clone(),
        };
        let columns = &columns.of_queries(qrels.query_vector.as_deref());
        let mut queries = load(path, columns, extra, &qrels.where_queries, same, common)?;
        if !qrels.two_spaces {
            queries.check_vectors_of(&items)?;
        }
        ensure!(
            !qrels.two_spaces || queries.table.narrowing == items.table.narrowing,
            "{}: queries are vectors of two models: expected values that f32 can hold without being moved or scaled",
            path.display()
        );
        // Means of groups are learned from items: queries must mean the same groups by the same numbers.
        if let (Some(own), Some(known)) = (&queries.groups, &items.groups) {
            let own = own.renumbered(known.names());
            queries.groups = Some(own.with_context(|| path.display().to_string())?);
        }
        Ok(Some(Files {
            items,
            queries: Some(queries),
        }))
    }

    /// The table whose rows are split: that of queries where they are apart.
    pub(crate) fn unit_table(&self) -> &Loaded {
        self.queries.as_ref().unwrap_or(&self.items)
    }

    /// An error about a row of the one file, with the file and the place in it.
    pub(crate) fn locate(&self, error: anyhow::Error) -> anyhow::Error {
        match (error.downcast::<metra::Error>(), &self.queries) {
            (Ok(error), None) => in_file(error, &self.items),
            (Ok(error), Some(_)) => error.into(),
            (Err(error), _) => error,
        }
    }
}

/// An error about a row of this file, with the file and the place in it: where rows were filtered
/// away, or counted by lines, the library's number is not the one a user can look up.
pub(crate) fn in_file(error: metra::Error, loaded: &Loaded) -> anyhow::Error {
    let table = &loaded.table;
    let path = table.path.display();
    match error {
        metra::Error::Cell {
            row,
            column,
            problem,
        } => anyhow!("{path}: {}, column {column}: {problem}", table.place(row)),
        metra::Error::Row { row, problem } => anyhow!("{path}: {}: {problem}", table.place(row)),
        error => error.into(),
    }
}

/// Groups numbered as a model knows them, where it needs them.
pub(crate) fn model_groups(model: &Model, loaded: &Loaded) -> Result<Option<Groups>> {
    let Some(names) = model.chain.group_names() else {
        return Ok(None);
    };
    let Some(groups) = &loaded.groups else {
        bail!(
            "the model subtracts the mean of each vector's group ({}): name the column with \
             --camera",
            names.join(", ")
        );
    };
    Ok(Some(groups.renumbered(names).with_context(|| {
        loaded.table.path.display().to_string()
    })?))
}

/// An error where the columns of several vectors are not those that a model was trained with, as far as dimensions tell.
pub(crate) fn check_vectors(model: &Model, loaded: &Loaded) -> Result<()> {
    let found = &loaded.table.vector_dims;
    let mut steps = model.chain.steps().iter();
    let expected = steps.find_map(|step| match step {
        Step::NormaliseEach { dims } => Some(dims),
        _ => None,
    });
    if let Some(expected) = expected.filter(|expected| !found.is_empty() && found != *expected) {
        bail!(
            "{}: the model was trained with vectors of dimensions {} in this order, but the columns have {}",
            loaded.table.path.display(),
            listed(expected),
            listed(found)
        );
    }
    Ok(())
}

/// A file's rows mapped by a model.
pub(crate) fn embed(
    model: &Model,
    side: Side,
    loaded: &Loaded,
    common: &Common,
) -> Result<Embedded> {
    check_vectors(model, loaded)?;
    let groups = model_groups(model, loaded)?;
    let corpus = interrupt::stoppable(loaded.table.corpus.as_ref());
    let storage = common.storage();
    embed_corpus(&model.chain, side, &corpus, groups.as_ref(), &storage)
        .map_err(|e| in_file(e, loaded))
}

/// The name of a row's class, or those of its labels, where labels were read.
pub(crate) fn label(loaded: &Loaded, row: RowId) -> Option<String> {
    if let Some(sets) = &loaded.label_sets {
        return Some(sets.labels_of(row).join(", "));
    }
    let labels = loaded.labels.as_ref()?;
    let class = labels.of().get(row as usize)?;
    Some(labels.name(*class).to_owned())
}

/// The name by which a split knows each unit: its label, its row in the file or its query id.
pub(crate) fn split_names(
    by: SplitKind,
    data: &Dataset<'_>,
    table: &Loaded,
    columns: &Columns,
) -> Result<Vec<String>> {
    let labels = data.labels();
    Ok(match (by, data.supervision(), labels) {
        (SplitKind::Label, _, Some(labels)) => labels
            .of()
            .iter()
            .map(|class| labels.name(*class).to_owned())
            .collect(),
        (SplitKind::Row, _, Some(_)) | (SplitKind::Row, Supervision::LabelSets(_), _) => {
            (0..data.supervision().queries())
                .map(|row| file_row(table, row).to_string())
                .collect()
        }
        (SplitKind::Query, Supervision::Judgements(_), _) => {
            let id = columns
                .id
                .as_deref()
                .context("--id is needed for splits by query")?;
            table
                .table
                .column(id)?
                .iter()
                .map(|name| name.into_owned())
                .collect()
        }
        (by, supervision, _) => {
            bail!(
                "the splits are by {by:?}, which does not fit {}",
                supervision.describe()
            )
        }
    })
}

/// The protocol asked for, or the one that fits the supervision.
pub(crate) fn protocol_for(
    requested: Option<Protocol>,
    repeats: u32,
    supervision: &Supervision,
) -> Protocol {
    match (requested, supervision) {
        (Some(Protocol::SingleShot { .. }), _) => Protocol::SingleShot { repeats },
        (Some(protocol), _) => protocol,
        (None, supervision) => Protocol::default_for(supervision),
    }
}

/// A row's id, or its number in the file where there are no ids, so that it can be looked up there.
pub(crate) fn row_name(loaded: &Loaded, columns: &Columns, row: RowId) -> String {
    match columns
        .id
        .as_ref()
        .and_then(|id| loaded.table.columns.get(id))
    {
        Some(ids) => ids.get(row as usize).into_owned(),
        None => file_row(loaded, row).to_string(),
    }
}

fn file_row(loaded: &Loaded, row: RowId) -> u64 {
    loaded
        .table
        .rows
        .as_ref()
        .map_or(row, |rows| rows[row as usize])
}
