//! Scores between blocks of queries and tiles of items, for search and evaluation alike.
//!
//! In the spaces of vector stores a score is `offset(item) + factor · query·item` over converted
//! rows, smaller being nearer, so that one matrix product and one addition serve all three:
//!
//! * squared Euclid: |x|² − 2q·x (|q|² moves no order and is added where a value is reported).
//!   Both sides are moved by the items' mean first: in f32 this form loses the near neighbours of
//!   points that lie far from the origin (spread 1e-3 around 1: 4.7 % right without, 100 % with);
//! * inner product: −q·x;
//! * cosine: −q·x over rows of length one.
//!
//! Sums of block distances have no such form: they are worked out pair by pair from differences and
//! stand in the place of the products.
//!
//! Tiles have a fixed size and the last one is filled up with zeros, so that every score comes from
//! a product of the same shape: equal rows get equal scores wherever they lie, and ties are ties.

use crate::data::{Corpus, CorpusRef, RowId};
use crate::linalg::{RowBuf, Rows, block_distance, cross, vectorized};
use crate::model::Space;
use crate::{Error, Result};
use faer::linalg::matmul::matmul;
use faer::prelude::ReborrowMut;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Items in a tile. A tile of scores for a block of queries stays in the second-level cache.
pub(crate) const TILE: usize = 1024;

/// Rows are filled up to a multiple of this, so that a lone query takes the same kind of product as
/// a full block.
const QUERY_STEP: usize = 16;

/// Converted items up to this many numbers (64 MB) are kept; more are converted tile by tile as
/// they are read.
const KEPT_VALUES: usize = 16 << 20;

/// Bound below which no sum of products can leave f32.
const SAFE: f64 = 1e37;

/// Items made ready to be scored.
pub(crate) struct Items<'a> {
    corpus: CorpusRef<'a>,
    space: Space,
    /// What is subtracted from both sides; empty where nothing is.
    centre: Vec<f32>,
    /// Added to every product; filled up with zeros to whole tiles.
    offsets: Vec<f32>,
    /// Largest length of a converted item; infinite where one is not finite.
    largest: f64,
    /// Converted items, tile after tile, each transposed: products of such tiles need no copy.
    kept: Option<Vec<f32>>,
}

/// Queries made ready to be scored.
pub(crate) struct QueryBlock {
    rows: RowBuf,
    /// The queries as they were given.
    originals: RowBuf,
    ids: Vec<RowId>,
    /// Squared lengths of the converted queries.
    squared: Vec<f64>,
}

impl<'a> Items<'a> {
    /// Read the items once (twice for squared Euclid) and remember what scores need.
    pub(crate) fn prepare(space: Space, corpus: &'a dyn Corpus) -> Result<Self> {
        Self::made(
            space,
            CorpusRef::Borrowed(corpus),
            centre_of(space, corpus)?,
        )
    }

