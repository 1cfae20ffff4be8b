//! Composes the preprocessing and the map of an item into one affine map z = A x + b in f64, if
//! they are affine.
//!
//! Only the items' side is needed: whatever a query goes through, its score with an item is z_q · z
//! up to terms of one side, and z_q · (A x + b) = (Aᵀ z_q) · x + z_q · b brings the whole metric to
//! the query. A is kept as it comes (rank × dim, or a factor per column), never as the square AᵀA.
//!
//! One step that is not affine is let through where it comes first: division by the length. What
//! follows is affine in the direction x/|x|, which is what cosine stores compare.

use crate::data::ElementMap;
use crate::linalg::{BLOCK_ROWS, Rows, product};
use crate::model::{Chain, Embedding, LowRank, Map, Step};
use faer::Mat;

/// z = A x + b; where `directions` is set, z = A x/|x| + b.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Affine {
    pub(super) directions: bool,
    pub(super) linear: Linear,
    pub(super) offset: Vec<f64>,
}

/// A.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Linear {
    /// One factor for every column.
    Diagonal(Vec<f64>),
    /// rank × dim.
    Dense(Mat<f64>),
}

impl Affine {
    /// What the chain does to items, or the name of the step that is not affine.
    pub(super) fn of_items(chain: &Chain) -> Result<Self, String> {
        if chain.code().is_some() {
            return Err("the code".into());
        }
        let mut affine = Affine::identity(Embedding::input_dim(chain));
        for (number, step) in chain.steps().iter().enumerate() {
            match step {
                Step::Element(ElementMap::Normalise) if number == 0 => affine.directions = true,
                step if affine.then(step) => {}
                step => return Err(format!("step \"{}\"", step.name())),
            }
        }
        match chain.map() {
            Map::Identity => {}
            Map::Diagonal(factors) => affine.scale_columns(factors),
            Map::LowRank(map) | Map::Bilinear { item: map, .. } => affine.project(map),
            Map::Kernel(_) => return Err("the kernel map".into()),
            // Plans look at the map inside.
            Map::Indefinite(_) => return Err("the map of an indefinite metric".into()),
        }
        Ok(affine)
    }

    /// Rows of `dim` numbers as they are.
    pub(super) fn identity(dim: usize) -> Self {
        Affine {
            directions: false,
            linear: Linear::Diagonal(vec![1.0; dim]),
            offset: vec![0.0; dim],
        }
    }

    /// This map and then the step, or `false` and no change where the step is not affine.
    pub(super) fn then(&mut self, step: &Step) -> bool {
        match step {
            Step::Centre { mean } => {
                for (offset, mean) in self.offset.iter_mut().zip(mean) {
                    *offset -= f64::from(*mean);
                }
            }
            Step::Scale { factors } => self.scale_columns(factors),
            Step::Project(map) => self.project(map),
            Step::Element(_)
            | Step::CentreGroups { .. }
            | Step::Kernel(_)
            | Step::NormaliseEach { .. } => return false,
        }
        true
    }

    /// The same map for rows that are `1 / factor` times as large.
    pub(super) fn times(mut self, factor: f64) -> Self {
        match &mut self.linear {
            Linear::Diagonal(factors) => factors.iter_mut().for_each(|f| *f *= factor),
            Linear::Dense(matrix) => *matrix *= faer::Scale(factor),
        }
        self
    }

    /// Whether b is 0.
    pub(super) fn is_linear(&self) -> bool {
        self.offset.iter().all(|b| *b == 0.0)
    }

    /// Whether items come out as they went in.
    pub(super) fn is_identity(&self) -> bool {
        let ones = match &self.linear {
            Linear::Diagonal(factors) => factors.iter().all(|f| *f == 1.0),
            Linear::Dense(_) => false,
        };
        ones && self.is_linear() && !self.directions
    }

    /// s² where AᵀA = s² I with s > 0: distances and angles between items are those of the input.
    ///
    /// Only where that holds to the last digit: a rotation in f32 keeps lengths to 1e-7 or so, and
    /// what that does to the order depends on the data.
    pub(super) fn isometry(&self) -> Option<f64> {
        let Linear::Diagonal(factors) = &self.linear else {
            return None;
        };
        let first = factors.first()?.abs();
        (first > 0.0 && factors.iter().all(|f| f.abs() == first)).then_some(first * first)
    }

    fn scale_columns(&mut self, factors: &[f32]) {
        for (offset, factor) in self.offset.iter_mut().zip(factors) {
            *offset *= f64::from(*factor);
        }
        match &mut self.linear {
            Linear::Diagonal(before) => {
                for (before, factor) in before.iter_mut().zip(factors) {
                    *before *= f64::from(*factor);
                }
            }
            Linear::Dense(matrix) => {
                for column in 0..matrix.ncols() {
                    for (row, factor) in factors.iter().enumerate() {
                        matrix[(row, column)] *= f64::from(*factor);
                    }
                }
            }
        }
    }

    fn project(&mut self, map: &LowRank) {
        let weights = map.weights();
        match diagonal(weights) {
            // An adapter of queries alone has the identity written out as its map of items.
            Some(factors) => self.scale_columns(&factors),
            None => {
                let left = Mat::from_fn(weights.len(), weights.dim(), |i, j| {
                    f64::from(weights.row(i)[j])
                });
                self.linear = Linear::Dense(match &self.linear {
                    Linear::Diagonal(factors) => {
                        Mat::from_fn(left.nrows(), left.ncols(), |i, j| left[(i, j)] * factors[j])
                    }
                    Linear::Dense(matrix) => product(left.as_ref(), matrix.as_ref()),
                });
                self.offset = (0..left.nrows())
                    .map(|i| {
                        (0..left.ncols())
                            .map(|j| left[(i, j)] * self.offset[j])
                            .sum()
                    })
                    .collect();
            }
        }
        for (offset, b) in self.offset.iter_mut().zip(map.offset().unwrap_or_default()) {
            *offset -= f64::from(*b);
        }
    }
}

