//! The files of the repository, read once. The only module here that touches the disk.
//!
//! The folder is walked instead of asking git, so that the checks also run on an unpacked archive
//! and see a file before it is added.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};

/// Folders that hold what a build or a tool makes, and never a source.
const SKIPPED_FOLDERS: &[&str] = &[
    ".git",
    "target",
    "node_modules",
    ".venv",
    "__pycache__",
    ".pytest_cache",
];

/// A file, under its path from the root with forward slashes.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
}

impl File {
    /// The content of a text file; `None` for a binary one.
    pub(crate) fn text(&self) -> Option<&str> {
        if self.bytes.contains(&0) {
            None
        } else {
            std::str::from_utf8(&self.bytes).ok()
        }
    }
}

/// The text files of these, with their paths.
pub(crate) fn texts(files: &[File]) -> Vec<(&str, &str)> {
    let texts = files.iter();
    texts
        .filter_map(|file| Some((file.path.as_str(), file.text()?)))
        .collect()
}

/// Writes a file, and makes the folders that it lies in.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::write(path, bytes).with_context(|| path.display().to_string())
}

/// Every file below `root` that could be tracked, sorted by path.
pub(crate) fn read(root: &Path) -> Result<Vec<File>> {
    let mut files = Vec::new();
    collect(root, "", &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<File>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("reading {}", folder.display()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry
            .file_type()
            .with_context(|| format!("reading {path}"))?;
        // A symbolic link is not followed: it may lead out of the repository or in a circle.
        if kind.is_dir() && !SKIPPED_FOLDERS.contains(&name.as_str()) {
            collect(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file() && !is_temporary(&name) {
            match fs::read(entry.path()) {
                Ok(bytes) => files.push(File { path, bytes }),
                // Another test may have removed its scratch file since the folder was listed.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| format!("reading {path}")),
            }
        }
    }
    Ok(())
}

/// Temporary names are those that .gitignore leaves out.
fn is_temporary(name: &str) -> bool {
    name.ends_with(".tmp")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_files_have_no_text() {
        let file = |bytes: &[u8]| File {
            path: "a".into(),
            bytes: bytes.to_vec(),
        };
        assert_eq!(file(b"plain\n").text(), Some("plain\n"));
        assert_eq!(file(b"nul\0").text(), None);
        assert_eq!(file(b"\xff\xfe").text(), None);
    }

    #[test]
    fn this_file_is_found_and_build_results_are_not() {
        let root = crate::repository_root().unwrap();
        let files = read(&root).unwrap();
        assert!(files.iter().any(|file| file.path == "xtask/src/tree.rs"));
        assert!(!files.iter().any(|file| file.path.starts_with("target/")));
        assert!(!files.iter().any(|file| file.path.starts_with(".git/")));
    }
}
