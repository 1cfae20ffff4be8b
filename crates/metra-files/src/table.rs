//! What to read from a file of vectors, and what comes of it.

use crate::column::{Cell, Column, canonical_integer};
use crate::element::ElementType;
use crate::error::{Error, Place, Result, list};
use metra::data::{Corpus, Narrowing, RowId};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What to read.
#[derive(Debug, Clone)]
pub struct TableOptions {
    /// The vectors: a column of lists, or columns of numbers, see [`read_table`](crate::read_table). npz:
    /// the array's name; if not given, the only matrix. npy: must not be given.
    pub vector: Option<String>,
    /// Further columns wanted by name (label, id, camera). With npy: paths of companion files,
    /// which are npy files of whole numbers or texts, or text files of one value per line.
    pub columns: Vec<String>,
    /// Which rows to keep: those for which all filters hold.
    pub filters: Vec<Filter>,
    /// Bytes of vectors to keep in memory; a larger corpus is spooled to a memory-mapped file.
    pub memory: u64,
    /// Where the spool goes; it must exist.
    pub cache_dir: PathBuf,
    /// How values become f32.
    pub narrowing: NarrowingRule,
    /// What to do with rows that lack a value.
    pub missing: MissingValues,
}

/// What to do with a row in which the vector, one of its numbers or a wanted column is missing: an
/// empty field, NaN, or null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissingValues {
    /// Refuse the file, naming the row.
    #[default]
    Error,
    /// Leave the row out; [`Table::notes`] say how many there were.
    Skip,
}

impl FromStr for MissingValues {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "error" => Ok(MissingValues::Error),
            "skip" => Ok(MissingValues::Skip),
            other => Err(Error::Missing(other.into())),
        }
    }
}

impl fmt::Display for MissingValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MissingValues::Error => "error",
            MissingValues::Skip => "skip",
        })
    }
}

impl Default for TableOptions {
    /// The column `vector`, no further columns, no filter, 1 GiB of memory, the system's folder
    /// for temporary files, values judged.
    fn default() -> Self {
        TableOptions {
            vector: None,
            columns: Vec::new(),
            filters: Vec::new(),
            memory: 1 << 30,
            cache_dir: std::env::temp_dir(),
            narrowing: NarrowingRule::Judge,
            missing: MissingValues::Error,
        }
    }
}

/// How values become f32.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum NarrowingRule {
    /// Judge the values: a shift and a scale are used where f32 would lose what they say.
    #[default]
    Judge,
    /// Use these, because a model was trained with them.
    Apply(Narrowing),
    /// Use none, because a model was trained with none; only overflow is refused.
    None,
}

impl NarrowingRule {
    /// As the vectors that a model was trained with.
    pub fn of(model: Option<&Narrowing>) -> Self {
        model.map_or(NarrowingRule::None, |n| NarrowingRule::Apply(n.clone()))
    }
}

/// A condition on a column. Values compare as the column prints: whole numbers in decimal,
/// booleans as `true` and `false`, texts as they are. A missing value equals nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// The column.
    pub column: String,
    /// The value to compare with.
    pub value: String,
    /// Whether rows with the value are kept (`=`) or dropped (`!=`).
    pub equal: bool,
}

impl Filter {
    pub(crate) fn holds(&self, cell: &Cell<'_>) -> bool {
        let same = match cell {
            Cell::Integer(value) => canonical_integer(&self.value) == Some(*value),
            cell => cell.text().is_some_and(|text| text == self.value),
        };
        same == self.equal
    }
}

impl FromStr for Filter {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        // The first `=` ends the column's name: values may hold more of them.
        let (column, value) = text
            .split_once('=')
            .ok_or_else(|| Error::Filter(text.into()))?;
        let (column, equal) = match column.strip_suffix('!') {
            Some(column) => (column, false),
            None => (column, true),
        };
        if column.is_empty() {
            return Err(Error::Filter(text.into()));
        }
        Ok(Filter {
            column: column.into(),
            value: value.into(),
            equal,
        })
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.equal { "=" } else { "!=" };
        write!(f, "{}{sign}{}", self.column, self.value)
    }
}

/// Vectors with their columns.
pub struct Table {
    /// The vectors kept.
    pub corpus: Box<dyn Corpus>,
    /// The columns asked for, one value for each vector kept.
    pub columns: BTreeMap<String, Column>,
    /// Number of each vector's row in the file (of its line in a text file). `None` where it is
    /// the vector's own number, because a binary file was read without filters.
    pub rows: Option<Vec<u64>>,
    /// What was done to make the values f32, to be recorded in a model.
    pub narrowing: Option<Narrowing>,
    /// What a user should know: constant, shifted and lost columns, a spool.
    pub notes: Vec<String>,
    /// What the file stores.
    pub element_type: ElementType,
    /// Dimensions of the vectors of a row, where columns of several were named; nothing where a row is one vector.
    pub vector_dims: Vec<usize>,
    /// The file.
    pub path: PathBuf,
    /// Whether the file may have rows that were not kept, because of filters or missing values.
    pub filtered: bool,
    pub(crate) text_file: bool,
}

