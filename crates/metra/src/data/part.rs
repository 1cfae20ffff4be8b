//! What a pass over some rows has to say, in pieces that merge with those of other rows.
//!
//! The kinds are few and closed, so that whoever merges needs to know nothing of the pass: not its
//! settings, not its vectors. Each kind splits into blocks that merge on their own, since an engine
//! does not carry a result of any size in one message.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// A result of some rows that merges with results of other rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Part {
    /// Numbers that are added, in the order of shards.
    Sum(Vec<f64>),
    /// Counts that are added.
    Count(Vec<u64>),
    /// The nearest rows of each query.
    Nearest(Nearest),
    /// What shards say each for itself: a shard's number, a number within it, and its words.
    Said(Vec<(u64, u64, Vec<u8>)>),
}

/// The rows nearest to each query, with their scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Nearest {
    /// Most rows kept for a query.
    pub k: u64,
    /// For each query, rows with their scores from near to far; ties by the smaller row number.
    pub rows: Vec<Vec<(f32, u64)>>,
}

impl Part {
    /// Take in what a later shard says. Both must come from the same pass.
    pub fn merge(&mut self, later: Part) -> Result<()> {
        match (self, later) {
            (Part::Sum(sum), Part::Sum(other)) => add(sum, other, |a, b| a + b),
            (Part::Count(sum), Part::Count(other)) => add(sum, other, u64::saturating_add),
            (Part::Nearest(nearest), Part::Nearest(other)) => nearest.merge(other),
            (Part::Said(said), Part::Said(mut other)) => {
                said.append(&mut other);
                Ok(())
            }
            (mine, other) => Err(Error::shape(
                "kind of a partial result",
                mine.kind(),
                other.kind(),
            )),
        }
    }

    /// Split into blocks of about `bytes` each, at least one; [`Part::join`] puts them together.
    pub fn blocks(self, bytes: usize) -> Vec<Part> {
        match self {
            Part::Sum(values) => chunks(values, bytes / 8, Part::Sum),
            Part::Count(values) => chunks(values, bytes / 8, Part::Count),
            Part::Nearest(Nearest { k, rows }) => {
                let query = usize::try_from(k).unwrap_or(usize::MAX).saturating_mul(12);
                chunks(rows, bytes / query.max(1), |rows| {
                    Part::Nearest(Nearest { k, rows })
                })
            }
            Part::Said(said) => {
                let longest = said.iter().map(|(_, _, words)| words.len()).max();
                chunks(said, bytes / longest.unwrap_or(1).max(1), Part::Said)
            }
        }
    }

    /// Put blocks together that [`Part::blocks`] made, in their order.
    pub fn join(blocks: impl IntoIterator<Item = Part>) -> Result<Part> {
        let mut blocks = blocks.into_iter();
        let first = blocks.next();
        let mut whole = first.ok_or_else(|| Error::shape("blocks of a result", "at least 1", 0))?;
        for block in blocks {
            match (&mut whole, block) {
                (Part::Sum(values), Part::Sum(mut more)) => values.append(&mut more),
                (Part::Count(values), Part::Count(mut more)) => values.append(&mut more),
                (Part::Nearest(all), Part::Nearest(mut more)) => all.rows.append(&mut more.rows),
                (Part::Said(said), Part::Said(mut more)) => said.append(&mut more),
                (mine, other) => {
                    let (expected, found) = (mine.kind(), other.kind());
                    return Err(Error::shape("kind of a block", expected, found));
                }
            }
        }
        if let Part::Said(said) = &mut whole {
            // Blocks of different shards may have travelled in any order.
            said.sort_by_key(|(shard, number, _)| (*shard, *number));
        }
        Ok(whole)
    }

    /// The part as bytes that [`Part::from_bytes`] reads on any machine.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        // Numbers are most of what travels: they are copied as they lie.
        match self {
            Part::Sum(values) => Ok(numbers(SUM, values.iter().map(|v| v.to_le_bytes()))),
            Part::Count(values) => Ok(numbers(COUNT, values.iter().map(|v| v.to_le_bytes()))),
            other => {
                let mut bytes = vec![OTHER];
                let written = postcard::to_allocvec(other);
                bytes.extend(written.map_err(|e| Error::Data(format!("a result: {e}")))?);
                Ok(bytes)
            }
        }
    }

    /// What [`Part::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Part> {
        let broken = |problem: String| Error::Data(format!("a partial result: {problem}"));
        let (kind, rest) = bytes
            .split_first()
            .ok_or_else(|| broken("is empty".into()))?;
        let (values, left) = rest.as_chunks::<8>();
        match *kind {
            SUM | COUNT if !left.is_empty() => Err(broken("ends within a number".into())),
            SUM => Ok(Part::Sum(
                values.iter().map(|v| f64::from_le_bytes(*v)).collect(),
            )),
            COUNT => Ok(Part::Count(
                values.iter().map(|v| u64::from_le_bytes(*v)).collect(),
            )),
            _ => postcard::from_bytes(rest).map_err(|e| broken(e.to_string())),
        }
    }

    /// The numbers of a sum.
    pub fn into_sum(self) -> Result<Vec<f64>> {
        match self {
            Part::Sum(values) => Ok(values),
            other => Err(Error::shape("a part of a result", "a sum", other.kind())),
        }
    }

    /// The numbers of a count.
    pub fn into_count(self) -> Result<Vec<u64>> {
        match self {
            Part::Count(values) => Ok(values),
            other => Err(Error::shape("a part of a result", "a count", other.kind())),
        }
    }

    /// The nearest rows.
    pub fn into_nearest(self) -> Result<Nearest> {
        match self {
            Part::Nearest(nearest) => Ok(nearest),
            other => Err(Error::shape(
                "a part of a result",
                "nearest rows",
                other.kind(),
            )),
        }
    }

    /// What shards said, in the order of shards.
    pub fn into_said(self) -> Result<Vec<(u64, u64, Vec<u8>)>> {
        match self {
            Part::Said(said) => Ok(said),
            other => Err(Error::shape("a part of a result", "words", other.kind())),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Part::Sum(_) => "a sum",
            Part::Count(_) => "a count",
            Part::Nearest(_) => "nearest rows",
            Part::Said(_) => "words",
        }
    }
}

