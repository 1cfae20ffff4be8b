//! A folder of Parquet files that a job writes: whole, or marked as not.
//!
//! A mark is put there before the first file and taken away after the last, when a list of the files lies
//! beside them. So a folder that a job left half-done, and one with files of two jobs, are not read as
//! tables. A folder without either is somebody else's, and is read as it is.

use crate::operators::{ShardFile, is_job_name};
use crate::stores::Place;
use crate::{Error, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::TryStreamExt;
use object_store::path::Path as StorePath;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The list of files, once all are there.
const MANIFEST: &str = "_metra.json";
/// The mark of a folder that is being written.
const UNFINISHED: &str = "_metra.unfinished";

/// What a finished folder says of itself.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    version: u32,
    files: BTreeMap<String, ShardFile>,
}

const VERSION: u32 = 1;

/// A folder that is being written.
pub(crate) struct OutputFolder<'a> {
    place: Place,
    store: Arc<dyn ObjectStore>,
    runtime: &'a RuntimeEnv,
}

impl<'a> OutputFolder<'a> {
    /// Begin to write to a folder, in which nothing of another job lies: files that a job did not finish
    /// are removed, finished ones only to `replace` them, and never one that the job `reads` or that no job
    /// writes.
    pub(crate) async fn begin(
        place: Place,
        reads: impl Fn(&StorePath) -> bool,
        replace: bool,
        runtime: &'a RuntimeEnv,
    ) -> Result<Self> {
        let store = runtime.object_store(&place.store);
        let store = store.map_err(|e| Error::table(place.address(), e))?;
        let folder = OutputFolder {
            place,
            store,
            runtime,
        };
        let files = folder.parquet_files().await?;
        if files.iter().any(|file| reads(&file.location)) {
            let problem = "holds the rows that are read: name another folder to write to";
            return Err(folder.wrong(problem));
        }
        let unfinished = folder.head(UNFINISHED).await.is_some();
        if !files.is_empty() && !unfinished && !replace {
            return Err(folder.wrong(format!(
                "already holds {} Parquet files, with which new ones would be mixed: name another folder, \
                 or replace them with --force",
                files.len()
            )));
        }
        if let Some(file) = files.iter().find(|file| !folder.is_of_job(file)) {
            return Err(folder.wrong(format!(
                "holds {}, which is none of the files that are written here: name another folder",
                file.location
            )));
        }
        folder.mark(UNFINISHED, Vec::new()).await?;
        folder.remove(MANIFEST).await?;
        for file in files {
            let deleted = folder.store.delete(&file.location).await;
            deleted.map_err(|e| folder.wrong(e))?;
        }
        Ok(folder)
    }

    /// All files are there: list them, and take the mark away.
    pub(crate) async fn finish(self, files: BTreeMap<String, ShardFile>) -> Result<()> {
        let manifest = Manifest {
            version: VERSION,
            files,
        };
        let text = serde_json::to_vec_pretty(&manifest).map_err(|e| self.wrong(e))?;
        self.mark(MANIFEST, text).await?;
        self.remove(UNFINISHED).await
    }

    /// Files that a table of this folder would have.
    async fn parquet_files(&self) -> Result<Vec<ObjectMeta>> {
        let listed = self.store.list(Some(&self.place.path)).try_collect();
        let listed: Vec<ObjectMeta> = listed.await.map_err(|e| self.wrong(e))?;
        Ok(listed.into_iter().filter(is_of_table).collect())
    }

    /// Whether a file is one that a job writes to this folder, and not a user's own.
    fn is_of_job(&self, file: &ObjectMeta) -> bool {
        let name = file.location.filename().unwrap_or_default();
        is_job_name(name) && self.place.join(name).path == file.location
    }

    async fn head(&self, name: &str) -> Option<ObjectMeta> {
        self.store.head(&self.place.join(name).path).await.ok()
    }

    async fn mark(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        self.place.join(name).write(self.runtime, bytes).await
    }

    async fn remove(&self, name: &str) -> Result<()> {
        match self.store.delete(&self.place.join(name).path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.wrong(error)),
        }
    }

    fn wrong(&self, problem: impl ToString) -> Error {
        Error::table(self.place.address(), problem)
    }
}

/// Whether a file of a folder is part of its table.
pub(crate) fn is_of_table(file: &ObjectMeta) -> bool {
    let name = file.location.filename().unwrap_or("");
    name.ends_with(".parquet") && !name.starts_with(['_', '.'])
}

/// An error unless these are all files of a folder that was finished, as they were written; no error
/// for a folder that no job marked.
pub(crate) async fn check(
    place: &Place,
    store: &dyn ObjectStore,
    files: &[ObjectMeta],
) -> Result<()> {
    let wrong = |problem: String| Error::table(place.address(), problem);
    if store.head(&place.join(UNFINISHED).path).await.is_ok() {
        let problem = "the job that wrote it did not finish: run it again, or remove the folder";
        return Err(wrong(problem.to_owned()));
    }
    let Ok(found) = store.get(&place.join(MANIFEST).path).await else {
        return Ok(());
    };
    let bytes = found.bytes().await.map_err(|e| wrong(e.to_string()))?;
    let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|error| {
        wrong(format!(
            "its list of files {MANIFEST} cannot be read: {error}"
        ))
    })?;
    let there: BTreeMap<&str, u64> = (files.iter())
        .filter_map(|file| Some((file.location.filename()?, file.size)))
        .collect();
    for (name, file) in &manifest.files {
        match there.get(name.as_str()) {
            Some(size) if *size == file.bytes => {}
            Some(size) => {
                let expected = file.bytes;
                let problem = format!("{name}: expected {expected} bytes, but found {size}");
                return Err(wrong(problem));
            }
            None => return Err(wrong(format!("{name} is missing, which {MANIFEST} lists"))),
        }
    }
    let unknown = there
        .keys()
        .find(|name| !manifest.files.contains_key(**name));
    match unknown {
        Some(name) => Err(wrong(format!(
            "{name} is not among the files that {MANIFEST} lists"
        ))),
        None => Ok(()),
    }
}
