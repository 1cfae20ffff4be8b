//! Sheets of thumbnails: a query with what was found for it, or a strip of pictures in an order.
//!
//! Pictures are made small as they are given, so that a sheet of a thousand photographs holds a thousand
//! thumbnails and not the photographs. All thumbnails have one height and keep their shape; all cells of
//! a sheet have one width, so that ranks stand below each other. A picture that is missing or could not
//! be read is a grey box with a cross: one broken file must not cost the sheet. Right answers have a
//! thicker frame than wrong ones, for those who do not tell green from red.

mod text;

use crate::{Error, Picture, Result};
use image::Rgb;
use image::imageops::{FilterType, replace, resize};

/// One picture with what stands around it.
#[derive(Debug, Clone, Default)]
pub struct Tile {
    /// The picture; `None` where there is none to show.
    pub picture: Option<Picture>,
    /// What its frame says.
    pub frame: Option<TileFrame>,
    /// Text below it, in lines; what is wider than the picture's cell is cut.
    pub caption: String,
}

/// What a frame says of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TileFrame {
    /// It is what was looked for: green.
    Right,
    /// It is something else: red.
    Wrong,
    /// It is what was asked with: grey.
    Query,
}

/// Rows of tiles below each other.
#[derive(Debug, Clone)]
pub struct Sheet {
    height: u32,
    rows: Vec<Row>,
}

#[derive(Debug, Clone)]
enum Row {
    Heading(String),
    Tiles { lead: bool, tiles: Vec<Thumbnail> },
}

/// A tile whose picture was made small.
#[derive(Debug, Clone)]
struct Thumbnail {
    picture: Option<Picture>,
    frame: Option<TileFrame>,
    caption: Vec<String>,
}

/// Heights that thumbnails may have.
pub const HEIGHTS: std::ops::RangeInclusive<u32> = 16..=1024;

/// Pixels that a sheet may have.
const PIXELS: u64 = 100_000_000;

/// A thumbnail is at most so many times as wide as high; wider pictures become lower.
const WIDEST: u32 = 3;

/// Room for a frame on each side of a thumbnail.
const BORDER: u32 = 4;
/// Between cells, and around all of them.
const GAP: u32 = 6;
/// Between a query and what was found for it.
const LEAD_GAP: u32 = 26;
/// A cell is at least so many characters wide, which a rank and a distance need.
const CHARACTERS: usize = 7;

const PAPER: Rgb<u8> = Rgb([255, 255, 255]);
const INK: Rgb<u8> = Rgb([34, 34, 34]);
const LINE: Rgb<u8> = Rgb([176, 176, 176]);
const MISSING: Rgb<u8> = Rgb([222, 222, 222]);

impl TileFrame {
    /// Its colour, and its thickness of the room that there is.
    fn look(self) -> (Rgb<u8>, u32) {
        match self {
            TileFrame::Right => (Rgb([24, 148, 72]), BORDER),
            TileFrame::Wrong => (Rgb([206, 50, 50]), BORDER / 2),
            TileFrame::Query => (Rgb([110, 110, 110]), BORDER / 2),
        }
    }
}

impl Sheet {
    /// An empty sheet whose thumbnails have this height, brought within [`HEIGHTS`].
    pub fn new(height: u32) -> Self {
        Sheet {
            height: height.clamp(*HEIGHTS.start(), *HEIGHTS.end()),
            rows: Vec::new(),
        }
    }

    /// A line of text above what follows.
    pub fn heading(&mut self, text: impl Into<String>) -> &mut Self {
        self.rows.push(Row::Heading(text.into()));
        self
    }

    /// Tiles beside each other.
    pub fn row(&mut self, tiles: Vec<Tile>) -> &mut Self {
        self.add(false, tiles)
    }

    /// A query on the left, and what was found for it, the nearest first.
    pub fn ranked(&mut self, query: Tile, found: Vec<Tile>) -> &mut Self {
        self.add(true, std::iter::once(query).chain(found).collect())
    }

