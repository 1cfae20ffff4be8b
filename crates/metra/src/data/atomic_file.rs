//! A file that appears under its name only when it is whole.
//!
//! It is written beside its place and renamed at the end, so nobody ever reads half a file and an
//! interrupted command leaves the old one as it was.

use crate::{Error, Result};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file that appears under its name only when it is whole.
pub struct AtomicFile {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl AtomicFile {
    /// Begin to write what will lie at `path`.
    pub fn create(path: &Path) -> Result<Self> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".metra-").suffix(".part");
        // Temporary files are private by default; a result is as open as the user's other files.
        #[cfg(unix)]
        let permissions = {
            use std::os::unix::fs::PermissionsExt;
            std::fs::Permissions::from_mode(0o666)
        };
        #[cfg(unix)]
        builder.permissions(permissions);
        let file = (builder.tempfile_in(folder)).map_err(|e| Error::io(path, e))?;
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
            file.persist(&path).map_err(|e| e.error)
        };
        finish(self.file).map_err(|e| Error::io(&path, e))?;
        Ok(())
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
