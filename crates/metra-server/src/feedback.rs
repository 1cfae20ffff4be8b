//! The log of feedback: a sample of what was shown and clicked, in the form that `metra clicks` reads, in bounded space.

use crate::options::FeedbackOptions;
use crate::refusal::Refusal;
use crate::{Error, Result};
use serde::Serialize;
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// One session of a query.
#[derive(Serialize)]
pub(crate) struct Session<'a> {
    pub(crate) query: &'a str,
    pub(crate) shown: &'a [String],
    pub(crate) clicked: &'a [String],
}

/// The log, and the one before it.
pub(crate) struct FeedbackLog {
    path: PathBuf,
    share: f64,
    most: u64,
    /// Draws the sample: another one after every start.
    seed: [u8; 32],
    file: Mutex<Option<(File, u64)>>,
}

impl FeedbackLog {
    /// Open the log; what is in it stays.
    pub(crate) fn open(options: &FeedbackOptions) -> Result<Self> {
        let drawn = || RandomState::new().build_hasher().finish().to_le_bytes();
        let mut seed = [0; 32];
        seed.chunks_exact_mut(8)
            .for_each(|part| part.copy_from_slice(&drawn()));
        let log = FeedbackLog {
            path: options.file.clone(),
            share: options.share,
            most: options.bytes,
            seed,
            file: Mutex::new(None),
        };
        for path in [&log.path, &log.earlier()] {
            check_own(path)?;
        }
        let opened = log.append().map_err(|e| Error::io(&log.path, e))?;
        *log.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
        Ok(log)
    }

    /// Open the file, which no other process may write, without the line that somebody who was killed left half written.
    fn append(&self) -> std::io::Result<(File, u64)> {
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(&self.path)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => std::io::Error::other("another process writes this log"),
            TryLockError::Error(error) => error,
        })?;
        let bytes = whole_lines(&mut file)?;
        if bytes < file.metadata()?.len() {
            file.set_len(bytes)?;
        }
        Ok((file, bytes))
    }

    /// Where the log is moved to when it is full.
    fn earlier(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".1");
        name.into()
    }

    /// Write a session if it belongs to the sample. Returns whether it was written: the same session has the same fate, so that nobody gets
    /// it written by saying it again.
    pub(crate) fn write(&self, session: &Session<'_>) -> Result<bool, Refusal> {
        let mut line = serde_json::to_vec(session).map_err(|e| Refusal::internal(e.to_string()))?;
        let drawn = blake3::keyed_hash(&self.seed, &line);
        let drawn = u32::from_le_bytes(*drawn.as_bytes().first_chunk().unwrap_or(&[0; 4]));
        if f64::from(drawn) >= self.share * 2_f64.powi(32) {
            return Ok(false);
        }
        line.push(b'\n');
        self.append_line(&line).map_err(|error| {
            tracing::error!("{}: {error}", self.path.display());
            Refusal::internal("the feedback could not be written; the server's log says why")
        })?;
        Ok(true)
    }

    fn append_line(&self, line: &[u8]) -> std::io::Result<()> {
        let mut slot = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, bytes) = match slot.take() {
            Some(open) => open,
            None => self.append()?,
        };
        let (mut file, bytes) = match bytes > 0 && bytes + line.len() as u64 > self.most {
            true => {
                std::fs::rename(&self.path, self.earlier())?;
                self.append()?
            }
            false => (file, bytes),
        };
        if let Err(error) = file.write_all(line) {
            // On a full disk half a line would spoil the next one.
            let _ = file.set_len(bytes);
            return Err(error);
        }
        *slot = Some((file, bytes + line.len() as u64));
        Ok(())
    }
}

/// How every line begins.
const START: &[u8] = br#"{"query":"#;

/// An error where there is another file than a log of ours: the end of a log is cut where a line is half written, and the earlier log is
/// replaced.
fn check_own(path: &Path) -> Result<()> {
    let mut start = Vec::new();
    let read = match File::open(path) {
        Ok(file) => file.take(START.len() as u64).read_to_end(&mut start),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => Err(error),
    };
    read.map_err(|e| Error::io(path, e))?;
    match START.starts_with(&start) {
        true => Ok(()),
        false => Err(Error::file(
            path,
            "expected no file, or a log of feedback that a server wrote, but found another file",
        )),
    }
}

