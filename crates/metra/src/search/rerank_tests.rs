//! Re-ranking against the formulas over dense matrices in f64, written anew from the paper.

use super::*;
use crate::data::{MemoryCorpus, Subset};
use crate::random::Stream;

fn clusters(len: usize, seed: u64) -> MemoryCorpus {
    let mut stream = Stream::new(seed, "test", 0);
    let mut rows = RowBuf::zeros(len, 5);
    for row in 0..len {
        let mut centre = Stream::new(9, "cluster", (row % 12) as u64);
        for value in rows.row_mut(row) {
            *value = (1.5 * centre.normal() + stream.normal() + 0.2) as f32;
        }
    }
    MemoryCorpus::new(rows).unwrap()
}

fn distance(space: Space, a: &[f32], b: &[f32]) -> f64 {
    let pairs = || a.iter().zip(b).map(|(a, b)| (f64::from(*a), f64::from(*b)));
    let length = |v: &[f32]| v.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
    match space {
        Space::SquaredL2 => pairs().map(|(a, b)| (a - b).powi(2)).sum(),
        Space::Cosine => 1.0 - pairs().map(|(a, b)| a * b).sum::<f64>() / length(a) / length(b),
        Space::Blocks { .. } => pairs().map(|(a, b)| (a - b).abs()).sum(),
        Space::InnerProduct => unreachable!("it is refused"),
    }
}

/// Distances of the first `queries` rows to those from `first_item` on.
fn dense(
    space: Space,
    rows: &[&[f32]],
    queries: usize,
    first_item: usize,
    settings: Rerank,
) -> Vec<Vec<f64>> {
    let n = rows.len();
    let original: Vec<Vec<f64>> = (rows.iter())
        .map(|a| {
            let row: Vec<f64> = rows.iter().map(|b| distance(space, a, b)).collect();
            let largest = row.iter().fold(0.0_f64, |a, b| a.max(*b));
            row.iter().map(|d| d / largest).collect()
        })
        .collect();
    let ranking: Vec<Vec<usize>> = (0..n)
        .map(|i| {
            let mut order: Vec<usize> = (0..n).filter(|j| *j != i).collect();
            order.sort_by(|a, b| original[i][*a].total_cmp(&original[i][*b]));
            order.insert(0, i);
            order
        })
        .collect();
    let reciprocal = |i: usize, k: usize| -> Vec<usize> {
        let among = |j: usize| &ranking[j][..(k + 1).min(n)];
        (0..n)
            .filter(|j| among(i).contains(j) && among(*j).contains(&i))
            .collect()
    };
    let mut weights = vec![vec![0.0; n]; n];
    for i in 0..n {
        let own = reciprocal(i, settings.k1);
        let mut expanded = own.clone();
        for member in &own {
            let theirs = reciprocal(*member, settings.k1 / 2);
            let shared = theirs.iter().filter(|j| own.contains(j)).count();
            if shared as f64 > 2.0 / 3.0 * theirs.len() as f64 + 1e-9 {
                expanded.extend(theirs);
            }
        }
        expanded.sort_unstable();
        expanded.dedup();
        let sum: f64 = expanded.iter().map(|j| (-original[i][*j]).exp()).sum();
        for j in expanded {
            weights[i][j] = (-original[i][j]).exp() / sum;
        }
    }
    let averaged: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let near = &ranking[i][..settings.k2];
            (0..n)
                .map(|j| near.iter().map(|p| weights[*p][j]).sum::<f64>() / near.len() as f64)
                .collect()
        })
        .collect();
    (0..queries)
        .map(|q| {
            (first_item..n)
                .map(|g| {
                    let pairs = || averaged[q].iter().zip(&averaged[g]);
                    let least: f64 = pairs().map(|(a, b)| a.min(*b)).sum();
                    let most: f64 = pairs().map(|(a, b)| a.max(*b)).sum();
                    let lambda = settings.lambda;
                    (1.0 - lambda) * (1.0 - least / most) + lambda * original[q][g]
                })
                .collect()
        })
        .collect()
}

