//! Who is compared with whom: targets of each row inside its class, impostors outside.

use crate::Result;
use crate::data::{Corpus, RowId, Subset};
use crate::linalg::RowBuf;
use crate::metric::Space;
use crate::search::scores::{Items, TILE};
use crate::search::top_k;
use crate::supervision::Labels;
use rayon::prelude::*;

/// Edges from rows to other rows, those of a row side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edges {
    /// Where the edges of each row begin, and the end of all.
    starts: Vec<usize>,
    to: Vec<u32>,
}

impl Edges {
    fn from_lists(lists: impl Iterator<Item = Vec<u32>>) -> Self {
        let (mut starts, mut to) = (vec![0], Vec::new());
        for list in lists {
            to.extend(list);
            starts.push(to.len());
        }
        Edges { starts, to }
    }

    /// No edge from any of these rows.
    pub(super) fn none(rows: usize) -> Self {
        Edges {
            starts: vec![0; rows + 1],
            to: Vec::new(),
        }
    }

    /// Number of edges.
    pub(super) fn len(&self) -> usize {
        self.to.len()
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Where the edges of a row lie.
    pub(super) fn range(&self, row: usize) -> std::ops::Range<usize> {
        self.starts[row]..self.starts[row + 1]
    }

    /// The rows that a row's edges lead to.
    pub(super) fn of(&self, row: usize) -> &[u32] {
        &self.to[self.range(row)]
    }

    /// All edges.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (RowId, RowId)> + '_ {
        (0..self.rows()).flat_map(|row| {
            let from = row as RowId;
            self.of(row).iter().map(move |to| (from, RowId::from(*to)))
        })
    }

    /// For each row the edges that lead to it: their numbers and where they come from.
    pub(super) fn reversed(&self) -> Reversed {
        let mut starts = vec![0_usize; self.rows() + 1];
        for to in &self.to {
            starts[*to as usize + 1] += 1;
        }
        for row in 0..self.rows() {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let mut edges = vec![(0, 0); self.len()];
        for row in 0..self.rows() {
            for edge in self.range(row) {
                let place = &mut next[self.to[edge] as usize];
                edges[*place] = (edge as u32, row as u32);
                *place += 1;
            }
        }
        Reversed { starts, edges }
    }
}

/// Edges by the row that they lead to.
#[derive(Debug, Clone)]
pub(super) struct Reversed {
    starts: Vec<usize>,
    edges: Vec<(u32, u32)>,
}

impl Reversed {
    /// Number and origin of every edge that leads to a row.
    pub(super) fn of(&self, row: usize) -> &[(u32, u32)] {
        &self.edges[self.starts[row]..self.starts[row + 1]]
    }
}

/// The nearest rows of its own class for every row.
pub(super) fn targets(corpus: &dyn Corpus, labels: &Labels, count: usize) -> Result<Edges> {
    let mut lists = vec![Vec::new(); labels.len()];
    for class in 0..labels.classes() as u32 {
        let members = labels.members(class);
        if members.len() < 2 {
            continue;
        }
        let ids = members.iter().map(|row| RowId::from(*row)).collect();
        let rows = Subset::new(corpus, ids)?;
        let count = count.min(members.len() - 1);
        let found = top_k(Space::SquaredL2, &rows, &rows, count, true)?;
        for (place, row) in members.iter().enumerate() {
            let near = found.ids_of(place).iter();
            lists[*row as usize] = near.map(|id| members[*id as usize]).collect();
        }
    }
    Ok(Edges::from_lists(lists.into_iter()))
}

/// Rows whose distances to all others are made at once.
const BLOCK: usize = 128;

/// The rows of other classes that are nearer to a row than its reach, at most `most` for each, nearest
/// first; and how many were left out. A row without a reach has none.
pub(super) fn impostors(
    mapped: &dyn Corpus,
    labels: &Labels,
    reach: &[Option<f32>],
    most: usize,
) -> Result<(Edges, u64)> {
    let items = Items::prepare(Space::SquaredL2, mapped)?;
    let rows: Vec<RowId> = (0..mapped.len()).collect();
    let blocks: Vec<Result<(Vec<Vec<u32>>, u64)>> = rows
        .par_chunks(BLOCK)
        .map(|rows| {
            let queries = items.queries(mapped, rows.to_vec())?;
            let mut found: Vec<Vec<(f32, u32)>> = vec![Vec::new(); rows.len()];
            let (mut buffer, mut products) = (RowBuf::empty(items.dim()), Vec::new());
            for tile in 0..items.tiles() {
                items.products(&queries, tile..tile + 1, &mut buffer, &mut products)?;
                let start = tile * TILE;
                let end = items.len().min(start + TILE);
                let (offsets, classes) = (items.offsets(start..end), &labels.of()[start..end]);
                for (index, row) in rows.iter().enumerate() {
                    let Some(reach) = reach[*row as usize] else {
                        continue;
                    };
                    let class = labels.of()[*row as usize];
                    let bound = (f64::from(reach) - queries.squared(index)) as f32;
                    let scores = products[index * TILE..].iter().zip(offsets).zip(classes);
                    for (item, ((product, offset), other)) in (start as u32..).zip(scores) {
                        let score = product + offset;
                        if score < bound && *other != class {
                            found[index].push((score, item));
                        }
                    }
                }
            }
            let mut left_out = 0;
            let kept = found.into_iter().map(|mut found| {
                if found.len() > most {
                    left_out += (found.len() - most) as u64;
                    let order =
                        |a: &(f32, u32), b: &(f32, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
                    found.select_nth_unstable_by(most, order);
                    found.truncate(most);
                    found.sort_unstable_by_key(|(_, item)| *item);
                }
                found.into_iter().map(|(_, item)| item).collect()
            });
            let kept = kept.collect();
            Ok((kept, left_out))
        })
        .collect();
    let (mut lists, mut left_out) = (Vec::with_capacity(rows.len()), 0);
    for block in blocks {
        let (kept, more) = block?;
        lists.extend(kept);
        left_out += more;
    }
    Ok((Edges::from_lists(lists.into_iter()), left_out))
}
