//! Relative attributes: derivatives against differences, the optimum against a slow reference, the
//! kernel form against the linear one.

use super::*;
use crate::data::MemoryCorpus;
use crate::linalg::RowBuf;
use crate::model::Side;
use crate::random::Stream;
use crate::supervision::{ClassOrdering, Labels};

/// Four classes on a line in the first coordinate, noise in the others.
fn set(rows: usize, dim: usize) -> (MemoryCorpus, Orderings) {
    let mut random = Stream::new(3, "attributes test", 0);
    let mut values = Vec::new();
    let mut names = Vec::new();
    for row in 0..rows {
        let class = row % 4;
        names.push(["A", "B", "C", "D"][class]);
        for column in 0..dim {
            let signal = if column == 0 { class as f64 } else { 0.0 };
            values.push((signal + 0.8 * random.normal()) as f32);
        }
    }
    let corpus = MemoryCorpus::new(RowBuf::from_values(values, dim).unwrap()).unwrap();
    let orderings = vec![
        ClassOrdering::parse("up", "A<B~C<D").unwrap(),
        ClassOrdering::parse("down", "D<C<B<A").unwrap(),
    ];
    let orderings = Orderings::new(Labels::from_names(&names).unwrap(), orderings).unwrap();
    (corpus, orderings)
}

const MIXED: Scheme = Scheme {
    pairs: PairScheme::All,
    quads: Quads::Wider,
    light: Light::Level,
    margin: ByGap::Root,
    weight: ByGap::Gap,
    count: 50,
};

fn scorer<'a>(
    coordinates: &'a Coordinates<'_>,
    orderings: &Orderings,
    scheme: Scheme,
    h: f64,
) -> Scorer<'a> {
    let (pairs, differences) = scheme.constraints(orderings, 0, 7);
    let loss = OrderedLoss::new(Hinge::rounded(h), pairs, differences);
    Scorer::new(coordinates, loss, 0.01)
}

#[test]
fn derivatives_equal_finite_differences() {
    let (corpus, orderings) = set(40, 5);
    let supervision = Supervision::Orderings(orderings.clone());
    let data = Dataset::new(&corpus, &supervision).unwrap();
    let coordinates = Coordinates::new(TrainingSpace::new(&data).unwrap()).unwrap();
    // A wide corner, so that few constraints cross an end of it within a difference.
    let mut objective = scorer(&coordinates, &orderings, MIXED, 5.0);
    let point = [0.3, -0.2, 0.5, 0.1, -0.4];
    let mut gradient = vec![0.0; 5];
    let mut other = vec![0.0; 5];
    objective.evaluate(&point, &mut gradient).unwrap();
    let direction = [0.7, 0.1, -0.3, 0.9, 0.2];
    let mut product = vec![0.0; 5];
    objective.hessian_product(&direction, &mut product).unwrap();
    let mut whole = Mat::zeros(5, 5);
    objective.add_hessian(&mut whole).unwrap();
    for row in 0..5 {
        let expected: f64 = (0..5).map(|c| whole[(row, c)] * direction[c]).sum();
        assert!((product[row] - expected).abs() < 1e-12);
    }
    let e = 1e-6;
    for k in 0..5 {
        let mut moved = point;
        moved[k] += e;
        let up = objective.evaluate(&moved, &mut other).unwrap();
        moved[k] -= 2.0 * e;
        let down = objective.evaluate(&moved, &mut other).unwrap();
        assert!((gradient[k] - (up - down) / (2.0 * e)).abs() < 1e-8);
    }
    let at = |sign: f64| -> Vec<f64> {
        let pairs = point.iter().zip(&direction);
        pairs.map(|(p, d)| p + sign * e * d).collect()
    };
    let (mut up, mut down) = (vec![0.0; 5], vec![0.0; 5]);
    objective.evaluate(&at(1.0), &mut up).unwrap();
    objective.evaluate(&at(-1.0), &mut down).unwrap();
    for k in 0..5 {
        let expected = (up[k] - down[k]) / (2.0 * e);
        assert!((product[k] - expected).abs() < 1e-6, "{k}");
    }
}

#[test]
fn newton_reaches_the_optimum_of_a_slow_reference() {
    let (corpus, orderings) = set(24, 4);
    let supervision = Supervision::Orderings(orderings.clone());
    let data = Dataset::new(&corpus, &supervision).unwrap();
    let coordinates = Coordinates::new(TrainingSpace::new(&data).unwrap()).unwrap();
    for dense in [0, 100] {
        let mut objective = scorer(&coordinates, &orderings, MIXED, 0.2);
        let newton = Newton {
            dense,
            ..Newton::default()
        };
        let found = newton.minimise(&mut objective, &[0.0; 4]).unwrap();
        assert!(found.converged, "{found:?}");
        // Plain gradient descent with a step below 1/L.
        let mut point = vec![0.0; 4];
        let mut gradient = vec![0.0; 4];
        for _ in 0..100_000 {
            objective.evaluate(&point, &mut gradient).unwrap();
            for (w, g) in point.iter_mut().zip(&gradient) {
                *w -= 0.05 * g;
            }
        }
        for (a, b) in found.point.iter().zip(&point) {
            assert!((a - b).abs() < 1e-6, "dense {dense}: {a} {b}");
        }
    }
}

