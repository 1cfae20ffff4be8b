//! Embeds a whole corpus: in memory if it fits, otherwise into a memory-mapped file.

use super::Embedding;
use crate::data::corpus::check_mapped;
use crate::data::{Batch, Corpus, Groups, MappedCorpus, MemoryCorpus, Spool, Storage};
use crate::linalg::RowBuf;
use crate::{Error, Result};

/// Which map of an embedding to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// That of queries.
    Query,
    /// That of items.
    Item,
}

/// An embedded corpus.
pub enum Embedded {
    /// In memory.
    Memory(MemoryCorpus),
    /// In a file that goes with it.
    Mapped(MappedCorpus),
}

impl Embedded {
    /// The corpus.
    pub fn corpus(&self) -> &dyn Corpus {
        match self {
            Embedded::Memory(corpus) => corpus,
            Embedded::Mapped(corpus) => corpus,
        }
    }
}

/// Embed all rows. `groups` are those of the rows, numbered as the embedding knows them.
pub fn embed_corpus(
    embedding: &dyn Embedding,
    side: Side,
    corpus: &dyn Corpus,
    groups: Option<&Groups>,
    storage: &Storage,
) -> Result<Embedded> {
    let dim = embedding.output_dim();
    let bytes = corpus.len().saturating_mul(dim as u64 * 4);
    if bytes <= storage.memory {
        let mut all = RowBuf::empty(dim);
        for_each_embedded(embedding, side, corpus, groups, &mut |rows| {
            all.extend(rows.rows());
            Ok(())
        })?;
        return Ok(Embedded::Memory(MemoryCorpus::new(all)?));
    }
    let mut spool = Spool::new(&storage.folder, dim)?;
    for_each_embedded(embedding, side, corpus, groups, &mut |rows| {
        spool.push(rows.rows())
    })?;
    Ok(Embedded::Mapped(spool.finish()?))
}

/// Embed all rows, a block at a time.
pub fn for_each_embedded(
    embedding: &dyn Embedding,
    side: Side,
    corpus: &dyn Corpus,
    groups: Option<&Groups>,
    visit: &mut dyn FnMut(&RowBuf) -> Result<()>,
) -> Result<()> {
    if let Some(groups) = groups
        && groups.len() as u64 != corpus.len()
    {
        return Err(Error::shape(
            "groups of the rows",
            corpus.len(),
            groups.len(),
        ));
    }
    let mut out = RowBuf::empty(embedding.output_dim());
    corpus.scan(0..corpus.len(), &mut |first, rows| {
        let at = first as usize;
        let batch = Batch {
            rows,
            groups: groups.map(|g| &g.of()[at..at + rows.len()]),
        };
        let outcome = match side {
            Side::Query => embedding.embed_queries(first, &batch, &mut out),
            Side::Item => embedding.embed_items(first, &batch, &mut out),
        };
        outcome
            .and_then(|()| {
                let mapped = out.rows();
                (first..)
                    .zip(mapped.iter())
                    .try_for_each(|(row, values)| check_mapped(row, values))
            })
            .map_err(|e| e.renumbered(|row| corpus.origin(row)))?;
        visit(&out)
    })
}
