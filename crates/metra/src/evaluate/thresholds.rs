//! How many of many scores lie below each of a few thresholds, and how many equal it.
//!
//! Sorting the scores would cost n log n and comparing each with each threshold n · R. Instead the
//! scores are parted around every second, fourth, … threshold, level by level, as quicksort would
//! with pivots that are known to be the right ones, until a bucket holds about two thresholds; then
//! all pairs of a bucket are compared. With AVX-512 a parting moves sixteen scores with one
//! compress instruction (Bramas, *A novel hybrid quicksort algorithm vectorized using AVX-512*,
//! 2017), so that the whole costs some six machine instructions a score at a hundred thresholds.

use crate::linalg::vectorized;

/// Scores that are parted at once. Both halves of the work space stay in the first-level cache.
pub(super) const WIDTH: usize = 4096;

/// A vector of scores.
const LANES: usize = 16;

/// Thresholds of a bucket that are compared with all its scores.
const THRESHOLDS_A_BUCKET: usize = 8;

const MOST_BUCKETS: usize = 128;

/// Sorted thresholds with their counts so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Thresholds {
    values: Vec<f32>,
    /// Scores of the bucket that lie below the threshold.
    below: Vec<u32>,
    equal: Vec<u32>,
    /// Scores in each bucket.
    sizes: Vec<u64>,
    /// Counts that would not fit u32 any more are moved here.
    total: Vec<Count>,
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
pub(super) struct Space {
    from: Vec<f32>,
    to: Vec<f32>,
    starts: Vec<usize>,
    next: Vec<usize>,
}

impl Default for Space {
    fn default() -> Self {
        Space {
            from: vec![0.0; WIDTH + LANES],
            to: vec![0.0; WIDTH + LANES],
            starts: Vec::with_capacity(MOST_BUCKETS + 1),
            next: Vec::with_capacity(MOST_BUCKETS + 1),
        }
    }
}

impl Thresholds {
    /// Start with thresholds that are increasing, finite and all different.
    pub(super) fn set(&mut self, values: impl Iterator<Item = f32>) {
        self.values.clear();
        self.values.extend(values);
        let count = self.values.len();
        let buckets = (count / THRESHOLDS_A_BUCKET).max(1).next_power_of_two();
        self.sizes.clear();
        self.sizes.resize(buckets.min(MOST_BUCKETS), 0);
        for counts in [&mut self.below, &mut self.equal] {
            counts.clear();
            counts.resize(count, 0);
        }
        self.total.clear();
        self.total.resize(count, Count::default());
        self.pending = 0;
    }

    /// Count at most [`WIDTH`] scores.
    pub(super) fn add(&mut self, scores: &[f32], space: &mut Space) {
        self.pending += scores.len() as u64;
        if self.pending > u64::from(u32::MAX) {
            self.settle();
            self.pending = scores.len() as u64;
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V4::try_new() {
            struct Work<'a>(&'a mut Thresholds, &'a [f32], &'a mut Space, pulp::x86::V4);
            impl pulp::NullaryFnOnce for Work<'_> {
                type Output = ();
                #[inline(always)]
                fn call(self) {
                    self.0.count(self.1, self.2, wide::Avx512(self.3));
                }
            }
            simd.vectorize(Work(self, scores, space, simd));
            return;
        }
        vectorized(
            #[inline(always)]
            || self.count(scores, space, Plain),
        );
    }

    /// The counts in the order of the thresholds.
    pub(super) fn finish(&mut self) -> &[Count] {
        self.settle();
        &self.total
    }

    /// First threshold of a bucket. Where buckets hold many, they hold whole vectors of them and the
    /// last buckets may be empty.
    #[inline(always)]
    fn first(&self, bucket: usize) -> usize {
        let share = self.values.len().div_ceil(self.sizes.len());
        let step = if share > LANES { LANES } else { 1 };
        (bucket * share.next_multiple_of(step)).min(self.values.len())
    }

    #[inline(always)]
    fn count(&mut self, scores: &[f32], space: &mut Space, machine: impl Machine) {
        let buckets = self.sizes.len();
        space.from[..scores.len()].copy_from_slice(scores);
        space.starts.clear();
        space.starts.extend([0, scores.len()]);
        let mut span = buckets;
        while span > 1 {
            space.next.clear();
            for (number, bounds) in space.starts.windows(2).enumerate() {
                let pivot = self.values.get(self.first(number * span + span / 2));
                let pivot = pivot.copied().unwrap_or(f32::INFINITY);
                let from = &space.from[bounds[0]..bounds[1]];
                let below = machine.part(from, &mut space.to[bounds[0]..], pivot);
                space.next.extend([bounds[0], bounds[0] + below]);
            }
            space.next.push(scores.len());
            std::mem::swap(&mut space.from, &mut space.to);
            std::mem::swap(&mut space.starts, &mut space.next);
            span /= 2;
        }
        for (bucket, bounds) in space.starts.windows(2).enumerate() {
            self.sizes[bucket] += (bounds[1] - bounds[0]) as u64;
            let scores = &space.from[bounds[0]..bounds[1]];
            let own = self.first(bucket)..self.first(bucket + 1);
            let (values, below) = (&self.values[own.clone()], &mut self.below[own.clone()]);
            let equal = &mut self.equal[own];
            // The inner loop runs over the longer of the two.
            if values.len() >= LANES && scores.len() < 4 * values.len() {
                machine.compare_few(scores, values, below, equal);
            } else {
                machine.compare(scores, values, below, equal);
            }
        }
    }

    /// Add what was counted to the totals: everything in earlier buckets lies below.
    fn settle(&mut self) {
        let mut before = 0;
        for bucket in 0..self.sizes.len() {
            for number in self.first(bucket)..self.first(bucket + 1) {
                self.total[number].below += before + u64::from(self.below[number]);
                self.total[number].equal += u64::from(self.equal[number]);
            }
            before += self.sizes[bucket];
        }
        self.sizes.fill(0);
        self.below.fill(0);
        self.equal.fill(0);
    }
}

