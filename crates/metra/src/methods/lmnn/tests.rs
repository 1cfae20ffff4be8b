//! LMNN against a dense reference that lists every triplet.

use super::*;
use crate::data::synthetic::Nuisance;
use crate::supervision::Supervision;
use crate::training::full_batch::MappedLoss;

const SET: Nuisance = Nuisance {
    classes: 3,
    signal: 2,
    noise: 3,
    seed: 4,
};

fn apart(rows: &[Vec<f64>], a: usize, b: usize) -> f64 {
    let squares = rows[a].iter().zip(&rows[b]).map(|(a, b)| (a - b).powi(2));
    squares.sum()
}

/// The objective by its definition, in f64, over all rows of other classes.
pub(super) struct Dense<'a> {
    rows: &'a [Vec<f64>],
    classes: &'a [i64],
    loss: Loss,
    /// The targets of each row.
    near: Vec<Vec<usize>>,
}

impl<'a> Dense<'a> {
    pub(super) fn new(rows: &'a [Vec<f64>], classes: &'a [i64], k: usize, loss: Loss) -> Self {
        let near = (0..rows.len()).map(|i| {
            let own = (0..rows.len()).filter(|j| *j != i && classes[*j] == classes[i]);
            let mut near: Vec<usize> = own.collect();
            near.sort_by(|a, b| apart(rows, i, *a).total_cmp(&apart(rows, i, *b)));
            near.truncate(k);
            near
        });
        Dense {
            rows,
            classes,
            loss,
            near: near.collect(),
        }
    }

    pub(super) fn at(&self, map: &[f64]) -> f64 {
        let along = |m: &[f64], row: &[f64]| m.iter().zip(row).map(|(a, b)| a * b).sum();
        let mapped: Vec<Vec<f64>> = (self.rows.iter())
            .map(|row| map.chunks(row.len()).map(|m| along(m, row)).collect())
            .collect();
        self.of_mapped(&mapped).0
    }

    /// Of rows mapped already; and how far the triplet nearest to its margin is from it.
    fn of_mapped(&self, mapped: &[Vec<f64>]) -> (f64, f64) {
        let (mut value, mut nearest) = (0.0, f64::INFINITY);
        for (i, near) in self.near.iter().enumerate() {
            for j in near {
                let limit = apart(mapped, i, *j) + self.loss.margin;
                value += self.loss.pull * apart(mapped, i, *j);
                for l in (0..mapped.len()).filter(|l| self.classes[*l] != self.classes[i]) {
                    let over = limit - apart(mapped, i, l);
                    value += (1.0 - self.loss.pull) * over.max(0.0);
                    nearest = nearest.min(over.abs());
                }
            }
        }
        (value, nearest)
    }
}

pub(super) fn wide(corpus: &MemoryCorpus) -> Vec<Vec<f64>> {
    let rows = corpus.rows();
    rows.iter()
        .map(|row| row.iter().map(|v| f64::from(*v)).collect())
        .collect()
}

fn fitted(settings: Lmnn, rows: usize) -> (f64, Map, Vec<Vec<f64>>, Vec<i64>) {
    let set = SET.rows(rows);
    let supervision = Supervision::labels(Labels::from_numbers(&set.classes).unwrap());
    let data = Dataset::new(&set.corpus, &supervision).unwrap();
    let mut run = Run::new(1);
    let map = settings.checked().unwrap().fit(&data, &mut run).unwrap();
    assert_eq!(run.facts["left_out"], 0.0);
    (run.facts["objective"], map, wide(&set.corpus), set.classes)
}

pub(super) fn weights(map: &Map) -> Vec<f64> {
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
    let dense = Dense::new(&rows, &classes, 3, loss);
    let expected = dense.at(&weights(&map));
    assert!((found / expected - 1.0).abs() < 1e-4, "{found} {expected}");
    let start: Vec<f64> = (0..25).map(|n| f64::from(n % 6 == 0)).collect();
    let before = dense.at(&start);
    assert!(found < 0.8 * before, "{found} {before}");
}

/// A full matrix makes the problem convex in M = LᵀL, so that any descent method that gets far ends at
/// the same value: here plain subgradient steps on the dense objective, many of them.
#[test]
fn it_ends_where_slow_subgradient_steps_end() {
    let (found, _, rows, classes) = fitted(plain(), 45);
    let loss = Loss {
        pull: 0.5,
        margin: 1.0,
    };
    let mut map: Vec<f64> = (0..25).map(|n| f64::from(n % 6 == 0)).collect();
    let dense = Dense::new(&rows, &classes, 3, loss);
    let value = |map: &[f64]| dense.at(map);
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

/// Differences are those of the dense objective: in f32, steps must be so long that triplets cross
/// their margin on the way. Between such crossings it is quadratic and central differences are exact.
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
    let (value, slopes) = triplets.evaluate(set.corpus.rows()).unwrap();
    let rows = wide(&set.corpus);
    let dense = Dense::new(&rows, &set.classes, 2, loss);
    let (expected, nearest) = dense.of_mapped(&rows);
    assert!((value / expected - 1.0).abs() < 1e-5, "{value} {expected}");
    let step = 1e-6;
    // Rows are less than 20 apart in any column.
    assert!(nearest > 40.0 * step, "{nearest}");
    for (row, column) in (0..40).flat_map(|row| (0..5).map(move |column| (row, column))) {
        let at = |by: f64| {
            let mut moved = rows.clone();
            moved[row][column] += by;
            dense.of_mapped(&moved).0
        };
        let expected = (at(step) - at(-step)) / (2.0 * step);
        let found = f64::from(slopes.row(row)[column]);
        assert!(
            (found - expected).abs() < 1e-5 * expected.abs().max(100.0),
            "row {row}, column {column}: {found} {expected}"
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
    for row in [0, 31, 59] {
        let mut expected: Vec<usize> = (0..60)
            .filter(|l| set.classes[*l] != set.classes[row])
            .collect();
        expected.sort_by(|a, b| apart(&rows, row, *a).total_cmp(&apart(&rows, row, *b)));
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
        let data = Dataset::new(&set.corpus, &supervision).unwrap();
        let learner = Lmnn {
            rank: 5,
            ..Lmnn::default()
        };
        let found = learner.checked().unwrap().fit(&data, &mut Run::new(1));
        found.unwrap_err().to_string()
    };
    assert!(fit(vec![1; 30]).contains("one class?"));
    assert!(fit((0..30).collect()).contains("no row has a relevant other row"));
}
