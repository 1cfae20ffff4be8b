//! Which rows make a batch, and which of its pairs are relevant.
//!
//! With labels a batch is balanced: some rows of each of several classes, so that every row has
//! relevant and irrelevant others. Without, it is the ends of relevant pairs drawn uniformly. Beside
//! these come items drawn uniformly: where queries are another corpus, items that no training query
//! asks for would never be seen as negatives otherwise. A row is in a batch once.

use crate::Result;
use crate::data::{Corpus, RowId};
use crate::linalg::RowBuf;
use crate::random::Stream;
use crate::supervision::{Labels, Pool, Relevance};
use crate::training::training_space::fetch;

/// Grade of an item that has no part in an anchor's loss: the anchor itself, or one that says it is relevant while the
/// anchor does not. Irrelevant items have grade 0 and relevant ones more, here 1.
pub(crate) const IGNORED: f32 = -1.0;
const RELEVANT: f32 = 1.0;

/// How batches are drawn.
pub(crate) struct Plan<'a> {
    pub(crate) relevance: &'a dyn Relevance,
    /// Classes to balance, where rows have some.
    pub(crate) labels: Option<&'a Labels>,
    /// Whether proxies of the classes are the anchors.
    pub(crate) proxies: bool,
    /// Rows in a batch, about.
    pub(crate) rows: usize,
    /// Rows of a class, at most, unless there are too few classes to fill a batch.
    pub(crate) per_class: usize,
    /// Items drawn beside these.
    pub(crate) drawn: usize,
}

impl Plan<'_> {
    /// Classes of at least two rows: those of one row have nothing to pull together.
    pub(crate) fn usable_classes(&self) -> Vec<u32> {
        let Some(labels) = self.labels else {
            return Vec::new();
        };
        (0..labels.classes() as u32)
            .filter(|class| labels.members(*class).len() >= 2)
            .collect()
    }
}

/// Rows of a batch and how they stand to each other.
#[derive(Default)]
pub(crate) struct Batch {
    /// Queries from another corpus, in increasing order; none where items are their own queries.
    pub(crate) queries: Vec<RowId>,
    /// Items in increasing order.
    pub(crate) items: Pool,
    /// Of every anchor (query, item or proxy) the grade of every item, anchor after anchor.
    pub(crate) grades: Vec<f32>,
}

impl Batch {
    /// Draw anew.
    pub(crate) fn draw(&mut self, plan: &Plan<'_>, classes: &[u32], random: &mut Stream) {
        let relevance = plan.relevance;
        let mut items = Vec::with_capacity(plan.rows + plan.drawn);
        self.queries.clear();
        if let Some(labels) = plan.labels {
            balanced(plan, labels, classes, random, &mut items);
        } else {
            for _ in 0..(plan.rows / 2).max(1) {
                let (query, item) = relevance.pair(random.below(relevance.pairs()));
                items.push(item);
                if relevance.within() {
                    items.push(query);
                } else {
                    self.queries.push(query);
                }
            }
        }
        items.extend((0..plan.drawn).map(|_| random.below(relevance.items())));
        items.sort_unstable();
        items.dedup();
        self.queries.sort_unstable();
        self.queries.dedup();
        self.items.fill(relevance, items.into_iter());
        match plan.labels {
            Some(labels) if plan.proxies => self.grade_by_class(labels.classes()),
            _ => self.grade_by_row(relevance),
        }
    }

    /// Proxies are the anchors: rows of their class are relevant.
    fn grade_by_class(&mut self, classes: usize) {
        let count = self.items.items().len();
        self.grades.clear();
        self.grades.resize(classes * count, 0.0);
        for (class, grades) in self.grades.chunks_exact_mut(count).enumerate() {
            for place in self.items.places(class as u64) {
                grades[place] = RELEVANT;
            }
        }
    }

    fn grade_by_row(&mut self, relevance: &dyn Relevance) {
        let items = self.items.items();
        let own = self.queries.is_empty();
        let anchors = if own { items } else { &self.queries[..] };
        let count = items.len();
        self.grades.clear();
        self.grades.resize(anchors.len() * count, 0.0);
        for (anchor, id) in anchors.iter().enumerate() {
            let grades = &mut self.grades;
            relevance.visit_pool(*id, &self.items, &mut |place| {
                // The anchor itself is visited too.
                if own && place == anchor {
                    grades[anchor * count + place] = IGNORED;
                    return;
                }
                grades[anchor * count + place] = RELEVANT;
                // Cosine has no direction: what is relevant one way is not pushed off the other way.
                let back = place * count + anchor;
                if own && grades[back] == 0.0 {
                    grades[back] = IGNORED;
                }
            });
        }
    }

    /// The vectors of the queries and then of the items, less the origin and multiplied.
    pub(crate) fn fetch(
        &self,
        queries: &dyn Corpus,
        items: &dyn Corpus,
        origin: Option<&[f32]>,
        factor: f32,
        out: &mut RowBuf,
    ) -> Result<()> {
        let (first, dim) = (self.queries.len(), items.dim());
        out.reset(first + self.items.items().len(), dim);
        let (left, right) = out.values_mut().split_at_mut(first * dim);
        fetch(queries, &self.queries, origin, factor, left)?;
        fetch(items, self.items.items(), origin, factor, right)
    }
}

