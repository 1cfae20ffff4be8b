//! Truth without supervision: the nearest neighbours of the vectors as they are.

use crate::data::{Corpus, CorpusRef, RowId, Storage, Subset};
use crate::dataset::Dataset;
use crate::model::Space;
use crate::random::Stream;
use crate::search::top_k;
use crate::supervision::Judgement;
use crate::{Error, Result};
use std::sync::atomic::AtomicBool;

/// Queries drawn from the rows, at most.
const MOST_QUERIES: u64 = 2_000;

/// A data set in which some rows, drawn by the seed, are queries and the `k` nearest of the others, as the vectors
/// are, are what each should find.
pub fn neighbour_dataset<'a>(
    corpus: &'a dyn Corpus,
    space: Space,
    k: usize,
    seed: u64,
    (storage, stop): (Storage, &'a AtomicBool),
) -> Result<Dataset<'a>> {
    let rows = corpus.len();
    let count = MOST_QUERIES.min(rows / 5);
    if rows - count < 2 * k as u64 || count < 10 {
        let expected = format!("at least {} to find neighbours among", (5 * k).max(50));
        return Err(Error::shape("rows", expected, rows));
    }
    let queries = Stream::new(seed, "neighbour queries", 0).choose(rows, count as usize);
    let is_query = |row: &RowId| queries.binary_search(row).is_ok();
    let items: Vec<RowId> = (0..rows).filter(|row| !is_query(row)).collect();
    let (items, queries) = (Subset::new(corpus, items)?, Subset::new(corpus, queries)?);
    let nearest = top_k(space, &queries, &items, k, false)?;
    let judgements = (0..count).flat_map(|query| {
        let found = nearest.ids_of(query as usize).iter();
        found.map(move |item| Judgement {
            query,
            item: *item,
            grade: 1.0,
        })
    });
    let judgements: Vec<Judgement> = judgements.collect();
    Dataset::builder(CorpusRef::Owned(Box::new(items)))
        .queries(CorpusRef::Owned(Box::new(queries)))
        .qrels(judgements)
        .storage(storage)
        .stop(stop)
        .build()
}
