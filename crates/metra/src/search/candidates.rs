//! Re-ranks the candidates of an approximate index by the exact metric.
//!
//! Scores are worked out pair by pair in f64, from differences where the space has them: there are
//! too few candidates for a matrix product to pay, nothing has to be prepared over all items, and
//! items far from the origin lose no digits. They agree with those of [`super::top_k`] up to f32's
//! rounding.

use crate::data::{Corpus, RowId};
use crate::linalg::{RowBuf, block_distance, vectorized};
use crate::model::Space;
use crate::{Error, Result};

/// Running sums that the compiler keeps in vector registers; their order is fixed.
const LANES: usize = 8;

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
    let mut found = Vec::with_capacity(candidates.len());
    for (id, item) in candidates.iter().zip(buffer.rows().iter()) {
        let score = score(space, query, item);
        if !score.is_finite() {
            return Err(Error::Score {
                query: 0,
                item: items.origin(*id),
                score,
            });
        }
        found.push((*id, score));
    }
    found.sort_unstable_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    found.truncate(k);
    Ok(found)
}

/// Smaller is nearer. A cosine with a vector of length 0 is NaN.
fn score(space: Space, query: &[f32], item: &[f32]) -> f32 {
    vectorized(
        #[inline(always)]
        || match space {
            Space::SquaredL2 => sum(query, item, |a, b| (a - b) * (a - b)) as f32,
            Space::InnerProduct => -sum(query, item, |a, b| a * b) as f32,
            Space::Cosine => {
                let lengths = sum(query, query, |a, b| a * b) * sum(item, item, |a, b| a * b);
                (-sum(query, item, |a, b| a * b) / lengths.sqrt()) as f32
            }
            Space::Blocks { size } => block_distance(query, item, size as usize),
        },
    )
}

#[inline(always)]
fn sum(left: &[f32], right: &[f32], term: impl Fn(f64, f64) -> f64) -> f64 {
    let (left_lanes, left_rest) = left.as_chunks::<LANES>();
    let (right_lanes, right_rest) = right.as_chunks::<LANES>();
    let mut sums = [0.0_f64; LANES];
    for (left, right) in left_lanes.iter().zip(right_lanes) {
        for lane in 0..LANES {
            sums[lane] += term(f64::from(left[lane]), f64::from(right[lane]));
        }
    }
    let rest = left_rest.iter().zip(right_rest);
    let rest: f64 = rest.map(|(a, b)| term(f64::from(*a), f64::from(*b))).sum();
    sums.iter().sum::<f64>() + rest
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
                    assert!((score - expected).abs() <= 1e-5 * expected.abs().max(1.0));
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
