//! Re-ranking by k-reciprocal neighbours (Zhong, Zheng, Cao & Li, CVPR 2017).
//!
//! Two images of one person are among each other's nearest, and share most of these. For all rows
//! together, queries and items, with d the distance divided by the row's largest one:
//!
//! 1. R(p, k): those of p and its k nearest rows that have p among themselves and their k nearest.
//! 2. R*(p): R(p, k1) with every R(q, k1/2) added of a q in R(p, k1) of which more than two thirds are
//!    in R(p, k1).
//! 3. V_p: the weights exp(−d(p, g)) of the g in R*(p), divided by their sum.
//! 4. V_p becomes the mean of V over p and its k2 − 1 nearest rows.
//! 5. The Jaccard distance of p and g is 1 − Σ min(V_p, V_g) / Σ max(V_p, V_g), and the distance that
//!    ranks is (1 − λ) of it plus λ·d(p, g).
//!
//! Only the sparse V are kept, some dozens of numbers a row: time is three products of all rows with
//! all rows (one for neighbours, one for largest distances, and of queries with items for d), memory
//! O(rows·k1·k2) beside a block of scores.
//!
//! As in the authors' code, by which all published figures were made, and not in the paper: distances are divided by the
//! largest and weights by their sum; more than two thirds are asked for, where the paper has two thirds (on VIPeR that
//! is .001 of mAP). Unlike the code, a row is always its own nearest, also where others coincide with it. Rows that do not count for a
//! query (its own camera's) still vote, as in both.

use super::scores::{Items, TILE};
use super::top_k::top_k;
use crate::data::{Corpus, JoinedCorpus, RowId};
use crate::linalg::{RowBuf, block_distance};
use crate::model::Space;
use crate::{Error, Result};
use rayon::prelude::*;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Rows whose weights are worked out by one task. Fixed, though nothing is summed across them.
const BLOCK: usize = 64;

/// Settings of the re-ranking; the defaults are the authors'.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rerank {
    /// Neighbours that must be mutual.
    pub k1: usize,
    /// Rows whose weights are averaged.
    pub k2: usize,
    /// Share of the distance as it was.
    pub lambda: f64,
}

impl Default for Rerank {
    fn default() -> Self {
        Rerank {
            k1: 20,
            k2: 6,
            lambda: 0.3,
        }
    }
}

impl fmt::Display for Rerank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "k1={},k2={},lambda={}", self.k1, self.k2, self.lambda)
    }
}

impl FromStr for Rerank {
    type Err = Error;

    /// `default`, or some of `k1=20,k2=6,lambda=0.3`; those not named keep these values.
    fn from_str(text: &str) -> Result<Self> {
        let expected = "default, or some of k1=20,k2=6,lambda=0.3";
        let wrong = || Error::parameter("rerank", expected, format!("{text:?}"));
        let mut settings = Rerank::default();
        if text == "default" {
            return Ok(settings);
        }
        for part in text.split(',') {
            let (name, value) = part.split_once('=').ok_or_else(wrong)?;
            match name.trim() {
                "k1" => settings.k1 = value.trim().parse().map_err(|_| wrong())?,
                "k2" => settings.k2 = value.trim().parse().map_err(|_| wrong())?,
                "lambda" => settings.lambda = value.trim().parse().map_err(|_| wrong())?,
                _ => return Err(wrong()),
            }
        }
        settings.check()?;
        Ok(settings)
    }
}

impl Rerank {
    /// An error where a setting is out of its bounds.
    pub(crate) fn check(&self) -> Result<()> {
        if self.k1 == 0 {
            return Err(Error::parameter("k1", "at least 1", self.k1));
        }
        if !(1..=self.k1).contains(&self.k2) {
            let expected = format!("between 1 and {} (k1)", self.k1);
            return Err(Error::parameter("k2", expected, self.k2));
        }
        if !(0.0..=1.0).contains(&self.lambda) {
            return Err(Error::parameter("lambda", "between 0 and 1", self.lambda));
        }
        Ok(())
    }
}

/// Queries and items made ready to be re-ranked.
pub struct Reranking<'a> {
    lambda: f64,
    queries: &'a dyn Corpus,
    items: Items<'a>,
    /// Row of each query among all rows.
    rows: Vec<u32>,
    /// Largest distance of every row to any other.
    farthest: Vec<f64>,
    /// V of all rows.
    weights: Sparse,
    /// For every row the items that give it weight.
    givers: Sparse,
}

