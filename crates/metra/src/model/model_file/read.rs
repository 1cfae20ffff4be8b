//! From a header and tensors to a model: what they mean is checked before it exists.

use super::header::{CodeHeader, Header, MapHeader, ScaleHeader, StepHeader};
use crate::data::{ElementMap, Narrowing, RowDigests};
use crate::linalg::{Kernel, RowBuf};
use crate::model::{
    Chain, Code, Indefinite, Int8Scale, KernelMap, LowRank, Map, Model, Preprocessing, ProductCode,
    Signs, Step, TrainingRows,
};
use crate::{Error, Result};
use safetensors::tensor::{Dtype, TensorView};
use std::collections::BTreeMap;

const MAX_STEPS: usize = 64;

pub(super) fn broken(error: impl std::fmt::Display) -> Error {
    Error::Model(error.to_string())
}

/// The tensors of a file, each to be taken once; what is left over is an error.
pub(super) struct Tensors<'a>(pub(super) BTreeMap<String, TensorView<'a>>);

impl Tensors<'_> {
    fn take(&mut self, name: &str, dtype: Dtype, sizes: usize) -> Result<(Vec<usize>, &[u8])> {
        let view = self
            .0
            .remove(name)
            .ok_or_else(|| Error::Model(format!("tensor {name:?} is missing")))?;
        if view.dtype() != dtype || view.shape().len() != sizes {
            return Err(Error::Model(format!(
                "tensor {name:?}: expected {dtype:?} with {sizes} sizes, but found {:?} {:?}",
                view.dtype(),
                view.shape()
            )));
        }
        Ok((view.shape().to_vec(), view.data()))
    }

    fn vector(&mut self, name: &str) -> Result<Vec<f32>> {
        let (_, bytes) = self.take(name, Dtype::F32, 1)?;
        finite(name, narrow_values(bytes))
    }

    fn wide_vector(&mut self, name: &str) -> Result<Vec<f64>> {
        let (_, bytes) = self.take(name, Dtype::F64, 1)?;
        let chunks = bytes.as_chunks::<8>().0;
        Ok(chunks.iter().map(|c| f64::from_le_bytes(*c)).collect())
    }

    fn digests(&mut self, name: &str, rows: u64) -> Result<RowDigests> {
        let (_, bytes) = self.take(name, Dtype::U64, 1)?;
        let chunks = bytes.as_chunks::<8>().0;
        let digests = chunks.iter().map(|c| u64::from_le_bytes(*c)).collect();
        RowDigests::new(rows, digests)
    }

    fn rows(&mut self, name: &str) -> Result<RowBuf> {
        let (shape, bytes) = self.take(name, Dtype::F32, 2)?;
        let values = finite(name, narrow_values(bytes))?;
        RowBuf::from_values(values, shape[1]).map_err(|e| broken(format!("tensor {name:?}: {e}")))
    }

    fn map(&mut self, prefix: &str, offset: bool) -> Result<LowRank> {
        let weights = self.rows(&format!("{prefix}weights"))?;
        let offset = offset
            .then(|| self.vector(&format!("{prefix}offset")))
            .transpose()?;
        LowRank::new(weights, offset).map_err(broken)
    }

    fn code(&mut self, header: CodeHeader) -> Result<Code> {
        Ok(match header {
            CodeHeader::F16 => Code::Float16,
            CodeHeader::Int8 { scale } => Code::Int8(match scale {
                ScaleHeader::Vector => Int8Scale::PerVector,
                ScaleHeader::Direction => Int8Scale::Direction,
                ScaleHeader::Dimension => Int8Scale::PerDimension(self.vector("code.scales")?),
            }),
            CodeHeader::Bits { scale, queries } => Code::Bits { scale, queries },
            CodeHeader::Pq { blocks } => {
                let centroids = self.rows("code.centroids")?;
                Code::Product(ProductCode::new(blocks, centroids).map_err(broken)?)
            }
        })
    }

    fn kernel(&mut self, prefix: &str, kernel: Kernel, offset: bool) -> Result<KernelMap> {
        let landmarks = self.rows(&format!("{prefix}landmarks"))?;
        let map = self.map(prefix, offset)?;
        KernelMap::new(kernel, landmarks, map).map_err(broken)
    }
}

fn narrow_values(bytes: &[u8]) -> Vec<f32> {
    let chunks = bytes.as_chunks::<4>().0;
    chunks.iter().map(|c| f32::from_le_bytes(*c)).collect()
}

fn finite(name: &str, values: Vec<f32>) -> Result<Vec<f32>> {
    match values.iter().position(|v| !v.is_finite()) {
        None => Ok(values),
        Some(at) => Err(Error::Model(format!(
            "tensor {name:?}: value {at} is {}, expected a finite number",
            values[at]
        ))),
    }
}

