//! Columns beside the vectors: labels, ids, cameras.
//!
//! Four million labels must not become four million strings, so whole numbers stay numbers and
//! texts are kept once each.

use metra::data::Groups;
use metra::supervision::Labels;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;

/// One value for every row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// Whole numbers.
    Integers(Vec<i64>),
    /// Texts; row i has `names[of[i]]`. The names are in the order of their first row.
    Text {
        /// Every text once.
        names: Vec<String>,
        /// The text of every row, as an index into `names`.
        of: Vec<u32>,
    },
    /// Lists of names, such as the labels of a row; row i has `lists[of[i]]`, in JSON.
    Lists {
        /// Every list once.
        lists: Vec<String>,
        /// The list of every row, as an index into `lists`.
        of: Vec<u32>,
    },
}

impl Column {
    /// A column of texts.
    pub fn from_texts<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Self {
        let mut builder = ColumnBuilder::default();
        builder.become_text();
        for value in values {
            builder.push(&Cell::Text(value.as_ref()));
        }
        builder.finish()
    }

    /// A column as a text file would give it: whole numbers where all are written as such, else texts.
    pub fn from_fields<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Self {
        let mut builder = ColumnBuilder::default();
        for value in values {
            builder.push(&match canonical_integer(value.as_ref()) {
                Some(number) => Cell::Integer(number),
                None => Cell::Text(value.as_ref()),
            });
        }
        builder.finish()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Column::Integers(values) => values.len(),
            Column::Text { of, .. } | Column::Lists { of, .. } => of.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a row as text. Panics like a slice when there is no such row.
    pub fn get(&self, row: usize) -> Cow<'_, str> {
        match self {
            Column::Integers(values) => Cow::Owned(values[row].to_string()),
            Column::Text { names, of } | Column::Lists { lists: names, of } => {
                Cow::Borrowed(&names[of[row] as usize])
            }
        }
    }

    /// All values as text, in the order of the rows.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Cow<'_, str>> {
        (0..self.len()).map(|row| self.get(row))
    }

    /// The distinct values, and which of them each row has.
    pub(crate) fn distinct(&self) -> (Vec<Cow<'_, str>>, Cow<'_, [u32]>) {
        match self {
            Column::Integers(values) => {
                let mut index = HashMap::new();
                let mut names = Vec::new();
                let number = values.iter().map(|value| {
                    *index.entry(*value).or_insert_with(|| {
                        names.push(Cow::Owned(value.to_string()));
                        names.len() as u32 - 1
                    })
                });
                let of = number.collect();
                (names, Cow::Owned(of))
            }
            Column::Text { names, of } | Column::Lists { lists: names, of } => {
                let names = names.iter().map(|name| Cow::Borrowed(name.as_str()));
                (names.collect(), Cow::Borrowed(of))
            }
        }
    }

    /// Keep these rows.
    pub(crate) fn select(&mut self, rows: &[usize]) {
        match self {
            Column::Integers(values) => *values = rows.iter().map(|row| values[*row]).collect(),
            Column::Text { of, .. } | Column::Lists { of, .. } => {
                *of = rows.iter().map(|row| of[*row]).collect();
            }
        }
    }

    /// The values as class labels.
    pub fn to_labels(&self) -> metra::Result<Labels> {
        match self {
            Column::Integers(values) => Labels::from_numbers(values),
            Column::Text { .. } | Column::Lists { .. } => {
                Labels::from_names(&self.iter().collect::<Vec<_>>())
            }
        }
    }

    /// The values as groups (cameras, sessions).
    pub fn to_groups(&self) -> Groups {
        Groups::new(&self.iter().collect::<Vec<_>>())
    }
}

/// One value of a column as a file gives it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Integer(i64),
    Bool(bool),
    Text(&'a str),
    /// Several names, as a list in JSON.
    List(String),
    /// A value that is neither a whole number nor a text, printed.
    Other(String),
}

impl<'a> Cell<'a> {
    /// A floating-point number counts as the whole number it is; a fraction is no name.
    pub(crate) fn from_float(value: f64) -> Self {
        // Above 2^53 different whole numbers share one f64, so they name nothing surely.
        if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0 {
            Cell::Integer(value as i64)
        } else {
            Cell::Other(value.to_string())
        }
    }

    /// Several names in JSON; a list with a missing value or a fraction names nothing.
    pub(crate) fn list(cells: impl Iterator<Item = Cell<'a>>) -> Self {
        let mut is_named = true;
        let values = cells.map(|cell| match cell {
            Cell::Null => {
                is_named = false;
                Value::Null
            }
            Cell::Integer(value) => Value::from(value),
            Cell::Bool(value) => Value::from(value),
            Cell::Text(text) => Value::from(text),
            Cell::List(text) | Cell::Other(text) => {
                is_named = false;
                Value::from(text)
            }
        });
        let text = Value::Array(values.collect()).to_string();
        match is_named {
            true => Cell::List(text),
            false => Cell::Other(text),
        }
    }

    /// A field of a text file. Only what prints as it was written is a number: the id 007 is a
    /// text, because 7 may be another.
    pub(crate) fn from_field(field: &'a str) -> Self {
        if field.is_empty() {
            return Cell::Null;
        }
        match canonical_integer(field) {
            Some(value) => Cell::Integer(value),
            None => Cell::Text(field),
        }
    }

