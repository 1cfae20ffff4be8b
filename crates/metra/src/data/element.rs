//! Stateless transforms of single values or single rows: L2 normalisation, square root, logarithm,
//! χ² feature map.
//!
//! On histogram features they matter more than the learner: the square root alone gained 5 to 18
//! points of rank-1 on re-identification sets for every learned method.

use crate::linalg::RowBuf;
use crate::{Error, Result};

/// A stateless map applied to every row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ElementMap {
    /// Divide by the Euclidean norm.
    Normalise,
    /// Square root; negative values are an error.
    SquareRoot,
    /// log(1 + a·x); values at or below −1/a are an error.
    Log {
        /// The factor a.
        factor: f32,
    },
    /// Features whose inner products approximate the additive χ² kernel Σ 2xy/(x + y): 2·order + 1
    /// for every value (Vedaldi & Zisserman, "Efficient Additive Kernels via Explicit Feature Maps",
    /// 2012). Negative values are an error.
    ChiSquare {
        /// Frequencies beside 0, from 1 to 3.
        order: u32,
    },
}

/// Distance of the sampled frequencies for each order: what makes the largest error smallest over
/// pairs of values up to 100 times apart (.096, .031 and .014 of √(xy)).
const CHI_SQUARE_PERIODS: [f64; 3] = [0.58, 0.5, 0.42];

impl ElementMap {
    /// Numbers in a row of `input` numbers after the map.
    pub(crate) fn output_dim(self, input: usize) -> usize {
        match self {
            ElementMap::ChiSquare { order } => input.saturating_mul(2 * order as usize + 1),
            _ => input,
        }
    }

    /// Distance of the frequencies that the χ² map of this order samples.
    pub fn chi_square_period(order: u32) -> f64 {
        let last = CHI_SQUARE_PERIODS.len() - 1;
        CHI_SQUARE_PERIODS[(order.max(1) as usize - 1).min(last)]
    }

    /// Apply to `rows` in place; `first` is the number of the first row, for error messages.
    pub fn apply(self, first: u64, rows: &mut RowBuf) -> Result<()> {
        let dim = rows.dim();
        match self {
            ElementMap::Normalise => {
                for (index, row) in rows.values_mut().chunks_exact_mut(dim).enumerate() {
                    if !divide_by_length(row) {
                        return Err(Error::Row {
                            row: first + index as u64,
                            problem: "expected a vector of non-zero length to normalise, but all \
                                      its values are 0"
                                .into(),
                        });
                    }
                }
            }
            ElementMap::SquareRoot => {
                if let Some(at) = rows.values().iter().position(|v| *v < 0.0) {
                    return Err(bad_cell(
                        first,
                        at,
                        dim,
                        rows.values()[at],
                        "at least 0 for the square root",
                    ));
                }
                for value in rows.values_mut() {
                    *value = value.sqrt();
                }
            }
            ElementMap::Log { factor } => {
                if let Some(at) = rows.values().iter().position(|v| factor * *v <= -1.0) {
                    let expected = format!("above {} for log(1 + {factor}·x)", -1.0 / factor);
                    return Err(bad_cell(first, at, dim, rows.values()[at], &expected));
                }
                for value in rows.values_mut() {
                    *value = (factor * *value).ln_1p();
                }
            }
            ElementMap::ChiSquare { order } => {
                if let Some(at) = rows.values().iter().position(|v| *v < 0.0) {
                    let expected = "at least 0 for the χ² map";
                    return Err(bad_cell(first, at, dim, rows.values()[at], expected));
                }
                *rows = chi_square_features(order, rows);
            }
        }
        Ok(())
    }
}

/// Divide a vector by its length, unless it is 0; whether it was divided.
pub(super) fn divide_by_length(vector: &mut [f32]) -> bool {
    // In f64: squares of f32 can leave f32's range.
    let squares = vector.iter().map(|v| f64::from(*v).powi(2));
    let length = squares.sum::<f64>().sqrt();
    if length == 0.0 {
        return false;
    }
    for value in vector {
        *value = (f64::from(*value) / length) as f32;
    }
    true
}

