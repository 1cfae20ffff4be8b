//! Where a change matters: places coloured over the screenshot.
//!
//! The screenshot is drawn pale and grey, so that colour means heat alone. A place's colour runs from yellow
//! to red and grows less transparent with its share of the hottest place of the whole series, so that maps of
//! one series can be compared. Places are drawn as the boxes they are: a smoothed map would claim to
//! know more than the layout does.

use super::Layout;
use crate::Picture;
use image::Rgb;

/// Shares of the hottest below this stay without colour.
const COLD: f64 = 0.04;
/// Frames are drawn around places from this on.
const FRAMED: f64 = 0.5;

/// Colour the places of a layout by their heat; `hottest` is the heat that
/// is drawn in full. What is not finite or not above 0 has no colour.
pub fn over(screenshot: &Picture, layout: &Layout, heat: &[f64], hottest: f64) -> Picture {
    let mut drawn = screenshot.clone();
    for pixel in drawn.pixels_mut() {
        let [red, green, blue] = pixel.0.map(f64::from);
        // Rec. 709 luma, half of the way to white.
        let grey = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
        *pixel = Rgb([(127.5 + grey / 2.0) as u8; 3]);
    }
    let (width, height) = drawn.dimensions();
    for (heat, place) in heat.iter().zip(layout.boxes()) {
        let share = heat / hottest;
        let Some((colour, cover)) = colour(share) else {
            continue;
        };
        let [left, top, across, down] = *place;
        for y in top..(top + down).min(height) {
            for x in left..(left + across).min(width) {
                let edge =
                    x < left + 2 || y < top + 2 || x + 2 >= left + across || y + 2 >= top + down;
                let cover = if edge && share >= FRAMED { 1.0 } else { cover };
                let pixel = drawn.get_pixel_mut(x, y);
                for (value, colour) in pixel.0.iter_mut().zip(colour) {
                    *value = (f64::from(*value) * (1.0 - cover) + colour * cover).round() as u8;
                }
            }
        }
    }
    drawn
}

/// Colour and cover of a share of the hottest.
fn colour(share: f64) -> Option<([f64; 3], f64)> {
    if share.is_nan() || share < COLD {
        return None;
    }
    let share = share.min(1.0);
    // Yellow (255, 220, 0) to red (215, 0, 0).
    Some((
        [255.0 - 40.0 * share, 220.0 * (1.0 - share), 0.0],
        0.2 + 0.45 * share,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::Frame;

    fn grid(side: usize, length: u32) -> Layout {
        let frame = Frame {
            width: length,
            height: length,
        };
        Layout::grid(side, frame).unwrap()
    }

    #[test]
    fn colours_by_hand() {
        let screenshot = Picture::from_fn(40, 40, |x, _| Rgb([if x < 20 { 0 } else { 255 }; 3]));
        let drawn = over(&screenshot, &grid(2, 40), &[2.0, 0.0, f64::NAN, 0.5], 2.0);
        // Black becomes 127; red over it with a cover of .65: 127·.35 + 215·.65 = 184.2 and 44.45.
        assert_eq!(drawn.get_pixel(10, 10).0, [184, 44, 44]);
        // The frame of a hot cell is red alone.
        assert_eq!(drawn.get_pixel(0, 10).0, [215, 0, 0]);
        // White stays white where nothing is hot, and where heat is no number grey stays grey.
        assert_eq!(drawn.get_pixel(30, 10).0, [255; 3]);
        assert_eq!(drawn.get_pixel(10, 30).0, [127; 3]);
        // A quarter: (245, 165, 0) with a cover of .3125 over white, without a frame.
        // 255·.6875 + 245·.3125 = 251.9; 255·.6875 + 165·.3125 = 226.9; 175.3.
        assert_eq!(drawn.get_pixel(30, 30).0, [252, 227, 175]);
        assert_eq!(drawn.get_pixel(20, 20), drawn.get_pixel(30, 30));
    }

    #[test]
    fn nothing_hot_is_a_pale_picture() {
        let screenshot = Picture::from_pixel(5, 5, Rgb([100, 150, 200]));
        let drawn = over(&screenshot, &grid(10, 5), &[0.0; 100], 0.0);
        // .2126·100 + .7152·150 + .0722·200 = 142.98; half of the way to white 198.99.
        assert!(drawn.pixels().all(|pixel| pixel.0 == [198; 3]));
    }
}
