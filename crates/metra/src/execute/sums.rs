//! Sums of rows by key: class sums for discriminant analysis, group sums for centring by camera.

use super::{Sample, Statistic, fold};
use crate::Result;
use crate::data::Corpus;
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
pub fn keyed_sums(corpus: &dyn Corpus, keys: &[u32], count: usize) -> Result<KeyedSums> {
    fold::<KeyedSums>(corpus, Some(keys), &(count, corpus.dim()))
}

impl Statistic for KeyedSums {
    type Spec = (usize, usize);
    type Out = KeyedSums;

    fn start(&(keys, dim): &(usize, usize)) -> Self {
        KeyedSums {
            counts: vec![0; keys],
            sums: Mat::zeros(keys, dim),
        }
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

    fn merge(&mut self, other: Self) {
        for (count, other) in self.counts.iter_mut().zip(&other.counts) {
            *count += other;
        }
        self.sums += other.sums;
    }

    fn finish(self) -> Result<KeyedSums> {
        Ok(self)
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
        let found = keyed_sums(&MemoryCorpus::new(rows).unwrap(), &[1, 0, 1], 3).unwrap();
        assert_eq!(found.counts, vec![1, 2, 0]);
        assert_eq!(found.mean(1), vec![3.0, 4.0]);
        assert_eq!(found.mean(2), vec![0.0, 0.0]);
    }
}
