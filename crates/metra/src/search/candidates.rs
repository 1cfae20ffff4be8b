//! Re-ranks the candidates of an approximate index by the exact metric.
//!
//! There are too few candidates for a matrix product to pay, and nothing has to be prepared over all items.
//! Their scores are those of [`super::top_k`].

use super::exact::sorted;
use crate::data::{Corpus, RowId};
use crate::linalg::RowBuf;
use crate::model::Space;
use crate::{Error, Result};

/// The `k` nearest of some items to one embedded query, with their scores; ties by the smaller row
/// number. All of them where there are fewer than `k`. `buffer` takes the items' vectors and may be
/// used again.
///
/// ```
/// use metra::data::MemoryCorpus;
/// use metra::linalg::RowBuf;
/// use metra::model::Space;
/// use metra::search::nearest_among;
///
/// let items = MemoryCorpus::new(RowBuf::from_values(vec![0.0, 3.0, 1.0, 9.0], 1)?)?;
/// let mut buffer = RowBuf::empty(1);
/// let found = nearest_among(Space::SquaredL2, &[2.5], &items, &[0, 1, 3], 2, &mut buffer)?;
/// assert_eq!(found, [(1, 0.25), (0, 6.25)]);
/// # Ok::<(), metra::Error>(())
/// ```
pub fn nearest_among(
    space: Space,
    query: &[f32],
    items: &dyn Corpus,
    candidates: &[RowId],
    k: usize,
    buffer: &mut RowBuf,
) -> Result<Vec<(RowId, f32)>> {
    if query.len() != items.dim() {
        return Err(Error::shape(
            "dimension of the query",
            items.dim(),
            query.len(),
        ));
    }
    space.check(query.len())?;
    items.gather(candidates, buffer)?;
    sorted(space, query, candidates, buffer.rows(), k).map_err(|(item, score)| Error::Score {
        query: 0,
        item: items.origin(item),
        score,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::data::synthetic::Nuisance;
    use crate::search::top_k;

    #[test]
    fn all_items_as_candidates_give_what_exact_search_gives() {
        let set = Nuisance {
            classes: 9,
            signal: 5,
            noise: 7,
            seed: 3,
        };
        let (items, queries) = (set.rows(400).corpus, set.rows(420).corpus);
        let queries = RowBuf::from_values(queries.rows().values()[400 * 12..].to_vec(), 12);
        let queries = MemoryCorpus::new(queries.unwrap()).unwrap();
        let everyone: Vec<RowId> = (0..400).rev().collect();
        let mut buffer = RowBuf::empty(1);
        for space in [Space::Blocks { size: 4 }].into_iter().chain(Space::ALL) {
            let exact = top_k(space, &queries, &items, 7, false).unwrap();
            for (number, query) in queries.rows().iter().enumerate() {
                let found = nearest_among(space, query, &items, &everyone, 7, &mut buffer).unwrap();
                let ids: Vec<RowId> = found.iter().map(|(id, _)| *id).collect();
                assert_eq!(ids, exact.ids_of(number), "{space}, query {number}");
                for ((_, score), expected) in found.iter().zip(exact.scores_of(number)) {
                    assert_eq!(score, expected);
                }
            }
        }
    }

    #[test]
    fn ties_go_to_the_smaller_row_and_bad_scores_are_errors() {
        // Items 0 and 2 are the same vector; item 3 has length 0.
        let rows = RowBuf::from_values(vec![1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0], 2).unwrap();
        let items = MemoryCorpus::new(rows).unwrap();
        let mut buffer = RowBuf::empty(1);
        let mut ask = |space, query: &[f32], candidates: &[RowId]| {
            nearest_among(space, query, &items, candidates, 2, &mut buffer)
        };
        let found = ask(Space::Cosine, &[2.0, 0.0], &[2, 1, 0]).unwrap();
        assert_eq!(found, [(0, -1.0), (2, -1.0)]);
        assert_eq!(
            ask(Space::InnerProduct, &[0.0, 3.0], &[1]).unwrap(),
            [(1, -3.0)]
        );
        assert!(ask(Space::Cosine, &[2.0, 0.0], &[3]).is_err());
        assert!(ask(Space::SquaredL2, &[f32::MAX, 0.0], &[1]).is_err());
        assert!(ask(Space::SquaredL2, &[0.0], &[1]).is_err());
        assert!(ask(Space::SquaredL2, &[0.0, 0.0], &[4]).is_err());
    }
}
