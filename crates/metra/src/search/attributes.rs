//! Search in attribute space: rank by one attribute, and "like this, but more of that".
//!
//! Rows are scores, one number an attribute (`methods::Attributes`). Scores of different attributes
//! have different spreads, so all is said in standard deviations of an attribute over the rows.
//!
//! "More" is a promise here: an answer has at least so much more, and among those that do, the
//! nearest to the moved point come first. The moved point alone would return rows that have no more
//! of the attribute wherever the other attributes count for more; the bound alone would not care by
//! how much an answer overshoots.

use crate::data::{Corpus, RowId};
use crate::linalg::RowBuf;
use crate::{Error, Result};

/// Scores of rows, with the name of every attribute.
pub struct AttributeSpace<'a> {
    scores: &'a dyn Corpus,
    names: &'a [String],
    means: Vec<f64>,
    deviations: Vec<f64>,
}

/// What an answer has to have beside being like a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Number of the attribute.
    pub attribute: usize,
    /// At least so many standard deviations more; less where it is negative.
    pub by: f64,
}

/// A row like another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alike {
    /// The row.
    pub row: RowId,
    /// How far it is from the moved point, in standard deviations.
    pub distance: f64,
}

impl<'a> AttributeSpace<'a> {
    /// Scores with their names, in the order of the columns. One pass in O(n·attributes).
    pub fn new(scores: &'a dyn Corpus, names: &'a [String]) -> Result<Self> {
        if names.len() != scores.dim() {
            return Err(Error::shape("attributes", names.len(), scores.dim()));
        }
        if scores.is_empty() {
            return Err(Error::Data("there is no row to rank".into()));
        }
        let (mut means, mut squares) = (vec![0.0; names.len()], vec![0.0; names.len()]);
        scores.scan(0..scores.len(), &mut |first, rows| {
            for (row, number) in rows.iter().zip(first..) {
                // Welford's update: sums of squares would lose a small spread around a large mean.
                let count = number as f64 + 1.0;
                for ((mean, squares), value) in means.iter_mut().zip(&mut squares).zip(row) {
                    let off = f64::from(*value) - *mean;
                    *mean += off / count;
                    *squares += off * (f64::from(*value) - *mean);
                }
            }
            Ok(())
        })?;
        let count = scores.len() as f64;
        let deviations = squares.iter().map(|s| (s / count).sqrt()).collect();
        Ok(AttributeSpace {
            scores,
            names,
            means,
            deviations,
        })
    }

    /// Names of the attributes.
    pub fn names(&self) -> &[String] {
        self.names
    }

    /// Number of an attribute by its name.
    pub fn find(&self, name: &str) -> Result<usize> {
        (self.names.iter().position(|n| n == name)).ok_or_else(|| {
            let expected = format!("one of {}", self.names.join(", "));
            Error::parameter("attribute", expected, format!("{name:?}"))
        })
    }

    /// A score of an attribute in standard deviations from its mean; 0 where all rows are equal.
    pub fn standard(&self, attribute: usize, score: f32) -> f64 {
        match self.deviations[attribute] {
            0.0 => 0.0,
            deviation => (f64::from(score) - self.means[attribute]) / deviation,
        }
    }

    /// Every row with its score by one attribute, least first; equal ones by row.
    pub fn ranked(&self, attribute: usize) -> Result<Vec<(RowId, f32)>> {
        let mut ranked = Vec::with_capacity(self.scores.len() as usize);
        self.scores.scan(0..self.scores.len(), &mut |first, rows| {
            ranked.extend((rows.iter().zip(first..)).map(|(row, id)| (id, row[attribute])));
            Ok(())
        })?;
        ranked.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        Ok(ranked)
    }

    /// All scores of some rows.
    pub fn scores_of(&self, rows: &[RowId]) -> Result<RowBuf> {
        let mut scores = RowBuf::empty(self.scores.dim());
        self.scores.gather(rows, &mut scores)?;
        Ok(scores)
    }

    /// The `k` rows nearest to `row` once its scores are moved by the changes, among the rows that
    /// have at least as much more of every attribute named; fewer where fewer have. All attributes
    /// count alike, in standard deviations. O(n·attributes) time.
    pub fn like(&self, row: RowId, changes: &[Change], k: usize) -> Result<Vec<Alike>> {
        if row >= self.scores.len() {
            let expected = format!("below {} (the rows)", self.scores.len());
            return Err(Error::parameter("row", expected, row));
        }
        self.check(changes)?;
        let start = self.scores_of(&[row])?;
        let standards = |scores: &[f32]| -> Vec<f64> {
            let numbered = scores.iter().enumerate();
            numbered
                .map(|(a, score)| self.standard(a, *score))
                .collect()
        };
        let mut target = start.rows().iter().next().map_or_else(Vec::new, standards);
        for change in changes {
            target[change.attribute] += change.by;
        }
        let mut nearest: Vec<(f64, RowId)> = Vec::new();
        let cut = |nearest: &mut Vec<(f64, RowId)>| {
            nearest.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            nearest.truncate(k);
        };
        self.scores.scan(0..self.scores.len(), &mut |first, rows| {
            for (scores, id) in rows.iter().zip(first..) {
                let found = standards(scores);
                let enough = changes.iter().all(|change| {
                    let (has, wanted) = (found[change.attribute], target[change.attribute]);
                    // A row at the very bound is in, although its score was rounded to f32.
                    let slack = 1e-6 * (1.0 + wanted.abs());
                    match change.by < 0.0 {
                        true => has <= wanted + slack,
                        false => has >= wanted - slack,
                    }
                });
                if id != row && enough {
                    let squares = found.iter().zip(&target).map(|(a, b)| (a - b) * (a - b));
                    nearest.push((squares.sum(), id));
                }
            }
            if nearest.len() > k.saturating_mul(2).max(1 << 16) {
                cut(&mut nearest);
            }
            Ok(())
        })?;
        cut(&mut nearest);
        Ok((nearest.into_iter())
            .map(|(squared, row)| Alike {
                row,
                distance: squared.sqrt(),
            })
            .collect())
    }

