//! What people said of rows without naming classes: pairs, triplets and quadruplets as text, one a
//! line (docs/formats/supervision.md).
//!
//! Rows are named by an id column of the table, or by their numbers in its file. A triplet
//! or quadruplet that is said twice counts twice, a pair once. People contradict each other in triplets and quadruplets, so those may; a
//! pair that is similar in one line and dissimilar in another is an error.

use crate::error::{Error, Place, Result};
use crate::lines::{fields, visit_statements};
use crate::table::{Table, place};
use metra::data::RowId;
use metra::supervision::Quadruplet;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// How a file of comparisons names the rows of a table.
#[derive(Debug, Clone)]
pub struct RowNames {
    by: By,
    table: PathBuf,
    /// Whether rows were filtered away: then an unknown name need not be a mistake.
    filtered: bool,
}

#[derive(Debug, Clone)]
enum By {
    Id(HashMap<String, RowId>),
    /// Numbers in the file, increasing, where they differ from the rows' own.
    Number {
        of: Option<Vec<u64>>,
        rows: u64,
        text_file: bool,
    },
}

impl RowNames {
    /// By the ids in a column, or, without one, by the number of the row in the file: counted from
    /// 0 in Parquet and npy, and as its line in CSV and TSV.
    pub fn new(table: &Table, id: Option<&str>) -> Result<Self> {
        Ok(RowNames {
            by: match id {
                Some(column) => By::Id(table.index(column)?),
                None => By::Number {
                    of: table.rows.clone(),
                    rows: table.corpus.len(),
                    text_file: table.text_file,
                },
            },
            table: table.path.clone(),
            filtered: table.filtered,
        })
    }

    /// The row of a name; `None` where the row may have been filtered away, and what is wrong with
    /// the name where it may not.
    pub fn find(&self, name: &str) -> std::result::Result<Option<RowId>, String> {
        let found = match &self.by {
            By::Id(rows) => rows.get(name).copied(),
            By::Number { of, rows, .. } => {
                let Ok(number) = name.parse::<u64>() else {
                    return Err(format!(
                        "expected the number of a row of {} (or name its column of ids), but \
                         found {name:?}",
                        self.table.display()
                    ));
                };
                match of {
                    Some(of) => of.binary_search(&number).ok().map(|row| row as RowId),
                    None => Some(number).filter(|row| row < rows),
                }
            }
        };
        if found.is_some() || self.filtered {
            return Ok(found);
        }
        let table = self.table.display();
        Err(match &self.by {
            By::Id(_) => format!("expected an id that {table} has, but found {name:?}"),
            By::Number {
                of,
                rows,
                text_file,
            } => {
                let (first, last) = match of {
                    Some(of) => (of.first().copied(), of.last().copied()),
                    None => (Some(0), rows.checked_sub(1)),
                };
                let [first, last] =
                    [first, last].map(|number| place(*text_file, number.unwrap_or(0)));
                format!("expected {first} to {last} of {table}, but found {name}")
            }
        })
    }
}

/// PairList of rows at hand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PairList {
    /// PairList that belong together.
    pub similar: Vec<[RowId; 2]>,
    /// PairList that do not.
    pub dissimilar: Vec<[RowId; 2]>,
    /// Lines left out because a row of theirs was filtered away.
    pub unknown: u64,
}

/// Read pairs: lines `a b 1` for similar and `a b 0` for dissimilar rows.
pub fn read_pairs(path: &Path, names: &RowNames) -> Result<PairList> {
    let mut pairs = PairList::default();
    let mut first_stated: HashMap<[RowId; 2], (bool, u64)> = HashMap::new();
    let expected = "two rows, and 1 for similar or 0 for dissimilar";
    pairs.unknown = visit_comparisons(path, names, "pairs", expected, &mut |line, rows, last| {
        let similar = match last {
            Some("1") => true,
            Some("0") => false,
            Some(other) => {
                return Err(format!("expected 1 for similar or 0, but found {other:?}"));
            }
            None => return Err(format!("expected {expected}, but found 2 fields")),
        };
        let [a, b] = rows;
        if a == b {
            return Err("expected two different rows, but found one twice".into());
        }
        let (before, first) = *first_stated
            .entry([a.min(b), a.max(b)])
            .or_insert((similar, line));
        if before != similar {
            let word = |similar| if similar { "similar" } else { "dissimilar" };
            return Err(format!(
                "expected every pair to be one thing, but these are {} here and {} in line {first}",
                word(similar),
                word(before)
            ));
        }
        let target = if similar {
            &mut pairs.similar
        } else {
            &mut pairs.dissimilar
        };
        target.push(rows);
        Ok(())
    })?;
    Ok(pairs)
}

/// PairList of rows to be decided about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedPairs {
    /// The rows of each pair.
    pub pairs: Vec<[RowId; 2]>,
    /// Whether the file says that they belong together, where it says anything.
    pub similar: Vec<Option<bool>>,
    /// Lines left out because a row of theirs was filtered away.
    pub unknown: u64,
}

