//! npz: several npy files in one archive, as `numpy.savez` writes them. The vectors are the entry that
//! is named, or the only one with two axes; labels, ids and cameras are entries too.

use crate::error::{Error, Result};
use crate::npy;
use crate::table::{ReadProgress, Table, TableOptions};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use zip::ZipArchive;

pub(crate) fn read(
    path: &Path,
    options: &TableOptions,
    progress: ReadProgress<'_>,
) -> Result<Table> {
    let folder = TempDir::new_in(&options.cache_dir).map_err(|e| Error::io(path, e))?;
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    let mut archive = ZipArchive::new(file).map_err(|e| Error::format(path, "npz", e))?;
    let names: Vec<String> = archive
        .file_names()
        .filter_map(|name| Some(name.ok()?.strip_suffix(".npy")?.to_owned()))
        .collect();
    let mut unpack = |name: &str| -> Result<PathBuf> {
        if !names.iter().any(|known| known == name) {
            return Err(Error::MissingColumn {
                path: path.to_path_buf(),
                column: name.to_owned(),
                found: names.clone(),
            });
        }
        let entry = archive.by_name(&format!("{name}.npy"));
        let mut entry = entry.map_err(|e| Error::format(path, "npz", e))?;
        // Names are anything; numbers make safe files.
        let count = std::fs::read_dir(folder.path()).map_or(0, Iterator::count);
        let target = folder.path().join(format!("{count}.npy"));
        let mut out = File::create_new(&target).map_err(|e| Error::io(path, e))?;
        std::io::copy(&mut entry, &mut out).map_err(|e| Error::io(path, e))?;
        Ok(target)
    };
    let vector = match &options.vector {
        Some(name) => unpack(name)?,
        None => {
            let mut matrices = Vec::new();
            for name in names.iter().filter(|name| !options.columns.contains(name)) {
                let file = unpack(name)?;
                if npy::axes(&file).is_ok_and(|axes| axes == 2) {
                    matrices.push((name, file));
                }
            }
            let [(_, only)] = &matrices[..] else {
                let found: Vec<&str> = matrices.iter().map(|(name, _)| name.as_str()).collect();
                let problem = format!(
                    "expected one array with two axes, but found {} ({}); name that of the vectors (--vector)",
                    found.len(),
                    found.join(", ")
                );
                return Err(Error::file(path, problem));
            };
            only.clone()
        }
    };
    let mut files = BTreeMap::new();
    for name in &options.columns {
        files.insert(unpack(name)?.to_string_lossy().into_owned(), name.clone());
    }
    let inner = TableOptions {
        vector: None,
        columns: files.keys().cloned().collect(),
        ..options.clone()
    };
    let mut table = npy::read(&vector, &inner, progress).map_err(|e| e.in_file(path))?;
    table.path = path.to_path_buf();
    table.columns = std::mem::take(&mut table.columns)
        .into_iter()
        .map(|(file, column)| (files.remove(&file).unwrap_or(file), column))
        .collect();
    Ok(table)
}
