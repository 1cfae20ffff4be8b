//! Sheets of pictures in a report: for whoever ranks pictures, what was found beside the curves.
//!
//! This crate knows nothing of pictures. Whoever calls draws them and hands over the bytes of JPEG files,
//! which the page holds as data, so that it stays one file that fetches nothing.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// A section of sheets.
#[derive(Debug, Clone, Default)]
pub struct Sheets {
    /// What is seen on them.
    pub words: String,
    /// Groups of sheets, such as drawn and worst.
    pub groups: Vec<SheetGroup>,
}

/// Sheets that were chosen in one way.
#[derive(Debug, Clone, Default)]
pub struct SheetGroup {
    /// How they were chosen.
    pub title: String,
    /// The sheets.
    pub sheets: Vec<SheetPicture>,
}

/// One sheet.
#[derive(Debug, Clone, Default)]
pub struct SheetPicture {
    /// What is seen, in words: also for those who do not see it.
    pub caption: String,
    /// Pixels across and down.
    pub size: (u32, u32),
    /// Bytes of a JPEG file.
    pub jpeg: Vec<u8>,
}

/// A group as the template shows it.
#[derive(Serialize)]
pub(crate) struct GroupView {
    title: String,
    sheets: Vec<SheetView>,
}

#[derive(Serialize)]
struct SheetView {
    caption: String,
    width: u32,
    height: u32,
    data: String,
}

impl Sheets {
    /// The groups that have sheets.
    pub(crate) fn views(&self) -> Vec<GroupView> {
        let filled = self.groups.iter().filter(|group| !group.sheets.is_empty());
        filled
            .map(|group| GroupView {
                title: group.title.clone(),
                sheets: group.sheets.iter().map(SheetView::of).collect(),
            })
            .collect()
    }
}

impl SheetView {
    fn of(sheet: &SheetPicture) -> Self {
        SheetView {
            caption: sheet.caption.clone(),
            width: sheet.size.0,
            height: sheet.size.1,
            data: STANDARD.encode(&sheet.jpeg),
        }
    }
}