impl Nearest {
    fn merge(&mut self, other: Nearest) -> Result<()> {
        if self.rows.len() != other.rows.len() {
            let (expected, found) = (self.rows.len(), other.rows.len());
            return Err(Error::shape("queries of a partial result", expected, found));
        }
        let k = usize::try_from(self.k).unwrap_or(usize::MAX);
        for (mine, mut other) in self.rows.iter_mut().zip(other.rows) {
            mine.append(&mut other);
            // Scores are finite, so that this order is total.
            mine.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            mine.truncate(k);
        }
        Ok(())
    }
}

/// First byte of a part: its kind.
const SUM: u8 = 0;
const COUNT: u8 = 1;
const OTHER: u8 = 2;

fn numbers(kind: u8, values: impl ExactSizeIterator<Item = [u8; 8]>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + 8 * values.len());
    bytes.push(kind);
    bytes.extend(values.flatten());
    bytes
}

fn add<T: Copy>(sum: &mut [T], other: Vec<T>, plus: impl Fn(T, T) -> T) -> Result<()> {
    if sum.len() != other.len() {
        let what = "numbers of a partial result";
        return Err(Error::shape(what, sum.len(), other.len()));
    }
    for (sum, other) in sum.iter_mut().zip(other) {
        *sum = plus(*sum, other);
    }
    Ok(())
}

fn chunks<T>(mut values: Vec<T>, most: usize, part: impl Fn(Vec<T>) -> Part) -> Vec<Part> {
    let most = most.max(1);
    if values.len() <= most {
        return vec![part(values)];
    }
    let mut blocks = Vec::with_capacity(values.len().div_ceil(most));
    while values.len() > most {
        let rest = values.split_off(most);
        blocks.push(part(std::mem::replace(&mut values, rest)));
    }
    blocks.push(part(values));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest(rows: &[&[(f32, u64)]]) -> Part {
        let rows = rows.iter().map(|row| row.to_vec()).collect();
        Part::Nearest(Nearest { k: 2, rows })
    }

    #[test]
    fn every_kind_merges_by_hand() {
        for (mut first, later, expected) in [
            (
                Part::Sum(vec![1.0, 2.0]),
                Part::Sum(vec![0.5, -2.0]),
                Part::Sum(vec![1.5, 0.0]),
            ),
            (
                Part::Count(vec![1]),
                Part::Count(vec![2]),
                Part::Count(vec![3]),
            ),
            (
                nearest(&[&[(1.0, 5), (3.0, 1)], &[(2.0, 9)]]),
                nearest(&[&[(1.0, 2), (2.0, 7)], &[]]),
                // Of the two at 1.0 the smaller row number comes first; only two are kept.
                nearest(&[&[(1.0, 2), (1.0, 5)], &[(2.0, 9)]]),
            ),
            (
                Part::Said(vec![(0, 0, vec![1])]),
                Part::Said(vec![(1, 0, vec![2])]),
                Part::Said(vec![(0, 0, vec![1]), (1, 0, vec![2])]),
            ),
        ] {
            first.merge(later).unwrap();
            assert_eq!(first, expected);
        }
    }

    #[test]
    fn what_does_not_belong_together_is_an_error() {
        assert!(Part::Sum(vec![1.0]).merge(Part::Count(vec![1])).is_err());
        assert!(Part::Sum(vec![1.0]).merge(Part::Sum(vec![])).is_err());
        assert!(nearest(&[&[]]).merge(nearest(&[])).is_err());
        assert!(Part::join([Part::Sum(vec![]), Part::Count(vec![])]).is_err());
        assert!(Part::join([]).is_err());
    }

    #[test]
    fn blocks_join_to_the_whole() {
        let sum = Part::Sum((0..1000).map(f64::from).collect());
        let count = Part::Count((0..77).collect());
        let near = nearest(&[&[(1.0, 5)], &[(2.0, 9)], &[(3.0, 9)]]);
        let said = Part::Said((0..9).map(|n| (n / 3, n % 3, vec![7; 40])).collect());
        for (part, blocks) in [(sum, 125), (count, 10), (near, 2), (said, 9)] {
            let split = part.clone().blocks(64);
            assert_eq!(split.len(), blocks, "{}", part.kind());
            let split = split.iter().map(|block| {
                let bytes = block.to_bytes().unwrap();
                assert!(Part::from_bytes(&bytes[..bytes.len() - 1]).is_err());
                Part::from_bytes(&bytes).unwrap()
            });
            assert_eq!(Part::join(split).unwrap(), part);
        }
        assert_eq!(Part::Sum(vec![]).blocks(64).len(), 1);
    }
}
