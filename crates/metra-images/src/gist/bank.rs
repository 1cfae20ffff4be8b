//! GIST's filters in frequency, and the energy that passes them.
//!
//! 4 scales of 8 orientations: a ring around .3 cycles per pixel (then a 1.85th of it, and so on), cut to a
//! sector, as published. The inverse transforms are nearly all of GIST's cost, one per filter. Each filter
//! looks at about half the spectrum or less (a sector, and a small disc at coarse scales), so lines of
//! frequencies it hardly passes are left out of the first direction, along rows or along columns as a filter
//! lies; the second direction goes a few lines at a time, so that what it makes is summed while still in the
//! cache.

use super::fourier::transform;
use rustfft::num_complex::Complex32;
use rustfft::{Fft, FftPlanner};
use std::f64::consts::PI;
use std::sync::Arc;

/// Scales, from fine to coarse.
const SCALES: usize = 4;
/// Orientations of each scale.
const ORIENTATIONS: usize = 8;
/// Filters in all.
pub(super) const FILTERS: usize = SCALES * ORIENTATIONS;
/// Lines of frequencies that a filter passes less of than this are left out: a thousandth of the tolerance
/// of the features.
const LEAST_GAIN: f64 = 1e-7;
/// Lines transformed at a time in the second direction: 8 kB at a side of 128.
const TOGETHER: usize = 8;

/// All filters for squares of one side.
pub(super) struct Bank {
    side: usize,
    forward: Arc<dyn Fft<f32>>,
    inverse: Arc<dyn Fft<f32>>,
    filters: Vec<Filter>,
    /// Where blocks begin, and where the last ends.
    edges: Vec<usize>,
}

struct Filter {
    /// Whether its lines are columns of the spectrum.
    columns: bool,
    lines: Vec<usize>,
    /// The gains of these lines, over the number of pixels.
    gains: Vec<f32>,
}

/// Memory that is used again for the next picture.
#[derive(Default)]
pub(super) struct BankBuffers {
    spectrum: Vec<Complex32>,
    turned: Vec<Complex32>,
    lines: Vec<Complex32>,
    few: Vec<Complex32>,
    scratch: Vec<Complex32>,
}

impl Bank {
    pub(super) fn new(side: usize, blocks: usize, planner: &mut FftPlanner<f32>) -> Self {
        let filters = (0..FILTERS).map(|filter| {
            let (scale, orientation) = (filter / ORIENTATIONS, filter % ORIENTATIONS);
            Filter::new(side, &gains(side, scale, orientation))
        });
        Bank {
            side,
            forward: planner.plan_fft_forward(side),
            inverse: planner.plan_fft_inverse(side),
            filters: filters.collect(),
            edges: (0..=blocks).map(|block| block * side / blocks).collect(),
        }
    }

    /// Append the mean amplitude behind each filter in each block: filters in order, of each its blocks
    /// from the top, column by column from the left.
    pub(super) fn energies(&self, square: &[f32], work: &mut BankBuffers, out: &mut Vec<f32>) {
        self.transform(square, work);
        let BankBuffers {
            spectrum,
            turned,
            lines,
            few,
            scratch,
        } = work;
        let (side, blocks) = (self.side, self.edges.len() - 1);
        let mut sums = vec![0.0f64; blocks * blocks];
        for filter in &self.filters {
            let source = if filter.columns { &*turned } else { &*spectrum };
            lines.clear();
            for (line, gains) in filter.lines.iter().zip(filter.gains.chunks_exact(side)) {
                let values = &source[line * side..(line + 1) * side];
                lines.extend(values.iter().zip(gains).map(|(value, gain)| value * gain));
            }
            transform(&*self.inverse, lines, scratch);
            sums.fill(0.0);
            for start in (0..side).step_by(TOGETHER) {
                let width = TOGETHER.min(side - start);
                few.clear();
                few.resize(width * side, Complex32::ZERO);
                for (line, values) in filter.lines.iter().zip(lines.chunks_exact(side)) {
                    for (place, value) in values[start..start + width].iter().enumerate() {
                        few[place * side + line] = *value;
                    }
                }
                transform(&*self.inverse, few, scratch);
                for (place, values) in few.chunks_exact(side).enumerate() {
                    let across = self.block(start + place);
                    for (along, edges) in self.edges.windows(2).enumerate() {
                        let block = if filter.columns {
                            along * blocks + across
                        } else {
                            across * blocks + along
                        };
                        sums[block] += amplitudes(&values[edges[0]..edges[1]]);
                    }
                }
            }
            for (block, sum) in sums.iter().enumerate() {
                let size = |block: usize| (self.edges[block + 1] - self.edges[block]) as f64;
                out.push((sum / (size(block / blocks) * size(block % blocks))) as f32);
            }
        }
    }

