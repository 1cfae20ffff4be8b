//! Sums of rows by key: class sums for discriminant analysis, group sums for centring by camera.

use super::{Sample, Statistic, expect_parts, fold};
use crate::data::{Corpus, Keys, PartialResult};
use crate::{Error, Result};
use faer::Mat;

/// Number and sum of the rows of each key.
#[derive(Debug, Clone)]
pub struct KeyedSums {
    /// Rows of each key.
    pub counts: Vec<u64>,
    /// Sum of the rows of each key (keys × dim).
    pub sums: Mat<f64>,
}

/// Sum the rows by key; `keys` has one number below `count` a row.
pub fn keyed_sums(corpus: &dyn Corpus, keys: Keys<'_>, count: usize) -> Result<KeyedSums> {
    fold::<KeyedSums>(corpus, keys, &(count as u64, corpus.dim() as u64))
}

/// Keys and dimension of [`KeyedSums`].
type Shape = (u64, u64);

impl Statistic for KeyedSums {
    const NAME: &'static str = "sums by key";
    type Spec = Shape;
    type Out = KeyedSums;

    fn start(&(keys, dim): &Shape, _: u64) -> Result<Self> {
        Ok(KeyedSums {
            counts: vec![0; keys as usize],
            sums: Mat::zeros(keys as usize, dim as usize),
        })
    }

    fn update(&mut self, sample: &Sample<'_>) -> Result<()> {
        let keys = sample.keys.unwrap_or(&[]);
        for (row, key) in sample.rows.iter().zip(keys) {
            self.counts[*key as usize] += 1;
            for (column, value) in row.iter().enumerate() {
                self.sums[(*key as usize, column)] += f64::from(*value);
            }
        }
        Ok(())
    }

    fn close(self) -> Result<Vec<PartialResult>> {
        let columns = self.sums.ncols();
        let mut sums = Vec::with_capacity(self.sums.nrows() * columns);
        for column in 0..columns {
            sums.extend_from_slice(self.sums.col_as_slice(column));
        }
        Ok(vec![
            PartialResult::Count(self.counts),
            PartialResult::Sum(sums),
        ])
    }

    fn finish(&(keys, dim): &Shape, parts: Vec<PartialResult>) -> Result<KeyedSums> {
        let [counts, sums] = expect_parts(parts)?;
        let (counts, sums) = (counts.into_count()?, sums.into_sum()?);
        if sums.len() as u64 != keys * dim || counts.len() as u64 != keys {
            return Err(Error::shape("sums by key", keys * dim, sums.len()));
        }
        Ok(KeyedSums {
            counts,
            sums: Mat::from_fn(keys as usize, dim as usize, |key, column| {
                sums[column * keys as usize + key]
            }),
        })
    }
}

impl KeyedSums {
    /// Mean of the rows of a key; zeros where it has none.
    pub fn mean(&self, key: usize) -> Vec<f64> {
        let count = self.counts[key].max(1) as f64;
        (0..self.sums.ncols())
            .map(|c| self.sums[(key, c)] / count)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::linalg::RowBuf;

    #[test]
    fn sums_by_hand() {
        let rows = RowBuf::from_values(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2).unwrap();
        let found = keyed_sums(
            &MemoryCorpus::new(rows).unwrap(),
            Keys::Class(&[1, 0, 1]),
            3,
        )
        .unwrap();
        assert_eq!(found.counts, vec![1, 2, 0]);
        assert_eq!(found.mean(1), vec![3.0, 4.0]);
        assert_eq!(found.mean(2), vec![0.0, 0.0]);
    }
}
