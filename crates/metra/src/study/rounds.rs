//! Who is searched for by whom: the rounds of a protocol over a held-out part.
//!
//! Judging and showing a ranking take the same rounds from here, so that what a sheet of answers shows is
//! what was counted.

use super::material::{Judging, Material, Protocol, no_camera};
use crate::Result;
use crate::data::{Corpus, Subset};
use crate::evaluate::{AgainstGallery, LeaveOneOut, QrelsOf, ReIdentification, Truth, single_shot};
use crate::metric::{Chain, Side};
use crate::supervision::Supervision;

/// Embedded queries and items of one search, with the right answers.
pub(super) struct Round<'r> {
    /// The queries.
    pub(super) queries: &'r dyn Corpus,
    /// The units that they are.
    pub(super) ids: &'r [u64],
    /// The items that the queries are, where they are items too.
    pub(super) own: Option<&'r [u64]>,
    /// The items.
    pub(super) items: &'r dyn Corpus,
    /// Rows of the collection that the items are; `None` for all of it.
    pub(super) item_ids: Option<&'r [u64]>,
    /// What is right.
    pub(super) truth: &'r dyn Truth,
}

impl Material<'_> {
    /// Visit the rounds in which `judging` ranks these units. `trained` are the units learned from.
    /// Classes found are no ranking and have none.
    pub(super) fn rounds(
        &self,
        chain: &Chain,
        units: &[u64],
        trained: &[u64],
        judging: &Judging,
        visit: &mut dyn FnMut(&Round<'_>) -> Result<()>,
    ) -> Result<()> {
        if let Supervision::Judgements(judgements) = &self.supervision {
            let queries = self.queries.unwrap_or(self.items);
            let asking = self.embed(chain, Side::Query, queries, Some(units))?;
            let items = self.embed(chain, Side::Item, self.items, None)?;
            return visit(&Round {
                queries: &asking,
                ids: units,
                own: self.queries.is_none().then_some(units),
                items: &items,
                item_ids: None,
                truth: &QrelsOf::new(judgements, units)?,
            });
        }
        let labels = self.need_labels()?;
        let part_labels = labels.select(units)?;
        let asking = self.embed(chain, Side::Query, self.items, Some(units))?;
        if judging.protocol == Protocol::AgainstTraining {
            let items = self.embed(chain, Side::Item, self.items, Some(trained))?;
            return visit(&Round {
                queries: &asking,
                ids: units,
                own: None,
                items: &items,
                item_ids: Some(trained),
                truth: &AgainstGallery::new(&part_labels, &labels.select(trained)?),
            });
        }
        // One map or two: the gallery goes through the map of items.
        let items = self.embed(chain, Side::Item, self.items, Some(units))?;
        let cameras = self.items.groups.map(|g| g.select(units));
        let every: Vec<u64> = (0..units.len() as u64).collect();
        let mut each_against_the_others = |truth: &dyn Truth| {
            visit(&Round {
                queries: &asking,
                ids: units,
                own: Some(&every),
                items: &items,
                item_ids: Some(units),
                truth,
            })
        };
        match judging.protocol {
            Protocol::SingleShot { repeats } => {
                let unit_of = |rows: &[u64]| -> Vec<u64> {
                    rows.iter().map(|row| units[*row as usize]).collect()
                };
                for trial in single_shot(&part_labels, cameras.as_ref(), repeats, judging.seed)? {
                    let asked = part_labels.select(&trial.queries)?;
                    let searched = part_labels.select(&trial.gallery)?;
                    let (ids, item_ids) = (unit_of(&trial.queries), unit_of(&trial.gallery));
                    visit(&Round {
                        queries: &Subset::new(&asking, trial.queries)?,
                        ids: &ids,
                        own: None,
                        items: &Subset::new(&items, trial.gallery)?,
                        item_ids: Some(&item_ids),
                        truth: &AgainstGallery::new(&asked, &searched),
                    })?;
                }
                Ok(())
            }
            Protocol::CrossCamera => {
                let cameras = cameras.as_ref().ok_or_else(no_camera)?;
                let truth = ReIdentification::new(&part_labels, cameras, &part_labels, cameras)?;
                each_against_the_others(&truth)
            }
            _ => each_against_the_others(&LeaveOneOut(&part_labels)),
        }
    }
}
