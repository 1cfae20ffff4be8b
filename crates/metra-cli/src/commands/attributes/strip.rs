//! A strip of pictures beside a ranking: rows of a table are looked up by their path and drawn with
//! their numbers below them.

use crate::image_sheet::save;
use crate::inputs::Loaded;
use crate::interrupt;
use anyhow::{Context, Result, ensure};
use clap::Args;
use metra::data::RowId;
use metra_images::sheet::{Sheet, Tile, TileFrame};
use metra_images::{Limits, decode};
use std::path::{Path, PathBuf};

/// Where a strip goes and where its pictures come from.
#[derive(Args)]
pub(super) struct Strip {
    /// Draw the pictures here (.png or .jpg)
    #[arg(long, value_name = "FILE", help_heading = "A strip of pictures")]
    strip: Option<PathBuf>,
    /// Folder that the paths of pictures begin at
    #[arg(
        long,
        value_name = "FOLDER",
        default_value = ".",
        help_heading = "A strip of pictures"
    )]
    images: PathBuf,
    /// Column of the pictures' paths
    #[arg(
        long,
        value_name = "COLUMN",
        default_value = "path",
        help_heading = "A strip of pictures"
    )]
    path: String,
    /// Height of a picture
    #[arg(
        long,
        value_name = "PIXELS",
        default_value_t = 96,
        help_heading = "A strip of pictures"
    )]
    height: u32,
}

/// Pictures beside each other; more begin a new row.
const COLUMNS: usize = 12;

impl Strip {
    /// Columns that a strip needs.
    pub(super) fn columns(&self) -> Vec<&str> {
        self.strip.iter().map(|_| self.path.as_str()).collect()
    }

    /// Draw a strip, if one was asked for: `query_row` comes first, in a frame, where there is one.
    /// Gives the file. Pictures that cannot be read are boxes, with a warning each; where none can,
    /// it is an error.
    pub(super) fn draw(
        &self,
        loaded: &Loaded,
        heading: &str,
        query_row: Option<(RowId, String)>,
        shown: &[(RowId, String)],
    ) -> Result<Option<&Path>> {
        let Some(path) = &self.strip else {
            return Ok(None);
        };
        let mut read = 0;
        let mut tile = |(row, caption): &(RowId, String), frame| -> Result<Tile> {
            interrupt::check()?;
            let name = loaded.table.column(&self.path)?.get(*row as usize);
            let file = self.images.join(name.as_ref());
            let picture = match decode::decode(&file, Limits::default()) {
                Ok(picture) => Some(picture),
                Err(error) => {
                    tracing::warn!("{error}");
                    None
                }
            };
            read += u32::from(picture.is_some());
            Ok(Tile {
                picture,
                frame,
                caption: caption.clone(),
            })
        };
        let query = query_row
            .as_ref()
            .map(|query_row| tile(query_row, Some(TileFrame::Query)));
        let query = query.transpose()?;
        let tiles = shown.iter().map(|row| tile(row, None));
        let tiles = tiles.collect::<Result<Vec<Tile>>>()?;
        ensure!(
            read > 0,
            "--strip: expected pictures at the paths of column {:?} below {}, but none could be \
             read: is --images the right folder?",
            self.path,
            self.images.display()
        );
        let mut sheet = Sheet::new(self.height);
        sheet.heading(heading);
        match query {
            Some(query) => sheet.ranked(query, tiles),
            None => sheet.strip(tiles, COLUMNS),
        };
        save(path, &sheet.draw()?).context("--strip")?;
        Ok(Some(path))
    }
}
