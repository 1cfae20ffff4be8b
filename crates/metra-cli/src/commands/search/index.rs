//! `metra search` in a folder that `metra index` wrote.

use super::{Answer, Hit, Search, embed};
use crate::STOP;
use crate::args::Common;
use crate::commands::index::watch;
use crate::load::row_name;
use crate::progress::Reporter;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use metra::data::Interruptible;
use metra::metric::{Model, Side};
use metra_stores::index::{Ask, LocalIndex, Verify};
use std::path::Path;

/// How to search in an index.
#[derive(Args, Default)]
pub(super) struct InIndex {
    /// Candidates that the graph keeps on its way; more find more and take longer (default: 64;
    /// of models compared by dot or in blocks 256)
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "exact",
        help_heading = "In an index"
    )]
    effort: Option<usize>,
    /// Compare the lengths of the index's files and not their digests, which reads all of them; for
    /// folders that nobody else writes to
    #[arg(long, help_heading = "In an index")]
    trusted: bool,
}

impl InIndex {
    /// An error where an argument has no meaning: the items are a file.
    pub(super) fn refuse(&self, items: &Path) -> Result<()> {
        ensure!(
            self.effort.is_none() && !self.trusted,
            "--effort and --trusted are for a folder that `metra index` wrote, but {} is none",
            items.display()
        );
        Ok(())
    }
}

impl Search {
    pub(super) fn in_index(&self, model: &Model, common: &Common) -> Result<Vec<Answer>> {
        let folder = self.items.display();
        let query = self.query.as_deref().with_context(|| {
            format!(
                "{folder}: --query must name the queries: an index holds mapped items, which \
                     cannot ask"
            )
        })?;
        if !self.filters.is_empty() {
            bail!("{folder}: --where keeps items when they are indexed, not in an index");
        }
        let verify = match self.index.trusted {
            true => Verify::Lengths,
            false => Verify::Digests,
        };
        let mut reporter = Reporter::new();
        let index = LocalIndex::open(&self.items, verify, &mut watch(&mut reporter))?;
        reporter.finish();
        index.check_model(&self.model.display().to_string(), model)?;
        let ask = match (self.exact, self.index.effort) {
            (true, _) => Ask::Exact,
            (false, Some(effort)) => Ask::Approximate { effort },
            (false, None) => index.usual(),
        };
        let asking = self.queries(query, model, common)?;
        let embedded = embed(model, Side::Query, &asking, common)?;
        let queries = Interruptible::new(embedded.corpus(), &STOP);
        let found = index.search(&queries, self.k, ask)?;
        let mut answers = Vec::with_capacity(found.queries());
        for number in 0..found.queries() {
            let mut items = Vec::with_capacity(found.k);
            for (item, score) in found.ids_of(number).iter().zip(found.scores_of(number)) {
                items.push(Hit {
                    item: index.id(*item)?,
                    label: index.label(*item)?,
                    dissimilarity: *score,
                });
            }
            answers.push(Answer {
                query: row_name(&asking, &self.columns, number as u64),
                items,
            });
        }
        Ok(answers)
    }
}
