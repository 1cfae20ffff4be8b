//! Local binary patterns: which neighbours on a circle are at least as bright as the pixel itself.
//!
//! Ojala, Pietikäinen and Mäenpää, PAMI 2002. Neighbour p of P lies at the angle 2πp/P, counted from the
//! right against the clock, between pixels by bilinear interpolation; beyond the edge the nearest pixel
//! stands. Bit p is set where the neighbour is at least as bright. Codes whose circle changes at most twice
//! between 0 and 1 (uniform ones: edges, corners, spots) have a number each, in the order of their values;
//! all others share the last: P (P − 1) + 3 numbers.

use std::f64::consts::PI;

/// Two values that should be equal differ by rounding when one is interpolated: less than this is nothing.
const ROUNDING: f64 = 1e-9;

/// Patterns of one circle.
pub(crate) struct BinaryPatterns {
    neighbours: Vec<Neighbour>,
    /// How far patterns look, in pixels.
    reach: usize,
    /// The number of each code.
    numbers: Vec<u8>,
    kinds: usize,
}

/// The pixels around a neighbour, with their weights: those of no weight are left out.
struct Neighbour(Vec<(isize, isize, f64)>);

impl BinaryPatterns {
    /// Patterns of `points` (at most 16, so that numbers fit a byte) at `radius` pixels.
    pub(crate) fn new(points: usize, radius: f64) -> Self {
        debug_assert!(points <= 16);
        let neighbours = (0..points).map(|point| Neighbour::new(point, points, radius));
        let uniform = |code: &usize| changes(*code, points) <= 2;
        let last = (0..1 << points).filter(uniform).count();
        let mut next = 0;
        let numbers = (0..1 << points).map(|code| {
            if !uniform(&code) {
                return last as u8;
            }
            next += 1;
            (next - 1) as u8
        });
        BinaryPatterns {
            numbers: numbers.collect(),
            neighbours: neighbours.collect(),
            reach: radius.ceil() as usize + 1,
            kinds: last + 1,
        }
    }

    /// How many numbers there are.
    pub(crate) fn kinds(&self) -> usize {
        self.kinds
    }

    /// The number of each pixel's pattern.
    pub(crate) fn numbers(&self, grey: &[u8], width: usize) -> Vec<u8> {
        let height = grey.len() / width;
        let padded = self.pad(grey, width, height);
        let stride = width + 2 * self.reach;
        let mut codes = vec![0u16; width];
        let mut numbers = Vec::with_capacity(grey.len());
        let mut values = vec![0.0; width];
        for y in 0..height {
            codes.fill(0);
            let start = (y + self.reach) * stride + self.reach;
            let centres = &padded[start..start + width];
            for (bit, neighbour) in self.neighbours.iter().enumerate() {
                values.fill(ROUNDING);
                for (down, across, weight) in &neighbour.0 {
                    let start = start.wrapping_add_signed(down * stride as isize + across);
                    for (value, pixel) in values.iter_mut().zip(&padded[start..start + width]) {
                        *value += weight * pixel;
                    }
                }
                for ((code, value), centre) in codes.iter_mut().zip(&values).zip(centres) {
                    *code |= u16::from(value >= centre) << bit;
                }
            }
            numbers.extend(codes.iter().map(|code| self.numbers[usize::from(*code)]));
        }
        numbers
    }

    /// The picture with its edge repeated outwards.
    fn pad(&self, grey: &[u8], width: usize, height: usize) -> Vec<f64> {
        let inside = |place: usize, length: usize| place.saturating_sub(self.reach).min(length - 1);
        let mut padded = Vec::with_capacity((width + 2 * self.reach) * (height + 2 * self.reach));
        for y in 0..height + 2 * self.reach {
            let row = &grey[inside(y, height) * width..][..width];
            padded.extend((0..width + 2 * self.reach).map(|x| f64::from(row[inside(x, width)])));
        }
        padded
    }
}

impl Neighbour {
    fn new(point: usize, points: usize, radius: f64) -> Self {
        let angle = 2.0 * PI * point as f64 / points as f64;
        let (sin, cos) = angle.sin_cos();
        // A sine of 1e-16 is a rounded 0: taken as it is, it would ask for a pixel of no weight.
        let whole_and_part = |place: f64| {
            let whole = (place + ROUNDING).floor();
            let part = place - whole;
            (
                whole as isize,
                if part.abs() < ROUNDING { 0.0 } else { part },
            )
        };
        let (top, lower) = whole_and_part(-radius * sin);
        let (left, right) = whole_and_part(radius * cos);
        let corners = [
            (top, left, (1.0 - lower) * (1.0 - right)),
            (top, left + 1, (1.0 - lower) * right),
            (top + 1, left, lower * (1.0 - right)),
            (top + 1, left + 1, lower * right),
        ];
        Neighbour(
            corners
                .into_iter()
                .filter(|corner| corner.2 > 0.0)
                .collect(),
        )
    }
}

/// How often neighbours on the circle differ.
fn changes(code: usize, points: usize) -> u32 {
    let turned = (code >> 1) | ((code & 1) << (points - 1));
    (code ^ turned).count_ones()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_59_and_243_numbers() {
        assert_eq!(BinaryPatterns::new(8, 1.0).kinds(), 59);
        assert_eq!(BinaryPatterns::new(16, 2.0).kinds(), 243);
        assert_eq!(changes(0b0000_1111, 8), 2);
        assert_eq!(changes(0b0101_0000, 8), 4);
    }

    /// In a flat picture every neighbour is as bright as the pixel, at the edge too: code 255, the last of
    /// the 58 uniform ones.
    #[test]
    fn flat_has_all_bits() {
        for value in [0, 7, 255] {
            let numbers = BinaryPatterns::new(8, 1.0).numbers(&[value; 20], 5);
            assert_eq!(numbers, [57; 20]);
            let numbers = BinaryPatterns::new(16, 2.0).numbers(&[value; 20], 5);
            assert_eq!(numbers, [241; 20]);
        }
    }

    /// The middle of 3 × 3 with one bright pixel to the right: bit 0 alone (code 1, number 1; of uniform
    /// codes only 0 is before it). With a dark pixel to the right in a bright square: all bits but 0, and
    /// the neighbours at 45° that lean on it: of weights .5 · .5, … the mean is below the centre. Code
    /// 0111 1100 = 124; uniform codes up to it, counted by hand: 0, then runs inside 7 bits 1 2 3 4 6 7 8
    /// 12 14 15 16 24 28 30 31 32 48 56 60 62 63 64 96 112 120 124: the 26th after 0.
    #[test]
    fn one_pixel_sets_or_clears_its_bits() {
        let patterns = BinaryPatterns::new(8, 1.0);
        let bright = patterns.numbers(&[0, 0, 0, 0, 10, 100, 0, 0, 0], 3);
        // 45°: (1 − f)² 10 + f (1 − f) 100 with f = .7071 is .86 + 20.7, brighter than 10: bits 0, 1 and 7,
        // code 131. Of uniform codes, 29 are below 128 (as many as runs in 7 bits, and 0), then 128, 129, 131.
        assert_eq!(bright[4], 31);
        let dark = patterns.numbers(&[50, 50, 50, 50, 50, 0, 50, 50, 50], 3);
        assert_eq!(dark[4], 26);
    }
}
