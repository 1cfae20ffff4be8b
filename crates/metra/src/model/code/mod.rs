//! Codes: mapped items in fewer bytes than f32 takes.
//!
//! A code turns a mapped item into a fixed number of bytes and back into a vector that is near it. Items are
//! compared as they come back, queries as they are (asymmetric distance, Jégou, Douze & Schmid 2011), unless
//! both sides are bits. Rotations that make a code lose less are part of the map, not of the code.

mod bits;
mod int8;
mod items;
mod product;

pub use int8::Int8Scale;
pub use items::CodedItems;
pub use product::ProductCode;
pub(crate) use product::{MOST_CENTROIDS, nearest, range};

use super::Space;
use super::unit_length::normalise;
use crate::data::corpus::check_mapped;
use crate::linalg::{RowBuf, Rows};
use crate::{Error, Result};
use half::f16;

/// How mapped items are held in fewer bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum Code {
    /// Every dimension as a half-precision number.
    Float16,
    /// Every dimension as a whole number from −127 to 127, times a scale.
    Int8(Int8Scale),
    /// The sign of every dimension: 1 where it is above 0.
    Bits {
        /// What a bit stands for: plus or minus this.
        scale: f32,
        /// Whether queries become bits too, so that the Hamming distance ranks.
        queries: bool,
    },
    /// The number of the nearest centroid in each block of dimensions.
    Product(ProductCode),
}

impl Code {
    /// An error if vectors of `dim` numbers cannot be coded this way.
    pub(crate) fn check(&self, dim: usize) -> Result<()> {
        match self {
            Code::Float16 => Ok(()),
            Code::Int8(scale) => scale.check(dim),
            Code::Bits { scale, .. } if !(scale.is_finite() && *scale > 0.0) => Err(
                Error::parameter("the scale of bits", "a number above 0", scale),
            ),
            Code::Bits { .. } => Ok(()),
            Code::Product(product) => product.check(dim),
        }
    }

