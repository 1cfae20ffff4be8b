//! GIST of each cell of a grid, for pages whose regions matter differently.
//!
//! A screenshot is cut into m × m cells, each with a GIST of its own, as in Law, Thome and Cord,
//! "Quadruplet-wise image similarity learning", ICCV 2013, Section 5.3. The numbers of a cell lie together,
//! cells row by row from the top, so that a metric with one weight per block can weigh cells.

use super::descriptor::{Gist, GistSettings};
use crate::describe::Describe;
use crate::resample::Region;
use crate::{Error, Picture, Result};

/// A grid of GISTs.
pub struct Grid {
    cells: usize,
    gist: Gist,
}

impl Grid {
    /// A grid of `cells` × `cells` (1 to 64), a GIST of 512 numbers each.
    pub fn new(cells: usize) -> Result<Self> {
        Self::with(cells, GistSettings::default())
    }

    /// A grid of cells with other settings of their GIST.
    pub fn with(cells: usize, settings: GistSettings) -> Result<Self> {
        if !(1..=64).contains(&cells) {
            let problem = format!("cells must be between 1 and 64, but is {cells}");
            return Err(Error::found("grid", problem));
        }
        Ok(Grid {
            cells,
            gist: Gist::new(settings)?,
        })
    }

    /// Cells in each direction.
    pub fn cells(&self) -> usize {
        self.cells
    }

    /// Numbers of each cell.
    pub fn cell_dimension(&self) -> usize {
        self.gist.dimension()
    }

    /// Where a cell lies in an image, as left, top, width and height. Cells of images with fewer pixels
    /// than cells overlap, so that none is empty.
    pub fn cell(&self, row: usize, column: usize, width: u32, height: u32) -> [u32; 4] {
        cell(self.cells, row, column, width, height)
    }
}

/// Where a cell of a grid of `cells` × `cells` lies.
pub(crate) fn cell(cells: usize, row: usize, column: usize, width: u32, height: u32) -> [u32; 4] {
    let span = |place: usize, length: u32| {
        let edge = |place: usize| {
            let exact = place as f64 * f64::from(length) / cells as f64;
            exact.round_ties_even() as u32
        };
        let start = edge(place).min(length.saturating_sub(1));
        (start, edge(place + 1).max(start + 1).min(length) - start)
    };
    let (left, across) = span(column.min(cells - 1), width);
    let (top, down) = span(row.min(cells - 1), height);
    [left, top, across, down]
}

impl Describe for Grid {
    /// Cells × cells × the numbers of one cell.
    fn dimension(&self) -> usize {
        self.cells * self.cells * self.gist.dimension()
    }

    fn describe(&self, picture: &Picture) -> Vec<f32> {
        let mut out = Vec::with_capacity(self.dimension());
        for row in 0..self.cells {
            for column in 0..self.cells {
                let [left, top, width, height] = self
                    .cell(row, column, picture.width(), picture.height())
                    .map(|edge| edge as usize);
                let region = Region {
                    left,
                    top,
                    width,
                    height,
                };
                self.gist.describe_region(picture, region, &mut out);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgb;

    /// Each cell has the numbers of the picture that is cut out there.
    #[test]
    fn a_cell_is_the_gist_of_its_crop() {
        let picture = Picture::from_fn(101, 67, |x, y| {
            Rgb([(x * x + 7 * y) as u8, x as u8, y as u8])
        });
        let grid = Grid::new(3).unwrap();
        let gist = Gist::new(GistSettings::default()).unwrap();
        let found = grid.describe(&picture);
        assert_eq!(found.len(), grid.dimension());
        // 101 / 3 = 33.67 and 67.33, 67 / 3 = 22.33 and 44.67.
        assert_eq!(grid.cell(1, 2, 101, 67), [67, 22, 34, 23]);
        let crop = image::imageops::crop_imm(&picture, 67, 22, 34, 23).to_image();
        let start = (3 + 2) * grid.cell_dimension();
        assert_eq!(found[start..start + 512], gist.describe(&crop));
    }

    #[test]
    fn cells_cover_the_image_and_none_is_empty() {
        let grid = Grid::new(10).unwrap();
        for length in [10, 17, 101, 1280] {
            let mut next = 0;
            for place in 0..10 {
                let [left, _, width, _] = grid.cell(0, place, length, 5);
                assert_eq!(left, next);
                next += width;
            }
            assert_eq!(next, length);
        }
        for place in 0..10 {
            let [left, top, width, height] = grid.cell(place, place, 3, 1);
            assert!(width >= 1 && height == 1 && left + width <= 3 && top == 0);
        }
        assert_eq!(grid.describe(&Picture::new(3, 2)).len(), 51_200);
        assert!(Grid::new(0).is_err() && Grid::new(65).is_err());
    }
}
