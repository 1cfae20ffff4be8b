//! Splits by identity, by row or by query; never by pair, which would leak.

use crate::random::Stream;
use crate::{Error, Result};
use std::collections::HashMap;

/// What the entries of a split name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitKind {
    /// Labels: whole identities are on one side.
    Label,
    /// Row numbers.
    Row,
    /// Query ids.
    Query,
}

/// One split: entries for training and for test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// Entries to train on.
    pub train: Vec<String>,
    /// Entries to test on.
    pub test: Vec<String>,
}

/// Splits of one kind, as a file gives them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitSet {
    /// What the entries name.
    pub by: SplitKind,
    /// The splits in order.
    pub splits: Vec<Split>,
}

impl Split {
    /// Positions whose name is in `train` and in `test`. `names` gives each position its name: a
    /// label, a row number or a query id. Entries that name nothing and names on both sides are
    /// errors.
    pub fn positions<S: AsRef<str>>(&self, names: &[S]) -> Result<(Vec<u64>, Vec<u64>)> {
        let mut side: HashMap<&str, (bool, bool)> = HashMap::new();
        for entry in &self.train {
            side.insert(entry, (false, false));
        }
        for entry in &self.test {
            if side
                .insert(entry, (true, false))
                .is_some_and(|(test, _)| !test)
            {
                return Err(Error::Data(format!(
                    "the split has {entry:?} both in train and in test"
                )));
            }
        }
        let (mut train, mut test) = (Vec::new(), Vec::new());
        for (position, name) in names.iter().enumerate() {
            if let Some((is_test, used)) = side.get_mut(name.as_ref()) {
                *used = true;
                let target = if *is_test { &mut test } else { &mut train };
                target.push(position as u64);
            }
        }
        if let Some((entry, _)) = side.iter().filter(|(_, v)| !v.1).min_by_key(|(k, _)| **k) {
            let number = |text: &str| text.parse::<i64>().ok();
            let alike =
                |name: &&S| number(entry).is_some() && number(name.as_ref()) == number(entry);
            let hint = names.iter().find(alike).map_or(String::new(), |name| {
                let name = name.as_ref();
                format!("; it has {name:?}: write both alike, zeros in front are part of a text")
            });
            return Err(Error::Data(format!(
                "the split names {entry:?}, which the data does not have{hint}"
            )));
        }
        Ok((train, test))
    }
}

/// Hold out a share of the rows of every class: the classes are the same on both sides. Returns
/// positions (kept, held out), each in increasing order. Classes of one row are kept.
pub(crate) fn stratified_rows(
    classes: &[u32],
    share: f64,
    stream: &mut Stream,
) -> (Vec<u64>, Vec<u64>) {
    let mut members: HashMap<u32, Vec<u64>> = HashMap::new();
    for (position, class) in classes.iter().enumerate() {
        members.entry(*class).or_default().push(position as u64);
    }
    let mut order: Vec<u32> = members.keys().copied().collect();
    order.sort_unstable();
    let (mut kept, mut held) = (Vec::new(), Vec::new());
    for class in order {
        let mut rows = members.remove(&class).unwrap_or_default();
        stream.shuffle(&mut rows);
        // At least one row is kept; whole numbers of rows, with the fraction left to chance so
        // that many small classes together give the share asked for.
        let exact = rows.len() as f64 * share;
        let mut count = exact.floor() as usize;
        if stream.unit() < exact.fract() {
            count += 1;
        }
        let count = count.min(rows.len().saturating_sub(1));
        held.extend_from_slice(&rows[..count]);
        kept.extend_from_slice(&rows[count..]);
    }
    kept.sort_unstable();
    held.sort_unstable();
    (kept, held)
}

/// Hold out a share of whole classes: what is held out shows new identities only.
pub(crate) fn whole_classes(
    classes: &[u32],
    share: f64,
    stream: &mut Stream,
) -> (Vec<u64>, Vec<u64>) {
    let mut names: Vec<u32> = classes.to_vec();
    names.sort_unstable();
    names.dedup();
    stream.shuffle(&mut names);
    let count = ((names.len() as f64 * share).round() as usize).min(names.len().saturating_sub(1));
    let mut held_names = names[..count].to_vec();
    held_names.sort_unstable();
    let (mut kept, mut held) = (Vec::new(), Vec::new());
    for (position, class) in classes.iter().enumerate() {
        let target = if held_names.binary_search(class).is_ok() {
            &mut held
        } else {
            &mut kept
        };
        target.push(position as u64);
    }
    (kept, held)
}

/// Hold out a share of `0..len` (queries, or rows without classes).
pub fn positions(len: u64, share: f64, stream: &mut Stream) -> (Vec<u64>, Vec<u64>) {
    let count = ((len as f64 * share).round() as usize).min(len.saturating_sub(1) as usize);
    let held = stream.choose(len, count);
    let mut kept = Vec::with_capacity((len as usize).saturating_sub(held.len()));
    let mut next = held.iter().peekable();
    for position in 0..len {
        if next.peek() == Some(&&position) {
            next.next();
        } else {
            kept.push(position);
        }
    }
    (kept, held)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream() -> Stream {
        Stream::new(1, "test", 0)
    }

    #[test]
    fn stratified_keeps_every_class_on_both_sides() {
        let classes: Vec<u32> = (0..100).map(|i| i % 10).collect();
        let (kept, held) = stratified_rows(&classes, 0.3, &mut stream());
        assert_eq!((kept.len(), held.len()), (70, 30));
        for class in 0..10 {
            assert_eq!(
                held.iter()
                    .filter(|r| classes[**r as usize] == class)
                    .count(),
                3
            );
        }
        let (kept, held) = stratified_rows(&[0, 1, 2], 0.9, &mut stream());
        assert_eq!((kept.len(), held.len()), (3, 0));
    }

    #[test]
    fn whole_classes_never_share_a_class() {
        let classes: Vec<u32> = (0..100).map(|i| i / 2).collect();
        let (kept, held) = whole_classes(&classes, 0.2, &mut stream());
        assert_eq!(held.len(), 20);
        assert!(kept.iter().all(|k| {
            held.iter()
                .all(|h| classes[*k as usize] != classes[*h as usize])
        }));
    }

    #[test]
    fn positions_are_a_partition() {
        let (kept, held) = positions(50, 0.2, &mut stream());
        let mut all = [kept, held.clone()].concat();
        all.sort_unstable();
        assert_eq!(all, (0..50).collect::<Vec<_>>());
        assert_eq!(held.len(), 10);
    }

    #[test]
    fn split_files_are_checked() {
        let split = |train: &[&str], test: &[&str]| Split {
            train: train.iter().map(|s| s.to_string()).collect(),
            test: test.iter().map(|s| s.to_string()).collect(),
        };
        let names = ["a", "b", "a", "c"];
        let found = split(&["a"], &["b"]).positions(&names).unwrap();
        assert_eq!(found, (vec![0, 2], vec![1]));
        assert!(split(&["a"], &["a"]).positions(&names).is_err());
        let error = split(&["a"], &["z"])
            .positions(&names)
            .unwrap_err()
            .to_string();
        assert_eq!(error, "the split names \"z\", which the data does not have");
    }
}
