//! The k-nearest-neighbour classifier.

use crate::search::Neighbours;
use crate::{Error, Result};

/// The class of each query by majority among its neighbours. Where classes have equally many, the
/// one with the nearest neighbour wins.
pub(crate) fn knn_classes(neighbours: &Neighbours, item_classes: &[u32]) -> Result<Vec<u32>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::linalg::RowBuf;
    use crate::model::Space;
    use crate::search::top_k;

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
        assert!(
            knn_classes(
                &top_k(Space::SquaredL2, &queries, &items, 3, false).unwrap(),
                &[5]
            )
            .is_err()
        );
    }
}
