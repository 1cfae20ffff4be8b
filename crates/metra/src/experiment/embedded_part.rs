//! Embeds some rows of a data set by fitted preprocessing and a map.

use crate::data::{Corpus, Groups, RowId, Subset};
use crate::dataset::Dataset;
use crate::linalg::{RowBuf, Rows};
use crate::model::{Embedded, Embedding, Side, embed_corpus};
use crate::{Error, Result};
use std::ops::Range;

impl Dataset<'_> {
    /// Some of the items, or all, embedded.
    pub(super) fn embed_items<'b>(
        &'b self,
        chain: &dyn Embedding,
        side: Side,
        units: Option<&'b [u64]>,
    ) -> Result<EmbeddedPart<'b>> {
        self.embed(chain, side, (self.items(), self.item_groups()), units)
    }

    /// Some of the queries embedded.
    pub(super) fn embed_queries<'b>(
        &'b self,
        chain: &dyn Embedding,
        units: &'b [u64],
    ) -> Result<EmbeddedPart<'b>> {
        self.embed(
            chain,
            Side::Query,
            (self.queries(), self.query_groups()),
            Some(units),
        )
    }

    fn embed<'b>(
        &'b self,
        chain: &dyn Embedding,
        side: Side,
        (corpus, groups): (&'b dyn Corpus, Option<&Groups>),
        units: Option<&'b [u64]>,
    ) -> Result<EmbeddedPart<'b>> {
        let embedded = match units {
            None => embed_corpus(chain, side, corpus, groups, self.storage())?,
            Some(units) => {
                let part = Subset::new(corpus, units.to_vec())?;
                let groups = groups.map(|g| g.select(units));
                embed_corpus(chain, side, &part, groups.as_ref(), self.storage())?
            }
        };
        Ok(EmbeddedPart {
            embedded,
            corpus,
            units,
        })
    }
}

/// An embedded part that knows which rows it was made from, for messages.
pub(super) struct EmbeddedPart<'a> {
    embedded: Embedded,
    corpus: &'a dyn Corpus,
    units: Option<&'a [u64]>,
}

impl EmbeddedPart<'_> {
    /// One number of every row; an error where there is no such number.
    pub(super) fn column(&self, column: usize) -> Result<Vec<f32>> {
        if column >= self.dim() {
            let expected = format!("above {column}");
            return Err(Error::shape("numbers of mapped rows", expected, self.dim()));
        }
        let mut values = Vec::with_capacity(self.len() as usize);
        self.scan(0..self.len(), &mut |_, rows| {
            values.extend(rows.iter().map(|row| row[column]));
            Ok(())
        })?;
        Ok(values)
    }
}

impl Corpus for EmbeddedPart<'_> {
    fn check_stop(&self) -> Result<()> {
        self.corpus.check_stop()
    }

    fn len(&self) -> u64 {
        self.embedded.corpus().len()
    }

    fn dim(&self) -> usize {
        self.embedded.corpus().dim()
    }

    fn gather(&self, rows: &[RowId], out: &mut RowBuf) -> Result<()> {
        self.embedded.corpus().gather(rows, out)
    }

    fn scan(
        &self,
        range: Range<RowId>,
        visit: &mut dyn FnMut(RowId, Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        self.embedded.corpus().scan(range, visit)
    }

    fn origin(&self, row: RowId) -> RowId {
        let unit = self
            .units
            .map_or(Some(row), |u| u.get(row as usize).copied());
        unit.map_or(row, |unit| self.corpus.origin(unit))
    }

    fn view(&self) -> Option<Rows<'_>> {
        self.embedded.corpus().view()
    }
}
