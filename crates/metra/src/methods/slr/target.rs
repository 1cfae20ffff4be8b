//! Which pairs are relevant, row by row, as the regression's target needs it: classes, or a sparse
//! list with grades. The n × n target of eq. 2 is never made.

use crate::data::RowId;
use crate::supervision::Supervision;
use crate::{Error, Result};

/// Most relevant pairs of a sparse target: 2.4 GB, and the same again where it is turned round.
const MOST_PAIRS: u64 = 300_000_000;

/// The two thresholds δ₁ and δ₂ of Alg. 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Thresholds {
    /// δ₁: a relevant pair of mean grade is wanted at least this similar.
    pub(super) above: f32,
    /// δ₂: all other pairs are wanted at most this similar.
    pub(super) below: f32,
}

impl Thresholds {
    /// The least similarity wanted of a relevant pair whose grade is this multiple of the mean.
    #[inline]
    pub(super) fn least(self, grade: f32) -> f32 {
        self.below + (self.above - self.below) * grade
    }
}

/// Relevant columns of every row.
pub(super) enum Target {
    /// Rows and columns of the same class. A row is relevant to itself, as in eq. 2.
    Classes {
        /// Class of every row.
        of: Vec<u32>,
        /// Columns of class c: `members[starts[c]..starts[c + 1]]`, increasing.
        starts: Vec<u32>,
        members: Vec<u32>,
    },
    /// A list for every row: `columns[starts[r]..starts[r + 1]]`, increasing, with grades relative
    /// to their mean.
    Sparse {
        starts: Vec<usize>,
        columns: Vec<u32>,
        grades: Vec<f32>,
        /// Number of columns.
        width: usize,
    },
}

impl Target {
    /// The target that the supervision implies; `grades` says whether grades count. Refuses
    /// supervision in which nothing, or everything, is relevant.
    pub(super) fn new(supervision: &Supervision, grades: bool) -> Result<Self> {
        let relevance = supervision.relevance().ok_or_else(|| {
            Error::Data("expected supervision that says which pairs are relevant".into())
        })?;
        if relevance.pairs() == 0 {
            return Err(Error::Data(
                "no row has a relevant other row (every class has one row, or no judgement is \
                 above 0): expected at least one relevant pair"
                    .into(),
            ));
        }
        if relevance.items() > u64::from(u32::MAX) || relevance.queries() > u64::from(u32::MAX) {
            return Err(Error::shape(
                "rows",
                format!("at most {}", u32::MAX),
                relevance.items().max(relevance.queries()),
            ));
        }
        let every = (0..relevance.queries()).all(|query| relevance.irrelevant_count(query) == 0);
        if every {
            return Err(Error::Data(
                "every item is relevant to every query (one class?): expected some irrelevant \
                 items"
                    .into(),
            ));
        }
        if let Some(labels) = supervision.as_labels() {
            return Ok(Self::classes(labels.of().to_vec(), labels.of()));
        }
        // Labels that many rows have make lists of nearly all pairs.
        if relevance.pairs() > MOST_PAIRS {
            return Err(Error::shape(
                "relevant pairs, which are listed here",
                format!(
                    "at most {MOST_PAIRS}: take fewer rows, or leave out labels that most rows have"
                ),
                relevance.pairs(),
            ));
        }
        let sets = match supervision {
            Supervision::LabelSets(sets) => Some(sets),
            _ => None,
        };
        let within = relevance.within();
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        let mut found = Vec::new();
        for query in 0..relevance.queries() {
            found.clear();
            relevance.relevant(query, &mut found);
            if within {
                // Supervision leaves a row itself out; eq. 2 has it with a target of 1.
                let place = found.partition_point(|(item, _)| *item < query);
                // Nothing shares more labels with a row than the row itself.
                let own = sets.map_or(f32::NAN, |sets| sets.own_grade(query));
                found.insert(place, (query, own));
            }
            columns.extend(found.iter().map(|(item, _)| *item as u32));
            values.extend(found.iter().map(|(_, grade)| *grade));
            starts.push(columns.len());
        }
        let graded = values.iter().filter(|grade| !grade.is_nan());
        let (sum, count) = graded.fold((0.0, 0.0), |(sum, count), grade| {
            (sum + f64::from(*grade), count + 1.0)
        });
        for grade in &mut values {
            let relative = (f64::from(*grade) * count / sum) as f32;
            *grade = if grades && relative.is_finite() {
                relative
            } else {
                1.0
            };
        }
        Ok(Target::Sparse {
            starts,
            columns,
            grades: values,
            width: relevance.items() as usize,
        })
    }

