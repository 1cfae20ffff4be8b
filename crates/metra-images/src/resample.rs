//! Other sizes of a picture, by the triangle filter that widens with the reduction.
//!
//! Where an image shrinks, each new pixel is a weighted mean of all old ones under a triangle as wide as
//! two new pixels, so fine patterns are averaged rather than picked at random (aliased); where it grows, it
//! is plain bilinear interpolation. Weights and their rounding are those of Pillow's `resize(…, BILINEAR)`,
//! which made most features that can be found: [`bytes`] gives its bytes exactly where it goes across first
//! (newer ones choose the order by cost), and [`plane`] what it gives for images of mode F, to rounding.

use crate::Picture;

/// A part of a picture, in its pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) left: usize,
    pub(crate) top: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

impl Region {
    /// All of it.
    pub(crate) fn whole(picture: &Picture) -> Self {
        Region {
            left: 0,
            top: 0,
            width: picture.width() as usize,
            height: picture.height() as usize,
        }
    }
}

/// What one number of a plane is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColourPlane {
    /// Luma by ITU-R 601 in 16 bits, as Pillow's mode L.
    Grey,
    /// One of red, green and blue.
    Channel(usize),
}

/// A region as `side` × `side` floats, rows from the top.
///
/// Rows are added up first, since they lie in order in memory and a row of the picture is looked at
/// once; the two directions commute.
pub(crate) fn plane(picture: &Picture, region: Region, ink: ColourPlane, side: usize) -> Vec<f32> {
    let (across, down) = (
        Taps::new(region.width, side),
        Taps::new(region.height, side),
    );
    let mut sums = vec![0.0f32; side * region.width];
    let mut row = vec![0.0f32; region.width];
    let stride = 3 * picture.width() as usize;
    let pixels = picture.as_raw();
    let mut first = 0;
    for y in 0..region.height {
        let start = (region.top + y) * stride + 3 * region.left;
        let line = &pixels[start..start + 3 * region.width];
        ink.read(line, &mut row);
        while first < side && down.end(first) <= y {
            first += 1;
        }
        for target in first..side {
            let Some(weight) = down.weight(target, y) else {
                break;
            };
            let weight = weight as f32;
            let sum = &mut sums[target * region.width..(target + 1) * region.width];
            for (sum, value) in sum.iter_mut().zip(&row) {
                *sum += weight * value;
            }
        }
    }
    let mut small = Vec::with_capacity(side * side);
    for line in sums.chunks_exact(region.width) {
        for target in 0..side {
            let (start, weights) = across.of(target);
            let mut sum = 0.0;
            for (weight, value) in weights.iter().zip(&line[start..]) {
                sum += weight * f64::from(*value);
            }
            small.push(sum as f32);
        }
    }
    small
}

/// A picture of another size, in bytes as Pillow gives them: across first, rounded to bytes, then down.
pub(crate) fn bytes(picture: &Picture, width: u32, height: u32) -> Picture {
    let (from_width, from_height) = picture.dimensions();
    let across = Taps::new(from_width as usize, width as usize).whole();
    let down = Taps::new(from_height as usize, height as usize).whole();
    let mut narrow = Picture::new(width, from_height);
    let lines = (picture.as_raw()).chunks_exact(3 * from_width as usize);
    for (line, out) in lines.zip(narrow.chunks_exact_mut(3 * width as usize)) {
        for (target, out) in out.chunks_exact_mut(3).enumerate() {
            let (start, weights) = across.of(target);
            for (channel, out) in out.iter_mut().enumerate() {
                let values = line[3 * start + channel..].iter().step_by(3);
                *out = rounded(weights.iter().zip(values));
            }
        }
    }
    let mut small = Picture::new(width, height);
    let stride = 3 * width as usize;
    for (target, out) in small.chunks_exact_mut(stride).enumerate() {
        let (start, weights) = down.of(target);
        let rows = &narrow.as_raw()[start * stride..];
        for (place, out) in out.iter_mut().enumerate() {
            *out = rounded(weights.iter().zip(rows[place..].iter().step_by(stride)));
        }
    }
    small
}

impl ColourPlane {
    fn read(self, line: &[u8], row: &mut [f32]) {
        match self {
            ColourPlane::Grey => {
                for (pixel, value) in line.chunks_exact(3).zip(row) {
                    *value = f32::from(luma(pixel[0], pixel[1], pixel[2]));
                }
            }
            ColourPlane::Channel(channel) => {
                for (pixel, value) in line.chunks_exact(3).zip(row) {
                    *value = f32::from(pixel[channel]);
                }
            }
        }
    }
}

/// Luma by ITU-R 601 in 16 bits.
pub(crate) fn luma(red: u8, green: u8, blue: u8) -> u8 {
    let sum = 19595 * u32::from(red) + 38470 * u32::from(green) + 7471 * u32::from(blue);
    ((sum + 32768) >> 16) as u8
}

/// For each new place, the first old place that counts and the weights from there on, which sum to 1.
struct Taps<W = f64> {
    starts: Vec<usize>,
    /// Where the weights of each place begin, and where the last end.
    bounds: Vec<usize>,
    weights: Vec<W>,
}

