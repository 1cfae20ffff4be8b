//! Mean and scatter matrix of all columns, and the cheaper mean and standard deviation of each
//! column alone.

use super::{Sample, Statistic, expect_parts, fetched, fold};
use crate::data::{Corpus, Keys, PartialResult};
use crate::linalg::{Symmetric, accumulate_outer};
use crate::{Error, Result};
use faer::Mat;

/// Mean and covariance of a corpus.
#[derive(Debug, Clone)]
pub struct Moments {
    /// Rows seen.
    pub count: u64,
    /// Mean of each column.
    pub mean: Vec<f64>,
    /// Covariance, divided by the number of rows.
    pub covariance: Symmetric,
}

/// Mean and standard deviation of each column.
#[derive(Debug, Clone)]
pub struct Spread {
    /// Mean of each column.
    pub mean: Vec<f64>,
    /// Standard deviation of each column.
    pub deviation: Vec<f64>,
}

/// Dimensions of a square matrix: 7 GB as f64.
pub(crate) const MOST_DIMENSIONS: usize = 30_000;

/// An error where a matrix of so many rows and columns would be too large.
pub(crate) fn check_square(dim: usize) -> Result<()> {
    if dim > MOST_DIMENSIONS {
        return Err(Error::shape(
            "dimensions of vectors, for a matrix of all of them",
            format!("at most {MOST_DIMENSIONS} (prepare with svd:N first)"),
            dim,
        ));
    }
    Ok(())
}

/// Mean and covariance in one pass.
pub fn moments(corpus: &dyn Corpus) -> Result<Moments> {
    check_square(corpus.dim())?;
    fold::<OuterSums>(corpus, Keys::None, &near_mean(corpus)?)
}

/// Mean and deviation of each column in one pass.
pub fn spread(corpus: &dyn Corpus) -> Result<Spread> {
    fold::<ColumnSums>(corpus, Keys::None, &near_mean(corpus)?)
}

/// The mean of the first rows. Sums are taken about it: about 0 they would cancel where the data
/// lies far from the origin.
fn near_mean(corpus: &dyn Corpus) -> Result<Vec<f64>> {
    if corpus.is_empty() {
        return Err(Error::shape("rows of the corpus", "at least 1", 0));
    }
    if let Some(known) = corpus
        .pass_executor()
        .and_then(|executor| executor.near_mean())
    {
        return Ok(known);
    }
    let first: Vec<u64> = (0..corpus.len().min(256)).collect();
    let rows = fetched(corpus, &first)?;
    let mut mean = vec![0.0; corpus.dim()];
    for row in rows.rows().iter() {
        for (mean, value) in mean.iter_mut().zip(row) {
            *mean += f64::from(*value) / first.len() as f64;
        }
    }
    Ok(mean)
}

/// Sums of the rows and of their outer products, about a given point.
pub(crate) struct OuterSums {
    about: Vec<f64>,
    count: u64,
    sum: Vec<f64>,
    outer: Mat<f64>,
}

impl Statistic for OuterSums {
    const NAME: &'static str = "moments";
    type Spec = Vec<f64>;
    type Out = Moments;

    fn start(about: &Vec<f64>, _: u64) -> Result<Self> {
        let dim = about.len();
        Ok(OuterSums {
            about: about.clone(),
            count: 0,
            sum: vec![0.0; dim],
            outer: Mat::zeros(dim, dim),
        })
    }

    fn update(&mut self, sample: &Sample<'_>) -> Result<()> {
        let rows = sample.rows;
        let mut centred = Mat::zeros(rows.len(), rows.dim());
        for (column, about) in self.about.iter().enumerate() {
            let target = centred.col_as_slice_mut(column);
            let mut sum = 0.0;
            for (row, target) in target.iter_mut().enumerate() {
                *target = f64::from(rows.row(row)[column]) - about;
                sum += *target;
            }
            self.sum[column] += sum;
        }
        self.count += rows.len() as u64;
        accumulate_outer(centred.as_ref(), self.outer.as_mut());
        Ok(())
    }

    fn close(self) -> Result<Vec<PartialResult>> {
        let outer = PartialResult::Sum(Symmetric::new(self.outer)?.into_packed());
        Ok(vec![
            PartialResult::Count(vec![self.count]),
            PartialResult::Sum(self.sum),
            outer,
        ])
    }