/// Ψ(x) of every value: √(x·L·κ(0)), then √(2x·L·κ(jL)) times cosine and sine of jL·log x, with the
/// kernel's spectrum κ(λ) = sech(πλ) sampled at period L. All values' first features come first.
fn chi_square_features(order: u32, rows: &RowBuf) -> RowBuf {
    let order = order.clamp(1, CHI_SQUARE_PERIODS.len() as u32) as usize;
    let period = ElementMap::chi_square_period(order as u32);
    let dim = rows.dim();
    let mut out = RowBuf::zeros(rows.len(), dim * (2 * order + 1));
    for (index, row) in rows.rows().iter().enumerate() {
        let target = out.row_mut(index);
        for (column, value) in row.iter().enumerate() {
            let x = f64::from(*value);
            if x == 0.0 {
                continue;
            }
            target[column] = (x * period).sqrt() as f32;
            for j in 1..=order {
                let frequency = j as f64 * period;
                let spectrum = 1.0 / (std::f64::consts::PI * frequency).cosh();
                let length = (2.0 * x * period * spectrum).sqrt();
                let (sine, cosine) = (frequency * x.ln()).sin_cos();
                target[(2 * j - 1) * dim + column] = (length * cosine) as f32;
                target[2 * j * dim + column] = (length * sine) as f32;
            }
        }
    }
    out
}

fn bad_cell(first: u64, at: usize, dim: usize, value: f32, expected: &str) -> Error {
    Error::Cell {
        row: first + (at / dim) as u64,
        column: at % dim,
        problem: format!("expected a value {expected}, but found {value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(values: &[f32]) -> RowBuf {
        RowBuf::from_values(values.to_vec(), 2).unwrap()
    }

    #[test]
    fn maps_by_hand() {
        let mut r = rows(&[3.0, 4.0]);
        ElementMap::Normalise.apply(0, &mut r).unwrap();
        assert_eq!(r.values(), &[0.6, 0.8]);
        let mut r = rows(&[4.0, 9.0]);
        ElementMap::SquareRoot.apply(0, &mut r).unwrap();
        assert_eq!(r.values(), &[2.0, 3.0]);
        let mut r = rows(&[0.0, 1.0]);
        ElementMap::Log { factor: 1000.0 }.apply(0, &mut r).unwrap();
        assert_eq!(r.values(), &[0.0, 1001.0_f32.ln()]);
    }

    #[test]
    fn bad_values_are_named() {
        let error = ElementMap::SquareRoot.apply(10, &mut rows(&[0.0, 1.0, 2.0, -3.0]));
        assert_eq!(
            error.unwrap_err().to_string(),
            "row 11, column 1: expected a value at least 0 for the square root, but found -3"
        );
        assert!(
            ElementMap::Normalise
                .apply(0, &mut rows(&[0.0, 0.0]))
                .is_err()
        );
        assert!(
            ElementMap::Log { factor: 2.0 }
                .apply(0, &mut rows(&[0.0, -0.5]))
                .is_err()
        );
        // Squares of these leave f32, their norm does not.
        let mut big = rows(&[3e30, 4e30]);
        ElementMap::Normalise.apply(0, &mut big).unwrap();
        assert!((big.values()[1] - 0.8).abs() < 1e-6);
    }

    #[test]
    fn chi_square_features_have_the_kernel_as_inner_product() {
        // Values of a histogram of some ten bins, and a zero, whose features are all 0.
        let values = [0.02, 0.1, 0.3, 0.05, 0.0, 0.2];
        for (order, tolerance) in [(1, 0.1), (2, 0.035), (3, 0.016)] {
            let mut features = rows(&values);
            let map = ElementMap::ChiSquare { order };
            map.apply(0, &mut features).unwrap();
            assert_eq!(features.dim(), map.output_dim(2));
            for i in 0..3 {
                for j in 0..3 {
                    let (x, y) = (&values[2 * i..2 * i + 2], &values[2 * j..2 * j + 2]);
                    let wanted: f32 = (x.iter().zip(y))
                        .map(|(x, y)| 2.0 * x * y / (x + y).max(1e-9))
                        .sum();
                    let (a, b) = (features.row(i), features.row(j));
                    let found: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                    let bound: f32 = x
                        .iter()
                        .zip(y)
                        .map(|(x, y)| tolerance * (x * y).sqrt())
                        .sum();
                    let difference = (found - wanted).abs();
                    assert!(difference <= bound, "{order}: {found} {wanted}");
                }
            }
        }
        let error = ElementMap::ChiSquare { order: 1 }.apply(5, &mut rows(&[0.0, -1.0]));
        let text = error.unwrap_err().to_string();
        assert!(
            text.starts_with("row 5, column 1: expected a value at least 0"),
            "{text}"
        );
    }
}
