//! e^x for f32 in plain arithmetic, so that loops over it are vectorised (see [`super::vectorized`])
//! and its bytes do not depend on the system's mathematics library.
//!
//! The way of Cephes (S. Moshier, 1989): x = n·ln 2 + r with |r| ≤ ½ ln 2, a polynomial for e^r, and
//! 2^n by its bits.

/// Beyond these e^x leaves the normal numbers.
const LOWEST: f32 = -87.0;
const HIGHEST: f32 = 88.0;
/// Adding this rounds to a whole number and leaves it in the lowest bits.
const ROUND: f32 = 12_582_912.0;
/// ln 2 in two parts; a small whole number times the first is exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// e^x to about 2e-7 of its value; 0 below −87, where numbers would be too small to be normal (and
/// slow), that of 88 above 88. What is not a number stays so.
#[inline(always)]
pub(crate) fn exponential(x: f32) -> f32 {
    let below = x < LOWEST;
    let x = if below { LOWEST } else { x };
    let x = if x > HIGHEST { HIGHEST } else { x };
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let mut p = 1.987_569_1e-4_f32;
    for coefficient in [
        1.398_199_9e-3,
        8.333_452e-3,
        4.166_579_6e-2,
        1.666_666_5e-1,
        0.5,
    ] {
        p = p * r + coefficient;
    }
    let fraction = p * r * r + r + 1.0;
    let exponent = rounded.to_bits().wrapping_sub(ROUND.to_bits());
    let power = f32::from_bits(exponent.wrapping_add(127) << 23);
    if below { 0.0 } else { fraction * power }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_exponential_to_single_precision() {
        for step in -86_900..87_900 {
            let x = step as f32 * 1e-3;
            let expected = f64::from(x).exp();
            let error = (f64::from(exponential(x)) / expected - 1.0).abs();
            assert!(error < 2.5e-7, "{x}: {error}");
        }
        assert_eq!(exponential(0.0), 1.0);
    }

    #[test]
    fn its_ends_are_finite_and_nan_stays() {
        assert_eq!(
            (exponential(f32::NEG_INFINITY), exponential(-1e9)),
            (0.0, 0.0)
        );
        assert!(exponential(f32::INFINITY).is_finite() && exponential(1e9) > 1e38);
        assert!(exponential(f32::NAN).is_nan());
    }
}
