//! Sums over rows that are not kept: passes that need nothing else are answered from them, and rows are added and taken away
//! exactly.
//!
//! Sums are about a fixed point near the rows: about 0 they would cancel where the data lies far from the origin.

use super::{ColumnSums, KeyedSums, OuterSums, Statistic, decode};
use crate::data::{Corpus, Keys, PartialResult, PassExecutor, RowId, Task};
use crate::linalg::{RowBuf, Rows, Symmetric, accumulate_outer};
use crate::{Error, Result};
use faer::Mat;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Rows whose squares are more than this times those that stay cannot be taken away: f64 has 16 digits, and 10 are promised.
pub(crate) const MOST_TIMES: f64 = 1e6;

/// Numbers and sums of rows by class, and the sum of their outer products.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RowSums {
    /// The point that is taken from rows before they are summed.
    about: Vec<f64>,
    /// Rows of each class.
    counts: Vec<u64>,
    /// The sum of the rows of each class.
    sums: Vec<Vec<f64>>,
    /// The lower half of the sum of outer products of all rows.
    outer: Vec<f64>,
}

impl RowSums {
    /// Of no rows.
    pub(crate) fn new(about: Vec<f64>) -> Self {
        let dim = about.len();
        RowSums {
            about,
            counts: Vec::new(),
            sums: Vec::new(),
            outer: vec![0.0; dim * (dim + 1) / 2],
        }
    }

    pub(crate) fn about(&self) -> &[f64] {
        &self.about
    }

    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Whether the parts have the sizes that they must have, and only finite numbers.
    pub(crate) fn is_sound(&self) -> bool {
        let dim = self.about.len();
        let numbers = [&self.about, &self.outer].into_iter().chain(&self.sums);
        dim > 0
            && self.outer.len() == dim * (dim + 1) / 2
            && self.sums.len() == self.counts.len()
            && self.sums.iter().all(|sum| sum.len() == dim)
            && numbers.flatten().all(|value| value.is_finite())
    }

    /// Of the rows of a corpus, about a point; `classes` has the class of each, of `count` in all.
    pub(crate) fn of(
        corpus: &dyn Corpus,
        classes: &[u32],
        count: usize,
        about: Vec<f64>,
    ) -> Result<Self> {
        let dim = corpus.dim();
        let mut outer = Symmetric::zeros(dim);
        let (mut counts, mut sums) = (vec![0; count], vec![vec![0.0; dim]; count]);
        corpus.scan(0..corpus.len(), &mut |first, rows| {
            let centred = Mat::from_fn(rows.len(), dim, |row, column| {
                f64::from(rows.row(row)[column]) - about[column]
            });
            accumulate_outer(centred.as_ref(), outer.entries_mut().as_mut());
            for row in 0..rows.len() {
                let class = classes[first as usize + row] as usize;
                counts[class] += 1;
                for (column, sum) in sums[class].iter_mut().enumerate() {
                    *sum += centred[(row, column)];
                }
            }
            Ok(())
        })?;
        Ok(RowSums {
            about,
            counts,
            sums,
            outer: outer.into_packed(),
        })
    }

    /// Add sums about the same point, or take them away; class `c` of theirs is class `place[c]` here, which may be new.
    pub(crate) fn change(&mut self, other: &RowSums, place: &[usize], is_added: bool) {
        let factor = if is_added { 1.0 } else { -1.0 };
        let add = |own: &mut [f64], other: &[f64]| {
            let pairs = own.iter_mut().zip(other);
            pairs.for_each(|(own, other)| *own += factor * other);
        };
        let classes = place.iter().max().map_or(0, |last| last + 1);
        let classes = classes.max(self.counts.len());
        self.counts.resize(classes, 0);
        self.sums.resize(classes, vec![0.0; self.about.len()]);
        add(&mut self.outer, &other.outer);
        for (class, place) in place.iter().enumerate() {
            add(&mut self.sums[*place], &other.sums[class]);
            self.counts[*place] = match is_added {
                true => self.counts[*place] + other.counts[class],
                false => self.counts[*place].saturating_sub(other.counts[class]),
            };
        }
    }

    /// Leave out classes without a row, and order the others so: class `c` becomes what stood at `order[c]`.
    pub(crate) fn reorder(&mut self, order: &[usize]) {
        self.counts = order.iter().map(|from| self.counts[*from]).collect();
        self.sums = order.iter().map(|from| self.sums[*from].clone()).collect();
    }

