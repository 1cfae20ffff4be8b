//! Codes of mapped items: which there are, how they are fitted to a map, and how a map is trained for them.

mod k_means;
mod product;
mod rotation;
pub(crate) mod straight_through;

use crate::data::{Corpus, Groups, Subset};
use crate::linalg::{RowBuf, Rows};
use crate::model::{Chain, Code, Embedding, Int8Scale, Side, Space, for_each_embedded, normalise};
use crate::random::Stream;
use crate::training::parameters::did_you_mean;
use crate::{Error, Result};
use rotation::Itq;
use std::fmt;
use std::str::FromStr;
use straight_through::StraightThrough;

/// Rows that a code is fitted to.
const SAMPLE_ROWS: usize = 1 << 16;
/// Rows that a rotation is fitted to.
const ROTATION_ROWS: usize = 1 << 13;
/// Dimensions of a rotation at most: it takes a decomposition of a square matrix for every pass.
pub(crate) const MOST_ROTATED: usize = 1024;

/// How items are to be held, before anything is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CodeSpec {
    /// As f32.
    #[default]
    None,
    /// As half-precision numbers.
    Float16,
    /// As signed bytes with a scale per vector.
    Int8,
    /// As signed bytes with a scale per dimension.
    Int8Columns,
    /// Signs of the dimensions as they are.
    Sign,
    /// Signs after the rotation of ITQ.
    Itq,
    /// Signs: of a map trained for them where the method can ([`super::Method::TRAINS_FOR_CODES`]), otherwise
    /// after the rotation of ITQ.
    Bits,
    /// As [`CodeSpec::Bits`], with queries of bits too.
    Hamming,
    /// Product quantisation to so many bytes.
    Product {
        /// Blocks, of a byte each.
        bytes: usize,
    },
    /// Product quantisation after an optimised rotation.
    RotatedProduct {
        /// Blocks, of a byte each.
        bytes: usize,
    },
}

/// The codes as they are written, with what they are.
pub const CODES: &[(&str, &str)] = &[
    ("none", "4 bytes per dimension: f32"),
    ("f16", "2 bytes per dimension"),
    (
        "int8",
        "1 byte per dimension and 4 for a scale (no scale by cosine)",
    ),
    (
        "int8-columns",
        "1 byte per dimension, with a scale per dimension",
    ),
    (
        "bits",
        "1 bit per dimension; the map of warca, kernel-warca, frml, supcon, multi-similarity and proxy-anchor is \
         trained for it, others are rotated (ITQ)",
    ),
    ("hamming", "bits for queries too"),
    (
        "sign",
        "1 bit per dimension, the sign of what was learned without bits in mind",
    ),
    ("itq", "the same after the rotation of ITQ"),
    ("pq:N", "N bytes by product quantisation"),
    ("opq:N", "the same after an optimised rotation"),
];

impl fmt::Display for CodeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CodeSpec::None => "none",
            CodeSpec::Float16 => "f16",
            CodeSpec::Int8 => "int8",
            CodeSpec::Int8Columns => "int8-columns",
            CodeSpec::Sign => "sign",
            CodeSpec::Itq => "itq",
            CodeSpec::Bits => "bits",
            CodeSpec::Hamming => "hamming",
            CodeSpec::Product { bytes } => return write!(f, "pq:{bytes}"),
            CodeSpec::RotatedProduct { bytes } => return write!(f, "opq:{bytes}"),
        })
    }
}

impl FromStr for CodeSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bytes = |prefix: &str| -> Option<usize> {
            let count = text.strip_prefix(prefix)?.parse().ok()?;
            (count > 0).then_some(count)
        };
        Ok(match text {
            "none" => CodeSpec::None,
            "f16" => CodeSpec::Float16,
            "int8" => CodeSpec::Int8,
            "int8-columns" => CodeSpec::Int8Columns,
            "sign" => CodeSpec::Sign,
            "itq" => CodeSpec::Itq,
            "bits" => CodeSpec::Bits,
            "hamming" => CodeSpec::Hamming,
            _ => match (bytes("pq:"), bytes("opq:")) {
                (Some(bytes), _) => CodeSpec::Product { bytes },
                (_, Some(bytes)) => CodeSpec::RotatedProduct { bytes },
                _ => {
                    let names: Vec<&str> = CODES.iter().map(|(name, _)| *name).collect();
                    let expected = format!("one of {}", names.join(", "));
                    let found = format!("{text:?}{}", did_you_mean(text, &names));
                    return Err(Error::parameter("code", expected, found));
                }
            },
        })
    }
}

