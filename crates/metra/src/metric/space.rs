//! The three ways in which vector stores compare vectors.

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
}

impl Space {
    /// All spaces.
    pub const ALL: [Space; 3] = [Space::SquaredL2, Space::Cosine, Space::InnerProduct];
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Space::SquaredL2 => "euclid",
            Space::InnerProduct => "dot",
            Space::Cosine => "cosine",
        })
    }
}

impl FromStr for Space {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "euclid" => Ok(Space::SquaredL2),
            "dot" => Ok(Space::InnerProduct),
            "cosine" => Ok(Space::Cosine),
            other => Err(Error::parameter("score", "euclid, cosine or dot", other)),
        }
    }
}
