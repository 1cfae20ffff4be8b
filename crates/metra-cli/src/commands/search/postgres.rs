//! `metra search` in a table of PostgreSQL: queries from a file go through the plan by which the column was
//! written, and the server ranks.

use super::{Answer, Hit, Search};
use crate::args::Common;
use crate::inputs::{in_file, model_groups, row_name};
use crate::interrupt::STOP;
use crate::postgres_filters;
use crate::progress::Reporter;
use anyhow::{Context, Result};
use metra::linalg::RowBuf;
use metra::model::{Model, Plan, Side, for_each_embedded};
use metra_stores::postgres::{Address, SearchedColumn, Searching};
use std::path::Path;

impl Search {
    /// What the server finds for every query of the file.
    pub(super) fn in_table(
        &self,
        address: &str,
        model: &Model,
        common: &Common,
    ) -> Result<Vec<Answer>> {
        let address = Address::parse(address)?;
        let (query, table) = (self.query.as_ref(), self.table.table.as_ref());
        let query = query.context("--query must name the file of query vectors")?;
        let table = table.context("--table must name the table that holds the items")?;
        let fine = match &self.table.rescore_model {
            Some(path) => Some(Model::load(path)?),
            None => None,
        };
        let column = |name: &str, model, keep_items| SearchedColumn {
            name: name.to_owned(),
            model,
            keep_items,
        };
        let keep_items = self.table.keep_items;
        let what = Searching {
            table: table.parse()?,
            id: self.table.table_id.clone(),
            column: column(
                &self.table.table_vector,
                model,
                keep_items && fine.is_none(),
            ),
            rescoring: (fine.as_ref().zip(self.table.rescore_vector.as_ref()))
                .map(|(model, name)| column(name, model, keep_items)),
            candidates: self.rescore,
            label: self.columns.label.clone(),
            conditions: postgres_filters::conditions(&self.filters),
            k: self.k,
            exact: self.exact,
            ef_search: self.effort,
        };
        let mut search = metra_stores::postgres::Search::open(&address, &what)?;
        let queries = self.queries(query, model, common)?;
        let groups = model_groups(model, &queries)?;
        let corpus = queries.table.corpus.as_ref();
        let fine = match (search.rescoring_plan(), &fine) {
            (Some(plan), Some(model)) => Some(self.mapped(query, model, plan, common)?),
            _ => None,
        };
        let mut reporter = Reporter::new();
        reporter.start("search");
        let (mut answers, mut failure) = (Vec::new(), None);
        let plan = search.plan().clone();
        let outcome =
            for_each_embedded(&plan, Side::Query, corpus, groups.as_ref(), &mut |block| {
                // In small parts, so that a long search says how far it is.
                for start in (0..block.len()).step_by(PART) {
                    let part = block.rows().slice(start, (start + PART).min(block.len()));
                    let from = answers.len();
                    let fine =
                        (fine.as_ref()).map(|rows| rows.rows().slice(from, from + part.len()));
                    match search.nearest(part, fine, &STOP) {
                        Ok(found) => answers.extend(found),
                        Err(error) => {
                            failure = Some(error);
                            return Err(metra::Error::Interrupted);
                        }
                    }
                    let done = answers.len() as u64;
                    reporter.advance(done, Some(corpus.len()), || "queries".into());
                }
                Ok(())
            });
        if let Some(error) = failure {
            return Err(error.into());
        }
        outcome.map_err(|e| in_file(e, &queries))?;
        reporter.finish();
        let few = answers.iter().filter(|hits| hits.len() < self.k).count();
        if few > 0 && !what.exact {
            tracing::warn!(
                "{few} queries have fewer than {} items: the table or the index has no more to give \
                 (--exact looks at all, --effort at more)",
                self.k
            );
        }
        let named = answers.into_iter().enumerate().map(|(row, hits)| Answer {
            query: row_name(&queries, &self.columns, row as u64),
            items: (hits.into_iter())
                .map(|hit| Hit {
                    item: hit.id,
                    label: hit.label,
                    dissimilarity: hit.dissimilarity,
                })
                .collect(),
        });
        Ok(named.collect())
    }

    /// All queries of the file by a plan.
    fn mapped(&self, query: &Path, model: &Model, plan: &Plan, common: &Common) -> Result<RowBuf> {
        let queries = self.queries(query, model, common)?;
        let groups = model_groups(model, &queries)?;
        let corpus = queries.table.corpus.as_ref();
        let mut all = RowBuf::empty(plan.query_dim());
        let mut keep = |block: &RowBuf| {
            all.extend(block.rows());
            Ok(())
        };
        for_each_embedded(plan, Side::Query, corpus, groups.as_ref(), &mut keep)
            .map_err(|e| in_file(e, &queries))?;
        Ok(all)
    }
}

/// Queries between two looks at the clock.
const PART: usize = 16;
