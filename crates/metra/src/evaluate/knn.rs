//! Accuracy of the k-nearest-neighbour classifier: what a space is worth for classification.

use crate::data::Corpus;
use crate::model::Space;
use crate::search::{Neighbours, top_k};
use crate::{Error, Result};

/// The class of each query by majority among its neighbours. Where classes have equally many, the
/// one with the nearest neighbour wins.
pub fn knn_classes(neighbours: &Neighbours, item_classes: &[u32]) -> Result<Vec<u32>> {
    let mut votes: Vec<(u32, u32)> = Vec::new();
    let mut classes = Vec::with_capacity(neighbours.queries());
    for query in 0..neighbours.queries() {
        votes.clear();
        for item in neighbours.ids_of(query) {
            let class = *item_classes.get(*item as usize).ok_or_else(|| {
                Error::shape(
                    "classes of the items",
                    format!("at least {}", item + 1),
                    item_classes.len(),
                )
            })?;
            match votes.iter_mut().find(|(known, _)| *known == class) {
                Some((_, count)) => *count += 1,
                None => votes.push((class, 1)),
            }
        }
        // Votes stand in the order of nearness, so the first of the largest is the nearest one.
        let most = votes.iter().map(|(_, count)| *count).max();
        let winner = votes.iter().find(|(_, count)| Some(*count) == most);
        classes.push(winner.map_or(u32::MAX, |(class, _)| *class));
    }
    Ok(classes)
}

/// Share of queries whose class is found by the majority of their `k` nearest items. Classes are
/// numbers that queries and items share; with `exclude_self` the item with the query's own row
/// number has no vote.
pub fn knn_accuracy(
    space: Space,
    queries: &dyn Corpus,
    query_classes: &[u32],
    items: &dyn Corpus,
    item_classes: &[u32],
    k: usize,
    exclude_self: bool,
) -> Result<f64> {
    for (what, corpus, classes) in [
        ("classes of the queries", queries, query_classes),
        ("classes of the items", items, item_classes),
    ] {
        if corpus.len() != classes.len() as u64 {
            return Err(Error::shape(what, corpus.len(), classes.len()));
        }
    }
    if query_classes.is_empty() {
        return Err(Error::Data("there is no query to classify".into()));
    }
    let neighbours = top_k(space, queries, items, k, exclude_self)?;
    let found = knn_classes(&neighbours, item_classes)?;
    let right = found
        .iter()
        .zip(query_classes)
        .filter(|(a, b)| a == b)
        .count();
    Ok(right as f64 / query_classes.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::linalg::RowBuf;

    #[test]
    fn majority_then_nearest() {
        let line = |values: &[f32]| {
            MemoryCorpus::new(RowBuf::from_values(values.to_vec(), 1).unwrap()).unwrap()
        };
        // Query at 0. Items: 1 (class 5), 2 (class 6), 3 (class 6), 4 (class 5).
        let (queries, items) = (line(&[0.0]), line(&[1.0, 2.0, 3.0, 4.0]));
        let classes = [5, 6, 6, 5];
        let class = |k| {
            let found = top_k(Space::SquaredL2, &queries, &items, k, false).unwrap();
            knn_classes(&found, &classes).unwrap()[0]
        };
        // k = 2: one vote each, the nearest is class 5. k = 3: class 6 has two of three.
        // k = 4: two each, and class 5 is nearest.
        assert_eq!((class(1), class(2), class(3), class(4)), (5, 5, 6, 5));
        let accuracy =
            knn_accuracy(Space::SquaredL2, &queries, &[6], &items, &classes, 3, false).unwrap();
        assert_eq!(accuracy, 1.0);
        assert!(knn_accuracy(Space::SquaredL2, &queries, &[6], &items, &[5], 3, false).is_err());
    }
}