/// The two inner loops, for a kind of machine.
trait Machine: Copy {
    /// Copy the scores below `pivot` and then the others to the start of `to`; returns how many lie
    /// below. Up to [`LANES`] numbers behind them may be overwritten.
    fn part(self, from: &[f32], to: &mut [f32], pivot: f32) -> usize;

    /// Count for every threshold the scores below it and equal to it.
    fn compare(self, scores: &[f32], thresholds: &[f32], below: &mut [u32], equal: &mut [u32]);

    /// The same for few scores and many thresholds.
    #[inline(always)]
    fn compare_few(self, scores: &[f32], thresholds: &[f32], below: &mut [u32], equal: &mut [u32]) {
        self.compare(scores, thresholds, below, equal);
    }
}

/// Any machine: no branch depends on a score.
#[derive(Clone, Copy)]
struct Plain;

impl Machine for Plain {
    #[inline(always)]
    fn part(self, from: &[f32], to: &mut [f32], pivot: f32) -> usize {
        let below = from.iter().map(|score| usize::from(*score < pivot)).sum();
        let (mut low, mut high) = (0, below);
        for score in from {
            let is_below = *score < pivot;
            // The place behind the last is overwritten by the next score or the next segment.
            to[if is_below { low } else { high }] = *score;
            low += usize::from(is_below);
            high += usize::from(!is_below);
        }
        below
    }

