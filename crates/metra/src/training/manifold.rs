//! Steps on the manifold of positive semidefinite matrices of fixed rank, W = L Lᵀ, kept by its factor.
//!
//! The second-order retraction of Vandereycken & Vandewalle, as Lim & Lanckriet (ICML 2014) use it, in a
//! form that needs neither a gradient of size d × d nor a pseudo-inverse: only ∇ L and the Cholesky factor
//! of LᵀL, so that a step costs O(d·m²).

use crate::linalg::RowBuf;
use crate::{Error, Result};
use faer::linalg::solvers::Solve;
use faer::{Mat, MatRef, Side};

/// The factor after a step of this rate against the gradient (∇ L)ᵀ. A step longer than the radius
/// is shortened, and one that would make the rank drop is halved until it does not; nothing where even
/// the shortest would.
pub(crate) fn moved(
    factor: &RowBuf,
    gradient: &RowBuf,
    rate: f64,
    radius: f64,
) -> Result<Option<RowBuf>> {
    let wide = |rows: &RowBuf| {
        let rows = rows.rows();
        Mat::from_fn(rows.dim(), rows.len(), |i, j| f64::from(rows.row(j)[i]))
    };
    let (l, gradient) = (wide(factor), wide(gradient));
    let tangent = Tangent::new(l.as_ref(), gradient.as_ref())?;
    let length = rate * tangent.inner.norm_l2();
    let mut rate = if length > radius {
        rate * radius / length
    } else {
        rate
    };
    for _ in 0..30 {
        let next = tangent.retract(l.as_ref(), -rate);
        if full_rank(next.as_ref()) {
            let mut out = RowBuf::zeros(factor.len(), factor.dim());
            for (index, column) in next.col_iter().enumerate() {
                for (target, value) in out.row_mut(index).iter_mut().zip(column.iter()) {
                    *target = *value as f32;
                }
            }
            return Ok(Some(out));
        }
        rate *= 0.5;
    }
    Ok(None)
}

/// A symmetric gradient ∇ at W = L Lᵀ, as far as a step along it needs it: T = ∇ L (LᵀL)⁻¹ and
/// H = L†T = (LᵀL)⁻¹LᵀT.
struct Tangent {
    outer: Mat<f64>,
    inner: Mat<f64>,
}

impl Tangent {
    /// From L and G = ∇ L. Only the Cholesky factor of LᵀL is needed, and ∇ itself never.
    fn new(l: MatRef<'_, f64>, g: MatRef<'_, f64>) -> Result<Self> {
        let cholesky = (l.transpose() * l).llt(Side::Lower).map_err(|_| {
            Error::Data("the metric has lost its rank: expected independent directions".into())
        })?;
        let outer = cholesky.solve(g.transpose()).transpose().to_owned();
        let inner = cholesky.solve(l.transpose() * &outer);
        Ok(Tangent { outer, inner })
    }

    /// M with M Mᵀ = R_W(P_W(scale·∇)): Alg. 1 without U and V.
    ///
    /// Put V = I and U = scale·∇ into the corrected Alg. 1: with T and H times scale it reads
    /// M = L + T − ½ L H + ⅜ L H² − ½ T H.
    fn retract(&self, l: MatRef<'_, f64>, scale: f64) -> Mat<f64> {
        let t = faer::Scale(scale) * &self.outer;
        let h = faer::Scale(scale) * &self.inner;
        let bend = faer::Scale(0.375) * (&h * &h) - faer::Scale(0.5) * &h;
        l + &t + l * bend - faer::Scale(0.5) * (&t * &h)
    }
}

