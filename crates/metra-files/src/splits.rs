//! Splits in JSON: `{"by": "label", "splits": [{"train": [1, 2], "test": [3]}, …]}`. Entries are
//! whole numbers or texts; other top-level keys, such as a note, are for people and ignored.

use crate::error::{Error, Result};
use metra::data::{Split, SplitKind, SplitSet};
use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Read splits. An empty list of splits and an empty side are errors.
pub fn read_splits(path: &Path) -> Result<SplitSet> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    let found: SplitFile = serde_json::from_reader(BufReader::new(file))
        .map_err(|e| Error::format(path, "splits in JSON", e))?;
    if found.splits.is_empty() {
        return Err(Error::file(path, "expected at least 1 split, but found 0"));
    }
    let mut splits = Vec::with_capacity(found.splits.len());
    for (number, split) in found.splits.into_iter().enumerate() {
        for (side, entries) in [("train", &split.train), ("test", &split.test)] {
            if entries.is_empty() {
                let problem = format!("split {number}: expected entries in {side:?}, found none");
                return Err(Error::file(path, problem));
            }
        }
        let text = |entries: Vec<Entry>| entries.into_iter().map(|e| e.0).collect();
        splits.push(Split {
            train: text(split.train),
            test: text(split.test),
        });
    }
    Ok(SplitSet {
        by: match found.by {
            By::Label => SplitKind::Label,
            By::Row => SplitKind::Row,
            By::Query => SplitKind::Query,
        },
        splits,
    })
}

#[derive(Deserialize)]
struct SplitFile {
    by: By,
    splits: Vec<SplitEntries>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum By {
    Label,
    Row,
    Query,
}

#[derive(Deserialize)]
struct SplitEntries {
    train: Vec<Entry>,
    test: Vec<Entry>,
}

/// A whole number or a text, as text.
struct Entry(String);

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntryVisitor;

        impl Visitor<'_> for EntryVisitor {
            type Value = Entry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number or a text")
            }

            fn visit_i64<E>(self, value: i64) -> Result<Entry, E> {
                Ok(Entry(value.to_string()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Entry, E> {
                Ok(Entry(value.to_string()))
            }

            fn visit_str<E>(self, value: &str) -> Result<Entry, E> {
                Ok(Entry(value.to_owned()))
            }
        }

        deserializer.deserialize_any(EntryVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SplitSet> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read_splits(file.path())
    }

    #[test]
    fn numbers_and_texts_are_entries() {
        let set = read(
            r#"{"by":"query","note":"n","splits":[{"train":[1,"a"],"test":[-3],"seed":1},
               {"train":["b"],"test":[2]}]}"#,
        )
        .unwrap();
        assert_eq!((set.by, set.splits.len()), (SplitKind::Query, 2));
        assert_eq!(set.splits[0].train, ["1", "a"]);
        assert_eq!(set.splits[0].test, ["-3"]);
    }

    #[test]
    fn bad_splits_are_named() {
        for (text, expected) in [
            (r#"{"by":"pair","splits":[]}"#, "unknown variant `pair`"),
            (r#"{"by":"row","splits":[]}"#, "at least 1 split"),
            (
                r#"{"by":"row","splits":[{"train":[1.5],"test":[1]}]}"#,
                "a whole number or a text",
            ),
            (
                r#"{"by":"row","splits":[{"train":[1],"test":[]}]}"#,
                "split 0: expected entries",
            ),
            (
                r#"{"by":"row","splits":[{"train":[1]}]}"#,
                "missing field `test`",
            ),
            ("", "EOF"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
