//! Valid inputs to begin with: the kept corpus, the models of the golden table, and an index made here.

use crate::index::FILES;
use metra::data::Batch;
use metra::linalg::{RowBuf, Rows};
use metra::model::{Chain, Embedding, Model, Origin, Space};
use metra_stores::index::{GraphSettings, IndexWriter};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Write all inputs of a target to a folder.
pub fn write(target: &str, folder: &Path) -> std::io::Result<()> {
    for (name, bytes) in of(target) {
        fs::write(folder.join(name), bytes)?;
    }
    Ok(())
}

/// All inputs of a target, by name and in order.
pub fn of(target: &str) -> Vec<(String, Vec<u8>)> {
    let mut found = files(
        &Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("corpus")
            .join(target),
    );
    match target {
        "model" | "model_repaired" => {
            let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/v0.1");
            let models = files(&golden).into_iter();
            found.extend(models.filter(|(name, _)| name.ends_with(".safetensors")));
        }
        "index" | "index_repaired" => {
            let folder = index_folder();
            for (number, name) in FILES.into_iter().enumerate() {
                let mut bytes = vec![number as u8];
                bytes.extend(fs::read(folder.path().join(name)).expect("a file of the index"));
                found.push((name.to_owned(), bytes));
            }
        }
        _ => {}
    }
    found
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.to_owned();
        Some((name, fs::read(&path).ok()?))
    };
    paths.into_iter().filter_map(read).collect()
}

/// A model of four columns.
pub(crate) fn model() -> Model {
    let chain = Chain::identity(4, Space::SquaredL2);
    Model::new(None, chain, Origin::default()).expect("a model")
}

/// An index of forty items with ids, labels and a graph, the same each time.
pub(crate) fn index_folder() -> TempDir {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("index");
    let model = model();
    let values: Vec<f32> = (0..160).map(|at| ((at * at) % 23) as f32 * 0.5).collect();
    let mut items = RowBuf::empty(1);
    let rows = Rows::new(&values, 4).expect("forty rows");
    (model.chain.embed_items(0, &Batch::new(rows), &mut items)).expect("mapped items");
    let mut writer = IndexWriter::create(&folder, &model, "m.safetensors").expect("an index");
    writer.push(items.rows()).expect("items");
    writer
        .ids((0..40).map(|row| format!("item-{row}")))
        .expect("ids");
    writer
        .labels((0..40).map(|row| (row % 4).to_string()))
        .expect("labels");
    let graph = GraphSettings {
        connections: 4,
        parallel: false,
        ..GraphSettings::default()
    };
    (writer.finish(Some(&graph), &mut |_, _, _| Ok(()))).expect("a folder");
    let place = tempfile::tempdir().expect("a folder");
    for name in FILES {
        fs::copy(folder.join(name), place.path().join(name)).expect("a file of the index");
    }
    place
}
