//! Means and covariances of queries and of items, and the covariance between those that are relevant to each other: what
//! canonical correlations and alignments are made of.

use super::principal_axes::usable;
use crate::data::{Corpus, Keys, RowId};
use crate::dataset::Dataset;
use crate::execute::{Moments, keyed_sums, moments};
use crate::linalg::{RowBuf, Symmetric, accumulate_product, product, rows_from};
use crate::supervision::Relevance;
use crate::{Error, Result};
use faer::{Mat, MatRef};

/// Relevant items that are read at once.
const AT_ONCE: usize = 4096;
/// Singular values below this part of the largest are rounding.
const LEAST: f64 = 1e-8;

/// Moments of two corpora and of their relevant pairs.
pub(crate) struct PairedMoments {
    pub(crate) queries: Moments,
    pub(crate) items: Moments,
    /// Mean of (x − mean of queries)(y − mean of items)ᵀ over relevant pairs, weighted by their grades.
    pub(crate) between: Mat<f64>,
}

/// Directions of both sides that correlate most over relevant pairs, a row each, with their correlations.
pub(crate) struct Canonical {
    pub(crate) queries: RowBuf,
    pub(crate) items: RowBuf,
    pub(crate) correlations: Vec<f64>,
}

impl PairedMoments {
    /// Of a data set with this relevance.
    pub(crate) fn of(data: &Dataset<'_>, relevance: &dyn Relevance) -> Result<Self> {
        let Some(labels) = data.supervision().as_labels() else {
            return Self::new(data.queries(), data.items(), relevance);
        };
        // Sums of whole classes, without the pairs of rows with themselves.
        let found = moments(data.items())?;
        let sums = keyed_sums(data.items(), Keys::Class(labels.of()), labels.classes())?;
        let counts: Vec<f64> = sums.counts.iter().map(|count| *count as f64).collect();
        let centred = Mat::from_fn(labels.classes(), found.mean.len(), |class, column| {
            sums.sums[(class, column)] - counts[class] * found.mean[column]
        });
        let rows = found.count as f64;
        let mut between = product(centred.transpose(), centred.as_ref());
        between -= faer::Scale(rows) * found.covariance.entries();
        between *= faer::Scale(1.0 / (counts.iter().map(|n| n * n).sum::<f64>() - rows));
        Self::checked(found.clone(), found, between)
    }

    /// Of queries and items with this relevance between them.
    pub(crate) fn new(
        queries: &dyn Corpus,
        items: &dyn Corpus,
        relevance: &dyn Relevance,
    ) -> Result<Self> {
        let (of_queries, of_items) = (moments(queries)?, moments(items)?);
        let mut between = Mat::zeros(queries.dim(), items.dim());
        let mut weight = 0.0;
        let (mut relevant, mut rows_of) = (Vec::new(), RowBuf::empty(1));
        queries.scan(0..queries.len(), &mut |first, rows| {
            let mut sums = Mat::<f64>::zeros(rows.len(), items.dim());
            for row in 0..rows.len() {
                relevant.clear();
                relevance.relevant(first + row as RowId, &mut relevant);
                for part in relevant.chunks(AT_ONCE) {
                    let ids: Vec<RowId> = part.iter().map(|(item, _)| *item).collect();
                    items.gather(&ids, &mut rows_of)?;
                    for (item, (_, grade)) in rows_of.rows().iter().zip(part) {
                        let grade = f64::from(*grade);
                        weight += grade;
                        for (column, value) in item.iter().enumerate() {
                            sums[(row, column)] +=
                                grade * (f64::from(*value) - of_items.mean[column]);
                        }
                    }
                }
            }
            let centred = Mat::from_fn(rows.len(), rows.dim(), |row, column| {
                f64::from(rows.row(row)[column]) - of_queries.mean[column]
            });
            accumulate_product(centred.as_ref(), sums.as_ref(), between.as_mut());
            Ok(())
        })?;
        if weight <= 0.0 {
            return Err(Error::Data(
                "no item is relevant to a query: nothing can be learned".into(),
            ));
        }
        between *= faer::Scale(1.0 / weight);
        Self::checked(of_queries, of_items, between)
    }

    fn checked(queries: Moments, items: Moments, between: Mat<f64>) -> Result<Self> {
        let is_constant = |found: &Moments| found.covariance.trace() <= 0.0;
        if is_constant(&queries) || is_constant(&items) {
            return Err(Error::Data(
                "all vectors are equal: nothing can be learned".into(),
            ));
        }
        Ok(PairedMoments {
            queries,
            items,
            between,
        })
    }

