//! The model file: valid safetensors with one metadata key of canonical JSON and one digest over
//! everything. The format is written down in `docs/formats/model.md`.
//!
//! A file is untrusted: lengths are checked before anything is allocated, the digest before
//! anything is believed, and the parts' meaning before a model exists.

mod header;
mod read;
#[cfg(test)]
mod tests;
mod write;

use super::trained_model::Model;
use crate::data::{AtomicFile, FileKind};
use crate::{Error, Result};
use header::{FORMAT, Header};
use read::{Tensors, broken, build};
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensors, serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The one metadata key: the library keeps metadata in a map without order, and a second key would
/// make the file's bytes depend on it.
const KEY: &str = "metra";
/// Headers hold a few tensors' names and the settings; 4 MB is far beyond any of ours.
const MAX_HEADER: u64 = 4 << 20;
const MAX_TENSORS: usize = 256;
const MAX_FILE: u64 = 64 << 30;

impl Model {
    /// The bytes of the model file. The same model gives the same bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let (mut header, tensors) = write::parts(self);
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
