//! The distances, types and limits of vector stores, which a plan has to fit; each from the store's
//! own documentation.

use super::{Distance, PlanConstraints};
use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// How a store keeps one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element {
    /// The column's or field's type, as the store has it.
    pub name: &'static str,
    /// Bits of a number; 1 where the sign alone is kept.
    pub bits: usize,
    /// The greatest dimension of a stored vector.
    pub most_stored: Option<usize>,
    /// The greatest dimension of a vector of an index.
    pub most_indexed: Option<usize>,
}

impl Element {
    /// Numbers of four bytes without limits.
    pub const SINGLE: Element = Element {
        name: "f32",
        bits: 32,
        most_stored: None,
        most_indexed: None,
    };

    /// Bytes of a vector.
    pub fn bytes(&self, dim: usize) -> usize {
        (dim * self.bits).div_ceil(8)
    }

    /// What a plan has to keep to for vectors of these numbers, indexed or only stored.
    pub fn constrain(&self, indexed: bool, constraints: PlanConstraints) -> PlanConstraints {
        PlanConstraints {
            most_dimensions: self.most(indexed),
            signs_only: self.bits == 1,
            ..constraints
        }
    }

    /// The greatest dimension of a vector that is to be indexed, or only stored.
    pub fn most(&self, indexed: bool) -> Option<usize> {
        match indexed {
            true => self.most_indexed.or(self.most_stored),
            false => self.most_stored,
        }
    }
}

/// A vector store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Store {
    /// As it is written on the command line.
    pub name: &'static str,
    /// What it compares by.
    pub distances: &'static [Distance],
    /// The forms of numbers that it keeps, the usual one first.
    pub elements: &'static [Element],
    /// Something about it that plans depend on, for people.
    pub note: Option<&'static str>,
}

const THREE: &[Distance] = &[
    Distance::SquaredL2,
    Distance::InnerProduct,
    Distance::Cosine,
];

impl Store {
    /// All stores that are known, `any` first: three distances and no limits.
    pub const ALL: [Store; 7] = [
        Store {
            name: "any",
            distances: THREE,
            elements: &[Element::SINGLE],
            note: None,
        },
        Store {
            name: "pgvector",
            distances: THREE,
            // README of pgvector 0.8: columns to 16,000 dimensions, HNSW to 2,000 of `vector` and 4,000 of
            // `halfvec`.
            elements: &[
                Element {
                    name: "vector",
                    bits: 32,
                    most_stored: Some(16_000),
                    most_indexed: Some(2_000),
                },
                Element {
                    name: "halfvec",
                    bits: 16,
                    most_stored: Some(16_000),
                    most_indexed: Some(4_000),
                },
                Element {
                    name: "bit",
                    bits: 1,
                    // An index takes 64,000 bits, but they are compared with a query of type `vector`.
                    most_stored: Some(16_000),
                    most_indexed: Some(16_000),
                },
            ],
            note: Some(
                "operators <-> (l2), <#> (minus ip), <=> (1 - cosine) and, for bits, <~> (hamming)",
            ),
        },
        Store {
            name: "faiss",
            distances: &[Distance::SquaredL2, Distance::InnerProduct],
            elements: &[Element::SINGLE],
            note: Some("METRIC_L2 and METRIC_INNER_PRODUCT"),
        },
        Store {
            name: "lancedb",
            distances: THREE,
            elements: &[Element::SINGLE],
            note: Some("distance types l2, dot and cosine"),
        },
        Store {
            name: "qdrant",
            distances: THREE,
            elements: &[Element {
                name: "float32",
                bits: 32,
                most_stored: Some(65_536),
                most_indexed: Some(65_536),
            }],
            note: Some(
                "Distance.EUCLID, DOT and COSINE; COSINE normalises vectors as it stores them",
            ),
        },
        Store {
            name: "milvus",
            distances: THREE,
            elements: &[Element {
                name: "FLOAT_VECTOR",
                bits: 32,
                most_stored: Some(32_768),
                most_indexed: Some(32_768),
            }],
            note: Some("metric types L2, IP and COSINE"),
        },
        Store {
            name: "chroma",
            distances: THREE,
            elements: &[Element::SINGLE],
            note: Some("spaces l2, ip and cosine"),
        },
    ];

    /// The form of numbers of this name, or the usual one.
    pub fn element(&self, name: Option<&str>) -> Result<&'static Element> {
        let (first, wanted) = (self.elements.first().unwrap_or(&Element::SINGLE), name);
        let Some(name) = wanted else {
            return Ok(first);
        };
        let found = self.elements.iter().find(|element| element.name == name);
        found.ok_or_else(|| {
            let names: Vec<_> = self.elements.iter().map(|element| element.name).collect();
            Error::parameter(format!("the type of {self}"), names.join(" or "), name)
        })
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl FromStr for Store {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Store::ALL.into_iter().find(|store| store.name == name);
        found.ok_or_else(|| {
            let names = Store::ALL.map(|store| store.name).join(", ");
            Error::parameter("store", format!("one of {names}"), name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_and_limits_are_those_of_the_use() {
        for store in Store::ALL {
            assert_eq!(store.to_string().parse::<Store>().unwrap(), store);
            assert!(!store.distances.is_empty() && !store.elements.is_empty());
        }
        let pgvector: Store = "pgvector".parse().unwrap();
        let half = pgvector.element(Some("halfvec")).unwrap();
        assert_eq!(
            (half.most(true), half.most(false)),
            (Some(4_000), Some(16_000))
        );
        assert_eq!(pgvector.element(None).unwrap().name, "vector");
        assert_eq!(pgvector.element(Some("bit")).unwrap().bytes(20), 3);
        let error = pgvector.element(Some("int8")).unwrap_err().to_string();
        assert_eq!(
            error,
            "the type of pgvector must be vector or halfvec or bit, but is int8"
        );
        assert!(
            "oracle"
                .parse::<Store>()
                .unwrap_err()
                .to_string()
                .contains("qdrant")
        );
    }
}
