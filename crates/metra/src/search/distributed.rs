//! Distributed search: the nearest rows of a corpus to a batch of queries, and hard negatives.
//!
//! Queries travel embedded; rows are embedded where they are read. Both sides are moved by one
//! centre that travels along, so that scores of different shards come from the same arithmetic and
//! can be compared.

use super::scores::{Items, TILE};
use super::top_k::{Neighbours, nearest_of};
use crate::data::{Batch, Corpus, Keys, MemoryCorpus, Nearest, PartialResult, RowId};
use crate::execute::{Sample, Statistic, expect_parts, fold};
use crate::linalg::RowBuf;
use crate::model::{Embedding, Model, Space};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Rows that are scored at once.
const BLOCK_ROWS: usize = 8 * TILE;

/// Embedded queries as they travel to rows, with the model that embeds these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueryBatch {
    /// The model's bytes; rows are compared as they are where there is none.
    model: Option<Vec<u8>>,
    space: Space,
    dim: u64,
    queries: Vec<f32>,
    /// Moves both sides; the mean of the queries, which all shards know.
    centre: Vec<f32>,
}

impl QueryBatch {
    /// Ask rows as they are, compared in `space`.
    pub fn plain(space: Space, queries: &RowBuf) -> Result<Self> {
        space.check(queries.dim())?;
        Ok(Self::about(None, space, queries))
    }

    /// Ask rows as a model embeds them; `queries` are not embedded yet.
    pub fn through(model: &Model, queries: &RowBuf) -> Result<Self> {
        let mut embedded = RowBuf::empty(1);
        (model.chain).embed_queries(0, &Batch::new(queries.rows()), &mut embedded)?;
        let space = model.chain.space();
        Ok(Self::about(Some(model.to_bytes()?), space, &embedded))
    }

    fn about(model: Option<Vec<u8>>, space: Space, queries: &RowBuf) -> Self {
        let mut sum = vec![0.0_f64; queries.dim()];
        for row in queries.rows().iter() {
            for (sum, value) in sum.iter_mut().zip(row) {
                *sum += f64::from(*value);
            }
        }
        let count = queries.len().max(1) as f64;
        QueryBatch {
            model,
            space,
            dim: queries.dim() as u64,
            queries: queries.values().to_vec(),
            centre: sum.iter().map(|sum| (sum / count) as f32).collect(),
        }
    }

    /// Number of queries.
    pub(crate) fn len(&self) -> usize {
        self.queries.len() / (self.dim as usize).max(1)
    }
}

/// Rows of a shard on their way to be scored, in blocks.
pub(crate) struct Scored {
    space: Space,
    model: Option<Model>,
    centre: Vec<f32>,
    queries: MemoryCorpus,
    block: RowBuf,
    embedded: RowBuf,
    /// Number of the block's first row.
    first: RowId,
    keys: Vec<u32>,
}

/// A block of rows ready to be scored.
pub(crate) struct Block<'a> {
    pub(crate) items: Items<'a>,
    pub(crate) queries: &'a MemoryCorpus,
    /// Number of its first row.
    pub(crate) first: RowId,
    /// Keys of its rows; none where rows have none.
    pub(crate) keys: &'a [u32],
}

impl Scored {
    pub(crate) fn new(batch: &QueryBatch) -> Result<Self> {
        let dim = batch.dim as usize;
        let queries = RowBuf::from_values(batch.queries.clone(), dim)?;
        Ok(Scored {
            space: batch.space,
            model: (batch.model.as_deref())
                .map(Model::from_bytes)
                .transpose()?,
            centre: batch.centre.clone(),
            queries: MemoryCorpus::new(queries)?,
            block: RowBuf::empty(dim),
            embedded: RowBuf::empty(dim),
            first: 0,
            keys: Vec::new(),
        })
    }

