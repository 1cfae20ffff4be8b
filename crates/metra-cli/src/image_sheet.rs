//! Pictures of a table's rows, sheets of what was found for them, and how pictures are written: shared by
//! `sheets`, `compare` and `attributes`.

use crate::inputs::{Loaded, label};
use anyhow::{Result, bail, ensure};
use metra::experiment::Ranking;
use metra::internal::{AtomicFile, Stream};
use metra_files::Column;
use metra_images::decode::decode;
use metra_images::encode::{jpeg, png};
use metra_images::sheet::{Sheet, Tile, TileFrame};
use metra_images::{Limits, Picture};
use std::cell::RefCell;
use std::path::{Component, Path};

/// Broken pictures that are named; more are counted.
const NAMED: usize = 3;

/// Which queries are shown.
pub(crate) enum Pick {
    /// So many, drawn by the seed.
    Drawn(usize),
    /// So many, those whose first right answer comes last.
    Worst(usize),
}

/// Where the pictures of rows are.
pub(crate) struct ImageSheet<'a> {
    root: &'a Path,
    paths: &'a Column,
    loaded: &'a Loaded,
    read: RefCell<Read>,
}

#[derive(Default)]
struct Read {
    pictures: usize,
    broken: Vec<String>,
}

impl<'a> ImageSheet<'a> {
    /// Pictures by a column of paths, which start from `root`.
    pub(crate) fn new(root: &'a Path, loaded: &'a Loaded, column: &str) -> Result<Self> {
        ensure!(
            root.is_dir(),
            "expected a folder of images, but {} is none",
            root.display()
        );
        Ok(ImageSheet {
            root,
            paths: loaded.table.column(column)?,
            loaded,
            read: RefCell::default(),
        })
    }

    /// What the table says of where a row's picture is.
    pub(crate) fn path(&self, row: u64) -> String {
        self.paths.get(row as usize).into_owned()
    }

    /// A row of a sheet: the query with its class below it, and the answers with rank and distance.
    pub(crate) fn add(&self, sheet: &mut Sheet, ranking: &Ranking) {
        let query = Tile {
            picture: self.picture(ranking.query),
            frame: Some(TileFrame::Query),
            caption: format!(
                "query\n{}",
                label(self.loaded, ranking.query).unwrap_or_default()
            ),
        };
        // The right answer is shown wherever it stands.
        let beyond = (ranking.first_right > ranking.found.len())
            .then_some((&ranking.right, ranking.first_right));
        let answers = ranking.found.iter().zip(1..).chain(beyond);
        let found = answers.map(|(answer, rank)| Tile {
            picture: self.picture(answer.item),
            frame: Some(if answer.right {
                TileFrame::Right
            } else {
                TileFrame::Wrong
            }),
            caption: format!("{rank}\n{}", short(answer.dissimilarity)),
        });
        sheet.ranked(query, found.collect());
    }

    /// Warn of pictures that could not be read; an error where none could.
    pub(crate) fn finish(&self) -> Result<()> {
        let read = self.read.borrow();
        for problem in read.broken.iter().take(NAMED) {
            tracing::warn!("{problem}");
        }
        let (broken, all) = (read.broken.len(), read.broken.len() + read.pictures);
        ensure!(
            read.pictures > 0 || broken == 0,
            "none of {broken} pictures could be read from {}, such as {}: is it the folder that their \
             paths start from?",
            self.root.display(),
            read.broken.first().map_or("", String::as_str)
        );
        if broken > 0 {
            tracing::warn!("{broken} of {all} pictures could not be read and are grey boxes");
        }
        Ok(())
    }

    fn picture(&self, row: u64) -> Option<Picture> {
        let path = self.path(row);
        let found = match stays_below(self.root, Path::new(&path)) {
            true => decode(&self.root.join(&path), Limits::default()).map_err(|e| e.to_string()),
            false => Err(format!(
                "{path:?} is not below the folder of images {}",
                self.root.display()
            )),
        };
        let mut read = self.read.borrow_mut();
        match found {
            Ok(picture) => {
                read.pictures += 1;
                Some(picture)
            }
            Err(error) => {
                read.broken.push(error);
                None
            }
        }
    }
}

