//! Where the rows of a batch lie in their table: a scan says the shard and the first row of a piece
//! beside every row, and inside a piece rows follow each other.

use crate::columns::column;
use crate::table::{FIRST, SHARD};
use crate::{Error, Result};
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::UInt64Type;

/// How far a partition has been read.
#[derive(Debug, Default)]
pub(crate) struct Position {
    /// First row of the piece.
    piece: u64,
    /// Rows of it that have been seen.
    seen: u64,
}

impl Position {
    /// Number of the first row of the next batch, which is then behind.
    pub(crate) fn row_of(&mut self, batch: &RecordBatch) -> Result<u64> {
        let (_, first) = shard_and_first(batch)?;
        if self.piece != first {
            (self.piece, self.seen) = (first, 0);
        }
        let row = first + self.seen;
        self.seen += batch.num_rows() as u64;
        Ok(row)
    }
}

/// Shard of a batch, and number of the first row of its piece.
pub(crate) fn shard_and_first(batch: &RecordBatch) -> Result<(u64, u64)> {
    Ok((constant(batch, SHARD)?, constant(batch, FIRST)?))
}

/// The value of a column that is the same in all rows of a batch.
fn constant(batch: &RecordBatch, name: &str) -> Result<u64> {
    let column = column(batch, name)?.as_primitive_opt::<UInt64Type>();
    let value = column.filter(|column| !column.is_empty() && column.null_count() == 0);
    value
        .map(|column| column.value(0))
        .ok_or_else(|| Error::table(name, "expected the number of a shard or row"))
}
