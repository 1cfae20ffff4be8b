//! Vectors in a memory-mapped file of little-endian f32, and the spool that makes such a file.
//!
//! This is the one module with `unsafe`: mapping a file is sound only while nobody shortens it.

use super::RowId;
use super::corpus::{Corpus, gather_from, scan_view};
use crate::linalg::{RowBuf, Rows};
use crate::{Error, Result};
use memmap2::Mmap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A corpus in a memory-mapped file. The system keeps in memory what is in use and drops the rest,
/// so a corpus may be larger than memory. The file must not be changed while it is mapped.
#[derive(Debug)]
pub struct MappedCorpus {
    map: Mmap,
    offset: usize,
    len: usize,
    dim: usize,
}

impl MappedCorpus {
    /// `len` rows of `dim` little-endian f32 from byte `offset` of `path` on.
    pub fn open(path: &Path, offset: usize, len: usize, dim: usize) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        Self::map(&file, path, offset, len, dim)
    }

    #[expect(unsafe_code, reason = "mapping a file has no safe form")]
    fn map(file: &File, path: &Path, offset: usize, len: usize, dim: usize) -> Result<Self> {
        if dim == 0 || len == 0 {
            return Err(Error::shape(
                format!("{}: rows × dimension", path.display()),
                "at least 1 × 1",
                format!("{len} × {dim}"),
            ));
        }
        // SAFETY: the map is read-only and private to this value. Another process that shortens
        // the file while it is mapped would end this one with SIGBUS; the documentation of
        // `MappedCorpus` asks callers not to.
        let map = unsafe { Mmap::map(file) }.map_err(|e| Error::io(path, e))?;
        let needed = len
            .checked_mul(dim)
            .and_then(|n| n.checked_mul(size_of::<f32>()))
            .and_then(|n| n.checked_add(offset));
        if needed.is_none_or(|needed| needed > map.len()) {
            return Err(Error::shape(
                format!("{}: bytes for {len} × {dim} values", path.display()),
                needed.map_or("a number below 2^64".into(), |n| n.to_string()),
                map.len(),
            ));
        }
        if !offset.is_multiple_of(align_of::<f32>()) {
            return Err(Error::shape(
                format!("{}: offset of the values", path.display()),
                "a multiple of 4",
                offset,
            ));
        }
        Ok(MappedCorpus {
            map,
            offset,
            len,
            dim,
        })
    }

    fn rows(&self) -> Rows<'_> {
        let bytes = &self.map[self.offset..self.offset + self.len * self.dim * size_of::<f32>()];
        Rows::new(bytemuck::cast_slice(bytes), self.dim)
            .expect("length and alignment were checked when the file was mapped")
    }
}

impl Corpus for MappedCorpus {
    fn len(&self) -> u64 {
        self.len as u64
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn gather(&self, rows: &[RowId], out: &mut RowBuf) -> Result<()> {
        gather_from(self.rows(), rows, out)
    }

    fn scan(
        &self,
        range: Range<RowId>,
        visit: &mut dyn FnMut(RowId, Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        scan_view(self.rows(), range, visit)
    }

    fn view(&self) -> Option<Rows<'_>> {
        Some(self.rows())
    }
}

/// Rows written once to a temporary file and then mapped. The file has no name, so the system
/// removes it with the corpus, however the process ends.
pub struct Spool {
    file: BufWriter<File>,
    folder: PathBuf,
    dim: usize,
    len: usize,
}

impl Spool {
    /// A spool for rows of `dim` numbers in `folder`.
    pub fn new(folder: &Path, dim: usize) -> Result<Self> {
        let file = tempfile::tempfile_in(folder).map_err(|e| Error::io(folder, e))?;
        Ok(Spool {
            file: BufWriter::with_capacity(1 << 20, file),
            folder: folder.to_path_buf(),
            dim,
            len: 0,
        })
    }

    /// Append rows.
    pub fn push(&mut self, rows: Rows<'_>) -> Result<()> {
        if rows.dim() != self.dim {
            return Err(Error::shape("dimension of the rows", self.dim, rows.dim()));
        }
        self.len += rows.len();
        self.file
            .write_all(bytemuck::cast_slice(rows.values()))
            .map_err(|e| Error::io(&self.folder, e))
    }

    /// Map what was written.
    pub fn finish(self) -> Result<MappedCorpus> {
        let folder = self.folder;
        let inner = self.file.into_inner();
        let file = inner.map_err(|e| Error::io(&folder, e.into_error()))?;
        MappedCorpus::map(&file, &folder, 0, self.len, self.dim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spooled_rows_come_back_and_no_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(folder.path(), 3).unwrap();
        for i in 0..5 {
            let values = [i as f32, 1.0, 2.0];
            spool.push(Rows::new(&values, 3).unwrap()).unwrap();
        }
        let corpus = spool.finish().unwrap();
        assert_eq!((corpus.len(), corpus.dim()), (5, 3));
        let mut out = RowBuf::empty(3);
        corpus.gather(&[4, 0], &mut out).unwrap();
        assert_eq!(out.values(), &[4.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_short_file_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [0_u8; 20]).unwrap();
        assert!(MappedCorpus::open(file.path(), 0, 2, 3).is_err());
        assert!(MappedCorpus::open(file.path(), 0, usize::MAX, 3).is_err());
        assert!(MappedCorpus::open(file.path(), 2, 1, 3).is_err());
        assert!(MappedCorpus::open(file.path(), 8, 1, 3).is_ok());
    }
}
