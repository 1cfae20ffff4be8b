//! A model as a header and tensors.

use super::header::{
    CodeHeader, FORMAT, Header, MapHeader, QueryHeader, ScaleHeader, StepHeader, TrainingHeader,
};
use crate::data::{ElementMap, RowDigests};
use crate::linalg::{Kernel, Rows};
use crate::model::{Code, Embedding, Int8Scale, KernelMap, LowRank, Map, Model, Step};
use safetensors::tensor::Dtype;
use std::collections::BTreeMap;

pub(super) struct Tensor {
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    pub(super) bytes: Vec<u8>,
}

impl Tensor {
    fn rows(rows: Rows<'_>) -> Self {
        Tensor {
            dtype: Dtype::F32,
            shape: vec![rows.len(), rows.dim()],
            bytes: bytemuck::cast_slice(rows.values()).to_vec(),
        }
    }

    fn vector(values: &[f32]) -> Self {
        Tensor {
            dtype: Dtype::F32,
            shape: vec![values.len()],
            bytes: bytemuck::cast_slice(values).to_vec(),
        }
    }

    fn digests(digests: &RowDigests) -> Self {
        Tensor {
            dtype: Dtype::U64,
            shape: vec![digests.digests().len()],
            bytes: bytemuck::cast_slice(digests.digests()).to_vec(),
        }
    }
}

/// The header, without its digest, and the tensors.
pub(super) fn parts(model: &Model) -> (Header, BTreeMap<String, Tensor>) {
    let mut tensors = BTreeMap::new();
    let steps = put_steps(&mut tensors, "step", model.chain.steps());
    let queries = (model.chain.query_preprocessing()).map(|own| QueryHeader {
        input_dim: own.input_dim,
        steps: put_steps(&mut tensors, "query.step", &own.steps),
    });
    let map = match model.chain.map() {
        Map::Identity => MapHeader::Identity,
        Map::LowRank(map) => MapHeader::LowRank {
            offset: put_map(&mut tensors, "map.", map),
        },
        Map::Diagonal(factors) => {
            tensors.insert("map.factors".into(), Tensor::vector(factors));
            MapHeader::Diagonal
        }
        Map::Bilinear { query, item } => MapHeader::Bilinear {
            query_offset: put_map(&mut tensors, "map.query.", query),
            item_offset: put_map(&mut tensors, "map.item.", item),
        },
        Map::Kernel(map) => put_kernel(&mut tensors, "map.", map, |kernel, offset| {
            MapHeader::Kernel { kernel, offset }
        }),
        Map::Indefinite(map) => MapHeader::Indefinite {
            positive: map.signs().differences()[0],
            offset: put_map(&mut tensors, "map.", map.map()),
            sums: map.signs().sums(),
        },
    };
    let code = model.chain.code().map(|code| put_code(&mut tensors, code));
    if let Some(narrowing) = &model.narrowing {
        tensors.insert(
            "narrowing.shift".into(),
            Tensor {
                dtype: Dtype::F64,
                shape: vec![narrowing.shift.len()],
                bytes: bytemuck::cast_slice(&narrowing.shift).to_vec(),
            },
        );
    }
    let training = model.training.as_ref().map(|training| {
        tensors.insert("training.rows".into(), Tensor::digests(&training.units));
        let items = training.relevant_items.as_ref();
        if let Some(items) = items {
            tensors.insert("training.relevant_items".into(), Tensor::digests(items));
        }
        TrainingHeader {
            rows: training.rows(),
            relevant_items: items.map(RowDigests::rows),
        }
    });
    let header = Header {
        format: FORMAT,
        digest: String::new(),
        input_dim: Embedding::input_dim(&model.chain),
        narrowing_scale: model.narrowing.as_ref().map(|n| n.scale),
        steps,
        queries,
        map,
        space: model.chain.space(),
        code,
        origin: model.origin.clone(),
        decision: model.decision.clone(),
        outputs: model.outputs.clone(),
        training,
    };
    (header, tensors)
}

/// Steps whose tensors have names that begin with `prefix`.
fn put_steps(
    tensors: &mut BTreeMap<String, Tensor>,
    prefix: &str,
    steps: &[Step],
) -> Vec<StepHeader> {
    let mut headers = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let name = |part: &str| format!("{prefix}.{number}.{part}");
        headers.push(match step {
            Step::Element(ElementMap::Normalise) => StepHeader::L2,
            Step::Element(ElementMap::SquareRoot) => StepHeader::Sqrt,
            Step::Element(ElementMap::Log { factor }) => StepHeader::Log { factor: *factor },
            Step::Element(ElementMap::ChiSquare { order }) => StepHeader::Chi2 { order: *order },
            Step::Centre { mean } => {
                tensors.insert(name("mean"), Tensor::vector(mean));
                StepHeader::Centre
            }
            Step::CentreGroups { names, means } => {
                tensors.insert(name("means"), Tensor::rows(means.rows()));
                StepHeader::CentreGroups {
                    names: names.clone(),
                }
            }
            Step::Scale { factors } => {
                tensors.insert(name("factors"), Tensor::vector(factors));
                StepHeader::Scale
            }
            Step::Project(map) => StepHeader::Project {
                offset: put_map(tensors, &name(""), map),
            },
            Step::Kernel(map) => put_kernel(tensors, &name(""), map, |kernel, offset| {
                StepHeader::Kernel { kernel, offset }
            }),
            Step::NormaliseEach { dims } => StepHeader::L2Each { dims: dims.clone() },
        });
    }
    headers
}

fn put_map(tensors: &mut BTreeMap<String, Tensor>, prefix: &str, map: &LowRank) -> bool {
    tensors.insert(format!("{prefix}weights"), Tensor::rows(map.weights()));
    if let Some(offset) = map.offset() {
        tensors.insert(format!("{prefix}offset"), Tensor::vector(offset));
    }
    map.offset().is_some()
}

fn put_code(tensors: &mut BTreeMap<String, Tensor>, code: &Code) -> CodeHeader {
    match code {
        Code::Float16 => CodeHeader::F16,
        Code::Int8(scale) => CodeHeader::Int8 {
            scale: match scale {
                Int8Scale::PerVector => ScaleHeader::Vector,
                Int8Scale::Direction => ScaleHeader::Direction,
                Int8Scale::PerDimension(scales) => {
                    tensors.insert("code.scales".into(), Tensor::vector(scales));
                    ScaleHeader::Dimension
                }
            },
        },
        Code::Bits { scale, queries } => CodeHeader::Bits {
            scale: *scale,
            queries: *queries,
        },
        Code::Product(product) => {
            let centroids = Tensor::rows(product.centroids());
            tensors.insert("code.centroids".into(), centroids);
            CodeHeader::Pq {
                blocks: product.blocks(),
            }
        }
    }
}

fn put_kernel<H>(
    tensors: &mut BTreeMap<String, Tensor>,
    prefix: &str,
    map: &KernelMap,
    header: impl FnOnce(Kernel, bool) -> H,
) -> H {
    let landmarks = Tensor::rows(map.landmarks());
    tensors.insert(format!("{prefix}landmarks"), landmarks);
    header(map.kernel(), put_map(tensors, prefix, map.map()))
}
