//! LMNN against a dense reference that lists every triplet.

use super::*;
use crate::data::synthetic::Nuisance;
use crate::learn::whole::MappedLoss;
use crate::random::Stream;
use crate::supervision::Supervision;

const SET: Nuisance = Nuisance {
    classes: 3,
    signal: 2,
    noise: 3,
    seed: 4,
};

/// The objective by its definition, in f64, over all rows of other classes.
fn dense(rows: &[Vec<f64>], classes: &[i64], k: usize, loss: Loss, map: &[f64]) -> f64 {
    let dim = rows[0].len();
    let mapped: Vec<Vec<f64>> = (rows.iter())
        .map(|row| {
            let along = |m: &[f64]| m.iter().zip(row).map(|(a, b)| a * b).sum();
            map.chunks(dim).map(along).collect()
        })
        .collect();
    let apart = |of: &[Vec<f64>], a: usize, b: usize| -> f64 {
        of[a].iter().zip(&of[b]).map(|(a, b)| (a - b).powi(2)).sum()
    };
    let mut value = 0.0;
    for i in 0..rows.len() {
        let mut near: Vec<usize> = (0..rows.len())
            .filter(|j| *j != i && classes[*j] == classes[i])
            .collect();
        near.sort_by(|a, b| apart(rows, i, *a).total_cmp(&apart(rows, i, *b)));
        for j in near.into_iter().take(k) {
            let limit = apart(&mapped, i, j) + loss.margin;
            value += loss.pull * apart(&mapped, i, j);
            for l in (0..rows.len()).filter(|l| classes[*l] != classes[i]) {
                value += (1.0 - loss.pull) * (limit - apart(&mapped, i, l)).max(0.0);
            }
        }
    }
    value
}

fn wide(corpus: &MemoryCorpus) -> Vec<Vec<f64>> {
    let rows = corpus.rows();
    rows.iter()
        .map(|row| row.iter().map(|v| f64::from(*v)).collect())
        .collect()
}

fn fitted(settings: Lmnn, rows: usize) -> (f64, Map, Vec<Vec<f64>>, Vec<i64>) {
    let set = SET.rows(rows);
    let supervision = Supervision::labels(Labels::from_numbers(&set.classes).unwrap());
    let problem = Problem::new(&set.corpus, &supervision).unwrap();
    let mut run = Run::new(1);
    let map = settings.check().unwrap().fit(&problem, &mut run).unwrap();
    assert_eq!(run.facts["left_out"], 0.0);
    (run.facts["objective"], map, wide(&set.corpus), set.classes)
}

fn weights(map: &Map) -> Vec<f64> {
    let Map::LowRank(map) = map else {
        panic!("LMNN gives a low-rank map");
    };
    map.weights()
        .values()
        .iter()
        .map(|v| f64::from(*v))
        .collect()
}

/// Unscaled, so that the map is L itself.
fn plain() -> Lmnn {
    Lmnn {
        rank: 5,
        scaled: false,
        margin: 1.0,
        impostors: 1000,
        tolerance: 1e-6,
        ..Lmnn::default()
    }
}

#[test]
fn the_objective_is_that_of_all_triplets() {
    let (found, map, rows, classes) = fitted(plain(), 90);
    let loss = Loss {
        pull: 0.5,
        margin: 1.0,
    };
    let expected = dense(&rows, &classes, 3, loss, &weights(&map));
    assert!((found / expected - 1.0).abs() < 1e-4, "{found} {expected}");
    let start: Vec<f64> = (0..25).map(|n| f64::from(n % 6 == 0)).collect();
    let before = dense(&rows, &classes, 3, loss, &start);
    assert!(found < 0.8 * before, "{found} {before}");
}