impl<'a> Reranking<'a> {
    /// Find the weights of all rows. `own` names the items that the queries are, where they are items
    /// too: these are not counted twice.
    pub(crate) fn new(
        settings: &Rerank,
        space: Space,
        queries: &'a dyn Corpus,
        items: &'a dyn Corpus,
        own: Option<&[RowId]>,
    ) -> Result<Self> {
        settings.check()?;
        if space == Space::InnerProduct {
            let expected = "euclid, cosine or blocks to be re-ranked: it must be a distance";
            return Err(Error::parameter("score", expected, space));
        }
        if let Some(own) = own
            && (own.len() as u64 != queries.len() || own.iter().any(|row| *row >= items.len()))
        {
            let expected = format!("{} below {}", queries.len(), items.len());
            return Err(Error::shape(
                "items that the queries are",
                expected,
                own.len(),
            ));
        }
        let prepared = Items::prepare(space, items)?;
        let joined = JoinedCorpus::new(queries, items)?;
        let (all, first_item): (&dyn Corpus, usize) = match own {
            Some(_) => (items, 0),
            None => (&joined, queries.len() as usize),
        };
        let rows = match own {
            Some(own) => own.iter().map(|row| *row as u32).collect(),
            None => (0..queries.len() as u32).collect(),
        };
        let nearest = Nearest::new(space, all, settings.k1)?;
        let ready = Items::prepare(space, all)?;
        let farthest = farthest(&ready, all)?;
        let weights = per_row(nearest.rows(), |row| {
            let members = nearest.expanded(row);
            let mut weights = distances(&ready, row, &members)?;
            let scale = positive(farthest[row]);
            weights.iter_mut().for_each(|d| *d = (-*d / scale).exp());
            let sum: f64 = weights.iter().sum();
            let weights = weights.iter().map(|w| (w / sum) as f32);
            Ok(members.into_iter().zip(weights).collect())
        })?;
        let weights = per_row(nearest.rows(), |row| {
            let near = nearest.among(row, settings.k2 - 1);
            Ok(mean_of(near.iter().map(|near| weights.of(*near as usize))))
        })?;
        let givers = weights.turned(first_item..nearest.rows());
        Ok(Reranking {
            lambda: settings.lambda,
            queries,
            items: prepared,
            rows,
            farthest,
            weights,
            givers,
        })
    }

    /// Re-ranked distances of some queries to all items, row after row; smaller is nearer.
    pub(crate) fn scores(&self, queries: Range<RowId>, out: &mut Vec<f32>) -> Result<()> {
        let count = self.items.len();
        let block = self.items.queries(self.queries, queries.collect())?;
        self.items
            .scores(&block, &mut RowBuf::empty(self.items.dim()), out)?;
        for (place, row) in out.chunks_exact_mut(count).enumerate() {
            let query = block.ids()[place] as usize;
            let scale = positive(self.farthest[self.rows[query] as usize]);
            for score in row {
                let reported = self.items.reported(*score, block.squared(place));
                *score = (self.lambda * as_distance(&self.items, reported) / scale) as f32;
            }
        }
        let mut shared = vec![0.0_f64; count];
        for (row, query) in out.chunks_exact_mut(count).zip(block.ids()) {
            shared.fill(0.0);
            for (column, weight) in self.weights.of(self.rows[*query as usize] as usize) {
                for (item, other) in self.givers.of(*column as usize) {
                    shared[*item as usize] += f64::from(weight.min(*other));
                }
            }
            for (target, shared) in row.iter_mut().zip(&shared) {
                // Both sum up to 1 but for rounding, so that Σ max is 2 − Σ min.
                let shared = shared.min(1.0);
                let jaccard = 1.0 - shared / (2.0 - shared);
                *target = (f64::from(*target) + (1.0 - self.lambda) * jaccard) as f32;
            }
        }
        Ok(())
    }
}

/// A score as a distance that is 0 between equal rows.
fn as_distance(items: &Items<'_>, score: f32) -> f64 {
    match items.space() {
        Space::Cosine => (1.0 + f64::from(score)).max(0.0),
        _ => f64::from(score),
    }
}

/// Where all rows coincide every distance is 0, whatever it is divided by.
fn positive(scale: f64) -> f64 {
    if scale > 0.0 { scale } else { 1.0 }
}

/// Every row with its nearest others.
struct Nearest {
    k: usize,
    half: usize,
    /// k others of each row, nearest first.
    ids: Vec<u64>,
}

impl Nearest {
    fn new(space: Space, all: &dyn Corpus, k1: usize) -> Result<Self> {
        if all.len() < 2 {
            return Err(Error::shape("rows to re-rank", "at least 2", all.len()));
        }
        let found = top_k(space, all, all, k1, true)?;
        Ok(Nearest {
            k: found.k,
            half: (k1 as f64 / 2.0).round_ties_even() as usize,
            ids: found.ids,
        })
    }

    fn rows(&self) -> usize {
        self.ids.len() / self.k
    }

    /// The row and its `k` nearest others, nearest first.
    fn among(&self, row: usize, k: usize) -> Vec<u32> {
        let others = &self.ids[row * self.k..][..k.min(self.k)];
        let others = others.iter().map(|id| *id as u32);
        std::iter::once(row as u32).chain(others).collect()
    }

    /// R(p, k), in increasing order.
    fn reciprocal(&self, row: usize, k: usize) -> Vec<u32> {
        let mut mutual = self.among(row, k);
        mutual.retain(|other| {
            let other = *other as usize;
            let back = &self.ids[other * self.k..][..k.min(self.k)];
            other == row || back.contains(&(row as u64))
        });
        mutual.sort_unstable();
        mutual
    }

