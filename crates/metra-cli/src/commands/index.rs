//! `metra index`: items through a model into a folder that `metra search` reads.

use crate::args::Common;
use crate::inputs::Columns;
use crate::inputs::{in_file, load, model_groups, narrowing_of, row_name};
use crate::interrupt;
use crate::print;
use crate::progress::{Reporter, index_progress};
use anyhow::Result;
use clap::Args;
use metra::model::{Model, Side, for_each_embedded};
use metra_files::Filter;
use metra_stores::index::{
    EXACT_ITEMS, GraphFacts, GraphSettings, HAS_GRAPH, IndexWriter, Manifest,
};
use serde::Serialize;
use std::path::PathBuf;

/// Write an index of mapped items, to search without a vector store.
///
/// Up to a million items search is exact. Beyond, or with --approximate, a graph finds candidates,
/// which are then ranked by the metric itself.
#[derive(Args)]
pub(crate) struct Index {
    /// The model file
    model: PathBuf,
    /// The items (.parquet, .npy, .csv, .tsv)
    items: PathBuf,
    #[command(flatten)]
    columns: Columns,
    /// Keep only items with this value (column=value or column!=value; repeatable)
    #[arg(long = "where", value_name = "FILTER")]
    filters: Vec<Filter>,
    /// Folder to write; it must not exist yet
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
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

#[derive(Serialize)]
struct Done {
    items: u64,
    dim: usize,
    score: String,
    graph: Option<GraphFacts>,
    bytes: u64,
    output: PathBuf,
}

impl Index {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        let model = Model::load(&self.model)?;
        let name = self.model.display().to_string();
        let mut writer = IndexWriter::create(&self.output, &model, &name)?;
        let rule = narrowing_of(model.narrowing.as_ref());
        let items = load(&self.items, &self.columns, &[], &self.filters, rule, common)?;
        let groups = model_groups(&model, &items)?;
        let rows = items.table.corpus.len();
        let mut reporter = Reporter::new();
        reporter.start("map");
        let corpus = items.table.corpus.as_ref();
        for_each_embedded(
            &model.chain,
            Side::Item,
            corpus,
            groups.as_ref(),
            &mut |block| {
                interrupt::check()?;
                writer.push(block.rows())?;
                reporter.advance(writer.rows(), Some(rows), || "items".into());
                Ok(())
            },
        )
        .map_err(|e| in_file(e, &items))?;
        // Row numbers of the whole file are names as well where rows were left out.
        if self.columns.id.is_some() || items.table.rows.is_some() {
            writer.ids((0..rows).map(|row| row_name(&items, &self.columns, row)))?;
        }
        if let Some(labels) = &items.labels {
            writer.labels(labels.of().iter().map(|class| labels.name(*class)))?;
        }
        // The mapped items are all that is needed from here on.
        drop(items);
        let settings = GraphSettings {
            connections: self.connections,
            build_effort: self.effort,
            parallel: self.parallel,
        };
        let graph = self.wants_graph(rows).then_some(&settings);
        let manifest = writer.finish(graph, &mut index_progress(&mut reporter))?;
        reporter.finish();
        self.say(&manifest, common)
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
            graph: manifest.graph.clone(),
            bytes: manifest.files.values().map(|file| file.bytes).sum(),
            output: self.output.clone(),
        };
        if common.json {
            return print::json(&done);
        }
        let how = match &done.graph {
            Some(graph) => format!(
                "approximate search by a graph of {} connections",
                graph.connections
            ),
            None => "exact search".into(),
        };
        print::line(&format!(
            "{} items of {} numbers in {} ({} MB), compared by {}: {how}",
            print::count(done.items),
            done.dim,
            done.output.display(),
            print::count(done.bytes.div_ceil(1 << 20)),
            done.score
        ))
    }
}