impl Linear {
    /// Visit Aᵀ (z − shift) for every row z of `mapped`, with the row's number in it.
    pub(super) fn for_each_back(
        &self,
        mapped: Rows<'_>,
        shift: Option<&[f64]>,
        visit: &mut dyn FnMut(usize, &mut dyn Iterator<Item = f64>),
    ) {
        let shifted = |row: &[f32], at: usize| {
            f64::from(row[at]) - shift.map_or(0.0, |s| s.get(at).copied().unwrap_or(0.0))
        };
        match self {
            Linear::Diagonal(factors) => {
                for (number, row) in mapped.iter().enumerate() {
                    let mut values = factors
                        .iter()
                        .enumerate()
                        .map(|(at, f)| f * shifted(row, at));
                    visit(number, &mut values);
                }
            }
            Linear::Dense(matrix) => {
                for start in (0..mapped.len()).step_by(BLOCK_ROWS) {
                    let block = mapped.slice(start, mapped.len().min(start + BLOCK_ROWS));
                    // Columns of a faer matrix are contiguous: one column a query.
                    let wide = Mat::from_fn(block.dim(), block.len(), |at, number| {
                        shifted(block.row(number), at)
                    });
                    let back = product(matrix.transpose(), wide.as_ref());
                    for number in 0..block.len() {
                        visit(start + number, &mut back.col(number).iter().copied());
                    }
                }
            }
        }
    }
}

/// The diagonal of a square matrix that has zeros elsewhere.
fn diagonal(weights: Rows<'_>) -> Option<Vec<f32>> {
    if weights.len() != weights.dim() {
        return None;
    }
    let mut factors = Vec::with_capacity(weights.len());
    for (number, row) in weights.iter().enumerate() {
        if row
            .iter()
            .enumerate()
            .any(|(at, value)| at != number && *value != 0.0)
        {
            return None;
        }
        factors.push(row[number]);
    }
    Some(factors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::RowBuf;
    use crate::model::Space;

    fn low_rank(values: &[f32], dim: usize, offset: Option<Vec<f32>>) -> LowRank {
        LowRank::new(RowBuf::from_values(values.to_vec(), dim).unwrap(), offset).unwrap()
    }

    fn chain(steps: Vec<Step>, map: Map) -> Chain {
        Chain::new(2, steps, map, Space::SquaredL2).unwrap()
    }

    #[test]
    fn steps_fold_by_hand() {
        // x → x − (1, 2) → · (2, 3) → W = [1 −1] − 5: 2 (x₀ − 1) − 3 (x₁ − 2) − 5 = 2 x₀ − 3 x₁ − 1.
        let steps = vec![
            Step::Centre {
                mean: vec![1.0, 2.0],
            },
            Step::Scale {
                factors: vec![2.0, 3.0],
            },
        ];
        let map = Map::LowRank(low_rank(&[1.0, -1.0], 2, Some(vec![5.0])));
        let affine = Affine::of_items(&chain(steps, map)).unwrap();
        let Linear::Dense(matrix) = &affine.linear else {
            panic!("one row is not a diagonal")
        };
        assert_eq!((matrix[(0, 0)], matrix[(0, 1)]), (2.0, -3.0));
        assert_eq!(affine.offset, vec![-1.0]);
        assert!(!affine.is_linear() && affine.isometry().is_none());
        // Aᵀ (z − 1) at z = 3: 2 · (2, −3).
        let mut seen = Vec::new();
        affine.linear.for_each_back(
            Rows::new(&[3.0], 1).unwrap(),
            Some(&[1.0]),
            &mut |_, values| {
                seen.extend(values);
            },
        );
        assert_eq!(seen, vec![4.0, -6.0]);
    }

    #[test]
    fn a_written_out_identity_is_known() {
        let map = Map::Bilinear {
            query: low_rank(&[1.0, 2.0, 3.0, 4.0], 2, None),
            item: low_rank(&[1.0, 0.0, 0.0, 1.0], 2, None),
        };
        assert!(
            Affine::of_items(&chain(Vec::new(), map))
                .unwrap()
                .is_identity()
        );
        let turned = Affine::of_items(&chain(Vec::new(), Map::Diagonal(vec![3.0, -3.0]))).unwrap();
        assert_eq!(turned.isometry(), Some(9.0));
        assert!(!turned.is_identity());
        let nothing = Affine::of_items(&chain(Vec::new(), Map::Diagonal(vec![0.0, 0.0]))).unwrap();
        assert_eq!(nothing.isometry(), None);
    }

    #[test]
    fn what_is_not_affine_is_named() {
        let root = || Step::Element(ElementMap::SquareRoot);
        let unit = || Step::Element(ElementMap::Normalise);
        let of = |steps| Affine::of_items(&chain(steps, Map::Identity));
        assert_eq!(of(vec![root()]).unwrap_err(), "step \"sqrt\"");
        assert_eq!(of(vec![root(), unit()]).unwrap_err(), "step \"sqrt\"");
        let centre = Step::Centre { mean: vec![0.0; 2] };
        assert_eq!(of(vec![centre, unit()]).unwrap_err(), "step \"l2\"");
        assert!(of(vec![unit()]).unwrap().directions);
    }
}
