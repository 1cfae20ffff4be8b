//! One size for all versions, without which cells of a grid would not be the same places.
//!
//! Widths must agree: another width is another layout. Pages grow and shrink at their lower end, so that
//! heights may differ: longer screenshots are cut at the bottom, shorter ones filled up with white, to the
//! median height of the series. A model keeps the size it was learned with.

use super::Series;
use crate::{Error, Picture, Result};
use image::{ImageReader, Rgb};
use std::borrow::Cow;
use std::path::Path;

/// Width and height to which versions are brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Pixels from left to right.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
}

impl Frame {
    /// The frame of a series: its width, and its median height (of an even number, the lower one). Only
    /// the heads of the files are read.
    pub fn of(series: &Series) -> Result<Self> {
        let mut heights = Vec::new();
        let mut width = None;
        for version in series.versions() {
            let (across, down) = size(&version.path)?;
            same_width(&version.path, *width.get_or_insert(across), across)?;
            heights.push(down);
        }
        heights.sort_unstable();
        let middle = heights.len().saturating_sub(1) / 2;
        Ok(Frame {
            width: width.unwrap_or(0),
            height: heights.get(middle).copied().unwrap_or(0),
        })
    }

    /// An error if a version has another width.
    pub(super) fn check(&self, series: &Series) -> Result<()> {
        for version in series.versions() {
            same_width(&version.path, self.width, size(&version.path)?.0)?;
        }
        Ok(())
    }

    /// A picture in the frame's size: cut, or filled up with white.
    pub fn fit<'a>(&self, picture: &'a Picture) -> Cow<'a, Picture> {
        if picture.dimensions() == (self.width, self.height) {
            return Cow::Borrowed(picture);
        }
        let white = Rgb([255; 3]);
        Cow::Owned(Picture::from_fn(self.width, self.height, |x, y| {
            picture.get_pixel_checked(x, y).copied().unwrap_or(white)
        }))
    }
}

fn same_width(path: &Path, expected: u32, found: u32) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Error::image(
        path,
        format!(
            "expected a screenshot {expected} pixels wide as the others are, found {found}: take all of \
             them with one width"
        ),
    ))
}

fn size(path: &Path) -> Result<(u32, u32)> {
    let reader = ImageReader::open(path).and_then(ImageReader::with_guessed_format);
    let reader = reader.map_err(|error| Error::io(path, error))?;
    reader
        .into_dimensions()
        .map_err(|error| Error::image(path, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(sizes: &[(u32, u32)]) -> (tempfile::TempDir, Series) {
        let folder = tempfile::tempdir().unwrap();
        for (number, (width, height)) in sizes.iter().enumerate() {
            let picture = Picture::from_pixel(*width, *height, Rgb([10, 20, 30]));
            picture
                .save(folder.path().join(format!("{number}.png")))
                .unwrap();
        }
        let series = Series::open(folder.path()).unwrap();
        (folder, series)
    }

    #[test]
    fn heights_are_brought_to_the_median() {
        let (_folder, three) = series(&[(4, 9), (4, 5), (4, 7)]);
        let frame = Frame::of(&three).unwrap();
        assert_eq!(
            frame,
            Frame {
                width: 4,
                height: 7
            }
        );
        let (_folder, two) = series(&[(4, 9), (4, 5)]);
        assert_eq!(Frame::of(&two).unwrap().height, 5);
        let grey = |height: u32| Picture::from_pixel(4, height, Rgb([1; 3]));
        assert_eq!(*frame.fit(&grey(9)), grey(7));
        assert!(matches!(frame.fit(&grey(7)), Cow::Borrowed(_)));
        let filled = frame.fit(&grey(5)).into_owned();
        assert_eq!(filled.dimensions(), (4, 7));
        assert_eq!(
            (filled.get_pixel(3, 4).0, filled.get_pixel(3, 5).0),
            ([1; 3], [255; 3])
        );
    }

    #[test]
    fn another_width_is_named() {
        let (_folder, mixed) = series(&[(4, 4), (5, 4)]);
        let error = Frame::of(&mixed).unwrap_err().to_string();
        assert!(
            error.contains("1.png: expected a screenshot 4 pixels wide"),
            "{error}"
        );
        assert!(error.contains("found 5"), "{error}");
        let narrow = Frame {
            width: 3,
            height: 4,
        };
        let error = narrow.check(&mixed).unwrap_err().to_string();
        assert!(
            error.contains("0.png: expected a screenshot 3 pixels wide"),
            "{error}"
        );
    }
}
