//! OASIS: a bilinear similarity qᵀWx from triplets, one passive-aggressive step at a time. Chechik,
//! Sharma, Shalit & Bengio, "Large scale online learning of image similarity through ranking", JMLR 2010.
//!
//! W starts as the identity. A triplet (q, x⁺, x⁻) with qᵀW(x⁺ − x⁻) < 1 moves W by the smallest step
//! that gives it its margin, at most `cost`: W += τ q (x⁺ − x⁻)ᵀ. Departs from the paper: vectors are
//! scaled to unit mean squared length, so that the margin means the same everywhere; triplets come from
//! labels or any relevance sets, uniformly over relevant pairs.

use crate::data::{Corpus, RowId};
use crate::dataset::Dataset;
use crate::execute::{check_square, spread};
use crate::linalg::{self, RowBuf, vectorized};
use crate::model::{LowRank, Map, Space};
use crate::random::Stream;
use crate::supervision::{Relevance, SupervisionKind, derive};
use crate::training::descent::{Descent, Outcome, Schedule, check_finite, descend};
use crate::training::irrelevant::IrrelevantItems;
use crate::training::parameters::{Bound, parameters};
use crate::training::training_space::fetch;
use crate::training::warp::check_relevance;
use crate::training::{Method, Run, TwoModels};
use crate::{Error, Result};

parameters! {
    /// Bilinear similarity from triplets by passive-aggressive steps, from the identity. Learns from
    /// labels, relevance judgements or similar pairs. A triplet costs O(d²), memory is O(d²) and does
    /// not grow with the number of rows. Use it as a baseline of moderate dimension; the top of the
    /// ranking is what FRML and WARCA are better at.
    pub struct Oasis {
        /// Aggressiveness C: the maximum step size per triplet.
        cost: f64 = 0.1 => Bound::Above(0.0),
        /// Subtract the training mean first.
        centre: bool = false,
        /// Items that count as irrelevant: all that are not relevant, or those judged irrelevant alone (a
        /// grade of 0 or less, or a dissimilar pair), where judges did not see all that is relevant.
        irrelevant: IrrelevantItems = IrrelevantItems::All,
        /// Triplets per step.
        batch: usize = 1000 => Bound::AtLeast(1.0),
    }
    shared {
        /// When it validates and stops.
        schedule: Schedule = Schedule::of(100),
    }
}

/// What a similarity is compared by.
const SPACES: [Space; 2] = [Space::InnerProduct, Space::Cosine];

impl Method for Oasis {
    const NAME: &'static str = "oasis";
    const SUMMARY: &'static str = "Bilinear similarity from triplets by passive-aggressive steps.";
    const NEEDS: &'static [SupervisionKind] = SupervisionKind::RELEVANCE;
    const TWO_MODELS: TwoModels = TwoModels::Stack;
    const GRID: &'static [(&'static str, &'static [&'static str])] =
        &[("cost", &["0.01", "0.1", "1"])];

    fn spaces(&self) -> &'static [Space] {
        &SPACES
    }

    fn fit(&self, data: &Dataset<'_>, run: &mut Run<'_>) -> Result<Map> {
        let settings = self;
        check_square(data.dim())?;
        let drawn = self.irrelevant.of("oasis", data)?;
        let relevance = drawn.get();
        check_relevance(relevance)?;
        let triplets = Triplets::new(data, relevance, settings.centre)?;
        run.facts
            .insert("scale".into(), f64::from(1.0 / triplets.inverse));
        let mut training = Training { settings, triplets };
        let schedule = settings.schedule;
        descend(schedule, &mut training, RowBuf::identity(data.dim()), run)
    }
}

struct Training<'a> {
    settings: &'a Oasis,
    triplets: Triplets<'a>,
}

impl Descent for Training<'_> {
    /// W, a row for every number of a query.
    type State = RowBuf;

    fn step(&mut self, matrix: &mut RowBuf, step: u64, _: f64, seed: u64) -> Result<Outcome> {
        let cost = self.settings.cost as f32;
        let mut loss = 0.0;
        let count = self.settings.batch;
        let mut moved = vec![0.0; matrix.dim()];
        self.triplets
            .visit(count, (seed, step), &mut |query, apart| {
                loss += f64::from(aggress(matrix, query, apart, cost, &mut moved));
            })?;
        check_finite(matrix.values(), loss, step)?;
        Ok(Outcome {
            loss: loss / count as f64,
            ..Outcome::default()
        })
    }

    fn map(&self, matrix: &RowBuf) -> Result<Map> {
        let dim = matrix.dim();
        let mut query = RowBuf::zeros(dim, dim);
        for (row, values) in matrix.rows().iter().enumerate() {
            for (column, value) in values.iter().enumerate() {
                query.row_mut(column)[row] = value * self.triplets.inverse;
            }
        }
        let mut item = RowBuf::identity(dim);
        (item.values_mut().iter_mut()).for_each(|value| *value *= self.triplets.inverse);
        Ok(Map::Bilinear {
            query: self.triplets.side(query)?,
            item: self.triplets.side(item)?,
        })
    }
}

