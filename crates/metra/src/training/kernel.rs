//! Coordinates in a kernel's feature space: kernel PCA over landmarks.
//!
//! With all training rows as landmarks the coordinates are exact: distances between training rows
//! are those of the feature space. With a part of them they are Nyström's approximation, which
//! scales past the N × N matrix. They are never whitened: steps that are plain here are steps
//! preconditioned by K⁻¹ on the coefficients of the rows, and whitening would change what an
//! orthonormal map means (on VIPeR it cost 20 points of rank-1).

use super::parameters::{Bound, Choice, parameters};
use super::principal_axes::transposed;
use crate::data::{Corpus, MemoryCorpus, RowId, Storage};
use crate::linalg::{
    Kernel, RowBuf, Rows, Symmetric, finish_kernel, map_rows, raw_kernel_within, transposed_product,
};
use crate::model::{Chain, Embedded, KernelMap, LowRank, Map, Side, Space, Step, embed_corpus};
use crate::random::Stream;
use crate::{Error, Result};
use faer::Mat;

/// A kernel by name, before its width is settled on the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelKind {
    /// x·y.
    Linear,
    /// (x·y/mean + offset)^degree, where mean is that of the rows' squared lengths.
    Polynomial,
    /// exp(−|x − y|²/(width·mean)).
    Rbf,
    /// Σ 2xy/(x + y).
    ChiSquare,
    /// exp(−χ²/(width·mean)).
    ExponentialChiSquare,
    /// Σ min(x, y).
    Intersection,
    /// The vectors are rows of a kernel matrix already.
    Precomputed,
}

impl Choice for KernelKind {
    const ALL: &'static [(&'static str, Self)] = &[
        ("linear", KernelKind::Linear),
        ("polynomial", KernelKind::Polynomial),
        ("rbf", KernelKind::Rbf),
        ("chi2", KernelKind::ChiSquare),
        ("exp-chi2", KernelKind::ExponentialChiSquare),
        ("intersection", KernelKind::Intersection),
        ("precomputed", KernelKind::Precomputed),
    ];
}

parameters! {
    /// A kernel with what settles it.
    #[derive(Copy)]
    pub struct KernelSpec {
        /// The kernel.
        kernel: KernelKind = KernelKind::ExponentialChiSquare,
        /// Kernel width, as a multiple of the mean squared (rbf) or χ² (exp-chi2) distance between
        /// training rows.
        width: f64 = 2.0 => Bound::Above(0.0),
        /// Power of the polynomial kernel.
        degree: u64 = 2 => Bound::Between(1.0, 20.0),
        /// Added to the inner product of the polynomial kernel, relative to the mean squared length.
        offset: f64 = 1.0 => Bound::AtLeast(0.0),
        /// Maximum number of landmark rows (Nyström approximation if there are more training rows).
        landmarks: usize = 2000 => Bound::AtLeast(2.0),
    }
}

/// Principal axes of the landmarks in the feature space.
pub(crate) struct KernelAxes {
    source: Source,
    /// Λ^(−1/2) Vᵀ: coordinates of centred kernel values, axes × landmarks.
    basis: RowBuf,
    /// Mean kernel column of the landmarks.
    mean: Vec<f64>,
    /// The centred kernel matrix of the landmarks.
    gram: RowBuf,
}

enum Source {
    Vectors {
        kernel: Kernel,
        landmarks: RowBuf,
    },
    /// Columns of the training rows in the given kernel matrix, and its number of columns.
    Matrix {
        columns: Vec<usize>,
        width: usize,
    },
}

/// Axes with less variance than this share of the largest are rounding of f32 kernel values.
const NOISE: f64 = 1e-6;

impl KernelAxes {
    /// Work them out from rows of the corpus, drawn where there are more than `spec.landmarks`.
    pub(crate) fn new(corpus: &dyn Corpus, spec: KernelSpec, seed: u64) -> Result<Self> {
        let chosen = Stream::new(seed, "landmarks", 0).choose(corpus.len(), spec.landmarks);
        let mut rows = RowBuf::empty(corpus.dim());
        corpus.gather(&chosen, &mut rows)?;
        let check = || corpus.check_stop();
        let (source, gram) = match spec.kernel {
            KernelKind::Precomputed => {
                let columns: Vec<RowId> = chosen.iter().map(|row| corpus.origin(*row)).collect();
                select_columns(&rows, &columns)?
            }
            _ => {
                let (kernel, gram) = settle(spec, rows.rows(), &check)
                    .map_err(|e| e.renumbered(|row| corpus.origin(chosen[row as usize])))?;
                let landmarks = rows;
                (Source::Vectors { kernel, landmarks }, gram)
            }
        };
        Self::of_gram(source, gram, &check)
    }

