//! Search against a sort in f64, with ties, duplicates, off-centre points and bad input.

use super::*;
use crate::data::{Interruptible, MemoryCorpus, Subset};
use crate::linalg::Rows;
use crate::random::Stream;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn corpus(values: Vec<f32>, dim: usize) -> MemoryCorpus {
    MemoryCorpus::new(RowBuf::from_values(values, dim).unwrap()).unwrap()
}

fn random(len: usize, dim: usize, seed: u64, spread: f64, centre: f64) -> MemoryCorpus {
    let mut stream = Stream::new(seed, "test", 0);
    let values = (0..len * dim).map(|_| (centre + spread * stream.normal()) as f32);
    corpus(values.collect(), dim)
}

fn exact(space: Space, q: &[f32], x: &[f32]) -> f64 {
    let pairs = || q.iter().zip(x).map(|(a, b)| (f64::from(*a), f64::from(*b)));
    let dot: f64 = pairs().map(|(a, b)| a * b).sum();
    let length = |v: &[f32]| v.iter().map(|a| f64::from(*a).powi(2)).sum::<f64>().sqrt();
    match space {
        Space::SquaredL2 => pairs().map(|(a, b)| (a - b).powi(2)).sum(),
        Space::InnerProduct => -dot,
        Space::Cosine => -dot / (length(q) * length(x)),
        Space::Blocks { size } => (q.chunks(size as usize).zip(x.chunks(size as usize)))
            .map(|(q, x)| exact(Space::SquaredL2, q, x).sqrt())
            .sum(),
    }
}

#[test]
fn a_search_ends_between_tiles_where_it_is_told_to() {
    let stop = AtomicBool::new(false);
    let items = random(3 * TILE, 3, 1, 1.0, 0.0);
    let queries = random(1, 3, 2, 1.0, 0.0);
    let queries = Interruptible::new(&queries, &stop);
    let items = Items::prepare(Space::SquaredL2, &items).unwrap();
    let furthest = AtomicU64::new(0);
    let skip = |_, item| {
        furthest.fetch_max(item, Ordering::Relaxed);
        stop.store(true, Ordering::Relaxed);
        false
    };
    let ended = nearest_of(&items, &queries, 2, &skip);
    assert!(matches!(ended, Err(Error::Interrupted)));
    assert!(furthest.into_inner() < TILE as u64);
}

#[test]
fn neighbours_equal_a_sort_in_every_space() {
    // Small whole numbers: products are exact, and there are many ties.
    let mut stream = Stream::new(4, "test", 0);
    let mut draw = |len: usize| {
        corpus(
            (0..len * 3).map(|_| 1.0 + stream.below(4) as f32).collect(),
            3,
        )
    };
    let (queries, items) = (draw(150), draw(2500));
    for space in [Space::SquaredL2, Space::InnerProduct] {
        let found = top_k(space, &queries, &items, 20, false).unwrap();
        for query in 0..150 {
            let q = queries.rows().row(query);
            let mut order: Vec<(f64, u64)> = (0..2500)
                .map(|item| (exact(space, q, items.rows().row(item)), item as u64))
                .collect();
            order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let expected: Vec<u64> = order[..20].iter().map(|(_, id)| *id).collect();
            assert_eq!(found.ids_of(query), expected);
            for (score, (expected, _)) in found.scores_of(query).iter().zip(&order) {
                assert_eq!(*score, *expected as f32);
            }
        }
    }
    let (queries, items) = (random(20, 8, 1, 1.0, 0.0), random(1500, 8, 2, 1.0, 0.0));
    for space in Space::ALL.into_iter().chain([Space::Blocks { size: 4 }]) {
        let found = top_k(space, &queries, &items, 5, false).unwrap();
        for query in 0..20 {
            let q = queries.rows().row(query);
            let mut order: Vec<(f64, u64)> = (0..1500)
                .map(|item| (exact(space, q, items.rows().row(item)), item as u64))
                .collect();
            order.sort_by(|a, b| a.0.total_cmp(&b.0));
            let expected: Vec<u64> = order[..5].iter().map(|(_, id)| *id).collect();
            assert_eq!(found.ids_of(query), expected, "{space}");
        }
    }
}

