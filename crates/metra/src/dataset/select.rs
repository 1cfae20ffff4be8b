//! Parts of a data set: some of its units, and its vectors after fitted preprocessing.

use super::builder::stoppable;
use super::{Dataset, GroupedVectors};
use crate::Result;
use crate::data::{Corpus, CorpusRef, Groups, Subset};
use crate::supervision::Supervision;
use std::borrow::Cow;
use std::sync::OnceLock;

impl GroupedVectors<'_> {
    /// The same vectors, borrowed.
    fn borrowed(&self) -> GroupedVectors<'_> {
        GroupedVectors {
            corpus: CorpusRef::Borrowed(&*self.corpus),
            groups: self.groups.as_deref().map(Cow::Borrowed),
        }
    }

    /// Some of the vectors.
    fn select(&self, rows: &[u64]) -> Result<GroupedVectors<'_>> {
        let part = Subset::new(&*self.corpus, rows.to_vec())?;
        Ok(GroupedVectors {
            corpus: CorpusRef::Owned(Box::new(part)),
            groups: self.groups.as_ref().map(|g| Cow::Owned(g.select(rows))),
        })
    }
}

impl<'a> Dataset<'a> {
    /// The part of some units. Of judgements it keeps those of these queries, and all items; of all
    /// other supervision what it says of these rows alone.
    pub fn select(&self, units: &[u64]) -> Result<Dataset<'_>> {
        let (mut items, mut queries) = (self.items.borrowed(), None);
        let mut class_supervision = Vec::new();
        let supervision = match (&*self.supervision, &self.queries) {
            (Supervision::Judgements(judgements), Some(asking)) => {
                queries = Some(asking.select(units)?);
                Supervision::Judgements(judgements.select_queries(units)?)
            }
            // The queries are items too: all rows stay, and other queries ask for nothing.
            (Supervision::Judgements(judgements), None) => {
                Supervision::Judgements(judgements.restricted_to(units))
            }
            (supervision, _) => {
                // The whole may be one slice, which a list of its rows would hide.
                if !units.iter().copied().eq(0..self.items.corpus.len()) {
                    items = self.items.select(units)?;
                }
                let beside = self.class_supervision.iter();
                class_supervision = beside.map(|s| s.select(units)).collect::<Result<_>>()?;
                supervision.select(units)?
            }
        };
        Ok(Dataset {
            items,
            queries,
            supervision: Cow::Owned(supervision),
            class_supervision,
            narrowing: self.narrowing.clone(),
            two_spaces: self.two_spaces,
            vector_dims: self.vector_dims.clone(),
            stacked: self.stacked,
            storage: self.storage.clone(),
            stop: self.stop,
            fingerprint: OnceLock::new(),
        })
    }

    /// The rows of some units.
    pub fn unit_rows(&self, units: &[u64]) -> Result<CorpusRef<'_>> {
        let rows = self.queries();
        // The whole may be one slice, or lie on other machines, which a list of its rows would hide.
        if units.iter().copied().eq(0..rows.len()) {
            return Ok(CorpusRef::Borrowed(rows));
        }
        let part = Subset::new(rows, units.to_vec())?;
        Ok(CorpusRef::Owned(Box::new(part)))
    }

    /// The items relevant to some units, where there are relevance judgements.
    pub(crate) fn relevant_items(&self, units: &[u64]) -> Result<Option<CorpusRef<'_>>> {
        let Supervision::Judgements(judgements) = &*self.supervision else {
            return Ok(None);
        };
        let relevant = judgements.restricted_to(units).judged_items();
        let items = (0..).zip(relevant).filter(|(_, relevant)| *relevant);
        let part = Subset::new(self.items(), items.map(|(item, _)| item).collect())?;
        Ok(Some(CorpusRef::Owned(Box::new(part))))
    }

    /// The same data with other vectors in place of items and queries, row for row; `change` is told whether it sees
    /// separate queries.
    pub(crate) fn with_vectors<'b>(
        &'b self,
        mut change: impl FnMut(bool, &'b dyn Corpus, Option<&'b Groups>) -> Result<CorpusRef<'b>>,
    ) -> Result<Dataset<'b>> {
        let mut changed =
            |of_queries: bool, vectors: &'b GroupedVectors<'a>| -> Result<GroupedVectors<'b>> {
                let groups = vectors.groups.as_deref();
                Ok(GroupedVectors {
                    corpus: stoppable(change(of_queries, &*vectors.corpus, groups)?, self.stop),
                    groups: groups.map(Cow::Borrowed),
                })
            };
        Ok(Dataset {
            items: changed(false, &self.items)?,
            queries: (self.queries.as_ref())
                .map(|queries| changed(true, queries))
                .transpose()?,
            supervision: Cow::Borrowed(&self.supervision),
            class_supervision: self.class_supervision.clone(),
            narrowing: None,
            two_spaces: self.two_spaces,
            vector_dims: self.vector_dims.clone(),
            stacked: self.stacked,
            storage: self.storage.clone(),
            stop: self.stop,
            fingerprint: OnceLock::new(),
        })
    }
}
