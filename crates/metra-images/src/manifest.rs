//! Lists of images as CSV: a column `path`, and others that are kept beside the features.
//!
//! Paths are relative to the list's own folder, so that list and images can be moved together. Files that
//! end in `.tsv` have tabs between fields.

use crate::list::{ImageEntry, List, Unmatched};
use crate::pattern::Pattern;
use crate::{Error, Result};
use std::path::{Path, PathBuf};

impl List {
    /// The images of a list, in its order, with its columns and then the fields of the pattern, which is
    /// held against the paths as they are written.
    pub fn from_manifest(
        manifest: &Path,
        pattern: Option<&Pattern>,
        unmatched: Unmatched,
    ) -> Result<Self> {
        let wrong = |problem: String| Error::file(manifest, problem);
        let tabs = manifest.extension().is_some_and(|ending| ending == "tsv");
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(if tabs { b'\t' } else { b',' })
            .trim(csv::Trim::Headers)
            .from_path(manifest)
            .map_err(|error| wrong(error.to_string()))?;
        let header = reader.headers().map_err(|error| wrong(error.to_string()))?;
        // Some editors put a mark before the first name.
        let names: Vec<String> = (header.iter())
            .map(|name| name.trim_start_matches('\u{feff}').to_owned())
            .collect();
        let Some(place) = names.iter().position(|name| name == "path") else {
            let problem = format!("expected a column \"path\", found {}", names.join(", "));
            return Err(wrong(problem));
        };
        let fields: Vec<&String> = names.iter().filter(|name| *name != "path").collect();
        let found = pattern
            .into_iter()
            .flat_map(Pattern::names)
            .map(str::to_owned);
        let fields: Vec<String> = fields.into_iter().cloned().chain(found).collect();
        for (place, name) in fields.iter().enumerate() {
            if name == "vector" || name.is_empty() || fields[..place].contains(name) {
                let problem = format!(
                    "expected columns of different names other than \"vector\", found {name:?}"
                );
                return Err(wrong(problem));
            }
        }
        let folder = manifest.parent().unwrap_or(Path::new(""));
        let mut list = List {
            fields,
            ..List::default()
        };
        for record in reader.records() {
            let record = record.map_err(|error| wrong(error.to_string()))?;
            let line = record.position().map_or(0, csv::Position::line);
            let written = PathBuf::from(record.get(place).unwrap_or_default());
            if written.as_os_str().is_empty() {
                return Err(wrong(format!(
                    "line {line}: expected a path, found nothing"
                )));
            }
            let known = (record.iter().enumerate()).filter(|(column, _)| *column != place);
            let known: Vec<String> = known.map(|(_, value)| value.to_owned()).collect();
            let before = list.entries.len();
            list.entries_of(vec![(folder.join(&written), written)], pattern, unmatched)
                .map_err(|error| wrong(format!("line {line}: {error}")))?;
            if let Some(ImageEntry { fields, .. }) = list.entries.get_mut(before) {
                fields.splice(0..0, known);
            }
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn read(text: &str, pattern: Option<&str>) -> Result<List> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.csv");
        fs::write(&path, text).unwrap();
        let pattern = pattern.map(|text| Pattern::parse(text).unwrap());
        let mut list = List::from_manifest(&path, pattern.as_ref(), Unmatched::Fail)?;
        for entry in &mut list.entries {
            if let Ok(below) = entry.path.strip_prefix(folder.path()) {
                entry.path = below.to_path_buf();
            }
        }
        Ok(list)
    }

    #[test]
    fn columns_come_first_and_then_what_the_pattern_finds() {
        let text = "\u{feff}time,path,note\n1,a/7_c2.png,\"x, y\"\n2,/b/8_c1.jpg,\n";
        let list = read(text, Some("{label}_c{camera}")).unwrap();
        assert_eq!(list.fields, ["time", "note", "label", "camera"]);
        assert_eq!(list.entries[0].path, Path::new("a/7_c2.png"));
        assert_eq!(list.entries[0].fields, ["1", "x, y", "7", "2"]);
        assert_eq!(list.entries[1].path, Path::new("/b/8_c1.jpg"));
        assert_eq!(list.entries[1].fields, ["2", "", "8", "1"]);
    }

    #[test]
    fn what_a_list_lacks_is_named_with_its_line() {
        for (text, pattern, words) in [
            (
                "file,label\na.png,1\n",
                None,
                "column \"path\", found file, label",
            ),
            ("path,label\na.png\n", None, "line: 2"),
            ("path,label\na.png,1\n,2\n", None, "line 3: expected a path"),
            ("path,label\na.png,1\n", Some("{label}"), "found \"label\""),
            ("path,vector\na.png,1\n", None, "found \"vector\""),
            ("path\na.png\n", Some("{label}_c{camera}"), "line 2: "),
        ] {
            let error = read(text, pattern).unwrap_err().to_string();
            assert!(
                error.contains("list.csv") && error.contains(words),
                "{error}"
            );
        }
    }
}
