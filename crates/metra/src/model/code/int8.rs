//! One signed byte per dimension, times a scale.

use crate::linalg::Rows;
use crate::{Error, Result};

/// The largest whole number; −128 is not used, so that both signs reach as far.
const MOST: f32 = 127.0;

/// What whole numbers are multiplied by.
#[derive(Debug, Clone, PartialEq)]
pub enum Int8Scale {
    /// A scale of every vector, which stands behind its bytes as f32.
    PerVector,
    /// 1/127, and none is kept: by cosine the length of an item does not matter.
    Direction,
    /// A scale of every dimension, the same for all vectors.
    PerDimension(Vec<f32>),
}

impl Int8Scale {
    /// The scales of dimensions whose values reach so far from 0. One that is always 0 gets any scale.
    pub(crate) fn reaching(extents: &[f32]) -> Self {
        let scale = |extent: &f32| match *extent > f32::MIN_POSITIVE * MOST {
            true => extent / MOST,
            false => 1.0,
        };
        Int8Scale::PerDimension(extents.iter().map(scale).collect())
    }

    pub(super) fn check(&self, dim: usize) -> Result<()> {
        let Int8Scale::PerDimension(scales) = self else {
            return Ok(());
        };
        if scales.len() != dim {
            return Err(Error::shape("scales of int8 codes", dim, scales.len()));
        }
        match scales.iter().find(|s| !(s.is_finite() && **s > 0.0)) {
            None => Ok(()),
            Some(scale) => Err(Error::parameter(
                "the scale of int8 codes",
                "a number above 0",
                scale,
            )),
        }
    }

    pub(super) fn item_bytes(&self, dim: usize) -> usize {
        match self {
            Int8Scale::PerVector => dim + size_of::<f32>(),
            Int8Scale::Direction | Int8Scale::PerDimension(_) => dim,
        }
    }

    pub(super) fn encode(&self, rows: Rows<'_>, out: &mut Vec<u8>) {
        for row in rows.iter() {
            if let Int8Scale::PerDimension(scales) = self {
                let values = row.iter().zip(scales);
                out.extend(values.map(|(value, scale)| whole(value / scale)));
                continue;
            }
            let largest = row.iter().fold(0.0_f32, |largest, v| largest.max(v.abs()));
            let inverse = match largest > 0.0 {
                true => f64::from(MOST) / f64::from(largest),
                false => 0.0,
            };
            out.extend(row.iter().map(|v| whole((f64::from(*v) * inverse) as f32)));
            if *self == Int8Scale::PerVector {
                out.extend((largest / MOST).to_le_bytes());
            }
        }
    }

    pub(super) fn decode(&self, code: &[u8], row: &mut [f32]) {
        let (wholes, rest) = code.split_at(row.len());
        let scale = match (self, <[u8; 4]>::try_from(rest)) {
            (Int8Scale::PerVector, Ok(bytes)) => f32::from_le_bytes(bytes),
            _ => 1.0 / MOST,
        };
        for (value, whole) in row.iter_mut().zip(wholes) {
            *value = f32::from(*whole as i8) * scale;
        }
        if let Int8Scale::PerDimension(scales) = self {
            for ((value, whole), scale) in row.iter_mut().zip(wholes).zip(scales) {
                *value = f32::from(*whole as i8) * scale;
            }
        }
    }
}

/// The nearest whole number as a byte of two's complement.
fn whole(value: f32) -> u8 {
    value.round().clamp(-MOST, MOST) as i8 as u8
}
