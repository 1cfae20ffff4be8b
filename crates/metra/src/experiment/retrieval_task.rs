//! The retrieval tasks of a protocol: the queries, the gallery and the relevant items of each.
//!
//! Evaluating and showing a ranking take the same rounds from here, so that what a sheet of answers shows is
//! what was counted.

use super::protocol::{EvaluationSettings, Protocol, no_camera};
use crate::Result;
use crate::data::{Corpus, Subset};
use crate::dataset::Dataset;
use crate::evaluate::{
    AgainstGallery, LeaveOneOut, QrelsOf, ReIdentification, SharingLabels, Truth, single_shot,
};
use crate::model::{Embedding, Side};
use crate::supervision::Supervision;

/// Embedded queries and items of one search, with the right answers.
pub(super) struct RetrievalTask<'r> {
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

impl Dataset<'_> {
    /// Visit the searches in which `settings` ranks these units. `trained` are the units learned from.
    /// Classes found are no ranking and have none.
    pub(super) fn retrieval_tasks(
        &self,
        chain: &dyn Embedding,
        units: &[u64],
        trained: &[u64],
        settings: &EvaluationSettings,
        visit: &mut dyn FnMut(&RetrievalTask<'_>) -> Result<()>,
    ) -> Result<()> {
        if let Supervision::Judgements(judgements) = self.supervision() {
            let embedded_queries = self.embed_queries(chain, units)?;
            let items = self.embed_items(chain, Side::Item, None)?;
            return visit(&RetrievalTask {
                queries: &embedded_queries,
                ids: units,
                own: (!self.has_separate_queries()).then_some(units),
                items: &items,
                item_ids: None,
                truth: &QrelsOf::new(judgements, units)?,
            });
        }
        let embedded_queries = self.embed_items(chain, Side::Query, Some(units))?;
        if settings.protocol == Protocol::AgainstTraining {
            let items = self.embed_items(chain, Side::Item, Some(trained))?;
            let mut against_training = |truth: &dyn Truth| {
                visit(&RetrievalTask {
                    queries: &embedded_queries,
                    ids: units,
                    own: None,
                    items: &items,
                    item_ids: Some(trained),
                    truth,
                })
            };
            if let Supervision::LabelSets(sets) = self.supervision() {
                return against_training(&SharingLabels::against(sets, units, trained)?);
            }
            let labels = self.evaluation_labels()?;
            let (queries, gallery) = (labels.select(units)?, labels.select(trained)?);
            return against_training(&AgainstGallery::new(&queries, &gallery));
        }
        // One map or two: the gallery goes through the map of items.
        let items = self.embed_items(chain, Side::Item, Some(units))?;
        let every: Vec<u64> = (0..units.len() as u64).collect();
        let mut each_against_the_others = |truth: &dyn Truth| {
            visit(&RetrievalTask {
                queries: &embedded_queries,
                ids: units,
                own: Some(&every),
                items: &items,
                item_ids: Some(units),
                truth,
            })
        };
        if let Supervision::LabelSets(sets) = self.supervision() {
            return each_against_the_others(&SharingLabels::leave_one_out(sets, units)?);
        }
        let part_labels = self.evaluation_labels()?.select(units)?;
        let cameras = self.item_groups().map(|g| g.select(units));
        match settings.protocol {
            Protocol::SingleShot { repeats } => {
                let unit_of = |rows: &[u64]| -> Vec<u64> {
                    rows.iter().map(|row| units[*row as usize]).collect()
                };
                for trial in single_shot(&part_labels, cameras.as_ref(), repeats, settings.seed)? {
                    let query_labels = part_labels.select(&trial.queries)?;
                    let searched = part_labels.select(&trial.gallery)?;
                    let (ids, item_ids) = (unit_of(&trial.queries), unit_of(&trial.gallery));
                    visit(&RetrievalTask {
                        queries: &Subset::new(&embedded_queries, trial.queries)?,
                        ids: &ids,
                        own: None,
                        items: &Subset::new(&items, trial.gallery)?,
                        item_ids: Some(&item_ids),
                        truth: &AgainstGallery::new(&query_labels, &searched),
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
