//! How much memory the blocks of a Feather file ask for, before anything is unpacked.
//!
//! The file's foot says where each block of rows lies and how long it is, and each packed buffer says how long
//! it is unpacked; a reader reserves that much. The layout is the Arrow IPC file format: the foot, its length
//! and a mark at the end; blocks of a message in Flatbuffers and a body of buffers.

use crate::error::{Error, Result};
use arrow_ipc::{Block, Message, MessageHeader, RecordBatch, root_as_footer, root_as_message};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Length of the foot and the mark behind it.
const TAIL: u64 = 10;
/// Begins a message since version 0.15 of the format.
pub(crate) const CONTINUATION: [u8; 4] = [0xff; 4];

/// The batch that a message of a file or a stream holds: rows, or words of a dictionary.
pub(crate) fn batch_of<'a>(message: &Message<'a>) -> Option<RecordBatch<'a>> {
    match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        MessageHeader::DictionaryBatch => message.header_as_dictionary_batch()?.data(),
        _ => None,
    }
}

/// Bytes of the file, and of its largest block when unpacked; an error where one lies outside of the file.
pub(crate) fn largest_block(path: &Path) -> Result<(u64, u64)> {
    let io = |e| Error::io(path, e);
    let mut file = File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    let mut reader = BlockReader {
        path,
        file: &mut file,
        length,
    };
    let tail = reader.bytes(length.saturating_sub(TAIL), 4)?;
    let foot = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    let start = length
        .checked_sub(TAIL)
        .and_then(|end| end.checked_sub(foot));
    let start = start.ok_or_else(|| reader.damaged("its foot is longer than the file"))?;
    let foot = reader.bytes(start, foot)?;
    let foot = root_as_footer(&foot).map_err(|e| reader.damaged(&e.to_string()))?;
    let blocks = [foot.dictionaries(), foot.recordBatches()];
    let mut largest = 0;
    for block in blocks
        .into_iter()
        .flatten()
        .flat_map(|blocks| blocks.iter())
    {
        largest = largest.max(reader.block(block)?);
    }
    Ok((length, largest))
}

struct BlockReader<'a> {
    path: &'a Path,
    file: &'a mut File,
    length: u64,
}

impl BlockReader<'_> {
    fn damaged(&self, problem: &str) -> Error {
        Error::format(self.path, "Feather", problem)
    }

    /// Bytes at a place, all of which must be in the file.
    fn bytes(&mut self, at: u64, count: u64) -> Result<Vec<u8>> {
        if at.checked_add(count).is_none_or(|end| end > self.length) {
            return Err(self.damaged("a block lies outside of the file"));
        }
        let mut bytes = vec![0; count as usize];
        let read =
            (self.file.seek(SeekFrom::Start(at))).and_then(|_| self.file.read_exact(&mut bytes));
        read.map_err(|e| Error::io(self.path, e))?;
        Ok(bytes)
    }

    /// Bytes of a block, unpacked.
    fn block(&mut self, block: &Block) -> Result<u64> {
        let parts = [
            block.offset(),
            i64::from(block.metaDataLength()),
            block.bodyLength(),
        ];
        let [Ok(at), Ok(head), Ok(body)] = parts.map(u64::try_from) else {
            return Err(self.damaged("a block lies outside of the file"));
        };
        let message = self.bytes(at, head)?;
        let start = at + head;
        // The body must be there, whatever is in it.
        if start.checked_add(body).is_none_or(|end| end > self.length) {
            return Err(self.damaged("a block lies outside of the file"));
        }
        let skipped = if message.starts_with(&CONTINUATION) {
            8
        } else {
            4
        };
        let message = message.get(skipped..).unwrap_or_default();
        let message = root_as_message(message).map_err(|e| self.damaged(&e.to_string()))?;
        match batch_of(&message) {
            Some(batch) => self.unpacked(&batch, start, body),
            None => Ok(body),
        }
    }

    /// Bytes of the buffers of a batch, unpacked. A packed buffer begins with its length, or with -1 where it
    /// is as it is.
    fn unpacked(&mut self, batch: &RecordBatch<'_>, start: u64, body: u64) -> Result<u64> {
        let (Some(buffers), Some(_)) = (batch.buffers(), batch.compression()) else {
            return Ok(body);
        };
        let mut unpacked = body;
        for buffer in buffers {
            let (Ok(at), Ok(length)) = (
                u64::try_from(buffer.offset()),
                u64::try_from(buffer.length()),
            ) else {
                return Err(self.damaged("a buffer lies outside of its block"));
            };
            if at.checked_add(length).is_none_or(|end| end > body) {
                return Err(self.damaged("a buffer lies outside of its block"));
            }
            if length >= 8 {
                let bytes = self.bytes(start + at, 8)?;
                let claimed = bytes
                    .first_chunk()
                    .map_or(0, |bytes| i64::from_le_bytes(*bytes));
                unpacked = unpacked.saturating_add(u64::try_from(claimed).unwrap_or(0));
            }
        }
        Ok(unpacked)
    }
}
