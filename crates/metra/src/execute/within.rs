//! Within-class scatter, with a weight for each class.
//!
//! With a class of n rows, the differences of all its ordered pairs sum up to 2n times its spread
//! about its mean: spreads of pairs need no pairs.

use super::{KeyedSums, Sample, Statistic, expect_parts, fold};
use crate::Result;
use crate::data::{Corpus, Keys, PartialResult};
use crate::linalg::{Symmetric, accumulate_outer};
use faer::Mat;
use serde::{Deserialize, Serialize};

/// Σ_rows weight(class) · (x − mean(class)) (x − mean(class))ᵀ in one pass; `sums` are the class
/// sums of the same rows and keys, and there is a weight for each class.
pub fn within_scatter(
    corpus: &dyn Corpus,
    keys: Keys<'_>,
    sums: &KeyedSums,
    weights: &[f64],
) -> Result<Symmetric> {
    let classes = Classes {
        dim: sums.sums.ncols() as u64,
        means: (0..sums.counts.len()).flat_map(|c| sums.mean(c)).collect(),
        roots: weights.iter().map(|weight| weight.sqrt()).collect(),
    };
    fold::<WithinSums>(corpus, keys, &classes)
}

/// What [`WithinSums`] must know of the classes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Classes {
    dim: u64,
    /// Mean of each class, one after the other.
    means: Vec<f64>,
    /// Root of each class's weight.
    roots: Vec<f64>,
}

/// Sums of the outer products of rows about the mean of their class.
pub(crate) struct WithinSums {
    classes: Classes,
    sum: Symmetric,
}

impl Statistic for WithinSums {
    const NAME: &'static str = "scatter within classes";
    type Spec = Classes;
    type Out = Symmetric;

    fn start(classes: &Classes, _: u64) -> Result<Self> {
        Ok(WithinSums {
            classes: classes.clone(),
            sum: Symmetric::zeros(classes.dim as usize),
        })
    }

    fn update(&mut self, sample: &Sample<'_>) -> Result<()> {
        let (rows, keys) = (sample.rows, sample.keys.unwrap_or(&[]));
        let Classes { means, roots, .. } = &self.classes;
        let dim = rows.dim();
        let mut centred = Mat::zeros(keys.len(), dim);
        for column in 0..dim {
            let target = centred.col_as_slice_mut(column).iter_mut();
            for ((target, row), key) in target.zip(rows.iter()).zip(keys) {
                let class = *key as usize;
                *target = roots[class] * (f64::from(row[column]) - means[class * dim + column]);
            }
        }
        accumulate_outer(centred.as_ref(), self.sum.entries_mut().as_mut());
        Ok(())
    }

    fn close(self) -> Result<Vec<PartialResult>> {
        Ok(vec![PartialResult::Sum(self.sum.into_packed())])
    }

    fn finish(classes: &Classes, parts: Vec<PartialResult>) -> Result<Symmetric> {
        let [sum] = expect_parts(parts)?;
        Symmetric::from_packed(classes.dim as usize, &sum.into_sum()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::execute::keyed_sums;
    use crate::linalg::RowBuf;

    #[test]
    fn spread_by_hand() {
        // Class 0: 1 and 3 about 2, class 1: 10, 11 and 15 about 12. With weights 5 and 7:
        // 5·(1 + 1) + 7·(4 + 1 + 9) = 108.
        let rows = RowBuf::from_values(vec![1.0, 10.0, 11.0, 3.0, 15.0], 1).unwrap();
        let (corpus, keys) = (
            MemoryCorpus::new(rows).unwrap(),
            Keys::Class(&[0, 1, 1, 0, 1]),
        );
        let sums = keyed_sums(&corpus, keys, 2).unwrap();
        let found = within_scatter(&corpus, keys, &sums, &[5.0, 7.0]).unwrap();
        assert!((found.entries()[(0, 0)] - 108.0).abs() < 1e-12);
    }
}
