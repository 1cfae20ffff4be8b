//! Files to pixels, for files that nobody vouches for.
//!
//! The format is read from the first bytes, never from the name: a JPEG called `.png` is a JPEG. Width,
//! height and memory are checked before pixels are made, since a file of 50 bytes can declare 60,000 ×
//! 60,000 of them. The orientation that cameras write into EXIF is carried out. Grey becomes three equal
//! channels; alpha is laid over white, as a browser lays a picture over an empty page.

use crate::{Error, Result};
use image::{DynamicImage, ImageDecoder, ImageReader, Rgb, metadata::Orientation};
use std::fs::File;
use std::io::{BufRead, BufReader, Seek};
use std::path::Path;

/// Eight bits of red, green and blue a pixel, rows from the top.
pub type Picture = image::RgbImage;

/// What a file may ask for. The defaults fit photographs and long screenshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Pixels, width times height.
    pub pixels: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            pixels: 100_000_000,
            bytes: 100_000_000,
        }
    }
}

/// Pixels that any file may have, and those for each byte of a longer one: a page of one colour packs into
/// little, but a picture does not.
const FREE_PIXELS: u64 = 16_000_000;
const PIXELS_PER_BYTE: u64 = 40;

/// Bytes per pixel that a decoder may hold at once: up to 16 for the pixels of the widest format, and as
/// much again for what it works with.
const BYTES_PER_PIXEL: u64 = 32;

/// Memory that decoders may use before the size is known, for profiles, texts and a row of pixels. A profile
/// of a few kilobytes in a PNG can inflate to gigabytes.
const HEADER_MEMORY: u64 = 32 << 20;

/// Memory that decoders may use for small images too, for tables and chunks.
const LEAST_MEMORY: u64 = 1 << 20;

/// Read one image.
pub fn decode(path: &Path, limits: Limits) -> Result<Picture> {
    // Asked before it is opened: a pipe blocks whoever opens it.
    let found = std::fs::metadata(path).map_err(|error| Error::io(path, error))?;
    if !found.is_file() {
        return Err(Error::image(path, "expected a file, found something else"));
    }
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    let bytes = found.len();
    if bytes > limits.bytes {
        return Err(Error::image(
            path,
            format!("expected at most {} bytes, found {bytes}", limits.bytes),
        ));
    }
    read(BufReader::new(file), bytes, path, limits)
}

/// Read one image from memory; `path` stands in errors.
pub fn decode_bytes(bytes: &[u8], path: &Path, limits: Limits) -> Result<Picture> {
    read(
        std::io::Cursor::new(bytes),
        bytes.len() as u64,
        path,
        limits,
    )
}

fn read(source: impl BufRead + Seek, bytes: u64, path: &Path, limits: Limits) -> Result<Picture> {
    let refused = |error: image::ImageError| Error::image(path, error.to_string());
    let mut reader = ImageReader::new(source)
        .with_guessed_format()
        .map_err(|error| Error::io(path, error))?;
    if reader.format().is_none() {
        return Err(Error::image(
            path,
            "expected PNG, JPEG, BMP or WebP, found none of them in its first bytes",
        ));
    }
    let mut allowed = image::Limits::no_limits();
    allowed.max_alloc = Some(HEADER_MEMORY);
    reader.limits(allowed.clone());
    let mut decoder = reader.into_decoder().map_err(refused)?;
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    if pixels == 0 || pixels > limits.pixels {
        return Err(Error::image(
            path,
            format!(
                "expected 1 to {} pixels, found {width} × {height}",
                limits.pixels
            ),
        ));
    }
    if pixels > FREE_PIXELS.max(bytes.saturating_mul(PIXELS_PER_BYTE)) {
        let problem = format!("{width} × {height} pixels are too many for its {bytes} bytes");
        return Err(Error::image(path, problem));
    }
    allowed.max_alloc = Some(pixels * BYTES_PER_PIXEL + LEAST_MEMORY);
    decoder.set_limits(allowed).map_err(refused)?;
    // A damaged EXIF block says nothing of the pixels.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut image = DynamicImage::from_decoder(decoder).map_err(refused)?;
    image.apply_orientation(orientation);
    Ok(over_white(image))
}

