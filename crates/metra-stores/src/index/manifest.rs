//! What an index folder says of itself: `index.json`, with the length and digest of every other file.
//!
//! The digests show damage, a file that was cut short or exchanged. Against whoever writes digests, too, a
//! graph is looked through before it is walked (`graph_check`).

use crate::{Error, Result};
use metra::model::{Model, Space};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

/// The manifest's file name.
pub(super) const MANIFEST: &str = "index.json";
pub(super) const VECTORS: &str = "vectors.f32";
pub(super) const CODES: &str = "codes.u8";
pub(super) const CODE: &str = "code.safetensors";
pub(super) const IDS: &str = "ids.text";
pub(super) const LABELS: &str = "labels.text";
pub(super) const GRAPH: &str = "graph.usearch";

/// What the manifest calls this kind of folder.
const FORMAT: &str = "metra-index";

/// The version of the layout that is written and read.
const VERSION: u32 = 1;

/// What is in an index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    format: String,
    version: u32,
    /// The model that mapped the items.
    pub model: ModelMark,
    /// How mapped vectors are compared (`euclid`, `cosine`, `dot`, `blocks:SIZE`).
    pub space: String,
    /// Number of items.
    pub rows: u64,
    /// Dimension of a mapped vector.
    pub dim: usize,
    /// The approximate graph; without one, search is exact.
    pub graph: Option<GraphFacts>,
    /// The name of the code that items are held in, where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Every other file of the folder.
    pub files: BTreeMap<String, FileMark>,
    /// BLAKE3 of all the rest of the manifest, hexadecimal. The first indexes have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

/// Which model an index belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelMark {
    /// What the model was called when the index was made.
    pub name: String,
    /// SHA-256 of its file, hexadecimal, without a calibrated threshold.
    pub digest: String,
}

/// How the graph was built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphFacts {
    /// The library and its version.
    pub library: String,
    /// Neighbours that an item is linked to (twice as many in the lowest layer).
    pub connections: usize,
    /// Candidates that were kept while an item's neighbours were looked for.
    pub build_effort: usize,
    /// Whether threads built it side by side, so that building it again gives other bytes.
    pub parallel: bool,
}

/// Length and digest of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileMark {
    /// Bytes.
    pub bytes: u64,
    /// BLAKE3, hexadecimal.
    pub digest: String,
}

/// How carefully the files of an index are looked at when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verify {
    /// Read them all once and compare their digests.
    #[default]
    Digests,
    /// Compare their lengths alone, for an index that nobody else can write to. A graph whose bytes
    /// were changed in place is then undefined behaviour in the library that walks it.
    Lengths,
}

impl ModelMark {
    /// The mark of a model.
    pub fn of(name: &str, model: &Model) -> Result<Self> {
        // Neither moves a vector, so they must not part the model from its index.
        let mut model = model.clone();
        (model.decision, model.training) = (None, None);
        Ok(ModelMark {
            name: name.to_owned(),
            digest: crate::digest(&model)?,
        })
    }
}

impl Manifest {
    pub(super) fn new(model: ModelMark, space: Space, rows: u64, dim: usize) -> Self {
        Manifest {
            format: FORMAT.into(),
            version: VERSION,
            model,
            space: space.to_string(),
            rows,
            dim,
            graph: None,
            code: None,
            files: BTreeMap::new(),
            digest: None,
        }
    }

