//! Rotations of mapped vectors that make codes lose less.
//!
//! ITQ: Gong & Lazebnik, "Iterative Quantization: A Procrustean Approach to Learning Binary Codes", CVPR 2011:
//! from a random rotation, signs and the rotation that brings the vectors nearest to them in turn.

use crate::linalg::{RowBuf, Rows, map_rows, rows_from, transposed_product};
use crate::model::LowRank;
use crate::random::Stream;
use crate::{Error, Result};
use faer::{Mat, MatRef};

/// Passes of ITQ; the publication takes 50.
const PASSES: usize = 50;

/// How ITQ is fitted.
pub(super) struct Itq {
    /// Whether the mean of the rows becomes the origin.
    pub(super) is_centred: bool,
    /// Whether all rows count alike, however long they are.
    pub(super) by_direction: bool,
    pub(super) seed: u64,
}

impl Itq {
    /// The rotation of some rows; `check` is asked between passes whether to go on.
    pub(super) fn fit(&self, mut rows: RowBuf, check: &dyn Fn() -> Result<()>) -> Result<LowRank> {
        let dim = rows.dim();
        let mean = match self.is_centred {
            true => rows.rows().mean(),
            false => vec![0.0; dim],
        };
        for row in rows.values_mut().chunks_exact_mut(dim) {
            for (value, mean) in row.iter_mut().zip(&mean) {
                *value = (f64::from(*value) - mean) as f32;
            }
            let squares = row.iter().map(|v| f64::from(*v).powi(2));
            let length = squares.sum::<f64>().sqrt();
            if self.by_direction && length > 0.0 {
                let values = row.iter_mut();
                values.for_each(|v| *v = (f64::from(*v) / length) as f32);
            }
        }
        let mut rotation = random_rotation(dim, self.seed)?;
        let (mut turned, mut products) = (RowBuf::empty(dim), RowBuf::empty(dim));
        for _ in 0..PASSES {
            check()?;
            map_rows(rows.rows(), rotation.rows(), &mut turned)?;
            for value in turned.values_mut() {
                *value = if *value > 0.0 { 1.0 } else { -1.0 };
            }
            rotation = towards(turned.rows(), rows.rows(), &mut products)?;
        }
        match self.is_centred {
            true => LowRank::centred(rotation, &mean),
            false => LowRank::new(rotation, None),
        }
    }
}

/// The rotation R for which the rows R·x are nearest to the targets (orthogonal Procrustes problem, Schönemann
/// 1966): U Vᵀ of targetsᵀ·rows.
pub(super) fn towards(targets: Rows<'_>, rows: Rows<'_>, products: &mut RowBuf) -> Result<RowBuf> {
    transposed_product(targets, rows, products)?;
    let dim = rows.dim();
    let wide = Mat::from_fn(dim, dim, |row, column| f64::from(products.row(row)[column]));
    Ok(rows_from(nearest_rotation(wide.as_ref())?.as_ref()))
}

/// U Vᵀ of a square matrix.
fn nearest_rotation(matrix: MatRef<'_, f64>) -> Result<Mat<f64>> {
    let svd = matrix.thin_svd().map_err(|_| {
        Error::Data("a rotation for the code does not exist: are all values finite?".into())
    })?;
    Ok(crate::linalg::product(svd.U(), svd.V().transpose()))
}

pub(super) fn random_rotation(dim: usize, seed: u64) -> Result<RowBuf> {
    let mut random = Stream::new(seed, "rotation", 0);
    let normal = Mat::from_fn(dim, dim, |_, _| random.normal());
    Ok(rows_from(nearest_rotation(normal.as_ref())?.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITQ: Itq = Itq {
        is_centred: true,
        by_direction: false,
        seed: 1,
    };

    fn error(rows: &RowBuf, rotation: &LowRank) -> f64 {
        let mut turned = RowBuf::empty(1);
        rotation.apply(rows.rows(), &mut turned).unwrap();
        let loss = |v: &f32| f64::from(1.0 - v.abs()).powi(2);
        turned.values().iter().map(loss).sum::<f64>() / turned.values().len() as f64
    }

    #[test]
    fn itq_turns_axes_into_corners() {
        // Points on the axes have half of their values at 0, where a sign says nothing; turned by 45 degrees,
        // every sign counts and the loss is 0.
        let at = 2.0_f32.sqrt();
        let values = [at, 0.0, -at, 0.0, 0.0, at, 0.0, -at].repeat(10);
        let rows = RowBuf::from_values(values, 2).unwrap();
        let rotation = ITQ.fit(rows.clone(), &|| Ok(())).unwrap();
        assert!(error(&rows, &rotation) < 1e-9);
        let weights = rotation.weights();
        let product: f32 = weights
            .row(0)
            .iter()
            .zip(weights.row(1))
            .map(|(a, b)| a * b)
            .sum();
        assert!(product.abs() < 1e-6);
        assert!(
            weights
                .values()
                .iter()
                .all(|v| (v.abs() - 0.5_f32.sqrt()).abs() < 1e-6)
        );
    }

    #[test]
    fn the_mean_is_taken_off() {
        let values: Vec<f32> = (0..64).map(|i| 100.0 + ((i * 7) % 11) as f32).collect();
        let rows = RowBuf::from_values(values, 2).unwrap();
        let rotation = ITQ.fit(rows.clone(), &|| Ok(())).unwrap();
        let mut turned = RowBuf::empty(1);
        rotation.apply(rows.rows(), &mut turned).unwrap();
        assert!(turned.rows().mean().iter().all(|mean| mean.abs() < 1e-3));
    }
}