    /// Tiles in the order of reading, `columns` per row.
    pub fn strip(&mut self, tiles: Vec<Tile>, columns: usize) -> &mut Self {
        let mut tiles = tiles.into_iter();
        loop {
            let row: Vec<Tile> = tiles.by_ref().take(columns.max(1)).collect();
            if row.is_empty() {
                return self;
            }
            self.row(row);
        }
    }

    fn add(&mut self, lead: bool, tiles: Vec<Tile>) -> &mut Self {
        let tiles = (tiles.into_iter())
            .map(|tile| Thumbnail {
                picture: tile
                    .picture
                    .and_then(|picture| small(&picture, self.height)),
                frame: tile.frame,
                caption: tile.caption.lines().map(str::to_owned).collect(),
            })
            .collect();
        self.rows.push(Row::Tiles { lead, tiles });
        self
    }

    /// The sheet as a picture. An error where nothing is on it, or too much.
    pub fn draw(&self) -> Result<Picture> {
        let cell = self.cell();
        let (mut width, mut height) = (0_u64, u64::from(GAP));
        for row in &self.rows {
            width = width.max(u64::from(GAP) + row.width(cell));
            height += u64::from(row.height(self.height) + GAP);
        }
        if self.rows.is_empty() || width * height > PIXELS {
            return Err(Error::found(
                "a sheet of pictures",
                format!(
                    "expected 1 to {PIXELS} pixels, found {width} × {height} in {} rows",
                    self.rows.len()
                ),
            ));
        }
        let mut sheet = Picture::from_pixel(width as u32, height as u32, PAPER);
        let mut top = GAP;
        for row in &self.rows {
            match row {
                Row::Heading(words) => {
                    let words = text::fitting(words, sheet.width() - 2 * GAP);
                    text::draw(&mut sheet, &words, GAP, top, INK);
                }
                Row::Tiles { lead, tiles } => {
                    let mut left = GAP;
                    for (place, tile) in tiles.iter().enumerate() {
                        self.draw_tile(&mut sheet, tile, left, top, cell);
                        let gap = if *lead && place == 0 { LEAD_GAP } else { GAP };
                        left += cell + gap;
                    }
                    if *lead {
                        let middle = GAP + cell + LEAD_GAP / 2;
                        fill(
                            &mut sheet,
                            (middle, top),
                            (1, self.height + 2 * BORDER),
                            LINE,
                        );
                    }
                }
            }
            top += row.height(self.height) + GAP;
        }
        Ok(sheet)
    }

    /// Width of every cell: that of the widest thumbnail with its frame.
    fn cell(&self) -> u32 {
        let tiles = self.rows.iter().flat_map(Row::tiles);
        let widest = tiles
            .filter_map(|tile| tile.picture.as_ref())
            .map(Picture::width)
            .max();
        let widest = widest.unwrap_or(self.height / 2) + 2 * BORDER;
        widest.max(text::width_of(CHARACTERS))
    }

    fn draw_tile(&self, sheet: &mut Picture, tile: &Thumbnail, left: u32, top: u32, cell: u32) {
        let size = match &tile.picture {
            Some(picture) => picture.dimensions(),
            None => (cell - 2 * BORDER, self.height),
        };
        let corner = (
            left + (cell - size.0) / 2,
            top + BORDER + (self.height - size.1) / 2,
        );
        if let Some(frame) = tile.frame {
            let (colour, thick) = frame.look();
            let outer = (corner.0 - thick, corner.1 - thick);
            fill(
                sheet,
                outer,
                (size.0 + 2 * thick, size.1 + 2 * thick),
                colour,
            );
        }
        match &tile.picture {
            Some(picture) => replace(sheet, picture, i64::from(corner.0), i64::from(corner.1)),
            None => {
                fill(sheet, corner, size, MISSING);
                cross(sheet, corner, size);
            }
        }
        let below = top + self.height + 2 * BORDER + 1;
        for (words, top) in tile
            .caption
            .iter()
            .zip((below..).step_by(text::LINE as usize))
        {
            let words = text::fitting(words, cell);
            let free = cell - text::width_of(words.chars().count());
            text::draw(sheet, &words, left + free / 2, top, INK);
        }
    }
}

