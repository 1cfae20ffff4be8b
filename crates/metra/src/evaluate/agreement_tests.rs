//! Tests of [`super`]: by hand, against the metric itself, and on inputs that cannot be judged.

use super::*;
use crate::data::{MemoryCorpus, Subset};
use crate::model::{Chain, LowRank, Map};
use crate::random::Stream;
use crate::supervision::derive::as_quadruplet;

fn corpus(values: &[f32], dim: usize) -> MemoryCorpus {
    MemoryCorpus::new(RowBuf::from_values(values.to_vec(), dim).unwrap()).unwrap()
}

fn euclid(dim: usize) -> Chain {
    Chain::identity(dim, Space::SquaredL2)
}

#[test]
fn triplets_by_hand() {
    // On a line: rows 1 and 3 lie at 1, row 2 at 3. The first triplet is right, the second wrong,
    // the third a tie: 1.5 of 3.
    let rows = corpus(&[0.0, 1.0, 3.0, 1.0], 1);
    let said = [[0, 1, 2], [0, 2, 1], [0, 1, 3]].map(|t| as_quadruplet(&t));
    let found = agreement(&euclid(1), &rows, None, &said).unwrap();
    assert_eq!(found.values(), &[1.0, 0.0, 0.5]);
    assert_eq!(found.share(), 0.5);
    // All start from row 0: one cluster, which says nothing of chance.
    let bootstrap = Bootstrap::default();
    assert_eq!(found.interval(&bootstrap).unwrap(), (0.0, 1.0));
    // Seen from −x·y the order of 0 · 1 and 0 · 3 is a tie everywhere.
    let dot = Chain::identity(1, Space::InnerProduct);
    let other = agreement(&dot, &rows, None, &said).unwrap();
    assert_eq!(other.values(), &[0.5; 3]);
    let gain = found.against(&other, &bootstrap).unwrap();
    assert_eq!((gain.base, gain.learned, gain.difference), (0.5, 0.5, 0.0));
    assert_eq!((gain.queries, gain.clusters), (3, 1));
}

#[test]
fn area_by_hand() {
    // Squared distances: similar 1 and 4, dissimilar 9 and 4.
    let rows = corpus(&[0.0, 1.0, 2.0, 3.0], 1);
    let found = separation(
        &euclid(1),
        &rows,
        None,
        &[[0, 1], [0, 2]],
        &[[0, 3], [1, 3]],
    )
    .unwrap();
    // 1 is below both; 4 is below 9 and ties with 4: (1 + 0.75) / 2.
    assert_eq!(found.auc(), 0.875);
    assert_eq!(found.similar, [1.0, 0.75]);
    assert_eq!(found.dissimilar, [1.0, 0.75]);
    // Variance of each side: 2 · 0.125² / 1 / 2 = 0.015625; deviation √0.03125 = 0.1767767.
    let (low, high) = found.interval();
    assert!((low - (0.875 - 1.959964 * 0.1767767)).abs() < 1e-6, "{low}");
    assert_eq!(high, 1.0);
    // Against a metric for which everything is the same: 0.875 − 0.5, the same variances.
    let blind = Separation {
        similar: vec![0.5; 2],
        dissimilar: vec![0.5; 2],
    };
    let gain = found.against(&blind).unwrap();
    assert_eq!((gain.base, gain.difference, gain.queries), (0.5, 0.375, 4));
    assert!((gain.high - (0.375 + 1.959964 * 0.1767767)).abs() < 1e-6);
    let itself = found.against(&found).unwrap();
    assert_eq!((itself.low, itself.high), (0.0, 0.0));
}

fn random(count: usize, seed: u64) -> Vec<f32> {
    let mut stream = Stream::new(seed, "test", 0);
    (0..count).map(|_| stream.normal() as f32).collect()
}

#[test]
fn any_number_of_pairs_equals_the_metric() {
    let rows = corpus(&random(60 * 8, 1), 8);
    let weights = RowBuf::from_values(random(3 * 8, 2), 8).unwrap();
    let mut stream = Stream::new(3, "test", 0);
    let pairs: Vec<[RowId; 2]> = (0..1000)
        .map(|_| [stream.below(60), stream.below(60)])
        .collect();
    for space in Space::ALL.into_iter().chain([Space::Blocks { size: 3 }]) {
        let map = Map::LowRank(LowRank::new(weights.clone(), None).unwrap());
        let chain = Chain::new(8, Vec::new(), map, space).unwrap();
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let pool = pool.build().unwrap();
            pool.install(|| dissimilarities(&chain, &rows, None, &pairs).unwrap())
        };
        let found = run(1);
        assert_eq!(found, run(2));
        let mut all = Vec::new();
        let batch = Batch::new(rows.rows());
        chain.dissimilarity(&batch, &batch, &mut all).unwrap();
        for (pair, found) in pairs.iter().zip(&found) {
            let expected = f64::from(all[(pair[0] * 60 + pair[1]) as usize]);
            assert!((found - expected).abs() < 1e-4 * (1.0 + expected.abs()));
        }
    }
}

#[test]
fn equal_rows_tie_in_every_block() {
    // Rows 1 and 2 are equal, and the quadruplets fill more than one block.
    let mut values = random(3 * 16, 5);
    values.copy_within(16..32, 32);
    let rows = corpus(&values, 16);
    let weights = RowBuf::from_values(random(5 * 16, 6), 16).unwrap();
    let map = Map::LowRank(LowRank::new(weights, None).unwrap());
    let chain = Chain::new(16, Vec::new(), map, Space::SquaredL2).unwrap();
    let said = vec![as_quadruplet(&[0, 1, 2]); 500];
    let found = agreement(&chain, &rows, None, &said).unwrap();
    assert!(found.values().iter().all(|v| *v == 0.5));
}

#[test]
fn what_cannot_be_judged_is_named() {
    let rows = corpus(&[1.0, 0.0, 2.0], 1);
    let cosine = Chain::identity(1, Space::Cosine);
    // Row 0 of the part is row 1 of the corpus, whose length is 0.
    let part = Subset::new(&rows, vec![1, 2]).unwrap();
    let message = |result: Result<Vec<f64>>| result.unwrap_err().to_string();
    let zero = message(dissimilarities(&cosine, &part, None, &[[1, 0]]));
    assert!(zero.starts_with("row 1: expected a vector of non-zero length"));
    let unknown = message(dissimilarities(&cosine, &rows, None, &[[0, 3]]));
    assert!(unknown.contains("row 3"), "{unknown}");
    let groups = Groups::new(&["a"]);
    assert!(dissimilarities(&cosine, &rows, Some(&groups), &[[0, 2]]).is_err());
    assert!(agreement(&cosine, &rows, None, &[]).is_err());
    let none = separation(&cosine, &rows, None, &[[0, 2]], &[]).unwrap_err();
    assert!(none.to_string().contains("there are 1 and 0"), "{none}");
    let wide = corpus(&[f32::MAX, -f32::MAX], 1);
    let weights = RowBuf::from_values(vec![1e30], 1).unwrap();
    let map = Map::LowRank(LowRank::new(weights, None).unwrap());
    let chain = Chain::new(1, Vec::new(), map, Space::SquaredL2).unwrap();
    let infinite = message(dissimilarities(&chain, &wide, None, &[[0, 1]]));
    assert!(infinite.contains("finite scores"), "{infinite}");
}
