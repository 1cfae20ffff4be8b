//! Eq. 25: steps on the coefficients A of the training rows (z = A k), preconditioned by K⁻¹.
//!
//! With P = I − 2λη(S − I), the touched rows B and the derivative U of the loss by their embedded
//! rows, a step is A′ = P A − η U E_B (erratum: the loss term has no factor 2). Recomputing Z = A K
//! and S = A K Aᵀ would cost O(N²m) a step. They follow instead:
//! Z′ = P Z − η U K_B and S′ = P S Pᵀ − η (P C + Cᵀ Pᵀ) + η² U K_BB Uᵀ with C = Z_B Uᵀ. The
//! products P A and P Z are put off, too: A = Q Ã and Z = Q Z̃ with a small Q that takes P, so that
//! a step costs O(m³ + |B| (N m + m²)). Every few dozen steps Q is multiplied out, and Z and S are
//! worked out anew against drift.

use super::Warca;
use crate::learn::descent::{Descent, descend};
use crate::learn::field::Field;
use crate::learn::kernel::KernelAxes;
use crate::learn::warp::{Minibatch, Outcome, Warp, Workspace, check_finite};
use crate::learn::{Problem, Run};
use crate::linalg::{RowBuf, Rows, map_rows};
use crate::metric::Map;
use crate::random::Stream;
use crate::supervision::Relevance;
use crate::{Error, Result};
use faer::linalg::matmul::matmul;
use faer::linalg::solvers::Solve;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use std::collections::BTreeMap;

/// Steps after which Q is multiplied out and Z and S are worked out anew.
const REFRESH: u32 = 64;

pub(super) fn train_preconditioned(
    settings: &Warca,
    relevance: &dyn Relevance,
    problem: &Problem<'_>,
    axes: &KernelAxes,
    run: &mut Run<'_>,
) -> Result<Map> {
    let mut gram = RowBuf::empty(axes.gram().dim());
    gram.extend(axes.gram());
    let field = Field::in_kernel_space(problem, axes)?;
    let scale = field.pair_scale(relevance, run.seed)?;
    run.facts.insert("scale".into(), scale);
    let inverse = (1.0 / scale) as f32;
    // Distances shrink by the scale, so kernel values do by its square.
    for value in gram.values_mut() {
        *value *= inverse * inverse;
    }
    let start = field.start("kernel-warca", settings.start, settings.rank, run.seed)?;
    // A = W Λ^(−1/2) Vᵀ on the scaled kernel: dividing by the scale once more undoes half of it.
    let mut coefficients = axes.carry_back(&start)?;
    for value in coefficients.values_mut() {
        *value /= inverse;
    }
    let state = Coefficients::new(&coefficients, gram.rows())?;
    let to_map = |coefficients: &RowBuf| {
        let mut weights = coefficients.clone();
        for value in weights.values_mut() {
            *value *= inverse * inverse;
        }
        axes.map(weights)
    };
    let mut training = Training {
        settings,
        relevance,
        gram: &gram,
        warp: settings.warp(),
        workspace: Workspace::default(),
        batch: Minibatch::default(),
        to_map: &to_map,
    };
    descend(settings.schedule(), &mut training, state, run)
}

/// A with what it implies for the training rows.
#[derive(Clone)]
pub(super) struct Coefficients {
    /// Ãᵀ: a row for every training row.
    lazy: RowBuf,
    /// Z̃ᵀ.
    lazy_embedded: RowBuf,
    /// Q.
    factor: Mat<f32>,
    /// S = A K Aᵀ.
    inner: Mat<f32>,
    since_refresh: u32,
}

impl Coefficients {
    /// `coefficients` is A, rank × rows.
    pub(super) fn new(coefficients: &RowBuf, gram: Rows<'_>) -> Result<Self> {
        let rank = coefficients.len();
        let mut state = Coefficients {
            lazy: crate::learn::reduce::transposed(coefficients),
            lazy_embedded: RowBuf::empty(rank),
            factor: Mat::identity(rank, rank),
            inner: Mat::zeros(rank, rank),
            since_refresh: 0,
        };
        state.refresh(gram)?;
        Ok(state)
    }

    /// Z of some training rows.
    pub(super) fn embedded(
        &self,
        rows: impl Iterator<Item = usize>,
        out: &mut RowBuf,
    ) -> Result<()> {
        let mut picked = RowBuf::empty(self.lazy_embedded.dim());
        for row in rows {
            picked.extend(self.lazy_embedded.rows().slice(row, row + 1));
        }
        map_rows(picked.rows(), self.factor_rows().rows(), out)
    }

    /// A, rank × rows.
    pub(super) fn coefficients(&self) -> Result<RowBuf> {
        let mut out = RowBuf::empty(1);
        map_rows(self.lazy.rows(), self.factor_rows().rows(), &mut out)?;
        Ok(crate::learn::reduce::transposed(&out))
    }

    fn factor_rows(&self) -> RowBuf {
        let rank = self.factor.nrows();
        let mut rows = RowBuf::zeros(rank, rank);
        for i in 0..rank {
            for (j, value) in rows.row_mut(i).iter_mut().enumerate() {
                *value = self.factor[(i, j)];
            }
        }
        rows
    }

