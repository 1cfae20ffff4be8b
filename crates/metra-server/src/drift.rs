//! Whether queries are still like those that were expected.
//!
//! Queries are compared with a reference where the model compares them: after its map. What the map takes away cannot change a
//! ranking, and mapped vectors are at hand. Three numbers say how a window of queries differs from the reference: how far its mean
//! has moved, how its vectors' lengths have changed before the map, and how many lie outside the ellipsoid that holds most of the
//! reference.

use crate::options::VectorFile;
use crate::rows::{VectorRows, embed};
use crate::{Error, Result};
use faer::{Mat, Side as Triangle};
use metra::data::{Corpus, MemoryCorpus};
use metra::internal::moments;
use metra::linalg::{RowBuf, Rows};
use metra::model::{Model, Side};
use std::sync::{Mutex, PoisonError};

/// Share of the reference that its ellipsoid holds.
const INSIDE: f64 = 0.99;
/// Directions in which the reference varies less than this part of its largest variance count as if they had it: beside a variance of
/// nothing, rounding would look like a change.
const SMALLEST_VARIANCE: f64 = 1e-6;
/// Rows of half a window.
const HALF_WINDOW: u64 = 500;
/// Rows of one request that are looked at, so that watching stays cheap beside mapping.
const ROWS_OF_REQUEST: usize = 16;
/// Fewer rows would make an ellipsoid of chance.
const FEWEST: u64 = 100;

/// What queries were like, and what they have been like of late.
pub(crate) struct Drift {
    /// Mean of the mapped reference.
    mean: Vec<f32>,
    /// Turns differences from the mean into numbers of mean 0 and variance 1.
    whitening: RowBuf,
    /// Squared radius of the ellipsoid after that.
    radius: f64,
    /// Mean length of the reference's vectors before the map.
    length: f64,
    window: Mutex<Window>,
}

/// Sums over the last rows, in two halves, the older of which is dropped when the newer is full.
#[derive(Default)]
struct Window {
    older: Sums,
    newer: Sums,
}

#[derive(Clone, Default)]
struct Sums {
    rows: u64,
    whitened: Vec<f64>,
    length: f64,
    outside: u64,
}

/// How queries differ from the reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DriftReading {
    /// Queries in the window.
    pub(crate) rows: u64,
    /// How far their mean is from that of the reference, in standard deviations, less what chance gives.
    pub(crate) mean_shift: f64,
    /// Their mean length before the map, divided by that of the reference.
    pub(crate) norm_ratio: f64,
    /// The share outside the ellipsoid that holds 99 % of the reference.
    pub(crate) share_outside: f64,
}

impl Drift {
    /// Learn from a file of queries what queries are like.
    pub(crate) fn from_reference(reference: &VectorFile, model: &Model) -> Result<Self> {
        let VectorRows { rows, groups, .. } = VectorRows::read(reference, &[], model)?;
        let wrong = |problem: String| Error::file(&reference.file, problem);
        if model.chain.code().is_some_and(|code| code.codes_queries()) {
            let problem = "the model's code rounds queries to bits, which cannot be watched";
            return Err(wrong(problem.into()));
        }
        if (rows.len() as u64) < FEWEST {
            let found = rows.len();
            let problem = format!("expected at least {FEWEST} queries, but found {found}");
            return Err(wrong(problem));
        }
        let mapped = embed(&model.chain, Side::Query, &rows, groups.as_ref());
        let mapped = mapped.and_then(MemoryCorpus::new);
        Drift::new(&rows, &mapped.map_err(|e| wrong(e.to_string()))?).map_err(wrong)
    }

    fn new(rows: &RowBuf, mapped: &MemoryCorpus) -> std::result::Result<Self, String> {
        let wrong = |error: metra::Error| error.to_string();
        let length = rows.rows().iter().map(norm).sum::<f64>() / rows.len() as f64;
        let found = moments(mapped).map_err(wrong)?;
        let eigen = (found.covariance.entries())
            .self_adjoint_eigen(Triangle::Lower)
            .map_err(|_| "the covariance of mapped queries has no eigenvalues".to_owned())?;
        let values: Vec<f64> = eigen.S().column_vector().iter().copied().collect();
        let largest = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let dim = mapped.dim();
        let vectors: Mat<f64> = eigen.U().to_owned();
        let mut whitening = RowBuf::zeros(dim, dim);
        for (direction, value) in values.iter().enumerate() {
            let factor = 1.0 / value.max(SMALLEST_VARIANCE * largest).sqrt();
            for (column, out) in whitening.row_mut(direction).iter_mut().enumerate() {
                *out = (vectors[(column, direction)] * factor) as f32;
            }
        }
        let mut drift = Drift {
            mean: found.mean.iter().map(|mean| *mean as f32).collect(),
            whitening,
            radius: 0.0,
            length,
            window: Mutex::default(),
        };
        let mut distances = Vec::with_capacity(rows.len());
        let scanned = mapped.scan(0..mapped.len(), &mut |_, rows| {
            distances.extend(rows.iter().map(|row| squared(&drift.whitened(row))));
            Ok(())
        });
        scanned.map_err(wrong)?;
        distances.sort_by(f64::total_cmp);
        let last = (INSIDE * distances.len() as f64).ceil() as usize;
        drift.radius = distances[last.min(distances.len()) - 1];
        Ok(drift)
    }

    fn whitened(&self, mapped: &[f32]) -> Vec<f64> {
        let centred: Vec<f32> = mapped.iter().zip(&self.mean).map(|(v, m)| v - m).collect();
        let products = self.whitening.rows();
        (products.iter())
            .map(|row| {
                let terms = row.iter().zip(&centred);
                f64::from(terms.map(|(weight, value)| weight * value).sum::<f32>())
            })
            .collect()
    }