fn outputs(settings: Attributes, corpus: &MemoryCorpus, orderings: &Orderings) -> Vec<f32> {
    let supervision = Supervision::Orderings(orderings.clone());
    let data = Dataset::new(corpus, &supervision).unwrap();
    let map = (settings.checked().unwrap())
        .fit(&data, &mut Run::new(5))
        .unwrap();
    let mut out = RowBuf::empty(1);
    map.apply(0, Side::Item, corpus.rows(), &mut out).unwrap();
    assert_eq!(out.dim(), 2);
    out.into_values()
}

#[test]
fn the_kernel_form_with_the_linear_kernel_is_the_linear_form() {
    // More rows than dimensions, and fewer.
    for (rows, dim) in [(60, 6), (20, 30)] {
        let (corpus, orderings) = set(rows, dim);
        let linear = outputs(Attributes::default(), &corpus, &orderings);
        let supervision = Supervision::Orderings(orderings.clone());
        let data = Dataset::new(&corpus, &supervision).unwrap();
        let settings = Attributes::default();
        let axes = KernelAxes::new(&corpus, settings.spec(), 5).unwrap();
        let coordinates = TrainingSpace::in_kernel_space(&data, &axes).unwrap();
        let coordinates = Coordinates::new(coordinates).unwrap();
        let scorers = settings
            .task()
            .scorers(&coordinates, &orderings, &mut Run::new(5));
        let map = coordinates.map(&scorers.unwrap()).unwrap();
        assert!(matches!(map, Map::Kernel(_)));
        let mut out = RowBuf::empty(1);
        map.apply(0, Side::Item, corpus.rows(), &mut out).unwrap();
        for (a, b) in out.values().iter().zip(&linear) {
            assert!((a - b).abs() < 1e-3, "{a} {b}");
        }
        assert_eq!(data.dim(), dim);
    }
}

#[test]
fn scores_follow_the_orderings_in_every_scheme() {
    let (corpus, orderings) = set(80, 6);
    let mean_of = |values: &[f32], class: usize, attribute: usize| {
        let of = (0..80).filter(|row| row % 4 == class);
        of.map(|row| f64::from(values[row * 2 + attribute]))
            .sum::<f64>()
            / 20.0
    };
    let base = Attributes {
        count: 500,
        ..Attributes::default()
    };
    let with = |pairs, quadruplets, light, kernel| Attributes {
        pairs,
        quadruplets,
        light,
        kernel,
        ..base.clone()
    };
    for settings in [
        with(
            PairScheme::All,
            Quads::None,
            Light::None,
            KernelKind::Linear,
        ),
        with(
            PairScheme::Neighbours,
            Quads::None,
            Light::Level,
            KernelKind::Linear,
        ),
        with(
            PairScheme::All,
            Quads::Level,
            Light::Classes,
            KernelKind::Linear,
        ),
        with(
            PairScheme::None,
            Quads::Nested,
            Light::None,
            KernelKind::Linear,
        ),
        with(PairScheme::None, Quads::Wider, Light::None, KernelKind::Rbf),
        with(
            PairScheme::None,
            Quads::Class,
            Light::None,
            KernelKind::Linear,
        ),
    ] {
        let values = outputs(settings.clone(), &corpus, &orderings);
        let up: Vec<f64> = (0..4).map(|class| mean_of(&values, class, 0)).collect();
        let down: Vec<f64> = (0..4).map(|class| mean_of(&values, class, 1)).collect();
        assert!(
            up[0] < up[1].min(up[2]) && up[1].max(up[2]) < up[3],
            "{settings:?} {up:?}"
        );
        assert!(down.is_sorted_by(|a, b| a > b), "{settings:?} {down:?}");
    }
}

#[test]
fn both_forms_of_the_weight_agree_and_bad_settings_are_named() {
    let (corpus, orderings) = set(40, 4);
    let pairs = Attributes {
        pairs: PairScheme::All,
        quadruplets: Quads::None,
        lambda: 0.02,
        ..Attributes::default()
    };
    // Ten rows a class: "down" has 6 class pairs of 100 row pairs; C·600 = 1/0.02 there.
    let by_cost = Attributes {
        cost: 1.0 / (0.02 * 600.0),
        ..pairs.clone()
    };
    let (one, other) = (
        outputs(pairs, &corpus, &orderings),
        outputs(by_cost, &corpus, &orderings),
    );
    for (a, b) in one.iter().zip(&other).skip(1).step_by(2) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }
    let none = Attributes {
        quadruplets: Quads::None,
        ..Attributes::default()
    };
    assert!(
        none.checked()
            .unwrap_err()
            .to_string()
            .contains("pairs must be")
    );
    let labels = Supervision::labels(orderings.labels().clone());
    let data = Dataset::new(&corpus, &labels).unwrap();
    let learner = Attributes::default().checked().unwrap();
    let error = learner.fit(&data, &mut Run::new(1)).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("attributes needs orderings of classes")
    );
}