pub(super) fn build(header: Header, mut tensors: Tensors<'_>) -> Result<Model> {
    let narrowing = header
        .narrowing_scale
        .map(|scale| {
            tensors
                .wide_vector("narrowing.shift")
                .map(|shift| Narrowing { shift, scale })
        })
        .transpose()?;
    // It is shown and written into other files.
    let method = &header.origin.method;
    let in_word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if method.len() > 64 || !method.chars().all(in_word) {
        return Err(Error::Model(format!(
            "expected the name of a method, but found {method:?}"
        )));
    }
    let items = Preprocessing {
        input_dim: header.input_dim,
        steps: take_steps(&mut tensors, "step", header.steps)?,
    };
    let queries = (header.queries)
        .map(|queries| {
            take_steps(&mut tensors, "query.step", queries.steps).map(|steps| Preprocessing {
                input_dim: queries.input_dim,
                steps,
            })
        })
        .transpose()?;
    let map = match header.map {
        MapHeader::Identity => Map::Identity,
        MapHeader::LowRank { offset } => Map::LowRank(tensors.map("map.", offset)?),
        MapHeader::Diagonal => Map::Diagonal(tensors.vector("map.factors")?),
        MapHeader::Bilinear {
            query_offset,
            item_offset,
        } => Map::Bilinear {
            query: tensors.map("map.query.", query_offset)?,
            item: tensors.map("map.item.", item_offset)?,
        },
        MapHeader::Kernel { kernel, offset } => {
            Map::Kernel(tensors.kernel("map.", kernel, offset)?)
        }
        MapHeader::Indefinite {
            positive,
            offset,
            sums,
        } => {
            let map = tensors.map("map.", offset)?;
            let counted = [positive, sums[0], sums[1]];
            let counted = counted
                .iter()
                .try_fold(0_usize, |sum, n| sum.checked_add(*n));
            let negative = counted.and_then(|counted| map.output_dim().checked_sub(counted));
            let negative = negative.ok_or_else(|| {
                Error::Model("the map has fewer rows than its signs speak of".into())
            })?;
            let signs = Signs::new([positive, negative], sums);
            Map::Indefinite(Indefinite::with_signs(map, signs).map_err(broken)?)
        }
    };
    let training = match header.training {
        None => None,
        Some(training) => Some(TrainingRows {
            units: tensors.digests("training.rows", training.rows)?,
            relevant_items: (training.relevant_items)
                .map(|rows| tensors.digests("training.relevant_items", rows))
                .transpose()?,
        }),
    };
    let code = header.code.map(|code| tensors.code(code)).transpose()?;
    if let Some(name) = tensors.0.keys().next() {
        return Err(Error::Model(format!("tensor {name:?} belongs to nothing")));
    }
    let chain = Chain::between(queries, items, map, header.space).map_err(broken)?;
    let chain = chain.with_code(code).map_err(broken)?;
    let mut model = Model::new(narrowing, chain, header.origin)
        .and_then(|model| model.with_outputs(header.outputs))
        .map_err(broken)?;
    model.training = training;
    match header.decision {
        Some(decision) => model.with_decision(decision).map_err(broken),
        None => Ok(model),
    }
}

/// Steps whose tensors have names that begin with `prefix`.
fn take_steps(
    tensors: &mut Tensors<'_>,
    prefix: &str,
    headers: Vec<StepHeader>,
) -> Result<Vec<Step>> {
    if headers.len() > MAX_STEPS {
        return Err(Error::Model(format!(
            "it has {} steps, at most {MAX_STEPS} are allowed",
            headers.len()
        )));
    }
    let mut steps = Vec::new();
    for (number, step) in headers.into_iter().enumerate() {
        let name = |part: &str| format!("{prefix}.{number}.{part}");
        steps.push(match step {
            StepHeader::L2 => Step::Element(ElementMap::Normalise),
            StepHeader::Sqrt => Step::Element(ElementMap::SquareRoot),
            StepHeader::Log { factor } => {
                if !(factor.is_finite() && factor > 0.0) {
                    return Err(Error::Model(format!(
                        "step {number}: its factor is {factor}"
                    )));
                }
                Step::Element(ElementMap::Log { factor })
            }
            StepHeader::Centre => Step::Centre {
                mean: tensors.vector(&name("mean"))?,
            },
            StepHeader::CentreGroups { names } => Step::CentreGroups {
                names,
                means: tensors.rows(&name("means"))?,
            },
            StepHeader::Scale => Step::Scale {
                factors: tensors.vector(&name("factors"))?,
            },
            StepHeader::Project { offset } => Step::Project(tensors.map(&name(""), offset)?),
            StepHeader::Chi2 { order } => {
                if !(1..=3).contains(&order) {
                    return Err(Error::Model(format!(
                        "step {number}: its order is {order}, expected 1, 2 or 3"
                    )));
                }
                Step::Element(ElementMap::ChiSquare { order })
            }
            StepHeader::Kernel { kernel, offset } => {
                Step::Kernel(tensors.kernel(&name(""), kernel, offset)?)
            }
            StepHeader::L2Each { dims } => Step::NormaliseEach { dims },
        });
    }
    Ok(steps)
}