    fn check(&self, changes: &[Change]) -> Result<()> {
        for (place, change) in changes.iter().enumerate() {
            let Some(name) = self.names.get(change.attribute) else {
                let expected = format!("below {}", self.names.len());
                return Err(Error::parameter("attribute", expected, change.attribute));
            };
            if !change.by.is_finite() {
                let expected = "a finite number of standard deviations";
                return Err(Error::parameter(name, expected, change.by));
            }
            if changes[..place]
                .iter()
                .any(|c| c.attribute == change.attribute)
            {
                return Err(Error::parameter(name, "changed once", "changed twice"));
            }
            if self.deviations[change.attribute] == 0.0 {
                return Err(Error::Data(format!(
                    "all rows have the same {name:?}: none has more or less of it"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;

    fn corpus(values: &[f32]) -> MemoryCorpus {
        MemoryCorpus::new(RowBuf::from_values(values.to_vec(), 2).unwrap()).unwrap()
    }

    fn names() -> [String; 2] {
        ["bright".into(), "large".into()]
    }

    #[test]
    fn ranks_from_least_to_most() {
        let (rows, names) = (corpus(&[3.0, 0.0, 1.0, 9.0, 3.0, 1.0]), names());
        let space = AttributeSpace::new(&rows, &names).unwrap();
        let bright = space.find("bright").unwrap();
        assert_eq!(
            space.ranked(bright).unwrap(),
            [(1, 1.0), (0, 3.0), (2, 3.0)]
        );
        // Mean 7/3, squares (4 + 16 + 4)/9/3 = 8/9: 3 lies (2/3)/√(8/9) = 1/√2 above.
        assert!((space.standard(bright, 3.0) - 0.5_f64.sqrt()).abs() < 1e-12);
        let error = space.find("loud").unwrap_err().to_string();
        assert!(
            error.contains("bright, large") && error.contains("loud"),
            "{error}"
        );
        assert!(AttributeSpace::new(&rows, &names[..1]).is_err());
    }

    #[test]
    fn more_is_a_promise() {
        // Brightness 0, 2, 4, 4, 2, 0 and size 0, 0, 0, 2, 2, 2: deviations √(8/3) and 1.
        let values = [0.0, 0.0, 2.0, 0.0, 4.0, 0.0, 4.0, 2.0, 2.0, 2.0, 0.0, 2.0];
        let (rows, names) = (corpus(&values), names());
        let space = AttributeSpace::new(&rows, &names).unwrap();
        let deviation = (8.0_f64 / 3.0).sqrt();
        let like = |changes: &[Change], k| -> Vec<u64> {
            let found = space.like(0, changes, k).unwrap();
            found.iter().map(|alike| alike.row).collect()
        };
        let brighter = |by| Change { attribute: 0, by };
        // As bright as row 0 and 2 more: row 1 is there, then rows 2 (4, 0), 4 (2, 2), 3.
        let two = 2.0 / deviation;
        assert_eq!(like(&[brighter(two)], 9), [1, 2, 4, 3]);
        // 3 more: nobody has it exactly, those with 4 have it; row 1 would be as near as row 2.
        assert_eq!(like(&[brighter(1.5 * two)], 9), [2, 3]);
        assert_eq!(like(&[brighter(3.0 * two)], 9), [0_u64; 0]);
        // 2 brighter and not less than one size larger: rows 4, 3.
        let larger = Change {
            attribute: 1,
            by: 1.0,
        };
        assert_eq!(like(&[brighter(two), larger], 9), [4, 3]);
        // Nothing darker than the darkest.
        assert_eq!(like(&[brighter(-0.1)], 9), [0_u64; 0]);
        let found = space.like(0, &[brighter(two)], 2).unwrap();
        assert!(found[0].distance.abs() < 1e-6);
        assert!((found[1].distance - two).abs() < 1e-6);
        // Without a change the nearest in attribute space: sizes are 2 deviations apart.
        assert_eq!(like(&[], 2), [1, 5]);
        assert!(space.like(6, &[], 2).is_err());
        assert!(space.like(0, &[larger, larger], 2).is_err());
        assert!(space.like(0, &[brighter(f64::NAN)], 2).is_err());
        let same = corpus(&[1.0, 2.0, 1.0, 3.0]);
        let space = AttributeSpace::new(&same, &names).unwrap();
        assert!(space.like(0, &[brighter(1.0)], 2).is_err());
    }
}
