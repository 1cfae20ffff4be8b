//! A first look at vectors: what they are, what might go wrong with them, and how much there is to gain.

use super::holdout::HoldOut;
use crate::data::{Corpus, Subset};
use crate::evaluate::{EvaluationOptions, LeaveOneOut, Measure, evaluate};
use crate::execute::spread;
use crate::model::Space;
use crate::random::Stream;
use crate::supervision::Labels;
use crate::{Error, Result};
use serde::Serialize;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Columns of measured quantities differ by more than this in spread, those of embeddings by less.
const WIDE: f64 = 100.0;
/// Rows from which the headroom is estimated.
const HEADROOM_ROWS: usize = 4_000;

/// What vectors are like.
#[derive(Debug, Serialize)]
pub struct DataSummary {
    /// Smallest, mean and largest length of a vector.
    pub norms: Norms,
    /// Vectors of length 0, which cosine cannot compare.
    pub zero_vectors: u64,
    /// Whether some value is below 0.
    pub negative_values: bool,
    /// Largest standard deviation of a column beside the smallest.
    pub spread_ratio: f64,
    /// Rows that equal an earlier one.
    pub duplicates: u64,
    /// Of these, those with another label.
    pub duplicates_of_another_class: u64,
    /// Sizes of the classes, where there are labels.
    pub classes: Option<ClassSizes>,
    /// How well the vectors rank as they are, on a sample of whole classes, by every score that can compare
    /// them.
    pub headroom: Vec<RankedAsIs>,
}

/// Lengths of vectors.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Norms {
    pub smallest: f64,
    pub mean: f64,
    pub largest: f64,
}

/// How many rows classes have.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ClassSizes {
    pub count: usize,
    pub smallest: usize,
    pub median: usize,
    pub largest: usize,
    pub of_one_row: usize,
    /// What training holds out by default.
    pub holdout: String,
}

/// Measures of vectors as they are.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct RankedAsIs {
    pub score: String,
    pub queries: usize,
    pub map: f64,
    pub p1: f64,
}

impl DataSummary {
    /// Look at all rows; `seed` draws the classes that the headroom is estimated from.
    pub fn new(corpus: &dyn Corpus, labels: Option<&Labels>, seed: u64) -> Result<Self> {
        if let Some(labels) = labels.filter(|labels| labels.of().len() as u64 != corpus.len()) {
            return Err(Error::shape("labels", corpus.len(), labels.of().len()));
        }
        let mut summary = DataSummary {
            norms: Norms {
                smallest: f64::INFINITY,
                mean: 0.0,
                largest: 0.0,
            },
            zero_vectors: 0,
            negative_values: false,
            spread_ratio: spread_ratio(&spread(corpus)?.deviation),
            duplicates: 0,
            duplicates_of_another_class: 0,
            classes: labels.map(ClassSizes::new),
            headroom: Vec::new(),
        };
        summary.look(corpus, labels)?;
        if let Some(labels) = labels {
            summary.headroom = headroom(corpus, labels, summary.scores(), seed)?;
        }
        Ok(summary)
    }

    /// The scores that vectors as they are can be compared by.
    pub fn scores(&self) -> &'static [Space] {
        match self.zero_vectors {
            0 => &[Space::SquaredL2, Space::Cosine],
            _ => &[Space::SquaredL2],
        }
    }

    /// Preparations worth a try, each with the reason.
    pub fn hints(&self) -> Vec<(&'static str, String)> {
        let mut hints = Vec::new();
        if self.spread_ratio > WIDE {
            let reason = format!(
                "columns differ {:.0}-fold in spread, so that the widest decide",
                self.spread_ratio
            );
            hints.push(("scale", reason));
        }
        if !self.negative_values {
            let reason = "no value is negative, as in histograms";
            hints.push(("sqrt", reason.to_string()));
        }
        hints
    }

    fn look(&mut self, corpus: &dyn Corpus, labels: Option<&Labels>) -> Result<()> {
        // Rows are told apart by a 128-bit hash: 16 bytes a row, whatever the dimension.
        let mut first_seen: HashMap<u128, u64> = HashMap::new();
        corpus.scan(0..corpus.len(), &mut |first, rows| {
            for (row, number) in rows.iter().zip(first..) {
                let norm = (row.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>()).sqrt();
                self.norms.smallest = self.norms.smallest.min(norm);
                self.norms.largest = self.norms.largest.max(norm);
                self.norms.mean += norm / corpus.len() as f64;
                self.zero_vectors += u64::from(norm == 0.0);
                self.negative_values |= row.iter().any(|v| *v < 0.0);
                match first_seen.entry(hash(row)) {
                    Entry::Vacant(slot) => {
                        slot.insert(number);
                    }
                    Entry::Occupied(slot) => {
                        self.duplicates += 1;
                        let class = |row: u64| labels.map(|labels| labels.of()[row as usize]);
                        self.duplicates_of_another_class +=
                            u64::from(class(*slot.get()) != class(number));
                    }
                }
            }
            Ok(())
        })
    }
}