    /// Its name, as files and reports write it.
    pub fn name(&self) -> &'static str {
        match self {
            Code::Float16 => "f16",
            Code::Int8(Int8Scale::PerDimension(_)) => "int8-columns",
            Code::Int8(_) => "int8",
            Code::Bits { queries: true, .. } => "hamming",
            Code::Bits { .. } => "bits",
            Code::Product(_) => "pq",
        }
    }

    /// Bytes of an item of `dim` dimensions.
    pub fn item_bytes(&self, dim: usize) -> usize {
        match self {
            Code::Float16 => 2 * dim,
            Code::Int8(scale) => scale.item_bytes(dim),
            Code::Bits { .. } => dim.div_ceil(8),
            Code::Product(product) => product.blocks(),
        }
    }

    /// Whether queries are coded too.
    pub fn codes_queries(&self) -> bool {
        matches!(self, Code::Bits { queries: true, .. })
    }

    /// Append the codes of mapped rows, item after item; `first` is the number of the first row, for error
    /// messages. By cosine it is directions that are coded.
    pub fn encode(
        &self,
        first: u64,
        space: Space,
        rows: Rows<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.check(rows.dim())?;
        // A code has no place for what is not finite: it would become something else in silence.
        for (row, values) in (first..).zip(rows.iter()) {
            check_mapped(row, values)?;
        }
        if space != Space::Cosine {
            return self.encode_rows(first, rows, out);
        }
        let mut directions = RowBuf::empty(rows.dim());
        directions.extend(rows);
        normalise(first, &mut directions)?;
        self.encode_rows(first, directions.rows(), out)
    }

    fn encode_rows(&self, first: u64, rows: Rows<'_>, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Code::Float16 => {
                for (row, values) in (first..).zip(rows.iter()) {
                    for value in values {
                        let half = f16::from_f32(*value);
                        if !half.is_finite() {
                            let problem = format!("{value} is beyond the range of f16");
                            return Err(Error::Row { row, problem });
                        }
                        out.extend(half.to_le_bytes());
                    }
                }
            }
            Code::Int8(scale) => scale.encode(rows, out),
            Code::Bits { .. } => bits::encode(rows, out),
            Code::Product(product) => product.encode(rows, out),
        }
        Ok(())
    }

    /// The vectors of `dim` dimensions that codes stand for.
    pub fn decode(&self, dim: usize, codes: &[u8], out: &mut RowBuf) -> Result<()> {
        self.check(dim)?;
        let size = self.item_bytes(dim);
        if !codes.len().is_multiple_of(size) {
            let expected = format!("a multiple of {size} (bytes of an item)");
            return Err(Error::shape("bytes of codes", expected, codes.len()));
        }
        out.reset(codes.len() / size, dim);
        let rows = out.values_mut().chunks_exact_mut(dim);
        for (number, (row, code)) in rows.zip(codes.chunks_exact(size)).enumerate() {
            match self {
                Code::Float16 => {
                    for (value, bytes) in row.iter_mut().zip(code.as_chunks::<2>().0) {
                        *value = f16::from_le_bytes(*bytes).to_f32();
                    }
                }
                Code::Int8(scale) => scale.decode(code, row),
                Code::Bits { scale, .. } => bits::decode(code, *scale, row),
                Code::Product(product) => product.decode(number, code, row)?,
            }
        }
        match out.values().iter().position(|value| !value.is_finite()) {
            None => Ok(()),
            Some(at) => Err(Error::Cell {
                row: (at / dim) as u64,
                column: at % dim,
                problem: format!("the code stands for {}", out.values()[at]),
            }),
        }
    }

    /// Replace mapped rows by what their codes stand for.
    pub(super) fn round(&self, first: u64, space: Space, rows: &mut RowBuf) -> Result<()> {
        let mut codes = Vec::with_capacity(rows.len() * self.item_bytes(rows.dim()));
        self.encode(first, space, rows.rows(), &mut codes)?;
        self.decode(rows.dim(), &codes, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(values: &[f32], dim: usize) -> RowBuf {
        RowBuf::from_values(values.to_vec(), dim).unwrap()
    }

    fn encoded(code: &Code, space: Space, values: &[f32], dim: usize) -> Vec<u8> {
        let mut out = Vec::new();
        code.encode(0, space, rows(values, dim).rows(), &mut out)
            .unwrap();
        assert_eq!(out.len(), values.len() / dim * code.item_bytes(dim));
        out
    }

    #[test]
    fn bytes_by_hand() {
        let bits = Code::Bits {
            scale: 0.5,
            queries: false,
        };
        // Most significant bit first, as numpy's packbits and PostgreSQL's bit strings have them; 0 is not above 0.
        let values = [1.0, -1.0, 0.0, 2.0, -3.0, 1.0, 1.0, -1.0, 5.0];
        let found = encoded(&bits, Space::SquaredL2, &values, 9);
        assert_eq!(found, [0b1001_0110, 0b1000_0000]);
        let mut back = RowBuf::empty(1);
        bits.decode(9, &found, &mut back).unwrap();
        assert_eq!(
            back.values(),
            [0.5, -0.5, -0.5, 0.5, -0.5, 0.5, 0.5, -0.5, 0.5]
        );

        let int8 = Code::Int8(Int8Scale::PerVector);
        // Scale 2 / 127: 1 becomes 63.5, which rounds away from 0.
        let found = encoded(&int8, Space::SquaredL2, &[2.0, -1.0, 0.0], 3);
        assert_eq!(found[..3], [127, 192, 0]);
        assert_eq!(found[3..], (2.0_f32 / 127.0).to_le_bytes());
        int8.decode(3, &found, &mut back).unwrap();
        assert!((back.values()[1] + 64.0 * 2.0 / 127.0).abs() < 1e-6);

        let half = encoded(&Code::Float16, Space::SquaredL2, &[1.0, -2.0], 2);
        assert_eq!(half, [0x00, 0x3c, 0x00, 0xc0]);
    }

    #[test]
    fn directions_are_coded_by_cosine() {
        let direction = Code::Int8(Int8Scale::Direction);
        let short = encoded(&direction, Space::Cosine, &[0.3, 0.4], 2);
        assert_eq!(short, encoded(&direction, Space::Cosine, &[30.0, 40.0], 2));
        assert_eq!(short, [95, 127]);
        let mut out = Vec::new();
        let zero = rows(&[1.0, 1.0, 0.0, 0.0], 2);
        let error = direction.encode(5, Space::Cosine, zero.rows(), &mut out);
        assert!(error.unwrap_err().to_string().contains("row 6"));
    }

    #[test]
    fn what_cannot_be_coded_or_read_is_refused() {
        let mut out = Vec::new();
        let large = rows(&[0.0, 1e6], 2);
        let error = Code::Float16.encode(3, Space::SquaredL2, large.rows(), &mut out);
        assert!(error.unwrap_err().to_string().contains("f16"));
        let mut back = RowBuf::empty(1);
        let int8 = Code::Int8(Int8Scale::PerVector);
        assert!(int8.decode(3, &[0; 8], &mut back).is_err());
        let mut nan = vec![1, 2, 3];
        nan.extend(f32::NAN.to_le_bytes());
        assert!(int8.decode(3, &nan, &mut back).is_err());
        assert!(
            Code::Float16
                .decode(1, &[0x00, 0x7c], &mut back)
                .unwrap_err()
                .to_string()
                .contains("inf")
        );
        for code in [int8, Code::Float16] {
            for value in [f32::NAN, f32::INFINITY] {
                let broken = rows(&[1.0, value], 2);
                assert!(
                    code.encode(0, Space::SquaredL2, broken.rows(), &mut out)
                        .is_err()
                );
            }
        }
        for scale in [0.0, -1.0, f32::NAN] {
            let code = Code::Bits {
                scale,
                queries: true,
            };
            assert!(code.check(4).is_err());
        }
        let columns = Code::Int8(Int8Scale::PerDimension(vec![1.0, 0.0]));
        assert!(columns.check(2).is_err() && columns.check(3).is_err());
    }
}