    /// The same for items that are kept ready for many searches.
    pub(crate) fn prepare_shared(space: Space, corpus: Arc<dyn Corpus>) -> Result<Items<'static>> {
        let centre = centre_of(space, corpus.as_ref())?;
        Items::made(space, CorpusRef::Shared(corpus), centre)
    }

    /// The same with a given centre, so that several sets of items are scored alike.
    pub(crate) fn about(space: Space, corpus: &'a dyn Corpus, centre: Vec<f32>) -> Result<Self> {
        Self::made(space, CorpusRef::Borrowed(corpus), centre)
    }

    fn made(space: Space, corpus: CorpusRef<'a>, centre: Vec<f32>) -> Result<Self> {
        let len = usize::try_from(corpus.len())
            .ok()
            .filter(|len| *len < u32::MAX as usize)
            .ok_or_else(|| Error::shape("items", "fewer than 2^32 - 1", corpus.len()))?;
        if len == 0 {
            return Err(Error::Data("there is no item to search".into()));
        }
        let dim = corpus.dim();
        space.check(dim)?;
        let mut items = Items {
            corpus,
            space,
            centre: match space {
                Space::SquaredL2 => centre,
                Space::InnerProduct | Space::Cosine | Space::Blocks { .. } => Vec::new(),
            },
            offsets: vec![0.0; len.div_ceil(TILE) * TILE],
            largest: 0.0,
            kept: None,
        };
        let keep = converts(space) && len.saturating_mul(dim) <= KEPT_VALUES;
        let mut kept = vec![0.0; if keep { items.offsets.len() * dim } else { 0 }];
        let mut offsets = std::mem::take(&mut items.offsets);
        let visit = |number: usize, offsets: &mut [f32], target: Option<&mut [f32]>| {
            let mut buffer = RowBuf::empty(dim);
            items.convert_tile(number, &mut buffer)?;
            let mut largest = 0.0_f64;
            for (offset, row) in offsets.iter_mut().zip(buffer.rows().iter()) {
                let squared = squared_length(row);
                // A comparison with NaN is false, so that NaN ends up as infinity.
                largest = if squared <= largest {
                    largest
                } else if squared.is_nan() {
                    f64::INFINITY
                } else {
                    squared
                };
                if space == Space::SquaredL2 {
                    *offset = squared as f32;
                }
            }
            if let Some(target) = target {
                transpose(buffer.rows(), target);
            }
            Ok(largest)
        };
        let tiles = offsets.par_chunks_mut(TILE).enumerate();
        let largest: Vec<Result<f64>> = if keep {
            tiles
                .zip(kept.par_chunks_mut(TILE * dim))
                .map(|((number, offsets), target)| visit(number, offsets, Some(target)))
                .collect()
        } else {
            tiles
                .map(|(number, offsets)| visit(number, offsets, None))
                .collect()
        };
        let mut squared = 0.0_f64;
        for tile in largest {
            squared = squared.max(tile?);
        }
        items.offsets = offsets;
        items.largest = squared.sqrt();
        items.kept = keep.then_some(kept);
        Ok(items)
    }

    /// Number of items.
    pub(crate) fn len(&self) -> usize {
        self.corpus.len() as usize
    }

    /// Numbers in a vector.
    pub(crate) fn dim(&self) -> usize {
        self.corpus.dim()
    }

    /// The items as they were given.
    pub(super) fn corpus(&self) -> &dyn Corpus {
        &*self.corpus
    }

    /// Largest length of a converted item.
    pub(super) fn largest(&self) -> f64 {
        self.largest
    }

    /// How they are compared.
    pub(crate) fn space(&self) -> Space {
        self.space
    }

    /// Number of tiles.
    pub(crate) fn tiles(&self) -> usize {
        self.offsets.len() / TILE
    }

    /// What is added to the products of these items.
    pub(crate) fn offsets(&self, items: Range<usize>) -> &[f32] {
        &self.offsets[items]
    }

    /// What is added to the products of one item.
    pub(crate) fn offset(&self, item: RowId) -> f32 {
        self.offsets[item as usize]
    }

    /// Converted items by number, in the order named.
    pub(crate) fn gather(&self, items: &[RowId], out: &mut RowBuf) -> Result<()> {
        self.corpus.gather(items, out)?;
        for (target, item) in items.iter().enumerate() {
            self.convert(out.row_mut(target), self.corpus.origin(*item), "item")?;
        }
        Ok(())
    }

    /// Read and convert queries by number.
    pub(crate) fn queries(&self, corpus: &dyn Corpus, ids: Vec<RowId>) -> Result<QueryBlock> {
        let mut rows = RowBuf::empty(self.dim());
        corpus.gather(&ids, &mut rows)?;
        let originals = rows.clone();
        let mut squared = Vec::with_capacity(ids.len());
        for (place, id) in ids.iter().enumerate() {
            self.convert(rows.row_mut(place), corpus.origin(*id), "query")?;
            squared.push(squared_length(rows.row(place)));
        }
        let mut values = rows.into_values();
        values.resize(ids.len().next_multiple_of(QUERY_STEP) * self.dim(), 0.0);
        Ok(QueryBlock {
            rows: RowBuf::from_values(values, self.dim())?,
            originals,
            ids,
            squared,
        })
    }

    /// Products of a block of queries with some tiles of items, row-major: add the offsets to get
    /// scores. Rows of `out` have a column for every item of the tiles, filling included. Refuses
    /// scores that are not finite.
    pub(crate) fn products(
        &self,
        queries: &QueryBlock,
        tiles: Range<usize>,
        buffer: &mut RowBuf,
        out: &mut Vec<f32>,
    ) -> Result<()> {
        let width = tiles.len() * TILE;
        out.resize(queries.rows.len() * width, 0.0);
        let mut all = MatMut::from_row_major_slice_mut(out, queries.rows.len(), width);
        for (place, tile) in tiles.clone().enumerate() {
            if let Space::Blocks { size } = self.space {
                let target = all.rb_mut().subcols_mut(place * TILE, TILE);
                block_scores(queries.rows.rows(), self.rows(tile, buffer)?, size, target);
                continue;
            }
            matmul(
                all.rb_mut().subcols_mut(place * TILE, TILE),
                Accum::Replace,
                queries.rows.rows().mat(),
                self.columns(tile, buffer)?,
                self.factor(),
                Par::Seq,
            );
        }
        self.check_finite(queries, tiles.start * TILE, width, out)
    }

    /// What [`Items::products`] gives for one tile and the queries alone, up to rounding. A lone query is read against the items at the
    /// speed of memory, where a product of matrices takes as long as for `QUERY_STEP` queries.
    pub(super) fn products_one_by_one(
        &self,
        queries: &QueryBlock,
        tile: usize,
        buffer: &mut RowBuf,
        out: &mut Vec<f32>,
    ) -> Result<()> {
        out.clear();
        out.resize(queries.ids.len() * TILE, 0.0);
        let asking = queries.rows.rows();
        let queries_and_rows = asking.iter().zip(out.chunks_exact_mut(TILE));
        match &self.kept {
            Some(kept) => {
                let size = TILE * self.dim();
                let columns = &kept[tile * size..(tile + 1) * size];
                for (query, row) in queries_and_rows {
                    products_by_column(query, columns, self.factor(), row);
                }
            }
            None => {
                let items = self.rows(tile, buffer)?;
                for (query, row) in queries_and_rows {
                    match self.space {
                        Space::Blocks { size } => {
                            let target = MatMut::from_row_major_slice_mut(row, 1, TILE);
                            block_scores(Rows::new(query, self.dim())?, items, size, target);
                        }
                        _ => products_by_row(query, items, self.factor(), row),
                    }
                }
            }
        }
        self.check_finite(queries, tile * TILE, TILE, out)
    }

    /// Refuse scores that are not finite: products of the items from `start`, `width` for each query.
    fn check_finite(
        &self,
        queries: &QueryBlock,
        start: usize,
        width: usize,
        products: &[f32],
    ) -> Result<()> {
        if self.is_safe(queries) {
            return Ok(());
        }
        let offsets = self.offsets(start..self.len().min(start + width));
        for (row, query) in products.chunks_exact(width).zip(&queries.ids) {
            for (place, (product, offset)) in row.iter().zip(offsets).enumerate() {
                if !(product + offset).is_finite() {
                    return Err(Error::Score {
                        query: *query,
                        item: (start + place) as u64,
                        score: product + offset,
                    });
                }
            }
        }
        Ok(())
    }

    /// Scores of a block of queries with all items, row after row, without what does not depend on the
    /// item.
    pub(crate) fn scores(
        &self,
        queries: &QueryBlock,
        buffer: &mut RowBuf,
        out: &mut Vec<f32>,
    ) -> Result<()> {
        let count = self.len();
        out.clear();
        out.resize(queries.ids.len() * count, 0.0);
        let mut products = Vec::new();
        for tile in 0..self.tiles() {
            self.products(queries, tile..tile + 1, buffer, &mut products)?;
            let start = tile * TILE;
            let len = TILE.min(count - start);
            let offsets = self.offsets(start..start + len);
            for (row, products) in out.chunks_exact_mut(count).zip(products.chunks_exact(TILE)) {
                let target = row[start..start + len].iter_mut();
                for (target, (product, offset)) in target.zip(products.iter().zip(offsets)) {
                    *target = product + offset;
                }
            }
        }
        Ok(())
    }

    /// Products of a block of queries with any converted items, row-major.
    pub(crate) fn products_with(&self, queries: &QueryBlock, items: Rows<'_>, out: &mut Vec<f32>) {
        out.resize(queries.rows.len() * items.len(), 0.0);
        if let Space::Blocks { size } = self.space {
            let target = MatMut::from_row_major_slice_mut(out, queries.rows.len(), items.len());
            return block_scores(queries.rows.rows(), items, size, target);
        }
        cross(queries.rows.rows(), items, self.factor(), out);
    }

    /// A score as it is reported: with the part that does not depend on the item.
    pub(crate) fn reported(&self, score: f32, squared: f64) -> f32 {
        match self.space {
            // Rounding can leave a distance of 0 slightly below it.
            Space::SquaredL2 => (f64::from(score) + squared).max(0.0) as f32,
            Space::InnerProduct | Space::Cosine | Space::Blocks { .. } => score,
        }
    }

    fn factor(&self) -> f32 {
        match self.space {
            Space::SquaredL2 => -2.0,
            Space::InnerProduct | Space::Cosine => -1.0,
            Space::Blocks { .. } => 1.0,
        }
    }

    /// Whether lengths alone show that every score is finite: |q·x| ≤ |q||x| holds for every part
    /// of the sum as well. Lengths that are not finite make this false.
    fn is_safe(&self, queries: &QueryBlock) -> bool {
        queries.squared.iter().all(|squared| {
            (2.0 * squared.sqrt() + self.largest) * self.largest < SAFE && *squared < SAFE
        })
    }

    /// A tile with an item in every column.
    fn columns<'b>(&'b self, number: usize, buffer: &'b mut RowBuf) -> Result<MatRef<'b, f32>> {
        let dim = self.dim();
        if let Some(kept) = &self.kept {
            let size = TILE * dim;
            let tile = &kept[number * size..(number + 1) * size];
            return Ok(MatRef::from_row_major_slice(tile, dim, TILE));
        }
        Ok(self.rows(number, buffer)?.mat().transpose())
    }

    /// A tile with an item in every row, of items that are not kept.
    fn rows<'b>(&'b self, number: usize, buffer: &'b mut RowBuf) -> Result<Rows<'b>> {
        let end = (number + 1) * TILE;
        if !converts(self.space)
            && let Some(view) = self.corpus.view()
            && end <= view.len()
        {
            return Ok(view.slice(number * TILE, end));
        }
        self.convert_tile(number, buffer)?;
        Ok(buffer.rows())
    }

    fn convert_tile(&self, number: usize, buffer: &mut RowBuf) -> Result<()> {
        let dim = self.dim();
        let start = (number * TILE) as RowId;
        let end = self.corpus.len().min(start + TILE as RowId);
        buffer.clear(dim);
        self.corpus.scan(start..end, &mut |first, rows| {
            buffer.extend(rows);
            for (place, id) in (first..first + rows.len() as RowId).enumerate() {
                let row = buffer.row_mut((first - start) as usize + place);
                self.convert(row, self.corpus.origin(id), "item")?;
            }
            Ok(())
        })?;
        buffer.reset(TILE, dim);
        Ok(())
    }

    /// `origin` is the number of the row that a message names.
    fn convert(&self, row: &mut [f32], origin: RowId, what: &str) -> Result<()> {
        match self.space {
            Space::InnerProduct | Space::Blocks { .. } => {}
            Space::SquaredL2 => vectorized(
                #[inline(always)]
                || {
                    for (value, centre) in row.iter_mut().zip(&self.centre) {
                        *value -= centre;
                    }
                },
            ),
            Space::Cosine => {
                let length = squared_length(row).sqrt();
                if length == 0.0 {
                    return Err(Error::Row {
                        row: origin,
                        problem: format!(
                            "expected a vector of non-zero length to compare by cosine, but all \
                             values of the {what} are 0"
                        ),
                    });
                }
                for value in row {
                    *value = (f64::from(*value) / length) as f32;
                }
            }
        }
        Ok(())
    }
}

