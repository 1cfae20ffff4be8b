//! Counts the scores below and equal to each of a few thresholds, without sorting.
//!
//! Sorting the scores would cost n log n and comparing each with each threshold n · R. Instead a
//! score is mapped linearly to one of many bins between the least and the greatest threshold, and
//! bins are counted. Only the few bins that hold a threshold need more: their counters carry a
//! mark, and scores that meet it are compared with the threshold itself, or set aside where a bin
//! holds several. Nothing is approximate: the map is the same monotone function of f32 for scores
//! and thresholds. Tried and slower at a hundred thresholds: fetching a threshold for every score
//! by a vector gather, and parting the scores around thresholds as quicksort does.

use crate::linalg::vectorized;

/// Scores that are best counted at once.
pub(super) const WIDTH: usize = 4096;

/// Bins where thresholds are few: all that a query needs stays in the first-level cache.
const FEW_BINS: usize = 4096;
/// Bins where thresholds are many.
const MANY_BINS: usize = 1 << 16;
/// From this many thresholds on there are many bins.
const MANY: usize = 512;

/// Scores whose bins are looked up together.
const LANES: usize = 32;
/// Scores whose counters are looked through together for a mark.
const STRIDE: usize = 8;
/// The mark of a counter whose bin holds a threshold; the rest of it counts.
const MARK: u32 = 1 << 31;

/// Sorted thresholds with their counts so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Thresholds {
    values: Vec<f32>,
    low: f32,
    scale: f32,
    /// Scores in each bin, with marks. The upper half is for scores above all thresholds: they
    /// differ in nothing, and side by side they do not wait for each other.
    sizes: Vec<u32>,
    /// The threshold of each marked bin; NaN where there are several.
    bounds: Vec<f32>,
    /// Its number.
    numbers: Vec<u32>,
    /// Scores below the threshold in its bin, for bins of one.
    below: Vec<u64>,
    equal: Vec<u64>,
    /// Scores in bins of several thresholds.
    aside: Vec<f32>,
    total: Vec<Count>,
    /// Scores counted since the counters were last emptied.
    pending: u64,
}

/// Counts of one threshold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// Scores below the threshold.
    pub(super) below: u64,
    /// Scores equal to it.
    pub(super) equal: u64,
}

/// Work space of [`Thresholds::add`].
#[derive(Default)]
pub(super) struct Space {
    bins: Vec<u32>,
    marked: Vec<u32>,
}

impl Thresholds {
    /// Start with thresholds that are increasing, finite and all different.
    pub(super) fn set(&mut self, values: impl Iterator<Item = f32>) {
        self.values.clear();
        self.values.extend(values);
        let count = self.values.len();
        let bins = if count < MANY { FEW_BINS } else { MANY_BINS };
        self.low = self.values.first().copied().unwrap_or(0.0);
        let span = self.values.last().copied().unwrap_or(0.0) - self.low;
        // Below the least threshold is bin 0, the least is in bin 1 and the greatest before the
        // last. A single threshold needs any span that puts most other scores into other bins.
        let span = if span > 0.0 {
            span
        } else {
            self.low.abs() / 256.0
        };
        self.scale = (bins - 4) as f32 / span;
        // Where numbers leave f32 there is one bin for everything: slower, as right.
        if !(self.scale.is_finite() && span.is_finite()) {
            (self.low, self.scale) = (0.0, 0.0);
        }
        self.sizes.clear();
        self.sizes.resize(2 * bins, 0);
        self.bounds.resize(bins, 0.0);
        self.numbers.resize(bins, 0);
        for (number, value) in self.values.iter().enumerate() {
            let bin = bin_of(*value, self.low, self.scale, bins) as usize;
            self.bounds[bin] = if self.sizes[bin] == 0 {
                *value
            } else {
                f32::NAN
            };
            self.numbers[bin] = number as u32;
            self.sizes[bin] = MARK;
        }
        for counts in [&mut self.below, &mut self.equal] {
            counts.clear();
            counts.resize(count, 0);
        }
        self.aside.clear();
        self.total.clear();
        self.total.resize(count, Count::default());
        self.pending = 0;
    }

    /// Count finite scores, fewer than 2^31.
    pub(super) fn add(&mut self, scores: &[f32], space: &mut Space) {
        self.pending += scores.len() as u64;
        if self.pending >= u64::from(MARK) {
            self.settle();
            self.pending = scores.len() as u64;
        }
        if self.sizes.len() == 2 * FEW_BINS {
            self.count::<FEW_BINS, { 2 * FEW_BINS }>(scores, space);
        } else {
            self.count::<MANY_BINS, { 2 * MANY_BINS }>(scores, space);
        }
    }

    /// The counts in the order of the thresholds.
    pub(super) fn finish(&mut self) -> &[Count] {
        self.settle();
        &self.total
    }

