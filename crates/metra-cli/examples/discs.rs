//! Pictures whose attributes are known: discs, brighter and larger by four steps each. The guide to
//! attributes (docs/guide/attributes.md) and the test of `metra attributes` draw them.
//!
//! `cargo run -p metra-cli --example discs -- FOLDER` writes 240 PNGs, `discs.csv` with a picture's
//! path, class, true brightness and size, and its 12 × 12 thumbnail in grey as the vector, and
//! `discs.orderings.txt`, which says of the 16 classes which are brighter and which are larger.

use image::{Rgb, RgbImage as Picture};
use metra::internal::Stream;
use std::fmt::Write;
use std::path::Path;

/// Steps of each attribute.
const STEPS: usize = 4;
/// Pixels along a side, of a picture and of its thumbnail.
const SIDE: u32 = 96;
const THUMBNAIL: u32 = 12;

/// One disc.
pub(crate) struct Disc {
    /// Grey of the disc, from 0 to 255.
    pub(crate) brightness: f64,
    /// Radius in pixels.
    pub(crate) radius: f64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "discs".into());
    write(Path::new(&folder), 240, 1)?;
    Ok(())
}

/// Draw discs, classes in turn, and write what is known of them.
pub(crate) fn write(
    folder: &Path,
    count: usize,
    seed: u64,
) -> Result<Vec<Disc>, Box<dyn std::error::Error>> {
    std::fs::create_dir_all(folder)?;
    let mut table = String::from("path,class,brightness,size");
    for column in 0..THUMBNAIL * THUMBNAIL {
        write!(table, ",v{column}")?;
    }
    let mut discs = Vec::with_capacity(count);
    for number in 0..count {
        let mut stream = Stream::new(seed, "discs", number as u64);
        let steps = (number % STEPS, number / STEPS % STEPS);
        let disc = Disc {
            // Steps touch each other: only their order is sure, not a gap between them.
            brightness: 90.0 + 40.0 * (steps.0 as f64 + stream.unit()),
            radius: 14.0 + 7.0 * (steps.1 as f64 + stream.unit()),
        };
        let picture = disc.draw(&mut stream);
        let name = format!("disc_{number:03}.png");
        picture.save(folder.join(&name))?;
        let (class, size) = (class(steps), disc.radius);
        write!(table, "\n{name},{class},{:.2},{size:.2}", disc.brightness)?;
        for value in thumbnail(&picture) {
            write!(table, ",{value:.2}")?;
        }
        discs.push(disc);
    }
    table.push('\n');
    std::fs::write(folder.join("discs.csv"), table)?;
    let brighter = levels(|step, other| (step, other));
    let larger = levels(|step, other| (other, step));
    let orderings = format!("bright: {brighter}\nlarge: {larger}\n");
    std::fs::write(folder.join("discs.orderings.txt"), orderings)?;
    Ok(discs)
}

fn class((brightness, size): (usize, usize)) -> String {
    format!("b{brightness}s{size}")
}

/// Classes by one attribute, those with the same step of it at one level.
fn levels(steps: impl Fn(usize, usize) -> (usize, usize)) -> String {
    let level = |step: usize| -> String {
        let names: Vec<String> = (0..STEPS).map(|other| class(steps(step, other))).collect();
        names.join("~")
    };
    (0..STEPS).map(level).collect::<Vec<_>>().join("<")
}

impl Disc {
    /// Near the middle, on dark ground, with a soft edge and a little noise.
    fn draw(&self, stream: &mut Stream) -> Picture {
        let mut middle = || f64::from(SIDE) / 2.0 + 4.0 * (stream.unit() - 0.5);
        let (x_middle, y_middle) = (middle(), middle());
        let tint = [1.0, 0.94, 0.8];
        Picture::from_fn(SIDE, SIDE, |x, y| {
            let away = (f64::from(x) - x_middle).hypot(f64::from(y) - y_middle);
            let inside = (self.radius - away + 0.5).clamp(0.0, 1.0);
            let noise = 6.0 * stream.normal();
            let value = 40.0 + (self.brightness - 40.0) * inside + noise;
            Rgb(tint.map(|share| (share * value).clamp(0.0, 255.0) as u8))
        })
    }
}

/// Mean grey of square blocks.
fn thumbnail(picture: &Picture) -> Vec<f64> {
    let block = SIDE / THUMBNAIL;
    let mut means = vec![0.0; (THUMBNAIL * THUMBNAIL) as usize];
    for (x, y, pixel) in picture.enumerate_pixels() {
        let grey = pixel.0.iter().map(|value| f64::from(*value)).sum::<f64>() / 3.0;
        let place = y / block * THUMBNAIL + x / block;
        means[place as usize] += grey / f64::from(block * block);
    }
    means
}
