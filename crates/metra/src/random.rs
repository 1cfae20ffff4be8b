//! Random numbers that depend only on (seed, purpose, counter), never on the number of threads or
//! on what was drawn before elsewhere.
//!
//! Integers come from [`Stream::below`] alone, so that an update of the `rand` crate cannot change
//! a model's bytes through another way of rounding.

use rand::Rng;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// One stream of random numbers.
#[derive(Debug, Clone)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// The stream for `purpose` at `counter` (a step, a resample, a split). Streams with different
    /// purposes or counters are independent.
    pub fn new(seed: u64, purpose: &str, counter: u64) -> Self {
        // FNV-1a: purposes are a handful of constants in this crate, so 64 bits are plenty.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in purpose.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let mut key = [0_u8; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&hash.to_le_bytes());
        key[16..24].copy_from_slice(&counter.to_le_bytes());
        Stream(ChaCha8Rng::from_seed(key))
    }

    /// A uniform integer in `0..bound`, by Lemire's multiplication with rejection: exactly uniform.
    ///
    /// `bound` must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0, "a uniform draw needs a non-empty range");
        let mut wide = u128::from(self.0.next_u64()) * u128::from(bound);
        if (wide as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (wide as u64) < threshold {
                wide = u128::from(self.0.next_u64()) * u128::from(bound);
            }
        }
        (wide >> 64) as u64
    }

    /// A uniform number in `[0, 1)` with 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// A standard normal number (Box-Muller, one of the pair).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Put `values` in random order (Fisher-Yates).
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            values.swap(last, other);
        }
    }

    /// Deal `count` things into parts of nearly equal size: the part of each.
    pub fn deal(&mut self, count: usize, parts: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        self.shuffle(&mut order);
        let mut part_of = vec![0; count];
        for (place, thing) in order.into_iter().enumerate() {
            part_of[thing] = place % parts;
        }
        part_of
    }

    /// `count` different positions of `0..len` in increasing order (all of them if `count >= len`).
    pub fn choose(&mut self, len: u64, count: usize) -> Vec<u64> {
        if count as u64 >= len {
            return (0..len).collect();
        }
        // Floyd's algorithm: memory grows with `count`, not with `len`.
        let mut chosen = std::collections::BTreeSet::new();
        for last in len - count as u64..len {
            let drawn = self.below(last + 1);
            if !chosen.insert(drawn) {
                chosen.insert(last);
            }
        }
        chosen.into_iter().collect()
    }
}

/// The things that were dealt into a part, or all others.
pub(crate) fn dealt(part_of: &[usize], part: usize, is_in: bool) -> Vec<usize> {
    let things = 0..part_of.len();
    things
        .filter(|thing| (part_of[*thing] == part) == is_in)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_is_uniform() {
        // Chi-square with 6 degrees of freedom; 22.46 is the 0.999 quantile.
        let mut counts = [0_f64; 7];
        let mut stream = Stream::new(3, "test", 0);
        for _ in 0..70_000 {
            counts[stream.below(7) as usize] += 1.0;
        }
        let chi: f64 = counts
            .iter()
            .map(|c| (c - 10_000.0).powi(2) / 10_000.0)
            .sum();
        assert!(chi < 22.46, "chi-square {chi}");
    }

    #[test]
    fn streams_differ_by_purpose_and_counter() {
        let draw = |p: &str, c| Stream::new(1, p, c).below(u64::MAX);
        assert_ne!(draw("a", 0), draw("b", 0));
        assert_ne!(draw("a", 0), draw("a", 1));
        assert_eq!(draw("a", 5), draw("a", 5));
    }

    #[test]
    fn choose_gives_distinct_sorted_positions() {
        let chosen = Stream::new(1, "test", 0).choose(1000, 100);
        assert_eq!(chosen.len(), 100);
        assert!(chosen.windows(2).all(|w| w[0] < w[1]));
        assert_eq!(Stream::new(1, "test", 0).choose(5, 9), vec![0, 1, 2, 3, 4]);
    }

    #[test]
    fn parts_are_dealt_evenly_and_at_random() {
        let parts = Stream::new(1, "test", 0).deal(11, 3);
        let size = |part| parts.iter().filter(|of| **of == part).count();
        assert_eq!([size(0), size(1), size(2)], [4, 4, 3]);
        assert_ne!(parts, (0..11).map(|thing| thing % 3).collect::<Vec<_>>());
    }

    #[test]
    fn normal_has_unit_variance() {
        let mut stream = Stream::new(9, "test", 0);
        let draws: Vec<f64> = (0..20_000).map(|_| stream.normal()).collect();
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05);
    }
}