/// The colours as seen on white paper.
fn over_white(image: DynamicImage) -> Picture {
    if !image.color().has_alpha() {
        return image.into_rgb8();
    }
    let seen = image.into_rgba8();
    Picture::from_fn(seen.width(), seen.height(), |x, y| {
        let [red, green, blue, alpha] = seen.get_pixel(x, y).0.map(u32::from);
        Rgb([red, green, blue]
            .map(|value| ((value * alpha + 255 * (255 - alpha) + 127) / 255) as u8))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{GrayAlphaImage, GrayImage, ImageFormat, Luma, LumaA, RgbaImage};
    use std::io::Cursor;

    fn written(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    fn decoded(bytes: &[u8]) -> Result<Picture> {
        decode_bytes(bytes, Path::new("a"), Limits::default())
    }

    #[test]
    fn every_format_gives_the_pixels_that_were_written() {
        let image = Picture::from_fn(5, 3, |x, y| Rgb([40 * x as u8, 80 * y as u8, 7]));
        for format in [ImageFormat::Png, ImageFormat::Bmp, ImageFormat::WebP] {
            let bytes = written(&DynamicImage::from(image.clone()), format);
            assert_eq!(decoded(&bytes).unwrap(), image, "{format:?}");
        }
        let flat = Picture::from_pixel(16, 8, Rgb([200, 30, 90]));
        let bytes = written(&DynamicImage::from(flat), ImageFormat::Jpeg);
        let found = decoded(&bytes).unwrap();
        assert_eq!(found.dimensions(), (16, 8));
        let near = |a: u8, b: u8| a.abs_diff(b) <= 2;
        assert!((found.pixels()).all(|p| near(p[0], 200) && near(p[1], 30) && near(p[2], 90)));
    }

    #[test]
    fn grey_is_three_channels_and_alpha_lies_over_white() {
        let grey = GrayImage::from_pixel(2, 2, Luma([77]));
        let found = decoded(&written(&grey.into(), ImageFormat::Png)).unwrap();
        assert_eq!(found.get_pixel(1, 1).0, [77, 77, 77]);
        let half = GrayAlphaImage::from_pixel(1, 1, LumaA([0, 128]));
        let found = decoded(&written(&half.into(), ImageFormat::Png)).unwrap();
        assert_eq!(found.get_pixel(0, 0).0, [127, 127, 127]);
        let mut clear = RgbaImage::from_pixel(2, 1, image::Rgba([10, 20, 30, 0]));
        clear.put_pixel(1, 0, image::Rgba([10, 20, 30, 255]));
        let found = decoded(&written(&clear.into(), ImageFormat::Png)).unwrap();
        assert_eq!(found.as_raw().as_slice(), [255, 255, 255, 10, 20, 30]);
    }

    /// A JPEG with an EXIF block that says "turned by a quarter" is turned back.
    #[test]
    fn orientation_is_carried_out() {
        let image = Picture::from_fn(32, 16, |x, _| Rgb([if x < 16 { 0 } else { 255 }; 3]));
        let bytes = written(&DynamicImage::from(image), ImageFormat::Jpeg);
        // TIFF, little endian, one entry: orientation (0x0112), a short, one, value 6.
        let exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        let mut turned = bytes[..2].to_vec();
        turned.extend([0xff, 0xe1]);
        turned.extend((exif.len() as u16 + 2).to_be_bytes());
        turned.extend(exif);
        turned.extend(&bytes[2..]);
        let found = decoded(&turned).unwrap();
        assert_eq!(found.dimensions(), (16, 32));
        assert!(found.get_pixel(8, 2)[0] < 50 && found.get_pixel(8, 29)[0] > 200);
    }

    #[test]
    fn a_small_file_has_no_hundred_million_pixels() {
        let plain = DynamicImage::from(GrayImage::new(9000, 9000));
        let found = decoded(&written(&plain, ImageFormat::Png)).unwrap_err();
        assert!(found.to_string().contains("too many for its"), "{found}");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let none = decoded(b"hello, I am no image at all").unwrap_err();
        assert!(none.to_string().starts_with("a: expected PNG"), "{none}");
        let image = DynamicImage::from(Picture::new(40, 30));
        let bytes = written(&image, ImageFormat::Png);
        let cut = decoded(&bytes[..bytes.len() / 2]).unwrap_err();
        assert!(cut.is_of_one_image(), "{cut}");
        let few = Limits {
            pixels: 1199,
            ..Limits::default()
        };
        let large = decode_bytes(&bytes, Path::new("a"), few).unwrap_err();
        assert_eq!(
            large.to_string(),
            "a: expected 1 to 1199 pixels, found 40 × 30"
        );
    }
}