    #[inline(always)]
    fn compare(self, scores: &[f32], thresholds: &[f32], below: &mut [u32], equal: &mut [u32]) {
        for ((threshold, below), equal) in thresholds.iter().zip(below).zip(equal) {
            for score in scores {
                *below += u32::from(score < threshold);
                *equal += u32::from(score == threshold);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::{LANES, Machine};
    use pulp::x86::V4;
    use std::arch::x86_64::{__m512, _CMP_EQ_OQ, _CMP_LT_OQ};

    /// Machines with AVX-512.
    #[derive(Clone, Copy)]
    pub(super) struct Avx512(pub(super) V4);

    impl Avx512 {
        #[inline(always)]
        fn below(self, scores: __m512, bound: __m512) -> u16 {
            self.0
                .avx512f
                ._mm512_cmp_ps_mask::<_CMP_LT_OQ>(scores, bound)
        }

        #[inline(always)]
        fn equal(self, scores: __m512, bound: __m512) -> u16 {
            self.0
                .avx512f
                ._mm512_cmp_ps_mask::<_CMP_EQ_OQ>(scores, bound)
        }

        /// Write the scores of the mask side by side to `to[end..]`; returns the new end.
        #[inline(always)]
        fn pack(self, scores: __m512, mask: u16, to: &mut [f32], end: usize) -> usize {
            let packed = self.0.avx512f._mm512_maskz_compress_ps(mask, scores);
            if let Some(to) = to
                .get_mut(end..)
                .and_then(|to| to.first_chunk_mut::<LANES>())
            {
                *to = bytemuck::cast(packed);
            }
            end + mask.count_ones() as usize
        }
    }

    /// Sixteen scores as a vector. Written out, because a cast by value leaves copies on the stack.
    #[inline(always)]
    fn load(simd: V4, s: &[f32; LANES]) -> __m512 {
        simd.avx512f._mm512_setr_ps(
            s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11], s[12], s[13],
            s[14], s[15],
        )
    }

    /// The last, incomplete vector, filled up with infinity: it lies above every bound, and what is
    /// written of it lies behind everything.
    #[inline(always)]
    fn filled(simd: V4, rest: &[f32]) -> __m512 {
        let mut last = [f32::INFINITY; LANES];
        for (target, score) in last.iter_mut().zip(rest) {
            *target = *score;
        }
        load(simd, &last)
    }

    impl Machine for Avx512 {
        #[inline(always)]
        fn part(self, from: &[f32], to: &mut [f32], pivot: f32) -> usize {
            assert!(to.len() >= from.len() + LANES, "stores write whole vectors");
            let pivot = self.0.avx512f._mm512_set1_ps(pivot);
            let (chunks, rest) = from.as_chunks::<LANES>();
            let last = filled(self.0, rest);
            // Two passes: a store writes sixteen numbers of which only the first are meant, so that
            // the upper part may begin only when the lower part is complete.
            let mut end = 0;
            for chunk in chunks {
                let scores = load(self.0, chunk);
                end = self.pack(scores, self.below(scores, pivot), to, end);
            }
            end = self.pack(last, self.below(last, pivot), to, end);
            let below = end;
            for chunk in chunks {
                let scores = load(self.0, chunk);
                end = self.pack(scores, !self.below(scores, pivot), to, end);
            }
            self.pack(last, !self.below(last, pivot), to, end);
            below
        }

        #[inline(always)]
        fn compare(self, scores: &[f32], thresholds: &[f32], below: &mut [u32], equal: &mut [u32]) {
            let (chunks, rest) = scores.as_chunks::<LANES>();
            let last = filled(self.0, rest);
            let simd = self.0.avx512f;
            let minus_one = simd._mm512_set1_epi32(-1);
            for ((threshold, below), equal) in thresholds.iter().zip(below).zip(equal) {
                let threshold = simd._mm512_set1_ps(*threshold);
                let (mut lower, mut same) =
                    (simd._mm512_setzero_si512(), simd._mm512_setzero_si512());
                for chunk in chunks {
                    let scores = load(self.0, chunk);
                    let mask = self.below(scores, threshold);
                    lower = simd._mm512_mask_sub_epi32(lower, mask, lower, minus_one);
                    let mask = self.equal(scores, threshold);
                    same = simd._mm512_mask_sub_epi32(same, mask, same, minus_one);
                }
                *below += simd._mm512_reduce_add_epi32(lower) as u32
                    + self.below(last, threshold).count_ones();
                *equal += simd._mm512_reduce_add_epi32(same) as u32
                    + self.equal(last, threshold).count_ones();
            }
        }

        #[inline(always)]
        fn compare_few(
            self,
            scores: &[f32],
            thresholds: &[f32],
            below: &mut [u32],
            equal: &mut [u32],
        ) {
            let simd = self.0.avx512f;
            let minus_one = simd._mm512_set1_epi32(-1);
            let (values, rest) = thresholds.as_chunks::<LANES>();
            let (below, below_rest) = below.as_chunks_mut::<LANES>();
            let (equal, equal_rest) = equal.as_chunks_mut::<LANES>();
            for ((values, below), equal) in values.iter().zip(below).zip(equal) {
                let values = load(self.0, values);
                let (mut lower, mut same) =
                    (simd._mm512_setzero_si512(), simd._mm512_setzero_si512());
                for score in scores {
                    let score = simd._mm512_set1_ps(*score);
                    let mask = self.below(score, values);
                    lower = simd._mm512_mask_sub_epi32(lower, mask, lower, minus_one);
                    let mask = self.equal(score, values);
                    same = simd._mm512_mask_sub_epi32(same, mask, same, minus_one);
                }
                let (lower, same): ([u32; LANES], [u32; LANES]) =
                    (bytemuck::cast(lower), bytemuck::cast(same));
                for lane in 0..LANES {
                    below[lane] += lower[lane];
                    equal[lane] += same[lane];
                }
            }
            self.compare(scores, rest, below_rest, equal_rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn counts_equal_the_definition() {
        let mut stream = Stream::new(1, "test", 0);
        for (scores, thresholds) in [
            (1, 1),
            (4096, 1),
            (777, 3),
            (4096, 100),
            (3000, 900),
            (5, 50),
        ] {
            // Few different values, so that many are equal; −0 does not occur in scores.
            let mut draw = |count: usize| -> Vec<f32> {
                let range = 2 * count as u64 + 3;
                (0..count)
                    .map(|_| stream.below(range) as f32 - count as f32 / 2.0)
                    .collect()
            };
            let mut values = draw(thresholds);
            values.sort_by(f32::total_cmp);
            values.dedup();
            let scores = draw(scores);
            let mut found = Thresholds::default();
            found.set(values.iter().copied());
            let mut space = Space::default();
            found.add(&scores, &mut space);
            found.add(&scores[..scores.len() / 2], &mut space);
            let mut plain = found.clone();
            plain.set(values.iter().copied());
            plain.count(&scores, &mut space, Plain);
            plain.count(&scores[..scores.len() / 2], &mut space, Plain);
            assert_eq!(found.finish(), plain.finish());
            let seen = || scores.iter().chain(&scores[..scores.len() / 2]);
            for (value, count) in values.iter().zip(found.total.iter()) {
                let below = seen().filter(|score| *score < value).count() as u64;
                let equal = seen().filter(|score| *score == value).count() as u64;
                assert_eq!(*count, Count { below, equal });
            }
        }
    }
}
