//! What the metadata of a model file says, as JSON.

use crate::linalg::Kernel;
use crate::model::Space;
use crate::model::trained_model::{MatchDecision, Origin};
use serde::{Deserialize, Serialize};

/// Version of the format, raised when an older reader would misread a newer file.
pub(super) const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) format: u32,
    pub(super) digest: String,
    pub(super) input_dim: usize,
    pub(super) narrowing_scale: Option<f64>,
    pub(super) steps: Vec<StepHeader>,
    /// Left out where queries are prepared as items are, so that files from before it keep their digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) queries: Option<QueryHeader>,
    pub(super) map: MapHeader,
    pub(super) space: Space,
    /// Left out where items are not coded, so that files from before codes keep their digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<CodeHeader>,
    pub(super) origin: Origin,
    /// Left out where there is none, so that files from before it keep their digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) decision: Option<MatchDecision>,
    /// Left out where there are none, as the decision is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) outputs: Vec<String>,
    /// Left out where the model does not keep them, as the decision is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) training: Option<TrainingHeader>,
}

/// What queries are before the map, where that is not what items are.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueryHeader {
    pub(super) input_dim: usize,
    pub(super) steps: Vec<StepHeader>,
}

/// How many rows the lists of digests speak of.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrainingHeader {
    pub(super) rows: u64,
    pub(super) relevant_items: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "kebab-case")]
pub(super) enum StepHeader {
    L2,
    Sqrt,
    Log { factor: f32 },
    Centre,
    CentreGroups { names: Vec<String> },
    Scale,
    Chi2 { order: u32 },
    Project { offset: bool },
    Kernel { kernel: Kernel, offset: bool },
    L2Each { dims: Vec<usize> },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "kebab-case")]
pub(super) enum MapHeader {
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

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "kebab-case")]
pub(super) enum CodeHeader {
    F16,
    Int8 { scale: ScaleHeader },
    Bits { scale: f32, queries: bool },
    Pq { blocks: usize },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ScaleHeader {
    Vector,
    Direction,
    Dimension,
}

fn no_sums(sums: &[usize; 2]) -> bool {
    *sums == [0, 0]
}
