//! Discriminant directions (Fisher 1936, Rao 1948): the map of LDA, where trained maps may start too.

use super::principal_axes::{coordinates, principal_axes, usable};
use crate::data::{Corpus, Keys};
use crate::execute::{keyed_sums, moments};
use crate::linalg::{RowBuf, discriminant_directions};
use crate::supervision::Labels;
use crate::{Error, Result};
use faer::Mat;

/// The discriminant map of at most this rank, with the mean of the rows. Directions beyond (number of
/// classes − 1), which a start of full rank needs, follow the inner spread.
pub(crate) fn discriminant(
    corpus: &dyn Corpus,
    labels: &Labels,
    ridge: f64,
    rank: usize,
) -> Result<(RowBuf, Vec<f64>)> {
    if labels.classes() < 2 {
        return Err(Error::Data(format!(
            "expected at least 2 classes to tell apart, but found {}",
            labels.classes()
        )));
    }
    if corpus.len() < corpus.dim() as u64 {
        let axes = principal_axes(corpus)?;
        let reduced = coordinates(corpus, &axes)?;
        let (small, _) = direct(&reduced, labels, ridge, usable(rank, axes.rank())?)?;
        return Ok((axes.carry_back(&small)?, axes.mean));
    }
    direct(corpus, labels, ridge, rank)
}

fn direct(
    corpus: &dyn Corpus,
    labels: &Labels,
    ridge: f64,
    rank: usize,
) -> Result<(RowBuf, Vec<f64>)> {
    let total = moments(corpus)?;
    let sums = keyed_sums(corpus, Keys::Class(labels.of()), labels.classes())?;
    // Rows √(n_c/n)·(mean_c − mean): the between scatter is their outer product.
    let between = Mat::from_fn(labels.classes(), corpus.dim(), |class, column| {
        let count = sums.counts[class].max(1) as f64;
        (count / total.count as f64).sqrt()
            * (sums.sums[(class, column)] / count - total.mean[column])
    });
    let mut within = total.covariance;
    let b = between.as_ref();
    faer::linalg::matmul::matmul(
        within.entries_mut().as_mut(),
        faer::Accum::Add,
        b.transpose(),
        b,
        -1.0,
        faer::Par::Seq,
    );
    if within.trace() <= 0.0 && between.norm_l2() == 0.0 {
        return Err(Error::Data(
            "all vectors are equal: nothing can be learned".into(),
        ));
    }
    let weights = discriminant_directions(&within.eigen()?, between.as_ref(), ridge, rank)?;
    Ok((weights, total.mean))
}
