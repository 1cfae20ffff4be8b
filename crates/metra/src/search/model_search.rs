//! The model's methods for embedding items and queries, and for exact search.

use super::top_k::{Neighbours, top_k};
use crate::Result;
use crate::data::{Corpus, IntoCorpus, Storage};
use crate::model::{Embedded, Embedding, Model, Side, embed_corpus};

impl Model {
    /// Items as a vector store holds them.
    pub fn embed_items<'a>(&self, items: impl IntoCorpus<'a>) -> Result<Embedded> {
        self.embed(Side::Item, &*items.into_corpus()?)
    }

    /// Queries as a vector store is asked.
    pub fn embed_queries<'a>(&self, queries: impl IntoCorpus<'a>) -> Result<Embedded> {
        self.embed(Side::Query, &*queries.into_corpus()?)
    }

    fn embed(&self, side: Side, corpus: &dyn Corpus) -> Result<Embedded> {
        embed_corpus(&self.chain, side, corpus, None, &Storage::default())
    }

    /// The `k` nearest items of every query, by exact search.
    pub fn search<'a>(
        &self,
        items: impl IntoCorpus<'a>,
        queries: impl IntoCorpus<'a>,
        k: usize,
    ) -> Result<Neighbours> {
        let (items, queries) = (self.embed_items(items)?, self.embed_queries(queries)?);
        top_k(
            self.chain.space(),
            queries.corpus(),
            items.corpus(),
            k,
            false,
        )
    }
}