    /// Multiply Q out and work Z and S out from A.
    pub(super) fn refresh(&mut self, gram: Rows<'_>) -> Result<()> {
        let coefficients = self.coefficients()?;
        self.lazy = crate::learn::reduce::transposed(&coefficients);
        let rank = coefficients.len();
        self.factor = Mat::identity(rank, rank);
        // K is symmetric, so its rows mapped by A are Zᵀ.
        map_rows(gram, coefficients.rows(), &mut self.lazy_embedded)?;
        let embedded = self.lazy_embedded.rows().mat();
        let product = self.inner.as_mut();
        let coefficients = coefficients.rows().mat();
        matmul(
            product,
            Accum::Replace,
            coefficients,
            embedded,
            1.0,
            Par::Seq,
        );
        self.since_refresh = 0;
        Ok(())
    }

    /// One step with the derivative `update` of the loss by the embedded rows `touched`.
    pub(super) fn step(
        &mut self,
        touched: &[usize],
        update: &RowBuf,
        gram: Rows<'_>,
        lambda: f32,
        rate: f32,
    ) -> Result<()> {
        let rank = self.factor.nrows();
        let mut embedded = RowBuf::empty(rank);
        self.embedded(touched.iter().copied(), &mut embedded)?;
        // P = I − 2λη(S − I).
        let shrink = 2.0 * lambda * rate;
        let p = Mat::from_fn(rank, rank, |i, j| {
            let unit = f32::from(u8::from(i == j));
            unit - shrink * (self.inner[(i, j)] - unit)
        });
        let factor = product(p.as_ref(), self.factor.as_ref());
        let update = update.rows().mat();
        // S′ = P S Pᵀ − η (P C + (P C)ᵀ) + η² U K_BB Uᵀ, where rows of `update` are those of Uᵀ.
        let c = product(embedded.rows().mat().transpose(), update);
        let pc = product(p.as_ref(), c.as_ref());
        let ps = product(p.as_ref(), self.inner.as_ref());
        let mut inner = product(ps.as_ref(), p.transpose());
        let count = touched.len();
        let among = Mat::from_fn(count, count, |i, j| gram.row(touched[i])[touched[j]]);
        let spread = product(among.as_ref(), update);
        let push = product(update.transpose(), spread.as_ref());
        for i in 0..rank {
            for j in 0..rank {
                inner[(i, j)] += rate * rate * push[(i, j)] - rate * (pc[(i, j)] + pc[(j, i)]);
            }
        }
        // Ã′ = Ã − η Q′⁻¹ U E_B, and Z̃′ = Z̃ − η Q′⁻¹ U K_B.
        let solved = factor.partial_piv_lu().solve(update.transpose());
        if !solved.as_ref().norm_max().is_finite() {
            return Err(Error::Diverged {
                step: 0,
                what: "the map".into(),
            });
        }
        for (place, row) in touched.iter().enumerate() {
            for (k, value) in self.lazy.row_mut(*row).iter_mut().enumerate() {
                *value -= rate * solved[(k, place)];
            }
        }
        let mut columns = RowBuf::empty(gram.dim());
        for row in touched {
            columns.extend(gram.slice(*row, row + 1));
        }
        let target: MatMut<'_, f32> = self.lazy_embedded.mat_mut();
        let (left, right) = (columns.rows().mat().transpose(), solved.transpose());
        matmul(target, Accum::Add, left, right, -rate, Par::Seq);
        self.factor = factor;
        self.inner = inner;
        self.since_refresh += 1;
        if self.since_refresh >= REFRESH {
            self.refresh(gram)?;
        }
        Ok(())
    }
}

fn product(left: MatRef<'_, f32>, right: MatRef<'_, f32>) -> Mat<f32> {
    let mut out = Mat::zeros(left.nrows(), right.ncols());
    matmul(out.as_mut(), Accum::Replace, left, right, 1.0, Par::Seq);
    out
}

struct Training<'a> {
    settings: &'a Warca,
    relevance: &'a dyn Relevance,
    gram: &'a RowBuf,
    warp: Warp,
    workspace: Workspace,
    batch: Minibatch,
    to_map: &'a dyn Fn(&RowBuf) -> Result<Map>,
}

impl Descent for Training<'_> {
    type State = Coefficients;

    fn step(
        &mut self,
        state: &mut Coefficients,
        step: u64,
        remaining: f64,
        seed: u64,
    ) -> Result<Outcome> {
        let settings = self.settings;
        let mut random = Stream::new(seed, "warca batch", step);
        self.batch.draw(
            self.relevance,
            settings.batch,
            Some(settings.pool),
            &mut random,
        );
        let (queries, others) = self.batch.rows();
        let rows: Vec<usize> = queries.iter().chain(&others).map(|r| *r as usize).collect();
        state.embedded(rows.iter().copied(), &mut self.workspace.embedded)?;
        let workspace = &mut self.workspace;
        let outcome = workspace.evaluate(&self.warp, self.relevance, &self.batch, (seed, step));
        let (touched, update) = gathered(&rows, &workspace.coefficients);
        let rate = (settings.rate * remaining) as f32;
        let lambda = settings.lambda as f32;
        state
            .step(&touched, &update, self.gram.rows(), lambda, rate)
            .map_err(|error| match error {
                Error::Diverged { what, .. } => Error::Diverged { step, what },
                error => error,
            })?;
        check_finite(state.lazy.values(), &outcome, step)?;
        Ok(outcome)
    }

    fn map(&self, state: &Coefficients) -> Result<Map> {
        (self.to_map)(&state.coefficients()?)
    }
}