    /// `SIZES` is twice `BINS`; both are constants so that no place needs a check.
    fn count<const BINS: usize, const SIZES: usize>(&mut self, scores: &[f32], space: &mut Space) {
        let Ok(sizes) = <&mut [u32; SIZES]>::try_from(&mut self.sizes[..]) else {
            return;
        };
        space.bins.resize(scores.len(), 0);
        let bins = &mut space.bins[..];
        find_bins::<BINS>(scores, self.low, self.scale, bins);
        space.marked.clear();
        let (chunks, rest) = bins.as_chunks::<STRIDE>();
        for (number, chunk) in chunks.iter().enumerate() {
            let mut any = 0;
            for bin in chunk {
                let size = &mut sizes[*bin as usize % SIZES];
                any |= *size;
                *size += 1;
            }
            if any & MARK != 0 {
                for (lane, bin) in chunk.iter().enumerate() {
                    if sizes[*bin as usize % SIZES] & MARK != 0 {
                        space.marked.push((number * STRIDE + lane) as u32);
                    }
                }
            }
        }
        for (lane, bin) in rest.iter().enumerate() {
            let size = &mut sizes[*bin as usize % SIZES];
            *size += 1;
            if *size & MARK != 0 {
                space.marked.push((chunks.len() * STRIDE + lane) as u32);
            }
        }
        for place in &space.marked {
            let score = scores[*place as usize];
            let bin = bins[*place as usize] as usize % BINS;
            let (bound, number) = (self.bounds[bin], self.numbers[bin] as usize);
            if bound.is_nan() {
                self.aside.push(score);
            } else {
                self.below[number] += u64::from(score < bound);
                self.equal[number] += u64::from(score == bound);
            }
        }
    }

    /// Add what was counted to the totals.
    fn settle(&mut self) {
        let bins = self.sizes.len() / 2;
        let bin_of = |score: f32| bin_of(score, self.low, self.scale, bins) as usize;
        self.aside.sort_unstable_by(f32::total_cmp);
        let mut aside = &self.aside[..];
        let (mut before, mut bin) = (0_u64, 0);
        for (number, value) in self.values.iter().enumerate() {
            let own = bin_of(*value);
            while bin < own {
                before += u64::from(self.sizes[bin] & !MARK);
                bin += 1;
            }
            let total = &mut self.total[number];
            if self.bounds[own].is_nan() {
                // What was set aside is sorted, and so are the bins it came from.
                aside = &aside[aside.partition_point(|score| bin_of(*score) < own)..];
                let below = aside.partition_point(|score| score < value);
                total.below += before + below as u64;
                total.equal += aside.partition_point(|score| score <= value) as u64 - below as u64;
            } else {
                total.below += before + self.below[number];
                total.equal += self.equal[number];
            }
        }
        for size in &mut self.sizes {
            *size &= MARK;
        }
        self.below.fill(0);
        self.equal.fill(0);
        self.aside.clear();
    }
}

/// The bin of every score; those above all thresholds go to one of many places.
fn find_bins<const BINS: usize>(scores: &[f32], low: f32, scale: f32, out: &mut [u32]) {
    vectorized(
        #[inline(always)]
        || {
            let (chunks, rest) = scores.as_chunks::<LANES>();
            let (targets, last) = out.as_chunks_mut::<LANES>();
            for (target, chunk) in targets.iter_mut().zip(chunks) {
                for lane in 0..LANES {
                    let bin = bin_of(chunk[lane], low, scale, BINS);
                    let above = bin == BINS as u32 - 1;
                    target[lane] = if above { (BINS + lane) as u32 } else { bin };
                }
            }
            for (target, score) in last.iter_mut().zip(rest) {
                *target = bin_of(*score, low, scale, BINS);
            }
        },
    );
}

/// The bin of a finite score: a monotone function of it.
#[inline(always)]
fn bin_of(score: f32, low: f32, scale: f32, bins: usize) -> u32 {
    let place = (score - low) * scale + 1.0;
    let place = if place > 0.0 { place } else { 0.0 };
    let last = (bins - 1) as f32;
    let place = if place < last { place } else { last };
    // From 2^23 on f32 has no digits behind the point: its last bits are the whole number.
    (place + 8_388_608.0).to_bits() & 0x007f_ffff
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn check(values: &[f32], scores: &[f32]) {
        let mut found = Thresholds::default();
        let mut space = Space::default();
        // Twice, so that nothing of the first round may stay.
        for _ in 0..2 {
            found.set(values.iter().copied());
            found.add(scores, &mut space);
            found.add(&scores[..scores.len() / 2], &mut space);
            let seen = || scores.iter().chain(&scores[..scores.len() / 2]);
            for (value, count) in values.iter().zip(found.finish()) {
                let below = seen().filter(|score| *score < value).count() as u64;
                let equal = seen().filter(|score| *score == value).count() as u64;
                assert_eq!(*count, Count { below, equal }, "threshold {value}");
            }
        }
    }

    #[test]
    fn counts_equal_the_definition() {
        let mut stream = Stream::new(1, "test", 0);
        for (scores, thresholds) in [
            (1, 1),
            (4096, 1),
            (777, 3),
            (4096, 100),
            (3000, 900),
            (4096, 3000),
            (5, 50),
        ] {
            // Few different values, so that many are equal.
            let mut draw = |count: usize, range: u64| -> Vec<f32> {
                let value = |v: u64| v as f32 - range as f32 / 3.0;
                (0..count).map(|_| value(stream.below(range))).collect()
            };
            let mut values = draw(thresholds, 2 * thresholds as u64 + 3);
            values.sort_by(f32::total_cmp);
            values.dedup();
            let scores = draw(scores, 3 * thresholds as u64);
            check(&values, &scores);
            // One threshold far away leaves many of the others in one bin.
            values.push(1e6);
            check(&values, &scores);
        }
    }

    #[test]
    fn extreme_thresholds_are_counted_too() {
        let scores = [
            -3.2e38,
            -3e38,
            0.0,
            1e-45,
            1.0,
            1.0 + f32::EPSILON,
            2.0,
            1e30,
            3.1e38,
        ];
        for values in [
            &[-3e38_f32, 3e38][..],
            &[0.0, 1e-45],
            &[1.0, 1.0 + f32::EPSILON, 1e30],
        ] {
            check(values, &scores);
        }
    }
}
