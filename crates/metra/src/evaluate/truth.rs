//! Ground truth: the relevant items of every query, and the items that are excluded from its
//! ranking.
//!
//! One trait for all protocols, so that the counting pass knows none of them. The rules are those
//! of the sources: leave-one-out drops the query itself by its row number, never by its rank;
//! Market-1501 (Zheng et al., ICCV 2015) drops items of the query's identity seen by the query's
//! own camera and everything labelled −1, and keeps distractors.

use crate::data::{Groups, RowId};
use crate::supervision::{Judgements, LabelSets, Labels, Relevance};
use crate::{Error, Result};
use std::collections::HashMap;

/// What counts for one query. The lists share no item.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judged {
    /// Relevant items with their grades (above 0), increasing by item.
    pub relevant: Vec<(RowId, f32)>,
    /// Items taken out of the ranking, increasing. They are neither right nor wrong.
    pub excluded: Vec<RowId>,
}

impl Judged {
    /// Forget everything, to be used for the next query.
    pub(crate) fn clear(&mut self) {
        self.relevant.clear();
        self.excluded.clear();
    }
}

/// The right answers of an evaluation.
pub trait Truth: Sync {
    /// Number of queries.
    fn queries(&self) -> usize;

    /// Number of items.
    fn items(&self) -> u64;

    /// What the query belongs to, such as its identity: queries of one cluster are resampled
    /// together by the bootstrap, and are counted together because they share relevant items.
    fn cluster(&self, query: usize) -> u64;

    /// Write what counts for `query` into `out`, which is empty.
    fn judge(&self, query: usize, out: &mut Judged);
}

/// Every row is a query against all other rows of its corpus; rows of its class are relevant.
#[derive(Debug, Clone, Copy)]
pub struct LeaveOneOut<'a>(pub &'a Labels);

impl Truth for LeaveOneOut<'_> {
    fn queries(&self) -> usize {
        self.0.len()
    }

    fn items(&self) -> u64 {
        self.0.len() as u64
    }

    fn cluster(&self, query: usize) -> u64 {
        u64::from(self.0.of()[query])
    }

    fn judge(&self, query: usize, out: &mut Judged) {
        self.0.relevant(query as RowId, &mut out.relevant);
        out.excluded.push(query as RowId);
    }
}

/// Rows that may share labels: the first ones are queries, against each other or against the rows that follow them.
#[derive(Debug, Clone)]
pub(crate) struct SharingLabels {
    sets: LabelSets,
    queries: usize,
    first_item: RowId,
}

impl SharingLabels {
    /// Every one of these rows against the others.
    pub(crate) fn leave_one_out(sets: &LabelSets, rows: &[RowId]) -> Result<Self> {
        Ok(SharingLabels {
            sets: sets.select(rows)?,
            queries: rows.len(),
            first_item: 0,
        })
    }

    /// Rows against others.
    pub(crate) fn against(sets: &LabelSets, queries: &[RowId], items: &[RowId]) -> Result<Self> {
        Ok(SharingLabels {
            sets: sets.select(&[queries, items].concat())?,
            queries: queries.len(),
            first_item: queries.len() as RowId,
        })
    }
}

impl Truth for SharingLabels {
    fn queries(&self) -> usize {
        self.queries
    }

    fn items(&self) -> u64 {
        Relevance::items(&self.sets) - self.first_item
    }

    fn cluster(&self, query: usize) -> u64 {
        u64::from(self.sets.combinations().of()[query])
    }

    fn judge(&self, query: usize, out: &mut Judged) {
        self.sets.relevant(query as RowId, &mut out.relevant);
        out.relevant.retain(|(item, _)| *item >= self.first_item);
        for (item, _) in &mut out.relevant {
            *item -= self.first_item;
        }
        if self.first_item == 0 {
            out.excluded.push(query as RowId);
        }
    }
}

/// Queries against another corpus: items whose class has the same name are relevant.
#[derive(Debug, Clone)]
pub struct AgainstGallery<'a> {
    queries: &'a Labels,
    gallery: &'a Labels,
    /// The gallery's class for each class of the queries, where there is one.
    class: Vec<Option<u32>>,
}

impl<'a> AgainstGallery<'a> {
    /// Labels of the queries and of the gallery; classes are matched by name.
    pub fn new(queries: &'a Labels, gallery: &'a Labels) -> Self {
        AgainstGallery {
            queries,
            gallery,
            class: matching_classes(queries, gallery),
        }
    }
}