impl Table {
    /// Where a vector was found in the file.
    pub fn place(&self, row: RowId) -> Place {
        let number = match &self.rows {
            Some(rows) => usize::try_from(row).ok().and_then(|r| rows.get(r).copied()),
            None => None,
        };
        place(self.text_file, number.unwrap_or(row))
    }

    /// One of the columns asked for.
    pub fn column(&self, name: &str) -> Result<&Column> {
        let missing = || Error::MissingColumn {
            path: self.path.clone(),
            column: name.into(),
            found: self.columns.keys().cloned().collect(),
        };
        self.columns.get(name).ok_or_else(missing)
    }

    /// An error that names both places where a column has a value twice.
    pub fn check_unique(&self, column: &str) -> Result<()> {
        let is_unique = match self.column(column)? {
            Column::Integers(values) => {
                let distinct: HashSet<&i64> = values.iter().collect();
                distinct.len() == values.len()
            }
            // Every text is held once.
            Column::Text { names, of } | Column::Lists { lists: names, of } => {
                names.len() == of.len()
            }
        };
        match is_unique {
            true => Ok(()),
            false => self.index(column).map(|_| ()),
        }
    }

    /// The row of every id in a column. An id that occurs twice is an error naming both places.
    pub fn index(&self, column: &str) -> Result<HashMap<String, RowId>> {
        let ids = self.column(column)?;
        let mut index = HashMap::with_capacity(ids.len());
        for (row, id) in ids.iter().enumerate() {
            if let Some(first) = index.insert(id.to_string(), row as RowId) {
                let problem = format!(
                    "expected every id once, but {id:?} is also in {}",
                    self.place(first)
                );
                let place = self.place(row as RowId);
                return Err(Error::cell(&self.path, place, column, problem));
            }
        }
        Ok(index)
    }
}

pub(crate) fn place(text_file: bool, number: u64) -> Place {
    if text_file {
        Place::Line(number)
    } else {
        Place::Row(number)
    }
}

/// Called with the rows read so far and how many there are, if that is known. A file that is read
/// twice counts twice.
pub type ReadProgress<'a> = &'a mut dyn FnMut(u64, Option<u64>);

pub(crate) fn extension(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

/// Positions among `columns` of the names a table must read: the wanted ones, then the filters'.
pub(crate) fn positions(
    path: &Path,
    columns: &[String],
    options: &TableOptions,
) -> Result<Vec<usize>> {
    let filtered = options.filters.iter().map(|f| &f.column);
    let wanted = options.columns.iter().chain(filtered);
    wanted.map(|name| position(path, columns, name)).collect()
}

/// Position of a name among `columns`, where it must stand exactly once.
pub(crate) fn position(path: &Path, columns: &[String], name: &str) -> Result<usize> {
    let mut found = (columns.iter().enumerate()).filter(|(_, column)| *column == name);
    match (found.next(), found.next()) {
        (Some((position, _)), None) => Ok(position),
        (Some(_), Some(_)) => {
            let problem = format!("two columns are called {name:?}: which one is meant?");
            Err(Error::file(path, problem))
        }
        (None, _) => Err(Error::MissingColumn {
            path: path.to_path_buf(),
            column: name.to_owned(),
            found: columns.to_vec(),
        }),
    }
}

/// The message for a vector column that was not named and cannot be guessed.
pub(crate) fn no_vector(path: &Path, expected: &str, columns: &[String]) -> Error {
    Error::file(
        path,
        format!(
            "expected {expected}, but the columns are {}; name that of the vectors (--vector)",
            list(columns)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_compare_as_columns_print() {
        let filter: Filter = "split=a=b".parse().unwrap();
        assert_eq!(
            (filter.column.as_str(), filter.value.as_str()),
            ("split", "a=b")
        );
        let not: Filter = "camera!=1".parse().unwrap();
        assert!(!not.holds(&Cell::Integer(1)) && not.holds(&Cell::Integer(2)));
        assert!(not.holds(&Cell::Null));
        let yes: Filter = "train=true".parse().unwrap();
        assert!(yes.holds(&Cell::Bool(true)) && !yes.holds(&Cell::Null));
        assert!("train".parse::<Filter>().is_err());
        assert!("=x".parse::<Filter>().is_err());
        assert_eq!(not.to_string(), "camera!=1");
    }
}