    /// The sum of all squares.
    fn squares(&self) -> f64 {
        let dim = self.about.len();
        // The lower half, column after column, each of which begins on the diagonal.
        let starts = (0..dim).scan(0, |next, column| {
            let start = *next;
            *next += dim - column;
            Some(start)
        });
        starts.map(|start| self.outer[start]).sum()
    }

    /// Whether sums about the mean of their rows are what is left of so much more that they are mostly rounding. Of one row,
    /// or none, nothing can be lost.
    pub(crate) fn is_lost_beside(&self, more: &RowSums) -> bool {
        self.counts.iter().sum::<u64>() > 1 && more.squares() > MOST_TIMES * self.squares()
    }

    /// The same sums about the mean of the rows, so that nothing tells what they were about before.
    pub(crate) fn centre(&mut self) {
        let dim = self.about.len();
        let count: u64 = self.counts.iter().sum();
        if count == 0 {
            *self = RowSums::new(vec![0.0; dim]);
            return;
        }
        let mut mean = self.about.clone();
        for sum in &self.sums {
            let shares = sum.iter().map(|sum| sum / count as f64);
            mean.iter_mut()
                .zip(shares)
                .for_each(|(mean, share)| *mean += share);
        }
        if let Ok((_, _, outer)) = self.moved(&mean) {
            self.outer = outer.into_packed();
            if count == 1 {
                self.outer.fill(0.0);
            }
            for (sum, count) in self.sums.iter_mut().zip(&self.counts) {
                let by = self.about.iter().zip(&mean).map(|(own, new)| own - new);
                sum.iter_mut()
                    .zip(by)
                    .for_each(|(sum, by)| *sum += *count as f64 * by);
            }
            self.about = mean;
        }
    }

    /// Number, sum and sum of outer products of all rows, about another point.
    fn moved(&self, about: &[f64]) -> Result<(u64, Vec<f64>, Symmetric)> {
        let dim = self.about.len();
        if about.len() != dim {
            return Err(Error::shape("dimension of the sums", dim, about.len()));
        }
        let count: u64 = self.counts.iter().sum();
        let rows = count as f64;
        let by: Vec<f64> = (self.about.iter().zip(about))
            .map(|(own, new)| own - new)
            .collect();
        let mut sum = vec![0.0; dim];
        for own in &self.sums {
            sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        let mut outer = Symmetric::from_packed(dim, &self.outer)?;
        let entries = outer.entries_mut();
        for column in 0..dim {
            for row in 0..dim {
                entries[(row, column)] +=
                    sum[row] * by[column] + by[row] * sum[column] + rows * by[row] * by[column];
            }
        }
        let sum = sum
            .iter()
            .zip(&by)
            .map(|(sum, by)| sum + rows * by)
            .collect();
        Ok((count, sum, outer))
    }
}

/// Rows of which only sums are kept, ordered by class.
pub(crate) struct SummedCorpus<'a>(pub(crate) &'a RowSums);

/// What a method is told that wants more than sums.
fn rows_are_gone(pass: &str) -> Error {
    Error::Data(format!(
        "only sums over the rows are kept, but the method needs the rows themselves ({pass}): expected a closed form over sums, \
         such as lda, pca, whitening, cca, procrustes, or slr with target=fixed"
    ))
}

impl Corpus for SummedCorpus<'_> {
    fn len(&self) -> u64 {
        self.0.counts.iter().sum()
    }

    fn dim(&self) -> usize {
        self.0.about.len()
    }

    fn gather(&self, _: &[RowId], _: &mut RowBuf) -> Result<()> {
        Err(rows_are_gone("some rows"))
    }

    fn scan(
        &self,
        _: Range<RowId>,
        _: &mut dyn FnMut(RowId, Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        Err(rows_are_gone("all rows"))
    }

    fn pass_executor(&self) -> Option<Box<dyn PassExecutor + '_>> {
        Some(Box::new(SumsExecutor(self.0)))
    }
}

/// Answers passes from sums.
struct SumsExecutor<'a>(&'a RowSums);

