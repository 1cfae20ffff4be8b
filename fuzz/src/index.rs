//! Folders of a local index: the first byte says which file of a valid folder the other bytes replace.

use crate::{Outcome, Reading, seeds};
use metra::data::MemoryCorpus;
use metra::linalg::RowBuf;
use metra_stores::index::{Ask, LocalIndex, Verify};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use tempfile::TempDir;

/// Files of an index; the manifest comes first.
pub(crate) const FILES: [&str; 5] = [
    "index.json",
    "vectors.f32",
    "ids.text",
    "labels.text",
    "graph.usearch",
];

struct Folder {
    place: TempDir,
    whole: Vec<Vec<u8>>,
}

static FOLDER: LazyLock<Folder> = LazyLock::new(|| {
    let place = seeds::index_folder();
    let whole = FILES.map(|name| fs::read(place.path().join(name)).expect("a file of the index"));
    Folder {
        place,
        whole: whole.to_vec(),
    }
});

pub(crate) fn index(bytes: &[u8]) -> Outcome {
    read(bytes, false)
}

/// As [`index`], after lengths and digests were made to fit: what somebody would do who forges a folder.
pub(crate) fn repaired(bytes: &[u8]) -> Outcome {
    read(bytes, true)
}

fn read(bytes: &[u8], repair: bool) -> Outcome {
    let (&first, content) = bytes.split_first()?;
    let changed = first as usize % FILES.len();
    let folder = FOLDER.place.path();
    let write = |file: usize, bytes: &[u8]| {
        fs::write(folder.join(FILES[file]), bytes).expect("a file of the index");
    };
    match (repair, changed) {
        (false, _) => write(changed, content),
        (true, 0) => write(0, &without_own_digest(content)),
        (true, _) => {
            write(changed, content);
            write(0, &with_digest(&FOLDER.whole[0], FILES[changed], content));
        }
    }
    let outcome = search(folder);
    write(changed, &FOLDER.whole[changed]);
    write(0, &FOLDER.whole[0]);
    outcome
}

fn with_digest(manifest: &[u8], name: &str, content: &[u8]) -> Vec<u8> {
    let mut manifest: Value = serde_json::from_slice(manifest).expect("a manifest");
    let digest = blake3::hash(content).to_hex();
    manifest["files"][name] = json!({"bytes": content.len(), "digest": digest.as_str()});
    without_own_digest(&serde_json::to_vec(&manifest).expect("a manifest"))
}

/// The first indexes had none for the manifest itself.
fn without_own_digest(manifest: &[u8]) -> Vec<u8> {
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(manifest) else {
        return manifest.to_vec();
    };
    fields.remove("digest");
    serde_json::to_vec(&fields).expect("a manifest")
}

fn search(folder: &Path) -> Outcome {
    let index = LocalIndex::open(folder, Verify::Digests, &mut |_, _, _| Ok(())).ok()?;
    let mut reading = Reading::default();
    let dim = index.manifest().dim;
    if dim > 1 << 16 {
        return None;
    }
    let values = (0..3 * dim).map(|at| (at % 5) as f32).collect();
    let queries = MemoryCorpus::new(RowBuf::from_values(values, dim).expect("three rows"));
    let queries = queries.expect("finite queries");
    for ask in [Ask::Exact, Ask::Approximate { effort: 20 }] {
        match index.search(&queries, 5, ask) {
            Ok(found) => {
                for (id, score) in found.ids.iter().zip(&found.scores) {
                    let label = index.label(*id).ok()?.unwrap_or_default();
                    reading.text(&format!("{} {label} {score}", index.id(*id).ok()?));
                }
            }
            // A graph is looked at when it is asked for.
            Err(_) => return None,
        }
    }
    reading.text(&serde_json::to_string(index.manifest()).expect("a manifest"));
    reading.done()
}
