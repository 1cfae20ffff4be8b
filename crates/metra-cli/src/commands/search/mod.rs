//! `metra search`: ranking of items for queries, in a file, in an index or in a table of PostgreSQL.

mod index;
#[cfg(feature = "postgres")]
mod postgres;

use crate::args::Common;
use crate::inputs::Columns;
use crate::inputs::{Loaded, embed, label, load, row_name};
use crate::interrupt::stoppable;
use crate::print;
use anyhow::{Result, ensure};
use clap::Args;
use metra::model::{Embedding, Model, Side};
use metra::search::top_k;
use metra_files::{Filter, NarrowingRule, TrecRun, write_run};
use metra_stores::index::LocalIndex;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Rank items for queries: exactly in a file, and as its index was made in a folder or a table.
#[derive(Args)]
pub(crate) struct Search {
    /// The model file
    model: PathBuf,
    /// The items to search (.parquet, .npy, .csv, .jsonl, …), a folder that `metra index` wrote, or
    /// postgres://… with --table
    items: PathBuf,
    #[command(flatten)]
    columns: Columns,
    /// File of query vectors (default: every item asks for its neighbours, itself left out)
    #[arg(long, value_name = "FILE")]
    query: Option<PathBuf>,
    /// Column of vectors in the file of --query, where it is not that of the items
    #[arg(long, value_name = "COLUMN", requires = "query")]
    query_vector: Option<String>,
    /// Keep only items with this value (column=value or column!=value; repeatable); not in a folder of `metra index`
    #[arg(long = "where", value_name = "FILTER")]
    filters: Vec<Filter>,
    /// Keep only queries of --query with this value (repeatable)
    #[arg(long, value_name = "FILTER", requires = "query")]
    where_queries: Vec<Filter>,
    /// Number of answers per query
    #[arg(short, default_value_t = 10)]
    k: usize,
    /// Write a TREC run here instead of printing
    #[arg(long, value_name = "FILE")]
    run: Option<PathBuf>,
    /// Compare with every item, although there is a graph
    #[arg(
        long,
        conflicts_with = "effort",
        help_heading = "In an index or a table"
    )]
    exact: bool,
    /// Candidates that a graph keeps on its way: more find more, and take longer (default: 64 in a
    /// folder, 256 there for models compared by dot or in blocks; 40 or k in a table, for bits as many as --rescore)
    #[arg(
        long,
        visible_alias = "ef-search",
        value_name = "N",
        help_heading = "In an index or a table"
    )]
    effort: Option<usize>,
    /// First answers that are put in order again: those of codes in a folder, of a column of bits, or with
    /// --rescore-vector (default: four times k and 100 at least)
    #[arg(long, value_name = "N", help_heading = "In an index or a table")]
    rescore: Option<usize>,
    /// Check only the lengths of a folder's files; without it their digests are checked, which reads all of them. For
    /// folders that nobody else writes to
    #[arg(long, help_heading = "In an index or a table")]
    trusted: bool,
    #[command(flatten)]
    table: InTable,
}

/// Where items are in a database.
#[derive(Args)]
struct InTable {
    /// The table (`docs` or `schema.docs`)
    #[arg(long, value_name = "TABLE", help_heading = POSTGRES)]
    table: Option<String>,
    /// The table's column of vectors
    #[arg(long, value_name = "COLUMN", help_heading = POSTGRES, default_value = "embedding")]
    table_vector: String,
    /// The table's column of ids
    #[arg(long, value_name = "COLUMN", help_heading = POSTGRES, default_value = "id")]
    table_id: String,
    /// The searched column holds unmapped items, and only queries are mapped; with --rescore-vector this is said of that column
    #[arg(long, help_heading = POSTGRES)]
    keep_items: bool,
    /// Second column of vectors, by which the first answers are ranked again
    #[arg(long, value_name = "COLUMN", help_heading = POSTGRES, requires = "rescore_model")]
    rescore_vector: Option<String>,
    /// Model that wrote the column of --rescore-vector
    #[arg(long, value_name = "MODEL", help_heading = POSTGRES, requires = "rescore_vector")]
    rescore_model: Option<PathBuf>,
}

const POSTGRES: &str = "In a table of PostgreSQL";

#[derive(Serialize)]
struct Answer {
    query: String,
    items: Vec<Hit>,
}

