//! Constraints by hand, derivatives against differences, and the optimum against a slow reference.

use super::*;
use crate::data::MemoryCorpus;
use crate::optimize::{Bound, Newton};
use crate::random::Stream;

fn corpus(rows: usize, dim: usize) -> MemoryCorpus {
    let mut random = Stream::new(1, "constraints test", 0);
    let values = (0..rows * dim).map(|_| random.normal() as f32).collect();
    MemoryCorpus::new(RowBuf::from_values(values, dim).unwrap()).unwrap()
}

fn quadruplet(near: [RowId; 2], far: [RowId; 2], strict: bool) -> Constraint {
    Constraint::Quadruplet(Quadruplet { near, far, strict })
}

/// Random quadruplets, every third light, and, with a threshold, pairs.
fn constraints(count: usize, rows: u64, pairs: bool) -> Vec<Constraint> {
    let mut random = Stream::new(2, "constraints test", 0);
    let mut row = || random.below(rows);
    let mut all: Vec<Constraint> = (0..count)
        .map(|n| {
            let (near, far, strict) = ([row(), row()], [row(), row()], n % 3 > 0);
            match n % 5 {
                0 => Constraint::OfClasses(Quadruplet { near, far, strict }),
                _ => quadruplet(near, far, strict),
            }
        })
        .collect();
    if pairs {
        all.extend((0..count / 2).map(|_| Constraint::Similar([row(), row()])));
        all.extend((0..count / 2).map(|_| Constraint::Dissimilar([row(), row()])));
    }
    all
}

const COSTS: Costs = Costs {
    lambda: 0.05,
    quadruplet: 0.02,
    of_classes: 0.01,
    pair: 0.03,
};

fn loss(corpus: &MemoryCorpus, features: Features, pairs: bool, h: f64) -> ConstraintLoss<'_> {
    let source = Source {
        corpus,
        features,
        factor: 0.5,
        threshold: pairs,
    };
    let hinge = Hinge::rounded(h);
    ConstraintLoss::new(source, hinge, COSTS, constraints(60, 20, pairs)).unwrap()
}

#[test]
fn rows_by_hand() {
    // Rows (0, 0, 0, 0), (3, 4, 0, 1), (1, 0, 0, 0).
    let values = vec![0.0, 0.0, 0.0, 0.0, 3.0, 4.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0];
    let corpus = MemoryCorpus::new(RowBuf::from_values(values, 4).unwrap()).unwrap();
    let source = |features, threshold| Source {
        corpus: &corpus,
        features,
        factor: 2.0,
        threshold,
    };
    let all = [
        quadruplet([0, 2], [0, 1], true),
        Constraint::Similar([0, 1]),
        Constraint::Dissimilar([2, 0]),
    ];
    // Squares: far 9, 16, 0, 1 less near 1, 0, 0, 0, times 2.
    let squares = source(Features::Squares, true).rows(&all).unwrap();
    assert_eq!(squares[..5], [16.0, 32.0, 0.0, 2.0, 0.0]);
    assert_eq!(squares[5..10], [-18.0, -32.0, 0.0, -2.0, 1.0]);
    assert_eq!(squares[10..], [2.0, 0.0, 0.0, 0.0, -1.0]);
    // Blocks of two: far 5, 1 less near 1, 0, times 2.
    let blocks = source(Features::Blocks(2), false).rows(&all[..1]).unwrap();
    assert_eq!(blocks, [8.0, 2.0]);
}

#[test]
fn strict_and_light_by_hand() {
    // One column: rows 0, 1, 2. near 0–1 (1), far 0–2 (4): z = 3, times factor 1.
    let corpus = MemoryCorpus::new(RowBuf::from_values(vec![0.0, 1.0, 2.0], 1).unwrap()).unwrap();
    let source = Source {
        corpus: &corpus,
        features: Features::Squares,
        factor: 1.0,
        threshold: false,
    };
    let hinge = Hinge::rounded(0.5);
    let costs = Costs {
        lambda: 0.1,
        quadruplet: 2.0,
        of_classes: 0.0,
        pair: 0.0,
    };
    let value = |strict, w: f64| {
        let one = vec![quadruplet([0, 1], [0, 2], strict)];
        let mut loss = ConstraintLoss::new(source, hinge, costs, one).unwrap();
        loss.evaluate(&[w], &mut [0.0]).unwrap()
    };
    // w = 0.1, t = 0.3. Strict: 1 − 0.3 = 0.7 on the line; light: (0.5 − 0.3)²/2 = 0.02.
    assert!((value(true, 0.1) - (0.001 + 2.0 * 0.7)).abs() < 1e-12);
    assert!((value(false, 0.1) - (0.001 + 2.0 * 0.02)).abs() < 1e-12);
    // w = 0.4, t = 1.2: strict (1.5 − 1.2)²/2 = 0.045; light 0.
    assert!((value(true, 0.4) - (0.016 + 2.0 * 0.045)).abs() < 1e-12);
    assert!((value(false, 0.4) - 0.016).abs() < 1e-12);
}