    /// The spectrum, and the same turned over its diagonal.
    fn transform(&self, square: &[f32], work: &mut BankBuffers) {
        let side = self.side;
        let BankBuffers {
            spectrum,
            turned,
            scratch,
            ..
        } = work;
        spectrum.clear();
        spectrum.extend(square.iter().map(|value| Complex32::new(*value, 0.0)));
        transform(&*self.forward, spectrum, scratch);
        turn(spectrum, turned, side);
        transform(&*self.forward, turned, scratch);
        turn(turned, spectrum, side);
    }

    fn block(&self, place: usize) -> usize {
        self.edges.partition_point(|edge| *edge <= place) - 1
    }
}

impl Filter {
    /// Keep the fewer lines, of rows or of columns.
    fn new(side: usize, gains: &[f64]) -> Self {
        let passes = |gain: f64| gain >= LEAST_GAIN;
        let rows: Vec<usize> = (0..side)
            .filter(|y| (0..side).any(|x| passes(gains[y * side + x])))
            .collect();
        let columns: Vec<usize> = (0..side)
            .filter(|x| (0..side).any(|y| passes(gains[y * side + x])))
            .collect();
        let turned = columns.len() < rows.len();
        let lines = if turned { columns } else { rows };
        let pixels = (side * side) as f64;
        let gains = lines.iter().flat_map(|line| {
            (0..side).map(move |place| {
                let at = if turned {
                    place * side + line
                } else {
                    line * side + place
                };
                (gains[at] / pixels) as f32
            })
        });
        Filter {
            columns: turned,
            gains: gains.collect(),
            lines,
        }
    }
}

/// How much of each frequency a filter passes, rows of vertical frequencies.
fn gains(side: usize, scale: usize, orientation: usize) -> Vec<f64> {
    let centre = 0.3 / 1.85f64.powi(scale as i32);
    let angle = PI / ORIENTATIONS as f64 * orientation as f64;
    let narrow = 16.0 * (ORIENTATIONS * ORIENTATIONS) as f64 / (32.0 * 32.0);
    let frequency = |place: usize| match place < side / 2 {
        true => place as f64,
        false => place as f64 - side as f64,
    };
    let mut gains = Vec::with_capacity(side * side);
    for y in 0..side {
        for x in 0..side {
            let (down, across) = (frequency(y), frequency(x));
            let radius = down.hypot(across) / side as f64;
            let mut away = down.atan2(across) + angle;
            if away > PI {
                away -= 2.0 * PI;
            }
            let ring = -10.0 * 0.35 * (radius / centre - 1.0).powi(2);
            gains.push((ring - 2.0 * narrow * PI * away * away).exp());
        }
    }
    gains
}

/// The sum of absolute values. Eight sums side by side are what vector instructions can do, and an order
/// that is always the same.
fn amplitudes(values: &[Complex32]) -> f64 {
    let mut sums = [0.0f32; 8];
    let eights = values.chunks_exact(8);
    let rest = eights.remainder();
    for eight in eights {
        for (sum, value) in sums.iter_mut().zip(eight) {
            *sum += value.norm_sqr().sqrt();
        }
    }
    for (sum, value) in sums.iter_mut().zip(rest) {
        *sum += value.norm_sqr().sqrt();
    }
    sums.iter().map(|sum| f64::from(*sum)).sum()
}