/// Read pairs to be decided about: lines `a b`, or with a third field as [`read_pairs`] has them.
pub fn read_named_pairs(path: &Path, names: &RowNames) -> Result<NamedPairs> {
    let mut found = NamedPairs::default();
    let expected = "two rows, and perhaps 1 for similar or 0 for dissimilar";
    found.unknown = visit_comparisons(path, names, "pairs", expected, &mut |_, rows, last| {
        found.similar.push(match last {
            None => None,
            Some("1") => Some(true),
            Some("0") => Some(false),
            Some(other) => {
                return Err(format!("expected 1 for similar or 0, but found {other:?}"));
            }
        });
        found.pairs.push(rows);
        Ok(())
    })?;
    Ok(found)
}

/// Triplets of rows at hand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Triplets {
    /// (anchor, near, far): to the anchor, near is nearer than far.
    pub triplets: Vec<[RowId; 3]>,
    /// Lines left out because a row of theirs was filtered away.
    pub unknown: u64,
}

/// Read triplets: lines `anchor near far`.
pub fn read_triplets(path: &Path, names: &RowNames) -> Result<Triplets> {
    let mut triplets = Vec::new();
    let expected = "anchor, near and far";
    let unknown = visit_comparisons(path, names, "triplets", expected, &mut |_, rows, last| {
        let [anchor, near, far] = rows;
        if last.is_some() {
            return Err(format!("expected {expected}, but found 4 fields"));
        }
        if anchor == near || near == far || anchor == far {
            return Err("expected three different rows, but found one twice".into());
        }
        triplets.push(rows);
        Ok(())
    })?;
    Ok(Triplets { triplets, unknown })
}

/// Quadruplets of rows at hand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quadruplets {
    /// The quadruplets.
    pub quadruplets: Vec<Quadruplet>,
    /// Lines left out because a row of theirs was filtered away.
    pub unknown: u64,
}

/// Read quadruplets: lines `near near far far` with `strict` (the default) or `light` after them.
pub fn read_quadruplets(path: &Path, names: &RowNames) -> Result<Quadruplets> {
    let mut quadruplets = Vec::new();
    let expected = "the two rows of the near pair, those of the far pair, and strict or light";
    let mut visit = |_, rows: [RowId; 4], last: Option<&str>| {
        let strict = match last {
            None | Some("strict") => true,
            Some("light") => false,
            Some(other) => return Err(format!("expected strict or light, but found {other:?}")),
        };
        let [a, b, c, d] = rows;
        if c == d {
            return Err("expected a far pair of different rows, but found one twice".into());
        }
        if [a.min(b), a.max(b)] == [c.min(d), c.max(d)] {
            return Err("expected two pairs, but found one compared with itself".into());
        }
        quadruplets.push(Quadruplet {
            near: [a, b],
            far: [c, d],
            strict,
        });
        Ok(())
    };
    let unknown = visit_comparisons(path, names, "quadruplets", expected, &mut visit)?;
    Ok(Quadruplets {
        quadruplets,
        unknown,
    })
}

/// What a reader does with a line: its number, its rows and the field after them, if there is one.
type Visit<'a, const ROWS: usize> =
    &'a mut dyn FnMut(u64, [RowId; ROWS], Option<&str>) -> std::result::Result<(), String>;

/// Visit the lines all of whose rows are known, and count the others.
fn visit_comparisons<const ROWS: usize>(
    path: &Path,
    names: &RowNames,
    what: &str,
    expected: &str,
    visit: Visit<'_, ROWS>,
) -> Result<u64> {
    let (mut known, mut unknown) = (0_u64, 0_u64);
    visit_statements(path, &mut |line, text| {
        let bad = |problem: String| Error::row(path, Place::Line(line), problem);
        let fields = fields(text);
        let (Some((rows, rest)), 0 | 1) = (
            fields.split_first_chunk::<ROWS>(),
            fields.len().saturating_sub(ROWS),
        ) else {
            let found = fields.len();
            let problem = format!("expected {expected}, but found {found} fields");
            return Err(bad(problem));
        };
        let mut found = [0; ROWS];
        for (found, name) in found.iter_mut().zip(rows) {
            match names.find(name).map_err(bad)? {
                Some(row) => *found = row,
                None => {
                    unknown += 1;
                    return Ok(());
                }
            }
        }
        known += 1;
        visit(line, found, rest.first().copied()).map_err(bad)
    })?;
    match (known, unknown) {
        (0, 0) => Err(Error::file(
            path,
            format!("expected {what}, but found none"),
        )),
        (0, unknown) => {
            let table = names.table.display();
            let problem = format!(
                "expected {what} of rows that were read from {table}, but all {unknown} name some \
                 that were not"
            );
            Err(Error::file(path, problem))
        }
        _ => Ok(unknown),
    }
}
