//! A wrapper of a corpus that checks a stop flag, so that every pass over it can be interrupted,
//! also those of closed-form methods.

use super::{Corpus, CorpusRef, PassExecutor, RowId, SparseRow};
use crate::linalg::{RowBuf, Rows};
use crate::{Error, Result};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Another corpus, which gives [`Error::Interrupted`] in place of rows once `stop` is set.
pub struct Interruptible<'a> {
    inner: CorpusRef<'a>,
    stop: &'a AtomicBool,
}

impl<'a> Interruptible<'a> {
    /// `inner`, until `stop` is set.
    pub fn new(inner: impl Into<CorpusRef<'a>>, stop: &'a AtomicBool) -> Self {
        let inner = inner.into();
        Interruptible { inner, stop }
    }
}

impl Corpus for Interruptible<'_> {
    fn check_stop(&self) -> Result<()> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn dim(&self) -> usize {
        self.inner.dim()
    }

    fn gather(&self, rows: &[RowId], out: &mut RowBuf) -> Result<()> {
        self.check_stop()?;
        self.inner.gather(rows, out)
    }

    fn scan(
        &self,
        range: Range<RowId>,
        visit: &mut dyn FnMut(RowId, Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        self.inner.scan(range, &mut |first, rows| {
            self.check_stop()?;
            visit(first, rows)
        })
    }

    fn origin(&self, row: RowId) -> RowId {
        self.inner.origin(row)
    }

    fn view(&self) -> Option<Rows<'_>> {
        self.inner.view()
    }

    fn sparse_row(&self, row: RowId) -> Option<SparseRow<'_>> {
        self.inner.sparse_row(row)
    }

    fn pass_executor(&self) -> Option<Box<dyn PassExecutor + '_>> {
        self.inner.pass_executor()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;

    #[test]
    fn a_pass_ends_where_the_flag_is_set() {
        let rows = RowBuf::from_values(vec![1.0; 6000], 2).unwrap();
        let (corpus, stop) = (MemoryCorpus::new(rows).unwrap(), AtomicBool::new(false));
        let corpus = Interruptible::new(CorpusRef::Borrowed(&corpus), &stop);
        let mut blocks = 0;
        let ended = corpus.scan(0..3000, &mut |_, _| {
            blocks += 1;
            stop.store(true, Ordering::Relaxed);
            Ok(())
        });
        assert!(matches!(ended, Err(Error::Interrupted)) && blocks == 1);
        let mut out = RowBuf::empty(2);
        assert!(corpus.gather(&[0], &mut out).is_err());
        // Behind others, too.
        let part = crate::data::Subset::new(&corpus, vec![1, 2]).unwrap();
        assert!(part.check_stop().is_err());
        stop.store(false, Ordering::Relaxed);
        assert!(part.check_stop().is_ok());
    }
}
