//! Preprocessing, map and plan as one list of steps with adjacent affine steps merged, for exported
//! files.
//!
//! Every map but the identity is a step as well, and what a plan does to a mapped query is always a
//! division by the length, an affine map, or both. So one list says all, and neighbouring affine steps
//! of it fold into one matrix and one offset, in f64.

use super::affine::{Affine, Linear};
use super::{Form, Plan};
use crate::data::ElementMap;
use crate::linalg::RowBuf;
use crate::model::{Chain, Code, Embedding, LowRank, Map, Side, Space, Step};
use crate::{Error, Result};

impl Chain {
    /// Everything that a vector of one side goes through: the steps of preprocessing and the map. Of
    /// an indefinite metric that is the map inside, before the coordinates that
    /// [`Indefinite`](crate::model::Indefinite) adds.
    pub fn steps_of(&self, side: Side) -> Vec<Step> {
        let own = match side {
            Side::Query => self.query_preprocessing(),
            Side::Item => None,
        };
        let mut steps = own.map_or(self.steps(), |own| &own.steps).to_vec();
        match (self.map(), side) {
            (Map::Identity, _) => {}
            (Map::Diagonal(factors), _) => steps.push(Step::Scale {
                factors: factors.clone(),
            }),
            (Map::LowRank(map), _)
            | (Map::Bilinear { query: map, .. }, Side::Query)
            | (Map::Bilinear { item: map, .. }, Side::Item) => {
                steps.push(Step::Project(map.clone()));
            }
            (Map::Kernel(map), _) => steps.push(Step::Kernel(map.clone())),
            (Map::Indefinite(map), _) => steps.push(Step::Project(map.map().clone())),
        }
        steps
    }
}

impl Plan {
    /// What a query goes through before the store is asked with it: what [`Plan::map_queries`] does,
    /// as steps.
    pub fn query_steps(&self) -> Result<Vec<Step>> {
        if self.chain.code().is_some_and(Code::codes_queries) {
            let expected = "one that leaves queries as they are, to be written as a map";
            return Err(Error::parameter("code", expected, "bits for queries too"));
        }
        let mut steps = self.chain.steps_of(Side::Query);
        let rank = self.chain.output_dim();
        let signs: Vec<f64> = (0..rank).map(|at| self.signs.crossed(at)).collect();
        match &self.form {
            Form::Mapped { .. } | Form::UnitLength | Form::Candidates => {
                steps.extend(self.at_the_end());
            }
            Form::MappedAndNorm => {
                steps.extend(self.at_the_end());
                let ones = Linear::Diagonal(vec![1.0; rank]);
                steps.push(back(&ones, &signs, &[], 1.0, Some((&[], 1.0)))?);
            }
            Form::Input(input) => {
                let affine = &input.affine;
                let (shift, factor) = match self.chain.space() {
                    Space::SquaredL2 => (
                        affine.offset.as_slice(),
                        affine.isometry().map_or(1.0, |squared| 1.0 / squared),
                    ),
                    _ => (&[][..], 1.0),
                };
                steps.push(back(&affine.linear, &signs, shift, factor, None)?);
            }
            Form::InputAndNorm(input) => {
                let centre = self.centre.iter().flatten().map(|v| f64::from(*v));
                let centre: Vec<f64> = centre.collect();
                steps.push(back(
                    &input.affine.linear,
                    &signs,
                    &centre,
                    1.0,
                    Some((&[], 1.0)),
                )?);
            }
            Form::Rescaled(input) => {
                let affine = &input.affine;
                let last = (!affine.is_linear()).then_some((affine.offset.as_slice(), 0.0));
                steps.push(Step::Element(ElementMap::Normalise));
                steps.push(back(&affine.linear, &signs, &[], 1.0, last)?);
            }
        }
        Ok(steps)
    }

    /// What an item goes through before it is stored, as steps; `None` where a stored item holds more
    /// than a map of it.
    pub fn item_steps(&self) -> Option<Vec<Step>> {
        if self.chain.code().is_some() {
            return None;
        }
        match &self.form {
            Form::Mapped { .. } | Form::UnitLength | Form::Candidates => {
                let mut steps = self.chain.steps_of(Side::Item);
                steps.extend(self.at_the_end());
                Some(steps)
            }
            _ => None,
        }
    }