    fn finish(about: &Vec<f64>, parts: Vec<PartialResult>) -> Result<Moments> {
        let [count, sum, outer] = expect_parts(parts)?;
        let seen = count.into_count()?.iter().sum::<u64>();
        let count = seen.max(1) as f64;
        let offset: Vec<f64> = sum.into_sum()?.iter().map(|s| s / count).collect();
        let mut covariance = Symmetric::from_packed(offset.len(), &outer.into_sum()?)?;
        let entries = covariance.entries_mut();
        for column in 0..offset.len() {
            for row in 0..offset.len() {
                entries[(row, column)] =
                    entries[(row, column)] / count - offset[row] * offset[column];
            }
        }
        Ok(Moments {
            count: seen,
            mean: about.iter().zip(&offset).map(|(a, o)| a + o).collect(),
            covariance,
        })
    }
}

/// Sums of the columns and of their squares, about a given point.
pub(crate) struct ColumnSums {
    about: Vec<f64>,
    count: u64,
    sum: Vec<f64>,
    squares: Vec<f64>,
}

impl Statistic for ColumnSums {
    const NAME: &'static str = "spread";
    type Spec = Vec<f64>;
    type Out = Spread;

    fn start(about: &Vec<f64>, _: u64) -> Result<Self> {
        Ok(ColumnSums {
            about: about.clone(),
            count: 0,
            sum: vec![0.0; about.len()],
            squares: vec![0.0; about.len()],
        })
    }

    fn update(&mut self, sample: &Sample<'_>) -> Result<()> {
        self.count += sample.rows.len() as u64;
        for row in sample.rows.iter() {
            for (column, value) in row.iter().enumerate() {
                let centred = f64::from(*value) - self.about[column];
                self.sum[column] += centred;
                self.squares[column] += centred * centred;
            }
        }
        Ok(())
    }

    fn close(self) -> Result<Vec<PartialResult>> {
        Ok(vec![
            PartialResult::Count(vec![self.count]),
            PartialResult::Sum(self.sum),
            PartialResult::Sum(self.squares),
        ])
    }

    fn finish(about: &Vec<f64>, parts: Vec<PartialResult>) -> Result<Spread> {
        let [count, sum, squares] = expect_parts(parts)?;
        let count = count.into_count()?.iter().sum::<u64>().max(1) as f64;
        let offset: Vec<f64> = sum.into_sum()?.iter().map(|s| s / count).collect();
        Ok(Spread {
            mean: about.iter().zip(&offset).map(|(a, o)| a + o).collect(),
            deviation: (squares.into_sum()?.iter().zip(&offset))
                .map(|(square, offset)| (square / count - offset * offset).max(0.0).sqrt())
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::execute::merge;
    use crate::linalg::{RowBuf, Rows};
    use crate::random::Stream;

    fn far_from_origin() -> RowBuf {
        let mut stream = Stream::new(1, "test", 0);
        let values = (0..3000 * 3)
            .map(|i| (1000.0 + (i % 3) as f64 * stream.normal()) as f32)
            .collect();
        RowBuf::from_values(values, 3).unwrap()
    }

    #[test]
    fn moments_equal_the_definition() {
        let rows = far_from_origin();
        let n = rows.len() as f64;
        let corpus = MemoryCorpus::new(rows.clone()).unwrap();
        let found = moments(&corpus).unwrap();
        let columns = spread(&corpus).unwrap();
        let mean = |c: usize| rows.rows().iter().map(|r| f64::from(r[c])).sum::<f64>() / n;
        for a in 0..3 {
            assert!((found.mean[a] - mean(a)).abs() < 1e-9);
            assert!((columns.mean[a] - mean(a)).abs() < 1e-9);
            for b in 0..3 {
                let expected = (rows.rows().iter())
                    .map(|r| (f64::from(r[a]) - mean(a)) * (f64::from(r[b]) - mean(b)))
                    .sum::<f64>()
                    / n;
                assert!((found.covariance.entries()[(a, b)] - expected).abs() < 1e-9);
                if a == b {
                    assert!((columns.deviation[a] - expected.sqrt()).abs() < 1e-9);
                }
            }
        }
    }

    #[test]
    fn merged_shards_equal_one_pass() {
        let rows = far_from_origin();
        let about = vec![1000.0; 3];
        let part = |start, end| {
            let mut part = OuterSums::start(&about, 0).unwrap();
            let rows: Rows<'_> = rows.rows().slice(start, end);
            let (first, keys) = (start as u64, None);
            part.update(&Sample { first, rows, keys }).unwrap();
            part.close().unwrap()
        };
        let mut merged = part(0, 700);
        merge(&mut merged, part(700, 3000)).unwrap();
        let merged = OuterSums::finish(&about, merged).unwrap();
        let whole = OuterSums::finish(&about, part(0, 3000)).unwrap();
        for a in 0..3 {
            for b in 0..3 {
                let difference =
                    merged.covariance.entries()[(a, b)] - whole.covariance.entries()[(a, b)];
                assert!(difference.abs() < 1e-12);
            }
        }
    }
}