impl Truth for AgainstGallery<'_> {
    fn queries(&self) -> usize {
        self.queries.len()
    }

    fn items(&self) -> u64 {
        self.gallery.len() as u64
    }

    fn cluster(&self, query: usize) -> u64 {
        u64::from(self.queries.of()[query])
    }

    fn judge(&self, query: usize, out: &mut Judged) {
        if let Some(class) = self.class[self.queries.of()[query] as usize] {
            let members = self.gallery.members(class).iter();
            out.relevant.extend(members.map(|m| (RowId::from(*m), 1.0)));
        }
    }
}

/// Re-identification across cameras by the rule of Market-1501.
///
/// Relevant are items of the query's identity from other cameras. Excluded are items of the same
/// identity from the same camera, and for every query the items of identity `-1` (bad detections).
/// Identities that no query has (`0` in Market-1501) are distractors: they stay and are wrong.
#[derive(Debug, Clone)]
pub struct ReIdentification<'a> {
    gallery: AgainstGallery<'a>,
    query_cameras: Vec<Option<u32>>,
    item_cameras: &'a [u32],
    ignored: Vec<RowId>,
}

impl<'a> ReIdentification<'a> {
    /// Identities and cameras of queries and items; both are matched by name.
    pub fn new(
        queries: &'a Labels,
        query_cameras: &Groups,
        items: &'a Labels,
        item_cameras: &'a Groups,
    ) -> Result<Self> {
        for (what, cameras, labels) in [
            ("cameras of the queries", query_cameras, queries),
            ("cameras of the items", item_cameras, items),
        ] {
            if cameras.len() != labels.len() {
                return Err(Error::shape(what, labels.len(), cameras.len()));
            }
        }
        let translation: Vec<Option<u32>> = query_cameras
            .names()
            .iter()
            .map(|name| item_cameras.names().iter().position(|n| n == name))
            .map(|place| place.map(|p| p as u32))
            .collect();
        let ignored = (0..items.classes() as u32)
            .filter(|class| items.name(*class) == "-1")
            .flat_map(|class| items.members(class).iter().map(|m| RowId::from(*m)))
            .collect();
        Ok(ReIdentification {
            gallery: AgainstGallery::new(queries, items),
            query_cameras: query_cameras
                .of()
                .iter()
                .map(|camera| translation[*camera as usize])
                .collect(),
            item_cameras: item_cameras.of(),
            ignored,
        })
    }
}

impl Truth for ReIdentification<'_> {
    fn queries(&self) -> usize {
        self.gallery.queries()
    }

    fn items(&self) -> u64 {
        self.gallery.items()
    }

    fn cluster(&self, query: usize) -> u64 {
        self.gallery.cluster(query)
    }

    fn judge(&self, query: usize, out: &mut Judged) {
        let class = self.gallery.queries.of()[query];
        if self.gallery.queries.name(class) != "-1" {
            self.gallery.judge(query, out);
        }
        let camera = self.query_cameras[query];
        out.relevant.retain(|(item, _)| {
            let same_camera = Some(self.item_cameras[*item as usize]) == camera;
            if same_camera {
                out.excluded.push(*item);
            }
            !same_camera
        });
        out.excluded.extend_from_slice(&self.ignored);
        out.excluded.sort_unstable();
    }
}

/// Graded judgements: what is not judged is irrelevant. Every query is its own cluster.
#[derive(Debug, Clone, Copy)]
pub struct Qrels<'a>(pub &'a Judgements);

impl Truth for Qrels<'_> {
    fn queries(&self) -> usize {
        Relevance::queries(self.0) as usize
    }

    fn items(&self) -> u64 {
        Relevance::items(self.0)
    }

    fn cluster(&self, query: usize) -> u64 {
        query as u64
    }

    fn judge(&self, query: usize, out: &mut Judged) {
        self.0.relevant(query as RowId, &mut out.relevant);
        if self.0.within() {
            out.excluded.push(query as RowId);
        }
    }
}

/// Some queries of judgements. Within one corpus the query itself, which is a row of the items, is
/// left out.
#[derive(Debug, Clone, Copy)]
pub struct QrelsOf<'a> {
    judgements: &'a Judgements,
    queries: &'a [RowId],
}

impl<'a> QrelsOf<'a> {
    /// These queries, by their numbers in the judgements.
    pub(crate) fn new(judgements: &'a Judgements, queries: &'a [RowId]) -> Result<Self> {
        let known = Relevance::queries(judgements);
        if let Some(query) = queries.iter().find(|query| **query >= known) {
            return Err(Error::shape(
                "number of a query",
                format!("below {known}"),
                query,
            ));
        }
        Ok(QrelsOf {
            judgements,
            queries,
        })
    }
}