    /// Take rows in; whole blocks are shown. Rows that do not follow the last ones begin a new one.
    pub(crate) fn take(
        &mut self,
        sample: &Sample<'_>,
        show: &mut dyn FnMut(&Block<'_>) -> Result<()>,
    ) -> Result<()> {
        let follows = self.first + self.block.len() as u64 == sample.first;
        if !follows || self.block.len() + sample.rows.len() > BLOCK_ROWS {
            self.flush(show)?;
        }
        if self.block.is_empty() {
            self.first = sample.first;
        }
        match &self.model {
            None => self.block.extend(sample.rows),
            Some(model) => {
                let batch = Batch::new(sample.rows);
                (model.chain).embed_items(sample.first, &batch, &mut self.embedded)?;
                self.block.extend(self.embedded.rows());
            }
        }
        self.keys.extend_from_slice(sample.keys.unwrap_or(&[]));
        Ok(())
    }

    /// Show what is left.
    pub(crate) fn flush(&mut self, show: &mut dyn FnMut(&Block<'_>) -> Result<()>) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let dim = self.block.dim();
        let rows = MemoryCorpus::new(std::mem::replace(&mut self.block, RowBuf::empty(dim)))?;
        if rows.dim() != self.queries.dim() {
            let (expected, found) = (self.queries.dim(), rows.dim());
            return Err(Error::shape("dimension of the items", expected, found));
        }
        show(&Block {
            items: Items::about(self.space, &rows, self.centre.clone())?,
            queries: &self.queries,
            first: self.first,
            keys: &self.keys,
        })?;
        self.keys.clear();
        Ok(())
    }
}

/// The `k` rows nearest to each query, wherever the rows lie. `own` has the row number of each
/// query where queries are rows themselves, which are then left out.
pub fn nearest(
    corpus: &dyn Corpus,
    batch: &QueryBatch,
    k: usize,
    own: Option<Vec<RowId>>,
) -> Result<Neighbours> {
    found(corpus, Keys::None, batch, k, Skip { own, classes: None })
}

/// The `k` rows of other classes nearest to each query: hard negatives. `classes` has the class of
/// each query, numbered as the rows' are.
pub fn hard_negatives(
    corpus: &dyn Corpus,
    keys: Keys<'_>,
    batch: &QueryBatch,
    k: usize,
    classes: Vec<u32>,
) -> Result<Neighbours> {
    let classes = Some(classes);
    found(corpus, keys, batch, k, Skip { own: None, classes })
}

fn found(
    corpus: &dyn Corpus,
    keys: Keys<'_>,
    batch: &QueryBatch,
    k: usize,
    skip: Skip,
) -> Result<Neighbours> {
    if k == 0 {
        return Err(Error::parameter("k", "at least 1", 0));
    }
    let listed = [
        skip.own.as_ref().map(Vec::len),
        skip.classes.as_ref().map(Vec::len),
    ];
    for len in listed.into_iter().flatten() {
        if len != batch.len() {
            return Err(Error::shape("queries that are described", batch.len(), len));
        }
    }
    let k = k as u64;
    let batch = batch.clone();
    fold::<NearestRows>(corpus, keys, &Wanted { batch, k, skip })
}

/// What must be left out of a query's answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Skip {
    own: Option<Vec<RowId>>,
    classes: Option<Vec<u32>>,
}

/// What [`NearestRows`] must know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Wanted {
    batch: QueryBatch,
    k: u64,
    skip: Skip,
}

/// The rows of a shard that are nearest to each query.
pub(crate) struct NearestRows {
    scored: Scored,
    skip: Skip,
    best: PartialResult,
    k: u64,
}

impl Statistic for NearestRows {
    const NAME: &'static str = "nearest rows";
    type Spec = Wanted;
    type Out = Neighbours;

    fn start(wanted: &Wanted, _: u64) -> Result<Self> {
        Ok(NearestRows {
            scored: Scored::new(&wanted.batch)?,
            skip: wanted.skip.clone(),
            best: none(wanted),
            k: wanted.k,
        })
    }

    fn update(&mut self, sample: &Sample<'_>) -> Result<()> {
        let (skip, k, best) = (&self.skip, self.k, &mut self.best);
        let mut show = |block: &Block<'_>| best.merge(near(block, skip, k)?);
        self.scored.take(sample, &mut show)
    }

    fn close(mut self) -> Result<Vec<PartialResult>> {
        let (skip, k, best) = (&self.skip, self.k, &mut self.best);
        (self.scored).flush(&mut |block| best.merge(near(block, skip, k)?))?;
        Ok(vec![self.best])
    }

    fn finish(_: &Wanted, parts: Vec<PartialResult>) -> Result<Neighbours> {
        let [best] = expect_parts(parts)?;
        let rows = best.into_nearest()?.rows;
        // Every query has as many answers as the one with the fewest.
        let k = rows.iter().map(Vec::len).min().unwrap_or(0);
        let kept = || rows.iter().flat_map(|row| &row[..k]);
        Ok(Neighbours {
            k,
            ids: kept().map(|(_, row)| *row).collect(),
            scores: kept().map(|(score, _)| *score).collect(),
        })
    }
}

fn none(wanted: &Wanted) -> PartialResult {
    PartialResult::Nearest(Nearest {
        k: wanted.k,
        rows: vec![Vec::new(); wanted.batch.len()],
    })
}

fn near(block: &Block<'_>, skip: &Skip, k: u64) -> Result<PartialResult> {
    let k = usize::try_from(k)
        .unwrap_or(usize::MAX)
        .min(block.items.len());
    let rows = nearest_of(&block.items, block.queries, k, &|query, item| {
        let own = skip.own.as_ref().map(|own| own[query as usize]);
        let class = skip.classes.as_ref().map(|classes| classes[query as usize]);
        own == Some(block.first + item)
            || class.is_some_and(|class| block.keys.get(item as usize) == Some(&class))
    })?;
    let rows = rows.into_iter().map(|row| {
        let row = row.into_iter();
        row.map(|(item, score)| (score, block.first + item))
            .collect()
    });
    let (k, rows) = (k as u64, rows.collect());
    Ok(PartialResult::Nearest(Nearest { k, rows }))
}
