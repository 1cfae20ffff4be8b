//! The adaptive step on a distributed corpus: the rows of a shard against the embedded rows of all.
//!
//! The n × n target is worked through in pairs of blocks, as it is in memory. A shard owns a block of
//! its rows; all other blocks are the embedded rows, of rank numbers each, which are collected once a
//! step and sent along (by address: n · rank · 4 bytes). What comes back is X̃ᵀYZ, as large as a factor.

use super::blockwise::clipped_product;
use super::side::Side;
use super::target::{Target, Thresholds};
use crate::data::{Keys, PartialResult};
use crate::execute::{Sample, Statistic, decode_list, encode_list, expect_parts, fold};
use crate::linalg::{RowBuf, transposed_product};
use crate::model::LowRank;
use crate::{Error, Result};
use faer::{Mat, MatRef};
use serde::{Deserialize, Serialize};

/// Rows of a shard that are worked on at once.
const BLOCK_ROWS: usize = 4096;
/// Numbers in a message of words.
const MESSAGE: usize = 1 << 18;

/// X̃ᵀYZ and the loss, where Z are all rows mapped by `right` and Y their similarities to the rows
/// mapped by `left`, clipped by the classes' target.
pub(super) fn clipped_sums(
    side: &Side<'_>,
    classes: &[u32],
    (left, right): (MatRef<'_, f64>, MatRef<'_, f64>),
    thresholds: Thresholds,
) -> Result<(Mat<f64>, f64)> {
    let keys = Keys::Class(classes);
    let of_right = Projection::new(&side.map(right)?);
    let embedded = fold::<EmbeddedRows>(side.corpus(), Keys::None, &of_right)?;
    if embedded.len() != classes.len() * right.ncols() {
        let expected = classes.len() * right.ncols();
        return Err(Error::shape(
            "numbers of embedded rows",
            expected,
            embedded.len(),
        ));
    }
    let (mean, constant) = side.preparation();
    let spec = Clipping {
        left: Projection::new(&side.map(left)?),
        embedded,
        classes: classes.to_vec(),
        above: thresholds.above,
        below: thresholds.below,
        mean: mean.iter().map(|m| *m as f32).collect(),
        constant,
    };
    fold::<ClippedSums>(side.corpus(), keys, &spec)
}

/// A map as it travels.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Projection {
    rank: u64,
    weights: Vec<f32>,
    offset: Option<Vec<f32>>,
}

impl Projection {
    fn new(map: &LowRank) -> Self {
        Projection {
            rank: map.output_dim() as u64,
            weights: map.weights().values().to_vec(),
            offset: map.offset().map(<[f32]>::to_vec),
        }
    }

    fn map(&self) -> Result<LowRank> {
        let dim = self.weights.len() / (self.rank as usize).max(1);
        let weights = RowBuf::from_values(self.weights.clone(), dim)?;
        LowRank::new(weights, self.offset.clone())
    }
}

/// All rows mapped, in their order.
pub(crate) struct EmbeddedRows {
    map: LowRank,
    shard: u64,
    mapped: RowBuf,
    values: Vec<f32>,
}

impl Statistic for EmbeddedRows {
    const NAME: &'static str = "embedded rows";
    type Spec = Projection;
    type Out = Vec<f32>;

    fn start(projection: &Projection, shard: u64) -> Result<Self> {
        Ok(EmbeddedRows {
            map: projection.map()?,
            shard,
            mapped: RowBuf::empty(1),
            values: Vec::new(),
        })
    }

    fn update(&mut self, sample: &Sample<'_>) -> Result<()> {
        self.map.apply(sample.rows, &mut self.mapped)?;
        self.values.extend_from_slice(self.mapped.values());
        Ok(())
    }

    fn close(self) -> Result<Vec<PartialResult>> {
        Ok(vec![encode_list(self.shard, &self.values, MESSAGE)?])
    }

    fn finish(_: &Projection, parts: Vec<PartialResult>) -> Result<Vec<f32>> {
        let [values] = expect_parts(parts)?;
        decode_list(values)
    }
}

