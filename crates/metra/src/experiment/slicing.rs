//! Ways to cut queries into slices, which the gate reports one by one.

use crate::Result;
use crate::dataset::Dataset;
use crate::evaluate::matching_classes;
use crate::model::Model;
use crate::supervision::{Labels, Relevance, Supervision};
use std::collections::BTreeMap;

/// Values of a column with fewer queries than this are one slice together.
const FEW: usize = 10;

/// A way to cut queries into slices.
#[derive(Debug, Clone)]
pub struct Slicing {
    pub(super) by: String,
    pub(super) names: Vec<String>,
    /// The slice of each query, in the order of the scores.
    pub(super) of: Vec<usize>,
    /// Whether none of its slices may get worse, whatever the terms say.
    pub(super) not_worse: bool,
}

impl Slicing {
    /// By a value of every query, in the order of the scores. Values of few queries are put
    /// together.
    pub fn by_value(by: &str, values: &[String]) -> Self {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for value in values {
            *counts.entry(value).or_default() += 1;
        }
        let few = counts.values().filter(|count| **count < FEW).count();
        let pooled = few > 1;
        let mut names: Vec<String> = (counts.iter())
            .filter(|(_, count)| !pooled || **count >= FEW)
            .map(|(value, _)| (*value).to_owned())
            .collect();
        let places: BTreeMap<&str, usize> = (counts.keys())
            .filter_map(|value| Some((*value, names.iter().position(|name| name == value)?)))
            .collect();
        let rest = names.len();
        let of = (values.iter())
            .map(|value| places.get(value.as_str()).copied().unwrap_or(rest))
            .collect();
        if pooled {
            names.push(format!("{few} values of fewer than {FEW} queries each"));
        }
        Slicing {
            by: by.to_owned(),
            names,
            of,
            not_worse: false,
        }
    }

    /// By how much there is to find for each query: the size of its class, or the number of its relevant
    /// items. `None` where that is one slice, which is all queries once more.
    pub fn by_relevant(data: &Dataset<'_>, queries: &[u64]) -> Option<Self> {
        let sizes = |size: &dyn Fn(u64) -> u64| queries.iter().map(|q| size(*q)).collect();
        let (by, sizes): (&str, Vec<u64>) = match data.supervision() {
            Supervision::Labels(labels) => {
                let class = |row: u64| labels.of()[row as usize];
                let size = |row| labels.members(class(row)).len() as u64;
                ("class size", sizes(&size))
            }
            Supervision::Judgements(judgements) => {
                let relevant = |query| judgements.of(query).len() as u64;
                let within = |row| judgements.relevant_count(row);
                match data.has_separate_queries() {
                    true => ("relevant items", sizes(&relevant)),
                    false => ("relevant items", sizes(&within)),
                }
            }
            Supervision::LabelSets(sets) => {
                ("relevant items", sizes(&|row| sets.relevant_count(row)))
            }
            _ => return None,
        };
        Self::by_size(by, &sizes)
    }

    /// The same of rows that are searched for in a gallery.
    pub fn by_gallery(rows: &Labels, gallery: &Labels, queries: &[u64]) -> Option<Self> {
        let known = matching_classes(rows, gallery);
        let size = |row: &u64| {
            let class = known[rows.of()[*row as usize] as usize];
            class.map_or(0, |class| gallery.members(class).len() as u64)
        };
        let sizes: Vec<u64> = queries.iter().map(size).collect();
        Self::by_size("class size", &sizes)
    }

    /// Queries about items that the training judgements of a model name, and queries about new items, which
    /// may not get worse. `None` where the model does not keep that.
    pub fn by_seen_items(
        model: &Model,
        data: &Dataset<'_>,
        queries: &[u64],
    ) -> Result<Option<Self>> {
        let Supervision::Judgements(judgements) = data.supervision() else {
            return Ok(None);
        };
        let Some(seen) = model.seen_items(data.items())? else {
            return Ok(None);
        };
        let is_seen = |query: &u64| {
            let mut items = judgements.of(*query).iter();
            match items.any(|(item, _)| seen[*item as usize]) {
                true => "some".to_owned(),
                false => "none".to_owned(),
            }
        };
        let values: Vec<String> = queries.iter().map(is_seen).collect();
        Ok(Some(Slicing {
            not_worse: true,
            ..Self::by_value("relevant items in training", &values)
        }))
    }

    /// By a size of every query, in the order of the scores.
    fn by_size(by: &str, sizes: &[u64]) -> Option<Self> {
        const BUCKETS: [(u64, u64, &str); 8] = [
            (0, 1, "1"),
            (2, 2, "2"),
            (3, 5, "3 to 5"),
            (6, 10, "6 to 10"),
            (11, 30, "11 to 30"),
            (31, 100, "31 to 100"),
            (101, 1000, "101 to 1,000"),
            (1001, u64::MAX, "above 1,000"),
        ];
        let bucket = |size: &u64| BUCKETS.iter().position(|(_, last, _)| size <= last);
        let found: Vec<usize> = sizes.iter().filter_map(bucket).collect();
        let used: Vec<usize> = (0..BUCKETS.len()).filter(|b| found.contains(b)).collect();
        (used.len() > 1).then(|| Slicing {
            by: by.to_owned(),
            names: used.iter().map(|b| BUCKETS[*b].2.to_owned()).collect(),
            of: (found.iter())
                .filter_map(|b| used.iter().position(|u| u == b))
                .collect(),
            not_worse: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_values_and_sizes_are_put_together() {
        let mut values = vec!["a".to_owned(); 10];
        values.extend(["b", "c", "c"].map(str::to_owned));
        let cut = Slicing::by_value("column", &values);
        assert_eq!(cut.names, ["a", "2 values of fewer than 10 queries each"]);
        assert_eq!(cut.of[9..], [0, 1, 1, 1]);
        let cut = Slicing::by_size("class size", &[2, 40, 4, 5, 2]).unwrap();
        assert_eq!(cut.names, ["2", "3 to 5", "31 to 100"]);
        assert_eq!(cut.of, [0, 2, 1, 1, 0]);
        assert!(Slicing::by_size("class size", &[3, 4, 5]).is_none());
    }
}