/// Write rows as columns.
fn transpose(rows: Rows<'_>, out: &mut [f32]) {
    let count = rows.len();
    for (place, row) in rows.iter().enumerate() {
        for (column, value) in row.iter().enumerate() {
            out[column * count + place] = *value;
        }
    }
}

impl QueryBlock {
    /// Row numbers of the queries.
    pub(crate) fn ids(&self) -> &[RowId] {
        &self.ids
    }

    /// A query as it was given.
    pub(super) fn original(&self, place: usize) -> &[f32] {
        self.originals.row(place)
    }

    /// A block of one query of this one.
    pub(super) fn alone(&self, place: usize) -> Result<QueryBlock> {
        let dim = self.rows.dim();
        let mut values = self.rows.row(place).to_vec();
        values.resize(QUERY_STEP * dim, 0.0);
        Ok(QueryBlock {
            rows: RowBuf::from_values(values, dim)?,
            originals: RowBuf::from_values(self.original(place).to_vec(), dim)?,
            ids: vec![self.ids[place]],
            squared: vec![self.squared[place]],
        })
    }

    /// Squared length of a converted query.
    pub(crate) fn squared(&self, place: usize) -> f64 {
        self.squared[place]
    }
}

/// Whether rows are changed before they are scored.
fn converts(space: Space) -> bool {
    matches!(space, Space::SquaredL2 | Space::Cosine)
}