    /// R*(p), in increasing order.
    fn expanded(&self, row: usize) -> Vec<u32> {
        let mutual = self.reciprocal(row, self.k);
        let mut all = mutual.clone();
        for member in &mutual {
            let theirs = self.reciprocal(*member as usize, self.half);
            let known = theirs.iter().filter(|t| mutual.binary_search(t).is_ok());
            if 3 * known.count() > 2 * theirs.len() {
                all.extend(theirs);
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Largest distance of every row to any other.
fn farthest(items: &Items<'_>, all: &dyn Corpus) -> Result<Vec<f64>> {
    let starts: Vec<usize> = (0..items.len()).step_by(BLOCK).collect();
    let blocks: Vec<Result<Vec<f64>>> = (starts.par_iter())
        .map(|start| {
            let ids = *start as RowId..items.len().min(start + BLOCK) as RowId;
            let block = items.queries(all, ids.collect())?;
            let mut largest = vec![f32::NEG_INFINITY; block.ids().len()];
            let (mut buffer, mut products) = (RowBuf::empty(items.dim()), Vec::new());
            for tile in 0..items.tiles() {
                items.products(&block, tile..tile + 1, &mut buffer, &mut products)?;
                let first = tile * TILE;
                let offsets = items.offsets(first..items.len().min(first + TILE));
                for (place, largest) in largest.iter_mut().enumerate() {
                    let row = products[place * TILE..].iter().zip(offsets);
                    *largest = row.fold(*largest, |most, (p, offset)| most.max(p + offset));
                }
            }
            let places = largest.into_iter().enumerate();
            Ok(places
                .map(|(place, score)| items.reported(score, block.squared(place)))
                .map(|score| as_distance(items, score))
                .collect())
        })
        .collect();
    let mut all = Vec::with_capacity(items.len());
    for block in blocks {
        all.extend(block?);
    }
    Ok(all)
}

/// Distances of a row to some rows.
fn distances(items: &Items<'_>, row: usize, to: &[u32]) -> Result<Vec<f64>> {
    let ids: Vec<RowId> = std::iter::once(row as RowId)
        .chain(to.iter().map(|id| RowId::from(*id)))
        .collect();
    let mut rows = RowBuf::empty(items.dim());
    items.gather(&ids, &mut rows)?;
    let own = rows.row(0);
    Ok((1..ids.len())
        .map(|place| {
            let other = rows.row(place);
            let pairs = own.iter().zip(other);
            let pairs = pairs.map(|(a, b)| (f64::from(*a), f64::from(*b)));
            match items.space() {
                Space::Blocks { size } => f64::from(block_distance(own, other, size as usize)),
                // Rows have length 1 then, and |a − b|² is twice 1 − a·b.
                Space::Cosine => pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>() / 2.0,
                _ => pairs.map(|(a, b)| (a - b).powi(2)).sum(),
            }
        })
        .collect())
}

/// Mean of some sparse rows.
fn mean_of<'b>(rows: impl ExactSizeIterator<Item = &'b [(u32, f32)]>) -> Vec<(u32, f32)> {
    let count = rows.len() as f32;
    let mut all: Vec<(u32, f32)> = rows.flatten().copied().collect();
    // Stable, so that the sum's order is that of the rows.
    all.sort_by_key(|(column, _)| *column);
    all.chunk_by(|a, b| a.0 == b.0)
        .map(|same| (same[0].0, same.iter().map(|(_, w)| w).sum::<f32>() / count))
        .collect()
}

/// Rows of few non-zero numbers: (column, number), increasing by column.
struct Sparse {
    starts: Vec<usize>,
    entries: Vec<(u32, f32)>,
}

impl Sparse {
    fn of(&self, row: usize) -> &[(u32, f32)] {
        &self.entries[self.starts[row]..self.starts[row + 1]]
    }

    /// Columns as rows, of some rows alone, which are counted from 0.
    fn turned(&self, rows: Range<usize>) -> Sparse {
        let mut starts = vec![0; self.starts.len()];
        for row in rows.clone() {
            for (column, _) in self.of(row) {
                starts[*column as usize + 1] += 1;
            }
        }
        for column in 1..starts.len() {
            starts[column] += starts[column - 1];
        }
        let mut next = starts.clone();
        let mut entries = vec![(0, 0.0); starts.last().copied().unwrap_or(0)];
        for (number, row) in rows.enumerate() {
            for (column, value) in self.of(row) {
                entries[next[*column as usize]] = (number as u32, *value);
                next[*column as usize] += 1;
            }
        }
        Sparse { starts, entries }
    }
}

/// A sparse row for each row, side by side.
fn per_row(
    rows: usize,
    make: impl Fn(usize) -> Result<Vec<(u32, f32)>> + Send + Sync,
) -> Result<Sparse> {
    let made: Vec<Result<Vec<(u32, f32)>>> = (0..rows)
        .into_par_iter()
        .with_min_len(BLOCK)
        .map(make)
        .collect();
    let (mut starts, mut entries) = (vec![0], Vec::new());
    for row in made {
        entries.extend(row?);
        starts.push(entries.len());
    }
    Ok(Sparse { starts, entries })
}

#[cfg(test)]
#[path = "rerank_tests.rs"]
mod tests;
