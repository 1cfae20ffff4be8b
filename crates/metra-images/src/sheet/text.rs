//! Words on a sheet, in Noto Sans Mono as the crate `noto-sans-mono-bitmap` has drawn it beforehand: no
//! font file is looked for, and the same words give the same pixels everywhere.

use crate::Picture;
use image::Rgb;
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

const WEIGHT: FontWeight = FontWeight::Regular;
const SIZE: RasterHeight = RasterHeight::Size16;

/// Pixels from one line of text to the next.
pub(super) const LINE: u32 = 18;

/// Pixels that so many characters take.
pub(super) fn width_of(characters: usize) -> u32 {
    characters as u32 * get_raster_width(WEIGHT, SIZE) as u32
}

/// The text, or as much of its beginning as fits, with two dots for the rest.
pub(super) fn fitting(text: &str, width: u32) -> String {
    let room = (width / width_of(1)) as usize;
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room.saturating_sub(2)).collect();
    kept + &".."[..room.min(2)]
}

/// Draw a line of text with its upper left corner here, in one colour over what is there. What lies
/// outside the picture is not drawn; characters that the font lacks are question marks.
pub(super) fn draw(picture: &mut Picture, text: &str, left: u32, top: u32, colour: Rgb<u8>) {
    let glyph = |c: char| get_raster(c, WEIGHT, SIZE);
    for (place, character) in text.chars().enumerate() {
        let Some(raster) = glyph(character).or_else(|| glyph('?')) else {
            continue;
        };
        let left = left + width_of(place);
        for (y, row) in (top..).zip(raster.rows()) {
            for (x, ink) in (left..).zip(row) {
                if let Some(pixel) = picture.get_pixel_mut_checked(x, y) {
                    lay(pixel, colour, *ink);
                }
            }
        }
    }
}

/// Lay a colour over a pixel, as thick as `ink` of 255.
fn lay(pixel: &mut Rgb<u8>, colour: Rgb<u8>, ink: u8) {
    let ink = u32::from(ink);
    for (value, wanted) in pixel.0.iter_mut().zip(colour.0) {
        let mixed = u32::from(wanted) * ink + u32::from(*value) * (255 - ink);
        *value = ((mixed + 127) / 255) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_where_room_ends() {
        let five = width_of(5);
        assert_eq!(fitting("abcde", five), "abcde");
        assert_eq!(fitting("abcdef", five), "abc..");
        assert_eq!(fitting("äöüßéø", five), "äöü..");
        assert_eq!(fitting("abc", width_of(1)), ".");
        assert_eq!(fitting("abc", 0), "");
    }

    #[test]
    fn ink_stays_in_its_box_and_edges_are_no_trap() {
        let white = Rgb([255; 3]);
        let black = Rgb([0; 3]);
        let mut picture = Picture::from_pixel(60, 30, white);
        draw(&mut picture, "8\u{4e00}", 10, 5, black);
        let dark = |picture: &Picture, from: u32, to: u32| {
            let pixels = picture.enumerate_pixels();
            pixels
                .filter(|(x, _, p)| (from..to).contains(x) && p[0] < 128)
                .count()
        };
        let one = width_of(1);
        assert!(dark(&picture, 10, 10 + one) > 10);
        assert!(
            dark(&picture, 10 + one, 10 + 2 * one) > 5,
            "a question mark"
        );
        assert_eq!(dark(&picture, 0, 10) + dark(&picture, 10 + 2 * one, 60), 0);
        draw(&mut picture, "outside", 58, 28, black);
        draw(&mut picture, "outside", 600, 280, black);
    }
}
