//! The model file: valid safetensors with one metadata key of canonical JSON and one digest over
//! everything. The format is written down in `docs/formats/model.md`.
//!
//! A file is untrusted: lengths are checked before anything is allocated, the digest before
//! anything is believed, and the parts' meaning before a model exists.

use super::trained_model::{MatchDecision, Model, Origin};
use super::{Chain, Indefinite, KernelMap, LowRank, Map, Signs, Space, Step, TrainingRows};
use crate::data::{AtomicFile, ElementMap, FileKind, Narrowing, RowDigests};
use crate::linalg::{Kernel, RowBuf, Rows};
use crate::{Error, Result};
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensors, serialize};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Version of the format, raised when an older reader would misread a newer file.
const FORMAT: u32 = 1;
/// The one metadata key: the library keeps metadata in a map without order, and a second key would
/// make the file's bytes depend on it.
const KEY: &str = "metra";
/// Headers hold a few tensors' names and the settings; 4 MB is far beyond any of ours.
const MAX_HEADER: u64 = 4 << 20;
const MAX_TENSORS: usize = 256;
const MAX_STEPS: usize = 64;
const MAX_FILE: u64 = 64 << 30;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: u32,
    digest: String,
    input_dim: usize,
    narrowing_scale: Option<f64>,
    steps: Vec<StepHeader>,
    map: MapHeader,
    space: Space,
    origin: Origin,
    /// Left out where there is none, so that files from before it keep their digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<MatchDecision>,
    /// Left out where there are none, as the decision is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<String>,
    /// Left out where the model does not keep them, as the decision is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    training: Option<TrainingHeader>,
}

/// How many rows the lists of digests speak of.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrainingHeader {
    rows: u64,
    relevant_items: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "kebab-case")]
enum StepHeader {
    L2,
    Sqrt,
    Log { factor: f32 },
    Centre,
    CentreGroups { names: Vec<String> },
    Scale,
    Chi2 { order: u32 },
    Project { offset: bool },
    Kernel { kernel: Kernel, offset: bool },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "kebab-case")]
enum MapHeader {
    Identity,
    LowRank {
        offset: bool,
    },
    Diagonal,
    Bilinear {
        query_offset: bool,
        item_offset: bool,
    },
    Kernel {
        kernel: Kernel,
        offset: bool,
    },
    Indefinite {
        positive: usize,
        offset: bool,
        /// Left out where there are none, so that files from before them keep their digest.
        #[serde(default, skip_serializing_if = "no_sums")]
        sums: [usize; 2],
    },
}

fn no_sums(sums: &[usize; 2]) -> bool {
    *sums == [0, 0]
}

struct Tensor {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
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

impl Model {
    /// The bytes of the model file. The same model gives the same bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut tensors = BTreeMap::new();
        let mut steps = Vec::new();
        for (number, step) in self.chain.steps().iter().enumerate() {
            let name = |part: &str| format!("step.{number}.{part}");
            steps.push(match step {
                Step::Element(ElementMap::Normalise) => StepHeader::L2,
                Step::Element(ElementMap::SquareRoot) => StepHeader::Sqrt,
                Step::Element(ElementMap::Log { factor }) => StepHeader::Log { factor: *factor },
                Step::Element(ElementMap::ChiSquare { order }) => {
                    StepHeader::Chi2 { order: *order }
                }
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
                    offset: put_map(&mut tensors, &name(""), map),
                },
                Step::Kernel(map) => put_kernel(&mut tensors, &name(""), map, |kernel, offset| {
                    StepHeader::Kernel { kernel, offset }
                }),
            });
        }
        let map = match self.chain.map() {
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
        if let Some(narrowing) = &self.narrowing {
            tensors.insert(
                "narrowing.shift".into(),
                Tensor {
                    dtype: Dtype::F64,
                    shape: vec![narrowing.shift.len()],
                    bytes: bytemuck::cast_slice(&narrowing.shift).to_vec(),
                },
            );
        }
        let training = self.training.as_ref().map(|training| {
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
        let mut header = Header {
            format: FORMAT,
            digest: String::new(),
            input_dim: super::Embedding::input_dim(&self.chain),
            narrowing_scale: self.narrowing.as_ref().map(|n| n.scale),
            steps,
            map,
            space: super::Embedding::space(&self.chain),
            origin: self.origin.clone(),
            decision: self.decision.clone(),
            outputs: self.outputs.clone(),
            training,
        };
        let blank = canonical(&header)?;
        header.digest = digest(
            &blank,
            tensors
                .iter()
                .map(|(n, t)| (n.as_str(), t.dtype, t.shape.as_slice(), &t.bytes[..])),
        );
        let metadata = HashMap::from([(KEY.to_owned(), canonical(&header)?)]);
        let mut views = Vec::with_capacity(tensors.len());
        for (name, tensor) in &tensors {
            let view = TensorView::new(tensor.dtype, tensor.shape.clone(), &tensor.bytes);
            views.push((name.as_str(), view.map_err(broken)?));
        }
        serialize(views, Some(metadata)).map_err(broken)
    }

    /// Read a model from the bytes of its file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        check_lengths(bytes.get(..8), bytes.len() as u64)?;
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(broken)?;
        let texts = metadata.metadata().as_ref();
        let text = match texts {
            Some(texts) if texts.len() == 1 => texts.get(KEY),
            _ => None,
        };
        let text = text.ok_or_else(|| {
            Error::Model(format!(
                "expected exactly one metadata key {KEY:?}: this is not a model of metra"
            ))
        })?;
        let mut header: Header = serde_json::from_str(text).map_err(broken)?;
        if header.format != FORMAT {
            return Err(Error::Model(format!(
                "its format is {}, but this version reads format {FORMAT}",
                header.format
            )));
        }
        let file = SafeTensors::deserialize(bytes).map_err(broken)?;
        let mut names = file.names();
        names.sort_unstable();
        if names.len() > MAX_TENSORS {
            return Err(Error::Model(format!(
                "it has {} tensors, at most {MAX_TENSORS} are allowed",
                names.len()
            )));
        }
        let mut views = BTreeMap::new();
        for name in names {
            views.insert(name.to_owned(), file.tensor(name).map_err(broken)?);
        }
        let claimed = std::mem::take(&mut header.digest);
        let found = digest(
            &canonical(&header)?,
            views
                .iter()
                .map(|(n, v)| (n.as_str(), v.dtype(), v.shape(), v.data())),
        );
        if claimed != found {
            return Err(Error::Model(format!(
                "its content is damaged: the digest is {found}, but the file says {claimed:?}"
            )));
        }
        build(header, Tensors(views))
    }

    /// Write the model so that the file is either whole or not there.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        AtomicFile::write_all(path.as_ref(), &self.to_bytes()?)
    }

