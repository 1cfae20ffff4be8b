//! LMNN against metric-learn 0.7.0, which counts pulls and triplets as we do. All constants are printed
//! by tests/oracles/metric_learn/lmnn.py.

use super::tests::{Dense, weights, wide};
use super::*;
use crate::linalg::{map_rows, transposed_product};
use crate::supervision::Supervision;
use crate::training::full_batch::MappedLoss;

/// metric-learn's margin is 1 always.
const LOSS: Loss = Loss {
    pull: 0.5,
    margin: 1.0,
};

/// Objective and gradient by L at the identity.
const IDENTITY: (f64, &[f64]) = (
    956.011718750,
    &[
        28.567, 33.951, 92.009, -160.032, 33.951, 210.062, -155.713, 183.672, 92.009, -155.713,
        197.056, 14.339, -160.032, 183.672, 14.339, 282.339,
    ],
);
/// At the four rows of [`formula`].
const FULL: (f64, &[f64]) = (
    2979.073364258,
    &[
        790.352, -1172.058, 480.712, 654.214, -451.225, -287.908, 1083.393, 630.102, -83.776,
        -177.750, 1300.970, 477.907, 283.673, -67.591, 1518.547, 325.712,
    ],
);
/// At its first two rows.
const LOW: (f64, &[f64]) = (
    1755.277343750,
    &[
        453.073, -595.851, 557.511, 315.628, 38.890, 126.510, 964.040, 245.339,
    ],
);
/// The lowest objective at which metric-learn stopped, with all four rows and with two.
const END_4: f64 = 789.749099;
const END_2: f64 = 1169.366648;

/// The set of sets.py.
fn set() -> (MemoryCorpus, Vec<i64>) {
    let (mut rows, mut classes) = (RowBuf::zeros(60, 4), Vec::new());
    for r in 0..60 {
        for c in 0..4 {
            let value = (r * r * 37 + r * c * 101 + c * c * 59 + r * 13) % 97;
            rows.row_mut(r)[c] = value as f32;
        }
        rows.row_mut(r)[0] += (16 * (r % 3)) as f32;
        rows.row_mut(r)[1] -= (12 * (r % 3)) as f32;
        classes.push((r % 3) as i64);
    }
    for value in rows.values_mut() {
        *value /= 32.0;
    }
    (MemoryCorpus::new(rows).unwrap(), classes)
}

/// The first rows of the map of sets.py.
fn formula(rank: usize) -> Vec<f32> {
    let value = |i: usize, j: usize| (((5 * i + 3 * j + i * j) % 7) as f32 - 2.0) / 4.0;
    (0..4 * rank).map(|n| value(n / 4, n % 4)).collect()
}

#[test]
fn objective_and_gradient_are_those_of_metric_learn() {
    let (corpus, classes) = set();
    let rows = wide(&corpus);
    let labels = Labels::from_numbers(&classes).unwrap();
    let identity: Vec<f32> = (0..16).map(|n| f32::from(n % 5 == 0)).collect();
    for (map, (value, gradient)) in [(identity, IDENTITY), (formula(4), FULL), (formula(2), LOW)] {
        let map = RowBuf::from_values(map, 4).unwrap();
        let mut triplets = Triplets::new(LOSS, targets(&corpus, &labels, 3).unwrap());
        let mut mapped = RowBuf::empty(1);
        map_rows(corpus.rows(), map.rows(), &mut mapped).unwrap();
        // No more than the margin: an impostor that the search misses is missing in the sum.
        let reach: Vec<Option<f32>> = (triplets.reach(mapped.rows()).into_iter())
            .map(|reach| reach.map(|reach| reach + 1.0))
            .collect();
        let all = MemoryCorpus::new(mapped).unwrap();
        let (near, left_out) = impostors(&all, &labels, &reach, 60).unwrap();
        assert_eq!(left_out, 0);
        triplets.set_impostors(near);
        let (found, slopes) = triplets.evaluate(all.rows()).unwrap();
        assert!((found / value - 1.0).abs() < 1e-6, "{found} {value}");
        let mut found = RowBuf::empty(1);
        transposed_product(slopes.rows(), corpus.rows(), &mut found).unwrap();
        assert_eq!(found.values().len(), gradient.len());
        for (found, expected) in found.values().iter().zip(gradient) {
            let apart = (f64::from(*found) - expected).abs();
            assert!(apart < 2e-3, "{found} {expected}");
        }
        // So that the other test may take the ends by it.
        let wide_map: Vec<f64> = map.values().iter().map(|v| f64::from(*v)).collect();
        let found = Dense::new(&rows, &classes, 3, LOSS).at(&wide_map);
        assert!((found / value - 1.0).abs() < 1e-9, "{found} {value}");
    }
}

#[test]
fn it_ends_no_higher_than_metric_learn() {
    let (corpus, classes) = set();
    let rows = wide(&corpus);
    let supervision = Supervision::labels(Labels::from_numbers(&classes).unwrap());
    let data = Dataset::new(&corpus, &supervision).unwrap();
    for (rank, expected) in [(4, END_4), (2, END_2)] {
        let learner = Lmnn {
            rank,
            neighbours: 3,
            pull: LOSS.pull,
            margin: LOSS.margin,
            impostors: 60,
            scaled: false,
            start: Start::Pca,
            schedule: Schedule::of(500),
            tolerance: 0.0,
            ..Lmnn::default()
        };
        let mut run = Run::new(1);
        let map = learner.checked().unwrap().fit(&data, &mut run);
        let map = weights(&map.unwrap());
        let found = Dense::new(&rows, &classes, 3, LOSS).at(&map);
        // The objective is that of all impostors, not of those known before the last steps.
        let said = run.facts["objective"];
        assert!((said / found - 1.0).abs() < 1e-5, "{said} {found}");
        assert!(found <= expected * (1.0 + 1e-5), "{found} {expected}");
    }
}