    /// What mapped vectors of both sides go through.
    fn at_the_end(&self) -> Option<Step> {
        match (&self.form, &self.centre) {
            (Form::UnitLength, _) => Some(Step::Element(ElementMap::Normalise)),
            (_, Some(centre)) => Some(Step::Centre {
                mean: centre.clone(),
            }),
            _ => None,
        }
    }
}

/// The same steps with neighbouring affine ones as one matrix and one offset; the others stay, in
/// their places. Affine steps that do nothing go.
pub fn fold(input_dim: usize, steps: &[Step]) -> Result<Vec<Step>> {
    let mut folded = Vec::new();
    let mut run = Affine::identity(input_dim);
    let mut dim = input_dim;
    for step in steps {
        dim = step.output_dim(dim)?;
        if !run.then(step) {
            folded.extend(as_step(&run)?);
            folded.push(step.clone());
            run = Affine::identity(dim);
        }
    }
    folded.extend(as_step(&run)?);
    Ok(folded)
}

/// One affine map as a step, unless it does nothing.
fn as_step(affine: &Affine) -> Result<Option<Step>> {
    if affine.is_identity() {
        return Ok(None);
    }
    let (rank, dim) = match &affine.linear {
        Linear::Diagonal(factors) => (factors.len(), factors.len()),
        Linear::Dense(matrix) => (matrix.nrows(), matrix.ncols()),
    };
    let mut weights = RowBuf::zeros(rank, dim);
    for row in 0..rank {
        for (column, place) in weights.row_mut(row).iter_mut().enumerate() {
            *place = entry(&affine.linear, row, column) as f32;
        }
    }
    let offset = (!affine.is_linear()).then(|| affine.offset.iter().map(|b| -*b as f32).collect());
    Ok(Some(Step::Project(LowRank::new(weights, offset)?)))
}

/// `factor · Aᵀ S (z − shift)` with the signs S, followed by the number `last.0 · z + last.1` where
/// there is one. A slice that is empty stands for zeros.
fn back(
    linear: &Linear,
    signs: &[f64],
    shift: &[f64],
    factor: f64,
    last: Option<(&[f64], f64)>,
) -> Result<Step> {
    let (rank, dim) = match linear {
        Linear::Diagonal(factors) => (factors.len(), factors.len()),
        Linear::Dense(matrix) => (matrix.nrows(), matrix.ncols()),
    };
    let mut weights = RowBuf::zeros(dim + usize::from(last.is_some()), rank);
    let mut offset = vec![0.0; weights.len()];
    for (column, taken) in offset.iter_mut().enumerate().take(dim) {
        let row = weights.row_mut(column);
        for (at, (place, sign)) in row.iter_mut().zip(signs).enumerate() {
            *place = (factor * sign * entry(linear, at, column)) as f32;
        }
        let shifted = shift.iter().zip(signs).enumerate();
        let product: f64 = shifted
            .map(|(at, (shift, sign))| sign * entry(linear, at, column) * shift)
            .sum();
        *taken = (factor * product) as f32;
    }
    if let Some((products, number)) = last {
        for (place, value) in weights.row_mut(dim).iter_mut().zip(products) {
            *place = *value as f32;
        }
        // The map takes its offset away.
        offset[dim] = -number as f32;
    }
    let offset = offset.iter().any(|b| *b != 0.0).then_some(offset);
    Ok(Step::Project(LowRank::new(weights, offset)?))
}

