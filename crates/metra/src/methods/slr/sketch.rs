//! Compression of one side of the regression (Alg. 2 and 3): SLR-C samples rows, SLR-G projects
//! them by a Gaussian matrix S, and the exact form keeps them all.
//!
//! All three are one formula: the rows' part of the solve, (X̃ᵀX̃ + ρI)⁻¹X̃ᵀ, becomes
//! (X̃ᵀSSᵀX̃ + ρI)⁻¹X̃ᵀSSᵀ. Column sampling (E[SSᵀ] = I, Remark 3) needs the target of the chosen
//! rows alone and so saves work; Lemma 1 asks for more columns than there are rows, hence gives it
//! no guarantee. Gaussian projection of a clipped target needs the whole of it and so saves none.
//!
//! Departs from the paper: rows are drawn without replacement, so that as many samples as rows are
//! the exact form.

use super::side::{Inverse, Inversion, Side, product};
use crate::Result;
use crate::data::{RowId, SCAN_ROWS, Subset};
use crate::linalg::{Eigen, RowBuf, Rows, Symmetric};
use crate::random::Stream;
use crate::training::parameters::Choice;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};

/// How the rows of a solve are compressed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Compression {
    /// Not at all: exact.
    None,
    /// A random sample of rows, SLR-C.
    Columns,
    /// A Gaussian projection, SLR-G.
    Gaussian,
}

impl Choice for Compression {
    const ALL: &'static [(&'static str, Self)] = &[
        ("none", Compression::None),
        ("columns", Compression::Columns),
        ("gaussian", Compression::Gaussian),
    ];
}

/// What fixes the draw of one sketch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draw {
    pub(super) compression: Compression,
    pub(super) samples: usize,
    pub(super) seed: u64,
    /// Counts the sketches of a fit.
    pub(super) counter: u64,
}

/// One side with its rows compressed.
pub(super) struct Sketch<'a> {
    side: &'a Side<'a>,
    inverse: &'a Inverse<'a>,
    kind: Kind,
}

enum Kind {
    Exact,
    Columns {
        rows: Vec<RowId>,
        /// n/m, the factor of SSᵀ.
        weight: f64,
        sample: Solve,
    },
    Gaussian {
        draw: Draw,
        /// SᵀX̃ (m × d̃).
        projected: Mat<f64>,
        sample: Solve,
    },
}

/// The inverse of a sketched Gram matrix.
struct Solve {
    eigen: Eigen,
    ridge: f64,
    inversion: Inversion,
}

impl Solve {
    /// P_S · sums.
    fn apply(&self, sums: &Mat<f64>) -> Mat<f64> {
        let inverse = Inverse::new(&self.eigen, self.ridge, self.inversion);
        inverse.factor(inverse.whiten(sums.as_ref()).as_ref())
    }
}

impl<'a> Sketch<'a> {
    /// Compress a side; `ridge` is in the units of its Gram matrix.
    pub(super) fn new(
        side: &'a Side<'a>,
        inverse: &'a Inverse<'a>,
        (ridge, inversion): (f64, Inversion),
        draw: Draw,
    ) -> Result<Self> {
        let solve = |gram: Symmetric| -> Result<Solve> {
            Ok(Solve {
                eigen: gram.eigen()?,
                ridge,
                inversion,
            })
        };
        let kind = match draw.compression {
            Compression::None => Kind::Exact,
            Compression::Columns => {
                let mut stream = Stream::new(draw.seed, "slr columns", draw.counter);
                let rows = stream.choose(side.len(), draw.samples);
                let weight = side.len() as f64 / rows.len() as f64;
                let sampled = Subset::new(side.corpus(), rows.clone())?;
                let mut gram = side.gram_of(&sampled)?;
                *gram.entries_mut() *= faer::Scale(weight);
                Kind::Columns {
                    rows,
                    weight,
                    sample: solve(gram)?,
                }
            }
            Compression::Gaussian => {
                let mut projected = Mat::zeros(draw.samples, side.width());
                side.corpus().scan(0..side.len(), &mut |first, rows| {
                    add_product(
                        &gaussian(draw, first, rows.len()),
                        &side.prepared(rows),
                        &mut projected,
                    );
                    Ok(())
                })?;
                let gram = product(projected.transpose(), projected.as_ref());
                Kind::Gaussian {
                    draw,
                    projected,
                    sample: solve(Symmetric::new(gram)?)?,
                }
            }
        };
        Ok(Sketch {
            side,
            inverse,
            kind,
        })
    }

    /// The rows whose target is needed; `None` for all.
    pub(super) fn rows(&self) -> Option<&[RowId]> {
        match &self.kind {
            Kind::Columns { rows, .. } => Some(rows),
            Kind::Exact | Kind::Gaussian { .. } => None,
        }
    }

