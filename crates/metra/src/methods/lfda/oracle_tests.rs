//! LFDA without a ridge against metric-learn 0.7.0.

use super::*;
use crate::data::{Batch, MemoryCorpus};
use crate::model::{Chain, Space};
use crate::supervision::Supervision;

/// Rows, and their squared distance after metric-learn's map: made by tests/oracles/metric_learn/lfda.py.
const EXPECTED: &[(usize, usize, f32)] = &[
    (0, 1, 2.135_558),
    (0, 3, 0.807_128_1),
    (1, 5, 0.139_484_7),
    (2, 40, 1.734_613),
    (7, 31, 0.816_183_7),
    (12, 44, 0.676_642_5),
    (20, 23, 0.656_360_2),
    (33, 36, 0.332_342_1),
];

/// The set of lfda.py.
fn set() -> (MemoryCorpus, Labels) {
    let (mut rows, mut classes) = (RowBuf::zeros(45, 6), Vec::new());
    for r in 0..45 {
        for c in 0..6 {
            let value = (r * r * 37 + r * c * 101 + c * c * 59 + r * 13) % 97;
            rows.row_mut(r)[c] = value as f32 / 8.0;
        }
        rows.row_mut(r)[0] += (4 * (r % 3)) as f32;
        rows.row_mut(r)[1] -= (3 * (r % 3)) as f32;
        classes.push((r % 3) as i64);
    }
    let labels = Labels::from_numbers(&classes).unwrap();
    (MemoryCorpus::new(rows).unwrap(), labels)
}

#[test]
fn distances_are_those_of_metric_learn() {
    let (corpus, labels) = set();
    let supervision = Supervision::labels(labels);
    let data = Dataset::new(&corpus, &supervision).unwrap();
    let learner = Lfda {
        rank: 3,
        ridge: 0.0,
        neighbours: 4,
        scaling: Scaling::Plain,
    };
    let map = learner.checked().unwrap().fit(&data, &mut Run::new(1));
    let chain = Chain::new(6, Vec::new(), map.unwrap(), Space::SquaredL2).unwrap();
    let (all, mut found) = (Batch::new(corpus.rows()), Vec::new());
    chain.dissimilarity(&all, &all, &mut found).unwrap();
    for (a, b, expected) in EXPECTED {
        let found = found[a * 45 + b];
        assert!(
            (found - expected).abs() < 1e-5 * expected.max(1.0),
            "rows {a} and {b}: {found}, not {expected}"
        );
    }
}