/// Sums of block distances of all queries and items.
fn block_scores(queries: Rows<'_>, items: Rows<'_>, size: u32, mut out: MatMut<'_, f32>) {
    vectorized(
        #[inline(always)]
        || {
            for (row, query) in queries.iter().enumerate() {
                for (column, item) in items.iter().enumerate() {
                    out[(row, column)] = block_distance(query, item, size as usize);
                }
            }
        },
    );
}

/// Columns of items that are added up at a time.
const COLUMNS: usize = 4;

/// Products of a query with a tile that has an item in every column; `out` is 0. All items are summed up in the same order.
fn products_by_column(query: &[f32], columns: &[f32], factor: f32, out: &mut [f32]) {
    vectorized(
        #[inline(always)]
        || {
            let parts = query.chunks(COLUMNS);
            for (part, columns) in parts.zip(columns.chunks(COLUMNS * TILE)) {
                match *part {
                    [a, b, c, d] => {
                        let [a, b, c, d] = [a, b, c, d].map(|value| factor * value);
                        let (first, rest) = columns.split_at(TILE);
                        let (second, rest) = rest.split_at(TILE);
                        let (third, fourth) = rest.split_at(TILE);
                        let pairs = first.iter().zip(second).zip(third.iter().zip(fourth));
                        for (sum, ((x, y), (z, w))) in out.iter_mut().zip(pairs) {
                            *sum += (a * x + b * y) + (c * z + d * w);
                        }
                    }
                    _ => {
                        for (value, column) in part.iter().zip(columns.chunks_exact(TILE)) {
                            for (sum, item) in out.iter_mut().zip(column) {
                                *sum += factor * value * item;
                            }
                        }
                    }
                }
            }
        },
    );
}