impl PassExecutor for SumsExecutor<'_> {
    fn near_mean(&self) -> Option<Vec<f64>> {
        Some(self.0.about.clone())
    }

    fn run(&self, task: Task) -> Result<Vec<PartialResult>> {
        let sums = self.0;
        if !task.prepare.is_empty() {
            return Err(rows_are_gone("fitted preprocessing"));
        }
        match task.name {
            OuterSums::NAME => {
                let (count, sum, outer) = sums.moved(&decode::<Vec<f64>>(&task.spec)?)?;
                Ok(vec![
                    PartialResult::Count(vec![count]),
                    PartialResult::Sum(sum),
                    PartialResult::Sum(outer.into_packed()),
                ])
            }
            ColumnSums::NAME => {
                let (count, sum, outer) = sums.moved(&decode::<Vec<f64>>(&task.spec)?)?;
                let squares = (0..sum.len()).map(|column| outer.entries()[(column, column)]);
                Ok(vec![
                    PartialResult::Count(vec![count]),
                    PartialResult::Sum(sum.clone()),
                    PartialResult::Sum(squares.collect()),
                ])
            }
            KeyedSums::NAME if task.keys == Keys::Class(&[]).by() => {
                // Column after column, a value for every class.
                let columns = (0..sums.about.len()).flat_map(|column| {
                    let classes = sums.counts.iter().zip(&sums.sums);
                    let about = sums.about[column];
                    classes.map(move |(count, sum)| sum[column] + *count as f64 * about)
                });
                Ok(vec![
                    PartialResult::Count(sums.counts.clone()),
                    PartialResult::Sum(columns.collect()),
                ])
            }
            other => Err(rows_are_gone(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::execute::{keyed_sums, moments, spread};
    use crate::random::Stream;

    /// Far from the origin, where sums about 0 would cancel.
    fn rows(count: usize) -> (MemoryCorpus, Vec<u32>) {
        let mut stream = Stream::new(6, "summed", 0);
        let values = (0..3 * count).map(|_| (1000.0 + stream.normal()) as f32);
        let rows = RowBuf::from_values(values.collect(), 3).unwrap();
        let classes = (0..count as u32)
            .map(|row| row * 4 / count as u32)
            .collect();
        (MemoryCorpus::new(rows).unwrap(), classes)
    }

    #[test]
    fn passes_find_what_they_find_in_the_rows() {
        let (corpus, classes) = rows(300);
        let sums = RowSums::of(&corpus, &classes, 4, vec![990.0, 1000.0, 1010.0]).unwrap();
        assert!(sums.is_sound());
        let summed = SummedCorpus(&sums);
        assert_eq!((summed.len(), summed.dim()), (300, 3));
        let (found, expected) = (moments(&summed).unwrap(), moments(&corpus).unwrap());
        let (columns, own) = (spread(&summed).unwrap(), spread(&corpus).unwrap());
        let keys = Keys::Class(&classes);
        let (by_class, own_sums) = (
            keyed_sums(&summed, keys, 4).unwrap(),
            keyed_sums(&corpus, keys, 4).unwrap(),
        );
        assert_eq!(by_class.counts, own_sums.counts);
        assert!((&by_class.sums - &own_sums.sums).norm_max() < 1e-8);
        for column in 0..3 {
            assert!((found.mean[column] - expected.mean[column]).abs() < 1e-10);
            assert!((columns.deviation[column] - own.deviation[column]).abs() < 1e-9);
        }
        let apart = found.covariance.entries() - expected.covariance.entries();
        assert!(apart.norm_max() < 1e-10);
    }

    #[test]
    fn rows_are_taken_away_again() {
        let (corpus, classes) = rows(200);
        let about = vec![1000.0; 3];
        let whole = RowSums::of(&corpus, &classes, 4, about.clone()).unwrap();
        let part = |from: u64, to: u64| {
            let rows = crate::data::Subset::new(&corpus, (from..to).collect()).unwrap();
            let classes = &classes[from as usize..to as usize];
            RowSums::of(&rows, classes, 4, about.clone()).unwrap()
        };
        let mut changed = RowSums::new(about.clone());
        let every = [0, 1, 2, 3];
        changed.change(&part(0, 150), &every, true);
        changed.change(&part(120, 200), &every, true);
        changed.change(&part(120, 150), &every, false);
        assert_eq!(changed.counts, whole.counts);
        let apart = |a: &[f64], b: &[f64]| {
            let pairs = a.iter().zip(b);
            pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        };
        assert!(apart(&changed.outer, &whole.outer) < 1e-10);
        for (changed, whole) in changed.sums.iter().zip(&whole.sums) {
            assert!(apart(changed, whole) < 1e-10);
        }
    }

    #[test]
    fn what_needs_rows_says_so() {
        let (corpus, classes) = rows(20);
        let sums = RowSums::of(&corpus, &classes, 4, vec![1000.0; 3]).unwrap();
        let summed = SummedCorpus(&sums);
        let error = crate::execute::fetched(&summed, &[0])
            .unwrap_err()
            .to_string();
        assert!(error.contains("needs the rows themselves"), "{error}");
    }
}
