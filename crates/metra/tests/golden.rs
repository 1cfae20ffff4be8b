//! Model files of earlier versions load for ever, and map rows as they did.
//!
//! `tests/golden/v0.1` has one model of every method, the rows of a small synthetic set, and what the command
//! of that version made of them (`cargo xtask golden --models`). Values may differ in their last digits on
//! another CPU.

use metra::Model;
use metra::data::MemoryCorpus;
use metra::linalg::RowBuf;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/v0.1")
}

/// The columns v0, v1, … of the rows.
fn rows() -> MemoryCorpus {
    let text = std::fs::read_to_string(folder().join("items.csv")).unwrap();
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let first = header.iter().position(|name| *name == "v0").unwrap();
    let values = lines.flat_map(|line| {
        let values: Vec<f32> = (line.split(',').skip(first))
            .map(|value| value.parse().unwrap())
            .collect();
        values
    });
    let rows = RowBuf::from_values(values.collect(), header.len() - first).unwrap();
    MemoryCorpus::new(rows).unwrap()
}

/// The values of an npy file of f32.
fn npy(path: &Path) -> Vec<f32> {
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(&bytes[..6], b"\x93NUMPY");
    let header = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    let values = bytes[10 + header..].chunks_exact(4);
    values
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect()
}

#[test]
fn models_of_version_0_1_load_and_map_as_they_did() {
    let rows = rows();
    let mut models = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "safetensors") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let model = Model::load(&path).unwrap();
        let sides = [
            ("item", model.embed_items(&rows)),
            ("query", model.embed_queries(&rows)),
        ];
        for (side, embedded) in sides {
            let expected = npy(&folder().join(format!("{name}.{side}.npy")));
            let embedded = embedded.unwrap();
            let found = embedded.corpus().view().unwrap();
            assert_eq!(found.values().len(), expected.len(), "{name} {side}");
            let largest = expected.iter().fold(0.0_f32, |m, v| m.max(v.abs()));
            for (found, expected) in found.values().iter().zip(&expected) {
                let difference = (found - expected).abs();
                assert!(
                    difference <= 1e-5 * largest,
                    "{name} {side}: {found} {expected}"
                );
            }
        }
        models += 1;
    }
    assert_eq!(models, 31);
}
