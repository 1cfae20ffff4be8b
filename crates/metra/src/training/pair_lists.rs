//! Lists of row pairs grouped by row, and the gradient of a loss over their distances.
//!
//! A loss over squared distances has a weight for every pair, its slope by the distance. The slope by a
//! row is then the sum over its pairs, in both directions, of 2·weight·(difference). It is summed row by
//! row, so that the order of every sum is fixed, and nothing but row numbers is kept of a pair.

use crate::data::RowId;
use crate::linalg::{RowBuf, Rows, vectorized};
use rayon::prelude::*;

/// Edges from rows to other rows, those of a row side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PairLists {
    /// Where the edges of each row begin, and the end of all.
    starts: Vec<usize>,
    to: Vec<u32>,
}

impl PairLists {
    /// The lists of all rows, one after another.
    pub(crate) fn from_lists(lists: impl Iterator<Item = Vec<u32>>) -> Self {
        let (mut starts, mut to) = (vec![0], Vec::new());
        for list in lists {
            to.extend(list);
            starts.push(to.len());
        }
        PairLists { starts, to }
    }

    /// No edge from any of these rows.
    pub(crate) fn none(rows: usize) -> Self {
        PairLists {
            starts: vec![0; rows + 1],
            to: Vec::new(),
        }
    }

    /// Number of edges.
    pub(crate) fn len(&self) -> usize {
        self.to.len()
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Where the edges of a row lie.
    pub(crate) fn range(&self, row: usize) -> std::ops::Range<usize> {
        self.starts[row]..self.starts[row + 1]
    }

    /// The rows that a row's edges lead to.
    pub(crate) fn of(&self, row: usize) -> &[u32] {
        &self.to[self.range(row)]
    }

    /// All edges.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (RowId, RowId)> + '_ {
        (0..self.rows()).flat_map(|row| {
            let from = row as RowId;
            self.of(row).iter().map(move |to| (from, RowId::from(*to)))
        })
    }

    /// For each row the edges that lead to it: their numbers and where they come from.
    pub(crate) fn reversed(&self) -> Reversed {
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

/// PairLists by the row that they lead to.
#[derive(Debug, Clone)]
pub(crate) struct Reversed {
    starts: Vec<usize>,
    edges: Vec<(u32, u32)>,
}

impl Reversed {
    /// Number and origin of every edge that leads to a row.
    pub(crate) fn of(&self, row: usize) -> &[(u32, u32)] {
        &self.edges[self.starts[row]..self.starts[row + 1]]
    }
}

/// The slope of a loss by every row, from the weights of its edges, kind by kind.
pub(crate) fn slopes(mapped: Rows<'_>, kinds: &[(&PairLists, &Reversed, &Vec<f32>)]) -> RowBuf {
    let mut slopes = RowBuf::zeros(mapped.len(), mapped.dim());
    let by_row = slopes.values_mut().par_chunks_mut(mapped.dim());
    by_row.enumerate().for_each(|(row, slope)| {
        let own = mapped.row(row);
        let mut add = |other: u32, weight: f32| {
            if weight != 0.0 {
                add_difference(slope, 2.0 * weight, own, mapped.row(other as usize));
            }
        };
        for (edges, reversed, weights) in kinds {
            for (to, weight) in edges.of(row).iter().zip(&weights[edges.range(row)]) {
                add(*to, *weight);
            }
            for (edge, from) in reversed.of(row) {
                add(*from, weights[*edge as usize]);
            }
        }
    });
    slopes
}

/// Squared distance.
pub(crate) fn apart(a: &[f32], b: &[f32]) -> f32 {
    vectorized(
        #[inline(always)]
        || {
            // Running sums side by side in a fixed order let the compiler use vector registers.
            let (a_lanes, a_rest) = a.as_chunks::<16>();
            let (b_lanes, b_rest) = b.as_chunks::<16>();
            let mut sums = [0.0_f32; 16];
            for (a, b) in a_lanes.iter().zip(b_lanes) {
                for lane in 0..16 {
                    sums[lane] += (a[lane] - b[lane]) * (a[lane] - b[lane]);
                }
            }
            let rest = a_rest.iter().zip(b_rest).map(|(a, b)| (a - b) * (a - b));
            sums.iter().sum::<f32>() + rest.sum::<f32>()
        },
    )
}

fn add_difference(target: &mut [f32], weight: f32, a: &[f32], b: &[f32]) {
    vectorized(
        #[inline(always)]
        || {
            for ((target, a), b) in target.iter_mut().zip(a).zip(b) {
                *target += weight * (a - b);
            }
        },
    );
}
