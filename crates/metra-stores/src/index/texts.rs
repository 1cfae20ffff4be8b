//! A text for every item, in a file that is read where it is asked: ids and labels of millions of
//! items are not kept in memory for the few that a search names.
//!
//! The file has all texts one after the other in UTF-8, then the place of each text's first byte and
//! the length of all, as little-endian u64.

use super::manifest::{DigestedFile, FileMark};
use crate::{Error, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Texts of an index's items.
#[derive(Debug)]
pub(super) struct Texts {
    path: PathBuf,
    /// A read moves the file's position, so that one search at a time reads.
    file: Mutex<File>,
    rows: u64,
    /// Bytes of all texts; the places follow.
    length: u64,
}

impl Texts {
    /// Write one text for each row.
    pub(super) fn write<S: AsRef<str>>(
        path: &Path,
        texts: impl IntoIterator<Item = S>,
        rows: u64,
    ) -> Result<FileMark> {
        let mut file = DigestedFile::create(path)?;
        let mut places = Vec::new();
        let write = || {
            for text in texts {
                places.extend_from_slice(&file.len().to_le_bytes());
                file.write(text.as_ref().as_bytes())?;
            }
            let count = places.len() as u64 / 8;
            places.extend_from_slice(&file.len().to_le_bytes());
            file.write(&places)?;
            Ok(count)
        };
        let count: u64 = write().map_err(|e| Error::io(path, e))?;
        if count != rows {
            let problem = format!("expected a text for each of {rows} items, but found {count}");
            return Err(Error::file(path, problem));
        }
        file.finish().map_err(|e| Error::io(path, e))
    }

    /// Open the texts of so many rows.
    pub(super) fn open(path: &Path, rows: u64) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        let bytes = file.metadata().map_err(|e| Error::io(path, e))?.len();
        let places = rows.checked_add(1).and_then(|n| n.checked_mul(8));
        let Some(length) = places.and_then(|places| bytes.checked_sub(places)) else {
            let problem = format!("expected the texts of {rows} items, but found {bytes} bytes");
            return Err(Error::file(path, problem));
        };
        Ok(Texts {
            path: path.to_owned(),
            file: Mutex::new(file),
            rows,
            length,
        })
    }

    /// The text of a row.
    pub(super) fn get(&self, row: u64) -> Result<String> {
        if row >= self.rows {
            let problem = format!("there is no item {row}: the index has {}", self.rows);
            return Err(Error::file(&self.path, problem));
        }
        // A panic elsewhere leaves no half-done state behind: every read seeks first.
        let mut file = match self.file.lock() {
            Ok(file) => file,
            Err(poisoned) => poisoned.into_inner(),
        };
        let mut read = |at: u64, buffer: &mut [u8]| {
            let moved = file.seek(SeekFrom::Start(at));
            let read = moved.and_then(|_| file.read_exact(buffer));
            read.map_err(|e| Error::io(&self.path, e))
        };
        let mut places = [[0_u8; 8]; 2];
        read(self.length + 8 * row, places.as_flattened_mut())?;
        let [start, end] = places.map(u64::from_le_bytes);
        if start > end || end > self.length {
            let problem = format!("the text of item {row} lies outside of the file");
            return Err(Error::file(&self.path, problem));
        }
        let mut text = vec![0_u8; (end - start) as usize];
        read(start, &mut text)?;
        String::from_utf8(text)
            .map_err(|_| Error::file(&self.path, format!("the text of item {row} is not UTF-8")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_and_foreign_bytes_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ids.text");
        Texts::write(&path, ["a", "", "größe"], 3).unwrap();
        let texts = Texts::open(&path, 3).unwrap();
        let all: Vec<String> = (0..3).map(|row| texts.get(row).unwrap()).collect();
        assert_eq!(all, ["a", "", "größe"]);
        assert!(texts.get(3).is_err());
        assert!(Texts::write(&path, ["a"], 2).is_err());
        // One item: 9 bytes are too few for its two places.
        std::fs::write(&path, [0_u8; 9]).unwrap();
        assert!(Texts::open(&path, 1).is_err() && Texts::open(&path, u64::MAX).is_err());
        // Two places, 0 and 9, in front of which nothing lies.
        std::fs::write(&path, [[0_u8; 8], 9_u64.to_le_bytes()].as_flattened()).unwrap();
        let error = Texts::open(&path, 1).unwrap().get(0).unwrap_err();
        assert!(error.to_string().contains("outside"), "{error}");
    }
}
