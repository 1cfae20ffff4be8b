//! Every version as GIST on a grid, and the distances of two versions cell by cell: Ψ of the slides.

use super::{Frame, Series};
use crate::describe::Describe;
use crate::list::ImageEntry;
use crate::rows::describe_all;
use crate::{Error, GistSettings, Grid, Limits, Picture, Result};
use metra::data::{Corpus, MemoryCorpus};
use metra::linalg::RowBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Descriptors of all versions of a series, one row a version, the numbers of a cell together.
pub struct Described {
    rows: MemoryCorpus,
    grid: Grid,
    frame: Frame,
}

/// GIST of a cell. Chosen with one seed of the generated site (docs/guide/pages.md).
const CELL: GistSettings = GistSettings {
    side: 64,
    blocks: 2,
    colour: false,
};

impl Described {
    /// Describe all versions in parallel, with `side` × `side` cells. `advance` hears how many are done.
    pub fn new(
        series: &Series,
        frame: Frame,
        side: usize,
        stop: &AtomicBool,
        advance: &mut (dyn FnMut(usize) + Send),
    ) -> Result<Self> {
        frame.check(series)?;
        let framed = FramedGrid {
            grid: Grid::with(side, CELL)?,
            frame,
        };
        let entries: Vec<ImageEntry> = (series.versions().iter())
            .map(|version| ImageEntry {
                path: version.path.clone(),
                fields: Vec::new(),
            })
            .collect();
        let mut values = Vec::new();
        let stopped = || stop.load(Ordering::Relaxed);
        describe_all(
            &entries,
            &framed,
            Limits::default(),
            &stopped,
            |place, row| {
                values.extend(row?);
                advance(place + 1);
                Ok::<(), Error>(())
            },
        )?;
        let rows = RowBuf::from_values(values, framed.dimension())?;
        Self::from_rows(rows, framed.grid, frame)
    }

    fn from_rows(rows: RowBuf, grid: Grid, frame: Frame) -> Result<Self> {
        let rows = MemoryCorpus::new(rows)?;
        Ok(Described { rows, grid, frame })
    }

    /// The rows as learners know them.
    pub fn corpus(&self) -> &dyn Corpus {
        &self.rows
    }

    /// Number of versions.
    pub fn versions(&self) -> usize {
        self.rows.len() as usize
    }

    /// The grid whose cells were described.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Cells from left to right, and as many from top to bottom.
    pub fn side(&self) -> usize {
        self.grid.cells()
    }

    /// The size that all versions were brought to.
    pub fn frame(&self) -> Frame {
        self.frame
    }

    /// Numbers a cell.
    pub fn block(&self) -> usize {
        self.rows.dim() / (self.side() * self.side())
    }

    /// Euclidean distances of two versions in every cell, row by row from the top.
    pub fn distances(&self, a: usize, b: usize) -> Result<Vec<f64>> {
        for version in [a, b] {
            if version >= self.versions() {
                let expected = format!("below {}", self.versions());
                return Err(Error::Library(metra::Error::shape(
                    "version", expected, version,
                )));
            }
        }
        let rows = self.rows.rows();
        let cells = rows
            .row(a)
            .chunks_exact(self.block())
            .zip(rows.row(b).chunks_exact(self.block()));
        let square = |(a, b): (&f32, &f32)| (f64::from(*a) - f64::from(*b)).powi(2);
        Ok(cells
            .map(|(a, b)| a.iter().zip(b).map(square).sum::<f64>().sqrt())
            .collect())
    }
}

/// A grid over pictures that are first brought to one size.
struct FramedGrid {
    grid: Grid,
    frame: Frame,
}

impl Describe for FramedGrid {
    fn dimension(&self) -> usize {
        self.grid.dimension()
    }

    fn describe(&self, picture: &Picture) -> Vec<f32> {
        self.grid.describe(&self.frame.fit(picture))
    }
}

/// Rows made by hand, for tests of what follows from them.
#[cfg(test)]
pub(super) fn by_hand(rows: Vec<f32>, side: usize, block: usize) -> Described {
    let frame = Frame {
        width: 10 * side as u32,
        height: 10 * side as u32,
    };
    let rows = RowBuf::from_values(rows, side * side * block).unwrap();
    Described::from_rows(rows, Grid::new(side).unwrap(), frame).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_by_hand() {
        // One cell of two numbers: (0, 0) and (3, 4) are 5 apart.
        let one = by_hand(vec![0.0, 0.0, 3.0, 4.0], 1, 2);
        assert_eq!(one.distances(0, 1).unwrap(), [5.0]);
        // The same numbers as four cells of one.
        let four = by_hand(vec![0.0, 1.0, 2.0, 3.0, 3.0, 1.0, 0.0, 3.0], 2, 1);
        assert_eq!(four.distances(1, 0).unwrap(), [3.0, 0.0, 2.0, 0.0]);
        assert!(
            four.distances(0, 2)
                .unwrap_err()
                .to_string()
                .contains("version")
        );
    }
}
