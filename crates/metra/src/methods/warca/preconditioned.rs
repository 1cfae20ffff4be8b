//! Preconditioned SGD of kernel WARCA (eq. 25 of the paper): steps on the coefficients A of the
//! training rows (z = A k), preconditioned by K⁻¹.
//!
//! With the touched rows B and the derivative U of the loss by their embedded rows, the loss moves
//! A′ = A − η U E_B (erratum: no factor 2), and the regulariser A′ = P A with P = I − 2λη(S − I).
//! Recomputing Z = A K and S = A K Aᵀ would cost O(N²m) a step. They follow instead: with C = Z_B Uᵀ,
//! Z′ = Z − η U K_B and S′ = S − η (C + Cᵀ) + η² U K_BB Uᵀ cost O(|B| (N m + m²)).
//!
//! Departs from the paper: the regulariser, whose steps are small and smooth, is taken every few
//! steps for all of them at once, Z′ = P Z and S′ = P S P, so that its O(N m²) is spread over them.
//! Z and S are worked out anew now and then against drift.

use super::Warca;
use crate::Result;
use crate::dataset::Dataset;
use crate::linalg::{RowBuf, Rows, map_rows};
use crate::model::Map;
use crate::random::Stream;
use crate::supervision::Relevance;
use crate::training::Run;
use crate::training::codes::straight_through::StraightThrough;
use crate::training::descent::{Descent, Outcome, check_finite, descend};
use crate::training::kernel::KernelAxes;
use crate::training::principal_axes::transposed;
use crate::training::training_space::TrainingSpace;
use crate::training::warp::{Minibatch, Warp, Workspace};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Steps after which the regulariser is taken for all of them.
const REGULARISE: u64 = 16;
/// Parts into which the regulariser may be cut where the map has grown far beyond orthonormal.
const MOST_PARTS: usize = 32;
/// Steps after which Z and S are worked out anew.
const REFRESH: u64 = 256;

pub(super) fn train_preconditioned(
    settings: &Warca,
    relevance: &dyn Relevance,
    data: &Dataset<'_>,
    axes: &KernelAxes,
    run: &mut Run<'_>,
) -> Result<Map> {
    let mut gram = RowBuf::empty(axes.gram().dim());
    gram.extend(axes.gram());
    let space = TrainingSpace::in_kernel_space(data, axes)?;
    let scale = space.pair_scale(relevance, run.seed)?;
    run.facts.insert("scale".into(), scale);
    let inverse = (1.0 / scale) as f32;
    // Distances shrink by the scale, so kernel values do by its square.
    for value in gram.values_mut() {
        *value *= inverse * inverse;
    }
    let start = space.start("kernel-warca", settings.start, settings.rank, run.seed)?;
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
        code: run.code,
        batch: Minibatch::default(),
        to_map: &to_map,
    };
    descend(settings.schedule, &mut training, state, run)
}

/// A with what it implies for the training rows.
#[derive(Clone, Serialize, Deserialize)]
struct Coefficients {
    /// Aᵀ: a row for every training row.
    rows: RowBuf,
    /// Zᵀ.
    embedded: RowBuf,
    /// S = A K Aᵀ.
    #[serde(with = "square")]
    inner: Mat<f32>,
    /// Sum of the rates since the regulariser was taken.
    rates: f64,
}

/// A square matrix as its columns, one after the other.
mod square {
    use faer::Mat;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(matrix: &Mat<f32>, to: S) -> Result<S::Ok, S::Error> {
        let columns = (0..matrix.ncols()).flat_map(|column| matrix.col(column).iter().copied());
        columns.collect::<Vec<f32>>().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Mat<f32>, D::Error> {
        let values = Vec::<f32>::deserialize(from)?;
        let size = values.len().isqrt();
        match size * size == values.len() {
            true => Ok(Mat::from_fn(size, size, |row, column| {
                values[column * size + row]
            })),
            false => Err(D::Error::custom("expected a square matrix")),
        }
    }
}

impl Coefficients {
    /// `coefficients` is A, rank × rows.
    fn new(coefficients: &RowBuf, gram: Rows<'_>) -> Result<Self> {
        let rank = coefficients.len();
        let mut state = Coefficients {
            rows: transposed(coefficients),
            embedded: RowBuf::empty(rank),
            inner: Mat::zeros(rank, rank),
            rates: 0.0,
        };
        state.refresh(gram)?;
        Ok(state)
    }

    /// Work Z and S out from A.
    fn refresh(&mut self, gram: Rows<'_>) -> Result<()> {
        // K is symmetric, so its rows mapped by A are Zᵀ.
        let coefficients = transposed(&self.rows);
        map_rows(gram, coefficients.rows(), &mut self.embedded)?;
        let (a, z) = (self.rows.rows().mat(), self.embedded.rows().mat());
        self.inner = product(a.transpose(), z);
        Ok(())
    }

    /// A step of the loss with its derivative `update` by the embedded rows `touched`.
    fn step(&mut self, touched: &[usize], update: &RowBuf, gram: Rows<'_>, rate: f32) {
        let mut columns = RowBuf::empty(gram.dim());
        let mut before = RowBuf::empty(self.embedded.dim());
        for row in touched {
            columns.extend(gram.slice(*row, row + 1));
            before.extend(self.embedded.rows().slice(*row, row + 1));
        }
        let u = update.rows().mat();
        // Rows of `update` are those of Uᵀ, so that C = Z_B Uᵀ is this.
        let c = product(before.rows().mat().transpose(), u);
        let count = touched.len();
        let among = Mat::from_fn(count, count, |i, j| columns.row(i)[touched[j]]);
        let push = product(u.transpose(), product(among.as_ref(), u).as_ref());
        for j in 0..c.ncols() {
            for i in 0..c.nrows() {
                self.inner[(i, j)] += rate * rate * push[(i, j)] - rate * (c[(i, j)] + c[(j, i)]);
            }
        }
        for (row, update) in touched.iter().zip(update.rows().iter()) {
            for (value, update) in self.rows.row_mut(*row).iter_mut().zip(update) {
                *value -= rate * update;
            }
        }
        let k = columns.rows().mat();
        let target = self.embedded.mat_mut();
        matmul(target, Accum::Add, k.transpose(), u, -rate, Par::Seq);
    }