    fn classes(of: Vec<u32>, columns: &[u32]) -> Self {
        let count = of
            .iter()
            .chain(columns)
            .max()
            .map_or(0, |c| *c as usize + 1);
        let mut starts = vec![0_u32; count + 1];
        for class in columns {
            starts[*class as usize + 1] += 1;
        }
        for class in 0..count {
            starts[class + 1] += starts[class];
        }
        let mut fill = starts.clone();
        let mut members = vec![0_u32; columns.len()];
        for (column, class) in columns.iter().enumerate() {
            let slot = &mut fill[*class as usize];
            members[*slot as usize] = column as u32;
            *slot += 1;
        }
        Target::Classes {
            of,
            starts,
            members,
        }
    }

    /// The class of every row, where rows have one.
    pub(super) fn row_classes(&self) -> Option<&[u32]> {
        match self {
            Target::Classes { of, .. } => Some(of),
            Target::Sparse { .. } => None,
        }
    }

    /// The target of rows that are not known yet against columns of these classes.
    pub(super) fn of_columns(columns: &[u32]) -> Self {
        Self::classes(Vec::new(), columns)
    }

    /// Other rows, by their classes, against the same columns.
    pub(super) fn set_rows(&mut self, classes: Vec<u32>) -> Result<()> {
        let Target::Classes { of, starts, .. } = self else {
            return Err(Error::Data("expected a target of classes".into()));
        };
        let known = starts.len().saturating_sub(1);
        if let Some(class) = classes.iter().find(|class| **class as usize >= known) {
            return Err(Error::shape("a class", format!("below {known}"), class));
        }
        *of = classes;
        Ok(())
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        match self {
            Target::Classes { of, .. } => of.len(),
            Target::Sparse { starts, .. } => starts.len() - 1,
        }
    }

    /// Number of columns.
    pub(super) fn columns(&self) -> usize {
        match self {
            Target::Classes { members, .. } => members.len(),
            Target::Sparse { width, .. } => *width,
        }
    }

    /// Relevant columns of a row in increasing order, with grades where they differ.
    pub(super) fn relevant(&self, row: usize) -> (&[u32], Option<&[f32]>) {
        match self {
            Target::Classes {
                of,
                starts,
                members,
            } => {
                let class = of[row] as usize;
                let range = starts[class] as usize..starts[class + 1] as usize;
                (&members[range], None)
            }
            Target::Sparse {
                starts,
                columns,
                grades,
                ..
            } => {
                let range = starts[row]..starts[row + 1];
                (&columns[range.clone()], Some(&grades[range]))
            }
        }
    }

    /// Columns as rows and rows as columns.
    pub(super) fn transposed(&self) -> Self {
        match self {
            Target::Classes { of, .. } => Self::classes(self.column_classes(), of),
            Target::Sparse {
                columns,
                grades,
                width,
                ..
            } => {
                let mut starts = vec![0_usize; width + 1];
                for column in columns {
                    starts[*column as usize + 1] += 1;
                }
                for column in 0..*width {
                    starts[column + 1] += starts[column];
                }
                let mut fill = starts.clone();
                let mut rows = vec![0_u32; columns.len()];
                let mut values = vec![0.0_f32; columns.len()];
                let mut entry = 0;
                for row in 0..self.rows() {
                    for column in self.relevant(row).0 {
                        let slot = &mut fill[*column as usize];
                        rows[*slot] = row as u32;
                        values[*slot] = grades[entry];
                        *slot += 1;
                        entry += 1;
                    }
                }
                Target::Sparse {
                    starts,
                    columns: rows,
                    grades: values,
                    width: self.rows(),
                }
            }
        }
    }

