//! Judging a model on a table: queries that fit into memory against items that need not.

use crate::corpus::TableCorpus;
use crate::engine::Engine;
use crate::table::ShardedTable;
use crate::{Error, Result};
use metra::data::Corpus;
use metra::evaluate::{Evaluation, EvaluationOptions, matching_classes};
use metra::internal::Keys;
use metra::internal::{LabelledQueries, evaluate_distributed};
use metra::internal::{QueryBatch, hard_negatives, nearest};
use metra::linalg::{RowBuf, Rows};
use metra::model::{Model, Space};
use metra::search::Neighbours;
use metra::supervision::Labels;

/// Queries and items with their classes.
pub struct TableJudgement<'a> {
    items: TableCorpus<'a>,
    labels: Labels,
    queries: RowBuf,
    /// Class of each query among the items', where there is one.
    classes: Vec<Option<u32>>,
    clusters: Vec<u64>,
    /// Whether queries are the items themselves.
    within: bool,
}

/// Who ranks: a model, or the baseline: a space over untransformed vectors.
#[derive(Debug, Clone, Copy)]
pub enum Ranker<'a> {
    /// A model.
    Model(&'a Model),
    /// The untransformed vectors.
    Plain(Space),
}

impl Engine {
    /// Read the queries of a table and the classes of the items. Without a table of queries all
    /// items are, each against all others.
    pub fn judgement(
        &self,
        items: ShardedTable,
        queries: Option<&ShardedTable>,
        vectors: Option<&str>,
        label: &str,
    ) -> Result<TableJudgement<'_>> {
        let mut items = TableCorpus::new(self, items, vectors)?;
        let labels = items.labels(label)?;
        let asking = TableCorpus::new(self, queries.unwrap_or(items.table()).clone(), vectors)?;
        let mut rows = RowBuf::empty(asking.dim());
        asking.scan(0..asking.len(), &mut |_, block| {
            rows.extend(block);
            Ok(())
        })?;
        if rows.is_empty() {
            return Err(Error::table(asking.table().address(), "there is no query"));
        }
        let theirs = match queries {
            None => labels.clone(),
            Some(_) => Labels::from_names(&asking.names(label)?)?,
        };
        let matched = matching_classes(&theirs, &labels);
        let of = |class: &u32| matched.get(*class as usize).copied().flatten();
        Ok(TableJudgement {
            classes: theirs.of().iter().map(of).collect(),
            clusters: theirs.of().iter().map(|class| u64::from(*class)).collect(),
            within: queries.is_none(),
            queries: rows,
            items,
            labels,
        })
    }
}

impl TableJudgement<'_> {
    /// The queries' vectors as they are in the table.
    pub fn queries(&self) -> Rows<'_> {
        self.queries.rows()
    }

    /// Number of items.
    pub fn items(&self) -> u64 {
        self.items.len()
    }

    fn query_batch(&self, ranker: Ranker<'_>) -> Result<QueryBatch> {
        Ok(match ranker {
            Ranker::Model(model) => QueryBatch::through(model, &self.queries)?,
            Ranker::Plain(space) => QueryBatch::plain(space, &self.queries)?,
        })
    }

    fn own(&self) -> Option<Vec<u64>> {
        self.within
            .then(|| (0..self.queries.len() as u64).collect())
    }

    /// Rank all items for every query and measure the ranking, exactly.
    pub fn evaluate(
        &self,
        ranker: Ranker<'_>,
        options: &EvaluationOptions<'_>,
    ) -> Result<Evaluation> {
        let (classes, own) = (self.classes.clone(), self.own());
        let labelled = LabelledQueries::new(self.query_batch(ranker)?, classes, own)?;
        let keys = Keys::Class(self.labels.of());
        let evaluated = evaluate_distributed(&self.items, keys, &labelled, &self.clusters, options);
        Ok(evaluated?)
    }

    /// The `k` items nearest to every query.
    pub fn nearest(&self, ranker: Ranker<'_>, k: usize) -> Result<Neighbours> {
        Ok(nearest(
            &self.items,
            &self.query_batch(ranker)?,
            k,
            self.own(),
        )?)
    }

    /// The `k` items of other classes nearest to every query.
    pub fn hard_negatives(&self, ranker: Ranker<'_>, k: usize) -> Result<Neighbours> {
        let none = self.labels.classes() as u32;
        let classes = self.classes.iter().map(|class| class.unwrap_or(none));
        let keys = Keys::Class(self.labels.of());
        let query_batch = self.query_batch(ranker)?;
        let found = hard_negatives(&self.items, keys, &query_batch, k, classes.collect());
        Ok(found?)
    }
}
