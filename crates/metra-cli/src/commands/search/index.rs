//! `metra search` in a folder that `metra index` wrote.

use super::{Answer, Hit, Search};
use crate::args::Common;
use crate::inputs::embed;
use crate::inputs::row_name;
use crate::interrupt::STOP;
use crate::progress::{Reporter, index_progress};
use anyhow::{Context, Result, bail};
use metra::internal::Interruptible;
use metra::model::{Model, Side};
use metra_stores::index::{Ask, LocalIndex, Verify};

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
        let verify = match self.trusted {
            true => Verify::Lengths,
            false => Verify::Digests,
        };
        let mut reporter = Reporter::new();
        let index = LocalIndex::open(&self.items, verify, &mut index_progress(&mut reporter))?;
        reporter.finish();
        let query_model = index.query_model(&self.model.display().to_string(), model)?;
        if index.is_coded() && self.effort.is_some() {
            bail!(
                "{folder}: --effort is for a graph, and this index has codes: --rescore says how many first answers are \
                   put in order"
            );
        }
        let ask = match (self.exact, self.effort) {
            (true, _) => Ask::Exact,
            (false, Some(effort)) => Ask::Approximate { effort },
            (false, None) => match (index.usual(self.k), self.rescore) {
                (Ask::Approximate { .. }, Some(0)) if index.is_coded() => {
                    bail!("--rescore must be at least 1, but is 0")
                }
                (Ask::Approximate { .. }, Some(effort)) if index.is_coded() => {
                    Ask::Approximate { effort }
                }
                (usual, _) => usual,
            },
        };
        let asking = self.queries(query, model, common)?;
        let embedded = embed(&query_model, Side::Query, &asking, common)?;
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
