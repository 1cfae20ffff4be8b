//! Every version as GIST of each place of a layout, and the distances of two versions place by place: Ψ of the slides.

use super::{Frame, Layout, Series};
use crate::describe::Describe;
use crate::list::ImageEntry;
use crate::resample::Region;
use crate::rows::describe_all;
use crate::{Error, Gist, GistSettings, Limits, Picture, Result};
use metra::data::{Corpus, MemoryCorpus};
use metra::linalg::RowBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Descriptors of all versions of a series, one row a version, the numbers of a place together.
pub struct Described {
    rows: MemoryCorpus,
    layout: Layout,
    frame: Frame,
}

/// GIST of a place. Chosen with one seed of the generated site (docs/guide/pages.md).
const CELL: GistSettings = GistSettings {
    side: 64,
    blocks: 2,
    colour: false,
};

impl Described {
    /// Describe the places of all versions in parallel. `advance` hears how many versions are done.
    pub fn new(
        series: &Series,
        frame: Frame,
        layout: Layout,
        stop: &AtomicBool,
        advance: &mut (dyn FnMut(usize) + Send),
    ) -> Result<Self> {
        frame.check(series)?;
        let framed = FramedLayout {
            layout,
            gist: Gist::new(CELL)?,
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
        Self::from_rows(rows, framed.layout, frame)
    }

    fn from_rows(rows: RowBuf, layout: Layout, frame: Frame) -> Result<Self> {
        let rows = MemoryCorpus::new(rows)?;
        Ok(Described {
            rows,
            layout,
            frame,
        })
    }

    /// The rows as learners know them.
    pub fn corpus(&self) -> &dyn Corpus {
        &self.rows
    }

    /// Number of versions.
    pub fn versions(&self) -> usize {
        self.rows.len() as usize
    }

    /// The places that were described.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The size that all versions were brought to.
    pub fn frame(&self) -> Frame {
        self.frame
    }

    /// Numbers a place.
    pub fn block(&self) -> usize {
        self.rows.dim() / self.layout.boxes().len()
    }

    /// Euclidean distances of two versions in every place, in the layout's order.
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

/// Places of pictures that are first brought to one size.
struct FramedLayout {
    layout: Layout,
    gist: Gist,
    frame: Frame,
}

impl Describe for FramedLayout {
    fn dimension(&self) -> usize {
        self.layout.boxes().len() * self.gist.dimension()
    }

    fn describe(&self, picture: &Picture) -> Vec<f32> {
        let picture = self.frame.fit(picture);
        let mut out = Vec::with_capacity(self.dimension());
        for place in self.layout.boxes() {
            let [left, top, width, height] = place.map(|edge| edge as usize);
            let region = Region {
                left,
                top,
                width,
                height,
            };
            self.gist.describe_region(&picture, region, &mut out);
        }
        out
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
    Described::from_rows(rows, Layout::grid(side, frame).unwrap(), frame).unwrap()
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
