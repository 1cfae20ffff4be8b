//! NCA against metric-learn 0.7.0 and scikit-learn 1.5.2, which agree with each other. They take the sum
//! of chances, we minus the mean: the constants, all printed by tests/oracles/metric_learn/nca.py, are
//! in our terms.

use super::*;
use crate::data::MemoryCorpus;
use crate::supervision::{Labels, Supervision};

/// Objective and gradient by L at the identity.
const IDENTITY: (f64, &[f64]) = (
    -0.393378492,
    &[
        -0.0527010, 0.0574361, 0.0030461, -0.0162945, 0.0574361, -0.0231488, -0.0174019,
        -0.0121715, 0.0030461, -0.0174019, 0.0101347, 0.0084926, -0.0162945, -0.0121715, 0.0084926,
        0.0104846,
    ],
);
/// At the four rows of [`formula`].
const FULL: (f64, &[f64]) = (
    -0.362601881,
    &[
        0.0404585, -0.0868423, -0.0062595, -0.0080069, -0.0098423, 0.0387899, 0.0074641,
        -0.0045634, -0.0210840, 0.0253402, 0.0046852, 0.0166086, -0.0323258, 0.0118906, 0.0019064,
        0.0377805,
    ],
);
/// At its first two rows.
const LOW: (f64, &[f64]) = (
    -0.384477231,
    &[
        0.0350525, -0.0973096, -0.0027151, -0.0035101, -0.0292079, 0.0205457, 0.0029564, 0.0481749,
    ],
);
/// The highest mean chance that either reached, with all three rows and with two.
const END_3: f64 = 0.606286467;
const END_2: f64 = 0.606286467;

/// The set of sets.py.
fn set() -> (RowBuf, Vec<u32>) {
    let (mut rows, mut classes) = (RowBuf::zeros(60, 4), Vec::new());
    for r in 0..60 {
        for c in 0..4 {
            let value = (r * r * 37 + r * c * 101 + c * c * 59 + r * 13) % 97;
            rows.row_mut(r)[c] = value as f32;
        }
        rows.row_mut(r)[0] += (16 * (r % 3)) as f32;
        rows.row_mut(r)[1] -= (12 * (r % 3)) as f32;
        classes.push((r % 3) as u32);
    }
    for value in rows.values_mut() {
        *value /= 32.0;
    }
    (rows, classes)
}

/// The first rows of the map of sets.py.
fn formula(rank: usize) -> Vec<f32> {
    let value = |i: usize, j: usize| (((5 * i + 3 * j + i * j) % 7) as f32 - 2.0) / 4.0;
    (0..4 * rank).map(|n| value(n / 4, n % 4)).collect()
}

/// The grid of nca.py, which says why it is so.
fn grid() -> (MemoryCorpus, Vec<i64>) {
    let (mut values, mut classes) = (Vec::new(), Vec::new());
    for a in 0..4 {
        for b in 0..3 {
            for q in 0..2 {
                for number in 0..6 {
                    let row = [2 * a + b, -a + 2 * b + q, a + 3 * q];
                    values.extend(row.map(|v| v as f32 / 2.0));
                    classes.push(i64::from(number < a + b));
                }
            }
        }
    }
    let rows = RowBuf::from_values(values, 3).unwrap();
    (MemoryCorpus::new(rows).unwrap(), classes)
}

#[test]
fn objective_and_gradient_are_those_of_both() {
    let (rows, classes) = set();
    let identity: Vec<f32> = (0..16).map(|n| f32::from(n % 5 == 0)).collect();
    for (map, (value, gradient)) in [(identity, IDENTITY), (formula(4), FULL), (formula(2), LOW)] {
        let map = RowBuf::from_values(map, 4).unwrap();
        let mut mapped = RowBuf::empty(1);
        map_rows(rows.rows(), map.rows(), &mut mapped).unwrap();
        let (found, slopes) = NcaLoss::new(&classes).evaluate(mapped.rows()).unwrap();
        assert!((found - value).abs() < 1e-6, "{found} {value}");
        let mut found = RowBuf::empty(1);
        transposed_product(slopes.rows(), rows.rows(), &mut found).unwrap();
        assert_eq!(found.values().len(), gradient.len());
        for (found, expected) in found.values().iter().zip(gradient) {
            let apart = (f64::from(*found) - expected).abs();
            assert!(apart < 2e-6, "{found} {expected}");
        }
    }
}

/// By the definition, in f64.
fn mean_chance(corpus: &MemoryCorpus, classes: &[i64], map: &Map) -> f64 {
    let Map::LowRank(map) = map else {
        panic!("NCA gives a low-rank map");
    };
    let along = |m: &[f32], row: &[f32]| -> f64 {
        let products = m
            .iter()
            .zip(row)
            .map(|(a, b)| f64::from(*a) * f64::from(*b));
        products.sum()
    };
    let mapped: Vec<Vec<f64>> = (corpus.rows().iter())
        .map(|row| map.weights().iter().map(|m| along(m, row)).collect())
        .collect();
    let mut total = 0.0;
    for i in 0..mapped.len() {
        let (mut all, mut same) = (0.0, 0.0);
        for j in (0..mapped.len()).filter(|j| *j != i) {
            let squares = mapped[i]
                .iter()
                .zip(&mapped[j])
                .map(|(a, b)| (a - b).powi(2));
            let weight = (-squares.sum::<f64>()).exp();
            all += weight;
            same += if classes[i] == classes[j] {
                weight
            } else {
                0.0
            };
        }
        total += same / all;
    }
    total / mapped.len() as f64
}

#[test]
fn it_ends_no_lower_than_both() {
    let (corpus, classes) = grid();
    let supervision = Supervision::labels(Labels::from_numbers(&classes).unwrap());
    let data = Dataset::new(&corpus, &supervision).unwrap();
    for (rank, expected) in [(3, END_3), (2, END_2)] {
        let learner = Nca {
            rank,
            batch: 0,
            lambda: 0.0,
            start: Start::Pca,
            schedule: Schedule::of(500),
            tolerance: 1e-8,
            ..Nca::default()
        };
        let map = learner.checked().unwrap().fit(&data, &mut Run::new(1));
        let found = mean_chance(&corpus, &classes, &map.unwrap());
        assert!(found >= expected * (1.0 - 1e-6), "{found} {expected}");
    }
}
