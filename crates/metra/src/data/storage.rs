//! The memory limit for computed vectors, and the folder for the memory-mapped files beyond it.

use std::path::PathBuf;

/// How much memory a corpus may take and where it goes when it is larger.
#[derive(Debug, Clone)]
pub struct Storage {
    /// Bytes that one corpus may take in memory.
    pub memory: u64,
    /// Folder for files that are mapped instead.
    pub folder: PathBuf,
}

impl Default for Storage {
    fn default() -> Self {
        Storage {
            memory: 1 << 30,
            folder: std::env::temp_dir(),
        }
    }
}