impl Taps {
    fn new(from: usize, to: usize) -> Self {
        let scale = from as f64 / to as f64;
        let width = scale.max(1.0);
        let mut taps = Taps {
            starts: Vec::with_capacity(to),
            bounds: vec![0],
            weights: Vec::new(),
        };
        for target in 0..to {
            let centre = (target as f64 + 0.5) * scale;
            let start = (centre - width + 0.5).max(0.0) as usize;
            let end = ((centre + width + 0.5) as usize).min(from);
            let begin = taps.weights.len();
            let heights = (start..end).map(|x| {
                let away = ((x as f64 + 0.5 - centre) / width).abs();
                (1.0 - away).max(0.0)
            });
            taps.weights.extend(heights);
            let sum: f64 = taps.weights[begin..].iter().sum();
            for weight in &mut taps.weights[begin..] {
                *weight /= sum;
            }
            taps.starts.push(start);
            taps.bounds.push(taps.weights.len());
        }
        taps
    }

    fn end(&self, target: usize) -> usize {
        self.starts[target] + self.bounds[target + 1] - self.bounds[target]
    }

    /// The weight of an old place in a new one that ends after it; none where it begins after it.
    fn weight(&self, target: usize, place: usize) -> Option<f64> {
        let (start, weights) = self.of(target);
        weights.get(place.checked_sub(start)?).copied()
    }

    /// The same weights as whole numbers.
    fn whole(self) -> Taps<i32> {
        let whole = |weight: &f64| (0.5 + weight * f64::from(1 << PRECISION)) as i32;
        Taps {
            weights: self.weights.iter().map(whole).collect(),
            starts: self.starts,
            bounds: self.bounds,
        }
    }
}

impl<W> Taps<W> {
    /// The first old place of a new one, and the weights from there on.
    fn of(&self, target: usize) -> (usize, &[W]) {
        let range = self.bounds[target]..self.bounds[target + 1];
        (self.starts[target], &self.weights[range])
    }
}

/// Bits after the point in Pillow's weights for bytes.
const PRECISION: u32 = 22;

fn rounded<'a>(products: impl Iterator<Item = (&'a i32, &'a u8)>) -> u8 {
    let mut sum = 1i32 << (PRECISION - 1);
    for (weight, value) in products {
        sum += weight * i32::from(*value);
    }
    (sum >> PRECISION).clamp(0, 255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgb;

    fn grey(values: &[u8], width: u32) -> Picture {
        Picture::from_fn(width, values.len() as u32 / width, |x, y| {
            Rgb([values[(y * width + x) as usize]; 3])
        })
    }

    /// Four to two: the triangle reaches two old pixels to each side of a new one's middle. The first new
    /// pixel has its middle at 1, so the old middles .5, 1.5, 2.5 lie .25, .25 and .75 of the width away:
    /// weights .75, .75, .25 over 1.75.
    #[test]
    fn the_triangle_widens_with_the_reduction() {
        let picture = grey(&[10, 20, 30, 40].repeat(4), 4);
        let small = plane(&picture, Region::whole(&picture), ColourPlane::Grey, 2);
        let expected = (0.75 * 10.0 + 0.75 * 20.0 + 0.25 * 30.0) / 1.75;
        assert!((small[0] - expected).abs() < 1e-5, "{small:?}");
        assert!((small[1] - (50.0 - expected)).abs() < 1e-5, "{small:?}");
        assert_eq!(
            bytes(&picture, 2, 2).get_pixel(0, 1)[0],
            expected.round() as u8
        );
    }

    /// Two to four: the new middles lie at .25, .75, 1.25 and 1.75 of the old, whose own are at .5 and 1.5.
    #[test]
    fn growing_is_bilinear() {
        let picture = grey(&[0, 100, 0, 100], 2);
        let large = plane(
            &picture,
            Region::whole(&picture),
            ColourPlane::Channel(1),
            4,
        );
        for (found, expected) in large.iter().zip([0.0, 25.0, 75.0, 100.0]) {
            assert!((found - expected).abs() < 1e-4, "{large:?}");
        }
    }

    #[test]
    fn the_same_size_changes_nothing_and_a_region_is_a_crop() {
        let picture = Picture::from_fn(9, 7, |x, y| Rgb([(x * 20) as u8, (y * 30) as u8, 5]));
        assert_eq!(bytes(&picture, 9, 7), picture);
        let region = Region {
            left: 2,
            top: 1,
            width: 4,
            height: 4,
        };
        let cut = plane(&picture, region, ColourPlane::Channel(0), 4);
        assert_eq!(cut[..4], [40.0, 60.0, 80.0, 100.0]);
    }

    #[test]
    fn luma_is_that_of_601() {
        assert_eq!(luma(255, 255, 255), 255);
        assert_eq!(luma(255, 0, 0), 76);
        assert_eq!(luma(0, 255, 0), 150);
        assert_eq!(luma(0, 0, 255), 29);
    }
}
