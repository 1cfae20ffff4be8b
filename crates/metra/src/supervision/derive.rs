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
//! | orderings | by their labels | yes | by their labels | attribute differences |
//! | taxonomy | by their labels | yes | by their labels | same class < sibling < cousin |
//!
//! A triplet is a quadruplet whose pairs share a row. Nothing is ever listed that can be drawn.

use super::{Comparisons, Quadruplet, Relevance, Supervision, Taxonomy};
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
        Supervision::Taxonomy(taxonomy) => Ok(by_kinship(taxonomy, count, seed)),
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

/// Draws (i, j) and (i, k) with i, j closer kin than i, k: same class before sibling before cousin.
fn by_kinship(taxonomy: &Taxonomy, count: usize, seed: u64) -> Vec<Quadruplet> {
    let labels = taxonomy.labels();
    let mut random = Stream::new(seed, "quadruplets of taxonomy", 0);
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
        if taxonomy.kinship(class, near_class) >= taxonomy.kinship(class, far_class) {
            continue;
        }
        let near = of_class(near_class, &mut random);
        let far = of_class(far_class, &mut random);
        if near != anchor {
            all.push(as_quadruplet(&[anchor, near, far]));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervision::{Labels, Tree};

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
        let all = by_kinship(&taxonomy, 600, 1);
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
}