    fn of_gram(source: Source, mut gram: RowBuf, check: &dyn Fn() -> Result<()>) -> Result<Self> {
        let count = gram.len();
        let mean: Vec<f64> = (gram.rows().iter())
            .map(|row| row.iter().map(|v| f64::from(*v)).sum::<f64>() / count as f64)
            .collect();
        let grand = mean.iter().sum::<f64>() / count as f64;
        let centred = Mat::from_fn(count, count, |i, j| {
            f64::from(gram.row(i)[j]) - mean[i] - mean[j] + grand
        });
        for i in 0..count {
            for (j, value) in gram.row_mut(i).iter_mut().enumerate() {
                *value = centred[(i, j)] as f32;
            }
        }
        let eigen = Symmetric::new(centred)?.eigen_until(check)?;
        let floor = eigen.values.first().copied().unwrap_or(0.0) * NOISE;
        let rank = (eigen.values.iter())
            .take_while(|v| **v > floor && **v > 0.0)
            .count();
        if rank == 0 {
            return Err(Error::Data(
                "all vectors are equal: nothing can be learned".into(),
            ));
        }
        let mut basis = RowBuf::zeros(rank, count);
        for axis in 0..rank {
            let length = eigen.values[axis].sqrt();
            let column = eigen.vectors.col(axis);
            for (n, value) in basis.row_mut(axis).iter_mut().enumerate() {
                *value = (column[n] / length) as f32;
            }
        }
        Ok(KernelAxes {
            source,
            basis,
            mean,
            gram,
        })
    }

    /// Number of axes.
    pub(crate) fn rank(&self) -> usize {
        self.basis.len()
    }

    /// The centred kernel matrix of the landmarks.
    pub(crate) fn gram(&self) -> Rows<'_> {
        self.gram.rows()
    }

    /// A map of coordinates as a map of kernel values: map · basis.
    pub(crate) fn carry_back(&self, map: &RowBuf) -> Result<RowBuf> {
        let mut full = RowBuf::empty(self.basis.dim());
        transposed_product(transposed(map).rows(), self.basis.rows(), &mut full)?;
        Ok(full)
    }

    /// The map of vectors whose weights on centred kernel values with the landmarks are these.
    pub(crate) fn map(&self, weights: RowBuf) -> Result<Map> {
        let map = self.of_values(weights)?;
        Ok(match &self.source {
            Source::Vectors { kernel, landmarks } => {
                Map::Kernel(KernelMap::new(*kernel, landmarks.clone(), map)?)
            }
            Source::Matrix { columns, width } => Map::LowRank(spread_out(&map, columns, *width)?),
        })
    }

    /// The coordinates as a step of preparation.
    pub(crate) fn step(&self) -> Result<Step> {
        let map = self.of_values(self.basis.clone())?;
        Ok(match &self.source {
            Source::Vectors { kernel, landmarks } => {
                Step::Kernel(KernelMap::new(*kernel, landmarks.clone(), map)?)
            }
            Source::Matrix { columns, width } => Step::Project(spread_out(&map, columns, *width)?),
        })
    }

    /// Weights on centred kernel values as a map of kernel values: centred values are H k, and what H
    /// takes from the values it may take from the weights.
    fn of_values(&self, mut weights: RowBuf) -> Result<LowRank> {
        let count = weights.dim();
        for row in weights.values_mut().chunks_exact_mut(count) {
            let mean = row.iter().map(|v| f64::from(*v)).sum::<f64>() / count as f64;
            for value in row {
                *value -= mean as f32;
            }
        }
        LowRank::centred(weights, &self.mean)
    }

    /// All rows in these coordinates; in memory, or in a mapped file where they are large.
    pub(crate) fn coordinates(&self, corpus: &dyn Corpus) -> Result<Embedded> {
        let map = self.map(self.basis.clone())?;
        let chain = Chain::new(corpus.dim(), Vec::new(), map, Space::SquaredL2)?;
        embed_corpus(&chain, Side::Item, corpus, None, &Storage::default())
    }

    /// The rows that the axes were worked out from in these coordinates. Where all of them are
    /// landmarks, their kernel values are known already.
    pub(crate) fn own_coordinates(&self, corpus: &dyn Corpus) -> Result<Embedded> {
        if self.gram.len() as u64 != corpus.len() {
            return self.coordinates(corpus);
        }
        let mut rows = RowBuf::empty(self.rank());
        map_rows(self.gram.rows(), self.basis.rows(), &mut rows)?;
        Ok(Embedded::Memory(MemoryCorpus::new(rows)?))
    }
}

