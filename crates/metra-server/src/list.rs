//! The list of what is served.

use crate::options::{ModelEntry, ModelSource};
use crate::{Error, Result};
use serde::Deserialize;
use std::path::Path;

/// The file that lists models.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelList {
    model: Vec<ModelEntry>,
}

/// The models of a source; paths in a file are relative to its folder.
pub(crate) fn entries(source: &ModelSource) -> Result<Vec<ModelEntry>> {
    let path = match source {
        ModelSource::Single(entry) => return Ok(vec![ModelEntry::clone(entry)]),
        ModelSource::File(path) => path,
    };
    let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
    let list: ModelList = toml::from_str(&text).map_err(|e| Error::file(path, e.to_string()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut all = list.model;
    for entry in &mut all {
        let canary = entry.canary.iter_mut();
        let judged =
            canary.flat_map(|canary| [Some(&mut canary.queries.file), canary.qrels.as_mut()]);
        let others = [
            Some(&mut entry.file),
            entry.index.as_mut(),
            entry
                .reference
                .as_mut()
                .map(|reference| &mut reference.file),
        ];
        for path in judged.chain(others).flatten() {
            *path = folder.join(&*path);
        }
    }
    match all.is_empty() {
        true => Err(Error::file(path, "expected at least one [[model]]")),
        false => Ok(all),
    }
}