impl Row {
    fn tiles(&self) -> &[Thumbnail] {
        match self {
            Row::Heading(_) => &[],
            Row::Tiles { tiles, .. } => tiles,
        }
    }

    /// From its first cell to the gap after its last.
    fn width(&self, cell: u32) -> u64 {
        match self {
            Row::Heading(words) => u64::from(text::width_of(words.chars().count().min(80)) + GAP),
            Row::Tiles { lead, tiles } => {
                let more = if *lead { LEAD_GAP - GAP } else { 0 };
                tiles.len() as u64 * u64::from(cell + GAP) + u64::from(more)
            }
        }
    }

    fn height(&self, thumbnail: u32) -> u32 {
        match self {
            Row::Heading(_) => text::LINE,
            Row::Tiles { tiles, .. } => {
                let lines = tiles.iter().map(|tile| tile.caption.len()).max();
                // A caption of thousands of lines is a mistake of somebody's data.
                let lines = lines.unwrap_or(0).min(8) as u32;
                thumbnail + 2 * BORDER + lines * text::LINE
            }
        }
    }
}

/// The picture at this height, or lower if it is very wide; `None` if it has no pixels.
fn small(picture: &Picture, height: u32) -> Option<Picture> {
    let (wide, high) = picture.dimensions();
    if wide == 0 || high == 0 {
        return None;
    }
    let scaled = |length: u32, to: u32, of: u32| {
        let (length, to, of) = (u64::from(length), u64::from(to), u64::from(of));
        ((length * to + of / 2) / of).max(1) as u32
    };
    let most = height * WIDEST;
    let size = match scaled(wide, height, high) {
        width if width > most => (most, scaled(high, most, wide).min(height)),
        width => (width, height),
    };
    if size == (wide, high) {
        return Some(picture.clone());
    }
    Some(resize(picture, size.0, size.1, FilterType::CatmullRom))
}

fn fill(sheet: &mut Picture, corner: (u32, u32), size: (u32, u32), colour: Rgb<u8>) {
    for y in corner.1..corner.1 + size.1 {
        for x in corner.0..corner.0 + size.0 {
            if let Some(pixel) = sheet.get_pixel_mut_checked(x, y) {
                *pixel = colour;
            }
        }
    }
}

