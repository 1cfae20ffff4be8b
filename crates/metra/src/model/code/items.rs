//! Items held as codes, which become vectors where they are looked at.

use super::Code;
use crate::data::{Corpus, RowId};
use crate::linalg::{RowBuf, Rows};
use crate::{Error, Result};
use std::ops::Range;

/// Rows that become vectors at a time.
const BLOCK: usize = 1024;

/// Items as codes, in memory: as a corpus they are the vectors that codes stand for.
pub struct CodedItems {
    code: Code,
    dim: usize,
    codes: Vec<u8>,
}

impl CodedItems {
    /// The codes of vectors of `dim` dimensions, item after item.
    pub fn new(code: Code, dim: usize, codes: Vec<u8>) -> Result<Self> {
        code.check(dim)?;
        let size = code.item_bytes(dim);
        if codes.is_empty() || !codes.len().is_multiple_of(size) {
            let expected = format!("a multiple of {size} (bytes of an item), at least one item");
            return Err(Error::shape("bytes of codes", expected, codes.len()));
        }
        Ok(CodedItems { code, dim, codes })
    }

    /// The code.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// Codes, item after item.
    pub fn codes(&self) -> &[u8] {
        &self.codes
    }

    fn size(&self) -> usize {
        self.code.item_bytes(self.dim)
    }
}

impl Corpus for CodedItems {
    fn len(&self) -> u64 {
        (self.codes.len() / self.size()) as u64
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn gather(&self, rows: &[RowId], out: &mut RowBuf) -> Result<()> {
        let size = self.size();
        let mut codes = Vec::with_capacity(rows.len() * size);
        for row in rows {
            let found = usize::try_from(*row).ok().and_then(|row| {
                let start = row.checked_mul(size)?;
                self.codes.get(start..start.checked_add(size)?)
            });
            codes.extend(
                found.ok_or_else(|| Error::shape("row", format!("below {}", self.len()), row))?,
            );
        }
        self.code.decode(self.dim, &codes, out)
    }

    fn scan(
        &self,
        range: Range<RowId>,
        visit: &mut dyn FnMut(RowId, Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        let size = self.size();
        let (start, end) = (range.start, range.end.min(self.len()));
        let mut buffer = RowBuf::empty(1);
        for first in (start..end).step_by(BLOCK) {
            let last = end.min(first + BLOCK as u64);
            let bytes = first as usize * size..last as usize * size;
            self.code
                .decode(self.dim, &self.codes[bytes], &mut buffer)?;
            visit(first, buffer.rows())?;
        }
        Ok(())
    }
}