/// Derivatives by row: those of a row that stands in several places are added up, and rows without
/// any are left out.
fn gathered(rows: &[usize], coefficients: &RowBuf) -> (Vec<usize>, RowBuf) {
    let rank = coefficients.dim();
    let mut sums: BTreeMap<usize, Vec<f32>> = BTreeMap::new();
    for (row, values) in rows.iter().zip(coefficients.rows().iter()) {
        if values.iter().all(|v| *v == 0.0) {
            continue;
        }
        let sum = sums.entry(*row).or_insert_with(|| vec![0.0; rank]);
        for (sum, value) in sum.iter_mut().zip(values) {
            *sum += value;
        }
    }
    let mut update = RowBuf::zeros(sums.len(), rank);
    for (place, values) in sums.values().enumerate() {
        update.row_mut(place).copy_from_slice(values);
    }
    (sums.into_keys().collect(), update)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same step on dense f64 matrices: A′ = A − η (U E_B + 2λ (A K Aᵀ − I) A).
    fn dense_step(
        a: &Mat<f64>,
        k: &Mat<f64>,
        touched: &[usize],
        update: &RowBuf,
        lambda: f64,
        rate: f64,
    ) -> Mat<f64> {
        let rank = a.nrows();
        let mut excess = a * k * a.transpose();
        for i in 0..rank {
            excess[(i, i)] -= 1.0;
        }
        let mut next = a - faer::Scale(2.0 * lambda * rate) * (excess * a);
        for (place, row) in touched.iter().enumerate() {
            for i in 0..rank {
                next[(i, *row)] -= rate * f64::from(update.row(place)[i]);
            }
        }
        next
    }

    #[test]
    fn a_hundred_steps_equal_the_dense_form() {
        let (rows, rank) = (40, 5);
        let mut random = Stream::new(3, "test", 0);
        let points = Mat::from_fn(rows, 12, |_, _| random.normal() * 0.3);
        let k = &points * points.transpose();
        let mut gram = RowBuf::zeros(rows, rows);
        let mut start = RowBuf::zeros(rank, rows);
        for i in 0..rows {
            for (j, value) in gram.row_mut(i).iter_mut().enumerate() {
                *value = k[(i, j)] as f32;
            }
        }
        for value in start.values_mut() {
            *value = (0.2 * random.normal()) as f32;
        }
        let mut a = Mat::from_fn(rank, rows, |i, j| f64::from(start.row(i)[j]));
        let mut state = Coefficients::new(&start, gram.rows()).unwrap();
        let (lambda, rate) = (0.02, 0.05);
        for step in 0..100 {
            let touched: Vec<usize> = Stream::new(3, "touched", step)
                .choose(rows as u64, 6)
                .into_iter()
                .map(|row| row as usize)
                .collect();
            let mut update = RowBuf::zeros(6, rank);
            for value in update.values_mut() {
                *value = random.normal() as f32;
            }
            a = dense_step(&a, &k, &touched, &update, lambda, rate);
            state
                .step(&touched, &update, gram.rows(), lambda as f32, rate as f32)
                .unwrap();
            // Just before a refresh nothing has been put right.
            if step == 62 || step == 99 {
                let found = state.coefficients().unwrap();
                let largest = a.norm_max();
                let mut embedded = RowBuf::empty(rank);
                state.embedded(0..rows, &mut embedded).unwrap();
                let z = &a * &k;
                let s = &z * a.transpose();
                for i in 0..rank {
                    for j in 0..rows {
                        let difference = (f64::from(found.row(i)[j]) - a[(i, j)]).abs();
                        assert!(difference < 1e-4 * largest, "A: {difference} of {largest}");
                        let difference = (f64::from(embedded.row(j)[i]) - z[(i, j)]).abs();
                        assert!(difference < 1e-4 * z.norm_max(), "Z: {difference}");
                    }
                    for j in 0..rank {
                        let difference = (f64::from(state.inner[(i, j)]) - s[(i, j)]).abs();
                        assert!(difference < 1e-4 * s.norm_max(), "S: {difference}");
                    }
                }
            }
        }
    }

    #[test]
    fn derivatives_of_a_row_are_added_up() {
        let coefficients = RowBuf::from_values(vec![1.0, 2.0, 0.0, 0.0, 3.0, -2.0], 2).unwrap();
        let (touched, update) = gathered(&[7, 4, 7], &coefficients);
        assert_eq!(touched, vec![7]);
        assert_eq!(update.values(), &[4.0, 0.0]);
    }
}
