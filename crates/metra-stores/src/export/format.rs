//! Formats by name and by the ending of a file, and the files of a map alone.

use super::map::{Export, bias, write_error};
use super::safetensors::write_sentence_transformers;
use super::{write_header, write_onnx, write_safetensors};
use crate::bytes::little_endian;
use crate::{Error, Result};
use metra::internal::{AtomicFile, npy_header};
use metra::linalg::Rows;
use serde::Serialize;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What a map can be exported as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A file of the map alone, which compares nothing.
    Map(MapFormat),
    /// An index file whose vectors are mapped on their way in.
    Faiss,
    /// A query for pgvector, and a function that maps it in the database.
    Sql,
}

/// A file of the map alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapFormat {
    /// A model with the input `vector` and the output `embedding`.
    Onnx,
    /// The matrix; its offset, if there is one, in a second file NAME.offset.npy.
    Npy,
    /// The tensors `weight` and `bias`, as torch.nn.Linear loads them.
    Safetensors,
    /// A folder that sentence-transformers loads as a module `Dense`.
    SentenceTransformers,
    /// A C header with the matrix and a function.
    C,
}

/// Names and endings of files.
const FORMATS: [(&str, &[&str], Format); 7] = [
    ("onnx", &["onnx"], Format::Map(MapFormat::Onnx)),
    ("npy", &["npy"], Format::Map(MapFormat::Npy)),
    (
        "safetensors",
        &["safetensors"],
        Format::Map(MapFormat::Safetensors),
    ),
    (
        "sentence-transformers",
        &[],
        Format::Map(MapFormat::SentenceTransformers),
    ),
    ("c", &["h"], Format::Map(MapFormat::C)),
    ("faiss", &["faiss", "index"], Format::Faiss),
    ("sql", &["sql"], Format::Sql),
];

impl Format {
    /// The format that a file's name says.
    pub fn of_path(path: &Path) -> Result<Self> {
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("");
        let known = FORMATS
            .iter()
            .find(|(_, endings, _)| endings.contains(&ending));
        known.map(|(.., format)| *format).ok_or_else(|| {
            let endings: Vec<String> = (FORMATS.iter())
                .filter_map(|(_, endings, _)| endings.first().map(|e| format!(".{e}")))
                .collect();
            let problem = format!(
                "expected a name that ends in {}, or the format beside it (--to, in Python format=): {}",
                endings.join(", "),
                names()
            );
            Error::file(path, problem)
        })
    }
}

fn names() -> String {
    let names: Vec<&str> = FORMATS.iter().map(|(name, ..)| *name).collect();
    names.join(", ")
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = FORMATS.iter().find(|(name, ..)| *name == text);
        known.map(|(.., format)| *format).ok_or_else(|| {
            metra::Error::parameter("format", format!("one of {}", names()), text).into()
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = FORMATS.iter().find(|(.., format)| format == self);
        f.write_str(known.map_or("", |(name, ..)| name))
    }
}

impl Serialize for Format {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl MapFormat {
    /// Write the map; the files that were written. `name` is what names in a C header begin with.
    pub fn write(self, path: &Path, export: &Export, name: &str) -> Result<Vec<PathBuf>> {
        match self {
            MapFormat::Npy => return write_npy(path, export),
            MapFormat::SentenceTransformers => write_sentence_transformers(path, export)?,
            MapFormat::Onnx | MapFormat::Safetensors | MapFormat::C => {
                let mut target = AtomicFile::create(path)?;
                match self {
                    MapFormat::Onnx => write_onnx(&mut target, export)?,
                    MapFormat::Safetensors => write_safetensors(&mut target, export)?,
                    _ => write_header(&mut target, export, name)?,
                }
                target.finish()?;
            }
        }
        Ok(vec![path.to_owned()])
    }
}

/// The matrix, and in a second file what is added after it, where there is something.
fn write_npy(path: &Path, export: &Export) -> Result<Vec<PathBuf>> {
    let map = export.matrix("an npy file")?;
    write_rows(path, map.weights())?;
    if map.offset().is_none() {
        return Ok(vec![path.to_owned()]);
    }
    let beside = path.with_extension("offset.npy");
    let bias = bias(&map);
    write_rows(&beside, Rows::new(&bias, bias.len())?)?;
    Ok(vec![path.to_owned(), beside])
}

fn write_rows(path: &Path, rows: Rows<'_>) -> Result<()> {
    let mut target = AtomicFile::create(path)?;
    let mut put =
        |bytes: &[u8]| (target.write_all(bytes)).map_err(|error| write_error("an npy file", error));
    put(&npy_header("<f4", rows.len() as u64, rows.dim()))?;
    put(&little_endian(rows.values()))?;
    Ok(target.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_their_names_and_endings() {
        for (name, endings, format) in FORMATS {
            assert_eq!(name.parse::<Format>().unwrap(), format);
            assert_eq!(format.to_string(), name);
            for ending in endings {
                let path = PathBuf::from(format!("m.{ending}"));
                assert_eq!(Format::of_path(&path).unwrap(), format);
            }
        }
        let unknown = Format::of_path(Path::new("m.txt")).unwrap_err().to_string();
        assert!(unknown.contains(".onnx, .npy, .safetensors, .h, .faiss, .sql"));
        assert!("txt".parse::<Format>().is_err());
    }
}
