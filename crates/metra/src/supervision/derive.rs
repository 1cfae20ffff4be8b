//! Derives one kind of supervision from another: triplets from labels, quadruplets from a class
//! tree, and so on.
//!
//! | given | relevance | labels | triplets | quadruplets |
//! | --- | --- | --- | --- | --- |
//! | labels | same class | yes | drawn: same class, other class | of the triplets |
//! | judgements | grade above 0 | – | drawn: relevant, not relevant | of the triplets |
//! | similar pairs | symmetric; unlisted is irrelevant | – | drawn: similar, unlisted | of the triplets |
//! | triplets | – | – | as given | D(a, near) < D(a, far) |
//! | quadruplets | – | – | – | as given |
//! | orderings | by their labels | yes | by their labels | drawn: less apart in no attribute more, in one less |
//! | taxonomy | by their labels | yes | by their labels | same class < sibling < cousin |
//!
//! A triplet is a quadruplet whose pairs share a row. Nothing is ever listed that can be drawn.

use super::{Comparisons, Labels, Orderings, Quadruplet, Relevance, Supervision};
use crate::data::RowId;
use crate::random::Stream;
use crate::{Error, Result};

/// How often a draw is tried again before the supervision is said to hold none.
const TRIES: usize = 64;

/// Quadruplets that say what the supervision says: all of those given (triplets among them), or
/// `count` drawn ones where they follow from labels, judgements, similar pairs or a taxonomy.
pub fn quadruplets(supervision: &Supervision, count: usize, seed: u64) -> Result<Vec<Quadruplet>> {
    match supervision {
        Supervision::Comparisons(comparisons) => {
            let mut all = stated_quadruplets(comparisons);
            if all.is_empty()
                && let Some(relevance) = comparisons.relevance()
            {
                all = drawn(relevance, count, seed);
            }
            Ok(all)
        }
        Supervision::Taxonomy(taxonomy) => {
            let mut random = Stream::new(seed, "quadruplets of taxonomy", 0);
            let is_nearer =
                |class, near, far| taxonomy.kinship(class, near) < taxonomy.kinship(class, far);
            Ok(by_class(taxonomy.labels(), is_nearer, count, &mut random))
        }
        Supervision::Orderings(orderings) => {
            let mut random = Stream::new(seed, "quadruplets of orderings", 0);
            let is_nearer = |class, near, far| is_less_apart(orderings, class, near, far);
            Ok(by_class(orderings.labels(), is_nearer, count, &mut random))
        }
        other => match other.relevance() {
            Some(relevance) if relevance.within() => Ok(drawn(relevance, count, seed)),
            _ => Err(Error::Supervision {
                learner: "a quadruplet".into(),
                needs: "rows of one corpus".into(),
                found: other.describe(),
            }),
        },
    }
}

/// Quadruplets and triplets that were given, triplets as quadruplets that share a row.
pub(crate) fn stated_quadruplets(comparisons: &Comparisons) -> Vec<Quadruplet> {
    let triplets = comparisons.triplets().iter().map(as_quadruplet);
    comparisons
        .quadruplets()
        .iter()
        .copied()
        .chain(triplets)
        .collect()
}

/// (anchor, near, far) as D(anchor, near) < D(anchor, far).
pub fn as_quadruplet(triplet: &[RowId; 3]) -> Quadruplet {
    let [anchor, near, far] = *triplet;
    Quadruplet {
        near: [anchor, near],
        far: [anchor, far],
        strict: true,
    }
}

/// A triplet drawn from relevance: a uniform relevant pair and a uniform irrelevant item. `None`
/// where none was found in a few dozen tries.
pub fn triplet(relevance: &dyn Relevance, random: &mut Stream) -> Option<[RowId; 3]> {
    if relevance.pairs() == 0 {
        return None;
    }
    for _ in 0..TRIES {
        let (query, near) = relevance.pair(random.below(relevance.pairs()));
        let far = match relevance.judged_irrelevant(query) {
            Some([]) => continue,
            Some(judged) => judged[random.below(judged.len() as u64) as usize],
            None => random.below(relevance.items()),
        };
        let itself = relevance.within() && far == query;
        if !itself && !relevance.is_relevant(query, far) {
            return Some([query, near, far]);
        }
    }
    None
}

fn drawn(relevance: &dyn Relevance, count: usize, seed: u64) -> Vec<Quadruplet> {
    let mut random = Stream::new(seed, "triplets of relevance", 0);
    (0..count)
        .map_while(|_| triplet(relevance, &mut random))
        .map(|t| as_quadruplet(&t))
        .collect()
}

/// Whether a class is less apart from `near` than from `far` by its levels: in no attribute more, and in one less.
/// Attributes that do not order all three say nothing.
fn is_less_apart(orderings: &Orderings, class: u32, near: u32, far: u32) -> bool {
    let mut less = false;
    for attribute in 0..orderings.attributes() {
        let level = |class| orderings.level(attribute, class);
        let (Some(own), Some(near), Some(far)) = (level(class), level(near), level(far)) else {
            continue;
        };
        match own.abs_diff(near).cmp(&own.abs_diff(far)) {
            std::cmp::Ordering::Greater => return false,
            std::cmp::Ordering::Less => less = true,
            std::cmp::Ordering::Equal => {}
        }
    }
    less
}

