//! Many thresholds: scores are parted into buckets of a few thresholds each, and compared with all thresholds of
//! theirs.
//!
//! Bins would have to be so many that their counters leave the cache, or nearly all would hold a threshold.

use super::{Count, LANES, Linear, ScoreRow, Space, find_bins};
use crate::linalg::vectorized;
#[cfg(target_arch = "x86_64")]
use pulp::Simd as _;

/// Scores that are compared with a threshold at once: buckets are filled up to a multiple of this.
const GROUP: usize = 16;
/// Most thresholds of a bucket on average.
const SHARE: usize = 4;
/// Thresholds of one bucket from which its scores are sorted: where one threshold lies far from all others, these share
/// few buckets.
const CROWDED: usize = 64;
/// Most buckets.
const MOST: usize = 4096;
/// Places of counters: all that a bucket's number can name, so that none needs a check.
const PLACES: usize = 1 << 16;

/// Counts of the thresholds of all buckets.
#[derive(Debug, Clone, Default)]
pub(super) struct Buckets {
    linear: Linear,
    /// Scores in each bucket.
    sizes: Vec<u64>,
    /// The thresholds of bucket b are those from `starts[b]` to `starts[b + 1]`.
    starts: Vec<u32>,
    /// Scores of its bucket below and equal to each threshold.
    within: Vec<[u32; 2]>,
}

impl Buckets {
    pub(super) fn set(&mut self, values: &[f32]) {
        let buckets = (values.len() / SHARE).next_power_of_two().clamp(16, MOST);
        self.linear = Linear::between(values, buckets);
        self.sizes.clear();
        self.sizes.resize(buckets, 0);
        self.starts.clear();
        self.starts.resize(buckets + 1, 0);
        for value in values {
            self.starts[self.linear.bin(*value) as usize + 1] += 1;
        }
        let mut end = 0;
        for start in &mut self.starts {
            end += *start;
            *start = end;
        }
        self.within.clear();
        self.within.resize(values.len(), [0, 0]);
    }

    /// Count a row of scores.
    pub(super) fn add(&mut self, row: ScoreRow<'_>, values: &[f32], space: &mut Space) {
        find_bins(row, &self.linear, &mut space.bins);
        let buckets = self.sizes.len();
        space.cursors.resize(PLACES, 0);
        space.cursors[..buckets + LANES].fill(0);
        let Ok(cursors) = <&mut [u32; PLACES]>::try_from(&mut space.cursors[..]) else {
            return;
        };
        for bin in &space.bins {
            cursors[usize::from(*bin)] += 1;
        }
        let mut end = 0;
        space.ends.clear();
        for (bucket, cursor) in cursors[..buckets + LANES].iter_mut().enumerate() {
            let size = *cursor;
            if let Some(total) = self.sizes.get_mut(bucket) {
                *total += u64::from(size);
            }
            *cursor = end;
            end += size.next_multiple_of(GROUP as u32);
            space.ends.push(end);
        }
        space.parted.clear();
        space.parted.resize(end as usize, f32::INFINITY);
        for (place, bin) in space.bins.iter().enumerate() {
            let cursor = &mut cursors[usize::from(*bin)];
            space.parted[*cursor as usize] = row.score(place);
            *cursor += 1;
        }
        let compare = Compare {
            parted: &mut space.parted,
            ends: &space.ends[..buckets],
            starts: &self.starts,
            values,
            within: &mut self.within,
        };
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V4::try_new() {
            simd.vectorize(InWideVectors { simd, compare });
            return;
        }
        vectorized(
            #[inline(always)]
            || {
                compare.all(
                    #[inline(always)]
                    |chunk, value| {
                        let (mut below, mut equal) = (0, 0);
                        for score in chunk {
                            below += u32::from(*score < value);
                            equal += u32::from(*score == value);
                        }
                        [below, equal]
                    },
                );
            },
        );
    }

    /// Add what was counted to the totals.
    pub(super) fn settle(&mut self, total: &mut [Count]) {
        let mut before = 0;
        for (bucket, size) in self.sizes.iter_mut().enumerate() {
            let own = self.starts[bucket] as usize..self.starts[bucket + 1] as usize;
            let counts = self.within[own.clone()].iter_mut();
            for (total, within) in total[own].iter_mut().zip(counts) {
                total.below += before + u64::from(within[0]);
                total.equal += u64::from(within[1]);
                *within = [0, 0];
            }
            before += *size;
            *size = 0;
        }
    }
}

/// The comparison of the scores of all buckets with the thresholds of theirs.
struct Compare<'a> {
    parted: &'a mut [f32],
    /// Where the scores of each bucket end.
    ends: &'a [u32],
    starts: &'a [u32],
    values: &'a [f32],
    within: &'a mut [[u32; 2]],
}

impl Compare<'_> {
    /// `count` says how many scores of a group are below and equal to a threshold.
    #[inline(always)]
    fn all(self, count: impl Fn(&[f32; GROUP], f32) -> [u32; 2]) {
        // Bucket 0 holds no threshold.
        for bucket in 1..self.ends.len() {
            let (from, to) = (self.ends[bucket - 1] as usize, self.ends[bucket] as usize);
            let scores = &mut self.parted[from..to];
            let own = self.starts[bucket] as usize..self.starts[bucket + 1] as usize;
            let thresholds = self.within[own.clone()].iter_mut().zip(&self.values[own]);
            if thresholds.len() > CROWDED {
                scores.sort_unstable_by(f32::total_cmp);
                let mut passed = 0;
                for (within, value) in thresholds {
                    passed += scores[passed..].partition_point(|score| score < value);
                    let equal = scores[passed..].partition_point(|score| score <= value);
                    within[0] += passed as u32;
                    within[1] += equal as u32;
                }
                continue;
            }
            let (chunks, _) = scores.as_chunks::<GROUP>();
            for (within, value) in thresholds {
                for chunk in chunks {
                    let [below, equal] = count(chunk, *value);
                    within[0] += below;
                    within[1] += equal;
                }
            }
        }
    }
}

/// The same with a comparison of sixteen scores in one instruction, whose result is counted as a mask: compilers make
/// something much slower of the plain loop.
#[cfg(target_arch = "x86_64")]
struct InWideVectors<'a> {
    simd: pulp::x86::V4,
    compare: Compare<'a>,
}

#[cfg(target_arch = "x86_64")]
impl pulp::NullaryFnOnce for InWideVectors<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let simd = self.simd;
        self.compare.all(
            #[inline(always)]
            |chunk, value| {
                let scores = pulp::cast(*chunk);
                let value = simd.splat_f32s(value);
                let below = simd.less_than_f32s(scores, value).0.count_ones();
                let equal = simd.equal_f32s(scores, value).0.count_ones();
                [below, equal]
            },
        );
    }
}