/// A full matrix makes the problem convex in M = LᵀL, so that any descent method that gets far ends at
/// the same value: here plain subgradient steps on the dense objective, many of them.
#[test]
fn it_ends_where_slow_subgradient_steps_end() {
    let (found, _, rows, classes) = fitted(plain(), 60);
    let loss = Loss {
        pull: 0.5,
        margin: 1.0,
    };
    let mut map: Vec<f64> = (0..25).map(|n| f64::from(n % 6 == 0)).collect();
    let value = |map: &[f64]| dense(&rows, &classes, 3, loss, map);
    let mut best = value(&map);
    for step in 0..600 {
        let gradient: Vec<f64> = (0..25)
            .map(|n| {
                let mut moved = map.clone();
                moved[n] += 1e-5;
                let above = value(&moved);
                moved[n] -= 2e-5;
                (above - value(&moved)) / 2e-5
            })
            .collect();
        let length = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        let rate = 0.1 / (1.0 + f64::from(step) / 20.0);
        for (m, g) in map.iter_mut().zip(&gradient) {
            *m -= rate * g / length;
        }
        best = best.min(value(&map));
    }
    assert!(found <= best * 1.002, "{found} {best}");
}

#[test]
fn the_slope_is_that_of_the_value() {
    let set = SET.rows(40);
    let labels = Labels::from_numbers(&set.classes).unwrap();
    let loss = Loss {
        pull: 0.3,
        margin: 2.0,
    };
    let mut triplets = Triplets::new(loss, targets(&set.corpus, &labels, 2).unwrap());
    let reach = vec![Some(f32::MAX); 40];
    let (all, left_out) = impostors(&set.corpus, &labels, &reach, 1000).unwrap();
    assert_eq!(
        (all.len(), left_out),
        (40 * 40 - (14 * 14 + 2 * 13 * 13), 0)
    );
    triplets.set_impostors(all);
    let (_, slopes) = triplets.evaluate(set.corpus.rows()).unwrap();
    let mut random = Stream::new(1, "test", 0);
    for _ in 0..20 {
        let (row, column) = (random.below(40) as usize, random.below(5) as usize);
        let at = |by: f32| {
            let mut moved = RowBuf::from_values(set.corpus.rows().values().to_vec(), 5).unwrap();
            moved.row_mut(row)[column] += by;
            triplets.evaluate(moved.rows()).unwrap().0
        };
        let expected = (at(0.01) - at(-0.01)) / 0.02;
        let found = f64::from(slopes.row(row)[column]);
        assert!(
            (found - expected).abs() < 0.02 * expected.abs().max(10.0),
            "{found} {expected}"
        );
    }
}

#[test]
fn only_the_nearest_impostors_are_kept() {
    let set = SET.rows(60);
    let labels = Labels::from_numbers(&set.classes).unwrap();
    let mut reach = vec![Some(f32::MAX); 60];
    reach[7] = None;
    let (kept, left_out) = impostors(&set.corpus, &labels, &reach, 5).unwrap();
    assert_eq!(left_out, 59 * 35);
    assert!(kept.of(7).is_empty());
    let rows = wide(&set.corpus);
    let apart = |a: usize, b: usize| -> f64 {
        rows[a]
            .iter()
            .zip(&rows[b])
            .map(|(a, b)| (a - b).powi(2))
            .sum()
    };
    for row in [0, 31, 59] {
        let mut expected: Vec<usize> = (0..60)
            .filter(|l| set.classes[*l] != set.classes[row])
            .collect();
        expected.sort_by(|a, b| apart(row, *a).total_cmp(&apart(row, *b)));
        expected.truncate(5);
        expected.sort_unstable();
        let found: Vec<usize> = kept.of(row).iter().map(|l| *l as usize).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn what_cannot_be_learned_from_is_an_error() {
    let set = SET.rows(30);
    let fit = |labels: Vec<i64>| {
        let supervision = Supervision::labels(Labels::from_numbers(&labels).unwrap());
        let problem = Problem::new(&set.corpus, &supervision).unwrap();
        let learner = Lmnn {
            rank: 5,
            ..Lmnn::default()
        };
        let found = learner.check().unwrap().fit(&problem, &mut Run::new(1));
        found.unwrap_err().to_string()
    };
    assert!(fit(vec![1; 30]).contains("two classes"));
    assert!(fit((0..30).collect()).contains("two rows"));
}