/// Queries whose ids are not those of a sort in f64, of sets made to be hard: items that lie within 1e-6 of
/// their length of each other, around 1e4 or around the origin, and many within the error of products.
fn hard_queries_that_differ(queries: usize) -> (usize, usize) {
    let (mut asked, mut wrong) = (0, 0);
    for (centre, spread, items) in [(1e4, 1e-2, 700), (1.0, 1e-6, 1300), (0.0, 1.0, 1500)] {
        let items = random(items, 24, 8, spread, centre);
        let asking = random(queries / 9 + 1, 24, 9, spread, centre);
        for space in Space::ALL {
            let found = top_k(space, &asking, &items, 10, false).unwrap();
            for query in 0..found.queries() {
                let q = asking.rows().row(query);
                let mut order: Vec<(f64, u64)> = (items.rows().iter().zip(0..))
                    .map(|(row, item)| (exact(space, q, row), item))
                    .collect();
                order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                // A sort in f64 knows the order of products to its own rounding only.
                let unknown = match space {
                    Space::SquaredL2 => 0.0,
                    _ => 1e-14 * order[0].0.abs(),
                };
                let same = (found.ids_of(query).iter().zip(&order)).all(|(id, (right, item))| {
                    let found = exact(space, q, items.rows().row(*id as usize));
                    id == item || (found - right).abs() <= unknown
                });
                (asked, wrong) = (asked + 1, wrong + usize::from(!same));
                let nearest = found.scores_of(query)[0];
                assert!((f64::from(nearest) - order[0].0).abs() <= 1e-6 * order[0].0.abs());
            }
        }
    }
    (asked, wrong)
}

#[test]
fn near_duplicates_are_told_apart() {
    let (asked, wrong) = hard_queries_that_differ(360);
    assert_eq!((asked >= 360, wrong), (true, 0));
}

#[test]
#[ignore = "slow: ten thousand queries against a sort"]
fn ten_thousand_hard_queries_are_answered_as_by_a_sort_in_f64() {
    let (asked, wrong) = hard_queries_that_differ(10_000);
    println!("{wrong} of {asked} queries differ from a sort in f64");
    assert_eq!((asked >= 10_000, wrong), (true, 0));
}

#[test]
fn equal_rows_tie_wherever_they_lie() {
    // The same row in the first tile, inside and at the end of the last, partly filled tile.
    let mut items = random(2051, 37, 5, 1.0, 3.0).rows().values().to_vec();
    let copy: Vec<f32> = items[..37].to_vec();
    for row in [700, 1500, 2049, 2050] {
        items[row * 37..(row + 1) * 37].copy_from_slice(&copy);
    }
    let items = corpus(items, 37);
    for queries in [1, 3, 130] {
        let queries = random(queries, 37, 6, 1.0, 3.0);
        for space in Space::ALL.into_iter().chain([Space::Blocks { size: 37 }]) {
            let found = top_k(space, &queries, &items, 2051, false).unwrap();
            for query in 0..found.queries() {
                let score = |item: u64| {
                    let place = found
                        .ids_of(query)
                        .iter()
                        .position(|id| *id == item)
                        .unwrap();
                    found.scores_of(query)[place].to_bits()
                };
                for row in [700, 1500, 2049, 2050] {
                    assert_eq!(score(0), score(row), "{space}");
                }
            }
        }
    }
}

#[test]
fn a_query_finds_the_same_alone_and_among_others() {
    for dim in [4, 37, 70] {
        let (items, queries) = (random(2051, dim, 5, 1.0, 1.0), random(40, dim, 6, 1.0, 1.0));
        let every: Vec<u64> = (0..items.len()).collect();
        // Items in memory are read where they lie, and others tile by tile.
        let parts: [&dyn Corpus; 2] = [&items, &Subset::new(&items, every).unwrap()];
        for (space, items) in (Space::ALL.into_iter())
            .chain([Space::Blocks { size: dim as u32 }])
            .flat_map(|space| parts.map(|items| (space, items)))
        {
            let together = top_k(space, &queries, items, 12, false).unwrap();
            let mut start = 0;
            for count in [1, 2, FEW as u64, FEW as u64 + 1] {
                let few = Subset::new(&queries, (start..start + count).collect()).unwrap();
                let found = top_k(space, &few, items, 12, false).unwrap();
                for query in 0..count {
                    let (own, shared) = (query as usize, (start + query) as usize);
                    assert_eq!(found.ids_of(own), together.ids_of(shared), "{space} {dim}");
                    assert_eq!(found.scores_of(own), together.scores_of(shared));
                }
                start += count;
            }
        }
    }
}

#[test]
fn self_is_dropped_by_row_number() {
    // Rows 0 and 1 are equal: row 1 is still a neighbour of row 0, at distance 0. The mean is 2, a
    // whole number, so that distances are exact.
    let items = corpus(vec![1.0, 1.0, 4.0], 1);
    let found = top_k(Space::SquaredL2, &items, &items, 1, true).unwrap();
    assert_eq!(found.ids, vec![1, 0, 0]);
    assert_eq!(found.scores, vec![0.0, 0.0, 9.0]);
}

