//! Synthetic data sets whose best metric is known, for tests, examples and benchmarks.

use super::RowId;
use super::corpus::MemoryCorpus;
use crate::linalg::RowBuf;
use crate::random::Stream;

/// A set in memory with its labels.
pub struct LabelledVectors {
    /// The vectors.
    pub corpus: MemoryCorpus,
    /// The class of every row.
    pub classes: Vec<i64>,
}

/// Recipe for rows of classes that differ in the first `signal` coordinates only; the other
/// `noise` coordinates are louder and say nothing. The best metric is the projection onto the
/// first `signal` coordinates. Any row can be made alone, so a set of any size can be streamed.
#[derive(Debug, Clone, Copy)]
pub struct Nuisance {
    /// Number of classes; row r belongs to class r mod classes.
    pub classes: u64,
    /// Coordinates that tell classes apart.
    pub signal: usize,
    /// Coordinates that do not.
    pub noise: usize,
    /// Seed of all draws.
    pub seed: u64,
}

impl Nuisance {
    /// Numbers in a row.
    pub fn dim(&self) -> usize {
        self.signal + self.noise
    }

    /// The class of a row.
    pub fn class(&self, row: RowId) -> i64 {
        (row % self.classes) as i64
    }

    /// Write row `row`.
    pub fn write(&self, row: RowId, out: &mut [f32]) {
        let mut centre = Stream::new(self.seed, "synthetic class", row % self.classes);
        let mut own = Stream::new(self.seed, "synthetic row", row);
        let (signal, noise) = out.split_at_mut(self.signal);
        for value in signal {
            *value = (centre.normal() + 0.3 * own.normal()) as f32;
        }
        for value in noise {
            *value = (3.0 * own.normal()) as f32;
        }
    }

    /// The first `len` rows in memory.
    pub fn rows(&self, len: usize) -> LabelledVectors {
        let mut rows = RowBuf::zeros(len, self.dim());
        for row in 0..len {
            self.write(row as RowId, rows.row_mut(row));
        }
        LabelledVectors {
            corpus: MemoryCorpus::new(rows).expect("normal draws are finite"),
            classes: (0..len).map(|row| self.class(row as RowId)).collect(),
        }
    }
}
