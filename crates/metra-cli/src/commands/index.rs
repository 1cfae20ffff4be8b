//! `metra index`: items through a model into a folder that `metra search` reads.

use crate::args::Common;
use crate::inputs::Columns;
use crate::inputs::{in_file, load, model_groups, row_name};
use crate::interrupt;
use crate::print;
use crate::progress::{Reporter, index_progress};
use anyhow::{Result, ensure};
use clap::Args;
use metra::model::{Model, Side, for_each_embedded};
use metra_files::{Filter, NarrowingRule};
use metra_stores::index::{
    EXACT_ITEMS, GraphFacts, GraphSettings, HAS_GRAPH, IndexWriter, LocalIndex, Manifest, Verify,
};
use serde::Serialize;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Write an index of mapped items, to search without a vector store.
///
/// Up to a million items search is exact (codes apart). Beyond, or with --approximate, a graph finds candidates,
/// which are then ranked by the metric itself. Items of a model with a code are held as codes.
#[derive(Args)]
pub(crate) struct Index {
    /// The model file
    model: PathBuf,
    /// The items (.parquet, .npy, .csv, .jsonl, …)
    items: PathBuf,
    #[command(flatten)]
    columns: Columns,
    /// Keep only items with this value (column=value or column!=value; repeatable)
    #[arg(long = "where", value_name = "FILTER")]
    filters: Vec<Filter>,
    /// Folder to write; it must not exist yet
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// An index of the same model whose items are put in front of these; it stays as it is
    #[arg(long, value_name = "DIR")]
    add_to: Option<PathBuf>,
    /// Of a model with a code, keep the vectors before it on disk, too, and put first answers in order by them
    #[arg(long)]
    rescore: bool,
    /// Build a graph, however few the items are
    #[arg(long, conflicts_with = "exact")]
    approximate: bool,
    /// Build no graph, however many the items are
    #[arg(long, conflicts_with_all = ["connections", "effort", "parallel"])]
    exact: bool,
    /// Neighbours that an item is linked to; more find more and take more room
    #[arg(long, value_name = "N", default_value_t = GraphSettings::default().connections, help_heading = "The graph")]
    connections: usize,
    /// Candidates kept while it is linked; more find more and take longer
    #[arg(long, value_name = "N", default_value_t = GraphSettings::default().build_effort, help_heading = "The graph")]
    effort: usize,
    /// Build with all threads: quicker, but not the same bytes every time
    #[arg(long, help_heading = "The graph")]
    parallel: bool,
}

/// The ids of an index and those of more items, which must be others.
fn joined_ids(former: &LocalIndex, more: impl Iterator<Item = String>) -> Result<Vec<String>> {
    let old = (0..former.manifest().rows).map(|item| former.id(item));
    let mut ids = old.collect::<metra_stores::Result<Vec<String>>>()?;
    let mut known: HashSet<String> = ids.iter().cloned().collect();
    for id in more {
        ensure!(
            known.insert(id.clone()),
            "--add-to: the index has an item {id:?} already"
        );
        ids.push(id);
    }
    Ok(ids)
}

#[derive(Serialize)]
struct Done {
    items: u64,
    dim: usize,
    score: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    rescored: bool,
    graph: Option<GraphFacts>,
    bytes: u64,
    output: PathBuf,
}

