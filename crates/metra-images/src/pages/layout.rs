//! The places of a page that are described and weighed: cells of a grid, or boxes of the page's own structure.

use super::Frame;
use crate::gist::cell;
use crate::{Error, Result};
use std::path::Path;

/// Places of a page, each as left, top, width and height in pixels.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    boxes: Vec<[u32; 4]>,
    /// Cells from left to right, where it is a grid.
    side: Option<usize>,
}

/// Most boxes of a page.
pub(super) const MOST: usize = 4096;

/// Names of the columns of a file of boxes.
pub(super) const COLUMNS: [&str; 4] = ["left", "top", "width", "height"];

impl Layout {
    /// A grid of `side` × `side` cells (1 to 64), row by row from the top.
    pub fn grid(side: usize, frame: Frame) -> Result<Self> {
        if !(1..=64).contains(&side) {
            let problem = format!("cells must be between 1 and 64, but is {side}");
            return Err(Error::found("grid", problem));
        }
        let places = (0..side).flat_map(|row| (0..side).map(move |column| (row, column)));
        let boxes = places.map(|(row, column)| cell(side, row, column, frame.width, frame.height));
        Ok(Layout {
            boxes: boxes.collect(),
            side: Some(side),
        })
    }

    /// Boxes, cut at the edges of the frame; those that lie outside are left out.
    pub fn regions(boxes: &[[u32; 4]], frame: Frame) -> Result<Self> {
        let inside: Vec<[u32; 4]> = (boxes.iter())
            .filter(|[left, top, _, _]| *left < frame.width && *top < frame.height)
            .map(|[left, top, width, height]| {
                let across = (*width).min(frame.width - left);
                [*left, *top, across, (*height).min(frame.height - top)]
            })
            .filter(|[_, _, width, height]| *width > 0 && *height > 0)
            .collect();
        if !(1..=MOST).contains(&inside.len()) {
            let (found, given) = (inside.len(), boxes.len());
            let Frame { width, height } = frame;
            let problem = format!(
                "expected 1 to {MOST} boxes on a screenshot of {width} × {height}, found {found} (of {given} given)"
            );
            return Err(Error::found("regions", problem));
        }
        Ok(Layout {
            boxes: inside,
            side: None,
        })
    }

    /// The boxes of a file (CSV with the columns left, top, width and height), as `metra pages regions` writes it.
    pub fn read(path: &Path, frame: Frame) -> Result<Self> {
        let wrong = |error: csv::Error| Error::file(path, error.to_string());
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .from_path(path)
            .map_err(wrong)?;
        let names = reader.headers().map_err(wrong)?.clone();
        let mut columns = [0; 4];
        for (column, wanted) in columns.iter_mut().zip(COLUMNS) {
            let Some(place) = names.iter().position(|name| name == wanted) else {
                let names: Vec<&str> = names.iter().collect();
                let problem = format!("expected the columns {COLUMNS:?}, found {names:?}");
                return Err(Error::file(path, problem));
            };
            *column = place;
        }
        let mut boxes = Vec::new();
        for (line, record) in reader.records().enumerate() {
            let record = record.map_err(wrong)?;
            let mut one = [0; 4];
            for (value, column) in one.iter_mut().zip(columns) {
                let text = record.get(column).unwrap_or("");
                *value = text.parse().map_err(|_| {
                    let problem = format!(
                        "line {}: expected whole numbers of pixels, found {text:?}",
                        line + 2
                    );
                    Error::file(path, problem)
                })?;
            }
            boxes.push(one);
        }
        if let Some([left, ..]) = boxes.iter().find(|[left, ..]| *left >= frame.width) {
            let width = frame.width;
            let problem = format!(
                "expected boxes on screenshots {width} pixels wide, but one begins at {left}: find them with the window \
                 of the screenshots"
            );
            return Err(Error::file(path, problem));
        }
        Self::regions(&boxes, frame).map_err(|error| Error::file(path, error.to_string()))
    }

    /// Left, top, width and height of every place.
    pub fn boxes(&self) -> &[[u32; 4]] {
        &self.boxes
    }

    /// Cells from left to right, where it is a grid.
    pub fn side(&self) -> Option<usize> {
        self.side
    }

    /// What it is, in words.
    pub fn describe(&self) -> String {
        match self.side {
            Some(side) => format!("{side} × {side} cells"),
            None => format!("{} regions", self.boxes.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Frame = Frame {
        width: 100,
        height: 80,
    };

    #[test]
    fn boxes_are_cut_at_the_edges() {
        let given = [
            [10, 10, 20, 20],
            [90, 70, 50, 50],
            [100, 0, 5, 5],
            [0, 0, 0, 9],
        ];
        let layout = Layout::regions(&given, FRAME).unwrap();
        assert_eq!(layout.boxes(), [[10, 10, 20, 20], [90, 70, 10, 10]]);
        let error = Layout::regions(&given[2..], FRAME).unwrap_err().to_string();
        assert!(error.contains("found 0 (of 2 given)"), "{error}");
        let grid = Layout::grid(2, FRAME).unwrap();
        assert_eq!(grid.boxes()[1], [50, 0, 50, 40]);
        assert_eq!((grid.boxes().len(), grid.side()), (4, Some(2)));
        assert!(Layout::grid(65, FRAME).is_err());
    }

    #[test]
    fn files_are_read_by_their_columns() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("regions.csv");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Layout::read(&path, FRAME)
        };
        let layout = read("element,top,left,height,width\n\"a, b\",1,2,3,4\n").unwrap();
        assert_eq!(layout.boxes(), [[2, 1, 4, 3]]);
        for (text, said) in [
            (
                "left,top,width\n1,2,3\n",
                "expected the columns [\"left\", \"top\"",
            ),
            (
                "left,top,width,height\n1,2,3,-4\n",
                "line 2: expected whole numbers of pixels, found \"-4\"",
            ),
            ("left,top,width,height\n", "found 0 (of 0 given)"),
            (
                "left,top,width,height\n100,0,5,5\n",
                "100 pixels wide, but one begins at 100",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