#[derive(Serialize)]
struct Hit {
    item: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    dissimilarity: f32,
}

/// A run that was written.
#[derive(Serialize)]
struct Written<'a> {
    queries: usize,
    run: &'a Path,
}

impl Search {
    pub(crate) fn run(&self, common: &Common) -> Result<()> {
        let model = Model::load(&self.model)?;
        let there = self.items.to_str().unwrap_or_default();
        let answers = if there.starts_with("postgres://") || there.starts_with("postgresql://") {
            #[cfg(not(feature = "postgres"))]
            return Err(crate::feature_off::without(
                "metra search postgres://…",
                "postgres",
            ));
            #[cfg(feature = "postgres")]
            self.in_table(there, &model, common)?
        } else if LocalIndex::is_at(&self.items) {
            self.in_index(&model, common)?
        } else {
            ensure!(
                self.effort.is_none() && !self.trusted,
                "--effort and --trusted are for a folder that `metra index` wrote, but {} is none",
                self.items.display()
            );
            self.in_file(&model, common)?
        };
        self.show(answers, common)
    }

    fn in_file(&self, model: &Model, common: &Common) -> Result<Vec<Answer>> {
        ensure!(
            self.query.is_some() || model.chain.query_preprocessing().is_none(),
            "queries are vectors of another model than items: name some with --query"
        );
        let items = load(
            &self.items,
            &self.columns,
            &[],
            &self.filters,
            NarrowingRule::of(model.narrowing.as_ref()),
            common,
        )?;
        let queries = match &self.query {
            Some(path) => Some(self.queries(path, model, common)?),
            None => None,
        };
        if let Some(queries) = &queries
            && model.chain.query_preprocessing().is_none()
        {
            queries.check_vectors_of(&items)?;
        }
        let gallery = embed(model, Side::Item, &items, common)?;
        let asking = queries.as_ref().unwrap_or(&items);
        let embedded = embed(model, Side::Query, asking, common)?;
        let found = top_k(
            model.chain.space(),
            &stoppable(embedded.corpus()),
            &stoppable(gallery.corpus()),
            self.k,
            queries.is_none(),
        )?;
        Ok((0..found.queries())
            .map(|query| Answer {
                query: row_name(asking, &self.columns, query as u64),
                items: (found.ids_of(query).iter().zip(found.scores_of(query)))
                    .map(|(item, score)| Hit {
                        item: row_name(&items, &self.columns, *item),
                        label: label(&items, *item),
                        dissimilarity: *score,
                    })
                    .collect(),
            })
            .collect())
    }

    fn queries(&self, path: &Path, model: &Model, common: &Common) -> Result<Loaded> {
        // A query file need not have labels: only its ids and groups are used.
        let columns = Columns {
            label: None,
            ..self.columns.of_queries(self.query_vector.as_deref())
        };
        let rule = NarrowingRule::of(model.narrowing.as_ref());
        load(path, &columns, &[], &self.where_queries, rule, common)
    }

    /// Print answers, or write them as a run.
    fn show(&self, answers: Vec<Answer>, common: &Common) -> Result<()> {
        if let Some(path) = &self.run {
            let mut run = TrecRun::default();
            for answer in answers {
                // A run's scores are larger for nearer items.
                let hits = answer.items.into_iter();
                let hits = hits
                    .map(|h| (h.item, -f64::from(h.dissimilarity)))
                    .collect();
                run.queries.insert(answer.query, hits);
            }
            write_run(path, &run, "metra")?;
            if common.json {
                return print::json(&Written {
                    queries: run.queries.len(),
                    run: path,
                });
            }
            return print::line(&format!(
                "{} queries in {}",
                run.queries.len(),
                path.display()
            ));
        }
        if common.json {
            return print::json(&answers);
        }
        for answer in &answers {
            if print::is_given_up() {
                break;
            }
            print::line(&format!("query {}", answer.query))?;
            for (rank, hit) in answer.items.iter().enumerate() {
                let label = hit.label.as_deref().unwrap_or("");
                let text = format!(
                    "{:>5}  {:<20} {:>12.6}  {label}",
                    rank + 1,
                    hit.item,
                    hit.dissimilarity
                );
                print::line(text.trim_end())?;
            }
        }
        Ok(())
    }
}