/// Products of a query with a tile that has an item in every row. All items are summed up in the same order.
fn products_by_row(query: &[f32], items: Rows<'_>, factor: f32, out: &mut [f32]) {
    const LANES: usize = 32;
    vectorized(
        #[inline(always)]
        || {
            for (target, item) in out.iter_mut().zip(items.iter()) {
                let mut sums = [0.0_f32; LANES];
                let (a, b) = (query.chunks_exact(LANES), item.chunks_exact(LANES));
                let rest: f32 = (a.remainder().iter().zip(b.remainder()))
                    .map(|(a, b)| a * b)
                    .sum();
                for (a, b) in a.zip(b) {
                    for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
                        *sum += a * b;
                    }
                }
                *target = factor * (sums.iter().sum::<f32>() + rest);
            }
        },
    );
}

/// Check that queries and items can be compared.
pub(crate) fn check_dimensions(queries: &dyn Corpus, items: &dyn Corpus) -> Result<()> {
    if queries.dim() != items.dim() {
        return Err(Error::shape(
            "dimension of the queries",
            items.dim(),
            queries.dim(),
        ));
    }
    Ok(())
}

/// A number that is ordered as the score is; the low 32 bits are free.
pub(crate) fn ordered(score: f32) -> u64 {
    let bits = score.to_bits();
    let flip = ((bits as i32 >> 31) as u32) | 0x8000_0000;
    u64::from(bits ^ flip)
}

