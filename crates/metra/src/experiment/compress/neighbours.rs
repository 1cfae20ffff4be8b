//! Truth without supervision: the nearest neighbours of the vectors as they are.

use crate::data::{Corpus, CorpusRef, RowId, Storage, Subset};
use crate::dataset::Dataset;
use crate::evaluate::Measure;
use crate::experiment::{EvaluationSettings, Experiment, HoldOut, NewItems, Parts, Protocol};
use crate::model::Space;
use crate::random::Stream;
use crate::search::top_k;
use crate::supervision::Judgement;
use crate::{Error, Result};
use std::sync::atomic::AtomicBool;

/// Queries drawn from the rows, at most.
const MOST_QUERIES: u64 = 2_000;

/// Neighbours that count as right.
pub const NEIGHBOURS: usize = 10;

impl<'a> Experiment<'a> {
    /// The experiment without supervision, on what [`neighbour_dataset`] gives: codes are judged by the share of
    /// neighbours that they find, and by further measures.
    pub fn of_neighbours(
        data: &'a Dataset<'a>,
        base: Space,
        mut measures: Vec<Measure>,
        shares: (f64, f64),
        seed: u64,
    ) -> Result<Self> {
        let recall = Measure::RecallAt(NEIGHBOURS as u32);
        if measures.is_empty() {
            measures.push(recall);
        }
        let (judging, criterion) =
            EvaluationSettings::new(data, Protocol::Judged, measures, Some(recall), seed)?;
        // No query is about items that training has seen: nothing is learned.
        let judging = EvaluationSettings {
            new_items: NewItems::All,
            ..judging
        };
        let parts = Parts::draw(data, &data.units(), HoldOut::Queries, shares, seed)?;
        let splits = (vec![(parts, seed)], HoldOut::Queries);
        let methods = Vec::new();
        let mut experiment = Experiment::new(data, splits, (judging, criterion), methods, seed)?;
        experiment.base = Some(base.to_string());
        Ok(experiment)
    }
}

/// A data set in which some rows, drawn by the seed, are queries and the nearest of the others, as the vectors
/// are, are what each should find.
pub fn neighbour_dataset<'a>(
    corpus: &'a dyn Corpus,
    space: Space,
    seed: u64,
    (storage, stop): (Storage, &'a AtomicBool),
) -> Result<Dataset<'a>> {
    let (rows, k) = (corpus.len(), NEIGHBOURS);
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