/// Move W by one triplet where it lacks its margin; gives the loss before. `products` is work memory.
fn aggress(
    matrix: &mut RowBuf,
    query: &[f32],
    apart: &[f32],
    cost: f32,
    products: &mut [f32],
) -> f32 {
    let mut score = 0.0;
    for ((row, q), product) in matrix.rows().iter().zip(query).zip(products.iter_mut()) {
        *product = dot(row, apart);
        score += q * *product;
    }
    let loss = 1.0 - score;
    let length = dot(query, query) * dot(apart, apart);
    if loss <= 0.0 || length <= 0.0 {
        return loss.max(0.0);
    }
    let step = cost.min(loss / length);
    let dim = matrix.dim();
    for (row, q) in matrix.values_mut().chunks_exact_mut(dim).zip(query) {
        let factor = step * q;
        if factor != 0.0 {
            vectorized(
                #[inline(always)]
                || {
                    for (value, apart) in row.iter_mut().zip(apart) {
                        *value += factor * apart;
                    }
                },
            );
        }
    }
    loss
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    vectorized(
        #[inline(always)]
        || linalg::dot(a, b),
    )
}

/// Triplets as learners of similarities see them: a query, and the difference of a relevant and an
/// irrelevant item, scaled to unit mean squared length.
pub(super) struct Triplets<'a> {
    queries: &'a dyn Corpus,
    items: &'a dyn Corpus,
    relevance: &'a dyn Relevance,
    centre: Option<Vec<f32>>,
    pub(super) inverse: f32,
}

/// Triplets whose rows are fetched at once.
const FETCHED: usize = 256;

impl<'a> Triplets<'a> {
    pub(super) fn new(
        data: &'a Dataset<'_>,
        relevance: &'a dyn Relevance,
        centred: bool,
    ) -> Result<Self> {
        let found = spread(data.items())?;
        let squares = found
            .mean
            .iter()
            .zip(&found.deviation)
            .map(|(mean, deviation)| {
                let about = if centred { 0.0 } else { mean * mean };
                about + deviation * deviation
            });
        let length = squares.sum::<f64>().sqrt();
        if !length.is_finite() {
            return Err(Error::Data(
                "the mean squared length of the vectors is not finite".into(),
            ));
        }
        if found.deviation.iter().all(|deviation| *deviation == 0.0) {
            return Err(Error::Data(
                "all vectors are equal: nothing can be learned".into(),
            ));
        }
        let mean = found.mean.iter().map(|value| *value as f32).collect();
        Ok(Triplets {
            queries: data.queries(),
            items: data.items(),
            relevance,
            centre: centred.then_some(mean),
            inverse: (1.0 / length) as f32,
        })
    }

    /// Draw triplets and show each as (query, relevant − irrelevant).
    pub(super) fn visit(
        &self,
        count: usize,
        (seed, step): (u64, u64),
        visit: &mut dyn FnMut(&[f32], &[f32]),
    ) -> Result<()> {
        let dim = self.items.dim();
        let mut random = Stream::new(seed, "triplets of similarity", step);
        let (mut query_rows, mut found) = (RowBuf::empty(dim), RowBuf::empty(dim));
        let mut left = count;
        let mut apart = vec![0.0; dim];
        while left > 0 {
            let drawn: Vec<[RowId; 3]> = (0..left.min(FETCHED))
                .map_while(|_| derive::triplet(self.relevance, &mut random))
                .collect();
            if drawn.is_empty() {
                return Err(Error::Data(
                    "no triplet can be drawn: every item is relevant to every query".into(),
                ));
            }
            left -= drawn.len();
            let queries: Vec<RowId> = drawn.iter().map(|[query, _, _]| *query).collect();
            let items: Vec<RowId> = drawn
                .iter()
                .flat_map(|[_, near, far]| [*near, *far])
                .collect();
            let centre = self.centre.as_deref();
            query_rows.reset(queries.len(), dim);
            fetch(
                self.queries,
                &queries,
                centre,
                self.inverse,
                query_rows.values_mut(),
            )?;
            found.reset(items.len(), dim);
            fetch(self.items, &items, centre, self.inverse, found.values_mut())?;
            for place in 0..drawn.len() {
                let (near, far) = (found.row(2 * place), found.row(2 * place + 1));
                for (out, (near, far)) in apart.iter_mut().zip(near.iter().zip(far)) {
                    *out = near - far;
                }
                visit(query_rows.row(place), &apart);
            }
        }
        Ok(())
    }

