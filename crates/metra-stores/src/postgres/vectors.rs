//! Vectors as pgvector keeps them: `vector` (f32), `halfvec` (f16) and `bit` (signs), their limits, and their
//! binary form in messages: one array per batch.

use super::failure::server_error;
use crate::{Error, Result};
use metra::linalg::Rows;
use metra::model::{Distance, Element, Store};
use pgvector::{Bit, HalfVector, Vector};
use postgres::Row;
use postgres::types::ToSql;
use std::fmt;
use std::str::FromStr;

/// The largest number that an f16 holds.
const LARGEST_HALF: f32 = 65_504.0;

/// A type of pgvector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorType {
    /// 4 bytes per element.
    Vector,
    /// 2 bytes per element: three digits, so that nearly equal scores change places.
    Halfvec,
    /// 1 bit per element: its sign, for models with a code of bits. A type of PostgreSQL itself.
    Bit,
}

impl VectorType {
    /// Its element type and limits.
    pub fn element(self) -> Element {
        // The table of stores names both; a type that it did not name would have no limits.
        let known = Store::ALL
            .into_iter()
            .filter(|store| store.name == "pgvector");
        let mut elements = known.flat_map(|store| store.elements.iter().copied());
        let name = self.to_string();
        elements.find(|e| e.name == name).unwrap_or(Element::SINGLE)
    }

    /// Bytes of a stored vector; pgvector has a head of 8.
    pub fn bytes(self, dim: usize) -> usize {
        8 + self.element().bytes(dim)
    }

    /// The operators that an index is made for.
    pub(super) fn operators(self, distance: Distance) -> String {
        match self {
            VectorType::Bit => "bit_hamming_ops".into(),
            _ => format!("{self}_{distance}_ops"),
        }
    }
}

impl fmt::Display for VectorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            VectorType::Vector => "vector",
            VectorType::Halfvec => "halfvec",
            VectorType::Bit => "bit",
        })
    }
}

impl FromStr for VectorType {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "vector" => Ok(VectorType::Vector),
            "halfvec" => Ok(VectorType::Halfvec),
            "bit" => Ok(VectorType::Bit),
            _ => Err(metra::Error::parameter("type", "vector, halfvec or bit", name).into()),
        }
    }
}

/// What the operator gives, as a plan has it: squared distance, minus the product, minus the cosine.
pub(super) fn score(distance: Distance, given: f64) -> f32 {
    match distance {
        Distance::SquaredL2 => (given * given) as f32,
        Distance::InnerProduct => given as f32,
        Distance::Cosine => (given - 1.0) as f32,
    }
}

/// Vectors as parameters of a statement.
pub(super) enum VectorParameters {
    Vector(Vec<Vector>),
    Halfvec(Vec<HalfVector>),
    Bit(Vec<Bit>),
}

impl VectorParameters {
    /// The rows of a batch. An error names the number of the row that the type cannot hold.
    pub(super) fn new(kind: VectorType, rows: Rows<'_>) -> metra::Result<Self> {
        Ok(match kind {
            VectorType::Vector => VectorParameters::Vector(
                rows.iter().map(|row| Vector::from(row.to_vec())).collect(),
            ),
            VectorType::Bit => {
                let signs = |row: &[f32]| row.iter().map(|v| *v > 0.0).collect::<Vec<_>>();
                VectorParameters::Bit(rows.iter().map(|row| Bit::new(&signs(row))).collect())
            }
            VectorType::Halfvec => {
                for (number, row) in rows.iter().enumerate() {
                    if let Some(value) = row.iter().find(|v| v.abs() > LARGEST_HALF) {
                        return Err(metra::Error::Row {
                            row: number as u64,
                            problem: format!(
                                "expected numbers within ±{LARGEST_HALF}, which halfvec holds, but \
                                 found {value}"
                            ),
                        });
                    }
                }
                VectorParameters::Halfvec(rows.iter().map(HalfVector::from_f32_slice).collect())
            }
        })
    }

    /// All of them as one parameter, an array.
    pub(super) fn array(&self) -> &(dyn ToSql + Sync) {
        match self {
            VectorParameters::Vector(all) => all,
            VectorParameters::Halfvec(all) => all,
            VectorParameters::Bit(all) => all,
        }
    }

    /// Each of them as a parameter.
    pub(super) fn each(&self) -> Vec<&(dyn ToSql + Sync)> {
        match self {
            VectorParameters::Vector(all) => all.iter().map(|one| one as _).collect(),
            VectorParameters::Halfvec(all) => all.iter().map(|one| one as _).collect(),
            VectorParameters::Bit(all) => all.iter().map(|one| one as _).collect(),
        }
    }
}

/// Append the vector in a column of a row to `out`; its dimension.
pub(super) fn decode_vector(
    row: &Row,
    at: usize,
    kind: VectorType,
    place: &str,
    out: &mut Vec<f32>,
) -> Result<usize> {
    let before = out.len();
    match kind {
        VectorType::Vector => {
            let found: Vector = row.try_get(at).map_err(|e| server_error(place, &e))?;
            out.extend_from_slice(found.as_slice());
        }
        VectorType::Halfvec => {
            let found: HalfVector = row.try_get(at).map_err(|e| server_error(place, &e))?;
            out.extend(found.as_slice().iter().map(|v| v.to_f32()));
        }
        VectorType::Bit => {
            return Err(Error::found(place, "expected numbers, but found bits"));
        }
    }
    Ok(out.len() - before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_refuse_what_they_cannot_hold() {
        let rows = Rows::new(&[1.0, 2.0, 65_504.0, -70_000.0], 2).unwrap();
        assert!(VectorParameters::new(VectorType::Vector, rows).is_ok());
        let message = VectorParameters::new(VectorType::Halfvec, rows)
            .err()
            .unwrap()
            .to_string();
        assert!(
            message.starts_with("row 1: ") && message.contains("-70000"),
            "{message}"
        );
        assert!(VectorParameters::new(VectorType::Halfvec, rows.slice(0, 1)).is_ok());
    }

    #[test]
    fn names_limits_and_scores() {
        for kind in [VectorType::Vector, VectorType::Halfvec, VectorType::Bit] {
            assert_eq!(kind.to_string().parse::<VectorType>().unwrap(), kind);
        }
        assert!("sparsevec".parse::<VectorType>().is_err());
        let operators = VectorType::Bit.operators(Distance::SquaredL2);
        assert_eq!(operators, "bit_hamming_ops");
        assert_eq!(VectorType::Bit.bytes(61), 16);
        assert_eq!(
            VectorType::Halfvec.operators(Distance::SquaredL2),
            "halfvec_l2_ops"
        );
        assert_eq!(VectorType::Vector.bytes(384), 1544);
        assert_eq!(VectorType::Halfvec.bytes(384), 776);
        assert_eq!(VectorType::Vector.element().most(true), Some(2000));
        assert_eq!(VectorType::Halfvec.element().most(true), Some(4000));
        // The operators give the root of the squared distance, minus the product, and 1 - cosine.
        assert_eq!(score(Distance::SquaredL2, 3.0), 9.0);
        assert_eq!(score(Distance::InnerProduct, -2.5), -2.5);
        assert_eq!(score(Distance::Cosine, 0.25), -0.75);
    }
}
