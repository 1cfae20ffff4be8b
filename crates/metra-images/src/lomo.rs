//! LOMO, local maximal occurrence: colours and textures of small windows, the most frequent along each row of
//! windows, for people seen by cameras.
//!
//! Liao, Hu, Zhu & Li, "Person Re-identification by Local Maximal Occurrence Representation and Metric Learning",
//! CVPR 2015: windows of 10 × 10 at every fifth pixel of the image at 128 × 48 and of two halvings of it; in each
//! a histogram of 8 × 8 × 8 colours of HSV and two of SILTP patterns (four neighbours at radius 3 and 5,
//! tolerance 0.3); of the windows of a row, which see a person from other sides, the largest count of each
//! bin; log(1 + count), and each of the three kinds at length 1. 40 rows of windows × (512 + 2 × 81) = 26,960.
//!
//! Departs from it: no Retinex before the colours. The authors' filter is not published; multi-scale Retinex
//! (Jobson, Rahman & Woodell, 1997; σ of 5 and 20), of each channel or of the brightness, gained nothing for XQDA
//! on VIPeR.

use crate::describe::Describe;
use crate::{Picture, colour, resample};

const WIDTH: u32 = 48;
const HEIGHT: u32 = 128;
/// The image and its halvings.
const SCALES: usize = 3;
/// Side of a window, and pixels from one to the next.
const WINDOW: usize = 10;
const STEP: usize = 5;
/// Bins of hue, of saturation and of value.
const LEVELS: usize = 8;
const COLOURS: usize = LEVELS * LEVELS * LEVELS;
/// Four neighbours, each darker, brighter or neither.
const PATTERNS: usize = 81;
const RADII: [usize; 2] = [3, 5];
/// Rows of windows in all scales.
const WINDOW_ROWS: usize = 24 + 11 + 5;

/// Local maximal occurrence of colours and textures.
pub struct Lomo;

impl Describe for Lomo {
    /// 26,960.
    fn dimension(&self) -> usize {
        WINDOW_ROWS * (COLOURS + RADII.len() * PATTERNS)
    }

    fn describe(&self, picture: &Picture) -> Vec<f32> {
        let person = resample::bytes(picture, WIDTH, HEIGHT);
        let mut out = Vec::with_capacity(self.dimension());
        let planes = |channel: usize| {
            let values = person.pixels().map(|pixel| levels(pixel.0)[channel]);
            Plane::new(values.collect(), WIDTH as usize)
        };
        let mut hsv = [planes(0), planes(1), planes(2)];
        let mut counts = Vec::new();
        for scale in 0..SCALES {
            if scale > 0 {
                hsv = hsv.map(|plane| plane.halved(f64::floor));
            }
            let [hue, saturation, value] = &hsv;
            let codes = (hue.values.iter().zip(&saturation.values)).zip(&value.values);
            let codes = codes
                .map(|((h, s), v)| (*v as usize * LEVELS + *s as usize) * LEVELS + *h as usize);
            largest_counts(&codes.collect::<Vec<_>>(), hue.width, COLOURS, &mut counts);
        }
        unit_logarithms(&counts, &mut out);
        let grey = person
            .pixels()
            .map(|pixel| f64::from(colour::grey(pixel.0)));
        let grey = Plane::new(grey.collect(), WIDTH as usize);
        for radius in RADII {
            counts.clear();
            let mut plane = grey.clone();
            for scale in 0..SCALES {
                if scale > 0 {
                    plane = plane.halved(|mean| mean);
                }
                largest_counts(&plane.patterns(radius), plane.width, PATTERNS, &mut counts);
            }
            unit_logarithms(&counts, &mut out);
        }
        out
    }
}

/// Hue, saturation and value in eight levels each.
fn levels(colour: [u8; 3]) -> [f64; 3] {
    let [red, green, blue] = colour.map(f64::from);
    let most = red.max(green).max(blue);
    let range = most - red.min(green).min(blue);
    let sixths = if range == 0.0 {
        0.0
    } else if most == red {
        (green - blue) / range
    } else if most == green {
        (blue - red) / range + 2.0
    } else {
        (red - green) / range + 4.0
    };
    let saturation = if most == 0.0 { 0.0 } else { range / most };
    let hue = (sixths / 6.0).rem_euclid(1.0);
    let top = (LEVELS - 1) as f64;
    [hue, saturation, most / 255.0].map(|share| (share * LEVELS as f64).floor().min(top))
}

/// One number a pixel.
#[derive(Clone)]
struct Plane {
    values: Vec<f64>,
    width: usize,
}

impl Plane {
    fn new(values: Vec<f64>, width: usize) -> Self {
        Plane { values, width }
    }

    fn height(&self) -> usize {
        self.values.len() / self.width
    }