    /// The leading canonical directions, at most `rank` of them. `ridge` is added to the variances, relative to their mean.
    pub(crate) fn canonical(
        &self,
        rank: usize,
        ridge: f64,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Canonical> {
        let left = whitening(&self.queries.covariance, ridge, check)?;
        let right = whitening(&self.items.covariance, ridge, check)?;
        let half = product(left.transpose(), self.between.as_ref());
        let whitened = product(half.as_ref(), right.as_ref());
        check()?;
        let solved = whitened.thin_svd().map_err(|_| {
            Error::Data("no canonical directions were found: are all values finite?".into())
        })?;
        let values = solved.S().column_vector();
        let largest = values.iter().fold(0.0_f64, |most, value| most.max(*value));
        let found = values.iter().take_while(|value| **value > LEAST * largest);
        let rank = usable(rank.min(values.nrows()), found.count())?;
        let directions = |whitening: &Mat<f64>, vectors: MatRef<'_, f64>| {
            rows_from(product(whitening.as_ref(), vectors.subcols(0, rank)).transpose())
        };
        Ok(Canonical {
            queries: directions(&left, solved.U()),
            items: directions(&right, solved.V()),
            correlations: values.iter().take(rank).copied().collect(),
        })
    }
}

/// The columns v_k / √(λ_k + ρ) of a covariance with these eigenvalues and vectors.
fn whitening(
    covariance: &Symmetric,
    ridge: f64,
    check: &dyn Fn() -> Result<()>,
) -> Result<Mat<f64>> {
    let added = ridge * covariance.trace() / covariance.dim() as f64;
    let eigen = covariance.eigen_until(check)?;
    let rank = eigen.numerical_rank();
    Ok(Mat::from_fn(covariance.dim(), rank, |row, column| {
        eigen.vectors[(row, column)] / (eigen.values[column] + added).sqrt()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::random::Stream;
    use crate::supervision::{Judgement, Judgements, Labels, Supervision};

    fn drawn(rows: usize, dim: usize, seed: u64) -> RowBuf {
        let mut stream = Stream::new(seed, "paired moments", 0);
        let values = (0..rows * dim).map(|_| stream.normal() as f32).collect();
        RowBuf::from_values(values, dim).unwrap()
    }

    /// Items are two coordinates of the queries, turned and scaled, and one of noise: two correlations are 1.
    #[test]
    fn shared_coordinates_correlate_fully() {
        let queries = drawn(300, 4, 1);
        let noise = drawn(300, 1, 2);
        let mut items = RowBuf::zeros(300, 3);
        for row in 0..300 {
            let (a, b) = (queries.row(row)[1], queries.row(row)[3]);
            let values = [5.0 * (a + b) + 7.0, noise.row(row)[0], 0.1 * (a - b)];
            items.row_mut(row).copy_from_slice(&values);
        }
        let lines: Vec<Judgement> = (0..300)
            .map(|row| Judgement {
                query: row,
                item: row,
                grade: 1.0,
            })
            .collect();
        let judgements = Judgements::new(300, 300, &lines).unwrap();
        let corpus = |rows: &RowBuf| MemoryCorpus::new(rows.clone()).unwrap();
        let found = PairedMoments::new(&corpus(&queries), &corpus(&items), &judgements).unwrap();
        let canonical = found.canonical(3, 0.0, &|| Ok(())).unwrap();
        for (place, expected) in [(0, 1.0), (1, 1.0)] {
            assert!((canonical.correlations[place] - expected).abs() < 1e-4);
        }
        assert!(
            canonical.correlations[2] < 0.2,
            "{:?}",
            canonical.correlations
        );
        // Coordinates 0 and 2 of the queries have no part in the first two directions.
        for row in 0..2 {
            let row = canonical.queries.row(row);
            assert!(row[0].abs() < 1e-3 && row[2].abs() < 1e-3, "{row:?}");
        }
    }

    #[test]
    fn sums_of_classes_are_those_of_their_pairs() {
        let rows = MemoryCorpus::new(drawn(40, 3, 3)).unwrap();
        let classes: Vec<i64> = (0..40).map(|row| row % 7).collect();
        let supervision = Supervision::labels(Labels::from_numbers(&classes).unwrap());
        let data = Dataset::new(&rows, &supervision).unwrap();
        let relevance = data.relevance("test").unwrap();
        let by_class = PairedMoments::of(&data, relevance).unwrap();
        let by_pair = PairedMoments::new(&rows, &rows, relevance).unwrap();
        assert!((&by_class.between - &by_pair.between).norm_max() < 1e-12);
    }
}