/// Whether a path of a table stays below the folder that it is joined to. An absolute path has to begin with
/// that folder. Links inside the folder are the user's own and are followed.
fn stays_below(root: &Path, path: &Path) -> bool {
    let root = std::path::absolute(root).unwrap_or_default();
    let mut parts = path.strip_prefix(root).unwrap_or(path).components();
    parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Places of the rankings that are shown.
pub(crate) fn pick(rankings: &[Ranking], how: &Pick, seed: u64) -> Vec<usize> {
    match how {
        Pick::Drawn(count) => {
            let mut stream = Stream::new(seed, "sheets", 0);
            let drawn = stream.choose(rankings.len() as u64, *count);
            drawn.into_iter().map(|place| place as usize).collect()
        }
        Pick::Worst(count) => {
            let mut places: Vec<usize> = (0..rankings.len()).collect();
            places.sort_by_key(|place| (std::cmp::Reverse(rankings[*place].first_right), *place));
            places.truncate(*count);
            places
        }
    }
}

/// Write a picture whole or not at all; its name says as what.
pub(crate) fn save(path: &Path, picture: &Picture) -> Result<()> {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let bytes = match ending.map(str::to_ascii_lowercase).as_deref() {
        Some("jpg" | "jpeg") => jpeg(picture, 90)?,
        Some("png") => png(picture)?,
        _ => bail!(
            "expected a file name that ends in .png or .jpg, but found {}",
            path.display()
        ),
    };
    Ok(AtomicFile::write_all(path, &bytes)?)
}

/// A dissimilarity in few characters, which is all there is room for below a picture.
fn short(value: f32) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{value:.1e}"),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        size if size >= 0.001 || size == 0.0 => format!("{value:.3}"),
        _ => format!("{value:.0e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metra::experiment::Answer;

    #[test]
    fn the_worst_come_last_to_their_own_and_draws_follow_the_seed() {
        let rankings: Vec<Ranking> = [3, 1, 9, 9, 2]
            .into_iter()
            .map(|first_right| Ranking {
                round: 0,
                query: 0,
                first_right,
                right: Answer {
                    item: 0,
                    dissimilarity: 0.0,
                    right: true,
                },
                found: Vec::new(),
            })
            .collect();
        assert_eq!(pick(&rankings, &Pick::Worst(3), 1), [2, 3, 0]);
        let drawn = pick(&rankings, &Pick::Drawn(3), 1);
        assert_eq!(drawn, pick(&rankings, &Pick::Drawn(3), 1));
        assert_eq!(drawn.len(), 3);
        assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(pick(&rankings, &Pick::Drawn(9), 1).len(), 5);
    }

    #[test]
    fn paths_stay_below_their_folder() {
        let stays = |root: &str, path: &str| stays_below(Path::new(root), Path::new(path));
        for path in ["a.png", "./b/a.png", "a/..b.png", "/data/images/a.png"] {
            assert!(stays("/data/images", path), "{path}");
        }
        for path in [
            "../a.png",
            "b/../../a.png",
            "/etc/passwd",
            "/data/images/../a.png",
            "/data/images-of-others/a.png",
        ] {
            assert!(!stays("/data/images", path), "{path}");
        }
        assert!(stays("/", "/data/a.png") && !stays("images", "/data/a.png"));
    }

    #[test]
    fn distances_fit_below_a_picture() {
        let texts = [0.0, 0.12345, 1.2345, 12.345, 123.45, 1234.5, -0.98765];
        let texts: Vec<String> = texts.into_iter().map(short).collect();
        assert_eq!(
            texts,
            ["0.000", "0.123", "1.23", "12.3", "123", "1234", "-0.988"]
        );
        assert!(
            [1e-9, 1e9, -1e-5, f32::MAX]
                .map(short)
                .iter()
                .all(|text| text.len() <= 7)
        );
    }
}