    /// Some rows and columns alone (increasing numbers), renumbered; `None` for all.
    pub(super) fn select(&self, rows: Option<&[RowId]>, columns: Option<&[RowId]>) -> Self {
        let chosen = |numbers: Option<&[RowId]>, count: usize| -> Vec<usize> {
            numbers.map_or_else(
                || (0..count).collect(),
                |numbers| numbers.iter().map(|n| *n as usize).collect(),
            )
        };
        let (rows, columns) = (chosen(rows, self.rows()), chosen(columns, self.columns()));
        match self {
            Target::Classes { of, .. } => {
                let classes = self.column_classes();
                let columns: Vec<u32> = columns.iter().map(|c| classes[*c]).collect();
                Self::classes(rows.iter().map(|r| of[*r]).collect(), &columns)
            }
            Target::Sparse { .. } => {
                let mut place = vec![u32::MAX; self.columns()];
                for (number, column) in columns.iter().enumerate() {
                    place[*column] = number as u32;
                }
                let (mut starts, mut kept, mut values) = (vec![0], Vec::new(), Vec::new());
                for row in rows {
                    let (relevant, grades) = self.relevant(row);
                    for (entry, column) in relevant.iter().enumerate() {
                        if place[*column as usize] != u32::MAX {
                            kept.push(place[*column as usize]);
                            values.push(grades.map_or(1.0, |grades| grades[entry]));
                        }
                    }
                    starts.push(kept.len());
                }
                Target::Sparse {
                    starts,
                    columns: kept,
                    grades: values,
                    width: columns.len(),
                }
            }
        }
    }

    /// Class of every column; empty for a sparse target.
    fn column_classes(&self) -> Vec<u32> {
        let Target::Classes {
            starts, members, ..
        } = self
        else {
            return Vec::new();
        };
        let mut classes = vec![0_u32; members.len()];
        for (class, bounds) in starts.windows(2).enumerate() {
            for member in &members[bounds[0] as usize..bounds[1] as usize] {
                classes[*member as usize] = class as u32;
            }
        }
        classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervision::{Judgement, Judgements, Labels};

    fn listed(target: &Target) -> Vec<(usize, u32)> {
        (0..target.rows())
            .flat_map(|row| {
                target
                    .relevant(row)
                    .0
                    .iter()
                    .map(move |column| (row, *column))
            })
            .collect()
    }

    #[test]
    fn rows_and_columns_can_be_swapped_and_selected() {
        let labels = Labels::from_numbers(&[7, 5, 7, 5, 9]).unwrap();
        let target = Target::new(&Supervision::labels(labels), true).unwrap();
        let pairs = [
            (0, 0),
            (0, 2),
            (1, 1),
            (1, 3),
            (2, 0),
            (2, 2),
            (3, 1),
            (3, 3),
            (4, 4),
        ];
        assert_eq!(listed(&target), pairs);
        assert_eq!(listed(&target.transposed()), pairs);
        // Rows 0 and 4 against columns 2, 3, 4: row 0 has column 2 (now 0), row 4 column 4 (now 2).
        let part = target.select(Some(&[0, 4]), Some(&[2, 3, 4]));
        assert_eq!(listed(&part), [(0, 0), (1, 2)]);
        assert_eq!((part.rows(), part.columns()), (2, 3));
        assert_eq!(listed(&part.transposed()), [(0, 0), (2, 1)]);
    }

    #[test]
    fn grades_are_relative_to_their_mean() {
        let line = |query, item, grade| Judgement { query, item, grade };
        let lines = [line(0, 2, 1.0), line(1, 0, 3.0), line(1, 2, 2.0)];
        let judged = Supervision::judgements(Judgements::new(2, 3, &lines).unwrap());
        let target = Target::new(&judged, true).unwrap();
        assert_eq!(target.relevant(1), (&[0, 2][..], Some(&[1.5, 1.0][..])));
        let swapped = target.transposed();
        assert_eq!(swapped.relevant(2), (&[0, 1][..], Some(&[0.5, 1.0][..])));
        assert_eq!(listed(&target.select(None, Some(&[2]))), [(0, 0), (1, 0)]);
        let plain = Target::new(&judged, false).unwrap();
        assert_eq!(plain.relevant(1).1, Some(&[1.0, 1.0][..]));
        // Within one corpus a row is relevant to itself.
        let within = Judgements::within_one(3, &lines).unwrap();
        let target = Target::new(&Supervision::judgements(within), true).unwrap();
        assert_eq!(
            listed(&target),
            [(0, 0), (0, 2), (1, 0), (1, 1), (1, 2), (2, 2)]
        );
    }

    #[test]
    fn nothing_or_everything_relevant_is_an_error() {
        let of = |numbers: &[i64]| {
            let labels = Supervision::labels(Labels::from_numbers(numbers).unwrap());
            Target::new(&labels, true).err().unwrap().to_string()
        };
        assert!(of(&[1, 2, 3]).contains("at least one relevant pair"));
        assert!(of(&[1, 1, 1]).contains("some irrelevant items"));
    }
}
