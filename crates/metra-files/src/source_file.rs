//! Which format a file has: by its first bytes where they say it, else by its name. Compressed files
//! and standard input are copied to a temporary file first, because readers go over a file twice.

use crate::error::{Error, Result};
use crate::lines::first_line;
use crate::table::extension;
use metra::internal::{FILE_START, FileKind};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The name that stands for standard input.
const STANDARD_INPUT: &str = "-";
/// What may separate the fields of a text file, the usual one first.
const SEPARATORS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// How a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Parquet,
    /// Arrow IPC, also called Feather.
    Feather,
    Npy,
    Npz,
    JsonLines,
    /// Fields separated by this byte.
    Csv(u8),
}

/// A file in a known format.
pub(crate) struct SourceFile {
    pub(crate) format: Format,
    path: PathBuf,
    /// Where the bytes are if they had to be unpacked.
    copy: Option<NamedTempFile>,
}

impl SourceFile {
    /// Recognise a file; copies go to `folder`.
    pub(crate) fn open(path: &Path, folder: &Path) -> Result<Self> {
        let mut copy = None;
        if path.as_os_str() == STANDARD_INPUT {
            copy = Some(spool(path, folder, std::io::stdin().lock())?);
        }
        let mut name = path.to_path_buf();
        loop {
            let mut file = match &copy {
                Some(copy) => copy.reopen(),
                None => File::open(path),
            }
            .map_err(|e| Error::io(path, e))?;
            let mut start = Vec::new();
            (&mut file)
                .take(FILE_START as u64)
                .read_to_end(&mut start)
                .and_then(|_| file.seek(SeekFrom::Start(0)))
                .map_err(|e| Error::io(path, e))?;
            if start.is_empty() {
                return Err(Error::file(path, "expected vectors, but the file is empty"));
            }
            let unpacked = match FileKind::of(&start) {
                FileKind::Gzip => spool(path, folder, flate2::read::MultiGzDecoder::new(file))?,
                FileKind::Zstd => {
                    let decoder = zstd::Decoder::new(file).map_err(|e| Error::io(path, e))?;
                    spool(path, folder, decoder)?
                }
                _ => {
                    let format = recognise(path, &name, &start, file)?;
                    let path = path.to_path_buf();
                    return Ok(SourceFile { format, path, copy });
                }
            };
            if matches!(extension(&name).as_deref(), Some("gz" | "zst")) {
                name.set_extension("");
            }
            copy = Some(unpacked);
        }
    }

    /// Where the bytes are.
    pub(crate) fn path(&self) -> &Path {
        self.copy.as_ref().map_or(&self.path, NamedTempFile::path)
    }

    /// Whether the bytes are in a copy, whose name means nothing to the user.
    pub(crate) fn is_copy(&self) -> bool {
        self.copy.is_some()
    }
}

/// Copy all bytes to a temporary file.
fn spool(path: &Path, folder: &Path, mut from: impl Read) -> Result<NamedTempFile> {
    let failed = |e| Error::io(path, e);
    let mut copy = NamedTempFile::new_in(folder).map_err(failed)?;
    std::io::copy(&mut from, &mut copy).map_err(failed)?;
    copy.flush().map_err(failed)?;
    Ok(copy)
}

/// The format of a file that is not compressed.
fn recognise(path: &Path, name: &Path, start: &[u8], file: File) -> Result<Format> {
    let not_vectors = |what: &str| Err(Error::file(path, format!("expected vectors, but {what}")));
    match FileKind::of(start) {
        FileKind::Parquet => return Ok(Format::Parquet),
        FileKind::Arrow => return Ok(Format::Feather),
        FileKind::Npy => return Ok(Format::Npy),
        FileKind::Zip => return Ok(Format::Npz),
        FileKind::Bzip2 => return not_vectors("it is packed by bzip2: unpack it first"),
        FileKind::Xz => return not_vectors("it is packed by xz: unpack it first"),
        FileKind::Safetensors => {
            return not_vectors(
                "it is a model (safetensors): are the model and the vectors in the wrong order?",
            );
        }
        FileKind::Image => {
            return not_vectors("it is an image: `metra features` makes vectors of images");
        }
        FileKind::Gzip | FileKind::Zstd | FileKind::Other => {}
    }
    let extension = extension(name);
    Ok(match extension.as_deref() {
        // A damaged file, which its reader describes.
        Some("parquet") => Format::Parquet,
        Some("npy") => Format::Npy,
        Some("npz") => Format::Npz,
        Some("feather" | "arrow") => Format::Feather,
        Some("jsonl" | "ndjson" | "json") => Format::JsonLines,
        Some("csv" | "txt") => Format::Csv(separator(path, file, b',')?),
        Some("tsv") => Format::Csv(separator(path, file, b'\t')?),
        None if path.as_os_str() == STANDARD_INPUT => match start.trim_ascii_start().first() {
            Some(b'{') => Format::JsonLines,
            _ => Format::Csv(separator(path, file, b',')?),
        },
        found => {
            let found = found.map_or("no extension".into(), |found| format!(".{found}"));
            return Err(Error::file(
                path,
                format!(
                    "expected a file that ends in .parquet, .feather, .npy, .npz, .csv, .tsv or \
                     .jsonl (or one of these with .gz or .zst), but found {found}"
                ),
            ));
        }
    })
}

/// What separates the fields of the first line: what occurs most often, or the usual one.
fn separator(path: &Path, file: File, usual: u8) -> Result<u8> {
    let line = first_line(path, file)?;
    let (mut quoted, mut counts) = (false, [0_usize; SEPARATORS.len()]);
    for byte in line {
        quoted ^= byte == b'"';
        if let (false, Some(at)) = (quoted, SEPARATORS.iter().position(|s| *s == byte)) {
            counts[at] += 1;
        }
    }
    let count = |separator: u8| {
        let at = SEPARATORS.iter().position(|s| *s == separator);
        at.map_or(0, |at| counts[at])
    };
    let others = SEPARATORS.into_iter();
    Ok(
        others.fold(usual, |best, other| match count(other) > count(best) {
            true => other,
            false => best,
        }),
    )
}