    /// Look at the queries of a request, before and after the map.
    pub(crate) fn observe(&self, rows: Rows<'_>, mapped: Rows<'_>) {
        let step = rows.len().div_ceil(ROWS_OF_REQUEST).max(1);
        let seen: Vec<(f64, Vec<f64>)> = (0..rows.len())
            .step_by(step)
            .map(|row| (norm(rows.row(row)), self.whitened(mapped.row(row))))
            .collect();
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        for (length, whitened) in seen {
            let distance = squared(&whitened);
            // What overflows lies outside, and would spoil the sums.
            match distance.is_finite() {
                true => window.add(length, &whitened, distance > self.radius),
                false => window.add(self.length, &[], true),
            }
        }
    }

    /// What the last queries were like, `None` before there were any.
    pub(crate) fn reading(&self) -> Option<DriftReading> {
        let window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let (older, newer) = (&window.older, &window.newer);
        let rows = older.rows + newer.rows;
        if rows == 0 {
            return None;
        }
        let count = rows as f64;
        let sum = |direction: usize| {
            let of = |half: &Sums| half.whitened.get(direction).copied().unwrap_or(0.0);
            of(older) + of(newer)
        };
        let dim = self.mean.len();
        let mean: Vec<f64> = (0..dim).map(|direction| sum(direction) / count).collect();
        // The mean of so many rows of the reference itself has this squared length.
        let by_chance = dim as f64 / count;
        Some(DriftReading {
            rows,
            mean_shift: (squared(&mean) - by_chance).max(0.0).sqrt(),
            norm_ratio: (older.length + newer.length) / (count * self.length),
            share_outside: (older.outside + newer.outside) as f64 / count,
        })
    }
}

impl Window {
    fn add(&mut self, length: f64, whitened: &[f64], is_outside: bool) {
        if self.newer.rows == HALF_WINDOW {
            self.older = std::mem::take(&mut self.newer);
        }
        let sums = &mut self.newer;
        sums.rows += 1;
        sums.length += length;
        sums.outside += u64::from(is_outside);
        if sums.whitened.len() < whitened.len() {
            sums.whitened.resize(whitened.len(), 0.0);
        }
        for (sum, value) in sums.whitened.iter_mut().zip(whitened) {
            *sum += value;
        }
    }
}

fn squared(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

fn norm(row: &[f32]) -> f64 {
    let squares = row.iter().map(|value| f64::from(*value).powi(2));
    squares.sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use metra::internal::Stream;

    /// Two columns of standard deviation 3 and 0.5 about (10, 0).
    fn rows(count: usize, seed: u64) -> RowBuf {
        let mut random = Stream::new(seed, "drift", 0);
        let mut values = Vec::new();
        for _ in 0..count {
            values.push((10.0 + 3.0 * random.normal()) as f32);
            values.push((0.5 * random.normal()) as f32);
        }
        RowBuf::from_values(values, 2).unwrap()
    }

    fn drift() -> Drift {
        let rows = rows(20_000, 1);
        Drift::new(&rows, &MemoryCorpus::new(rows.clone()).unwrap()).unwrap()
    }

    fn after(change: impl Fn(&mut [f32])) -> DriftReading {
        let drift = drift();
        assert_eq!(drift.reading(), None);
        for request in 0..100 {
            let mut rows = rows(10, 100 + request);
            (0..10).for_each(|row| change(rows.row_mut(row)));
            drift.observe(rows.rows(), rows.rows());
        }
        drift.reading().unwrap()
    }

    #[test]
    fn queries_of_the_reference_stay_inside() {
        let reading = after(|_| {});
        assert_eq!(reading.rows, 1_000);
        assert!(reading.mean_shift < 0.1, "{reading:?}");
        assert!((reading.norm_ratio - 1.0).abs() < 0.03, "{reading:?}");
        assert!(
            (0.003..0.02).contains(&reading.share_outside),
            "{reading:?}"
        );
    }

    #[test]
    fn a_shift_is_measured_in_standard_deviations() {
        // One and a half of .5 are three standard deviations, and 99 % of a plane lie within 3.03 of them.
        let reading = after(|row| row[1] += 1.5);
        assert!((reading.mean_shift - 3.0).abs() < 0.15, "{reading:?}");
        assert!((0.4..0.6).contains(&reading.share_outside), "{reading:?}");
        let reading = after(|row| row.iter_mut().for_each(|value| *value *= 2.0));
        assert!((reading.norm_ratio - 2.0).abs() < 0.06, "{reading:?}");
    }

    #[test]
    fn what_overflows_lies_outside() {
        let drift = drift();
        let huge = RowBuf::from_values(vec![3e38, -3e38], 2).unwrap();
        drift.observe(huge.rows(), huge.rows());
        drift.observe(rows(1, 3).rows(), rows(1, 3).rows());
        let reading = drift.reading().unwrap();
        assert_eq!((reading.rows, reading.share_outside), (2, 0.5));
        assert!(reading.mean_shift.is_finite() && reading.norm_ratio.is_finite());
    }

    #[test]
    fn the_window_forgets() {
        let drift = drift();
        let mut far = rows(16, 7);
        (0..16).for_each(|row| far.row_mut(row)[1] += 100.0);
        for _ in 0..40 {
            drift.observe(far.rows(), far.rows());
        }
        assert_eq!(drift.reading().unwrap().share_outside, 1.0);
        for request in 0..80 {
            let rows = rows(16, 200 + request);
            drift.observe(rows.rows(), rows.rows());
        }
        assert!(drift.reading().unwrap().share_outside < 0.05);
    }
}