/// Bytes up to the end of the last line. A line has at most some hundred thousand.
fn whole_lines(file: &mut File) -> std::io::Result<u64> {
    let all = file.metadata()?.len();
    let from = all.saturating_sub(1 << 21);
    file.seek(SeekFrom::Start(from))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    let last = end.iter().rposition(|byte| *byte == b'\n');
    Ok(match last {
        Some(last) => from + last as u64 + 1,
        None if from == 0 => 0,
        None => all,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(folder: &std::path::Path, share: f64, bytes: u64) -> FeedbackLog {
        let file = folder.join("clicks.jsonl");
        FeedbackLog::open(&FeedbackOptions { file, share, bytes }).unwrap()
    }

    fn write(log: &FeedbackLog, number: u64) -> bool {
        let (shown, clicked) = (["a".to_owned(), "b".to_owned()], ["b".to_owned()]);
        let session = Session {
            query: &format!("\"{number}"),
            shown: &shown,
            clicked: &clicked,
        };
        log.write(&session).unwrap()
    }

    #[test]
    fn other_files_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clicks.jsonl");
        let options = FeedbackOptions {
            file: path.clone(),
            share: 1.0,
            bytes: 1_000,
        };
        let others: [&[u8]; 3] = [b"{\n  \"a\": 1\n}", b"\x10\0\0\0\n\0", b"q\ta\t1"];
        for earlier in [false, true] {
            let name = if earlier {
                "clicks.jsonl.1"
            } else {
                "clicks.jsonl"
            };
            let found = folder.path().join(name);
            for other in others {
                std::fs::write(&found, other).unwrap();
                let error = FeedbackLog::open(&options).err().unwrap().to_string();
                assert!(error.contains("found another file"), "{error}");
                assert_eq!(std::fs::read(&found).unwrap(), other);
            }
            std::fs::remove_file(&found).unwrap();
        }
        // An empty file, and a line that was hardly begun, are ours.
        for own in [&b""[..], b"{\"qu"] {
            std::fs::write(&path, own).unwrap();
            assert!(write(&FeedbackLog::open(&options).unwrap(), 1));
            assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
        }
    }

    #[test]
    fn a_share_is_written_in_bounded_space() {
        let folder = tempfile::tempdir().unwrap();
        let part = log(folder.path(), 0.25, 1 << 20);
        let written = (0..4_000).filter(|number| write(&part, *number)).count();
        assert!((850..1_150).contains(&written), "{written}");
        let text = std::fs::read_to_string(&part.path).unwrap();
        assert_eq!(text.lines().count(), written);
        let again = (0..4_000).filter(|number| write(&part, *number)).count();
        assert_eq!(again, written);
        let options = |share, bytes| FeedbackOptions {
            file: part.path.clone(),
            share,
            bytes,
        };
        let second = FeedbackLog::open(&options(1.0, 1_000))
            .err()
            .unwrap()
            .to_string();
        assert!(second.contains("another process"), "{second}");
        drop(part);
        // Opened again with less space, all of it goes on.
        let all = log(folder.path(), 1.0, 1_000);
        assert!((0..100).all(|number| write(&all, number)));
        let size = |path: PathBuf| std::fs::metadata(path).unwrap().len();
        assert!(size(all.path.clone()) <= 1_000 && size(all.earlier()) <= 1_000);
        // Half a line of somebody who was killed.
        let path = all.path.clone();
        let before = std::fs::read(&path).unwrap();
        drop(all);
        std::fs::write(&path, [&before[..], b"{\"query\": \"q"].concat()).unwrap();
        let all = log(folder.path(), 1.0, 1_000);
        assert_eq!(std::fs::read(&path).unwrap(), before);
        let counts = metra_files::read_clicks(&all.path, &mut |_| Ok(())).unwrap();
        assert!(counts.relevance(&Default::default()).is_ok());
    }
}
