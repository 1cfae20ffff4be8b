//! A handful of thresholds: every score is compared with each of them.

use super::{Count, ScoreRow};
use crate::linalg::vectorized;
#[cfg(target_arch = "x86_64")]
use pulp::Simd as _;

/// Scores that are compared at once.
const GROUP: usize = 16;

/// Count a row of scores against each threshold.
pub(super) fn add(row: ScoreRow<'_>, values: &[f32], total: &mut [Count]) {
    let (products, _) = row.products.as_chunks::<GROUP>();
    let (offsets, _) = row.offsets.as_chunks::<GROUP>();
    let first = products.len() * GROUP;
    for (value, count) in values.iter().zip(total) {
        let groups = Groups { products, offsets };
        let [mut below, mut equal] = groups.count(*value);
        for place in first..row.len() {
            let score = row.score(place);
            below += u32::from(score < *value);
            equal += u32::from(score == *value);
        }
        count.below += u64::from(below);
        count.equal += u64::from(equal);
    }
}

/// Whole groups of scores.
#[derive(Clone, Copy)]
struct Groups<'a> {
    products: &'a [[f32; GROUP]],
    offsets: &'a [[f32; GROUP]],
}

impl Groups<'_> {
    /// Scores below a value and equal to it.
    fn count(self, value: f32) -> [u32; 2] {
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V4::try_new() {
            return simd.vectorize(InWideVectors {
                simd,
                groups: self,
                value,
            });
        }
        vectorized(
            #[inline(always)]
            || {
                let (mut below, mut equal) = ([0; GROUP], [0; GROUP]);
                for (products, offsets) in self.products.iter().zip(self.offsets) {
                    for lane in 0..GROUP {
                        let score = products[lane] + offsets[lane];
                        below[lane] += u32::from(score < value);
                        equal[lane] += u32::from(score == value);
                    }
                }
                [below, equal].map(|counts| counts.iter().sum())
            },
        )
    }
}

/// The same with comparisons of sixteen scores in one instruction, whose results are counted as masks.
#[cfg(target_arch = "x86_64")]
struct InWideVectors<'a> {
    simd: pulp::x86::V4,
    groups: Groups<'a>,
    value: f32,
}

#[cfg(target_arch = "x86_64")]
impl pulp::NullaryFnOnce for InWideVectors<'_> {
    type Output = [u32; 2];

    #[inline(always)]
    fn call(self) -> [u32; 2] {
        let simd = self.simd;
        let value = simd.splat_f32s(self.value);
        let (mut below, mut equal) = (0, 0);
        for (products, offsets) in self.groups.products.iter().zip(self.groups.offsets) {
            let score = simd.add_f32s(pulp::cast(*products), pulp::cast(*offsets));
            below += simd.less_than_f32s(score, value).0.count_ones();
            equal += simd.equal_f32s(score, value).0.count_ones();
        }
        [below, equal]
    }
}
