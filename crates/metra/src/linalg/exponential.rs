//! e^x for f32 and f64 in plain arithmetic, so that loops over it are vectorised (see [`super::vectorized`])
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

/// The same in double precision, to about 4e-16 of its value; 0 below −708, that of 709 above 709. The polynomial is
/// Taylor's, which ends below a rounding error here.
#[inline(always)]
pub(crate) fn exponential_f64(x: f64) -> f64 {
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let below = x < -708.0;
    let x = if below { -708.0 } else { x };
    let x = if x > 709.0 { 709.0 } else { x };
    let rounded = x * std::f64::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let mut p = 1.0 / 6_227_020_800.0;
    for factorial in [
        479_001_600.0,
        39_916_800.0,
        3_628_800.0,
        362_880.0,
        40_320.0,
        5_040.0,
        720.0,
        120.0,
        24.0,
        6.0,
        2.0,
    ] {
        p = p * r + 1.0 / factorial;
    }
    let fraction = p * r * r + r + 1.0;
    let exponent = rounded.to_bits().wrapping_sub(ROUND.to_bits());
    let power = f64::from_bits(exponent.wrapping_add(1023) << 52);
    if below { 0.0 } else { fraction * power }
}

/// ln(1 + e^t) and its slope, to some 3e-7 of each. Beyond 40 from 0 the smaller of the two terms counts as nothing:
/// numbers near the end of f32 are slow.
#[inline(always)]
pub(crate) fn softplus(t: f32) -> (f32, f32) {
    let small = if t.abs() < 40.0 {
        exponential(-t.abs())
    } else {
        0.0
    };
    // ln(1 + s) = 2 artanh(s / (2 + s)), whose series ends quickly for arguments up to 1/3.
    let z = small / (2.0 + small);
    let square = z * z;
    let mut p = 1.0 / 13.0;
    for odd in [11.0_f32, 9.0, 7.0, 5.0, 3.0, 1.0] {
        p = p * square + 1.0 / odd;
    }
    let slope = if t > 0.0 { 1.0 } else { small } / (1.0 + small);
    (t.max(0.0) + 2.0 * z * p, slope)
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

    #[test]
    fn it_is_the_exponential_to_double_precision() {
        for step in -70_700..70_900 {
            let x = f64::from(step) * 1e-2 + 1e-4;
            let error = (exponential_f64(x) / x.exp() - 1.0).abs();
            assert!(error < 1e-15, "{x}: {error}");
        }
        assert_eq!((exponential_f64(0.0), exponential_f64(-1e9)), (1.0, 0.0));
        assert!(exponential_f64(1e9).is_finite() && exponential_f64(f64::NAN).is_nan());
    }

    #[test]
    fn the_softplus_and_its_slope_are_those_in_double_precision() {
        for step in -60_000..60_000 {
            let t = step as f32 * 1e-3;
            let (value, slope) = softplus(t);
            let (large, small) = (f64::from(t).max(0.0), (-f64::from(t).abs()).exp());
            let expected = large + small.ln_1p();
            let error = (f64::from(value) - expected).abs();
            assert!(error < 3e-7 * expected + 1e-17, "{t}: {error}");
            let expected = if t > 0.0 { 1.0 } else { small } / (1.0 + small);
            let error = (f64::from(slope) - expected).abs();
            assert!(error < 5e-7 * expected + 1e-17, "{t}: {error}");
        }
    }
}
