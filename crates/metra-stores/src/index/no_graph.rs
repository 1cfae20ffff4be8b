//! In builds without the feature `index` there is no graph: building or opening one says so, and
//! everything else about an index works.

use super::manifest::GraphFacts;
use super::settings::{BuildProgress, GraphSettings};
use crate::{Error, Result};
use metra::data::Corpus;
use metra::model::Space;
use std::path::Path;

/// Never made.
pub(super) enum Graph {}

impl Graph {
    pub(super) fn build(
        path: &Path,
        _: Space,
        _: &dyn Corpus,
        _: &GraphSettings,
        _: &mut BuildProgress<'_>,
    ) -> Result<GraphFacts> {
        Err(absent(path))
    }

    pub(super) fn open(
        path: &Path,
        _: Space,
        _: u64,
        _: usize,
        _: &GraphFacts,
        _: usize,
        _: bool,
    ) -> Result<Self> {
        Err(absent(path))
    }

    pub(super) fn candidates(&self, _: &[f32], _: usize) -> Result<Vec<u64>> {
        match *self {}
    }
}

fn absent(path: &Path) -> Error {
    let problem = "this build has no approximate index: build with the feature `index`";
    Error::file(path, problem)
}
