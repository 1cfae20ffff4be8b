//! What a model knows of the rows that it learned from, so that whoever evaluates it can tell how many
//! of the evaluated rows it has seen before.
//!
//! It keeps digests of their values ([`RowDigests`]) under a key that comes from the training data: two
//! models' lists cannot be compared with each other, unless one started from the other, and a row can be recognised but not
//! restored.

use crate::Result;
use crate::data::{Corpus, RowDigests, row_digest};
use serde::Serialize;

/// Up to this share of rows with the values of a training row may be chance: equal rows are common.
const CHANCE: f64 = 0.01;

/// Digests of the rows that a model learned from.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingRows {
    /// Rows, or queries where queries and items are different rows.
    pub(crate) units: RowDigests,
    /// Items relevant to a training query, where the model learned from relevance judgements.
    pub(crate) relevant_items: Option<RowDigests>,
}

/// How many of some rows a model has learned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SeenRows {
    /// Rows that were looked at.
    pub rows: u64,
    /// Those that would be recognised: all, unless the model learned from more rows than it keeps
    /// digests of.
    pub recognisable: u64,
    /// Those that have the values of a row that the model learned from.
    pub seen: u64,
}

impl SeenRows {
    /// Share of seen rows among those that would be recognised.
    pub fn share(&self) -> f64 {
        self.seen as f64 / self.recognisable.max(1) as f64
    }

    /// Those of two parts together.
    pub fn and(&self, other: &SeenRows) -> SeenRows {
        SeenRows {
            rows: self.rows + other.rows,
            recognisable: self.recognisable + other.recognisable,
            seen: self.seen + other.seen,
        }
    }

    /// Whether so many were seen that what is measured on them is not a held-out result. A row in a
    /// hundred may have the values of another by chance.
    pub fn is_leak(&self) -> bool {
        self.share() > CHANCE
    }
}

impl TrainingRows {
    /// Number of rows or queries that the model learned from.
    pub fn rows(&self) -> u64 {
        self.units.rows()
    }

    /// Those of two models under the same key.
    pub(crate) fn and(&self, more: &TrainingRows) -> TrainingRows {
        let items = self
            .relevant_items
            .as_ref()
            .zip(more.relevant_items.as_ref());
        TrainingRows {
            units: self.units.and(&more.units),
            relevant_items: items.map(|(items, more)| items.and(more)),
        }
    }

    /// How many of some rows are among the units.
    pub(super) fn seen(&self, rows: &dyn Corpus, key: &[u8; 32]) -> Result<SeenRows> {
        let known = self.knows(rows, key)?;
        let count =
            |holds: fn(&Option<bool>) -> bool| known.iter().filter(|row| holds(row)).count();
        Ok(SeenRows {
            rows: rows.len(),
            recognisable: count(Option::is_some) as u64,
            seen: count(|row| *row == Some(true)) as u64,
        })
    }

    /// For every one of some rows whether it is among the units; `None` where that cannot be told.
    pub(super) fn knows(&self, rows: &dyn Corpus, key: &[u8; 32]) -> Result<Vec<Option<bool>>> {
        let mut known = Vec::new();
        visit(rows, key, &mut |digest| {
            known.push(self.units.contains(digest))
        })?;
        Ok(known)
    }

    /// For every one of some items whether it is among the relevant ones; `None` where these were not
    /// kept, or not all.
    pub(super) fn seen_items(
        &self,
        items: &dyn Corpus,
        key: &[u8; 32],
    ) -> Result<Option<Vec<bool>>> {
        let Some(relevant) = &self.relevant_items else {
            return Ok(None);
        };
        let mut seen = Vec::new();
        visit(items, key, &mut |digest| {
            seen.push(relevant.contains(digest))
        })?;
        Ok(seen.into_iter().collect())
    }
}

fn visit(rows: &dyn Corpus, key: &[u8; 32], visit: &mut dyn FnMut(u64)) -> Result<()> {
    rows.scan(0..rows.len(), &mut |_, rows| {
        rows.iter().for_each(|row| visit(row_digest(key, row)));
        Ok(())
    })
}
