//! Weights of ranked lists in JSON: `{"format": 1, "scale": "z-score", "lists": [{"name": "dense", "weight": 0.7}, …], …}`.
//! Other top-level keys, such as what the weights were learned from, are for people and ignored.

use crate::error::{Error, Result};
use metra::internal::AtomicFile;
use metra::search::{Fusion, ScoreScale};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// Version of the form.
const FORMAT: u32 = 1;
/// Some thousand lists with their names; more is another file.
const MOST_BYTES: u64 = 1 << 20;

/// A fusion with the names of its lists.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedFusion {
    /// One name a weight.
    pub names: Vec<String>,
    /// Scale and weights.
    pub fusion: Fusion,
}

/// What weights were learned from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FusionOrigin {
    /// Judged queries.
    pub queries: usize,
    /// Seed of the folds, by which nothing but the evaluation depends.
    pub seed: u64,
    /// Version of what learned them.
    pub version: &'static str,
}

#[derive(Serialize, Deserialize)]
struct FusionFile {
    format: u32,
    scale: ScoreScale,
    lists: Vec<WeightedList>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WeightedList {
    name: String,
    weight: f64,
}

#[derive(Serialize)]
struct WrittenFusion<'a> {
    #[serde(flatten)]
    file: FusionFile,
    learned_from: &'a FusionOrigin,
}

/// Read weights. Names that stand twice, weights below 0 and weights that are all 0 are errors.
pub fn read_fusion(path: &Path) -> Result<NamedFusion> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    let mut text = Vec::new();
    let read = file.take(MOST_BYTES + 1).read_to_end(&mut text);
    read.map_err(|e| Error::io(path, e))?;
    if text.len() as u64 > MOST_BYTES {
        let problem =
            format!("expected weights in at most {MOST_BYTES} bytes of JSON, but found more");
        return Err(Error::file(path, problem));
    }
    let found: FusionFile =
        serde_json::from_slice(&text).map_err(|e| Error::format(path, "weights in JSON", e))?;
    if found.format != FORMAT {
        let problem = format!(
            "its format is {}, but this version reads format {FORMAT}",
            found.format
        );
        return Err(Error::file(path, problem));
    }
    let (names, weights): (Vec<String>, Vec<f64>) = found
        .lists
        .into_iter()
        .map(|list| (list.name, list.weight))
        .unzip();
    let mut known = BTreeSet::new();
    if let Some(name) = names.iter().find(|name| !known.insert(*name)) {
        let problem = format!("expected every list once, but found {name:?} twice");
        return Err(Error::file(path, problem));
    }
    let fusion = Fusion::new(found.scale, weights).map_err(|e| Error::metra(path, e))?;
    Ok(NamedFusion { names, fusion })
}

/// Write weights, as shares of their sum.
pub fn write_fusion(path: &Path, fusion: &NamedFusion, origin: &FusionOrigin) -> Result<()> {
    let weights = fusion.fusion.weights();
    let sum: f64 = weights.iter().sum();
    let lists = fusion
        .names
        .iter()
        .zip(weights)
        .map(|(name, weight)| WeightedList {
            name: name.clone(),
            weight: weight / sum,
        });
    let written = WrittenFusion {
        file: FusionFile {
            format: FORMAT,
            scale: fusion.fusion.scale(),
            lists: lists.collect(),
        },
        learned_from: origin,
    };
    let text =
        serde_json::to_string_pretty(&written).map_err(|e| Error::format(path, "JSON", e))?;
    let mut target = AtomicFile::create(path).map_err(|e| Error::metra(path, e))?;
    writeln!(target, "{text}").map_err(|e| Error::io(path, e))?;
    target.finish().map_err(|e| Error::metra(path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_come_back_as_shares() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.json");
        let fusion = NamedFusion {
            names: vec!["dense".into(), "bm25".into()],
            fusion: Fusion::new(ScoreScale::ZScore, vec![6.0, 2.0]).unwrap(),
        };
        let origin = FusionOrigin {
            queries: 300,
            seed: 1,
            version: "0",
        };
        write_fusion(&path, &fusion, &origin).unwrap();
        let found = read_fusion(&path).unwrap();
        assert_eq!(found.names, fusion.names);
        assert_eq!(found.fusion.scale(), ScoreScale::ZScore);
        assert_eq!(found.fusion.weights(), [0.75, 0.25]);
    }

    #[test]
    fn wrong_weights_say_what_is_wrong() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            read_fusion(file.path()).unwrap_err().to_string()
        };
        let of = |format: u32, lists: &str| {
            format!(r#"{{"format": {format}, "scale": "raw", "lists": [{lists}], "note": 1}}"#)
        };
        let list = r#"{"name": "a", "weight": 1.0}"#;
        assert!(error(&of(2, list)).contains("its format is 2"));
        assert!(error(&of(1, &format!("{list}, {list}"))).contains("found \"a\" twice"));
        assert!(error(&of(1, r#"{"name": "a", "weight": -1}"#)).contains("weights must be finite"));
        assert!(error(&of(1, "")).contains("weights must be finite"));
        assert!(
            error(r#"{"format": 1, "scale": "borda", "lists": []}"#).contains("weights in JSON")
        );
        assert!(error(&" ".repeat(MOST_BYTES as usize + 1)).contains("but found more"));
    }
}