impl ClassSizes {
    fn new(labels: &Labels) -> Self {
        let sizes = || (0..labels.classes()).map(|class| labels.members(class as u32).len());
        ClassSizes {
            count: labels.classes(),
            smallest: sizes().min().unwrap_or(0),
            median: labels.median_class_size(),
            largest: sizes().max().unwrap_or(0),
            of_one_row: labels.singletons(),
            holdout: HoldOut::for_labels(labels).to_string(),
        }
    }
}

fn spread_ratio(deviations: &[f64]) -> f64 {
    let deviations = deviations.iter().filter(|deviation| **deviation > 0.0);
    let ends = (f64::INFINITY, 0.0_f64);
    let (low, high) = deviations.fold(ends, |(low, high), d| (low.min(*d), high.max(*d)));
    if high > 0.0 { high / low } else { 1.0 }
}

/// Two independent FNV-1a hashes over the bits of the values.
fn hash(row: &[f32]) -> u128 {
    let mut halves = [0xcbf2_9ce4_8422_2325_u64, 0x6c62_272e_07bb_0142];
    for value in row {
        // −0 and 0 are one value.
        let bits = u64::from((value + 0.0).to_bits());
        halves[0] = (halves[0] ^ bits).wrapping_mul(0x0000_0100_0000_01b3);
        halves[1] = (halves[1] ^ bits.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    u128::from(halves[0]) << 64 | u128::from(halves[1])
}

/// How well the vectors rank as they are, on a sample of whole classes.
fn headroom(
    corpus: &dyn Corpus,
    labels: &Labels,
    scores: &[Space],
    seed: u64,
) -> Result<Vec<RankedAsIs>> {
    let mut order: Vec<u32> = (0..labels.classes() as u32).collect();
    Stream::new(seed, "headroom", 0).shuffle(&mut order);
    let mut rows: Vec<u64> = Vec::new();
    for class in order {
        let members = labels.members(class);
        if !rows.is_empty() && rows.len() + members.len() > HEADROOM_ROWS {
            continue;
        }
        rows.extend(members.iter().take(HEADROOM_ROWS).map(|m| u64::from(*m)));
    }
    rows.sort_unstable();
    let part = labels.select(&rows)?;
    let sample = Subset::new(corpus, rows)?;
    let options = EvaluationOptions {
        measures: vec![Measure::AveragePrecision, Measure::PrecisionAt(1)],
        ..EvaluationOptions::default()
    };
    let mut found = Vec::new();
    for score in scores {
        let result = evaluate(*score, &sample, &sample, &LeaveOneOut(&part), &options)?;
        let mean = |measure| result.mean(measure);
        let measured = mean(Measure::AveragePrecision).zip(mean(Measure::PrecisionAt(1)));
        if let Some((map, p1)) = measured {
            found.push(RankedAsIs {
                score: score.to_string(),
                queries: result.queries.len(),
                map,
                p1,
            });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MemoryCorpus;
    use crate::linalg::RowBuf;

    #[test]
    fn what_is_odd_is_counted() {
        let values = vec![3.0, 4.0, 0.0, 0.0, 3.0, 4.0, -0.0, 0.0, 0.0, 1000.0];
        let corpus = MemoryCorpus::new(RowBuf::from_values(values, 2).unwrap()).unwrap();
        let labels = Labels::from_numbers(&[0, 0, 1, 0, 2]).unwrap();
        let found = DataSummary::new(&corpus, Some(&labels), 1).unwrap();
        assert_eq!(found.norms.smallest, 0.0);
        assert_eq!(found.norms.largest, 1000.0);
        assert!((found.norms.mean - 202.0).abs() < 1e-9);
        assert_eq!((found.zero_vectors, found.duplicates), (2, 2));
        assert_eq!(found.duplicates_of_another_class, 1);
        assert_eq!(found.scores(), [Space::SquaredL2]);
        let classes = found.classes.as_ref().unwrap();
        assert_eq!((classes.count, classes.of_one_row), (3, 2));
        let hints: Vec<&str> = found.hints().iter().map(|hint| hint.0).collect();
        assert_eq!(hints, ["scale", "sqrt"]);
        // The two origins find each other; the row at (3, 4) finds its twin first, which is of another class.
        assert_eq!(found.headroom[0].queries, 3);
        assert!((found.headroom[0].p1 - 2.0 / 3.0).abs() < 1e-9);

        let alone = DataSummary::new(&corpus, None, 1).unwrap();
        assert!(alone.headroom.is_empty() && alone.classes.is_none());
        assert_eq!(alone.duplicates_of_another_class, 0);
        let few = Labels::from_numbers(&[0, 0]).unwrap();
        assert!(DataSummary::new(&corpus, Some(&few), 1).is_err());
    }
}