    /// Read a model file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        use std::io::Read;
        let io = |e| Error::io(path, e);
        // Looked at before it is opened: to open a pipe waits for its writer, and a device never ends.
        let metadata = std::fs::metadata(path).map_err(io)?;
        if !metadata.is_file() {
            let problem = "expected a regular file, but it is a folder, a device or a pipe";
            return Err(Error::Model(format!("{}: {problem}", path.display())));
        }
        let len = metadata.len();
        let mut file = std::fs::File::open(path).map_err(io)?;
        let mut start = [0; 8];
        let mut read = 0;
        while read < 8 {
            match file.read(&mut start[read..]).map_err(io)? {
                0 => break,
                n => read += n,
            }
        }
        let kind = FileKind::of(&start[..read]);
        if let FileKind::Parquet | FileKind::Arrow | FileKind::Npy = kind {
            return Err(Error::Model(format!(
                "{} holds vectors and no model: are the model and the vectors in the wrong order?",
                path.display()
            )));
        }
        let named = |error: Error| match error {
            Error::Model(problem) => Error::Model(format!("{}: {problem}", path.display())),
            error => error,
        };
        check_lengths((read == 8).then_some(&start[..]), len).map_err(named)?;
        let mut bytes = Vec::with_capacity(len as usize);
        bytes.extend_from_slice(&start);
        file.take(len - 8).read_to_end(&mut bytes).map_err(io)?;
        Self::from_bytes(&bytes).map_err(named)
    }
}

/// Refuse lengths that cannot be before a byte more is read or parsed.
fn check_lengths(start: Option<&[u8]>, file: u64) -> Result<()> {
    let Some(start) = start.and_then(|s| <[u8; 8]>::try_from(s).ok()) else {
        return Err(Error::Model(format!(
            "expected at least 8 bytes, but the file has {file}"
        )));
    };
    let header = u64::from_le_bytes(start);
    if file > MAX_FILE {
        return Err(Error::Model(format!(
            "the file has {file} bytes, at most {MAX_FILE} are allowed"
        )));
    }
    if header > MAX_HEADER || header > file - 8 {
        return Err(Error::Model(format!(
            "its header claims {header} bytes, but at most {} are possible",
            MAX_HEADER.min(file - 8)
        )));
    }
    Ok(())
}

fn broken(error: impl std::fmt::Display) -> Error {
    Error::Model(error.to_string())
}

/// JSON with sorted keys: going through `Value` sorts the fields of every struct.
fn canonical(header: &Header) -> Result<String> {
    let value = serde_json::to_value(header).map_err(broken)?;
    serde_json::to_string(&value).map_err(broken)
}

