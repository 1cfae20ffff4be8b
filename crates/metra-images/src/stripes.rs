//! Histograms of colour and texture in horizontal stripes, for people seen by cameras.
//!
//! As in Jose and Fleuret, "Scalable metric learning via weighted approximate rank component analysis",
//! ECCV 2016, Section 4.2: the image at 128 × 48, six stripes, 16 bins for each channel of RGB, YUV and HSV,
//! and local binary patterns, each histogram of sum 1. The paper gives 2,580 numbers: 430 a stripe, which is
//! 8 channels of 16 (RGB, YUV, hue and saturation: the value of HSV is the largest of RGB again) and uniform
//! patterns of 8 neighbours at radius 1 (59) and 16 at radius 2 (243). A person stands upright wherever the
//! camera is, so stripes keep what is above what and forget what is beside what.
//!
//! Patterns are taken in the whole image, so that the edge of a stripe is no edge of a picture.

use crate::binary_patterns::BinaryPatterns;
use crate::describe::Describe;
use crate::{Error, Picture, Result, colour, resample};

/// Width to which images are brought.
const WIDTH: u32 = 48;
/// Height to which images are brought.
const HEIGHT: u32 = 128;
/// Red, green, blue, Y, U, V, hue, saturation.
const CHANNELS: usize = 8;
/// Bins of 16 values each.
const BINS: usize = 16;

/// Histograms in stripes.
pub struct Stripes {
    /// First row of each stripe, and the end of the last.
    edges: Vec<usize>,
    patterns: [BinaryPatterns; 2],
}

impl Stripes {
    /// `stripes` (1 to 64; 6 as published) of 430 numbers each.
    pub fn new(stripes: usize) -> Result<Self> {
        if !(1..=64).contains(&stripes) {
            let problem = format!("stripes must be between 1 and 64, but is {stripes}");
            return Err(Error::found("stripes", problem));
        }
        let edge = |stripe: usize| {
            let exact = stripe as f64 * f64::from(HEIGHT) / stripes as f64;
            exact.round_ties_even() as usize
        };
        Ok(Stripes {
            edges: (0..=stripes).map(edge).collect(),
            patterns: [BinaryPatterns::new(8, 1.0), BinaryPatterns::new(16, 2.0)],
        })
    }
}

impl Describe for Stripes {
    /// 430 a stripe: 2,580 for six.
    fn dimension(&self) -> usize {
        let kinds: usize = self.patterns.iter().map(BinaryPatterns::kinds).sum();
        (self.edges.len() - 1) * (CHANNELS * BINS + kinds)
    }

    fn describe(&self, picture: &Picture) -> Vec<f32> {
        let resized;
        let person = if picture.dimensions() == (WIDTH, HEIGHT) {
            picture
        } else {
            resized = resample::bytes(picture, WIDTH, HEIGHT);
            &resized
        };
        let grey: Vec<u8> = person.pixels().map(|pixel| colour::grey(pixel.0)).collect();
        let width = WIDTH as usize;
        let numbers = (self.patterns.each_ref()).map(|patterns| patterns.numbers(&grey, width));
        let mut out = Vec::with_capacity(self.dimension());
        for edges in self.edges.windows(2) {
            let range = edges[0] * width..edges[1] * width;
            let pixels = range.len() as f64;
            let mut counts = [0u32; CHANNELS * BINS];
            let bytes = &person.as_raw()[3 * range.start..3 * range.end];
            for pixel in bytes.chunks_exact(3) {
                let rgb = [pixel[0], pixel[1], pixel[2]];
                let [red, green, blue] = rgb;
                let [bright, bluer, redder] = colour::yuv(rgb);
                let [hue, saturation] = colour::hue_saturation(rgb);
                let values = [red, green, blue, bright, bluer, redder, hue, saturation];
                for (channel, value) in values.into_iter().enumerate() {
                    counts[channel * BINS + usize::from(value) * BINS / 256] += 1;
                }
            }
            out.extend(colour::shares(&counts, pixels));
            for (patterns, numbers) in self.patterns.iter().zip(&numbers) {
                let mut counts = vec![0u32; patterns.kinds()];
                for number in &numbers[range.clone()] {
                    counts[usize::from(*number)] += 1;
                }
                out.extend(colour::shares(&counts, pixels));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgb;

    /// The upper half red and the lower grey, so three stripes each. Red (255, 0, 0) has YUV (76, 91, 255),
    /// hue 0 and saturation 255; grey (100, 100, 100) has YUV (100, 128, 128), hue and saturation 0.
    #[test]
    fn two_colours_by_hand() {
        let picture = Picture::from_fn(48, 128, |_, y| match y < 64 {
            true => Rgb([255, 0, 0]),
            false => Rgb([100; 3]),
        });
        let stripes = Stripes::new(6).unwrap();
        let found = stripes.describe(&picture);
        assert_eq!((found.len(), stripes.dimension()), (2580, 2580));
        for stripe in 0..6 {
            let bins = if stripe < 3 {
                [15, 0, 0, 4, 5, 15, 0, 15]
            } else {
                [6, 6, 6, 6, 8, 8, 0, 0]
            };
            for (channel, bin) in bins.into_iter().enumerate() {
                let start = stripe * 430 + channel * 16;
                for place in 0..16 {
                    let expected = if place == bin { 1.0 } else { 0.0 };
                    assert_eq!(
                        found[start + place],
                        expected,
                        "stripe {stripe} channel {channel}"
                    );
                }
            }
        }
        // Far from the line between the colours all neighbours are as bright.
        assert_eq!(found[128 + 57], 1.0);
        assert_eq!(found[187 + 241], 1.0);
        // The stripe above it has 21 rows, of which the last sees brighter ones below: the same 57 too. The
        // stripe below sees darker ones above its first row: 1 of 21 rows has other patterns of radius 1.
        assert!((found[3 * 430 + 128 + 57] - 20.0 / 21.0).abs() < 1e-6);
    }

    #[test]
    fn every_histogram_sums_to_one_at_any_size() {
        for (width, height, count) in [(1, 1, 6), (48, 128, 1), (301, 17, 5), (64, 200, 64)] {
            let picture = Picture::from_fn(width, height, |x, y| {
                Rgb([(x * 7 + y) as u8, (x * y) as u8, (y * 3) as u8])
            });
            let stripes = Stripes::new(count).unwrap();
            let found = stripes.describe(&picture);
            for stripe in found.chunks(430) {
                let ends = (0..=8).map(|channel| 16 * channel).chain([187, 430]);
                let ends: Vec<usize> = ends.collect();
                for pair in ends.windows(2) {
                    let sum: f32 = stripe[pair[0]..pair[1]].iter().sum();
                    assert!((sum - 1.0).abs() < 1e-5, "{sum}");
                }
            }
        }
        assert!(Stripes::new(0).is_err() && Stripes::new(65).is_err());
    }
}