/// What [`ClippedSums`] must know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Clipping {
    left: Projection,
    /// All rows, mapped.
    embedded: Vec<f32>,
    /// Their classes.
    classes: Vec<u32>,
    above: f32,
    below: f32,
    /// How rows are prepared for the regression.
    mean: Vec<f32>,
    constant: f64,
}

/// X̃ᵀYZ of the rows of a shard, and their loss.
pub(crate) struct ClippedSums {
    left: LowRank,
    embedded: RowBuf,
    /// The target of the block's rows.
    target: Target,
    thresholds: Thresholds,
    mean: Vec<f32>,
    constant: f64,
    rows: RowBuf,
    classes: Vec<u32>,
    total: Mat<f64>,
    loss: f64,
}

impl ClippedSums {
    fn work(&mut self) -> Result<()> {
        if self.classes.is_empty() {
            return Ok(());
        }
        let dim = self.rows.dim();
        let classes = std::mem::take(&mut self.classes);
        self.target.set_rows(classes)?;
        let (mut mapped, mut out) = (RowBuf::empty(1), RowBuf::empty(1));
        self.left.apply(self.rows.rows(), &mut mapped)?;
        let (z, all) = (mapped.rows(), self.embedded.rows());
        self.loss += clipped_product(z, all, all, &self.target, self.thresholds, &mut out)?;
        for row in self.rows.values_mut().chunks_exact_mut(dim) {
            for (value, mean) in row.iter_mut().zip(&self.mean) {
                *value -= mean;
            }
        }
        let mut part = RowBuf::empty(1);
        transposed_product(self.rows.rows(), out.rows(), &mut part)?;
        for (row, part) in part.rows().iter().enumerate() {
            for (column, value) in part.iter().enumerate() {
                self.total[(row, column)] += f64::from(*value);
            }
        }
        if self.constant != 0.0 {
            for values in out.rows().iter() {
                for (column, value) in values.iter().enumerate() {
                    self.total[(dim, column)] += self.constant * f64::from(*value);
                }
            }
        }
        self.rows.clear(dim);
        Ok(())
    }
}

impl Statistic for ClippedSums {
    const NAME: &'static str = "clipped similarities";
    type Spec = Clipping;
    type Out = (Mat<f64>, f64);

    fn start(spec: &Clipping, _: u64) -> Result<Self> {
        let (rank, dim) = (spec.left.rank as usize, spec.mean.len());
        let width = dim + usize::from(spec.constant != 0.0);
        Ok(ClippedSums {
            left: spec.left.map()?,
            embedded: RowBuf::from_values(spec.embedded.clone(), rank)?,
            target: Target::of_columns(&spec.classes),
            thresholds: Thresholds {
                above: spec.above,
                below: spec.below,
            },
            mean: spec.mean.clone(),
            constant: spec.constant,
            rows: RowBuf::empty(dim),
            classes: Vec::new(),
            total: Mat::zeros(width, rank),
            loss: 0.0,
        })
    }

    fn update(&mut self, sample: &Sample<'_>) -> Result<()> {
        self.rows.extend(sample.rows);
        self.classes.extend_from_slice(sample.keys.unwrap_or(&[]));
        match self.classes.len() >= BLOCK_ROWS {
            true => self.work(),
            false => Ok(()),
        }
    }

    fn close(mut self) -> Result<Vec<PartialResult>> {
        self.work()?;
        let columns = 0..self.total.ncols();
        let sums: Vec<f64> = columns
            .flat_map(|column| self.total.col_as_slice(column).to_vec())
            .collect();
        Ok(vec![
            PartialResult::Sum(sums),
            PartialResult::Sum(vec![self.loss]),
        ])
    }

    fn finish(spec: &Clipping, parts: Vec<PartialResult>) -> Result<(Mat<f64>, f64)> {
        let [sums, loss] = expect_parts(parts)?;
        let (sums, rank) = (sums.into_sum()?, spec.left.rank as usize);
        let width = spec.mean.len() + usize::from(spec.constant != 0.0);
        if sums.len() != width * rank {
            return Err(Error::shape(
                "numbers of a factor",
                width * rank,
                sums.len(),
            ));
        }
        let total = Mat::from_fn(width, rank, |row, column| sums[column * width + row]);
        Ok((total, loss.into_sum()?.iter().sum()))
    }
}