    /// Whitened coordinates of (X̃ᵀSSᵀX̃ + ρI)⁻¹ X̃ᵀSSᵀ · values, one row of values a needed row.
    pub(super) fn solve(&self, values: Rows<'_>) -> Result<Mat<f64>> {
        let (sums, sample) = match &self.kind {
            Kind::Exact => {
                let sums = self.side.transposed(values)?;
                return Ok(self.inverse.whiten(sums.as_ref()));
            }
            Kind::Columns {
                rows,
                weight,
                sample,
            } => {
                let sampled = Subset::new(self.side.corpus(), rows.clone())?;
                let mut sums = self.side.transposed_times(&sampled, values)?;
                sums *= faer::Scale(*weight);
                (sums, sample)
            }
            Kind::Gaussian {
                draw,
                projected,
                sample,
            } => {
                let mut small = Mat::zeros(draw.samples, values.dim());
                let count = SCAN_ROWS;
                for first in (0..values.len()).step_by(count) {
                    let part = values.slice(first, values.len().min(first + count));
                    let wide =
                        Mat::from_fn(part.len(), part.dim(), |i, j| f64::from(part.row(i)[j]));
                    add_product(
                        &gaussian(*draw, first as u64, part.len()),
                        &wide,
                        &mut small,
                    );
                }
                (product(projected.transpose(), small.as_ref()), sample)
            }
        };
        let factor = sample.apply(&sums);
        Ok(self.inverse.coordinates(factor.as_ref()))
    }

    /// SSᵀX̃ (X̃ᵀSSᵀX̃ + ρI)⁻¹ P^(-1/2) for the needed rows: what the target is multiplied with
    /// on this side when the whole M is solved for (Alg. 2). Exact, these are the whitened rows.
    pub(super) fn fold(&self) -> Result<RowBuf> {
        let identity = Mat::<f64>::identity(self.side.width(), self.side.width());
        match &self.kind {
            Kind::Exact => {
                let factor = self.inverse.factor(identity.as_ref());
                self.side.embed(factor.as_ref(), None)
            }
            Kind::Columns {
                rows,
                weight,
                sample,
            } => {
                let mut factor = self.mixed(sample);
                factor *= faer::Scale(*weight);
                self.side.embed(factor.as_ref(), Some(rows))
            }
            Kind::Gaussian {
                draw,
                projected,
                sample,
            } => {
                let small = product(projected.as_ref(), self.mixed(sample).as_ref());
                let mut all = RowBuf::zeros(self.side.len() as usize, small.ncols());
                let count = SCAN_ROWS;
                for first in (0..all.len()).step_by(count) {
                    let rows = count.min(all.len() - first);
                    let spread =
                        product(gaussian(*draw, first as u64, rows).as_ref(), small.as_ref());
                    for row in 0..rows {
                        for (column, value) in all.row_mut(first + row).iter_mut().enumerate() {
                            *value = spread[(row, column)] as f32;
                        }
                    }
                }
                Ok(all)
            }
        }
    }

    /// P_S P^(-1/2), from the right: columns are whitened coordinates of the full side.
    fn mixed(&self, sample: &Solve) -> Mat<f64> {
        let identity = Mat::<f64>::identity(self.side.width(), self.side.width());
        let columns = self.inverse.coordinates(sample.apply(&identity).as_ref());
        columns.transpose().to_owned()
    }
}

/// The m ≥ (r + 1) log(48 r/δ)/(c ε²) of Theorem 1 for data of rank r, with ε = 1/2, δ = 0.05 and c = 1/4, which
/// Corollary 3 gives.
pub(super) fn sufficient_samples(rank: usize) -> usize {
    let r = rank.max(1) as f64;
    ((r + 1.0) * (48.0 * r / 0.05).ln() * 16.0).ceil() as usize
}

/// Rows of S from `first` on: normal numbers of variance 1/m, drawn block by block so that S is
/// never held.
pub(super) fn gaussian(draw: Draw, first: u64, rows: usize) -> Mat<f64> {
    let deviation = 1.0 / (draw.samples as f64).sqrt();
    let mut out = Mat::zeros(rows, draw.samples);
    for row in 0..rows {
        // Sketches of a fit are counted, rows are below 2³²: no two rows share a stream.
        let counter = (draw.counter << 32) + first + row as u64;
        let mut stream = Stream::new(draw.seed, "slr gaussian", counter);
        for column in 0..draw.samples {
            out[(row, column)] = deviation * stream.normal();
        }
    }
    out
}

/// sum += leftᵀ · right.
fn add_product(left: &Mat<f64>, right: &Mat<f64>, sum: &mut Mat<f64>) {
    let (left, right) = (left.transpose(), right.as_ref());
    matmul(sum.as_mut(), Accum::Add, left, right, 1.0, Par::Seq);
}
