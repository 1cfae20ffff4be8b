//! Counts the scores below and equal to each of some thresholds, without sorting them.
//!
//! Sorting the scores would cost n log n and comparing each with each threshold n · R. Instead a
//! score is mapped linearly to one of many bins between the least and the greatest threshold, unless there are only a
//! few thresholds. Nothing
//! is approximate: the map is the same monotone function of f32 for scores and thresholds, and scores that share a bin
//! with a threshold are compared with it.

mod bins;
mod buckets;
mod each;

use crate::linalg::vectorized;
use bins::Bins;
use buckets::Buckets;

/// Scores of a row, at most: so many that the counters of a query are worth fetching.
pub(super) const WIDTH: usize = 4096;

/// Scores that are best counted at once, by the number of thresholds.
pub(super) fn best_width(thresholds: usize) -> usize {
    match thresholds {
        // No counters to fetch: products are quickest where few of them are kept.
        0..=HANDFUL => 1024,
        count if count < MANY => WIDTH,
        _ => 32_768,
    }
}

/// Up to this many thresholds every score is compared with each.
const HANDFUL: usize = 8;

/// From this many thresholds on scores are parted into buckets.
const MANY: usize = 256;

/// Scores whose bins are found together.
const LANES: usize = 32;

static NO_OFFSETS: [f32; WIDTH] = [0.0; WIDTH];

/// Scores of one query with some items: a product and an offset each.
#[derive(Clone, Copy)]
pub(super) struct ScoreRow<'a> {
    products: &'a [f32],
    offsets: &'a [f32],
}

impl<'a> ScoreRow<'a> {
    /// Scores `products[i] + offsets[i]`, which must be finite.
    pub(super) fn new(products: &'a [f32], offsets: &'a [f32]) -> Self {
        let len = products.len().min(offsets.len());
        ScoreRow {
            products: &products[..len],
            offsets: &offsets[..len],
        }
    }

    /// At most [`WIDTH`] scores that are known as they are.
    pub(super) fn plain(scores: &'a [f32]) -> Self {
        Self::new(scores, &NO_OFFSETS)
    }

    pub(super) fn len(&self) -> usize {
        self.products.len()
    }

    /// Rows of at most so many scores.
    fn parts(self, width: usize) -> impl Iterator<Item = ScoreRow<'a>> {
        let parts = self.products.chunks(width).zip(self.offsets.chunks(width));
        parts.map(|(products, offsets)| ScoreRow { products, offsets })
    }

    #[inline(always)]
    pub(super) fn score(&self, place: usize) -> f32 {
        self.products[place] + self.offsets[place]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = f32> {
        (self.products.iter().zip(self.offsets)).map(|(product, offset)| product + offset)
    }
}

/// Sorted thresholds with their counts so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Thresholds {
    values: Vec<f32>,
    bins: Bins,
    buckets: Buckets,
    total: Vec<Count>,
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
pub(super) struct Space {
    bins: Vec<u16>,
    chunks: [u16; bins::CHUNKS],
    marked: Vec<u16>,
    cursors: Vec<u32>,
    ends: Vec<u32>,
    parted: Vec<f32>,
}

impl Default for Space {
    fn default() -> Self {
        Space {
            bins: Vec::new(),
            chunks: [0; bins::CHUNKS],
            marked: Vec::new(),
            cursors: Vec::new(),
            ends: Vec::new(),
            parted: Vec::new(),
        }
    }
}

impl Thresholds {
    /// Start with thresholds that are increasing, finite and all different.
    pub(super) fn set(&mut self, values: impl Iterator<Item = f32>) {
        self.values.clear();
        self.values.extend(values);
        self.total.clear();
        self.total.resize(self.values.len(), Count::default());
        match self.values.len() {
            0..=HANDFUL => {}
            count if count < MANY => self.bins.set(&self.values),
            _ => self.buckets.set(&self.values),
        }
    }

    /// Count finite scores, fewer than 2^31.
    pub(super) fn add(&mut self, row: ScoreRow<'_>, space: &mut Space) {
        match self.values.len() {
            0..=HANDFUL => each::add(row, &self.values, &mut self.total),
            count if count < MANY => {
                // A row can be longer where other queries of its block have more thresholds.
                for part in row.parts(WIDTH) {
                    self.bins.add(part, &self.values, &mut self.total, space);
                }
            }
            _ => self.buckets.add(row, &self.values, space),
        }
    }

