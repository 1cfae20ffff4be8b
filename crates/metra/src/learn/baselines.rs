//! The vectors as they are: what every learned metric has to beat.

use super::parameters::{Checked, parameters};
use super::{Learner, Parameters, Problem, Run};
use crate::Result;
use crate::metric::{Map, Space};
use std::collections::BTreeMap;

parameters! {
    /// Euclidean distance between the vectors as they are. Cost: none. Use it as the base.
    pub struct Euclid {}
}

parameters! {
    /// Cosine between the vectors as they are. Cost: none. The usual base for text embeddings.
    pub struct Cosine {}
}

impl Euclid {
    /// There is nothing to check.
    pub fn check(self) -> Result<Checked<Self>> {
        Ok(Checked(self))
    }
}

impl Cosine {
    /// There is nothing to check.
    pub fn check(self) -> Result<Checked<Self>> {
        Ok(Checked(self))
    }
}

impl Learner for Checked<Euclid> {
    fn name(&self) -> &'static str {
        "euclid"
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        self.0.values()
    }

    fn spaces(&self) -> &'static [Space] {
        &[Space::SquaredL2]
    }

    fn by_passes(&self) -> bool {
        true
    }

    fn fit(&self, _: &Problem<'_>, _: &mut Run<'_>) -> Result<Map> {
        Ok(Map::Identity)
    }
}

impl Learner for Checked<Cosine> {
    fn name(&self) -> &'static str {
        "cosine"
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        self.0.values()
    }

    fn spaces(&self) -> &'static [Space] {
        &[Space::Cosine]
    }

    fn by_passes(&self) -> bool {
        true
    }

    fn fit(&self, _: &Problem<'_>, _: &mut Run<'_>) -> Result<Map> {
        Ok(Map::Identity)
    }
}
