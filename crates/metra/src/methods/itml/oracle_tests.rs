//! ITML against metric-learn 0.7.0, whose gamma and squared bounds are ours. All constants are printed by
//! tests/oracles/metric_learn/itml.py.

use super::*;
use crate::data::MemoryCorpus;
use crate::supervision::{Comparisons, Labels, Supervision};
use faer::Side;

/// The bounds of itml.py.
const BOUNDS: (f64, f64) = (2.0, 9.0);

/// What metric-learn finds; matrices by their upper triangles, row after row.
struct Expected {
    gamma: f64,
    /// The primal objective at the matrix [`given`].
    given: f64,
    /// The matrix after two cycles, and where nothing moves any more.
    twice: [f64; 10],
    end: [f64; 10],
    /// The primal objective where it stops by itself, and at the end.
    own_primal: f64,
    end_primal: f64,
}

const SOFT: Expected = Expected {
    gamma: 0.25,
    given: 18.612032518,
    twice: [
        1.3253654, -0.2026854, 0.0694370, -0.5623783, 0.8674441, -0.1078001, -0.2603325, 0.4620755,
        -0.0640268, 1.4153691,
    ],
    end: [
        0.5897255, -0.0964458, 0.0459448, -0.0927771, 0.5519829, -0.0612026, -0.0503711, 0.4098422,
        -0.0072999, 0.6250836,
    ],
    own_primal: 12.700281213,
    end_primal: 12.700280736,
};
const HARD: Expected = Expected {
    gamma: 4.0,
    given: 288.647471051,
    twice: [
        8.6532786, 2.8553115, -3.4071495, -5.3192693, 7.5976299, -1.7292809, -4.3926401, 1.6472445,
        2.3063065, 5.1346297,
    ],
    end: [
        0.5879475, -0.1012439, 0.0736874, -0.1655801, 0.5294411, -0.0699202, -0.0561738, 0.2648113,
        -0.0049240, 0.6533700,
    ],
    own_primal: 189.729574934,
    end_primal: 189.726937376,
};
/// Its prior `covariance`, which divides by n − 1.
const WHITENING: [f64; 10] = [
    1.0214669, 0.1182057, -0.0078040, 0.0564833, 1.1684606, -0.0929163, -0.1102948, 1.4915942,
    -0.0822487, 1.4555232,
];

/// The set of sets.py.
fn set() -> (MemoryCorpus, Supervision) {
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
    let labels = Labels::from_numbers(&classes).unwrap();
    let corpus = MemoryCorpus::new(rows).unwrap();
    (corpus, Supervision::labels(labels))
}

/// The pairs of itml.py: every row with the third after it and then every row with the fourth.
fn after(steps: u64) -> Vec<[RowId; 2]> {
    (0..60).map(|row| [row, (row + steps) % 60]).collect()
}

fn pairs(space: &TrainingSpace<'_>) -> Constraints {
    let near = after(3).into_iter().map(|[a, b]| ((a, b), true));
    let far = after(4).into_iter().map(|[a, b]| ((a, b), false));
    Constraints::new(space, near.chain(far).collect(), 1.0).unwrap()
}

/// The positive definite matrix of itml.py.
fn given() -> Mat<f64> {
    Mat::from_fn(4, 4, |i, j| {
        1.0 / (2 + i + j) as f64 + if i == j { 0.5 } else { 0.0 }
    })
}

/// LogDet divergence from the identity, plus gamma times that of the bounds, which give way as far as
/// distances ask for it.
fn primal(matrix: &Mat<f64>, pairs: &Constraints, gamma: f64) -> f64 {
    let trace: f64 = (0..4).map(|i| matrix[(i, i)]).sum();
    let eigenvalues = matrix.self_adjoint_eigenvalues(Side::Lower).unwrap();
    let logarithm: f64 = eigenvalues.iter().map(|value| value.ln()).sum();
    let mut value = trace - logarithm - 4.0;
    for (v, similar) in pairs.differences.rows().iter().zip(&pairs.similar) {
        let mut distance = 0.0;
        for i in 0..4 {
            for j in 0..4 {
                distance += f64::from(v[i]) * matrix[(i, j)] * f64::from(v[j]);
            }
        }
        let ratio: f64 = if *similar {
            (distance / BOUNDS.0).max(1.0)
        } else {
            (distance / BOUNDS.1).min(1.0)
        };
        value += gamma * (ratio - ratio.ln() - 1.0);
    }
    value
}