impl CodeSpec {
    /// How a method that learns in steps is trained for it.
    pub(crate) fn straight_through(self) -> Option<StraightThrough> {
        match self {
            CodeSpec::Bits => Some(StraightThrough::Bits { queries: false }),
            CodeSpec::Hamming => Some(StraightThrough::Bits { queries: true }),
            CodeSpec::Int8 => Some(StraightThrough::Int8),
            _ => None,
        }
    }

    /// Whether items become signs, vectors of one length: Euclid and cosine then rank alike.
    pub(crate) fn is_of_signs(self) -> bool {
        use CodeSpec::{Bits, Hamming, Itq, Sign};
        matches!(self, Sign | Itq | Bits | Hamming)
    }

    /// Bytes of an item of `dim` dimensions compared in this space.
    pub fn item_bytes(self, dim: usize, space: Space) -> usize {
        match self {
            CodeSpec::None => 4 * dim,
            CodeSpec::Float16 => 2 * dim,
            CodeSpec::Int8 if space != Space::Cosine => dim + 4,
            CodeSpec::Int8 | CodeSpec::Int8Columns => dim,
            CodeSpec::Sign | CodeSpec::Itq | CodeSpec::Bits | CodeSpec::Hamming => dim.div_ceil(8),
            CodeSpec::Product { bytes } | CodeSpec::RotatedProduct { bytes } => bytes,
        }
    }

    /// A chain whose items are held this way: its map rotated where the code asks for it, and the code fitted
    /// to the items. `is_trained` says whether the map was trained for the code.
    pub(crate) fn fit(
        self,
        chain: Chain,
        is_trained: bool,
        (items, groups): (&dyn Corpus, Option<&Groups>),
        seed: u64,
    ) -> Result<Chain> {
        let sample = |chain: &Chain, rows| mapped_sample((chain, rows), (items, groups), seed);
        let (space, dim) = (chain.space(), chain.output_dim());
        match self {
            CodeSpec::None => Ok(chain),
            CodeSpec::Float16 => chain.with_code(Some(Code::Float16)),
            CodeSpec::Int8 => chain.with_code(Some(Code::Int8(match space {
                Space::Cosine => Int8Scale::Direction,
                _ => Int8Scale::PerVector,
            }))),
            CodeSpec::Int8Columns => {
                let extents = extents(sample(&chain, SAMPLE_ROWS)?.rows());
                chain.with_code(Some(Code::Int8(Int8Scale::reaching(&extents))))
            }
            CodeSpec::Sign | CodeSpec::Itq | CodeSpec::Bits | CodeSpec::Hamming => {
                let is_rotated = match self {
                    CodeSpec::Sign => false,
                    CodeSpec::Itq => true,
                    _ => !is_trained,
                };
                let chain = match is_rotated {
                    false => chain,
                    true => {
                        check_rotation(self, dim)?;
                        let rows = raw_sample(&chain, ROTATION_ROWS, (items, groups), seed)?;
                        let itq = Itq {
                            is_centred: space != Space::InnerProduct,
                            by_direction: space == Space::Cosine,
                            seed,
                        };
                        chain.rotated(&itq.fit(rows, &|| items.check_stop())?)?
                    }
                };
                let scale = mean_size(sample(&chain, ROTATION_ROWS)?.rows());
                chain.with_code(Some(Code::Bits {
                    scale,
                    queries: self == CodeSpec::Hamming,
                }))
            }
            CodeSpec::Product { bytes } => {
                check_blocks(bytes, dim)?;
                let code = product::fit(sample(&chain, SAMPLE_ROWS)?.rows(), bytes, seed)?;
                chain.with_code(Some(Code::Product(code)))
            }
            CodeSpec::RotatedProduct { bytes } => {
                check_blocks(bytes, dim)?;
                check_rotation(self, dim)?;
                let rows = sample(&chain, ROTATION_ROWS)?;
                let chain =
                    chain.rotated(&product::rotation(rows.rows(), bytes, seed, &|| {
                        items.check_stop()
                    })?)?;
                let code = product::fit(sample(&chain, SAMPLE_ROWS)?.rows(), bytes, seed)?;
                chain.with_code(Some(Code::Product(code)))
            }
        }
    }
}