    /// Steps of the regulariser of this strength in all, 2λ times the rates. One step is stable as
    /// long as its strength times S stays below 2, and S is bounded by its trace.
    fn regularise(&mut self, strength: f32) -> Result<()> {
        let mut left = strength;
        for _ in 0..MOST_PARTS {
            let part = left.min(0.5 / self.trace().max(1e-6));
            self.regularise_once(part)?;
            left -= part;
            if left <= 0.0 {
                break;
            }
        }
        Ok(())
    }

    /// Trace of S.
    fn trace(&self) -> f32 {
        (0..self.inner.nrows()).map(|i| self.inner[(i, i)]).sum()
    }

    /// P = I − strength·(S − I).
    fn regularise_once(&mut self, strength: f32) -> Result<()> {
        let rank = self.inner.nrows();
        let p = Mat::from_fn(rank, rank, |i, j| {
            let unit = f32::from(u8::from(i == j));
            unit - strength * (self.inner[(i, j)] - unit)
        });
        let mut factor = RowBuf::zeros(rank, rank);
        for i in 0..rank {
            for (j, value) in factor.row_mut(i).iter_mut().enumerate() {
                *value = p[(i, j)];
            }
        }
        for rows in [&mut self.rows, &mut self.embedded] {
            let mut moved = RowBuf::empty(rank);
            map_rows(rows.rows(), factor.rows(), &mut moved)?;
            *rows = moved;
        }
        let left = product(p.as_ref(), self.inner.as_ref());
        self.inner = product(left.as_ref(), p.transpose());
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
    code: Option<StraightThrough>,
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
        let workspace = &mut self.workspace;
        workspace.embedded.clear(state.embedded.dim());
        for row in &rows {
            let embedded = state.embedded.rows().slice(*row, row + 1);
            workspace.embedded.extend(embedded);
        }
        workspace.code = self.code.map(|code| (code, remaining));
        let outcome = workspace.evaluate(&self.warp, self.relevance, &self.batch, (seed, step));
        let (touched, update) = gathered(&rows, &workspace.coefficients);
        let rate = settings.rate * remaining;
        state.step(&touched, &update, self.gram.rows(), rate as f32);
        state.rates += rate;
        // Sooner where the map has grown so much that the regulariser pulls hard.
        let strength = (2.0 * settings.lambda * state.rates) as f32;
        if (step + 1).is_multiple_of(REGULARISE) || strength * state.trace() > 0.5 {
            state.regularise(strength)?;
            state.rates = 0.0;
        }
        if (step + 1).is_multiple_of(REFRESH) {
            state.refresh(self.gram.rows())?;
        }
        let touched = touched.iter().flat_map(|row| state.rows.row(*row));
        check_finite(touched, outcome.loss, step)?;
        Ok(outcome.into())
    }

    fn map(&self, state: &Coefficients) -> Result<Map> {
        (self.to_map)(&transposed(&state.rows))
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

    #[test]
    fn three_hundred_steps_equal_the_dense_form() {
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
        // The same on dense f64 matrices, from which Z and S are worked out at every step.
        let mut a = Mat::from_fn(rank, rows, |i, j| f64::from(start.row(i)[j]));
        let mut state = Coefficients::new(&start, gram.rows()).unwrap();
        let (rate, strength) = (0.05, 0.02);
        for step in 0..300 {
            let touched: Vec<usize> = Stream::new(3, "touched", step)
                .choose(rows as u64, 6)
                .into_iter()
                .map(|row| row as usize)
                .collect();
            let mut update = RowBuf::zeros(6, rank);
            for value in update.values_mut() {
                *value = random.normal() as f32;
            }
            state.step(&touched, &update, gram.rows(), rate as f32);
            for (place, row) in touched.iter().enumerate() {
                for i in 0..rank {
                    a[(i, *row)] -= rate * f64::from(update.row(place)[i]);
                }
            }
            if step % 8 == 0 {
                state.regularise_once(strength as f32).unwrap();
                let excess = &a * &k * a.transpose() - Mat::<f64>::identity(rank, rank);
                a = &a - faer::Scale(strength) * (excess * &a);
            }
        }
        // Nothing has been worked out anew on the way.
        let z = &a * &k;
        let s = &z * a.transpose();
        let near = |found: f32, wanted: f64, largest: f64| {
            let difference = (f64::from(found) - wanted).abs();
            assert!(difference < 1e-4 * largest, "{difference} of {largest}");
        };
        for i in 0..rank {
            for j in 0..rows {
                near(state.rows.row(j)[i], a[(i, j)], a.norm_max());
                near(state.embedded.row(j)[i], z[(i, j)], z.norm_max());
            }
            for j in 0..rank {
                near(state.inner[(i, j)], s[(i, j)], s.norm_max());
            }
        }
        let followed = state.embedded.clone();
        state.refresh(gram.rows()).unwrap();
        for (a, b) in followed.values().iter().zip(state.embedded.values()) {
            near(*a, f64::from(*b), z.norm_max());
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