/// Both diagonals of a box, two pixels thick.
fn cross(sheet: &mut Picture, corner: (u32, u32), size: (u32, u32)) {
    let steps = size.0.max(size.1).max(2) - 1;
    for step in 0..=steps {
        let across = (size.0 - 1) * step / steps;
        let down = (size.1 - 1) * step / steps;
        for x in [across, size.0 - 1 - across] {
            fill(sheet, (corner.0 + x, corner.1 + down), (1, 1), LINE);
            if x > 0 {
                fill(sheet, (corner.0 + x - 1, corner.1 + down), (1, 1), LINE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(width: u32, height: u32, colour: [u8; 3]) -> Picture {
        Picture::from_pixel(width, height, Rgb(colour))
    }

    fn tile(picture: Option<Picture>, frame: Option<TileFrame>, caption: &str) -> Tile {
        Tile {
            picture,
            frame,
            caption: caption.into(),
        }
    }

    /// A thumbnail of 60 × 100 has a cell of 60 + 2 · 4 = 68. A query and two found: 6 + 68 + 26 + 68 +
    /// 6 + 68 + 6 = 248 wide; 6 + (100 + 2 · 4 + 18) + 6 = 138 high. Pictures begin 4 below and beside
    /// their cell: at x = 10, 104 and 178, at y = 10.
    #[test]
    fn a_ranked_row_by_hand() {
        let mut sheet = Sheet::new(100);
        let red = [200, 0, 0];
        sheet.ranked(
            tile(Some(flat(60, 100, red)), Some(TileFrame::Query), "query"),
            vec![
                tile(
                    Some(flat(120, 200, [0, 0, 200])),
                    Some(TileFrame::Wrong),
                    "1",
                ),
                tile(Some(flat(60, 100, red)), Some(TileFrame::Right), "2"),
            ],
        );
        let drawn = sheet.draw().unwrap();
        assert_eq!(drawn.dimensions(), (248, 138));
        let at = |x, y| drawn.get_pixel(x, y).0;
        let (green, wrong, grey) = ([24, 148, 72], [206, 50, 50], [110, 110, 110]);
        assert_eq!([at(10, 10), at(69, 109)], [red; 2]);
        assert_eq!([at(9, 50), at(8, 50), at(7, 50)], [grey, grey, [255; 3]]);
        assert_eq!([at(104, 10), at(163, 109)], [[0, 0, 200]; 2]);
        assert_eq!(
            [at(103, 50), at(102, 50), at(101, 50)],
            [wrong, wrong, [255; 3]]
        );
        assert_eq!([at(178, 10), at(237, 109)], [red; 2]);
        assert_eq!(
            [at(177, 50), at(174, 50), at(173, 50)],
            [green, green, [255; 3]]
        );
        assert_eq!([at(241, 113), at(242, 114)], [green, [255; 3]]);
        // The line between query and answers, and words below them.
        assert_eq!(at(6 + 68 + 13, 50), LINE.0);
        let dark = |left: u32| {
            let cell = (left..left + 68).flat_map(|x| (115..132).map(move |y| (x, y)));
            cell.filter(|(x, y)| at(*x, *y)[0] < 128).count()
        };
        assert!(dark(6) > 30 && dark(100) > 5 && dark(174) > 5);
        assert_eq!(sheet.draw().unwrap(), drawn);
    }

    #[test]
    fn shape_is_kept_and_very_wide_pictures_become_lower() {
        assert_eq!(
            small(&flat(400, 200, [1; 3]), 50).unwrap().dimensions(),
            (100, 50)
        );
        assert_eq!(
            small(&flat(10, 1000, [1; 3]), 50).unwrap().dimensions(),
            (1, 50)
        );
        assert_eq!(
            small(&flat(4000, 200, [1; 3]), 50).unwrap().dimensions(),
            (150, 8)
        );
        assert_eq!(
            small(&flat(1, 90_000, [1; 3]), 50).unwrap().dimensions(),
            (1, 50)
        );
        assert!(small(&Picture::new(0, 5), 50).is_none());
    }

    #[test]
    fn what_is_missing_is_a_box_with_a_cross() {
        let mut sheet = Sheet::new(64);
        sheet.heading("None of them");
        sheet.strip(
            vec![
                tile(None, Some(TileFrame::Right), ""),
                tile(None, None, ""),
                Tile::default(),
            ],
            2,
        );
        let drawn = sheet.draw().unwrap();
        // Cells are 7 characters wide, boxes 8 pixels less; two rows of 72 below the heading of 18.
        let cell = text::width_of(7);
        assert_eq!(drawn.height(), 6 + 18 + 6 + 72 + 6 + 72 + 6);
        let first = (6 + 4, 6 + 18 + 6 + 4);
        assert_eq!(
            drawn.get_pixel(first.0, first.1).0,
            LINE.0,
            "a corner of the cross"
        );
        assert_eq!(
            drawn.get_pixel(first.0 + cell / 2 - 4, first.1 + 3).0,
            MISSING.0
        );
        let below = first.1 + 72 + 6;
        assert_eq!(drawn.get_pixel(first.0, below).0, LINE.0);
        assert_eq!(drawn.get_pixel(first.0 + cell + 6, below).0, PAPER.0);
    }

    #[test]
    fn nothing_and_far_too_much_are_errors() {
        assert!(Sheet::new(10).draw().is_err());
        let mut sheet = Sheet::new(1024);
        sheet.row(vec![Tile::default(); 1000]);
        let error = sheet.draw().unwrap_err().to_string();
        assert!(error.contains("expected 1 to 100000000 pixels"), "{error}");
        let mut sheet = Sheet::new(0);
        sheet.row(vec![
            tile(None, None, &"\n".repeat(100_000)),
            Tile::default(),
        ]);
        sheet.row(Vec::new());
        assert!(sheet.draw().is_ok());
    }
}
