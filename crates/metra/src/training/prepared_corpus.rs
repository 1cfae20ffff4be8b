//! A corpus seen through fitted steps of preparation.

use crate::Result;
use crate::data::{
    Corpus, CorpusRef, Groups, MemoryCorpus, PartialResult, PassExecutor, RowId, SparseRow, Task,
};
use crate::linalg::{RowBuf, Rows};
use crate::model::{Chain, Map, Model, Origin, Space, Step};
use std::ops::Range;

/// A corpus seen through fitted steps, prepared when it is read.
pub struct PreparedCorpus<'a> {
    inner: &'a dyn Corpus,
    groups: Option<&'a Groups>,
    steps: &'a [Step],
    dim: usize,
}

impl<'a> PreparedCorpus<'a> {
    /// `inner` through `steps`; `groups` are those of its rows, numbered as in the steps.
    pub fn new(inner: &'a dyn Corpus, groups: Option<&'a Groups>, steps: &'a [Step]) -> Self {
        // Steps that do not fit say so when they are applied.
        let dim = (steps.iter()).fold(inner.dim(), |dim, step| step.output_dim(dim).unwrap_or(dim));
        PreparedCorpus {
            inner,
            groups,
            steps,
            dim,
        }
    }

    fn apply(&self, first: RowId, groups: Option<&[u32]>, rows: &mut RowBuf) -> Result<()> {
        for step in self.steps {
            step.apply(first, groups, rows)?;
        }
        Ok(())
    }
}

impl Corpus for PreparedCorpus<'_> {
    fn check_stop(&self) -> Result<()> {
        self.inner.check_stop()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn gather(&self, rows: &[RowId], out: &mut RowBuf) -> Result<()> {
        self.inner.gather(rows, out)?;
        let groups: Option<Vec<u32>> = self
            .groups
            .map(|g| rows.iter().map(|r| g.of()[*r as usize]).collect());
        self.apply(0, groups.as_deref(), out)
            .map_err(|e| e.renumbered(|place| self.origin(rows[place as usize])))
    }

    fn scan(
        &self,
        range: Range<RowId>,
        visit: &mut dyn FnMut(RowId, Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        if self.steps.is_empty() {
            return self.inner.scan(range, visit);
        }
        let mut buffer = RowBuf::empty(self.inner.dim());
        self.inner.scan(range, &mut |first, rows| {
            buffer.clear(rows.dim());
            buffer.extend(rows);
            let at = first as usize;
            let groups = self.groups.map(|g| &g.of()[at..at + rows.len()]);
            self.apply(first, groups, &mut buffer)
                .map_err(|e| e.renumbered(|row| self.origin(row)))?;
            visit(first, buffer.rows())
        })
    }

    fn origin(&self, row: RowId) -> RowId {
        self.inner.origin(row)
    }

    fn view(&self) -> Option<Rows<'_>> {
        if self.steps.is_empty() {
            self.inner.view()
        } else {
            None
        }
    }

    fn sparse_row(&self, row: RowId) -> Option<SparseRow<'_>> {
        match self.steps.is_empty() {
            true => self.inner.sparse_row(row),
            false => None,
        }
    }

    fn pass_executor(&self) -> Option<Box<dyn PassExecutor + '_>> {
        let inner = self.inner.pass_executor()?;
        Some(Box::new(PreparedExecutor {
            inner,
            steps: self.steps,
            dim: self.inner.dim(),
        }))
    }
}

/// Sends the fitted steps along with every pass.
struct PreparedExecutor<'a> {
    inner: Box<dyn PassExecutor + 'a>,
    steps: &'a [Step],
    /// Numbers in a row before the steps.
    dim: usize,
}

impl PassExecutor for PreparedExecutor<'_> {
    fn near_mean(&self) -> Option<Vec<f64>> {
        self.inner.near_mean().filter(|_| self.steps.is_empty())
    }

    fn run(&self, mut task: Task) -> Result<Vec<PartialResult>> {
        if !self.steps.is_empty() {
            let steps = self.steps.to_vec();
            let chain = Chain::new(self.dim, steps, Map::Identity, Space::SquaredL2)?;
            let model = Model::new(None, chain, Origin::default())?;
            task.prepare.insert(0, model.to_bytes()?);
        }
        self.inner.run(task)
    }
}

/// A prepared corpus: a copy in memory if it takes at most `memory` bytes, otherwise prepared again at each
/// reading. Without steps no copy is ever made.
pub(crate) fn prepared(corpus: PreparedCorpus<'_>, memory: u64) -> Result<CorpusRef<'_>> {
    let bytes = corpus.len().saturating_mul(corpus.dim() as u64 * 4);
    if bytes > memory || corpus.steps.is_empty() {
        return Ok(CorpusRef::Owned(Box::new(corpus)));
    }
    let mut rows = RowBuf::empty(corpus.dim());
    corpus.scan(0..corpus.len(), &mut |_, block| {
        rows.extend(block);
        Ok(())
    })?;
    Ok(CorpusRef::Owned(Box::new(MemoryCorpus::new(rows)?)))
}
