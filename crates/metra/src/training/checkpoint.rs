//! How far a training is, in a file: fits that are done, and the state of the one under way. A training that
//! was ended, however it was, goes on from there and gives the model that it would have given.

use crate::data::AtomicFile;
use crate::execute::{decode, encode};
use crate::{Error, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A state is written so seldom that it takes at most this part of the time.
const SHARE: u32 = 100;

/// A file that belongs to one piece of work, and is replaced as a whole.
#[derive(Debug)]
pub struct CheckpointFile {
    path: PathBuf,
    key: [u8; 32],
}

#[derive(Serialize, Deserialize)]
struct Keyed<T> {
    key: [u8; 32],
    state: T,
}

impl CheckpointFile {
    /// The file at `path`; `key` stands for all that the course of the work depends on.
    pub fn new(path: &Path, key: [u8; 32]) -> Self {
        CheckpointFile {
            path: path.to_path_buf(),
            key,
        }
    }

    /// What was written last; `None` where there is no file.
    pub fn read<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        let wrong = |problem: &str| Error::Data(format!("{}: {problem}", self.path.display()));
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(&self.path, error)),
        };
        let whole = bytes.split_last_chunk::<32>();
        let whole = whole.filter(|(kept, digest)| blake3::hash(kept).as_bytes() == *digest);
        let damaged = "is no checkpoint, or a damaged one";
        let (kept, _) = whole.ok_or_else(|| wrong(damaged))?;
        // The key comes first: what follows may be of another kind of work.
        if kept.get(..32) != Some(&self.key[..]) {
            return Err(wrong(
                "is the checkpoint of another training (data, settings, seed or version differ): remove \
                 it, or name another file",
            ));
        }
        let kept: Keyed<T> = decode(kept).map_err(|_| wrong(damaged))?;
        Ok(Some(kept.state))
    }

    /// Replace the file.
    pub fn write<T: Serialize>(&self, state: &T) -> Result<()> {
        let key = self.key;
        let mut bytes = encode(&Keyed { key, state })?;
        let digest = blake3::hash(&bytes);
        bytes.extend_from_slice(digest.as_bytes());
        AtomicFile::write_all(&self.path, &bytes)
    }
}

/// Keeps the fits of a training. Clones are the same checkpoint.
#[derive(Debug, Clone)]
pub struct FitCheckpoint {
    file: Arc<CheckpointFile>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    fits: Fits,
    every: Duration,
    written: Instant,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Fits {
    /// What came of fits that are done, by what they depend on.
    done: BTreeMap<[u8; 32], Vec<u8>>,
    underway: Option<([u8; 32], Vec<u8>)>,
}

impl FitCheckpoint {
    /// The checkpoint at `path`, which is made if it is not there. `training` stands for all that the
    /// training depends on. The state of a fit is written `every` so often at most.
    pub(crate) fn open(path: &Path, training: &str, every: Duration) -> Result<Self> {
        let file = CheckpointFile::new(path, *blake3::hash(training.as_bytes()).as_bytes());
        let fits = file.read()?.unwrap_or_default();
        Ok(FitCheckpoint {
            file: Arc::new(file),
            state: Arc::new(Mutex::new(State {
                fits,
                every,
                written: Instant::now(),
            })),
        })
    }

    /// A panic elsewhere leaves nothing half-done in it: files are replaced as a whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fits that were done when it was opened or since.
    pub fn fits(&self) -> usize {
        self.state().fits.done.len()
    }

    /// Remove the file: the training is done.
    pub fn remove(&self) -> Result<()> {
        match std::fs::remove_file(&self.file.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::io(&self.file.path, error))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn done(&self, fit: &[u8; 32]) -> Option<Vec<u8>> {
        self.state().fits.done.get(fit).cloned()
    }

    pub(crate) fn finish(&self, fit: [u8; 32], result: Vec<u8>) -> Result<()> {
        let mut state = self.state();
        state.fits.done.insert(fit, result);
        state.fits.underway = None;
        self.write(&mut state)
    }

    pub(super) fn underway<S: DeserializeOwned>(&self, fit: &[u8; 32]) -> Result<Option<S>> {
        match &self.state().fits.underway {
            Some((kept, state)) if kept == fit => Ok(Some(decode(state)?)),
            _ => Ok(None),
        }
    }

    /// Keep the state of a fit, unless the last one was kept a moment ago.
    pub(super) fn keep(&self, fit: [u8; 32], progress: &impl Serialize) -> Result<()> {
        let mut state = self.state();
        if state.written.elapsed() < state.every {
            return Ok(());
        }
        state.fits.underway = Some((fit, encode(progress)?));
        self.write(&mut state)
    }

    fn write(&self, state: &mut State) -> Result<()> {
        let began = Instant::now();
        self.file.write(&state.fits)?;
        // Where the disk is slow, the next one waits longer.
        if !state.every.is_zero() {
            state.every = state.every.max(SHARE * began.elapsed());
        }
        state.written = Instant::now();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_training_and_damaged_bytes_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.bin");
        let open = |training| FitCheckpoint::open(&path, training, Duration::ZERO);
        let first = open("a").unwrap();
        first.keep([1; 32], &7_u32).unwrap();
        first.finish([2; 32], vec![3]).unwrap();
        first.keep([1; 32], &8_u32).unwrap();
        let again = open("a").unwrap();
        assert_eq!(again.underway::<u32>(&[1; 32]).unwrap(), Some(8));
        assert_eq!(again.underway::<u32>(&[9; 32]).unwrap(), None);
        assert_eq!((again.done(&[2; 32]), again.fits()), (Some(vec![3]), 1));
        assert!(
            open("b")
                .unwrap_err()
                .to_string()
                .contains("of another training")
        );
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[40] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(open("a").unwrap_err().to_string().contains("a damaged one"));
        again.remove().unwrap();
        assert!(!path.exists());
    }
}