#[test]
fn derivatives_equal_finite_differences_kept_or_not() {
    let corpus = corpus(20, 6);
    for (features, pairs) in [(Features::Squares, true), (Features::Blocks(2), false)] {
        let mut loss = loss(&corpus, features, pairs, 2.0);
        let dim = loss.dim();
        let point: Vec<f64> = (0..dim).map(|k| 0.1 + 0.05 * k as f64).collect();
        let direction: Vec<f64> = (0..dim).map(|k| (k as f64 - 1.5) * 0.3).collect();
        let mut results = Vec::new();
        let kept = loss.kept.clone();
        for kept in [kept, None] {
            loss.kept = kept;
            let (mut gradient, mut product) = (vec![0.0; dim], vec![0.0; dim]);
            let value = loss.evaluate(&point, &mut gradient).unwrap();
            loss.hessian_product(&direction, &mut product).unwrap();
            let mut whole = Mat::zeros(dim, dim);
            loss.add_hessian(&mut whole).unwrap();
            for row in 0..dim {
                let entry =
                    |c| whole[(if row > c { row } else { c }, if row > c { c } else { row })];
                let expected: f64 = (0..dim).map(|c| entry(c) * direction[c]).sum();
                assert!((product[row] - expected).abs() < 1e-10);
            }
            results.push((value, gradient, product));
        }
        assert_eq!(results[0], results[1]);
        let (_, gradient, product) = &results[0];
        let e = 1e-6;
        let (mut up, mut down) = (vec![0.0; dim], vec![0.0; dim]);
        for k in 0..dim {
            let mut moved = point.clone();
            moved[k] += e;
            let above = loss.evaluate(&moved, &mut up).unwrap();
            moved[k] -= 2.0 * e;
            let below = loss.evaluate(&moved, &mut down).unwrap();
            assert!((gradient[k] - (above - below) / (2.0 * e)).abs() < 1e-7);
        }
        let at = |sign: f64| -> Vec<f64> {
            let both = point.iter().zip(&direction);
            both.map(|(p, d)| p + sign * e * d).collect()
        };
        loss.evaluate(&at(1.0), &mut up).unwrap();
        loss.evaluate(&at(-1.0), &mut down).unwrap();
        for k in 0..dim {
            assert!((product[k] - (up[k] - down[k]) / (2.0 * e)).abs() < 1e-5);
        }
    }
}

#[test]
fn projected_newton_reaches_the_optimum_of_a_slow_reference() {
    let corpus = corpus(20, 6);
    // Quadruplets alone, and the semi-supervised form with similar and dissimilar pairs.
    for (features, pairs) in [
        (Features::Squares, false),
        (Features::Squares, true),
        (Features::Blocks(2), true),
    ] {
        let mut loss = loss(&corpus, features, pairs, 0.3);
        let dim = loss.dim();
        let newton = Newton {
            bound: Bound::NonNegative,
            ..Newton::default()
        };
        let found = newton.minimise(&mut loss, &vec![0.0; dim]).unwrap();
        assert!(found.converged && found.residual < 1e-8, "{found:?}");
        let mut point = vec![0.0; dim];
        let mut gradient = vec![0.0; dim];
        for _ in 0..60_000 {
            loss.evaluate(&point, &mut gradient).unwrap();
            for (w, g) in point.iter_mut().zip(&gradient) {
                *w = (*w - 0.002 * g).max(0.0);
            }
        }
        for (a, b) in found.point.iter().zip(&point) {
            assert!((a - b).abs() < 1e-6, "{features:?} {pairs}: {a} {b}");
        }
    }
}
