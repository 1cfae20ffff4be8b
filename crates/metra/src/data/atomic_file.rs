//! Files and folders that appear under their names only when they are whole.
//!
//! They are written beside their place, flushed to the disk and renamed, and then the folder around them is flushed, so
//! that nobody ever reads half a file, an interrupted command leaves the old one as it was, and a new one
//! outlives a loss of power.

use crate::{Error, Result};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tempfile::{NamedTempFile, TempDir};

/// What the names of unfinished files begin and end with.
const PREFIX: &str = ".metra-";
const SUFFIX: &str = ".part";
/// Age from which an unfinished file that nobody holds is left over: one that was just made may not be
/// locked yet.
const LEFT_OVER: Duration = Duration::from_secs(60);

/// A file that appears under its name only when it is whole.
pub struct AtomicFile {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl AtomicFile {
    /// Begin to write what will lie at `path`.
    pub fn create(path: &Path) -> Result<Self> {
        let folder = folder_of(path);
        sweep_once(folder);
        let made = named_beside(0o666, |builder| builder.tempfile_in(folder));
        let file = made.map_err(|e| Error::io(path, e))?;
        // The lock ends with the process, however it ends. Where files cannot be locked, nothing is swept.
        let _ = file.as_file().try_lock();
        Ok(AtomicFile {
            file: BufWriter::with_capacity(1 << 20, file),
            path: path.to_path_buf(),
        })
    }

    /// Write a whole file.
    pub fn write_all(path: &Path, bytes: &[u8]) -> Result<()> {
        let mut file = Self::create(path)?;
        Write::write_all(&mut file, bytes).map_err(|e| Error::io(path, e))?;
        file.finish()
    }

    /// Put the file in its place, once its bytes are on the disk.
    pub fn finish(self) -> Result<()> {
        let path = self.path;
        let finish = |file: BufWriter<NamedTempFile>| {
            let file = file.into_inner().map_err(|e| e.into_error())?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|e| e.error)?;
            flush_folder(folder_of(&path))
        };
        finish(self.file).map_err(|e| Error::io(&path, e))
    }
}

/// A folder that appears under its name only when it is whole. Its files are flushed by whoever writes them.
pub struct AtomicFolder {
    building: TempDir,
    path: PathBuf,
    /// Held until the process ends, however it ends.
    _lock: Option<File>,
}

impl AtomicFolder {
    /// Begin to fill what will be the folder `path`, where nothing may be yet.
    pub fn create(path: &Path) -> Result<Self> {
        if path.symlink_metadata().is_ok() {
            return Err(Error::Data(format!(
                "{}: expected no such file or folder yet: remove it or choose another name",
                path.display()
            )));
        }
        let parent = folder_of(path);
        sweep_once(parent);
        let made = named_beside(0o777, |builder| builder.tempdir_in(parent));
        let building = made.map_err(|e| Error::io(parent, e))?;
        let lock = File::open(building.path()).ok();
        if let Some(lock) = &lock {
            let _ = lock.try_lock();
        }
        Ok(AtomicFolder {
            building,
            path: path.to_path_buf(),
            _lock: lock,
        })
    }

    /// Where its files are written.
    pub fn path(&self) -> &Path {
        self.building.path()
    }

    /// Give it its name.
    pub fn finish(self) -> Result<()> {
        let rename = || {
            flush_folder(self.building.path())?;
            std::fs::rename(self.building.path(), &self.path)?;
            flush_folder(folder_of(&self.path))
        };
        rename().map_err(|e| Error::io(&self.path, e))?;
        // It has another name now; there is nothing left to remove.
        let _ = self.building.keep();
        Ok(())
    }
}

/// Something with a name for what is unfinished. Temporary files are private by default; a result is as open as
/// the user's other files.
fn named_beside<T>(
    mode: u32,
    make: impl FnOnce(&tempfile::Builder<'_, '_>) -> std::io::Result<T>,
) -> std::io::Result<T> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(mode));
    }
    #[cfg(not(unix))]
    let _ = mode;
    make(&builder)
}

/// Flush a folder to the disk, so that names that were given in it stay.
fn flush_folder(folder: &Path) -> std::io::Result<()> {
    // Elsewhere folders cannot be opened as files.
    match cfg!(unix) {
        true => File::open(folder)?.sync_all(),
        false => Ok(()),
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Remove what a process that was killed left in a folder; once for every folder.
fn sweep_once(folder: &Path) {
    static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if swept.insert(folder.to_path_buf()) {
        sweep(folder, LEFT_OVER);
    }
}

/// Whatever cannot be looked at or removed stays: it is in nobody's way.
fn sweep(folder: &Path, age: Duration) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with(PREFIX) || !name.ends_with(SUFFIX) {
            continue;
        }
        let modified = entry.metadata().and_then(|found| found.modified());
        let is_old = modified.is_ok_and(|at| at.elapsed().is_ok_and(|passed| passed >= age));
        // What can be locked is held by no process that writes it.
        if !is_old || !File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            continue;
        }
        let _ = match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            true => std::fs::remove_dir_all(entry.path()),
            false => std::fs::remove_file(entry.path()),
        };
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_swept_and_what_is_written_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join(".metra-abcdef.part");
        let foreign = folder.path().join(".metra-notes.txt");
        std::fs::write(&left, "half").unwrap();
        std::fs::write(&foreign, "mine").unwrap();
        let half = folder.path().join(".metra-ghijkl.part");
        std::fs::create_dir(&half).unwrap();
        std::fs::write(half.join("vectors"), "half").unwrap();
        let writing = AtomicFile::create(&folder.path().join("a")).unwrap();
        let filling = AtomicFolder::create(&folder.path().join("b")).unwrap();
        assert!(left.exists() && half.exists(), "they are too young");
        sweep(folder.path(), Duration::ZERO);
        assert!(!left.exists() && !half.exists() && foreign.exists());
        writing.finish().unwrap();
        std::fs::write(filling.path().join("c"), "whole").unwrap();
        filling.finish().unwrap();
        assert!(folder.path().join("a").exists() && folder.path().join("b/c").exists());
        assert!(AtomicFolder::create(&folder.path().join("b")).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}
