//! Local contrast made even, before GIST's filters look.
//!
//! Of the logarithm of the grey values the slow part is taken away (light and shadow), and the rest divided
//! by its local standard deviation, as published with GIST by Torralba and Oliva (`prefilt`, 4 cycles an
//! image). The published code multiplies a two-dimensional spectrum by a Gaussian. A Gaussian is the product
//! of its two directions and its spectrum is real and even, so here each direction is smoothed on its own,
//! with two rows of real numbers as the real and imaginary parts of one transform: the same numbers for a
//! quarter of the work.

use super::fourier::transform;
use rustfft::num_complex::Complex32;
use rustfft::{Fft, FftPlanner};
use std::sync::Arc;

/// Pixels that are mirrored at each edge.
const BORDER: usize = 5;
/// Cycles an image at which half the amplitude is taken away.
const CYCLES: f64 = 4.0;
/// Added to the local deviation, so that noise in flat parts is not blown up.
const FLOOR: f32 = 0.2;

/// Makes contrast even in squares of one side.
pub(super) struct Prefilter {
    side: usize,
    /// The side with both borders; even, as the side is.
    padded: usize,
    forward: Arc<dyn Fft<f32>>,
    inverse: Arc<dyn Fft<f32>>,
    /// How much of each frequency of a line is kept, over the line's length.
    gains: Vec<f32>,
}

/// Memory that is used again for the next picture.
#[derive(Default)]
pub(super) struct PrefilterBuffers {
    lines: Vec<Complex32>,
    scratch: Vec<Complex32>,
    values: Vec<f32>,
    smooth: Vec<f32>,
    turned: Vec<f32>,
}

impl Prefilter {
    pub(super) fn new(side: usize, planner: &mut FftPlanner<f32>) -> Self {
        let padded = side + 2 * BORDER;
        let spread = CYCLES / std::f64::consts::LN_2.sqrt();
        let gains = (0..padded).map(|place| {
            let frequency = place.min(padded - place) as f64;
            ((-(frequency / spread).powi(2)).exp() / padded as f64) as f32
        });
        Prefilter {
            side,
            padded,
            forward: planner.plan_fft_forward(padded),
            inverse: planner.plan_fft_inverse(padded),
            gains: gains.collect(),
        }
    }

    /// Change grey values of 0 to 255 into even contrast, in place.
    pub(super) fn apply(&self, square: &mut [f32], work: &mut PrefilterBuffers) {
        let (side, padded) = (self.side, self.padded);
        let PrefilterBuffers {
            lines,
            scratch,
            values,
            smooth,
            turned,
        } = work;
        for value in square.iter_mut() {
            *value = (*value + 1.0).ln();
        }
        values.clear();
        for y in 0..padded {
            let row = &square[mirrored(y, side) * side..][..side];
            values.extend((0..padded).map(|x| row[mirrored(x, side)]));
        }
        let mut slow = |values: &[f32], smooth: &mut Vec<f32>| {
            self.smooth_rows(values, turned, lines, scratch);
            self.smooth_rows(turned, smooth, lines, scratch);
        };
        slow(values, smooth);
        for (value, slow) in values.iter_mut().zip(smooth.iter_mut()) {
            *value -= *slow;
            *slow = *value * *value;
        }
        let squares = std::mem::take(smooth);
        slow(&squares, smooth);
        for (y, row) in square.chunks_exact_mut(side).enumerate() {
            let start = (y + BORDER) * padded + BORDER;
            let beside = values[start..].iter().zip(&smooth[start..]);
            for (out, (value, variance)) in row.iter_mut().zip(beside) {
                *out = value / (FLOOR + variance.abs().sqrt());
            }
        }
    }

    /// Smooth each row, and give the result turned over its diagonal.
    fn smooth_rows(
        &self,
        values: &[f32],
        turned: &mut Vec<f32>,
        lines: &mut Vec<Complex32>,
        scratch: &mut Vec<Complex32>,
    ) {
        let padded = self.padded;
        lines.clear();
        for pair in values.chunks_exact(2 * padded) {
            let (upper, lower) = pair.split_at(padded);
            let both = upper.iter().zip(lower);
            lines.extend(both.map(|(re, im)| Complex32::new(*re, *im)));
        }
        transform(&*self.forward, lines, scratch);
        for line in lines.chunks_exact_mut(padded) {
            for (value, gain) in line.iter_mut().zip(&self.gains) {
                *value *= gain;
            }
        }
        transform(&*self.inverse, lines, scratch);
        turned.clear();
        turned.resize(padded * padded, 0.0);
        for (pair, line) in lines.chunks_exact(padded).enumerate() {
            for (value, out) in line.iter().zip(turned.chunks_exact_mut(padded)) {
                out[2 * pair] = value.re;
                out[2 * pair + 1] = value.im;
            }
        }
    }
}

/// The place of a padded line in the line itself; the edge is mirrored with its pixel.
fn mirrored(place: usize, side: usize) -> usize {
    match place.checked_sub(BORDER) {
        None => BORDER - 1 - place,
        Some(inside) if inside < side => inside,
        Some(beyond) => 2 * side - 1 - beyond,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_mirrored_with_their_pixel() {
        let found: Vec<usize> = (0..18).map(|place| mirrored(place, 8)).collect();
        let expected = [4, 3, 2, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 7, 6, 5, 4, 3];
        assert_eq!(found, expected);
    }

    /// What does not change has no contrast, however bright it is.
    #[test]
    fn flat_is_nothing() {
        let filter = Prefilter::new(32, &mut FftPlanner::new());
        for grey in [0.0, 128.0, 255.0] {
            let mut square = vec![grey; 32 * 32];
            filter.apply(&mut square, &mut PrefilterBuffers::default());
            assert!(square.iter().all(|value| value.abs() < 1e-4), "{square:?}");
        }
    }

    /// Light enters as a factor: after the logarithm it is a constant, which is taken away. The 1 that is
    /// added before the logarithm is all that remains of it.
    #[test]
    fn twice_the_light_is_the_same_picture() {
        let filter = Prefilter::new(32, &mut FftPlanner::new());
        let dark: Vec<f32> = (0..32 * 32)
            .map(|place| 60.0 + 50.0 * ((place % 32) as f32 * 0.9).sin())
            .collect();
        let mut bright: Vec<f32> = dark.iter().map(|value| 2.0 * (value + 1.0) - 1.0).collect();
        let mut dark = dark;
        filter.apply(&mut dark, &mut PrefilterBuffers::default());
        filter.apply(&mut bright, &mut PrefilterBuffers::default());
        assert!(dark.iter().any(|value| value.abs() > 0.5));
        for (a, b) in dark.iter().zip(&bright) {
            assert!((a - b).abs() < 1e-3, "{a} {b}");
        }
    }
}