/// The score in the high half of a key made with [`ordered`].
pub(crate) fn score_of(key: u64) -> f32 {
    let bits = (key >> 32) as u32;
    let flip = !((bits as i32 >> 31) as u32) | 0x8000_0000;
    f32::from_bits(bits ^ flip)
}

/// What is subtracted from both sides.
fn centre_of(space: Space, corpus: &dyn Corpus) -> Result<Vec<f32>> {
    match space {
        Space::SquaredL2 if !corpus.is_empty() => mean(corpus),
        _ => Ok(Vec::new()),
    }
}

/// Mean of all rows. Tiles are summed in f64 side by side and their sums added in order.
fn mean(corpus: &dyn Corpus) -> Result<Vec<f32>> {
    let dim = corpus.dim();
    let tiles: Vec<Result<Vec<f64>>> = (0..corpus.len().div_ceil(TILE as u64))
        .into_par_iter()
        .map(|tile| {
            let start = tile * TILE as u64;
            let mut sum = vec![0.0_f64; dim];
            corpus.scan(
                start..corpus.len().min(start + TILE as u64),
                &mut |_, rows| {
                    for row in rows.iter() {
                        for (sum, value) in sum.iter_mut().zip(row) {
                            *sum += f64::from(*value);
                        }
                    }
                    Ok(())
                },
            )?;
            Ok(sum)
        })
        .collect();
    let mut total = vec![0.0_f64; dim];
    for tile in tiles {
        for (total, sum) in total.iter_mut().zip(tile?) {
            *total += sum;
        }
    }
    Ok(total
        .into_iter()
        .map(|sum| (sum / corpus.len() as f64) as f32)
        .collect())
}

fn squared_length(row: &[f32]) -> f64 {
    vectorized(
        #[inline(always)]
        || {
            // Eight running sums let the compiler use vector registers in a fixed order.
            let mut sums = [0.0_f64; 8];
            let chunks = row.chunks_exact(8);
            let rest = chunks.remainder();
            for chunk in chunks {
                for (sum, value) in sums.iter_mut().zip(chunk) {
                    *sum += f64::from(*value) * f64::from(*value);
                }
            }
            let rest: f64 = rest.iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
            sums.iter().sum::<f64>() + rest
        },
    )
}