    /// The counts in the order of the thresholds.
    pub(super) fn finish(&mut self) -> &[Count] {
        match self.values.len() {
            0..=HANDFUL => {}
            count if count < MANY => self.bins.settle(&self.values, &mut self.total),
            _ => self.buckets.settle(&mut self.total),
        }
        &self.total
    }
}

/// A monotone map of scores to bins: below the least threshold is bin 0, the least is in bin 1, the greatest before the
/// last, and all above it in the last.
#[derive(Debug, Clone, Copy, Default)]
struct Linear {
    low: f32,
    scale: f32,
    last: f32,
}

impl Linear {
    fn between(values: &[f32], bins: usize) -> Self {
        let low = values.first().copied().unwrap_or(0.0);
        let span = values.last().copied().unwrap_or(0.0) - low;
        // A single threshold needs any span that puts most other scores into other bins.
        let span = if span > 0.0 { span } else { low.abs() / 256.0 };
        let last = (bins - 1) as f32;
        let scale = (bins - 4) as f32 / span;
        // Where numbers leave f32 there is one bin for everything: slower, as right.
        if scale.is_finite() && span.is_finite() {
            Linear { low, scale, last }
        } else {
            Linear {
                low: 0.0,
                scale: 0.0,
                last,
            }
        }
    }

    /// The bin of a finite score.
    #[inline(always)]
    fn bin(&self, score: f32) -> u32 {
        let place = (score - self.low) * self.scale + 1.0;
        let place = if place > 0.0 { place } else { 0.0 };
        let place = if place < self.last { place } else { self.last };
        // From 2^23 on f32 has no digits behind the point: its last bits are the whole number.
        (place + 8_388_608.0).to_bits() & 0x007f_ffff
    }
}

/// The bin of every score. Those above all thresholds differ in nothing and go to one of [`LANES`] places behind the
/// bins, so that their counters do not wait for each other.
fn find_bins(row: ScoreRow<'_>, linear: &Linear, out: &mut Vec<u16>) {
    let linear = *linear;
    let last = linear.last as u32;
    out.resize(row.len(), 0);
    vectorized(
        #[inline(always)]
        || {
            let (products, _) = row.products.as_chunks::<LANES>();
            let (offsets, _) = row.offsets.as_chunks::<LANES>();
            let (targets, rest) = out.as_chunks_mut::<LANES>();
            for ((target, product), offset) in targets.iter_mut().zip(products).zip(offsets) {
                for lane in 0..LANES {
                    let bin = linear.bin(product[lane] + offset[lane]);
                    let above = last + 1 + lane as u32;
                    target[lane] = if bin == last {
                        above as u16
                    } else {
                        bin as u16
                    };
                }
            }
            let first = row.len() - rest.len();
            for (place, target) in rest.iter_mut().enumerate() {
                *target = linear.bin(row.score(first + place)) as u16;
            }
        },
    );
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
            found.add(ScoreRow::plain(scores), &mut space);
            found.add(ScoreRow::plain(&scores[..scores.len() / 2]), &mut space);
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
            (2048, 1),
            (777, 3),
            (2048, 7),
            (2048, 12),
            (2048, 100),
            (2000, 900),
            (2048, 3000),
            (WIDTH, 255),
            (WIDTH, 256),
            (2000, 9000),
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
    fn long_rows_of_equal_scores_overflow_no_counter() {
        let offsets = vec![0.5; 70_000];
        for thresholds in [3, 100, 300] {
            let values: Vec<f32> = (0..thresholds).map(|value| value as f32).collect();
            let mut found = Thresholds::default();
            found.set(values.iter().copied());
            for products in [vec![1.5; 70_000], vec![1.6; 70_000]] {
                let row = ScoreRow::new(&products, &offsets);
                found.add(row, &mut Space::default());
            }
            let counts = found.finish();
            let equal = Count {
                below: 0,
                equal: 70_000,
            };
            assert_eq!((counts[2], counts[0]), (equal, Count::default()));
            if thresholds > 3 {
                let below = 140_000;
                assert_eq!(counts[3], Count { below, equal: 0 });
            }
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
