//! Colours in other coordinates: YUV, HSV and Lab.
//!
//! YUV, HSV and grey are whole numbers of 0 to 255 by OpenCV's arithmetic for bytes (`RGB2YUV`,
//! `RGB2HSV_FULL`, `RGB2GRAY`), with which features of people were and are made; the constants here give its
//! bytes for all 2^24 colours. Lab is that of CIE 1976 under D65, for histograms that follow the eye.

use crate::describe::Describe;
use crate::resample;
use crate::{Error, Picture, Result};

/// Brightness by which local patterns are compared.
pub(crate) fn grey([red, green, blue]: [u8; 3]) -> u8 {
    let sum = 9798 * i32::from(red) + 19235 * i32::from(green) + 3735 * i32::from(blue);
    ((sum + (1 << 14)) >> 15) as u8
}

/// Brightness, then how much bluer and redder than it: .492 (B − Y) and .877 (R − Y), around 128.
pub(crate) fn yuv(colour: [u8; 3]) -> [u8; 3] {
    let [red, green, blue] = colour.map(i32::from);
    let half = 1 << 13;
    let bright = (4899 * red + 9617 * green + 1868 * blue + half) >> 14;
    let beside = |value: i32, weight: i32| {
        (((value - bright) * weight + (128 << 14) + half) >> 14).clamp(0, 255) as u8
    };
    [bright as u8, beside(blue, 8061), beside(red, 14369)]
}

/// Hue as a 256th of the circle, and saturation. Grey has hue 0.
pub(crate) fn hue_saturation(colour: [u8; 3]) -> [u8; 2] {
    let [red, green, blue] = colour.map(i32::from);
    let most = red.max(green).max(blue);
    let range = most - red.min(green).min(blue);
    if range == 0 {
        return [0, 0];
    }
    let share =
        |whole: i32, of: i32| (f64::from(whole << 12) / f64::from(of)).round_ties_even() as i32;
    let saturation = (range * share(255, most) + 2048) >> 12;
    let sixths = if most == red {
        green - blue
    } else if most == green {
        blue - red + 2 * range
    } else {
        red - green + 4 * range
    };
    let hue = (sixths * share(256, 6 * range) + 2048) >> 12;
    [hue.rem_euclid(256) as u8, saturation as u8]
}

/// Lightness of 0 to 100, green to red, blue to yellow.
pub(crate) fn lab(colour: [u8; 3]) -> [f64; 3] {
    let [red, green, blue] = colour.map(|value| {
        let value = f64::from(value) / 255.0;
        if value > 0.04045 {
            ((value + 0.055) / 1.055).powf(2.4)
        } else {
            value / 12.92
        }
    });
    let x = 0.412453 * red + 0.357580 * green + 0.180423 * blue;
    let y = 0.212671 * red + 0.715160 * green + 0.072169 * blue;
    let z = 0.019334 * red + 0.119193 * green + 0.950227 * blue;
    let [x, y, z] = [x / 0.95047, y, z / 1.08883].map(|value| {
        if value > 0.008856 {
            value.cbrt()
        } else {
            7.787 * value + 16.0 / 116.0
        }
    });
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// Histograms of lightness, green to red and blue to yellow, each of sum 1: 512 numbers of GIST and 30 of
/// these make the 542 of PubFig's features.
pub struct LabHistogram {
    bins: usize,
}

/// The least and the greatest value of each axis that a colour of sRGB has, to the next whole number. The
/// axis of grey is then inside a bin, where rounding cannot move it to the next.
const RANGES: [(f64, f64); 3] = [(0.0, 100.0), (-87.0, 99.0), (-108.0, 95.0)];

/// The picture is brought to this size first: the time no longer depends on it.
const SIDE: u32 = 128;

impl LabHistogram {
    /// Histograms of `bins` (2 to 256) an axis.
    pub fn new(bins: usize) -> Result<Self> {
        if !(2..=256).contains(&bins) {
            let problem = format!("bins must be between 2 and 256, but is {bins}");
            return Err(Error::found("Lab histogram", problem));
        }
        Ok(LabHistogram { bins })
    }
}

impl Describe for LabHistogram {
    /// Three times the bins.
    fn dimension(&self) -> usize {
        3 * self.bins
    }

    fn describe(&self, picture: &Picture) -> Vec<f32> {
        let small = resample::bytes(picture, SIDE, SIDE);
        let mut counts = vec![0u32; 3 * self.bins];
        for pixel in small.pixels() {
            for (axis, (value, (least, most))) in lab(pixel.0).into_iter().zip(RANGES).enumerate() {
                let place = (value - least) / (most - least) * self.bins as f64;
                let bin = (place.max(0.0) as usize).min(self.bins - 1);
                counts[axis * self.bins + bin] += 1;
            }
        }
        shares(&counts, f64::from(SIDE * SIDE)).collect()
    }
}

/// Counts as shares of the whole.
pub(crate) fn shares(counts: &[u32], whole: f64) -> impl Iterator<Item = f32> {
    counts
        .iter()
        .map(move |count| (f64::from(*count) / whole) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgb;

    /// Values printed by OpenCV 4.
    #[test]
    fn bytes_are_those_of_opencv() {
        for (colour, bright, expected, hue) in [
            ([255, 0, 0], 76, [76, 91, 255], [0, 255]),
            ([0, 255, 0], 150, [150, 54, 0], [85, 255]),
            ([0, 0, 255], 29, [29, 239, 103], [171, 255]),
            ([255, 255, 255], 255, [255, 128, 128], [0, 0]),
            ([0, 0, 0], 0, [0, 128, 128], [0, 0]),
        ] {
            assert_eq!(grey(colour), bright, "{colour:?}");
            assert_eq!(yuv(colour), expected, "{colour:?}");
            assert_eq!(hue_saturation(colour), hue, "{colour:?}");
        }
    }

    /// Published values of sRGB's primaries under D65.
    #[test]
    fn lab_of_the_primaries() {
        for (colour, expected) in [
            ([255, 0, 0], [53.24, 80.09, 67.20]),
            ([0, 255, 0], [87.73, -86.18, 83.18]),
            ([0, 0, 255], [32.30, 79.19, -107.86]),
            ([255, 255, 255], [100.0, 0.0, 0.0]),
            ([119, 119, 119], [50.03, 0.0, 0.0]),
        ] {
            for (found, expected) in lab(colour).into_iter().zip(expected) {
                assert!(
                    (found - expected).abs() < 0.03,
                    "{colour:?} {found} {expected}"
                );
            }
        }
    }

    /// Half red, half grey: lightness 53 and 50 fall into bin 5 of 10; on the axis to red, 80.1 is in bin
    /// (80.1 + 87) / 18.6 = 8 and 0 in bin 4; to yellow, 67.2 in bin (67.2 + 108) / 20.3 = 8 and 0 in bin 5.
    #[test]
    fn histograms_of_two_colours() {
        let picture = Picture::from_fn(128, 128, |x, _| match x < 64 {
            true => Rgb([255, 0, 0]),
            false => Rgb([119; 3]),
        });
        let found = LabHistogram::new(10).unwrap().describe(&picture);
        let mut expected = [0.0; 30];
        expected[5] = 1.0;
        for place in [14, 18, 25, 28] {
            expected[place] = 0.5;
        }
        assert_eq!(found, expected);
        assert!(LabHistogram::new(1).is_err());
    }
}
