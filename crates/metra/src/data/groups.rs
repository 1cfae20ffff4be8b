//! Groups of rows that are not classes: the camera or session a vector came from.

use crate::{Error, Result};
use std::collections::BTreeMap;

/// The group of every row, as an index into sorted names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups {
    names: Vec<String>,
    of: Vec<u32>,
}

impl Groups {
    /// Groups by name, one a row.
    pub fn new<S: AsRef<str>>(values: &[S]) -> Self {
        let mut index: BTreeMap<&str, u32> = values.iter().map(|v| (v.as_ref(), 0)).collect();
        for (number, slot) in index.values_mut().enumerate() {
            *slot = number as u32;
        }
        let of = values.iter().map(|v| index[v.as_ref()]).collect();
        Groups {
            names: index.into_keys().map(str::to_owned).collect(),
            of,
        }
    }

    /// Names in order; a group's index points here.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The group of every row.
    pub fn of(&self) -> &[u32] {
        &self.of
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.of.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The groups of some rows, names kept.
    pub fn select(&self, rows: &[u64]) -> Groups {
        Groups {
            names: self.names.clone(),
            of: rows.iter().map(|r| self.of[*r as usize]).collect(),
        }
    }

    /// The same groups as indices into `names` of another set, as a model's group means need them.
    pub fn renumbered(&self, names: &[String]) -> Result<Groups> {
        let mut translation = Vec::with_capacity(self.names.len());
        for name in &self.names {
            let index = names.iter().position(|n| n == name);
            translation.push(index.map(|i| i as u32));
        }
        let mut of = Vec::with_capacity(self.of.len());
        for (row, group) in self.of.iter().enumerate() {
            of.push(translation[*group as usize].ok_or_else(|| Error::Row {
                row: row as u64,
                problem: format!(
                    "its group is {:?}, but the model knows only {names:?}",
                    self.names[*group as usize]
                ),
            })?);
        }
        Ok(Groups {
            names: names.to_vec(),
            of,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_renumbered() {
        let groups = Groups::new(&["b", "a", "b"]);
        assert_eq!(groups.names(), &["a", "b"]);
        assert_eq!(groups.of(), &[1, 0, 1]);
        let there = groups
            .renumbered(&["b".into(), "c".into(), "a".into()])
            .unwrap();
        assert_eq!(there.of(), &[0, 2, 0]);
        let error = groups.renumbered(&["a".into()]).unwrap_err().to_string();
        assert!(error.starts_with("row 0: its group is \"b\""), "{error}");
    }
}