fn digest<'a>(
    header: &str,
    tensors: impl Iterator<Item = (&'a str, Dtype, &'a [usize], &'a [u8])>,
) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut put = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    put(header.as_bytes());
    for (name, dtype, shape, bytes) in tensors {
        put(name.as_bytes());
        put(format!("{dtype:?}").as_bytes());
        for size in shape {
            put(&(*size as u64).to_le_bytes());
        }
        put(bytes);
    }
    hasher.finalize().to_hex().to_string()
}

fn put_map(tensors: &mut BTreeMap<String, Tensor>, prefix: &str, map: &LowRank) -> bool {
    tensors.insert(format!("{prefix}weights"), Tensor::rows(map.weights()));
    if let Some(offset) = map.offset() {
        tensors.insert(format!("{prefix}offset"), Tensor::vector(offset));
    }
    map.offset().is_some()
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

/// The tensors of a file, each to be taken once; what is left over is an error.
struct Tensors<'a>(BTreeMap<String, TensorView<'a>>);

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

fn build(header: Header, mut tensors: Tensors<'_>) -> Result<Model> {
    let narrowing = header
        .narrowing_scale
        .map(|scale| {
            tensors
                .wide_vector("narrowing.shift")
                .map(|shift| Narrowing { shift, scale })
        })
        .transpose()?;
    if header.steps.len() > MAX_STEPS {
        return Err(Error::Model(format!(
            "it has {} steps, at most {MAX_STEPS} are allowed",
            header.steps.len()
        )));
    }
    // It is shown and written into other files.
    let method = &header.origin.method;
    let in_word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if method.len() > 64 || !method.chars().all(in_word) {
        return Err(Error::Model(format!(
            "expected the name of a method, but found {method:?}"
        )));
    }
    let mut steps = Vec::new();
    for (number, step) in header.steps.into_iter().enumerate() {
        let name = |part: &str| format!("step.{number}.{part}");
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
        });
    }
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
    if let Some(name) = tensors.0.keys().next() {
        return Err(Error::Model(format!("tensor {name:?} belongs to nothing")));
    }
    let chain = Chain::new(header.input_dim, steps, map, header.space).map_err(broken)?;
    let mut model = Model::new(narrowing, chain, header.origin)
        .and_then(|model| model.with_outputs(header.outputs))
        .map_err(broken)?;
    model.training = training;
    match header.decision {
        Some(decision) => model.with_decision(decision).map_err(broken),
        None => Ok(model),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    pub(super) fn model() -> Model {
        let mut stream = Stream::new(1, "test", 0);
        let mut random = |len: usize, dim| {
            let values = (0..len * dim).map(|_| stream.normal() as f32).collect();
            RowBuf::from_values(values, dim).unwrap()
        };
        let steps = vec![
            Step::Element(ElementMap::Log { factor: 10.0 }),
            Step::CentreGroups {
                names: vec!["a".into(), "b".into()],
                means: random(2, 6),
            },
            Step::Scale {
                factors: random(1, 6).into_values(),
            },
            Step::Project(LowRank::new(random(4, 6), Some(vec![0.5; 4])).unwrap()),
        ];
        let map = Map::LowRank(LowRank::new(random(3, 4), None).unwrap());
        let chain = Chain::new(6, steps, map, Space::Cosine).unwrap();
        let narrowing = Narrowing {
            shift: vec![1e9, 0.0, 0.0, 0.0, 0.1, 0.0],
            scale: 0.5,
        };
        let origin = Origin {
            method: "warca".into(),
            parameters: BTreeMap::from([("rank".into(), "3".into())]),
            facts: BTreeMap::from([("scale".into(), 0.1 + 0.2)]),
            ..Origin::default()
        };
        Model::new(Some(narrowing), chain, origin).unwrap()
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let model = model();
        let bytes = model.to_bytes().unwrap();
        assert_eq!(Model::from_bytes(&bytes).unwrap(), model);
        assert_eq!(model.to_bytes().unwrap(), bytes);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.safetensors");
        model.save(&path).unwrap();
        assert_eq!(Model::load(&path).unwrap(), model);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_decision_is_kept_and_its_absence_leaves_no_trace() {
        let plain = model();
        let bytes = plain.to_bytes().unwrap();
        let found = |bytes: &[u8]| bytes.windows(8).any(|w| w == b"decision");
        assert!(
            !found(&bytes),
            "files from before decisions must stay as they are"
        );
        let decision = MatchDecision {
            threshold: f64::from(0.1_f32.next_down()),
            asked: 1e-3,
            false_match_rate: 9.7e-4,
            true_match_rate: 0.8,
            low: 0.7,
            high: 0.85,
            same: 12,
            different: 3000,
            data: "digest".into(),
        };
        assert!(decision.is_same(-1.0) && !decision.is_same(0.1) && !decision.is_same(f64::NAN));
        let with = plain.clone().with_decision(decision.clone()).unwrap();
        let loaded = Model::from_bytes(&with.to_bytes().unwrap()).unwrap();
        assert_eq!(loaded, with);
        let wrong = MatchDecision {
            threshold: f64::INFINITY,
            ..decision
        };
        assert!(plain.with_decision(wrong).is_err());
    }

    #[test]
    fn names_of_outputs_are_kept_and_their_absence_leaves_no_trace() {
        let plain = model();
        let bytes = plain.to_bytes().unwrap();
        let found = |bytes: &[u8]| bytes.windows(7).any(|w| w == b"outputs");
        assert!(!found(&bytes), "files without names must stay as they are");
        let names = |names: [&str; 3]| names.map(str::to_owned).to_vec();
        let with = plain
            .clone()
            .with_outputs(names(["smiling", "young", "male"]));
        let with = with.unwrap();
        let loaded = Model::from_bytes(&with.to_bytes().unwrap()).unwrap();
        assert_eq!(loaded, with);
        assert_eq!(loaded.outputs[1], "young");
        assert!(plain.clone().with_outputs(vec!["smiling".into()]).is_err());
        assert!(plain.clone().with_outputs(names(["a", "b", "a"])).is_err());
        assert!(plain.with_outputs(names(["a", "", "c"])).is_err());
    }

    #[test]
    fn every_number_in_the_header_comes_back() {
        // A parser that is off by one unit in the last place would make the digest fail: once did.
        let mut stream = Stream::new(3, "test", 0);
        for round in 0..500 {
            let mut model = model();
            for fact in 0..8 {
                model
                    .origin
                    .facts
                    .insert(format!("fact {fact}"), stream.normal() / 3.0);
            }
            let bytes = model.to_bytes().unwrap();
            assert_eq!(Model::from_bytes(&bytes).unwrap(), model, "round {round}");
        }
    }

    #[test]
    fn ten_thousand_mutations_never_load_as_something_else() {
        let model = model();
        let good = model.to_bytes().unwrap();
        let header_len = u64::from_le_bytes(good[..8].try_into().unwrap()) as usize;
        let mut rejected = 0;
        for round in 0..10_000 {
            let mut stream = Stream::new(2, "mutation", round);
            let mut bytes = good.clone();
            match round % 5 {
                0 => bytes.truncate(stream.below(good.len() as u64) as usize),
                1 => {
                    let at = stream.below(good.len() as u64) as usize;
                    bytes[at] ^= 1 << stream.below(8);
                }
                2 => {
                    let at = 8 + stream.below(header_len as u64) as usize;
                    bytes[at] = b"0123456789{}[]\",:-eE \0"[stream.below(22) as usize];
                }
                3 => {
                    let claimed = stream.below(u64::MAX) >> stream.below(64);
                    bytes[..8].copy_from_slice(&claimed.to_le_bytes());
                }
                _ => {
                    // Cut a piece out of the header and mend the length, so that parsing gets far.
                    let from = 8 + stream.below(header_len as u64) as usize;
                    let to = (from + stream.below(40) as usize).min(8 + header_len);
                    bytes.drain(from..to);
                    let left = (header_len - (to - from)) as u64;
                    bytes[..8].copy_from_slice(&left.to_le_bytes());
                }
            }
            match Model::from_bytes(&bytes) {
                Ok(loaded) => assert_eq!(loaded, model, "round {round}"),
                Err(_) => rejected += 1,
            }
        }
        assert!(rejected > 9_000, "only {rejected} were rejected");
    }

    #[test]
    fn a_forged_digest_does_not_hide_nonsense() {
        // A file with a correct digest but weights that are not finite must not load either.
        let bytes = model().to_bytes().unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
        let text = &metadata.metadata().as_ref().unwrap()[KEY];
        let mut header: Header = serde_json::from_str(text).unwrap();
        header.digest.clear();
        let nan = bytemuck::cast_slice(&[f32::NAN; 12]).to_vec();
        let mut tensors: BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)> = file
            .tensors()
            .into_iter()
            .map(|(n, v)| (n, (v.dtype(), v.shape().to_vec(), v.data().to_vec())))
            .collect();
        tensors.get_mut("map.weights").unwrap().2 = nan;
        header.digest = digest(
            &canonical(&header).unwrap(),
            tensors
                .iter()
                .map(|(n, t)| (n.as_str(), t.0, &t.1[..], &t.2[..])),
        );
        let views: Vec<_> = tensors
            .iter()
            .map(|(n, t)| (n.as_str(), TensorView::new(t.0, t.1.clone(), &t.2).unwrap()))
            .collect();
        let metadata = HashMap::from([(KEY.to_owned(), canonical(&header).unwrap())]);
        let forged = serialize(views, Some(metadata)).unwrap();
        let error = Model::from_bytes(&forged).unwrap_err().to_string();
        assert!(
            error.contains("map.weights") && error.contains("finite"),
            "{error}"
        );
    }
}