/// Draws (i, j) and (i, k) such that the class of j is nearer to that of i than the class of k.
fn by_class(
    labels: &Labels,
    is_nearer: impl Fn(u32, u32, u32) -> bool,
    count: usize,
    random: &mut Stream,
) -> Vec<Quadruplet> {
    let rows = labels.len() as u64;
    let classes = labels.classes() as u64;
    let mut all = Vec::with_capacity(count);
    let of_class = |class: u32, random: &mut Stream| {
        let members = labels.members(class);
        RowId::from(members[random.below(members.len() as u64) as usize])
    };
    let mut tries = 0;
    while all.len() < count && tries < TRIES * count {
        tries += 1;
        let anchor = random.below(rows);
        let class = labels.of()[anchor as usize];
        // Classes are drawn, not rows, so that small branches count as much as large ones; the
        // own class has half of the draws, since most questions are about it.
        let near_class = if random.below(2) == 0 {
            class
        } else {
            random.below(classes) as u32
        };
        let far_class = random.below(classes) as u32;
        if !is_nearer(class, near_class, far_class) {
            continue;
        }
        let near = of_class(near_class, random);
        let far = of_class(far_class, random);
        if near != anchor {
            all.push(as_quadruplet(&[anchor, near, far]));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervision::{ClassOrdering, Taxonomy, Tree};

    #[test]
    fn triplets_of_labels_are_true() {
        let labels = Labels::from_numbers(&[0, 0, 1, 1, 2]).unwrap();
        let supervision = Supervision::labels(labels.clone());
        let all = quadruplets(&supervision, 500, 1).unwrap();
        assert_eq!(all.len(), 500);
        for q in &all {
            assert!(labels.is_relevant(q.near[0], q.near[1]));
            assert_eq!(q.near[0], q.far[0]);
            assert!(!labels.is_relevant(q.far[0], q.far[1]) && q.far[0] != q.far[1]);
        }
    }

    #[test]
    fn relatives_come_before_strangers_at_every_level() {
        let tree = Tree::from_edges(&[("a", "x"), ("b", "x"), ("c", "y"), ("x", "r"), ("y", "r")]);
        let labels = Labels::from_names(&["a", "a", "b", "b", "c", "c"]).unwrap();
        let taxonomy = Taxonomy::new(labels, tree.unwrap()).unwrap();
        let all = quadruplets(&Supervision::Taxonomy(taxonomy.clone()), 600, 1).unwrap();
        assert_eq!(all.len(), 600);
        let class = |row: RowId| taxonomy.labels().of()[row as usize];
        let mut levels = std::collections::BTreeMap::new();
        for q in &all {
            let near = taxonomy.kinship(class(q.near[0]), class(q.near[1]));
            let far = taxonomy.kinship(class(q.far[0]), class(q.far[1]));
            assert!(near < far);
            *levels.entry((near, far)).or_insert(0) += 1;
        }
        // Same < sibling, same < cousin, sibling < cousin.
        assert_eq!(
            levels.keys().copied().collect::<Vec<_>>(),
            [(0, 1), (0, 2), (1, 2)]
        );
    }

    #[test]
    fn given_triplets_are_quadruplets() {
        let comparisons = Comparisons::new(3).with_triplets(&[[0, 1, 2]]).unwrap();
        let all = quadruplets(&Supervision::Comparisons(comparisons), 10, 1).unwrap();
        assert_eq!((all[0].near, all[0].far, all.len()), ([0, 1], [0, 2], 1));
    }

    #[test]
    fn classes_less_apart_come_before_those_more_apart() {
        // a, b, c, d at 0, 1, 2, 2 by size and 0, 2, 1, 3 by colour; e is not ordered by colour.
        let orderings = Orderings::new(
            Labels::from_names(&["a", "b", "c", "d", "e"]).unwrap(),
            vec![
                ClassOrdering::parse("size", "a<b<c~d<e").unwrap(),
                ClassOrdering::parse("colour", "a<c<b<d").unwrap(),
            ],
        )
        .unwrap();
        let is_nearer = |class, near, far| is_less_apart(&orderings, class, near, far);
        // From a: b is nearer than d in both; b and c each in one; itself is nearer than all.
        assert!(is_nearer(0, 1, 3) && !is_nearer(0, 3, 1));
        assert!(!is_nearer(0, 1, 2) && !is_nearer(0, 2, 1));
        assert!((1..5).all(|far| is_nearer(0, 0, far)));
        // c and d have one size and differ in colour; of e only the size is known.
        assert!(is_nearer(0, 2, 3) && is_nearer(0, 3, 4) && !is_nearer(0, 2, 2));
        let drawn = quadruplets(&Supervision::Orderings(orderings.clone()), 300, 1).unwrap();
        assert_eq!(drawn.len(), 300);
    }
}