fn check_rotation(spec: CodeSpec, dim: usize) -> Result<()> {
    if dim <= MOST_ROTATED {
        return Ok(());
    }
    let expected = format!(
        "one without a rotation for {dim} dimensions (rotations are fitted up to {MOST_ROTATED}; a lower rank or \
         pca before it helps)"
    );
    Err(Error::parameter("code", expected, spec))
}

fn check_blocks(bytes: usize, dim: usize) -> Result<()> {
    match bytes <= dim {
        true => Ok(()),
        false => Err(Error::parameter(
            "the bytes of pq",
            format!("at most {dim}, the dimension of mapped vectors"),
            bytes,
        )),
    }
}

/// Some items as they are coded: mapped, and by cosine of length 1.
fn mapped_sample(
    (chain, most): (&Chain, usize),
    items: (&dyn Corpus, Option<&Groups>),
    seed: u64,
) -> Result<RowBuf> {
    let mut rows = raw_sample(chain, most, items, seed)?;
    if chain.space() == Space::Cosine {
        normalise(0, &mut rows)?;
    }
    Ok(rows)
}

/// Some mapped items.
fn raw_sample(
    chain: &Chain,
    most: usize,
    (items, groups): (&dyn Corpus, Option<&Groups>),
    seed: u64,
) -> Result<RowBuf> {
    let chosen = Stream::new(seed, "code sample", 0).choose(items.len(), most);
    let groups = groups.map(|groups| groups.select(&chosen));
    let part = Subset::new(items, chosen)?;
    let mut rows = RowBuf::empty(chain.output_dim());
    for_each_embedded(chain, Side::Item, &part, groups.as_ref(), &mut |block| {
        rows.extend(block.rows());
        Ok(())
    })?;
    Ok(rows)
}

/// How far each dimension reaches from 0.
fn extents(rows: Rows<'_>) -> Vec<f32> {
    let mut extents = vec![0.0_f32; rows.dim()];
    for row in rows.iter() {
        for (extent, value) in extents.iter_mut().zip(row) {
            *extent = extent.max(value.abs());
        }
    }
    extents
}

