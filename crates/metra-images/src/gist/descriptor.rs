//! The descriptor itself: settings, and the filters of all planes and blocks of a picture.

use super::bank::{Bank, BankBuffers, FILTERS};
use super::prefilter::{Prefilter, PrefilterBuffers};
use crate::describe::Describe;
use crate::resample::{ColourPlane, Region, plane};
use crate::{Error, Picture, Result};
use rustfft::FftPlanner;
use std::cell::RefCell;

/// How GIST is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GistSettings {
    /// Width and height to which images are brought; an even number of 16 to 1024.
    pub side: usize,
    /// Blocks in each direction, 1 to 16.
    pub blocks: usize,
    /// Red, green and blue one after the other rather than grey.
    pub colour: bool,
}

impl Default for GistSettings {
    fn default() -> Self {
        GistSettings {
            side: 128,
            blocks: 4,
            colour: false,
        }
    }
}

/// Filters and transforms, made once and shared by all threads.
pub struct Gist {
    settings: GistSettings,
    prefilter: Prefilter,
    bank: Bank,
}

/// Memory of one thread.
#[derive(Default)]
struct GistBuffers {
    prefilter: PrefilterBuffers,
    bank: BankBuffers,
}

thread_local! {
    static WORK: RefCell<GistBuffers> = RefCell::default();
}

impl Gist {
    /// Make the filters.
    pub fn new(settings: GistSettings) -> Result<Self> {
        let GistSettings { side, blocks, .. } = settings;
        if !(16..=1024).contains(&side) || side % 2 != 0 {
            let problem = format!("side must be an even number of 16 to 1024, but is {side}");
            return Err(Error::found("GIST", problem));
        }
        if !(1..=16).contains(&blocks) {
            let problem = format!("blocks must be between 1 and 16, but is {blocks}");
            return Err(Error::found("GIST", problem));
        }
        let mut planner = FftPlanner::new();
        Ok(Gist {
            settings,
            prefilter: Prefilter::new(side, &mut planner),
            bank: Bank::new(side, blocks, &mut planner),
        })
    }

    /// Append the numbers of a part of a picture.
    pub(crate) fn describe_region(&self, picture: &Picture, region: Region, out: &mut Vec<f32>) {
        let planes: &[ColourPlane] = if self.settings.colour {
            &[
                ColourPlane::Channel(0),
                ColourPlane::Channel(1),
                ColourPlane::Channel(2),
            ]
        } else {
            &[ColourPlane::Grey]
        };
        for colour in planes {
            let mut square = plane(picture, region, *colour, self.settings.side);
            WORK.with_borrow_mut(|work| {
                self.prefilter.apply(&mut square, &mut work.prefilter);
                self.bank.energies(&square, &mut work.bank, out);
            });
        }
    }
}

impl Describe for Gist {
    /// 32 filters × blocks × blocks, three times that in colour: 512 or 1,536.
    fn dimension(&self) -> usize {
        let planes = if self.settings.colour { 3 } else { 1 };
        planes * FILTERS * self.settings.blocks * self.settings.blocks
    }

    fn describe(&self, picture: &Picture) -> Vec<f32> {
        let mut out = Vec::with_capacity(self.dimension());
        self.describe_region(picture, Region::whole(picture), &mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgb;

    fn waves(width: u32, height: u32) -> Picture {
        Picture::from_fn(width, height, |x, y| {
            let value = |step: f64| (127.0 + 120.0 * (step * f64::from(x + 2 * y)).sin()) as u8;
            Rgb([value(0.3), value(0.7), 40])
        })
    }

    #[test]
    fn dimensions_are_512_and_three_times_that_in_colour() {
        let picture = waves(200, 90);
        let grey = Gist::new(GistSettings::default()).unwrap();
        assert_eq!(grey.dimension(), 512);
        let found = grey.describe(&picture);
        assert_eq!(found.len(), 512);
        assert!(found.iter().all(|value| value.is_finite() && *value >= 0.0));
        let colour = Gist::new(GistSettings {
            colour: true,
            ..GistSettings::default()
        })
        .unwrap();
        let found = colour.describe(&picture);
        assert_eq!((found.len(), colour.dimension()), (1536, 1536));
        assert!(found[..512].iter().sum::<f32>() > 1.0);
        // Blue is the same everywhere.
        assert!(found[1024..].iter().all(|value| *value < 1e-4));
    }

    #[test]
    fn one_pixel_and_one_row_are_images_too() {
        let gist = Gist::new(GistSettings::default()).unwrap();
        for (width, height) in [(1, 1), (300, 1), (1, 300), (2, 3)] {
            let found = gist.describe(&waves(width, height));
            assert!(
                found.iter().all(|value| value.is_finite()),
                "{width} × {height}"
            );
        }
    }

    /// A picture of three equal channels is grey: its red plane is its grey plane.
    #[test]
    fn the_same_on_any_thread_and_in_grey_or_red() {
        let settings = GistSettings::default();
        let grey = Gist::new(settings).unwrap();
        let colour = Gist::new(GistSettings {
            colour: true,
            ..settings
        })
        .unwrap();
        let equal = Picture::from_fn(70, 50, |x, y| Rgb([((x * 3) ^ (y * 5)) as u8; 3]));
        let here = grey.describe(&equal);
        let there =
            std::thread::scope(|scope| scope.spawn(|| grey.describe(&equal)).join().unwrap());
        assert_eq!(here, there);
        assert_eq!(here, colour.describe(&equal)[..512]);
    }

    #[test]
    fn settings_that_cannot_be_are_named() {
        for (side, blocks, word) in [
            (15, 4, "side"),
            (129, 4, "side"),
            (128, 0, "blocks"),
            (128, 17, "blocks"),
        ] {
            let settings = GistSettings {
                side,
                blocks,
                colour: false,
            };
            let error = Gist::new(settings).err().unwrap().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