/// A map of the training rows' columns as a map of whole rows of the kernel matrix.
fn spread_out(map: &LowRank, columns: &[usize], width: usize) -> Result<LowRank> {
    let mut wide = RowBuf::zeros(map.output_dim(), width);
    for (row, values) in map.weights().iter().enumerate() {
        for (column, value) in columns.iter().zip(values) {
            wide.row_mut(row)[*column] = *value;
        }
    }
    LowRank::new(wide, map.offset().map(<[f32]>::to_vec))
}

/// The kernel with its width settled on these rows, and their kernel matrix. Ends where `check` fails.
fn settle(
    spec: KernelSpec,
    rows: Rows<'_>,
    check: &(dyn Fn() -> Result<()> + Sync),
) -> Result<(Kernel, RowBuf)> {
    let unsettled = match spec.kernel {
        KernelKind::Linear | KernelKind::Precomputed => Kernel::Linear,
        KernelKind::Polynomial => {
            let squares = rows.values().iter().map(|v| f64::from(*v).powi(2));
            let mean = squares.sum::<f64>() / rows.len() as f64;
            Kernel::Polynomial {
                scale: (1.0 / mean) as f32,
                offset: spec.offset as f32,
                degree: spec.degree as u32,
            }
        }
        KernelKind::Rbf => Kernel::Rbf { gamma: 1.0 },
        KernelKind::ChiSquare => Kernel::ChiSquare,
        KernelKind::ExponentialChiSquare => Kernel::ExponentialChiSquare { gamma: 1.0 },
        KernelKind::Intersection => Kernel::Intersection,
    };
    let equal = || Error::Data("all vectors are equal: nothing can be learned".into());
    unsettled.check().map_err(|_| equal())?;
    unsettled.check_rows(0, rows)?;
    let mut gram = raw_kernel_within(unsettled, rows, check)?;
    let kernel = match unsettled {
        Kernel::Rbf { .. } | Kernel::ExponentialChiSquare { .. } => {
            let count = rows.len() as f64;
            let total: f64 = (gram.rows().iter())
                .map(|row| row.iter().map(|v| f64::from(*v)).sum::<f64>())
                .sum();
            // The diagonal is 0: the mean is that of different rows.
            let mean = total / (count * (count - 1.0)).max(1.0);
            let gamma = (1.0 / (spec.width * mean)) as f32;
            if !(gamma.is_finite() && gamma > 0.0) {
                return Err(equal());
            }
            match unsettled {
                Kernel::Rbf { .. } => Kernel::Rbf { gamma },
                _ => Kernel::ExponentialChiSquare { gamma },
            }
        }
        settled => settled,
    };
    finish_kernel(kernel, gram.values_mut());
    Ok((kernel, gram))
}

