//! Sorts keys by their upper halves, digit by digit.

/// Bits of a digit.
const DIGIT: u32 = 11;
/// Values of a digit.
const VALUES: usize = 1 << DIGIT;
/// Keys from which counting digits beats comparing.
const LEAST: usize = 512;

/// Sort keys whose lower halves are increasing: by their upper halves, and by the lower ones where these are equal.
pub(super) fn sort_by_upper_half(keys: &mut Vec<u64>, scratch: &mut Vec<u64>) {
    if keys.len() < LEAST || u32::try_from(keys.len()).is_err() {
        keys.sort_unstable();
        return;
    }
    scratch.resize(keys.len(), 0);
    for shift in [32, 32 + DIGIT, 32 + 2 * DIGIT] {
        let digit = |key: u64| (key >> shift) as usize % VALUES;
        let mut starts = [0_u32; VALUES];
        for key in &*keys {
            starts[digit(*key)] += 1;
        }
        let mut start = 0;
        for place in &mut starts {
            let count = *place;
            *place = start;
            start += count;
        }
        for key in &*keys {
            let place = &mut starts[digit(*key)];
            scratch[*place as usize] = *key;
            *place += 1;
        }
        std::mem::swap(keys, scratch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn order_is_that_of_the_standard_library() {
        let mut random = Stream::new(4, "radix", 0);
        let mut scratch = Vec::new();
        for count in [0, 1, 511, 512, 5000] {
            for range in [3, u64::from(u32::MAX) + 1] {
                let mut keys: Vec<u64> = (0..count)
                    .map(|place| random.below(range) << 32 | place)
                    .collect();
                let mut expected = keys.clone();
                expected.sort_unstable();
                sort_by_upper_half(&mut keys, &mut scratch);
                assert_eq!(keys, expected);
            }
        }
    }
}
