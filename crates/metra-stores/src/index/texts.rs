//! A text for every item, in a file that is read where it is asked: ids and labels of millions of
//! items are not kept in memory for the few that a search names.
//!
//! The file has all texts one after the other in UTF-8, then the place of each text's first byte and
//! the length of all, as little-endian u64.

use super::manifest::{DigestedFile, FileMark};
use crate::{Error, Result};
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Texts of an index's items.
#[derive(Debug)]
pub(super) struct Texts {
    path: PathBuf,
    file: File,
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
            file,
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
        let mut places = [[0_u8; 8]; 2];
        self.read(self.length + 8 * row, places.as_flattened_mut())?;
        let [start, end] = places.map(u64::from_le_bytes);
        if start > end || end > self.length {
            return Err(self.outside(row));
        }
        let mut text = vec![0_u8; (end - start) as usize];
        self.read(start, &mut text)?;
        String::from_utf8(text).map_err(|_| self.not_text(row))
    }

    /// Every text once, in the order of the first item that has it, and the number of each item's text.
    pub(super) fn distinct(&self) -> Result<(Vec<String>, Vec<u32>)> {
        let bytes = |count: u64| {
            let problem = "it is larger than this machine can hold";
            usize::try_from(count).map_err(|_| Error::file(&self.path, problem))
        };
        let mut texts = vec![0_u8; bytes(self.length)?];
        self.read(0, &mut texts)?;
        let mut places = vec![0_u8; bytes(8 * (self.rows + 1))?];
        self.read(self.length, &mut places)?;
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let (mut names, mut of) = (Vec::new(), Vec::new());
        for (row, pair) in (0..).zip(places.as_chunks::<8>().0.windows(2)) {
            let [start, end] = [pair[0], pair[1]].map(|place| u64::from_le_bytes(place) as usize);
            let text = texts.get(start..end).ok_or_else(|| self.outside(row))?;
            let text = std::str::from_utf8(text).map_err(|_| self.not_text(row))?;
            let number = *numbers.entry(text).or_insert_with(|| {
                names.push(text.to_owned());
                names.len() as u32 - 1
            });
            of.push(number);
        }
        Ok((names, of))
    }

    /// Read at a place. Nothing is moved by it, so that many searches can read at once.
    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        read_at(&self.file, buffer, at).map_err(|e| Error::io(&self.path, e))
    }

    fn outside(&self, row: u64) -> Error {
        let problem = format!("the text of item {row} lies outside of the file");
        Error::file(&self.path, problem)
    }

    fn not_text(&self, row: u64) -> Error {
        Error::file(&self.path, format!("the text of item {row} is not UTF-8"))
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, at)
}

#[cfg(windows)]
fn read_at(file: &File, mut buffer: &mut [u8], mut at: u64) -> std::io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, at)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => {
                buffer = &mut buffer[count..];
                at += count as u64;
            }
        }
    }
    Ok(())
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
        let again = folder.path().join("labels.text");
        Texts::write(&again, ["b", "", "b", "a"], 4).unwrap();
        let (names, of) = Texts::open(&again, 4).unwrap().distinct().unwrap();
        assert_eq!(names, ["b", "", "a"]);
        assert_eq!(of, [0, 1, 0, 2]);
        assert!(texts.get(3).is_err());
        assert!(Texts::write(&path, ["a"], 2).is_err());
        // One item: 9 bytes are too few for its two places.
        std::fs::write(&path, [0_u8; 9]).unwrap();
        assert!(Texts::open(&path, 1).is_err() && Texts::open(&path, u64::MAX).is_err());
        // Two places, 0 and 9, in front of which nothing lies.
        std::fs::write(&path, [[0_u8; 8], 9_u64.to_le_bytes()].as_flattened()).unwrap();
        let error = Texts::open(&path, 1).unwrap().get(0).unwrap_err();
        assert!(error.to_string().contains("outside"), "{error}");
        let error = Texts::open(&path, 1).unwrap().distinct().unwrap_err();
        assert!(error.to_string().contains("outside"), "{error}");
    }
}