/// Mean size of all values, which is what a bit stands for with the least squared error; 1 where all are 0.
fn mean_size(rows: Rows<'_>) -> f32 {
    let sum: f64 = rows.values().iter().map(|v| f64::from(v.abs())).sum();
    let mean = (sum / rows.values().len().max(1) as f64) as f32;
    if mean > 0.0 { mean } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::data::synthetic::Nuisance;
    use crate::dataset::Dataset;
    use crate::evaluate::Measure;
    use crate::experiment::Protocol;
    use crate::methods::{Lda, SupCon, Warca};
    use crate::pipeline::Pipeline;
    use crate::supervision::Labels;
    use crate::training::{InBatchTraining, Schedule};

    /// mAP of rows that were not trained on, whose model holds items this way.
    fn map_of(pipeline: impl Fn() -> Pipeline, code: &str) -> f64 {
        let set = Nuisance {
            classes: 12,
            signal: 8,
            noise: 8,
            seed: 4,
        };
        let rows = set.rows(900);
        let labels = Labels::from_numbers(&rows.classes).unwrap();
        let data = Dataset::builder(&rows.corpus)
            .labels(labels)
            .build()
            .unwrap();
        let train = data.select(&(0..600).collect::<Vec<_>>()).unwrap();
        let test = data.select(&(600..900).collect::<Vec<_>>()).unwrap();
        let model = pipeline().code(code.parse().unwrap()).fit(&train).unwrap();
        let scores = model.evaluate(&test, Protocol::LeaveOneOut).unwrap();
        scores.mean(Measure::AveragePrecision)
    }

    #[test]
    fn maps_trained_for_bits_do_better_than_their_signs() {
        let supcon = || {
            Pipeline::new(SupCon {
                training: InBatchTraining {
                    rank: 8,
                    rate: 0.02,
                    batch: 128,
                    drawn: 32,
                    schedule: Schedule::of(150),
                    ..InBatchTraining::default()
                },
                ..SupCon::default()
            })
        };
        let (whole, sign, bits) = (
            map_of(supcon, "none"),
            map_of(supcon, "sign"),
            map_of(supcon, "bits"),
        );
        assert!(bits > sign + 0.05, "{bits} {sign} {whole}");
        assert!((map_of(supcon, "int8") - whole).abs() < 0.01);
    }

    #[test]
    fn any_method_has_codes() {
        let lda = || {
            Pipeline::new(Lda {
                rank: 8,
                ..Lda::default()
            })
        };
        let whole = map_of(lda, "none");
        for (code, loss) in [
            ("f16", 0.001),
            ("int8", 0.005),
            ("int8-columns", 0.01),
            ("opq:4", 0.1),
            ("pq:4", 0.15),
        ] {
            let found = map_of(lda, code);
            assert!(found > whole - loss, "{code}: {found} {whole}");
        }
        let rotated = map_of(lda, "bits");
        assert_eq!(rotated, map_of(lda, "itq"));
        assert!(rotated > map_of(lda, "sign") - 0.02);
        let warca = || {
            Pipeline::new(Warca {
                rank: 16,
                batch: 128,
                pool: 128,
                schedule: Schedule::of(500),
                ..Warca::default()
            })
        };
        let (sign, bits) = (map_of(warca, "sign"), map_of(warca, "bits"));
        assert!(bits > sign + 0.02, "{bits} {sign}");
    }

    /// Codes must not depend on how long vectors are, nor on where they lie.
    #[test]
    fn rotations_do_not_depend_on_the_scale() {
        let set = Nuisance {
            classes: 12,
            signal: 8,
            noise: 8,
            seed: 4,
        }
        .rows(600);
        let recall = |factor: f32, shift: f32, space: Space, code: &str| {
            let mut values = set.corpus.rows().values().to_vec();
            values.iter_mut().for_each(|v| *v = (*v + shift) * factor);
            let labels = Labels::from_numbers(&set.classes).unwrap();
            let data = Dataset::builder((&values[..], 16))
                .labels(labels)
                .build()
                .unwrap();
            let pipeline = match space {
                Space::Cosine => Pipeline::new(crate::methods::Cosine {}),
                _ => Pipeline::new(crate::methods::Euclid {}),
            };
            let model = pipeline.code(code.parse().unwrap()).fit(&data).unwrap();
            let scores = model.evaluate(&data, Protocol::LeaveOneOut).unwrap();
            scores.mean(Measure::AveragePrecision)
        };
        for (space, code) in [
            (Space::Cosine, "itq"),
            (Space::SquaredL2, "itq"),
            (Space::Cosine, "opq:4"),
            (Space::SquaredL2, "opq:4"),
        ] {
            let plain = recall(1.0, 0.0, space, code);
            for factor in [1e-3, 1e3] {
                let found = recall(factor, 0.0, space, code);
                assert!(
                    (found - plain).abs() < 0.03,
                    "{space} {code}: {found} {plain}"
                );
            }
        }
        // Signs of vectors that all lie on one side would be the same for all of them.
        for space in [Space::Cosine, Space::SquaredL2] {
            let (plain, far) = (
                recall(1.0, 0.0, space, "itq"),
                recall(1.0, 20.0, space, "itq"),
            );
            assert!(far > plain - 0.05, "{space}: {far} {plain}");
        }
    }

    #[test]
    fn names_come_back() {
        for (name, _) in CODES {
            let name = name.replace('N', "16");
            let spec: CodeSpec = name.parse().unwrap();
            assert_eq!(spec.to_string(), name);
        }
        for wrong in ["", "pq", "pq:0", "opq:-1", "bit", "int4", "pq:16x"] {
            let error = wrong.parse::<CodeSpec>().unwrap_err().to_string();
            assert!(error.contains("opq:N"), "{error}");
        }
    }
}
