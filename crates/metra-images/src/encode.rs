//! Pixels to bytes of a file: PNG where a picture is kept, JPEG where it must be small.

use crate::{Error, Picture, Result};
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder, ImageError};

/// The picture as PNG, without loss.
pub fn png(picture: &Picture) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let encoder =
        PngEncoder::new_with_quality(&mut bytes, CompressionType::Best, FilterType::Adaptive);
    write(encoder, picture, "PNG")?;
    Ok(bytes)
}

/// The picture as JPEG with a quality from 1 to 100.
pub fn jpeg(picture: &Picture, quality: u8) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut bytes, quality.clamp(1, 100));
    write(encoder, picture, "JPEG")?;
    Ok(bytes)
}

fn write(encoder: impl ImageEncoder, picture: &Picture, format: &str) -> Result<()> {
    let (width, height) = picture.dimensions();
    (encoder.write_image(picture.as_raw(), width, height, ExtendedColorType::Rgb8)).map_err(
        |error: ImageError| Error::Found {
            place: format!("a picture of {width} × {height} pixels"),
            problem: format!("it cannot be written as {format}: {error}"),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Limits, decode_bytes};
    use image::Rgb;
    use std::path::Path;

    #[test]
    fn pictures_come_back() {
        let picture = Picture::from_fn(31, 17, |x, y| Rgb([8 * x as u8, 9 * y as u8, 100]));
        let read = |bytes: &[u8]| decode_bytes(bytes, Path::new("a"), Limits::default());
        assert_eq!(read(&png(&picture).unwrap()).unwrap(), picture);
        let seen = read(&jpeg(&picture, 95).unwrap()).unwrap();
        assert_eq!(seen.dimensions(), (31, 17));
        let apart = seen.as_raw().iter().zip(picture.as_raw());
        let apart: u64 = apart.map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
        assert!(apart < 4 * 3 * 31 * 17, "{apart}");
        // No format has pictures without pixels.
        assert!(png(&Picture::new(0, 4)).is_err() && jpeg(&Picture::new(0, 4), 80).is_err());
    }
}
