//! The baselines: the input vectors compared by Euclidean distance or by cosine.

use crate::Result;
use crate::dataset::Dataset;
use crate::model::{Map, Space};
use crate::supervision::SupervisionKind;
use crate::training::parameters::parameters;
use crate::training::{Method, Run};

parameters! {
    /// Euclidean distance between the vectors as they are. Cost: none. Use it as the base.
    pub struct Euclid {}
}

parameters! {
    /// Cosine between the vectors as they are. Cost: none. The usual base for text embeddings.
    pub struct Cosine {}
}

impl Method for Euclid {
    const NAME: &'static str = "euclid";
    const SUMMARY: &'static str = "Euclidean distance between the input vectors.";
    const NEEDS: &'static [SupervisionKind] = &[];

    fn spaces(&self) -> &'static [Space] {
        &[Space::SquaredL2]
    }

    fn runs_by_passes(&self) -> bool {
        true
    }

    fn fit(&self, _: &Dataset<'_>, _: &mut Run<'_>) -> Result<Map> {
        Ok(Map::Identity)
    }
}

impl Method for Cosine {
    const NAME: &'static str = "cosine";
    const SUMMARY: &'static str = "Cosine between the input vectors.";
    const NEEDS: &'static [SupervisionKind] = &[];

    fn spaces(&self) -> &'static [Space] {
        &[Space::Cosine]
    }

    fn runs_by_passes(&self) -> bool {
        true
    }

    fn fit(&self, _: &Dataset<'_>, _: &mut Run<'_>) -> Result<Map> {
        Ok(Map::Identity)
    }
}