    /// Read the manifest of a folder.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(MANIFEST);
        let text = std::fs::read_to_string(&path).map_err(|e| Error::io(&path, e))?;
        // The layout's version comes first: another version may have other fields.
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|e| Error::file(&path, format!("no JSON: {e}")))?;
        if value.get("format").and_then(|f| f.as_str()) != Some(FORMAT) {
            let problem = format!("expected \"format\": \"{FORMAT}\", the mark of an index");
            return Err(Error::file(&path, problem));
        }
        let version = value.get("version").and_then(serde_json::Value::as_u64);
        if version != Some(u64::from(VERSION)) {
            return Err(Error::file(
                &path,
                format!(
                    "expected version {VERSION} of the layout, but found {}: build the index again",
                    version.map_or("none".into(), |v| v.to_string())
                ),
            ));
        }
        let read: Manifest =
            serde_json::from_value(value).map_err(|e| Error::file(&path, e.to_string()))?;
        if read.digest.is_some() && read.digest != Some(read.own_digest(&path)?) {
            let problem = "its content is damaged (the digest differs): build the index again";
            return Err(Error::file(&path, problem));
        }
        Ok(read)
    }

    /// The digest of all but the digest itself.
    fn own_digest(&self, path: &Path) -> Result<String> {
        let mut rest = self.clone();
        rest.digest = None;
        let text = serde_json::to_vec(&rest).map_err(|e| Error::file(path, e.to_string()))?;
        Ok(blake3::hash(&text).to_hex().to_string())
    }

    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(MANIFEST);
        let mut whole = self.clone();
        whole.digest = Some(self.own_digest(&path)?);
        let write = || {
            let mut file = File::create(&path)?;
            serde_json::to_writer_pretty(&mut file, &whole)?;
            file.write_all(b"\n")?;
            file.sync_all()
        };
        write().map_err(|e| Error::io(&path, e))
    }

    /// The space that vectors are compared in.
    pub(super) fn space(&self, folder: &Path) -> Result<Space> {
        let space: Space = self.space.parse()?;
        space
            .check(self.dim)
            .map_err(|e| Error::file(&folder.join(MANIFEST), e.to_string()))?;
        Ok(space)
    }

    /// Compare the files with their lengths and digests. `progress` is called with the bytes read.
    pub(super) fn verify(
        &self,
        folder: &Path,
        verify: Verify,
        progress: &mut dyn FnMut(u64) -> metra::Result<()>,
    ) -> Result<()> {
        for (name, mark) in &self.files {
            let path = folder.join(name);
            // A manifest could name any file; only those beside it are its business.
            if Path::new(name).components().count() != 1 || path.file_name().is_none() {
                let problem = format!("names a file outside of the folder: {name:?}");
                return Err(Error::file(&folder.join(MANIFEST), problem));
            }
            let bytes = std::fs::metadata(&path).map_err(|e| Error::io(&path, e))?;
            if !bytes.is_file() {
                return Err(Error::file(&path, "expected a regular file"));
            }
            if bytes.len() != mark.bytes {
                let problem = format!("expected {} bytes, but found {}", mark.bytes, bytes.len());
                return Err(Error::file(&path, problem));
            }
            if verify == Verify::Digests && digest_of(&path, progress)? != mark.digest {
                return Err(Error::file(
                    &path,
                    "its bytes are not those that were written (the digest differs): build the \
                     index again",
                ));
            }
        }
        Ok(())
    }
}

/// A file that is digested while it is written.
pub(super) struct DigestedFile {
    file: BufWriter<File>,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl DigestedFile {
    pub(super) fn create(path: &Path) -> metra::Result<Self> {
        let file = File::create(path).map_err(|e| metra::Error::io(path, e))?;
        Ok(DigestedFile {
            file: BufWriter::with_capacity(1 << 20, file),
            hasher: blake3::Hasher::new(),
            bytes: 0,
        })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    /// Bytes written so far.
    pub(super) fn len(&self) -> u64 {
        self.bytes
    }

    pub(super) fn finish(self) -> std::io::Result<FileMark> {
        let file = self.file.into_inner().map_err(|e| e.into_error())?;
        file.sync_all()?;
        Ok(FileMark {
            bytes: self.bytes,
            digest: self.hasher.finalize().to_hex().to_string(),
        })
    }
}

/// Length and digest of a file that another library wrote.
pub(super) fn digest_file(
    path: &Path,
    progress: &mut dyn FnMut(u64) -> metra::Result<()>,
) -> Result<FileMark> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    let bytes = file.metadata().map_err(|e| Error::io(path, e))?.len();
    file.sync_all().map_err(|e| Error::io(path, e))?;
    let digest = digest_of(path, progress)?;
    Ok(FileMark { bytes, digest })
}

fn digest_of(path: &Path, progress: &mut dyn FnMut(u64) -> metra::Result<()>) -> Result<String> {
    let mut file = File::open(path).map_err(|e| Error::io(path, e))?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0_u8; 1 << 20];
    loop {
        let count = file.read(&mut buffer).map_err(|e| Error::io(path, e))?;
        if count == 0 {
            return Ok(hasher.finalize().to_hex().to_string());
        }
        hasher.update(&buffer[..count]);
        progress(count as u64)?;
    }
}
