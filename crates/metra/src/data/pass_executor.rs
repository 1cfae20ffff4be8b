//! The interface for running passes on other machines: the computation is sent to the rows, not the
//! rows to the computation.
//!
//! A corpus that lies elsewhere (a table that several machines read) names who carries passes out.
//! What is sent is the name of a pass and its settings; what comes back are [`PartialResult`]s, merged in the
//! order of shards. Learners see none of this: they ask [`crate::execute`] for moments or sums.

use super::PartialResult;
use crate::Result;

/// Number of a row within a corpus.
pub type RowId = u64;

/// Carries passes out where the rows are.
pub trait PassExecutor: Send + Sync {
    /// A point near the rows, where it is known without a pass.
    fn near_mean(&self) -> Option<Vec<f64>> {
        None
    }

    /// Run a pass over all rows.
    fn run(&self, task: Task) -> Result<Vec<PartialResult>>;
}

/// A pass as it is sent: names and bytes, nothing that lives in this process.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Name of the pass, as every machine knows it.
    pub name: &'static str,
    /// Its settings.
    pub spec: Vec<u8>,
    /// What rows are keyed by.
    pub keys: KeyedBy,
    /// Models whose preparation rows go through before the pass sees them, in order.
    pub prepare: Vec<Vec<u8>>,
    /// The rows that it is about, increasing, where it is not about all: others need not be read.
    pub rows: Option<Vec<RowId>>,
}

/// What the key of a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyedBy {
    /// There is none.
    Nothing,
    /// The number of its class.
    Class,
    /// The number of its group (camera, session).
    Group,
}

/// Keys of rows: what they mean, with the number of every row where rows are at hand.
#[derive(Debug, Clone, Copy)]
pub enum Keys<'a> {
    /// Rows have no key.
    None,
    /// The class of every row.
    Class(&'a [u32]),
    /// The group of every row.
    Group(&'a [u32]),
}

impl<'a> Keys<'a> {
    /// What they mean.
    pub(crate) fn by(&self) -> KeyedBy {
        match self {
            Keys::None => KeyedBy::Nothing,
            Keys::Class(_) => KeyedBy::Class,
            Keys::Group(_) => KeyedBy::Group,
        }
    }

    /// The key of every row.
    pub(crate) fn of(&self) -> Option<&'a [u32]> {
        match self {
            Keys::None => None,
            Keys::Class(keys) | Keys::Group(keys) => Some(keys),
        }
    }
}