fn assert_close(found: &Reranking<'_>, queries: u64, wanted: &[Vec<f64>]) {
    let mut all = Vec::new();
    // In two goes, as whoever evaluates takes blocks.
    for part in [0..queries / 3, queries / 3..queries] {
        let mut scores = Vec::new();
        found.scores(part, &mut scores).unwrap();
        all.extend(scores);
    }
    let wanted = wanted.concat();
    assert_eq!(all.len(), wanted.len());
    for (place, (found, wanted)) in all.iter().zip(&wanted).enumerate() {
        let difference = (f64::from(*found) - wanted).abs();
        assert!(difference < 2e-6, "{place}: {found}, not {wanted}");
    }
}

#[test]
fn queries_and_items_equal_the_dense_formulas() {
    let (queries, items) = (clusters(40, 1), clusters(150, 2));
    let settings = [
        Rerank::default(),
        Rerank {
            k1: 8,
            k2: 1,
            lambda: 0.0,
        },
    ];
    let spaces = [Space::SquaredL2, Space::Cosine, Space::Blocks { size: 1 }];
    for (space, settings) in spaces.into_iter().zip(settings.into_iter().cycle()) {
        let rows: Vec<&[f32]> = queries.rows().iter().chain(items.rows().iter()).collect();
        let wanted = dense(space, &rows, 40, 40, settings);
        let found = Reranking::new(&settings, space, &queries, &items, None).unwrap();
        assert_close(&found, 40, &wanted);
    }
}

#[test]
fn queries_that_are_items_are_counted_once() {
    let items = clusters(130, 3);
    let own: Vec<RowId> = (0..30).collect();
    let queries = Subset::new(&items, own.clone()).unwrap();
    let rows: Vec<&[f32]> = items.rows().iter().collect();
    let settings = Rerank {
        k1: 10,
        k2: 4,
        lambda: 0.5,
    };
    let wanted = dense(Space::SquaredL2, &rows, 30, 0, settings);
    let found = Reranking::new(&settings, Space::SquaredL2, &queries, &items, Some(&own));
    assert_close(&found.unwrap(), 30, &wanted);
}

#[test]
fn rows_of_one_place_and_few_rows_stay_finite() {
    let same = MemoryCorpus::new(RowBuf::from_values(vec![1.0; 12], 2).unwrap()).unwrap();
    let few = clusters(3, 1);
    for (queries, items) in [(&same, &same), (&few, &few)] {
        for own in [None, Some((0..queries.len()).collect::<Vec<_>>())] {
            let settings = Rerank::default();
            let found = Reranking::new(&settings, Space::SquaredL2, queries, items, own.as_deref());
            let mut scores = Vec::new();
            found
                .unwrap()
                .scores(0..queries.len(), &mut scores)
                .unwrap();
            assert!(scores.iter().all(|s| (0.0..=1.0 + 1e-6).contains(s)));
        }
    }
}

#[test]
fn settings_are_read_and_checked() {
    let read = |text: &str| text.parse::<Rerank>();
    assert_eq!(read("default").unwrap(), Rerank::default());
    let some = read("lambda=0.1,k1=30").unwrap();
    assert_eq!((some.k1, some.k2, some.lambda), (30, 6, 0.1));
    assert_eq!(read(&some.to_string()).unwrap(), some);
    for text in ["", "k1", "k1=0", "k2=21", "lambda=2", "lambda=NaN", "k3=1"] {
        assert!(read(text).is_err(), "{text}");
    }
    let rows = clusters(20, 1);
    let dot = Reranking::new(&Rerank::default(), Space::InnerProduct, &rows, &rows, None);
    let error = dot.err().unwrap().to_string();
    assert!(error.contains("must be a distance"), "{error}");
}
