//! Several labels per row, from a column of lists or from several columns.

use crate::column::Column;
use metra::supervision::{LabelSets, SharedLabels};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Display;

/// The labels of every row, from columns with their names: of a column of lists, or of texts with a `separator` between
/// their labels. `None` for one column of anything else, of which every row has one label. Of several columns each adds its
/// labels, named `COLUMN=LABEL`, as equal ones of two columns are not the same.
pub fn label_sets(
    columns: &[(&str, &Column)],
    separator: Option<&str>,
    grade: SharedLabels,
) -> metra::Result<Option<LabelSets>> {
    if let ([(_, Column::Integers(_) | Column::Text { .. })], None) | ([], _) = (columns, separator)
    {
        return Ok(None);
    }
    let mut parts = Vec::with_capacity(columns.len());
    for (name, column) in columns {
        let (values, of) = column.distinct();
        let list = |value: &Cow<'_, str>| match (column, separator) {
            (Column::Lists { .. }, _) => listed(value),
            (_, Some(separator)) => Ok(separated(value, separator)),
            (_, None) => Ok(vec![value.to_string()]),
        };
        let mut lists: Vec<Vec<String>> = values.iter().map(list).collect::<metra::Result<_>>()?;
        if columns.len() > 1 {
            for label in lists.iter_mut().flatten() {
                *label = format!("{name}={label}");
            }
        }
        parts.push((lists, of));
    }
    let (lists, of) = joined(parts);
    LabelSets::new(&lists, &of, grade).map(Some)
}

/// Lists of labels, and which of them each row has.
type Lists<'a> = (Vec<Vec<String>>, Cow<'a, [u32]>);

/// The lists of all columns together.
fn joined(mut parts: Vec<Lists<'_>>) -> (Vec<Vec<String>>, Vec<u32>) {
    if parts.len() == 1
        && let Some((lists, of)) = parts.pop()
    {
        return (lists, of.into_owned());
    }
    let rows = parts.first().map_or(0, |(_, of)| of.len());
    let mut index: HashMap<Vec<u32>, u32> = HashMap::new();
    let mut lists = Vec::new();
    let number = |row: usize| {
        let values: Vec<u32> = parts.iter().map(|(_, of)| of[row]).collect();
        *index.entry(values).or_insert_with_key(|values| {
            let columns = parts.iter().zip(values);
            lists.push(
                columns
                    .flat_map(|((own, _), value)| own[*value as usize].clone())
                    .collect(),
            );
            lists.len() as u32 - 1
        })
    };
    let of = (0..rows).map(number).collect();
    (lists, of)
}

/// The names in a list in JSON.
fn listed(value: &str) -> metra::Result<Vec<String>> {
    let damaged = |found: &dyn Display| {
        metra::Error::Data(format!(
            "expected a list of labels, but found {value}: {found}"
        ))
    };
    let values: Vec<Value> = serde_json::from_str(value).map_err(|e| damaged(&e))?;
    (values.into_iter())
        .map(|value| match value {
            Value::String(text) => Ok(text),
            Value::Number(number) => Ok(number.to_string()),
            Value::Bool(value) => Ok(value.to_string()),
            other => Err(damaged(&other)),
        })
        .collect()
}

/// The labels of a text, without blanks around them.
fn separated(value: &str, separator: &str) -> Vec<String> {
    let labels = value.split(separator).map(str::trim);
    labels
        .filter(|label| !label.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use metra::supervision::Relevance;

    fn sets(columns: &[(&str, &Column)], separator: Option<&str>) -> Option<LabelSets> {
        label_sets(columns, separator, SharedLabels::Number).unwrap()
    }

    fn relevant(sets: &LabelSets, row: u64) -> Vec<(u64, f32)> {
        let mut found = Vec::new();
        sets.relevant(row, &mut found);
        found
    }

    fn lists(values: &[&str]) -> Column {
        Column::Lists {
            lists: values.iter().map(|value| (*value).to_owned()).collect(),
            of: (0..values.len() as u32).collect(),
        }
    }

    #[test]
    fn lists_are_several_labels_and_other_values_are_one() {
        let column = lists(&[r#"["a","b"]"#, r#"["b","c"]"#, "[]", r#"["c"]"#]);
        let found = sets(&[("tags", &column)], None).unwrap();
        assert_eq!(found.names(), ["a", "b", "c"]);
        assert_eq!(relevant(&found, 1), [(0, 1.0), (3, 1.0)]);
        assert!(relevant(&found, 2).is_empty());
        let numbers = lists(&["[1,2]", "[2]"]);
        assert_eq!(
            relevant(&sets(&[("tags", &numbers)], Some(",")).unwrap(), 0),
            [(1, 1.0)]
        );
        for one in [
            Column::from_texts(["a", "[1]"]),
            Column::Integers(vec![1, 2]),
        ] {
            assert!(sets(&[("class", &one)], None).is_none());
        }
    }

    #[test]
    fn a_separator_makes_lists_of_texts() {
        let texts = Column::from_texts(["a | b", "b", "|", "c|b|"]);
        let found = sets(&[("tags", &texts)], Some("|")).unwrap();
        assert_eq!(relevant(&found, 0), [(1, 1.0), (3, 1.0)]);
        assert_eq!(relevant(&found, 2), []);
    }

    #[test]
    fn equal_values_of_two_columns_are_two_labels() {
        let (a, b) = (
            Column::Integers(vec![1, 1, 2]),
            Column::from_texts(["1", "2", "1"]),
        );
        let found = sets(&[("a", &a), ("b", &b)], None).unwrap();
        assert_eq!(found.names(), ["a=1", "a=2", "b=1", "b=2"]);
        assert_eq!(relevant(&found, 0), [(1, 1.0), (2, 1.0)]);
        assert_eq!(relevant(&found, 1), [(0, 1.0)]);
    }
}