impl Index {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        let model = Model::load(&self.model)?;
        let name = self.model.display().to_string();
        let code = model.chain.code();
        ensure!(
            code.is_some() || !self.rescore,
            "--rescore is for models with a code (metra train --code), but {name} has none: its answers are by the \
             vectors themselves"
        );
        ensure!(
            code.is_none() || !self.approximate,
            "--approximate is for models without a code: a graph has its own copy of the vectors in f32"
        );
        let mut writer = IndexWriter::create(&self.output, &model, &name)?;
        if self.rescore {
            writer = writer.keep_vectors()?;
        }
        let mut reporter = Reporter::new();
        let former = match &self.add_to {
            Some(folder) => Some(self.former(folder, &model, &mut writer, &mut reporter)?),
            None => None,
        };
        let rule = NarrowingRule::of(model.narrowing.as_ref());
        let items = load(&self.items, &self.columns, &[], &self.filters, rule, common)?;
        let labels = items.one_label()?;
        let groups = model_groups(&model, &items)?;
        let rows = items.table.corpus.len();
        let all = writer.rows() + rows;
        reporter.start("map");
        let corpus = items.table.corpus.as_ref();
        let uncoded = model.chain.clone().with_code(None)?;
        for_each_embedded(
            &uncoded,
            Side::Item,
            corpus,
            groups.as_ref(),
            &mut |block| {
                interrupt::check()?;
                writer.push(block.rows())?;
                reporter.advance(writer.rows(), Some(all), || "items".into());
                Ok(())
            },
        )
        .map_err(|e| in_file(e, &items))?;
        // Row numbers of the whole file are names as well where rows were left out.
        let named = self.columns.id.is_some() || items.table.rows.is_some();
        let ids = (0..rows).map(|row| row_name(&items, &self.columns, row));
        let labels = labels.map(|labels| labels.of().iter().map(|class| labels.name(*class)));
        match &former {
            None => {
                if named {
                    writer.ids(ids)?;
                }
                if let Some(labels) = labels {
                    writer.labels(labels)?;
                }
            }
            Some(former) => {
                ensure!(
                    former.has_ids() == named && former.label(0)?.is_some() == labels.is_some(),
                    "--add-to: expected ids and labels as the items of the index have them (--id, --label)"
                );
                if named {
                    writer.ids(joined_ids(former, ids)?)?;
                }
                if let Some(labels) = labels {
                    let old = (0..former.manifest().rows).map(|item| former.label(item));
                    let old = old.map(|label| Ok(label?.unwrap_or_default()));
                    let mut all = old.collect::<Result<Vec<String>>>()?;
                    all.extend(labels.map(str::to_owned));
                    writer.labels(all)?;
                }
            }
        }
        // The mapped items are all that is needed from here on.
        drop(items);
        let settings = GraphSettings {
            connections: self.connections,
            build_effort: self.effort,
            parallel: self.parallel,
        };
        let graph = (model.chain.code().is_none() && self.wants_graph(all)).then_some(&settings);
        let manifest = writer.finish(graph, &mut index_progress(&mut reporter))?;
        reporter.finish();
        self.say(&manifest, common)
    }

    /// Put the items of another index in front.
    fn former(
        &self,
        folder: &Path,
        model: &Model,
        writer: &mut IndexWriter,
        reporter: &mut Reporter,
    ) -> Result<LocalIndex> {
        let former = LocalIndex::open(folder, Verify::Digests, &mut index_progress(reporter))?;
        former.check_model(&self.model.display().to_string(), model)?;
        writer.append(&former, &interrupt::check)?;
        Ok(former)
    }

    fn wants_graph(&self, rows: u64) -> bool {
        if self.exact || (rows <= EXACT_ITEMS && !self.approximate) {
            return false;
        }
        if !self.approximate && !HAS_GRAPH {
            tracing::warn!(
                "this build has no approximate index (feature `index`): search will compare every \
                 query with all {} items",
                print::count(rows)
            );
            return false;
        }
        true
    }

    fn say(&self, manifest: &Manifest, common: &Common) -> Result<()> {
        let done = Done {
            items: manifest.rows,
            dim: manifest.dim,
            score: manifest.space.clone(),
            code: manifest.code.clone(),
            rescored: self.rescore,
            graph: manifest.graph.clone(),
            bytes: manifest.files.values().map(|file| file.bytes).sum(),
            output: self.output.clone(),
        };
        if common.json {
            return print::json(&done);
        }
        let how = match (&done.graph, &done.code) {
            (None, Some(code)) if done.rescored => {
                format!("items as {code}, first answers put in order by the vectors before it")
            }
            (None, Some(code)) => format!("items as {code}"),
            (Some(graph), _) => format!(
                "approximate search by a graph of {} connections",
                graph.connections
            ),
            (None, None) => "exact search".into(),
        };
        print::line(&format!(
            "{} items of dimension {} in {} ({} MB), compared by {}: {how}",
            print::count(done.items),
            done.dim,
            done.output.display(),
            print::count(done.bytes.div_ceil(1 << 20)),
            done.score
        ))
    }
}
