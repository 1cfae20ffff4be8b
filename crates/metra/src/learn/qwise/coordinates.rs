//! Coordinates in which a linear scorer is learned, whether it is linear in the vectors or in a
//! kernel's feature space, and the way back to a map of the vectors.
//!
//! In the kernel form w = Σ a_m φ(x_m) lies in the span of landmark rows. With K = U S Uᵀ among the
//! landmarks (centred), the coordinates S^{-½}Uᵀk(x) have the centred kernel as their inner product,
//! for landmarks exactly, so |w|² and all scores are those of the kernel form, and one linear solver serves both
//! (Chapelle 2007 works with a itself; the optimum is the same). With all rows as landmarks nothing
//! is approximated; with some of them it is the Nyström approximation.

use super::super::parameters::Choice;
use super::super::reduce::{PrincipalAxes, coordinates, principal_axes};
use crate::data::{Corpus, MemoryCorpus};
use crate::execute::spread;
use crate::linalg::{Kernel, RowBuf, Symmetric, chi_square, gram, gram_within, map_rows};
use crate::metric::{KernelMap, LowRank, Map};
use crate::random::Stream;
use crate::{Error, Result};
use faer::Mat;

/// Which kernel compares rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KernelKind {
    /// x·y: attributes are linear in the vectors.
    Linear,
    /// exp(−|x − y|²/(width · mean)).
    Rbf,
    /// Additive χ².
    ChiSquare,
    /// exp(−χ²/(width · mean)).
    ExponentialChiSquare,
    /// Histogram intersection.
    Intersection,
}

impl Choice for KernelKind {
    const ALL: &'static [(&'static str, Self)] = &[
        ("linear", KernelKind::Linear),
        ("rbf", KernelKind::Rbf),
        ("chi2", KernelKind::ChiSquare),
        ("exp-chi2", KernelKind::ExponentialChiSquare),
        ("intersection", KernelKind::Intersection),
    ];
}

/// Rows in which scores are linear, and the way back.
pub(super) struct Field<'a> {
    corpus: &'a dyn Corpus,
    kind: FieldKind,
    /// Root of the mean squared distance from the mean: coordinates are divided by it.
    pub(super) scale: f64,
    mean: Vec<f64>,
}

enum FieldKind {
    Plain,
    Reduced(PrincipalAxes, MemoryCorpus),
    Kernel {
        kernel: Kernel,
        landmarks: RowBuf,
        /// S^{-½}Uᵀ, coordinates × landmarks.
        project: Mat<f64>,
        rows: MemoryCorpus,
    },
}

/// Entries of a kernel matrix are f32: eigenvalues below this times its largest entry and the root
/// of its size are rounding noise.
const NOISE: f64 = 1e-7;
/// Rows from which the mean distance under an exponential is estimated.
const SAMPLE: usize = 500;

impl<'a> Field<'a> {
    /// Linear: the vectors themselves, or, where there are fewer rows than dimensions, their
    /// coordinates in the rows' span.
    pub(super) fn linear(corpus: &'a dyn Corpus) -> Result<Self> {
        let (kind, mean) = if corpus.len() < corpus.dim() as u64 {
            let axes = principal_axes(corpus)?;
            let rows = coordinates(corpus, &axes)?;
            let mean = axes.mean.clone();
            (FieldKind::Reduced(axes, rows), mean)
        } else {
            (FieldKind::Plain, spread(corpus)?.mean)
        };
        Self::scaled(corpus, kind, mean)
    }

    /// A kernel's feature space, spanned by at most `landmarks` rows.
    pub(super) fn kernel(
        corpus: &'a dyn Corpus,
        kind: KernelKind,
        width: f64,
        landmarks: usize,
        seed: u64,
    ) -> Result<Self> {
        let mut random = Stream::new(seed, "kernel landmarks", 0);
        let chosen = random.choose(corpus.len(), landmarks);
        let mut marks = RowBuf::empty(corpus.dim());
        corpus.gather(&chosen, &mut marks)?;
        let kernel = settle(kind, width, &marks)?;
        kernel.check()?;
        corpus.scan(0..corpus.len(), &mut |first, rows| {
            kernel.check_rows(first, rows)
        })?;
        let count = marks.len();
        let within = gram_within(kernel, marks.rows());
        let largest = (within.values().iter()).fold(0.0_f64, |m, v| m.max(f64::from(v.abs())));
        let eigen = Symmetric::new(centred(&within))?.eigen()?;
        let floor = largest * (count as f64).sqrt() * NOISE;
        let rank = eigen.values.iter().take_while(|v| **v > floor).count();
        if rank == 0 {
            return Err(Error::Data(
                "the kernel is the same for all rows: nothing can be learned".into(),
            ));
        }
        let project = Mat::from_fn(rank, count, |row, column| {
            eigen.vectors[(column, row)] / eigen.values[row].sqrt()
        });
        let narrow = narrowed(&project)?;
        let mut all = RowBuf::empty(rank);
        let mut mapped = RowBuf::empty(rank);
        corpus.scan(0..corpus.len(), &mut |_, rows| {
            let mut values = RowBuf::zeros(rows.len(), count);
            gram(kernel, rows, marks.rows(), values.values_mut());
            map_rows(values.rows(), narrow.rows(), &mut mapped)?;
            all.extend(mapped.rows());
            Ok(())
        })?;
        let rows = MemoryCorpus::new(all)?;
        let mean = spread(&rows)?.mean;
        let kind = FieldKind::Kernel {
            kernel,
            landmarks: marks,
            project,
            rows,
        };
        Self::scaled(corpus, kind, mean)
    }