fn entry(linear: &Linear, row: usize, column: usize) -> f64 {
    match linear {
        Linear::Diagonal(factors) if row == column => factors[row],
        Linear::Diagonal(_) => 0.0,
        Linear::Dense(matrix) => matrix[(row, column)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Batch;
    use crate::linalg::Rows;
    use crate::model::Indefinite;

    fn low_rank(values: &[f32], dim: usize, offset: Option<Vec<f32>>) -> LowRank {
        LowRank::new(RowBuf::from_values(values.to_vec(), dim).unwrap(), offset).unwrap()
    }

    fn applied(steps: &[Step], rows: Rows<'_>) -> RowBuf {
        let mut out = RowBuf::empty(rows.dim());
        out.extend(rows);
        for step in steps {
            step.apply(0, None, &mut out).unwrap();
        }
        out
    }

    #[test]
    fn neighbours_fold_by_hand() {
        // x − (1, 2), times (2, 3), then [1 −1] − 5: 2 x₀ − 3 x₁ − 1; its length; times 4.
        let steps = [
            Step::Centre {
                mean: vec![1.0, 2.0],
            },
            Step::Scale {
                factors: vec![2.0, 3.0],
            },
            Step::Project(low_rank(&[1.0, -1.0], 2, Some(vec![5.0]))),
            Step::Element(ElementMap::Normalise),
            Step::Scale { factors: vec![4.0] },
            Step::Scale {
                factors: vec![0.25],
            },
        ];
        let folded = fold(2, &steps).unwrap();
        let expected = [
            Step::Project(low_rank(&[2.0, -3.0], 2, Some(vec![1.0]))),
            Step::Element(ElementMap::Normalise),
        ];
        assert_eq!(folded, expected);
        assert!(fold(3, &steps).is_err(), "the mean has two numbers");
    }

    /// Every plan of every space: its steps do to queries what the plan does.
    #[test]
    fn steps_do_what_plans_do() {
        let steps = vec![
            Step::Centre {
                mean: vec![0.3, -0.2, 0.1],
            },
            Step::Scale {
                factors: vec![1.5, 0.5, 2.0],
            },
        ];
        let item = low_rank(&[1.0, 0.5, -2.0, 0.25, 1.0, 3.0], 3, Some(vec![0.1, 0.2]));
        let query = low_rank(&[2.0, 1.5, -1.0, 0.75, 1.0, 1.0], 3, Some(vec![-0.3, 0.4]));
        let maps = [
            Map::LowRank(item.clone()),
            Map::Bilinear {
                query,
                item: item.clone(),
            },
            Map::Diagonal(vec![2.0, -2.0, 2.0]),
            Map::Indefinite(Indefinite::new(item, 1).unwrap()),
        ];
        let values = [0.3, 0.9, -0.4, 1.0, 2.0, 3.0, -0.7, 0.2, 0.5];
        let batch = Batch::new(Rows::new(&values, 3).unwrap());
        let mut seen = 0;
        for map in maps {
            for steps in [steps.clone(), Vec::new()] {
                for space in Space::ALL {
                    let Ok(chain) = Chain::new(3, steps.clone(), map.clone(), space) else {
                        // An indefinite metric has one score.
                        continue;
                    };
                    for plan in Plan::all(&chain).unwrap() {
                        let mut expected = RowBuf::empty(1);
                        plan.map_queries(0, &batch, &mut expected).unwrap();
                        let steps = plan.query_steps().unwrap();
                        near(&applied(&steps, batch.rows), &expected);
                        near(&applied(&fold(3, &steps).unwrap(), batch.rows), &expected);
                        if let Some(steps) = plan.item_steps() {
                            plan.map_items(0, &batch, &mut expected).unwrap();
                            near(&applied(&steps, batch.rows), &expected);
                        }
                        seen += 1;
                    }
                }
            }
        }
        assert!(seen > 50, "{seen}");
    }

    #[test]
    fn a_centre_is_taken_from_queries() {
        let map = || low_rank(&[1.0, 2.0, -3.0, 1.0], 2, None);
        let indefinite = Indefinite::new(map(), 1).unwrap();
        let values = [3.0, 4.0];
        let batch = Batch::new(Rows::new(&values, 2).unwrap());
        let mut centred = 0;
        for (map, space) in [
            (Map::LowRank(map()), Space::SquaredL2),
            (Map::Indefinite(indefinite), Space::InnerProduct),
        ] {
            let chain = Chain::new(2, Vec::new(), map, space).unwrap();
            for plan in Plan::all(&chain).unwrap() {
                let plan = plan.with_centre(vec![10.0, 7.0]).unwrap();
                let mut expected = RowBuf::empty(1);
                plan.map_queries(0, &batch, &mut expected).unwrap();
                let steps = plan.query_steps().unwrap();
                near(&applied(&steps, batch.rows), &expected);
                centred += 1;
            }
        }
        // mapped, and an extra coordinate over z and over x; the last two of the indefinite metric.
        assert_eq!(centred, 5);
    }

    fn near(found: &RowBuf, expected: &RowBuf) {
        assert_eq!((found.len(), found.dim()), (expected.len(), expected.dim()));
        let largest = expected
            .values()
            .iter()
            .fold(0.0_f32, |m, v| m.max(v.abs()));
        for (a, b) in found.values().iter().zip(expected.values()) {
            assert!((a - b).abs() <= 1e-6 * largest, "{a} {b}");
        }
    }
}
