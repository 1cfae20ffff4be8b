//! What people said about pairs of versions: `changed` or `same`.
//!
//! One pair per line: two names of files (with or without the ending) and the word, parted by tabs or
//! commas. Words rather than 0 and 1, because elsewhere 1 means "the same".

use super::Series;
use crate::{Error, Result};
use std::path::Path;

/// A pair of versions with what was said about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Labelled {
    /// Places of the two versions in the series.
    pub pair: [usize; 2],
    /// Whether the change matters.
    pub changed: bool,
}

/// Read labels for a series. Lines that name versions that are not in it are left out and counted, so that
/// one file can speak of a longer series.
pub fn read_labels(path: &Path, series: &Series) -> Result<(Vec<Labelled>, usize)> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
    let (mut labels, mut unknown): (Vec<Labelled>, usize) = (Vec::new(), 0);
    for (number, line) in text.lines().enumerate() {
        let refused = |problem: &str| {
            let place = format!("{}, line {}", path.display(), number + 1);
            Err(Error::found(place, problem))
        };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split(['\t', ',']).map(str::trim).collect();
        let [from, to, state] = fields[..] else {
            let found = fields.len();
            return refused(&format!(
                "expected from, to and changed or same, found {found} fields"
            ));
        };
        let changed = match state {
            "changed" => true,
            "same" => false,
            _ => return refused(&format!("expected changed or same, found \"{state}\"")),
        };
        let (Some(from), Some(to)) = (series.place_of(from), series.place_of(to)) else {
            unknown += 1;
            continue;
        };
        if from == to {
            return refused("expected two versions, found one twice");
        }
        let pair = [from.min(to), from.max(to)];
        if labels
            .iter()
            .any(|l| l.pair == pair && l.changed != changed)
        {
            return refused("an earlier line says the opposite of this pair");
        }
        labels.push(Labelled { pair, changed });
    }
    Ok((labels, unknown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_names_are_read() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["1.png", "2.png", "3.png"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let series = Series::open(folder.path()).unwrap();
        let path = folder.path().join("labels.tsv");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_labels(&path, &series)
        };
        let (labels, unknown) =
            read("# said by hand\n1.png\t2.png\tchanged\n3,2,same\n3\t4\tsame\n").unwrap();
        let expected =
            [([0, 1], true), ([1, 2], false)].map(|(pair, changed)| Labelled { pair, changed });
        assert_eq!((labels.as_slice(), unknown), (&expected[..], 1));
        let refused = |text: &str| read(text).unwrap_err().to_string();
        assert!(
            refused("1\t2\t1\n")
                .ends_with("labels.tsv, line 1: expected changed or same, found \"1\"")
        );
        assert!(refused("1\t2\n").contains("found 2 fields"));
        assert!(refused("1\t1\tsame\n").contains("found one twice"));
        assert!(
            refused("1\t2\tsame\n2\t1\tchanged\n")
                .contains("line 2: an earlier line says the opposite")
        );
    }
}