    fn scaled(corpus: &'a dyn Corpus, kind: FieldKind, mean: Vec<f64>) -> Result<Self> {
        let mut field = Field {
            corpus,
            kind,
            scale: 1.0,
            mean,
        };
        let deviation = spread(field.rows())?.deviation;
        field.scale = deviation.iter().map(|d| d * d).sum::<f64>().sqrt();
        if field.scale.is_finite() && field.scale > 0.0 {
            return Ok(field);
        }
        Err(Error::Data(
            "all vectors are equal: nothing can be learned".into(),
        ))
    }

    /// The rows; scores are w·row/scale.
    pub(super) fn rows(&self) -> &dyn Corpus {
        match &self.kind {
            FieldKind::Plain => self.corpus,
            FieldKind::Reduced(_, rows) | FieldKind::Kernel { rows, .. } => rows,
        }
    }

    /// The map of the vectors whose outputs are the scores of these scorers, less their means.
    pub(super) fn map(&self, scorers: &[Vec<f64>]) -> Result<Map> {
        let dim = self.rows().dim();
        let scaled = Mat::from_fn(scorers.len(), dim, |row, column| {
            scorers[row][column] / self.scale
        });
        match &self.kind {
            FieldKind::Plain => Ok(Map::LowRank(LowRank::centred(
                narrowed(&scaled)?,
                &self.mean,
            )?)),
            FieldKind::Reduced(axes, _) => {
                let weights = axes.carry_back(&narrowed(&scaled)?)?;
                Ok(Map::LowRank(LowRank::centred(weights, &axes.mean)?))
            }
            FieldKind::Kernel {
                kernel,
                landmarks,
                project,
                ..
            } => {
                let offset = scaled.row_iter().map(|row| {
                    let products = (0..dim).map(|column| row[column] * self.mean[column]);
                    products.sum::<f64>() as f32
                });
                let offset: Vec<f32> = offset.collect();
                let weights = narrowed(&(&scaled * project))?;
                let map = LowRank::new(weights, Some(offset))?;
                Ok(Map::Kernel(KernelMap::new(
                    *kernel,
                    landmarks.clone(),
                    map,
                )?))
            }
        }
    }
}

/// The kernel matrix of φ(x) − mean φ. Constraints compare differences, which the mean leaves alone,
/// while a far mean would drown small eigenvalues in its rounding.
fn centred(within: &RowBuf) -> Mat<f64> {
    let count = within.len();
    let means: Vec<f64> = (within.rows().iter())
        .map(|row| row.iter().map(|v| f64::from(*v)).sum::<f64>() / count as f64)
        .collect();
    let mean = means.iter().sum::<f64>() / count as f64;
    Mat::from_fn(count, count, |row, column| {
        f64::from(within.row(row)[column]) - means[row] - means[column] + mean
    })
}

fn narrowed(matrix: &Mat<f64>) -> Result<RowBuf> {
    let mut rows = RowBuf::zeros(matrix.nrows(), matrix.ncols());
    for row in 0..matrix.nrows() {
        for (column, value) in rows.row_mut(row).iter_mut().enumerate() {
            *value = matrix[(row, column)] as f32;
        }
    }
    Ok(rows)
}

/// The kernel with its width settled by the data.
fn settle(kind: KernelKind, width: f64, rows: &RowBuf) -> Result<Kernel> {
    let some = rows.rows().slice(0, rows.len().min(SAMPLE));
    let mean_of = |distances: &[f32]| {
        let others = (some.len() * some.len().saturating_sub(1)).max(1);
        distances.iter().map(|d| f64::from(*d)).sum::<f64>() / others as f64
    };
    let gamma = |mean: f64| {
        if mean > 0.0 {
            (1.0 / (width * mean)) as f32
        } else {
            1.0
        }
    };
    Ok(match kind {
        KernelKind::Linear => Kernel::Linear,
        KernelKind::ChiSquare => Kernel::ChiSquare,
        KernelKind::Intersection => Kernel::Intersection,
        KernelKind::ExponentialChiSquare => {
            Kernel::ChiSquare.check_rows(0, some)?;
            let mut distances = vec![0.0; some.len() * some.len()];
            chi_square(some, some, &mut distances);
            Kernel::ExponentialChiSquare {
                gamma: gamma(mean_of(&distances)),
            }
        }
        KernelKind::Rbf => {
            let mut distances = Vec::with_capacity(some.len() * some.len());
            for a in some.iter() {
                for b in some.iter() {
                    distances.push(a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum());
                }
            }
            Kernel::Rbf {
                gamma: gamma(mean_of(&distances)),
            }
        }
    })
}
