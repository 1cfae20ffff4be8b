//! How embedded vectors are compared: squared L2 distance, inner product, cosine, and the block
//! distance, which only exact search has.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How embedded vectors are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Space {
    /// Squared Euclidean distance.
    SquaredL2,
    /// Negative inner product.
    InnerProduct,
    /// Negative cosine; a zero vector is an error.
    Cosine,
    /// Sum over blocks of so many numbers of the Euclidean distance within each: Σ_b |x_b − y_b|.
    /// No vector store has it, and no finite linear map turns it into one that they have.
    Blocks {
        /// Numbers in a block; the vectors' dimension is a multiple of it.
        size: u32,
    },
}

impl Space {
    /// The spaces that vector stores have.
    pub const ALL: [Space; 3] = [Space::SquaredL2, Space::Cosine, Space::InnerProduct];

    /// An error if vectors of `dim` numbers cannot be compared in this space.
    pub fn check(self, dim: usize) -> Result<()> {
        match self {
            Space::Blocks { size } if size == 0 || !dim.is_multiple_of(size as usize) => {
                Err(Error::parameter(
                    "the size of blocks",
                    format!("a divisor of {dim} (the dimension of the vectors compared)"),
                    size,
                ))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Space::SquaredL2 => f.write_str("euclid"),
            Space::InnerProduct => f.write_str("dot"),
            Space::Cosine => f.write_str("cosine"),
            Space::Blocks { size } => write!(f, "blocks:{size}"),
        }
    }
}

impl FromStr for Space {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "euclid" => Ok(Space::SquaredL2),
            "dot" => Ok(Space::InnerProduct),
            "cosine" => Ok(Space::Cosine),
            other => {
                let size = other.strip_prefix("blocks:").and_then(|s| s.parse().ok());
                match size.filter(|size| *size > 0) {
                    Some(size) => Ok(Space::Blocks { size }),
                    None => {
                        let expected = "euclid, cosine, dot or blocks:SIZE";
                        Err(Error::parameter("score", expected, other))
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        let blocks = Space::Blocks { size: 12 };
        for space in Space::ALL.into_iter().chain([blocks]) {
            assert_eq!(space.to_string().parse::<Space>().unwrap(), space);
        }
        for name in ["blocks", "blocks:0", "blocks:-1", "manhattan"] {
            assert!(name.parse::<Space>().is_err(), "{name}");
        }
        assert!(blocks.check(36).is_ok() && blocks.check(30).is_err());
    }
}