/// Turn a square over its diagonal, in small squares that stay in the cache.
fn turn(square: &[Complex32], turned: &mut Vec<Complex32>, side: usize) {
    const TILE: usize = 16;
    turned.clear();
    turned.resize(side * side, Complex32::ZERO);
    for top in (0..side).step_by(TILE) {
        for left in (0..side).step_by(TILE) {
            for y in top..(top + TILE).min(side) {
                for x in left..(left + TILE).min(side) {
                    turned[x * side + y] = square[y * side + x];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn energies(square: &[f32], side: usize, blocks: usize) -> Vec<f32> {
        let bank = Bank::new(side, blocks, &mut FftPlanner::new());
        let mut out = Vec::new();
        bank.energies(square, &mut BankBuffers::default(), &mut out);
        out
    }

    /// A wave cos(2π·f·x/side) has two frequencies of half amplitude, at ±f on the horizontal axis. Behind
    /// a filter with gains g and h there, its amplitude is |g·e^{iωx} + h·e^{-iωx}| / 2, whose mean over
    /// whole periods is worked out here by adding up.
    #[test]
    fn a_wave_gives_the_gains_at_its_frequency() {
        let (side, cycles) = (64, 12);
        let turn = |x: usize| 2.0 * PI * (cycles * x) as f64 / side as f64;
        let square: Vec<f32> = (0..side * side)
            .map(|place| turn(place % side).cos() as f32)
            .collect();
        let found = energies(&square, side, 1);
        assert_eq!(found.len(), FILTERS);
        for (filter, found) in found.iter().enumerate() {
            let gains = gains(side, filter / 8, filter % 8);
            let (ahead, back) = (gains[cycles], gains[side - cycles]);
            let amplitude = |x: usize| {
                let (sin, cos) = turn(x).sin_cos();
                ((ahead + back) * cos / 2.0).hypot((ahead - back) * sin / 2.0)
            };
            let expected: f64 = (0..side).map(amplitude).sum::<f64>() / side as f64;
            let difference = (f64::from(*found) - expected).abs();
            assert!(difference < 1e-5, "filter {filter}: {found} {expected}");
        }
    }

    /// Texture in the upper right: the blocks there are larger, and are found under column-major places.
    #[test]
    fn blocks_are_numbered_down_the_columns() {
        let side = 64;
        let square: Vec<f32> = (0..side * side)
            .map(|place| {
                let (x, y) = (place % side, place / side);
                let sign = if (x / 2 + y / 2) % 2 == 0 { 1.0 } else { -1.0 };
                if x >= 48 && y < 16 { sign } else { 0.0 }
            })
            .collect();
        let found = energies(&square, side, 4);
        let block = |block: usize| (0..FILTERS).map(|f| found[f * 16 + block]).sum::<f32>();
        for other in (0..16).filter(|other| *other != 12) {
            assert!(block(12) > 2.0 * block(other), "block {other}");
        }
    }

    /// Lines left out are those that carry nothing: what is kept sums to nearly all. They are more than half.
    #[test]
    fn what_is_left_out_is_nothing() {
        let mut lines = 0;
        for filter in 0..FILTERS {
            let all = gains(128, filter / 8, filter % 8);
            let kept = Filter::new(128, &all);
            let sum: f64 = kept.gains.iter().map(|gain| f64::from(*gain)).sum();
            let lost = all.iter().sum::<f64>() / (128.0 * 128.0) - sum;
            assert!(lost.abs() < 1e-6 * sum, "filter {filter} loses {lost}");
            lines += kept.lines.len();
        }
        assert!(lines < FILTERS * 128 / 2, "{lines}");
    }
}