    /// As the column prints it; `None` for a missing value.
    pub(crate) fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Cell::Null => None,
            Cell::Integer(value) => Some(Cow::Owned(value.to_string())),
            Cell::Bool(value) => Some(Cow::Borrowed(if *value { "true" } else { "false" })),
            Cell::Text(text) => Some(Cow::Borrowed(text)),
            Cell::List(text) | Cell::Other(text) => Some(Cow::Borrowed(text)),
        }
    }
}

/// The number a text stands for if it is written as the number prints.
pub(crate) fn canonical_integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = match digits.as_bytes() {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if plain { text.parse().ok() } else { None }
}

/// Collects a column cell by cell: numbers as long as all are numbers, texts from then on.
#[derive(Default)]
pub(crate) struct ColumnBuilder {
    integers: Vec<i64>,
    text: Option<TextBuilder>,
    /// Whether the cells so far are lists.
    is_list: Option<bool>,
}

#[derive(Default)]
struct TextBuilder {
    index: HashMap<String, u32>,
    of: Vec<u32>,
}

impl TextBuilder {
    fn push(&mut self, text: &str) {
        let next = self.index.len() as u32;
        let number = match self.index.get(text) {
            Some(number) => *number,
            None => *self.index.entry(text.to_owned()).or_insert(next),
        };
        self.of.push(number);
    }
}

impl ColumnBuilder {
    fn become_text(&mut self) -> &mut TextBuilder {
        self.text.get_or_insert_with(|| {
            let mut text = TextBuilder::default();
            for value in std::mem::take(&mut self.integers) {
                text.push(&value.to_string());
            }
            text
        })
    }

    /// Append a cell; says what was expected instead of one that is no name, such as a fraction, or of a list among
    /// values.
    pub(crate) fn try_push(&mut self, cell: &Cell<'_>) -> std::result::Result<(), &'static str> {
        if matches!(cell, Cell::Null | Cell::Other(_)) {
            return Err("a whole number or a text");
        }
        let is_list = matches!(cell, Cell::List(_));
        match *self.is_list.get_or_insert(is_list) {
            true if !is_list => return Err("a list, as in the rows before"),
            false if is_list => return Err("one value, as in the rows before"),
            _ => {}
        }
        self.push(cell);
        Ok(())
    }

    fn push(&mut self, cell: &Cell<'_>) {
        match (cell, &mut self.text) {
            (Cell::Integer(value), None) => self.integers.push(*value),
            (cell, _) => {
                if let Some(text) = cell.text() {
                    self.become_text().push(&text);
                }
            }
        }
    }

    pub(crate) fn finish(self) -> Column {
        match self.text {
            None => Column::Integers(self.integers),
            Some(text) => {
                // The strings move from the index into their places: none is copied.
                let mut names = vec![String::new(); text.index.len()];
                for (name, number) in text.index {
                    names[number as usize] = name;
                }
                match self.is_list {
                    Some(true) => Column::Lists {
                        lists: names,
                        of: text.of,
                    },
                    _ => Column::Text { names, of: text.of },
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(fields: &[&str]) -> Column {
        let mut builder = ColumnBuilder::default();
        for field in fields {
            builder.try_push(&Cell::from_field(field)).unwrap();
        }
        builder.finish()
    }

    #[test]
    fn numbers_stay_numbers_until_a_text_comes() {
        assert_eq!(build(&["3", "-1"]), Column::Integers(vec![3, -1]));
        let mixed = build(&["3", "007", "3", "-0"]);
        assert!(matches!(&mixed, Column::Text { names, of } if names.len() == 3 && of[2] == 0));
        assert_eq!(mixed.iter().collect::<Vec<_>>(), ["3", "007", "3", "-0"]);
    }

    /// A missing value is the empty text here, as there is nothing else it could be.
    #[test]
    fn fields_are_numbers_where_all_are() {
        let numbers = Column::from_fields(["3", "-1"]);
        assert_eq!(numbers, Column::Integers(vec![3, -1]));
        let texts = Column::from_fields(["3", "", "007"]);
        assert_eq!(texts.iter().collect::<Vec<_>>(), ["3", "", "007"]);
    }

    #[test]
    fn labels_and_groups_follow_the_column() {
        let labels = build(&["10", "9", "10"]).to_labels().unwrap();
        assert_eq!((labels.of(), labels.name(0)), (&[1, 0, 1][..], "9"));
        let groups = build(&["b", "a", "b"]).to_groups();
        assert_eq!(groups.of(), &[1, 0, 1]);
    }

    #[test]
    fn fractions_and_missing_values_are_no_names() {
        let mut builder = ColumnBuilder::default();
        assert!(builder.try_push(&Cell::Null).is_err());
        assert!(builder.try_push(&Cell::from_float(0.5)).is_err());
        assert!(builder.try_push(&Cell::from_float(f64::NAN)).is_err());
        assert!(builder.try_push(&Cell::from_float(4.0)).is_ok());
        assert_eq!(builder.finish(), Column::Integers(vec![4]));
    }
}