impl Truth for QrelsOf<'_> {
    fn queries(&self) -> usize {
        self.queries.len()
    }

    fn items(&self) -> u64 {
        Relevance::items(self.judgements)
    }

    fn cluster(&self, query: usize) -> u64 {
        self.queries[query]
    }

    fn judge(&self, query: usize, out: &mut Judged) {
        Qrels(self.judgements).judge(self.queries[query] as usize, out);
    }
}

/// For each class of `from` the class of the same name in `to`.
pub fn matching_classes(from: &Labels, to: &Labels) -> Vec<Option<u32>> {
    let known: HashMap<&str, u32> = (0..to.classes() as u32).map(|c| (to.name(c), c)).collect();
    (0..from.classes() as u32)
        .map(|class| known.get(from.name(class)).copied())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervision::Judgement;

    fn judged(truth: &dyn Truth, query: usize) -> Judged {
        let mut out = Judged::default();
        truth.judge(query, &mut out);
        out
    }

    #[test]
    fn market_rule_by_hand() {
        // Query: identity 7 seen by camera c1. Gallery, row by row:
        //   0: 7 by c1  same identity, same camera: junk
        //   1: 7 by c2  right
        //   2: -1 by c2 ignored
        //   3: 0 by c3  distractor: stays, wrong
        //   4: 9 by c1  another identity: stays, wrong
        //   5: 7 by c9  right, from a camera that no query has
        let queries = Labels::from_names(&["7"]).unwrap();
        let items = Labels::from_names(&["7", "7", "-1", "0", "9", "7"]).unwrap();
        let query_cameras = Groups::new(&["c1"]);
        let item_cameras = Groups::new(&["c1", "c2", "c2", "c3", "c1", "c9"]);
        let truth = ReIdentification::new(&queries, &query_cameras, &items, &item_cameras).unwrap();
        let found = judged(&truth, 0);
        assert_eq!(found.relevant, vec![(1, 1.0), (5, 1.0)]);
        assert_eq!(found.excluded, vec![0, 2]);
    }

    #[test]
    fn identity_minus_one_is_never_right() {
        let queries = Labels::from_names(&["-1"]).unwrap();
        let items = Labels::from_names(&["-1", "3"]).unwrap();
        let cameras = Groups::new(&["a"]);
        let item_cameras = Groups::new(&["b", "b"]);
        let truth = ReIdentification::new(&queries, &cameras, &items, &item_cameras).unwrap();
        let found = judged(&truth, 0);
        assert!(found.relevant.is_empty());
        assert_eq!(found.excluded, vec![0]);
    }

    #[test]
    fn a_gallery_is_matched_by_name() {
        let queries = Labels::from_names(&["b", "z"]).unwrap();
        let gallery = Labels::from_names(&["a", "b", "b"]).unwrap();
        let truth = AgainstGallery::new(&queries, &gallery);
        assert_eq!(judged(&truth, 0).relevant, vec![(1, 1.0), (2, 1.0)]);
        assert!(judged(&truth, 1).relevant.is_empty());
    }

    #[test]
    fn leave_one_out_drops_the_query_by_its_row() {
        let labels = Labels::from_numbers(&[4, 5, 4]).unwrap();
        let found = judged(&LeaveOneOut(&labels), 2);
        assert_eq!((found.relevant, found.excluded), (vec![(0, 1.0)], vec![2]));
    }

    #[test]
    fn some_queries_within_a_corpus_leave_themselves_out() {
        let line = |query, item| Judgement {
            query,
            item,
            grade: 1.0,
        };
        let lines = [line(0, 1), line(2, 1), line(2, 3)];
        let judgements = Judgements::within_one(4, &lines).unwrap();
        let truth = QrelsOf::new(&judgements, &[2, 0]).unwrap();
        assert_eq!((truth.queries(), truth.items()), (2, 4));
        let found = judged(&truth, 0);
        assert_eq!(found.relevant, vec![(1, 1.0), (3, 1.0)]);
        assert_eq!(found.excluded, vec![2]);
        assert!(QrelsOf::new(&judgements, &[4]).is_err());
    }

    #[test]
    fn cameras_must_fit_the_labels() {
        let labels = Labels::from_numbers(&[1, 2]).unwrap();
        let (short, full) = (Groups::new(&["a"]), Groups::new(&["a", "b"]));
        assert!(ReIdentification::new(&labels, &short, &labels, &full).is_err());
        assert!(ReIdentification::new(&labels, &full, &labels, &short).is_err());
    }
}
