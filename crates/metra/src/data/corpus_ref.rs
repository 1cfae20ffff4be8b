//! A corpus that is borrowed, owned or shared, so that a data set can hold any.

use super::{BorrowedCorpus, Corpus, MemoryCorpus};
use crate::Result;
use crate::linalg::{RowBuf, Rows};
use std::ops::Deref;
use std::sync::Arc;

/// A corpus that is borrowed, owned or shared.
pub enum CorpusRef<'a> {
    /// Somebody else's.
    Borrowed(&'a (dyn Corpus + 'a)),
    /// Its own.
    Owned(Box<dyn Corpus + 'a>),
    /// Its own and others'.
    Shared(Arc<dyn Corpus + 'a>),
}

impl<'a> Deref for CorpusRef<'a> {
    type Target = dyn Corpus + 'a;

    fn deref(&self) -> &Self::Target {
        match self {
            CorpusRef::Borrowed(corpus) => *corpus,
            CorpusRef::Owned(corpus) => corpus.as_ref(),
            CorpusRef::Shared(corpus) => corpus.as_ref(),
        }
    }
}

impl<'a> From<&'a (dyn Corpus + 'a)> for CorpusRef<'a> {
    fn from(corpus: &'a (dyn Corpus + 'a)) -> Self {
        CorpusRef::Borrowed(corpus)
    }
}

impl<'a, C: Corpus> From<&'a C> for CorpusRef<'a> {
    fn from(corpus: &'a C) -> Self {
        CorpusRef::Borrowed(corpus)
    }
}

/// What vectors can be given as: a corpus by reference or value, or rows, which must be finite.
pub trait IntoCorpus<'a> {
    /// The corpus, or an error that names a row that cannot be used.
    fn into_corpus(self) -> Result<CorpusRef<'a>>;
}

impl<'a, C: Corpus> IntoCorpus<'a> for &'a C {
    fn into_corpus(self) -> Result<CorpusRef<'a>> {
        Ok(CorpusRef::Borrowed(self))
    }
}

impl<'a> IntoCorpus<'a> for &'a (dyn Corpus + 'a) {
    fn into_corpus(self) -> Result<CorpusRef<'a>> {
        Ok(CorpusRef::Borrowed(self))
    }
}

impl<'a> IntoCorpus<'a> for Box<dyn Corpus + 'a> {
    fn into_corpus(self) -> Result<CorpusRef<'a>> {
        Ok(CorpusRef::Owned(self))
    }
}

impl<'a> IntoCorpus<'a> for CorpusRef<'a> {
    fn into_corpus(self) -> Result<CorpusRef<'a>> {
        Ok(self)
    }
}

impl<'a> IntoCorpus<'a> for RowBuf {
    fn into_corpus(self) -> Result<CorpusRef<'a>> {
        Ok(CorpusRef::Owned(Box::new(MemoryCorpus::new(self)?)))
    }
}

impl<'a> IntoCorpus<'a> for MemoryCorpus {
    fn into_corpus(self) -> Result<CorpusRef<'a>> {
        Ok(CorpusRef::Owned(Box::new(self)))
    }
}

/// Values one row after the other, and the dimension.
impl<'a> IntoCorpus<'a> for (&'a [f32], usize) {
    fn into_corpus(self) -> Result<CorpusRef<'a>> {
        let corpus = BorrowedCorpus::new(Rows::new(self.0, self.1)?)?;
        Ok(CorpusRef::Owned(Box::new(corpus)))
    }
}