    /// The map of one side with these weights, which take the centre off where it was taken off.
    pub(super) fn side(&self, weights: RowBuf) -> Result<LowRank> {
        match &self.centre {
            Some(centre) => {
                let mean: Vec<f64> = centre.iter().map(|value| f64::from(*value)).collect();
                LowRank::centred(weights, &mean)
            }
            None => LowRank::new(weights, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Batch;
    use crate::data::synthetic::Nuisance;
    use crate::linalg::Rows;
    use crate::model::Chain;
    use crate::supervision::{Labels, Supervision};

    /// W += τ q (x⁺ − x⁻)ᵀ with τ = min(C, loss/(|q|²|x⁺ − x⁻|²)), by hand.
    #[test]
    fn a_step_by_hand() {
        // qᵀ(x⁺ − x⁻) = 1·.5 + 2·(−1) = −1.5; loss 2.5; |q|² = 5, |apart|² = 1.25: τ = 2.5/6.25 = .4.
        let (query, apart) = ([1.0, 2.0], [0.5, -1.0]);
        let mut products = [0.0; 2];
        let mut matrix = RowBuf::identity(2);
        let loss = aggress(&mut matrix, &query, &apart, 10.0, &mut products);
        assert_eq!(loss, 2.5);
        let expected = [1.0 + 0.2, -0.4, 0.4, 1.0 - 0.8];
        for (found, expected) in matrix.values().iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{matrix:?}");
        }
        // The step gives the triplet exactly its margin: a second one does nothing.
        let again = aggress(&mut matrix, &query, &apart, 10.0, &mut products);
        assert!(again.abs() < 1e-5, "{again}");
        let mut matrix = RowBuf::identity(2);
        aggress(&mut matrix, &query, &apart, 0.1, &mut products);
        assert!((matrix.row(0)[1] + 0.1).abs() < 1e-6, "{matrix:?}");
    }

    /// The same course in f64, from the same triplets, by the definition.
    #[test]
    fn the_course_is_that_of_a_dense_reference() {
        let set = Nuisance {
            classes: 4,
            signal: 2,
            noise: 3,
            seed: 6,
        }
        .rows(60);
        let supervision = Supervision::labels(Labels::from_numbers(&set.classes).unwrap());
        let data = Dataset::new(&set.corpus, &supervision).unwrap();
        let settings = Oasis {
            schedule: Schedule::of(3),
            batch: 100,
            ..Oasis::default()
        };
        let learner = settings.clone().checked().unwrap();
        let map = learner.fit(&data, &mut Run::new(9)).unwrap();
        let relevance = data.relevance("oasis").unwrap();
        let rows: Vec<Vec<f64>> = (set.corpus.rows().iter())
            .map(|row| row.iter().map(|v| f64::from(*v)).collect())
            .collect();
        let squares: f64 = rows.iter().flatten().map(|v| v * v).sum();
        let scale = (squares / rows.len() as f64).sqrt();
        let mut matrix = vec![vec![0.0; 5]; 5];
        for (index, row) in matrix.iter_mut().enumerate() {
            row[index] = 1.0;
        }
        for step in 0..3 {
            let mut random = Stream::new(9, "triplets of similarity", step);
            for _ in 0..100 {
                let [query, near, far] = derive::triplet(relevance, &mut random).unwrap();
                let of = |row: RowId, column: usize| rows[row as usize][column] / scale;
                let apart = |column| of(near, column) - of(far, column);
                let mut score = 0.0;
                for (i, row) in matrix.iter().enumerate() {
                    for (j, value) in row.iter().enumerate() {
                        score += of(query, i) * value * apart(j);
                    }
                }
                let length: f64 = (0..5).map(|i| of(query, i).powi(2)).sum::<f64>()
                    * (0..5).map(|j| apart(j).powi(2)).sum::<f64>();
                let step = ((1.0 - score).max(0.0) / length).min(0.1);
                for (i, row) in matrix.iter_mut().enumerate() {
                    for (j, value) in row.iter_mut().enumerate() {
                        *value += step * of(query, i) * apart(j);
                    }
                }
            }
        }
        let chain = Chain::new(5, Vec::new(), map, Space::InnerProduct).unwrap();
        let values = set.corpus.rows().values();
        let batch = |row: usize| Batch::new(Rows::new(&values[5 * row..5 * row + 5], 5).unwrap());
        let mut found = Vec::new();
        for (a, b) in [(0, 1), (7, 40), (59, 3)] {
            chain
                .dissimilarity(&batch(a), &batch(b), &mut found)
                .unwrap();
            let mut expected = 0.0;
            for i in 0..5 {
                for j in 0..5 {
                    expected -= rows[a][i] * matrix[i][j] * rows[b][j] / (scale * scale);
                }
            }
            assert!(
                (f64::from(found[0]) - expected).abs() < 1e-4,
                "{found:?} {expected}"
            );
        }
    }
}
