//! Which items count as irrelevant where judgements say so of some: all that are not relevant, or those
//! judged irrelevant alone.
//!
//! Judges look at few items, and among those that nobody looked at many may be relevant (tags of songs, clicks).
//! Where they are pushed away as if they were not, the judgements of others are undone.

use super::parameters::Choice;
use crate::Result;
use crate::data::RowId;
use crate::dataset::Dataset;
use crate::supervision::{Judgements, Pool, Relevance, Supervision};

/// Items that count as irrelevant: all that are not relevant, or those judged irrelevant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum IrrelevantItems {
    /// All that are not relevant, judged or not, as trec_eval counts.
    All,
    /// Those judged irrelevant: grades of 0 or less, or dissimilar pairs.
    Judged,
}

impl Choice for IrrelevantItems {
    const ALL: &'static [(&'static str, Self)] = &[
        ("all", IrrelevantItems::All),
        ("judged", IrrelevantItems::Judged),
    ];
}

impl IrrelevantItems {
    /// The relevance that a learner draws from.
    pub(crate) fn of<'a>(self, learner: &str, data: &'a Dataset<'_>) -> Result<DrawnRelevance<'a>> {
        let judged = match (self, data.supervision()) {
            (IrrelevantItems::All, _) => {
                return data.relevance(learner).map(DrawnRelevance::All);
            }
            (_, Supervision::Judgements(judgements)) => Some(judgements),
            (_, Supervision::Comparisons(comparisons)) => comparisons.judgements(),
            _ => None,
        };
        let judged = judged.map(JudgedNegatives::new);
        match judged.filter(|judged| judged.pairs() > 0) {
            Some(judged) => Ok(DrawnRelevance::Judged(judged)),
            None => Err(data.unusable(
                learner,
                "queries with a relevant item and one judged irrelevant (a grade of 0 or less, or a \
                 dissimilar pair) for irrelevant=judged",
            )),
        }
    }
}

/// Relevance with the items that negatives are drawn from.
pub(crate) enum DrawnRelevance<'a> {
    All(&'a dyn Relevance),
    Judged(JudgedNegatives<'a>),
}

impl DrawnRelevance<'_> {
    pub(crate) fn get(&self) -> &dyn Relevance {
        match self {
            DrawnRelevance::All(relevance) => *relevance,
            DrawnRelevance::Judged(judged) => judged,
        }
    }
}

/// Judgements whose unjudged items are neither relevant nor irrelevant.
pub(crate) struct JudgedNegatives<'a> {
    judgements: &'a Judgements,
    /// Numbers of the relevant pairs whose query has an item that was judged irrelevant: of the others nothing
    /// can be learned.
    pairs: Vec<u64>,
}

impl<'a> JudgedNegatives<'a> {
    fn new(judgements: &'a Judgements) -> Self {
        let has_negatives = |number: &u64| {
            let (query, _) = judgements.pair(*number);
            !judgements.irrelevant_to(query).is_empty()
        };
        JudgedNegatives {
            judgements,
            pairs: (0..judgements.pairs()).filter(has_negatives).collect(),
        }
    }
}

impl Relevance for JudgedNegatives<'_> {
    fn queries(&self) -> u64 {
        self.judgements.queries()
    }

    fn items(&self) -> u64 {
        self.judgements.items()
    }

    fn within(&self) -> bool {
        self.judgements.within()
    }

    fn pairs(&self) -> u64 {
        self.pairs.len() as u64
    }

    fn pair(&self, number: u64) -> (RowId, RowId) {
        self.judgements.pair(self.pairs[number as usize])
    }

    fn relevant_count(&self, query: RowId) -> u64 {
        self.judgements.relevant_count(query)
    }

    fn judged_irrelevant(&self, query: RowId) -> Option<&[RowId]> {
        Some(self.judgements.irrelevant_to(query))
    }

    fn is_relevant(&self, query: RowId, item: RowId) -> bool {
        self.judgements.is_relevant(query, item)
    }

    fn relevant(&self, query: RowId, out: &mut Vec<(RowId, f32)>) {
        self.judgements.relevant(query, out);
    }

    fn pool_key(&self, item: RowId) -> u64 {
        self.judgements.pool_key(item)
    }

    fn visit_pool(&self, query: RowId, pool: &Pool, visit: &mut dyn FnMut(usize)) {
        self.judgements.visit_pool(query, pool, visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::linalg::RowBuf;
    use crate::random::Stream;
    use crate::supervision::Judgement;
    use crate::training::warp::Minibatch;

    #[test]
    fn pools_are_drawn_from_what_was_judged_irrelevant() {
        let line = |query, item, grade| Judgement { query, item, grade };
        // Nothing was judged irrelevant to query 1, so that it teaches nothing.
        let lines = [
            line(0, 1, 1.0),
            line(0, 7, 0.0),
            line(0, 9, -1.0),
            line(1, 2, 2.0),
        ];
        let supervision = Supervision::judgements(Judgements::new(2, 1000, &lines).unwrap());
        let rows = |len| MemoryCorpus::new(RowBuf::zeros(len, 1)).unwrap();
        let (queries, items) = (rows(2), rows(1000));
        let data = Dataset::between(&queries, &items, &supervision).unwrap();
        let drawn = IrrelevantItems::Judged.of("test", &data).unwrap();
        let relevance = drawn.get();
        assert_eq!(
            (relevance.irrelevant_count(0), relevance.irrelevant_count(1)),
            (2, 0)
        );
        assert_eq!((relevance.pairs(), relevance.pair(0)), (1, (0, 1)));
        let mut batch = Minibatch::default();
        batch.draw(relevance, 64, Some(64), &mut Stream::new(1, "test", 0));
        assert!(batch.pool.items().iter().all(|item| [7, 9].contains(item)));
        for negatives in [IrrelevantItems::All, IrrelevantItems::Judged] {
            let labels = crate::supervision::Labels::from_numbers(&[0, 0, 1]).unwrap();
            let (rows, plain) = (rows(3), Supervision::labels(labels));
            let plain = Dataset::new(&rows, &plain).unwrap();
            assert_eq!(
                negatives.of("test", &plain).is_ok(),
                negatives == IrrelevantItems::All
            );
        }
    }
}