/// The kernel matrix among the training rows, out of rows of the whole matrix.
fn select_columns(rows: &RowBuf, columns: &[RowId]) -> Result<(Source, RowBuf)> {
    let width = rows.dim();
    if let Some(column) = columns.iter().find(|c| **c >= width as u64) {
        return Err(Error::shape(
            "columns of the precomputed kernel matrix",
            format!("more than {column} (one a row)"),
            width,
        ));
    }
    let columns: Vec<usize> = columns.iter().map(|c| *c as usize).collect();
    let mut gram = RowBuf::zeros(columns.len(), columns.len().max(1));
    for (i, row) in rows.rows().iter().enumerate() {
        for (value, column) in gram.row_mut(i).iter_mut().zip(&columns) {
            *value = row[*column];
        }
    }
    for i in 0..columns.len() {
        for j in 0..i {
            let (a, b) = (gram.row(i)[j], gram.row(j)[i]);
            if (a - b).abs() > 1e-4 * (a.abs() + b.abs()) {
                return Err(Error::Cell {
                    row: columns[i] as u64,
                    column: columns[j],
                    problem: format!(
                        "expected a symmetric kernel matrix, but found {a} here and {b} at row {}, \
                         column {}",
                        columns[j], columns[i]
                    ),
                });
            }
        }
    }
    Ok((Source::Matrix { columns, width }, gram))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::gram;

    fn histograms(len: usize, dim: usize) -> MemoryCorpus {
        let mut stream = Stream::new(4, "test", 0);
        let mut rows = RowBuf::zeros(len, dim);
        for index in 0..len {
            for value in rows.row_mut(index) {
                *value = stream.unit() as f32;
            }
        }
        MemoryCorpus::new(rows).unwrap()
    }

    fn spec(kind: KernelKind, landmarks: usize) -> KernelSpec {
        KernelSpec {
            kernel: kind,
            width: 2.0,
            degree: 2,
            offset: 1.0,
            landmarks,
        }
    }

    fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum()
    }

    #[test]
    fn coordinates_keep_all_distances_of_the_feature_space() {
        let corpus = histograms(30, 12);
        for (_, kind) in KernelKind::ALL {
            if *kind == KernelKind::Precomputed {
                continue;
            }
            let axes = KernelAxes::new(&corpus, spec(*kind, 100), 1).unwrap();
            let Source::Vectors { kernel, .. } = axes.source else {
                panic!("vectors were given");
            };
            let mut values = vec![0.0; 900];
            gram(kernel, corpus.rows(), corpus.rows(), &mut values);
            let (found, own) = (axes.coordinates(&corpus), axes.own_coordinates(&corpus));
            let (found, own) = (found.unwrap(), own.unwrap());
            let (found, own) = (found.corpus().view().unwrap(), own.corpus().view().unwrap());
            let largest = values.iter().fold(0.0_f32, |a, b| a.max(*b));
            for (i, j) in [(0, 1), (3, 29), (7, 8)] {
                let wanted = values[i * 31] + values[j * 31] - 2.0 * values[i * 30 + j];
                let distance = squared_distance(found.row(i), found.row(j));
                let again = squared_distance(own.row(i), own.row(j));
                let difference = (distance - f64::from(wanted))
                    .abs()
                    .max((distance - again).abs());
                assert!(
                    difference < 1e-4 * f64::from(largest),
                    "{kind:?} {difference}"
                );
            }
        }
    }

    #[test]
    fn a_precomputed_matrix_gives_the_same_coordinates() {
        let corpus = histograms(20, 5);
        let mut values = vec![0.0; 400];
        gram(
            Kernel::Intersection,
            corpus.rows(),
            corpus.rows(),
            &mut values,
        );
        let matrix = MemoryCorpus::new(RowBuf::from_values(values, 20).unwrap()).unwrap();
        // Only some rows are for training; their columns are found by their place in the file.
        let chosen: Vec<RowId> = vec![1, 2, 5, 7, 11, 13, 17];
        let part = crate::data::Subset::new(&matrix, chosen.clone()).unwrap();
        let vectors = crate::data::Subset::new(&corpus, chosen).unwrap();
        let one = KernelAxes::new(&part, spec(KernelKind::Precomputed, 100), 1).unwrap();
        let other = KernelAxes::new(&vectors, spec(KernelKind::Intersection, 100), 1).unwrap();
        let one = one.coordinates(&matrix).unwrap();
        let other = other.coordinates(&corpus).unwrap();
        let (one, other) = (one.corpus().view().unwrap(), other.corpus().view().unwrap());
        for (i, j) in [(0, 1), (5, 19), (3, 4)] {
            let a = squared_distance(one.row(i), one.row(j));
            let b = squared_distance(other.row(i), other.row(j));
            assert!((a - b).abs() < 1e-4, "{a} {b}");
        }
    }

    #[test]
    fn what_is_no_kernel_matrix_is_named() {
        let rows = RowBuf::from_values(vec![1.0, 0.5, 0.4, 1.0], 2).unwrap();
        let corpus = MemoryCorpus::new(rows).unwrap();
        let error = |kind| KernelAxes::new(&corpus, spec(kind, 10), 1).err().unwrap();
        let text = error(KernelKind::Precomputed).to_string();
        assert!(
            text.contains("row 1, column 0: expected a symmetric"),
            "{text}"
        );
        let rows = RowBuf::from_values(vec![1.0, 0.5, 0.4, -1.0], 2).unwrap();
        let corpus = MemoryCorpus::new(rows).unwrap();
        let error = KernelAxes::new(&corpus, spec(KernelKind::ChiSquare, 10), 1);
        let text = error.err().unwrap().to_string();
        assert!(
            text.contains("row 1, column 1: expected at least 0"),
            "{text}"
        );
    }
}
