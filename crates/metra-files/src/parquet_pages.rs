//! How much memory the pages of a Parquet file ask for, before anything is unpacked.
//!
//! A page's header states how long it is unpacked and how many values it has, and a reader reserves
//! that much: a file of a few hundred bytes can ask for gigabytes. Headers are Thrift's compact protocol
//! (`PageHeader` of the format's `parquet.thrift`), of which these few fields are read here.

use crate::error::{Error, Result};
use parquet::file::metadata::ParquetMetaData;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes in which a header is looked for first, and at most: it may hold statistics.
const FIRST_READ: usize = 4 << 10;
const LONGEST_HEADER: usize = 16 << 20;
/// Structs in structs, at most.
const DEEPEST: u32 = 16;

/// What the pages of one column ask for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ColumnPages {
    /// Bytes of the largest page, unpacked.
    pub(crate) largest: u64,
    /// Values of the row group that has most.
    pub(crate) values: u64,
}

impl ColumnPages {
    /// Read the headers of all pages of a column, numbered among the file's leaves.
    pub(crate) fn of(
        path: &Path,
        file: &mut File,
        metadata: &ParquetMetaData,
        leaf: usize,
    ) -> Result<Self> {
        let mut pages = ColumnPages::default();
        for group in metadata.row_groups() {
            let Some(column) = group.columns().get(leaf) else {
                return Err(damaged(path, "a row group lacks a column"));
            };
            // The numbers of the file's foot are as little to be trusted as any.
            let start = match column.dictionary_page_offset() {
                Some(dictionary) => dictionary.min(column.data_page_offset()),
                None => column.data_page_offset(),
            };
            let start = u64::try_from(start).ok();
            let length = u64::try_from(column.compressed_size()).ok();
            let end = start
                .zip(length)
                .and_then(|(start, length)| start.checked_add(length));
            let (Some(mut at), Some(end)) = (start, end) else {
                return Err(damaged(path, "a column lies outside of the file"));
            };
            let mut values = 0_u64;
            while at < end {
                let header = PageHeader::read(path, file, at, end)?;
                pages.largest = pages.largest.max(header.unpacked);
                values = values.saturating_add(header.values);
                at = at
                    .saturating_add(header.length)
                    .saturating_add(header.packed);
            }
            pages.values = pages.values.max(values);
        }
        Ok(pages)
    }
}

fn damaged(path: &Path, problem: &str) -> Error {
    Error::format(path, "Parquet", problem)
}

#[derive(Debug, Default, PartialEq)]
struct PageHeader {
    unpacked: u64,
    packed: u64,
    values: u64,
    /// Bytes of the header itself.
    length: u64,
}

impl PageHeader {
    fn read(path: &Path, file: &mut File, at: u64, end: u64) -> Result<Self> {
        let mut bytes = Vec::new();
        let mut most = FIRST_READ;
        loop {
            let wanted = (most as u64).min(end - at);
            bytes.clear();
            file.seek(SeekFrom::Start(at))
                .and_then(|_| file.by_ref().take(wanted).read_to_end(&mut bytes))
                .map_err(|e| Error::io(path, e))?;
            if let Some(header) = Self::parse(&bytes) {
                return Ok(header);
            }
            if (bytes.len() as u64) < most as u64 || most >= LONGEST_HEADER {
                return Err(damaged(path, "the header of a page cannot be read"));
            }
            most *= 16;
        }
    }

    /// `None` where it is damaged or goes on behind the bytes.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut thrift = Thrift { bytes, at: 0 };
        let mut header = PageHeader::default();
        let (mut unpacked, mut packed) = (None, None);
        let mut field = 0;
        while let Some(kind) = thrift.field(&mut field)? {
            match (field, kind) {
                (2, 5) => unpacked = Some(thrift.size()?),
                (3, 5) => packed = Some(thrift.size()?),
                // Pages of data, of a dictionary, and of data in version 2 count values first.
                (5 | 7 | 8, 12) => {
                    let mut inner = 0;
                    while let Some(kind) = thrift.field(&mut inner)? {
                        match (inner, kind) {
                            (1, 5) => header.values = thrift.size()?,
                            (_, kind) => thrift.skip(kind, DEEPEST)?,
                        }
                    }
                    // Those of a dictionary are none of the column.
                    if field == 7 {
                        header.values = 0;
                    }
                }
                (_, kind) => thrift.skip(kind, DEEPEST)?,
            }
        }
        (header.unpacked, header.packed) = (unpacked?, packed?);
        header.length = thrift.at as u64;
        Some(header)
    }
}

/// A reader of Thrift's compact protocol.
struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Thrift<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// An integer of seven bits a byte, the lowest first.
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A signed integer, whose sign is the lowest bit.
    fn signed(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A signed integer that counts something.
    fn size(&mut self) -> Option<u64> {
        u64::try_from(self.signed()?).ok()
    }

    /// The kind of the next field of a struct, whose number is put into `field`; `None` at its end.
    fn field(&mut self, field: &mut i64) -> Option<Option<u8>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        *field = match byte >> 4 {
            0 => self.signed()?,
            more => field.checked_add(i64::from(more))?,
        };
        Some(Some(byte & 0xf))
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            // True and false are told by the kind itself.
            1 | 2 => {}
            3 => _ = self.byte()?,
            4..=6 => _ = self.varint()?,
            7 => self.pass(8)?,
            8 => {
                let length = self.varint()?;
                self.pass(length)?;
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = match head >> 4 {
                    15 => self.varint()?,
                    count => u64::from(count),
                };
                for _ in 0..count {
                    // In a list a boolean is a byte.
                    match head & 0xf {
                        1 | 2 => _ = self.byte()?,
                        kind => self.skip(kind, depth)?,
                    }
                }
            }
            12 => {
                let mut field = 0;
                while let Some(kind) = self.field(&mut field)? {
                    self.skip(kind, depth)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn pass(&mut self, count: u64) -> Option<()> {
        let end = self.at.checked_add(usize::try_from(count).ok()?)?;
        if end > self.bytes.len() {
            return None;
        }
        self.at = end;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of 3 values: 100 bytes, 40 packed, with statistics that are passed over.
    const HEADER: [u8; 19] = [
        0x15, 0x00, 0x15, 0xc8, 0x01, 0x15, 0x50, 0x2c, 0x15, 0x06, 0x15, 0x10, 0x3c, 0x18, 0x01,
        0x41, 0x00, 0x00, 0x00,
    ];

    #[test]
    fn a_header_is_read_whole_or_not_at_all() {
        let expected = PageHeader {
            unpacked: 100,
            packed: 40,
            values: 3,
            length: 19,
        };
        assert_eq!(PageHeader::parse(&HEADER), Some(expected));
        for length in 0..HEADER.len() {
            assert_eq!(PageHeader::parse(&HEADER[..length]), None, "{length}");
        }
        // A length below 0.
        let mut below = HEADER;
        below[6] = 0x51;
        assert_eq!(PageHeader::parse(&below), None);
        // Structs without end.
        assert_eq!(PageHeader::parse(&[0x1c; 1000]), None);
        assert_eq!(PageHeader::parse(&[0xff; 1000]), None);
    }
}