/// Whether the columns are independent by a good margin.
fn full_rank(l: MatRef<'_, f64>) -> bool {
    let inner = l.transpose() * l;
    let finite = inner.col_iter().all(|c| c.iter().all(|v| v.is_finite()));
    if !finite {
        return false;
    }
    let Ok(cholesky) = inner.llt(Side::Lower) else {
        return false;
    };
    let diagonal = cholesky.L().diagonal();
    let (mut least, mut most) = (f64::MAX, 0.0_f64);
    for value in diagonal.column_vector().iter() {
        least = least.min(*value);
        most = most.max(*value);
    }
    // The diagonal shows the smallest singular value only roughly, and the factor is rounded to f32.
    least > 1e-4 * most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn random(rows: usize, columns: usize, seed: u64) -> Mat<f64> {
        let mut stream = Stream::new(seed, "test", 0);
        Mat::from_fn(rows, columns, |_, _| stream.normal())
    }

    /// A symmetric Z of low rank as U Vᵀ with U = V C.
    fn symmetric(dim: usize, rank: usize) -> (Mat<f64>, Mat<f64>, Mat<f64>) {
        let v = random(dim, rank, 5);
        let weights = random(rank, 1, 6);
        let u = Mat::from_fn(dim, rank, |i, j| 0.1 * v[(i, j)] * weights[(j, 0)]);
        let z = &u * v.transpose();
        (u, v, z)
    }

    fn step_along(l: &Mat<f64>, z: &Mat<f64>) -> Mat<f64> {
        let tangent = Tangent::new(l.as_ref(), (z * l).as_ref()).unwrap();
        tangent.retract(l.as_ref(), 1.0)
    }

    fn assert_equal(a: &Mat<f64>, b: &Mat<f64>, tolerance: f64) {
        let difference = (a - b).norm_max();
        assert!(difference <= tolerance * b.norm_max(), "{difference}");
    }

    #[test]
    fn the_step_is_the_retraction_by_its_definition() {
        // Lemma 3.1 and 3.2 with explicit projections and pseudo-inverse.
        let (dim, rank) = (9, 3);
        let l = random(dim, rank, 1);
        let (_, _, z) = symmetric(dim, 4);
        let w = &l * l.transpose();
        let inverse = (l.transpose() * &l)
            .full_piv_lu()
            .solve(Mat::<f64>::identity(rank, rank));
        let pseudo = &l * &inverse * &inverse * l.transpose();
        let onto = &l * &inverse * l.transpose();
        let away = Mat::<f64>::identity(dim, dim) - &onto;
        let s = &onto * &z * &onto;
        let p = &away * &z * &onto + &onto * &z * &away;
        let half = faer::Scale(0.5);
        let v = &w + half * &s + &p
            - faer::Scale(0.125) * (&s * &pseudo * &s)
            - half * (&p * &pseudo * &s);
        let wanted = &v * &pseudo * v.transpose();
        let m = step_along(&l, &z);
        assert_equal(&(&m * m.transpose()), &wanted, 1e-12);
    }

    #[test]
    fn the_step_is_the_corrected_algorithm() {
        // Alg. 1 with S = A₂ᵀA₁; as printed, with A₁ᵀA₂, it is another one.
        let (dim, rank) = (8, 3);
        let l = random(dim, rank, 2);
        let (u, v, z) = symmetric(dim, 4);
        let inverse = (l.transpose() * &l)
            .full_piv_lu()
            .solve(l.transpose().to_owned());
        let (a1, a2) = (&inverse * &u, &inverse * &v);
        let hat = &l * &a1;
        let half = faer::Scale(0.5);
        let step = |s: Mat<f64>| {
            &l + (&u - half * &hat + (faer::Scale(0.375) * &hat - half * &u) * s) * a2.transpose()
        };
        let wanted = step(a2.transpose() * &a1);
        let printed = step(a1.transpose() * &a2);
        let m = step_along(&l, &z);
        assert_equal(&m, &wanted, 1e-12);
        assert!((&m - &printed).norm_max() > 1e-4);
    }

    #[test]
    fn the_rank_never_drops_even_with_huge_steps() {
        let mut factor = RowBuf::zeros(3, 7);
        let start = random(3, 7, 3);
        for i in 0..3 {
            for (j, value) in factor.row_mut(i).iter_mut().enumerate() {
                *value = start[(i, j)] as f32;
            }
        }
        for _ in 0..50 {
            let (_, _, z) = symmetric(7, 5);
            let l = Mat::from_fn(7, 3, |i, j| f64::from(factor.row(j)[i]));
            let g = &z * &l;
            let mut gradient = RowBuf::zeros(3, 7);
            for i in 0..3 {
                for (j, value) in gradient.row_mut(i).iter_mut().enumerate() {
                    *value = g[(j, i)] as f32;
                }
            }
            factor = moved(&factor, &gradient, 100.0, 50.0).unwrap().unwrap();
            let l = Mat::from_fn(7, 3, |i, j| f64::from(factor.row(j)[i]));
            assert!(full_rank(l.as_ref()), "the rank has dropped");
        }
    }
}
