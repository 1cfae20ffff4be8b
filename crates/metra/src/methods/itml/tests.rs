//! ITML against its optimality conditions.

use super::*;
use faer::linalg::solvers::Solve;

fn constraints(seed: u64) -> Constraints {
    let mut random = Stream::new(seed, "test", 0);
    let (count, dim) = (24, 4);
    // Dissimilar pairs are longer along the first two axes, similar ones along the others.
    let mut values = Vec::new();
    let similar: Vec<bool> = (0..count).map(|number| number % 2 == 0).collect();
    for similar in &similar {
        for axis in 0..dim {
            let long = *similar == (axis >= 2);
            values.push(random.normal() as f32 * if long { 1.0 } else { 0.4 });
        }
    }
    Constraints {
        differences: RowBuf::from_values(values, dim).unwrap(),
        similar,
        coincident: 0,
    }
}

/// The problem is convex: what satisfies the Karush-Kuhn-Tucker conditions is its solution. With
/// multipliers λ ≥ 0 they are A⁻¹ = A₀⁻¹ + Σ ±λ v vᵀ, 1/ξ = 1/ξ₀ ∓ λ/γ, and vᵀAv on the right side
/// of ξ, at it where λ > 0.
#[test]
fn the_end_satisfies_the_optimality_conditions() {
    let pairs = constraints(3);
    let settings = Itml {
        cycles: 20_000,
        tolerance: 1e-12,
        gamma: 0.7,
        ..Itml::default()
    };
    let (near, far) = (0.5, 1.5);
    let mut dual = Dual {
        multipliers: vec![0.0; pairs.len()],
        bounds: pairs
            .similar
            .iter()
            .map(|s| if *s { near } else { far })
            .collect(),
    };
    let prior = Mat::<f64>::identity(4, 4);
    let matrix = batch(
        &settings,
        &pairs,
        (near, far),
        prior.clone(),
        &mut Run::new(1),
    )
    .unwrap();
    // The same projections once more, to see the multipliers.
    let mut again = prior;
    let mut product = Vec::new();
    for _ in 0..20_000 {
        for (number, v) in pairs.differences.rows().iter().enumerate() {
            let distance = mapped(&again, v, &mut product);
            let similar = pairs.similar[number];
            let factor = project(&mut dual, number, similar, distance, 0.7);
            update(&mut again, &product, factor);
        }
    }
    assert!((&matrix - &again).norm_max() < 1e-6);
    let mut inverse = Mat::<f64>::identity(4, 4);
    for (number, v) in pairs.differences.rows().iter().enumerate() {
        let sign = if pairs.similar[number] { 1.0 } else { -1.0 };
        let multiplier = dual.multipliers[number];
        assert!(multiplier >= -1e-12);
        for i in 0..4 {
            for j in 0..4 {
                inverse[(i, j)] += sign * multiplier * f64::from(v[i]) * f64::from(v[j]);
            }
        }
        let start = if pairs.similar[number] { near } else { far };
        let bound = 1.0 / (1.0 / start - sign * multiplier / 0.7);
        assert!((bound - dual.bounds[number]).abs() < 1e-6 * bound);
        let distance = mapped(&matrix, v, &mut product);
        assert!(sign * (distance - bound) < 1e-5, "{distance} {bound}");
        if multiplier > 1e-6 {
            assert!((distance - bound).abs() < 1e-5, "{distance} {bound}");
        }
    }
    let solved = inverse.partial_piv_lu().solve(Mat::<f64>::identity(4, 4));
    assert!((&solved - &matrix).norm_max() < 1e-5);
}

/// The online step minimises D(A, A_t) + η (vᵀAv − y)²: its slope there is 0, so that
/// A⁻¹ = A_t⁻¹ + 2η(ȳ − y)vvᵀ with the paper's η taken for 2η.
#[test]
fn an_online_step_is_the_minimum_of_its_objective() {
    let settings = Itml {
        rate: 0.3,
        ..Itml::default()
    };
    let pairs = Constraints {
        differences: RowBuf::from_values(vec![2.0, 1.0], 2).unwrap(),
        similar: vec![true],
        coincident: 0,
    };
    let prior = Mat::<f64>::identity(2, 2);
    let matrix = online(&settings, &pairs, (0.5, 9.0), prior, &Run::new(1)).unwrap();
    let reached = mapped(&matrix, &[2.0, 1.0], &mut Vec::new());
    assert!(reached < 5.0 && reached > 0.5, "{reached}");
    let inverse = matrix.partial_piv_lu().solve(Mat::<f64>::identity(2, 2));
    let v = [2.0, 1.0];
    for i in 0..2 {
        for j in 0..2 {
            let expected = f64::from(i == j) + 0.3 * (reached - 0.5) * v[i] * v[j];
            assert!((inverse[(i, j)] - expected).abs() < 1e-9);
        }
    }
}

#[test]
fn pairs_that_coincide_are_left_out_and_none_left_is_an_error() {
    use crate::data::MemoryCorpus;
    use crate::supervision::{Labels, Supervision};
    let fit = |values: Vec<f32>| {
        let corpus = MemoryCorpus::new(RowBuf::from_values(values, 2).unwrap()).unwrap();
        let supervision = Supervision::labels(Labels::from_numbers(&[0, 0, 1, 1, 2, 2]).unwrap());
        let data = Dataset::new(&corpus, &supervision).unwrap();
        let mut run = Run::new(1);
        let found = Itml::default().checked().unwrap().fit(&data, &mut run);
        found.map(|_| run.facts["coincident"])
    };
    // The first two rows are equal: one of the three relevant pairs coincides.
    let some = vec![1.0, 2.0, 1.0, 2.0, 4.0, 1.0, 5.0, 1.5, 0.0, 7.0, 0.5, 6.0];
    assert_eq!(fit(some).unwrap(), 1.0);
    let all = vec![1.0, 2.0, 1.0, 2.0, 4.0, 1.0, 4.0, 1.0, 0.0, 7.0, 0.0, 7.0];
    let error = fit(all).unwrap_err().to_string();
    assert!(error.contains("of the others 0 are similar"), "{error}");
}