/// Different rows of different classes.
fn balanced(
    plan: &Plan<'_>,
    labels: &Labels,
    classes: &[u32],
    random: &mut Stream,
    out: &mut Vec<RowId>,
) {
    let available = classes.len();
    if available == 0 {
        return;
    }
    let per_class = plan.per_class.max(plan.rows / available);
    // Small classes give fewer rows, so that more of them are needed.
    let mean = (labels.len() / labels.classes().max(1)).clamp(2, per_class);
    for class in random.choose(available as u64, (plan.rows / mean).max(2)) {
        let members = labels.members(classes[class as usize]);
        let chosen = random.choose(members.len() as u64, per_class);
        out.extend(
            chosen
                .iter()
                .map(|place| RowId::from(members[*place as usize])),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervision::{Judgement, Judgements};

    fn drawn(plan: &Plan<'_>) -> Batch {
        let mut batch = Batch::default();
        batch.draw(plan, &plan.usable_classes(), &mut Stream::new(3, "test", 0));
        batch
    }

    #[test]
    fn a_labelled_batch_has_some_rows_of_some_classes() {
        // 50 classes of 6 rows and one of a single row.
        let classes: Vec<i64> = (0..301)
            .map(|row| if row == 300 { 99 } else { row % 50 })
            .collect();
        let labels = Labels::from_numbers(&classes).unwrap();
        let mut plan = Plan {
            relevance: &labels,
            labels: Some(&labels),
            proxies: false,
            rows: 32,
            per_class: 4,
            drawn: 0,
        };
        let batch = drawn(&plan);
        let items = batch.items.items();
        assert_eq!(items.len(), 32);
        for (anchor, grades) in batch.grades.chunks_exact(32).enumerate() {
            let count = |grade| grades.iter().filter(|g| **g == grade).count();
            assert_eq!((count(RELEVANT), count(0.0)), (3, 28));
            assert_eq!(grades[anchor], IGNORED);
            for (place, grade) in grades.iter().enumerate() {
                let relevant = labels.is_relevant(items[anchor], items[place]);
                assert_eq!(*grade == RELEVANT, relevant);
            }
        }
        plan.proxies = true;
        let batch = drawn(&plan);
        for (class, grades) in batch.grades.chunks_exact(32).enumerate() {
            for (item, grade) in batch.items.items().iter().zip(grades) {
                let own = labels.of()[*item as usize] == class as u32;
                assert_eq!(*grade == RELEVANT, own);
            }
        }
        // Few classes: more rows of each. 240 rows asked of 2 classes of 150.
        let two: Vec<i64> = (0..300).map(|row| row % 2).collect();
        let labels = Labels::from_numbers(&two).unwrap();
        plan = Plan {
            relevance: &labels,
            labels: Some(&labels),
            rows: 240,
            proxies: false,
            ..plan
        };
        assert_eq!(drawn(&plan).items.items().len(), 240);
    }

    #[test]
    fn pairs_between_corpora_come_with_drawn_items() {
        let line = |query, item| Judgement {
            query,
            item,
            grade: 1.0,
        };
        let judged = Judgements::new(3, 40, &[line(0, 5), line(0, 6), line(2, 5)]).unwrap();
        let plan = Plan {
            relevance: &judged,
            labels: None,
            proxies: false,
            rows: 40,
            per_class: 4,
            drawn: 30,
        };
        let batch = drawn(&plan);
        // 20 draws of 3 pairs: every pair came, query 1 has none.
        assert_eq!(batch.queries, [0, 2]);
        let items = batch.items.items();
        assert!(items.len() > 10 && items.windows(2).all(|w| w[0] < w[1]));
        let grades = batch.grades.chunks_exact(items.len());
        for (query, grades) in batch.queries.iter().zip(grades) {
            for (item, grade) in items.iter().zip(grades) {
                assert_eq!(*grade == RELEVANT, judged.is_relevant(*query, *item));
                assert_ne!(*grade, IGNORED);
            }
        }
    }

    #[test]
    fn what_is_relevant_one_way_is_not_pushed_off_the_other_way() {
        let lines = [(0, 1), (2, 3)].map(|(query, item)| Judgement {
            query,
            item,
            grade: 1.0,
        });
        let judged = Judgements::within_one(4, &lines).unwrap();
        let plan = Plan {
            relevance: &judged,
            labels: None,
            proxies: false,
            rows: 32,
            per_class: 4,
            drawn: 0,
        };
        let batch = drawn(&plan);
        assert_eq!(batch.items.items(), [0, 1, 2, 3]);
        let letter = |grade: &f32| match *grade {
            RELEVANT => '+',
            IGNORED => '.',
            _ => '-',
        };
        let grades: String = batch.grades.iter().map(letter).collect();
        assert_eq!(grades, ".+--..----.+--..");
    }
}
