//! Few thresholds: scores are counted in many bins, and only those in a bin that holds a threshold are compared.
//!
//! Counters have 16 bits, so that those of a query stay in the first-level cache. The counter of a bin that holds a
//! threshold carries a mark; scores that meet it are compared with the threshold itself, or set aside where a bin holds
//! several. Tried and slower at a hundred thresholds: fetching a threshold for every score by a vector gather, and
//! parting the scores around thresholds as quicksort does.

use super::{Count, LANES, Linear, ScoreRow, Space, find_bins};
use crate::linalg::vectorized;

/// Bins.
const BINS: usize = 4096;
/// Places of counters: all that a bin's number can name, so that none needs a check. Only the first are ever touched.
const PLACES: usize = 1 << 16;
/// Scores whose counters are looked through together for a mark.
const STRIDE: usize = 8;
/// Chunks of the largest row.
pub(super) const CHUNKS: usize = super::WIDTH / STRIDE;
/// The mark of a counter whose bin holds a threshold; the rest of it counts.
const MARK: u16 = 1 << 15;
/// Marks a bin that holds several thresholds.
const SEVERAL: u16 = u16::MAX;

/// Counters of the bins.
#[derive(Debug, Clone, Default)]
pub(super) struct Bins {
    linear: Linear,
    /// Scores in each bin, with marks; then places for scores above all thresholds.
    sizes: Vec<u16>,
    /// The threshold of each marked bin, or [`SEVERAL`].
    numbers: Vec<u16>,
    /// Scores below the threshold and equal to it in its bin, for bins of one.
    within: Vec<Count>,
    /// Scores in bins of several thresholds.
    aside: Vec<f32>,
    /// Scores counted since the counters were last emptied.
    pending: usize,
}

impl Bins {
    pub(super) fn set(&mut self, values: &[f32]) {
        self.linear = Linear::between(values, BINS);
        if self.sizes.is_empty() {
            // Fresh from the system, so that places nobody touches take no memory.
            self.sizes = vec![0; PLACES];
        }
        self.sizes[..BINS + LANES].fill(0);
        self.numbers.resize(BINS, 0);
        for (number, value) in values.iter().enumerate() {
            let bin = self.linear.bin(*value) as usize;
            let is_first = self.sizes[bin] == 0;
            self.numbers[bin] = if is_first { number as u16 } else { SEVERAL };
            self.sizes[bin] = MARK;
        }
        self.within.clear();
        self.within.resize(values.len(), Count::default());
        self.aside.clear();
        self.pending = 0;
    }

    /// Count a row of at most [`super::WIDTH`] scores. `total` gets what the counters cannot hold.
    pub(super) fn add(
        &mut self,
        row: ScoreRow<'_>,
        values: &[f32],
        total: &mut [Count],
        space: &mut Space,
    ) {
        if self.pending + row.len() >= usize::from(MARK) {
            self.settle(values, total);
        }
        self.pending += row.len();
        let Ok(sizes) = <&mut [u16; PLACES]>::try_from(&mut self.sizes[..]) else {
            return;
        };
        find_bins(row, &self.linear, &mut space.bins);
        // No branch depends on a score: a wrong guess of the processor would cost as much as counting twenty of them.
        let (chunks, rest) = space.bins.as_chunks::<STRIDE>();
        let mut met = 0;
        for (number, chunk) in chunks.iter().enumerate() {
            let mut any = 0;
            for bin in chunk {
                let size = &mut sizes[usize::from(*bin)];
                any |= *size;
                *size += 1;
            }
            space.chunks[met % CHUNKS] = number as u16;
            met += usize::from(any / MARK);
        }
        space.marked.resize(met * STRIDE + rest.len() + 1, 0);
        let mut found = 0;
        let mut look = |place: usize, bin: u16| {
            space.marked[found] = place as u16;
            found += usize::from(sizes[usize::from(bin)] / MARK);
        };
        for number in &space.chunks[..met.min(CHUNKS)] {
            let number = usize::from(*number);
            for (lane, bin) in chunks[number].iter().enumerate() {
                look(number * STRIDE + lane, *bin);
            }
        }
        let first = chunks.len() * STRIDE;
        for (lane, bin) in rest.iter().enumerate() {
            look(first + lane, *bin);
        }
        for bin in rest {
            sizes[usize::from(*bin)] += 1;
        }
        for place in &space.marked[..found] {
            let score = row.score(usize::from(*place));
            match self.numbers[space.bins[usize::from(*place)] as usize] {
                SEVERAL => self.aside.push(score),
                number => {
                    let bound = values[usize::from(number)];
                    let count = &mut self.within[usize::from(number)];
                    count.below += u64::from(score < bound);
                    count.equal += u64::from(score == bound);
                }
            }
        }
    }

    /// Add what was counted to the totals.
    pub(super) fn settle(&mut self, values: &[f32], total: &mut [Count]) {
        self.aside.sort_unstable_by(f32::total_cmp);
        let mut aside = &self.aside[..];
        let (mut before, mut bin) = (0_u64, 0);
        for ((number, value), total) in values.iter().enumerate().zip(total) {
            let own = self.linear.bin(*value) as usize;
            before += sum(&self.sizes[bin..own]);
            bin = own;
            if self.numbers[own] == SEVERAL {
                // What was set aside is sorted, and so are the bins it came from.
                let is_before = |score: &f32| (self.linear.bin(*score) as usize) < own;
                aside = &aside[aside.partition_point(is_before)..];
                let below = aside.partition_point(|score| score < value);
                total.below += before + below as u64;
                total.equal += aside.partition_point(|score| score <= value) as u64 - below as u64;
            } else {
                let within = self.within[number];
                total.below += before + within.below;
                total.equal += within.equal;
            }
        }
        for size in &mut self.sizes[..BINS + LANES] {
            *size &= MARK;
        }
        self.within.fill(Count::default());
        self.aside.clear();
        self.pending = 0;
    }
}

/// The sum of counters without their marks.
fn sum(sizes: &[u16]) -> u64 {
    vectorized(
        #[inline(always)]
        || {
            // Fewer than 2^15 scores lie in all of them together.
            let all = sizes.iter().map(|size| u32::from(size & !MARK));
            u64::from(all.sum::<u32>())
        },
    )
}
