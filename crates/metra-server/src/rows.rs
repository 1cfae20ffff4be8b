//! Rows of requests and of files, as a model takes them, and what it makes of them.

use crate::options::VectorFile;
use crate::refusal::Refusal;
use crate::{Error, Result};
use metra::data::{Batch, Groups};
use metra::internal::check_mapped;
use metra::linalg::RowBuf;
use metra::model::{Embedding, Model, Side};
use metra_files::{Column, NarrowingRule, TableOptions, read_table};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Which map of a model a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SideName {
    /// That of queries.
    Query,
    /// That of items.
    Item,
}

/// Map rows; every number of the answer is finite.
pub(crate) fn embed(
    embedding: &dyn Embedding,
    side: Side,
    rows: &RowBuf,
    groups: Option<&Groups>,
) -> metra::Result<RowBuf> {
    let batch = Batch {
        rows: rows.rows(),
        groups: groups.map(Groups::of),
    };
    let mut out = RowBuf::empty(embedding.output_dim());
    match side {
        Side::Query => embedding.embed_queries(0, &batch, &mut out)?,
        Side::Item => embedding.embed_items(0, &batch, &mut out)?,
    }
    (0..)
        .zip(out.rows().iter())
        .try_for_each(|(row, values)| check_mapped(row, values))?;
    Ok(out)
}

/// The groups of rows, numbered as the model knows them.
pub(crate) fn groups_of(
    model: &Model,
    (field, groups): (&str, Option<&[String]>),
    rows: usize,
) -> Result<Option<Groups>, Refusal> {
    let Some(names) = model.chain.group_names() else {
        return Ok(None);
    };
    match groups {
        Some(groups) if groups.len() == rows => Ok(Some(Groups::new(groups).renumbered(names)?)),
        Some(groups) => Err(Refusal::bad(format!(
            "expected {field:?} to have one name for each of {rows} vectors, but found {}",
            groups.len()
        ))),
        None => Err(Refusal::bad(format!(
            "expected {field:?} with the group of each vector, whose mean the model subtracts: one of {}",
            names.join(", ")
        ))),
    }
}

/// Vectors of a file that belongs to a model.
pub(crate) struct VectorRows {
    pub(crate) rows: RowBuf,
    pub(crate) groups: Option<Groups>,
    /// The columns that were asked for.
    pub(crate) columns: BTreeMap<String, Column>,
}

impl VectorRows {
    /// Read the queries of a file, and these columns beside them.
    pub(crate) fn read(source: &VectorFile, columns: &[&String], model: &Model) -> Result<Self> {
        let path = &source.file;
        let wrong = |problem: String| Error::file(path, problem);
        let options = TableOptions {
            vector: source.vector.clone(),
            columns: columns
                .iter()
                .copied()
                .chain(&source.camera)
                .cloned()
                .collect(),
            narrowing: NarrowingRule::of(model.narrowing.as_ref()),
            ..TableOptions::default()
        };
        let table = read_table(path, &options, &mut |_, _| {})?;
        let (dim, found) = (model.query_input_dim(), table.corpus.dim());
        if dim != found {
            let problem = format!("expected vectors of {dim} dimensions, but found {found}");
            return Err(wrong(problem));
        }
        let all: Vec<u64> = (0..table.corpus.len()).collect();
        let mut rows = RowBuf::empty(dim);
        let read = table.corpus.gather(&all, &mut rows);
        read.map_err(|e| wrong(e.to_string()))?;
        let names = source.camera.as_ref().map(|camera| {
            let column = table.columns[camera].iter();
            column.map(Cow::into_owned).collect::<Vec<String>>()
        });
        let groups = groups_of(model, ("camera", names.as_deref()), rows.len());
        Ok(VectorRows {
            groups: groups.map_err(|refusal| wrong(refusal.message))?,
            rows,
            columns: table.columns,
        })
    }
}