    /// Means of 2 × 2 pixels, finished by a function. Sides are even at every scale.
    fn halved(&self, finish: impl Fn(f64) -> f64) -> Plane {
        let width = self.width / 2;
        let mean = |place: usize| {
            let at = 2 * (place / width) * self.width + 2 * (place % width);
            let four = [at, at + 1, at + self.width, at + self.width + 1];
            finish(four.iter().map(|at| self.values[*at]).sum::<f64>() / 4.0)
        };
        Plane::new((0..width * (self.height() / 2)).map(mean).collect(), width)
    }

    /// Scale-invariant local ternary patterns: whether the neighbours at this radius to the right, above, to the
    /// left and below are brighter (1) or darker (2) than the pixel by more than its share. Beyond the edge the
    /// last pixel goes on.
    fn patterns(&self, radius: usize) -> Vec<usize> {
        const TOLERANCE: f64 = 0.3;
        let (width, height) = (self.width, self.height());
        let code = |place: usize| {
            let (x, y) = (place % width, place / width);
            let centre = self.values[place];
            let neighbours = [
                ((x + radius).min(width - 1), y),
                (x, y.saturating_sub(radius)),
                (x.saturating_sub(radius), y),
                (x, (y + radius).min(height - 1)),
            ];
            neighbours.iter().rev().fold(0, |code, (x, y)| {
                let other = self.values[y * width + x];
                let digit = if other > (1.0 + TOLERANCE) * centre {
                    1
                } else if other < (1.0 - TOLERANCE) * centre {
                    2
                } else {
                    0
                };
                3 * code + digit
            })
        };
        (0..self.values.len()).map(code).collect()
    }
}

/// For every row of windows the largest count of each code in one of them.
fn largest_counts(codes: &[usize], width: usize, bins: usize, out: &mut Vec<u32>) {
    let height = codes.len() / width;
    for top in (0..=height - WINDOW).step_by(STEP) {
        let first = out.len();
        out.resize(first + bins, 0);
        for left in (0..=width - WINDOW).step_by(STEP) {
            let mut counts = vec![0_u32; bins];
            for y in top..top + WINDOW {
                for code in &codes[y * width + left..][..WINDOW] {
                    counts[*code] += 1;
                }
            }
            for (largest, count) in out[first..].iter_mut().zip(counts) {
                *largest = count.max(*largest);
            }
        }
    }
}

/// log(1 + count) of all, at length 1. Some count is above 0: every window has pixels.
fn unit_logarithms(counts: &[u32], out: &mut Vec<f32>) {
    let logarithms = || counts.iter().map(|count| f64::from(*count).ln_1p());
    let length = logarithms().map(|value| value * value).sum::<f64>().sqrt();
    out.extend(logarithms().map(|value| (value / length) as f32));
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgb;

    /// All of one colour: each row of windows has one bin, with 100 pixels of it.
    #[test]
    fn one_colour_by_hand() {
        let picture = Picture::from_pixel(48, 128, Rgb([0, 0, 255]));
        let found = Lomo.describe(&picture);
        assert_eq!((found.len(), Lomo.dimension()), (26960, 26960));
        // Blue has hue 2/3, which is level 5, and the highest saturation and value.
        let bin = (7 * 8 + 7) * 8 + 5;
        let expected = 1.0 / (40.0_f32).sqrt();
        for (place, value) in found[..40 * 512].iter().enumerate() {
            let wanted = if place % 512 == bin { expected } else { 0.0 };
            assert!((value - wanted).abs() < 1e-6, "{place}");
        }
        // No neighbour is brighter or darker.
        for (place, value) in found[40 * 512..].iter().enumerate() {
            let wanted = if place % 81 == 0 { expected } else { 0.0 };
            assert!((value - wanted).abs() < 1e-6, "{place}");
        }
    }

    #[test]
    fn patterns_by_hand() {
        // 13 is not brighter than 10 by more than 30 %, 14 is; 7 is not darker, 6 is.
        let values = vec![
            0.0, 14.0, 0.0, //
            6.0, 10.0, 13.0, //
            0.0, 7.0, 0.0,
        ];
        let codes = Plane::new(values, 3).patterns(1);
        // Right neither, above brighter (3), left darker (2 × 9), below neither.
        assert_eq!(codes[4], 3 + 18);
    }

    #[test]
    fn any_size_gives_finite_numbers_of_length_one_a_kind() {
        for (width, height) in [(1, 1), (48, 128), (301, 17), (64, 200)] {
            let picture = Picture::from_fn(width, height, |x, y| {
                Rgb([(x * 7 + y) as u8, (x * y) as u8, (y * 3) as u8])
            });
            let found = Lomo.describe(&picture);
            for part in [&found[..20480], &found[20480..23720], &found[23720..]] {
                let length: f32 = part.iter().map(|v| v * v).sum();
                assert!((length - 1.0).abs() < 1e-4, "{length}");
            }
        }
    }
}