fn same(found: &Mat<f64>, upper: &[f64; 10], tolerance: f64) {
    let places = (0..4).flat_map(|i| (i..4).map(move |j| (i, j)));
    for ((i, j), expected) in places.zip(upper) {
        for found in [found[(i, j)], found[(j, i)]] {
            let apart = (found - expected).abs();
            assert!(apart < tolerance, "({i}, {j}): {found}, not {expected}");
        }
    }
}

fn learned(pairs: &Constraints, gamma: f64, cycles: u64, tolerance: f64) -> (Mat<f64>, f64) {
    let settings = Itml {
        gamma,
        cycles,
        tolerance,
        ..Itml::default()
    };
    let mut run = Run::new(1);
    let prior = Mat::<f64>::identity(4, 4);
    let matrix = batch(&settings, pairs, BOUNDS, prior, &mut run).unwrap();
    (matrix, run.facts["cycles"])
}

#[test]
fn cycles_and_their_end_are_those_of_metric_learn() {
    let (corpus, supervision) = set();
    let data = Dataset::new(&corpus, &supervision).unwrap();
    let pairs = pairs(&TrainingSpace::new(&data).unwrap());
    for expected in [&SOFT, &HARD] {
        let gamma = expected.gamma;
        let found = primal(&given(), &pairs, gamma);
        assert!((found / expected.given - 1.0).abs() < 1e-9, "{found}");
        same(&learned(&pairs, gamma, 2, 1e-3).0, &expected.twice, 1e-5);
        let (end, _) = learned(&pairs, gamma, 10_000, 1e-12);
        same(&end, &expected.end, 1e-5);
        let found = primal(&end, &pairs, gamma);
        assert!(found <= expected.end_primal * (1.0 + 1e-6), "{found}");
        // The map that comes of it keeps the matrix.
        let map = Symmetric::new(end.clone())
            .unwrap()
            .eigen()
            .unwrap()
            .factor(usize::MAX);
        assert!((map.transpose() * &map - &end).norm_max() < 1e-9);
        // Where metric-learn stops by itself. It divides by Euclidean lengths of the multipliers, we by
        // their sums, which are up to √pairs times as large: its 1e-3 is about our 1e-4 here.
        let (own, _) = learned(&pairs, gamma, 10_000, 1e-4);
        let found = primal(&own, &pairs, gamma);
        assert!(found <= expected.own_primal * (1.0 + 1e-6), "{found}");
    }
}

/// Bounds on the same pairs, but as supervision lists them, lead to the same end: each counts once.
#[test]
fn listed_pairs_are_those_of_metric_learn() {
    let (corpus, _) = set();
    let comparisons = Comparisons::new(60).with_pairs(&after(3), &after(4));
    let supervision = Supervision::Comparisons(comparisons.unwrap());
    let data = Dataset::new(&corpus, &supervision).unwrap();
    let space = TrainingSpace::new(&data).unwrap();
    let relevance = data.relevance("itml").unwrap();
    let listed = Itml::default().listed(&supervision, relevance, 1);
    let pairs = Constraints::new(&space, listed, 1.0).unwrap();
    for expected in [&SOFT, &HARD] {
        let (end, _) = learned(&pairs, expected.gamma, 10_000, 1e-12);
        same(&end, &expected.end, 1e-5);
    }
}

#[test]
fn the_whitening_prior_is_that_of_metric_learn() {
    let (corpus, supervision) = set();
    let data = Dataset::new(&corpus, &supervision).unwrap();
    let space = TrainingSpace::new(&data).unwrap();
    let found = prior(&space, Prior::Whitening, 1.0).unwrap();
    same(&(found * faer::Scale(59.0 / 60.0)), &WHITENING, 1e-6);
}