#[test]
fn more_neighbours_than_items_gives_all_items() {
    let items = corpus(vec![1.0, 4.0, 2.0], 1);
    let found = top_k(Space::SquaredL2, &items, &items, 9, false).unwrap();
    assert_eq!((found.k, found.ids_of(0)), (3, [0, 2, 1].as_slice()));
    let found = top_k(Space::SquaredL2, &items, &items, 9, true).unwrap();
    assert_eq!((found.k, found.ids_of(2)), (2, [0, 1].as_slice()));
    let error = top_k(Space::SquaredL2, &items, &items, 0, false).unwrap_err();
    assert_eq!(error.to_string(), "k must be at least 1, but is 0");
}

#[test]
fn off_centre_points_keep_their_neighbours() {
    // Spread 1e-2 around 1e4: |x|² is 1e9 and its last place in f32 is 64, a million times the
    // squared distances. Values near 1e4 have steps of 1e-3, so distances themselves are coarse but
    // well defined, and the f64 oracle sees the same stored values.
    let items = random(3000, 16, 7, 1e-2, 1e4);
    let queries = random(50, 16, 8, 1e-2, 1e4);
    let found = top_k(Space::SquaredL2, &queries, &items, 1, false).unwrap();
    for query in 0..50 {
        let q = queries.rows().row(query);
        let distance = |item: usize| exact(Space::SquaredL2, q, items.rows().row(item));
        let best = (0..3000).map(distance).fold(f64::INFINITY, f64::min);
        let ours = distance(found.ids_of(query)[0] as usize);
        assert!(
            ours <= best * (1.0 + 1e-5),
            "query {query}: {ours} against {best}"
        );
    }
}

#[test]
fn threads_and_storage_change_nothing() {
    let (queries, items) = (random(300, 20, 1, 1.0, 0.5), random(4000, 20, 2, 1.0, 0.5));
    let part = Subset::new(&items, (0..4000).collect()).unwrap();
    for space in Space::ALL {
        let run = |threads, items: &dyn Corpus| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| top_k(space, &queries, items, 7, false).unwrap())
        };
        assert_eq!(run(1, &items), run(2, &items));
        assert_eq!(run(1, &items), run(2, &part));
    }
}

/// A corpus that does not check its values, as a mapped file does not.
struct Unchecked(RowBuf);

impl Corpus for Unchecked {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn gather(&self, rows: &[RowId], out: &mut RowBuf) -> Result<()> {
        out.clear(self.dim());
        for row in rows {
            out.extend(self.0.rows().slice(*row as usize, *row as usize + 1));
        }
        Ok(())
    }

    fn scan(
        &self,
        range: Range<RowId>,
        visit: &mut dyn FnMut(RowId, Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        let rows = self
            .0
            .rows()
            .slice(range.start as usize, range.end as usize);
        visit(range.start, rows)
    }
}

#[test]
fn scores_that_are_not_finite_are_an_error() {
    let good = Unchecked(RowBuf::from_values(vec![1.0, 2.0, 3.0, 4.0], 2).unwrap());
    for bad in [f32::NAN, f32::INFINITY, 3e30] {
        let bad = Unchecked(RowBuf::from_values(vec![1.0, 2.0, bad, 4.0], 2).unwrap());
        for (queries, items) in [(&good, &bad), (&bad, &good), (&bad, &bad)] {
            let found = top_k(Space::SquaredL2, queries, items, 1, false);
            let huge_query = queries.0.values()[2] == 3e30 && items.0.values()[2] == 3.0;
            // A long query alone leaves all scores finite; everything else does not.
            assert!(found.is_err() || huge_query);
        }
        let dot = top_k(Space::InnerProduct, &good, &bad, 1, false);
        assert!(dot.is_err() || bad.0.values()[2] == 3e30);
    }
}

#[test]
fn a_zero_vector_under_cosine_is_named() {
    let good = corpus(vec![1.0, 2.0, 3.0, 4.0], 2);
    let zero = corpus(vec![1.0, 2.0, 0.0, 0.0], 2);
    for (queries, items, what) in [(&good, &zero, "item"), (&zero, &good, "query")] {
        let error = top_k(Space::Cosine, queries, items, 1, false)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("row 1: ") && error.contains(what),
            "{error}"
        );
    }
    let narrow = corpus(vec![1.0], 1);
    assert!(top_k(Space::Cosine, &narrow, &good, 1, false).is_err());
}
