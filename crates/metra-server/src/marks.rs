//! What tells that files have changed: their length, time and number.

use crate::list;
use crate::options::{ModelEntry, ModelSource, ServerOptions};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What a file was like at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    path: PathBuf,
    found: Option<(u64, SystemTime, u64)>,
}

impl Mark {
    fn of(path: PathBuf) -> Self {
        let found = std::fs::metadata(&path)
            .ok()
            .and_then(|found| Some((found.len(), found.modified().ok()?, number(&found))));
        Mark { path, found }
    }
}

/// What changes when a file is replaced by one of the same length and time, or its rights are changed.
#[cfg(unix)]
fn number(found: &std::fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    found.ino() ^ (found.ctime() as u64).rotate_left(32) ^ found.ctime_nsec() as u64
}

#[cfg(not(unix))]
fn number(_: &std::fs::Metadata) -> u64 {
    0
}

/// Marks of the files of a model.
pub(crate) fn marks_of_model(entry: &ModelEntry) -> Vec<Mark> {
    let mut paths = vec![entry.file.clone()];
    if let Some(folder) = &entry.index {
        // Programs that copy a folder write its files one after the other.
        paths.extend(files(folder));
    }
    paths.extend(
        entry
            .reference
            .iter()
            .map(|reference| reference.file.clone()),
    );
    if let Some(canary) = &entry.canary {
        paths.push(canary.queries.file.clone());
        paths.extend(canary.qrels.clone());
    }
    paths.into_iter().map(Mark::of).collect()
}

/// The files of a folder, in the order of their names; the folder itself where it cannot be read.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return vec![folder.to_owned()];
    };
    let mut all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    all.sort();
    all
}

/// Marks of all files that a server uses.
pub(crate) fn marks(options: &ServerOptions) -> Vec<Mark> {
    let mut paths = Vec::new();
    if let ModelSource::File(path) = &options.models {
        paths.push(path.clone());
    }
    paths.extend(options.keys.clone());
    if let Some(tls) = &options.tls {
        paths.extend([tls.certificate.clone(), tls.key.clone()]);
        paths.extend(tls.client_authorities.clone());
    }
    let mut all: Vec<Mark> = paths.into_iter().map(Mark::of).collect();
    // A list that cannot be read now has its own mark; its models are looked at when it can be.
    for entry in list::entries(&options.models).unwrap_or_default() {
        all.extend(marks_of_model(&entry));
    }
    all
}
